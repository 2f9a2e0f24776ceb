# Every command sets up what it needs in .venv; nothing but Python (3.11 or newer) and make is assumed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help demo test fuzz mutate lint format bench docs kernels clean

help:
	@echo "make demo    install into $(VENV) and run a short tour"
	@echo "make test    install into $(VENV) and run all tests"
	@echo "make fuzz    damage model files for a minute, and kill processes that write them"
	@echo "make mutate  put small bugs into a copy of the sources, and see whether tests notice"
	@echo "make lint    ruff (check and format), mypy and import-linter"
	@echo "make format  let ruff rewrite what it can"
	@echo "make bench   run the benchmarks"
	@echo "make docs    build the documentation into docs/_build/html"
	@echo "make kernels forget compiled kernels: needed after a change to one that other files call"
	@echo "make clean   remove $(VENV) and caches"

demo: $(VENV)/.base
	$(BIN)/exchangeable demo

test: $(VENV)/.test
	$(BIN)/python -m pytest -n auto --dist loadfile

fuzz: $(VENV)/.test
	$(BIN)/python tests/fuzz/fuzz_files.py --seconds 60 --kills 20

mutate: $(VENV)/.test
	$(BIN)/python tests/mutation/run.py

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(VENV)/.lint
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/run.py

docs: $(VENV)/.docs
	$(BIN)/python docs/abilities.py
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

kernels:
	find src -name "*.nb[ic]" -delete

clean: kernels
	rm -rf docs/_build docs/auto_examples docs/sg_execution_times.rst $(VENV) .pytest_cache .ruff_cache .mypy_cache .hypothesis dist

$(BIN)/python:
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(VENV)/.base: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@
