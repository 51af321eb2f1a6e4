# Everything a newcomer needs: `make demo` and `make test`. Both work on a machine with Python 3.11+
# only: they make their own virtual environment and install what they need into it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
FOLDERS := src tests examples benchmarks docs

# The versions the tests are known to pass with; `make test LOCK=` takes the newest.
LOCK ?= -c requirements/test.lock

# Two test processes with one thread each beat one process with many threads.
export OMP_NUM_THREADS = 1
export OPENBLAS_NUM_THREADS = 1
export MPLBACKEND = agg

# Another machine on this one: other kernels of BLAS and NumPy round differently. What depends on the
# last digits of long runs is tested under each of these; `make test-as MACHINE=...` tests all.
MACHINES := OPENBLAS_CORETYPE=Prescott OPENBLAS_CORETYPE=Haswell NPY_DISABLE_CPU_FEATURES=X86_V3
SENSITIVE := tests/contract/test_one_verdict.py tests/solvers/test_auto.py \
	tests/certificates/test_goldstein.py tests/sklearn/test_chunked_networks.py

# What `make quick` tests: what must be believed, what is claimed, and easy problems for all solvers.
QUICK := tests/checker tests/certificates tests/contract/test_solvers_x_problems.py

.PHONY: demo test quick lint types layers pytest browser machines test-as format readme overhead bench \
	clean docs kill fuzz mutation adversary exhaustive verified wheel-test lowest dist lock sbom

demo: $(VENV)/.demo
	$(BIN)/python examples/demo.py --out demo-run

test: $(VENV)/.test
	$(MAKE) -j 2 --output-sync=target lint types layers docs verified
	$(MAKE) pytest machines

# While one works: less than a minute, once mypy has its cache (the first time takes a minute more).
quick: lint types
	$(BIN)/pytest -q -n 2 -m "not slow" $(QUICK) -k "easy or not test_solvers_x_problems"

lint: $(VENV)/.test
	$(BIN)/ruff format --check $(FOLDERS)
	$(BIN)/ruff check $(FOLDERS)
	$(BIN)/ruff check --select C901 --config lint.mccabe.max-complexity=12 src

types: $(VENV)/.test
	$(BIN)/mypy

layers: $(VENV)/.test
	$(BIN)/lint-imports

pytest: $(VENV)/.test browser
	$(BIN)/pytest -q -n 2

# Pages are tested in a real browser; where none can be had this says so, loudly.
browser:
	sh tests/reporting/browser_setup.sh .browser

machines: $(VENV)/.test
	for machine in $(MACHINES); do \
		echo "As with $$machine:"; \
		env $$machine $(BIN)/pytest -q -n 2 $(SENSITIVE) -k "not over_the_suite" || exit 1; \
	done

test-as: $(VENV)/.test
	env $(MACHINE) $(BIN)/pytest -q -n 2

# The site, with every example of the gallery run; a warning is an error.
docs: $(VENV)/.test
	rm -rf docs/generated
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs build/docs

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

# The package as others get it, in empty environments: with the newest dependencies, with the lowest.
wheel-test: dist
	sh requirements/installed.sh .venv-wheel

lowest: dist
	sh requirements/installed.sh .venv-lowest requirements/lowest.txt

# The same commit makes the same files, byte for byte.
dist: $(VENV)/bin/python
	rm -rf dist
	$(BIN)/python -m pip install --quiet -r requirements/build.txt
	export SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) && \
		$(BIN)/python -m build --no-isolation > /dev/null && \
		$(BIN)/python requirements/reproducible.py dist/*.tar.gz

lock: $(VENV)/.test
	$(BIN)/python requirements/lock.py > requirements/test.lock.new
	mv requirements/test.lock.new requirements/test.lock

# What is in the test environment, in the form that auditors read; known holes in it, if the
# advisory service can be reached.
sbom: $(VENV)/.test
	$(PYTHON) -m venv .venv-tools
	.venv-tools/bin/python -m pip install --quiet cyclonedx-bom pip-audit
	.venv-tools/bin/cyclonedx-py requirements requirements/test.lock -o sbom.json
	-.venv-tools/bin/pip-audit --no-deps -r requirements/test.lock

# For a night: 200 runs killed at random moments, 100,000 damaged files.
kill: $(VENV)/.test
	$(BIN)/python -m benchmarks.kill --kills 200

fuzz: $(VENV)/.test
	$(BIN)/python -m benchmarks.fuzz --files 100000

mutation: $(VENV)/.test
	$(BIN)/python -m benchmarks.mutation

# The checker that is proved in Coq: its proof, its assumptions, and both checkers on proof files.
# Where Coq can neither be found nor installed this says so, loudly.
verified: $(VENV)/.test
	$(BIN)/python -m benchmarks.verified

# For a night: a million attacks, each with the verdict it must get.
# Every check of scikit-learn on the defaults that take minutes.
exhaustive: $(VENV)/.test
	$(BIN)/pytest -q -n 2 -m exhaustive tests/sklearn

adversary: $(VENV)/.test
	$(BIN)/python -m benchmarks.adversary --n 1000000 --jobs 2

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.demo: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet $(LOCK) --editable ".[cli,sklearn,exact]"
	touch $@

$(VENV)/.test: pyproject.toml requirements/test.lock | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet $(LOCK) --editable ".[test]"
	touch $@ $(VENV)/.demo

clean:
	rm -rf $(VENV) .venv-wheel .venv-lowest .venv-tools dist demo-run .browser .mypy_cache \
		.ruff_cache .pytest_cache
