# `make demo` and `make test` need nothing but Python: they make .venv and install into it.
# A comment after ## is the help text of a target; `make help` and the documents show it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# One test process for each core: more threads in each would only wait for each other.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
PYTEST := -m pytest -n auto --dist worksteal
# Tests start Python some hundred times: it is not to compile everything again each time.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-fast test-core test-minimum test-portable portable-quick lint coverage fuzz fuzz-quick bench bench-all wheel generated docs clean
# Each step uses all cores by itself, and lint is to speak first.
.NOTPARALLEL:

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.core ## align the packaged English and Spanish vectors, write demo-report.html and demo-alignment
	$(BIN)/qwp demo --report demo-report.html --out demo-alignment

test: lint coverage portable-quick wheel ## everything that continuous integration checks

test-fast: $(VENV)/.extras ## the tests that take little time, without lint and coverage
	$(ONE_THREAD) $(BIN)/python $(PYTEST) -m "not slow"

test-core: ## the tests in an environment that has never held torch and faiss (.venv-core)
	$(MAKE) VENV=.venv-core .venv-core/.test
	$(ONE_THREAD) .venv-core/bin/python $(PYTEST)

test-minimum: ## the quick tests with the lowest versions that pyproject.toml allows (.venv-minimum; Python 3.10 to 3.12)
	$(MAKE) VENV=.venv-minimum .venv-minimum/.minimum
	$(ONE_THREAD) .venv-minimum/bin/python $(PYTEST) -m "not slow"

test-portable: $(VENV)/.extras ## the numerical tests under every kernel of OpenBLAS, with 1, 2 and 4 threads, without SIMD
	$(BIN)/python -m tools.portable

portable-quick: $(VENV)/.extras ## the numerical tests under three kernels of OpenBLAS
	$(BIN)/python -m tools.portable --quick

lint: $(VENV)/.extras ## ruff, mypy --strict, the layers of the imports, generated parts of documents
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tools.generate --check

# The tracer costs a third of the time of what it looks at, so it looks at the quick tests, which reach nearly all.
coverage: $(VENV)/.extras ## all tests, and the share of branches that the quick ones reach, with the least it may be
	$(ONE_THREAD) $(BIN)/python $(PYTEST) -m "not slow" --cov --cov-report=term
	$(ONE_THREAD) $(BIN)/python $(PYTEST) -m slow

fuzz: $(VENV)/.extras ## feed damaged and random files and options to the readers and the command line
	$(BIN)/python -m fuzz.run

fuzz-quick: $(VENV)/.extras ## the same for about a minute
	$(BIN)/python -m fuzz.run --quick

bench: $(VENV)/.extras ## measure the stages against alternatives
	$(BIN)/python -m benchmarks.run

bench-all: $(VENV)/.extras ## the same, and the whole pipeline: about an hour
	$(BIN)/python -m benchmarks.run --all

wheel: $(VENV)/.extras ## build sdist and wheel into dist, install the wheel elsewhere and run its demo
	$(BIN)/python -m tools.check_wheel --out dist

generated: $(VENV)/.extras ## write the generated parts of documents and code again
	$(BIN)/python -m tools.generate

docs: generated ## build the site of the documents into site, without a network; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

clean: ## remove the environments and all that is made here
	rm -rf $(VENV) .venv-core .venv-minimum build dist site src/*.egg-info .coverage .coverage.* htmlcov demo-report.html demo-alignment
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: $(BIN)/python pyproject.toml constraints.txt src/qwp/version.py
	$(PIP) -e .
	@touch $@

$(VENV)/.test: $(VENV)/.core
	$(PIP) -e ".[test]"
	@touch $@

$(VENV)/.minimum: $(VENV)/.core
	$(BIN)/python -m tools.minimum > $(VENV)/lowest.txt
	$(PIP) -c $(VENV)/lowest.txt -e ".[test,faiss]"
	@touch $@

$(VENV)/.extras: $(VENV)/.test
	$(PIP) -e ".[dev,torch,faiss]"
	@touch $@
