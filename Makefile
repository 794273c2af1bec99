# Every target needs only Python: it creates .venv and installs what it needs there.
# The comment after ## is the help text of a target, which `make help` and the documents show.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# One test process per core, so one thread in each.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
PYTEST := -m pytest -n auto --dist worksteal
# Tests start Python hundreds of times; bytecode files save compiling everything each time.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-fast test-core test-minimum test-portable portable-quick lint coverage fuzz fuzz-quick bench bench-all wheel generated docs clean
# Each step uses all cores, and lint runs first because it is quick.
.NOTPARALLEL:

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.core ## align the packaged English and Spanish vectors; write demo-report.html and demo-alignment
	$(BIN)/qwp demo --report demo-report.html --out demo-alignment

test: lint coverage portable-quick wheel ## run all checks of continuous integration

test-fast: $(VENV)/.extras ## run the quick tests, without lint and coverage
	$(ONE_THREAD) $(BIN)/python $(PYTEST) -m "not slow"

test-core: ## run all tests without torch and FAISS (in .venv-core)
	$(MAKE) VENV=.venv-core .venv-core/.test
	$(ONE_THREAD) .venv-core/bin/python $(PYTEST)

test-minimum: ## run the quick tests with the lowest versions that pyproject.toml allows (in .venv-minimum; Python 3.10 to 3.12)
	$(MAKE) VENV=.venv-minimum .venv-minimum/.minimum
	$(ONE_THREAD) .venv-minimum/bin/python $(PYTEST) -m "not slow"

test-portable: $(VENV)/.extras ## run the numerical tests with every OpenBLAS kernel, with 1, 2 and 4 threads, and without SIMD
	$(BIN)/python -m tools.portable

portable-quick: $(VENV)/.extras ## run the numerical tests with three OpenBLAS kernels
	$(BIN)/python -m tools.portable --quick

lint: $(VENV)/.extras ## run ruff, mypy --strict and import-linter; check the generated parts of documents
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tools.generate --check

# Tracing takes a third longer, so it is limited to the quick tests, which cover nearly all code.
coverage: $(VENV)/.extras ## run all tests; measure the branch coverage of the quick ones
	$(ONE_THREAD) $(BIN)/python $(PYTEST) -m "not slow" --cov --cov-report=term
	$(ONE_THREAD) $(BIN)/python $(PYTEST) -m slow

fuzz: $(VENV)/.extras ## attack readers, saved results and the command line with damaged and random inputs
	$(BIN)/python -m fuzz.run

fuzz-quick: $(VENV)/.extras ## the same for about a minute
	$(BIN)/python -m fuzz.run --quick

bench: $(VENV)/.extras ## compare the speed of each stage with other libraries
	$(BIN)/python -m benchmarks.run

bench-all: $(VENV)/.extras ## the same with whole alignments: more than an hour
	$(BIN)/python -m benchmarks.run --all

wheel: $(VENV)/.extras ## build sdist and wheel into dist, install the wheel in a new environment and run its demo
	$(BIN)/python -m tools.check_wheel --out dist

generated: $(VENV)/.extras ## write the generated parts of documents and code
	$(BIN)/python -m tools.generate

docs: $(VENV)/.docs ## build the site of the documents into site, without a network
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

clean: ## remove environments and generated files
	rm -rf $(VENV) .venv-core .venv-minimum build dist site src/*.egg-info .coverage .coverage.* htmlcov demo-report.html demo-alignment
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: $(BIN)/python pyproject.toml constraints.txt src/qwp/version.py
	$(PIP) -e .
	@touch $@

# The site needs neither torch nor FAISS.
$(VENV)/.docs: $(VENV)/.core
	$(PIP) -e ".[docs]"
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
