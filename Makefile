# Two commands do everything on a fresh machine: make run, make test (make integration tests the rest).
PYTHON ?= python3
BIN := .venv/bin

.PHONY: run test integration check mutate
run: .venv/installed
	$(BIN)/spanbench run

# A worker a core, and a file a worker: the tests of a file share what is slow to make. In their order,
# so that short files come last and no worker waits long for the other.
test: .venv/installed-dev
	$(BIN)/pytest --numprocesses auto --dist loadfile --no-loadscope-reorder -m 'not integration'

# What needs a server, a browser (the web UI's tests: chromium) or minutes.
integration: .venv/installed-dev
	$(BIN)/pytest --numprocesses auto --dist loadfile --no-loadscope-reorder -m integration

# Formatter, linter, types, import rules.
check: .venv/installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Whether the tests of the measures notice a change of them; far too slow for CI (docs/mutation.md).
# From scratch, since mutmut does not see that a test changed. It starts mypy by its bare name.
mutate: .venv/installed-mutation
	rm -rf mutants
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/mutmut run
	$(BIN)/python benchmarks/mutation.py

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/installed: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/pip install --quiet --constraint constraints.txt --editable .
	@touch $@

.venv/installed-dev: .venv/installed
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

.venv/installed-mutation: .venv/installed-dev
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[mutation]'
	@touch $@
