# Everything a newcomer needs: `make demo` and `make test`. Both work on a machine with Python 3.11+
# only: they make their own virtual environment and install what they need into it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
FOLDERS := src tests examples benchmarks

# Two test processes with one thread each beat one process with many threads.
export OMP_NUM_THREADS = 1
export OPENBLAS_NUM_THREADS = 1
export MPLBACKEND = agg

.PHONY: demo test lint types layers pytest format readme overhead bench clean

demo: $(VENV)/.demo
	$(BIN)/python examples/demo.py --out demo-run

test: lint types layers pytest

lint: $(VENV)/.test
	$(BIN)/ruff format --check $(FOLDERS)
	$(BIN)/ruff check $(FOLDERS)

types: $(VENV)/.test
	$(BIN)/mypy

layers: $(VENV)/.test
	$(BIN)/lint-imports

pytest: $(VENV)/.test
	$(BIN)/pytest -q -n 2

format: $(VENV)/.test
	$(BIN)/ruff format $(FOLDERS)
	$(BIN)/ruff check --fix $(FOLDERS)

readme: $(VENV)/.test
	$(BIN)/python tests/docs/test_readme.py

overhead: $(VENV)/.test
	$(BIN)/python benchmarks/overhead.py

# The whole comparison takes hours; finished runs are never repeated. Parts: see benchmarks/README.md.
bench: $(VENV)/.test
	sh benchmarks/peers/setup.sh
	$(BIN)/python -m benchmarks.run --methods all

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.demo: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable ".[cli,sklearn,exact]"
	touch $@

$(VENV)/.test: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable ".[test]"
	touch $@ $(VENV)/.demo

clean:
	rm -rf $(VENV) demo-run .mypy_cache .ruff_cache .pytest_cache
