# Two commands: `make demo` and `make test`. Both make .venv and install what they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test test-core lint bench bench-all clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) -e .
	@touch $@

$(VENV)/.test: $(VENV)/.core
	$(PIP) -e ".[test]"
	@touch $@

$(VENV)/.extras: $(VENV)/.test
	$(PIP) -e ".[torch,faiss]"
	@touch $@

demo: $(VENV)/.core
	$(BIN)/qwp demo --report demo-report.html

lint: $(VENV)/.extras
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/python -m pytest

# The tests without torch and faiss, in an environment that has never held them.
test-core:
	$(MAKE) VENV=.venv-core .venv-core/.test
	.venv-core/bin/python -m pytest

bench: $(VENV)/.extras
	$(BIN)/python -m benchmarks.run

bench-all: $(VENV)/.extras
	$(BIN)/python -m benchmarks.run --all

clean:
	rm -rf $(VENV) .venv-core build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache demo-report.html
