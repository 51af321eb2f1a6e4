# Everything a newcomer needs: `make demo` and `make test`. Both work on a machine with Python 3.11+ only.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint types layers bench clean

demo: $(VENV)/.demo
	$(BIN)/python examples/demo.py --out demo-run

test: $(VENV)/.test
	$(BIN)/ruff format --check src tests examples benchmarks
	$(BIN)/ruff check src tests examples benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -q -n 2

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
