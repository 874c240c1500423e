# `make` lists the targets below.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN = .venv/bin
KEEP_COMPILED = PYTHONDONTWRITEBYTECODE=  # or each process would compile the tests and our sources again
ABOUT_DOCS = tests/docs tests/test_small_scripts.py tests/test_benchmarks.py

.DEFAULT_GOAL := help
.PHONY: help install run paper paper-quick paper-figures test slow docs-test flower-test fuzz check format docs bench clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 15

install: .venv/.installed  ## create .venv and install vefl_sim into it

run: .venv/.installed  ## run experiments/quickstart.toml
	@$(BIN)/python -m vefl_sim experiments/quickstart.toml

paper-quick: .venv/.installed  ## all figures of the paper in a reduced version (half an hour)
	@$(BIN)/python experiments/paper/run.py --quick

paper-figures: .venv/.installed  ## figures of the paper from the stored results, without running anything
	@$(BIN)/python experiments/paper/run.py --figures

paper: .venv/.installed  ## all figures of the paper; prints how long it will take, and resumes what was interrupted
	@$(BIN)/python experiments/paper/run.py

test: .venv/.dev  ## run the tests
	@$(KEEP_COMPILED) $(BIN)/python -m pytest -n auto --dist worksteal -m "not slow" $(addprefix --ignore=,$(ABOUT_DOCS))

slow: .venv/.dev  ## run the tests that take longer, and those of properties with more examples
	@$(KEEP_COMPILED) $(BIN)/python -m pytest -n auto --dist worksteal -m "slow or hypothesis" --hypothesis-profile=full \
		$(addprefix --ignore=,$(ABOUT_DOCS))

docs-test: .venv/.dev  ## do what the pages tell a reader to do, and run every script that they name
	@$(KEEP_COMPILED) $(BIN)/python -m pytest -n auto --dist worksteal $(ABOUT_DOCS)

flower-test: .venv-flower/.installed  ## test the schemes that are strategies of Flower, in an environment that has it
	@timeout 600 .venv-flower/bin/python -m pytest tests/flower

MINUTES ?= 10
fuzz: .venv/.dev  ## attack the program with damaged and absurd input (`make fuzz MINUTES=60`)
	@$(BIN)/python -m tests.fuzz --minutes $(MINUTES)

check: .venv/.dev  ## lint, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: .venv/.dev  ## rewrite the sources in the project's style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: .venv/.docs  ## build the documentation site into docs/_build/html, and check its links
	@$(BIN)/python -m sphinx -c docs/site -W --keep-going -q . docs/_build/html
	@echo "open docs/_build/html/index.html"

bench: .venv/.dev  ## measure how fast things are (`make bench BENCH=--check`; see `make bench BENCH=--help`)
	@$(BIN)/python benchmarks $(BENCH)

clean:  ## remove .venv, .venv-flower and caches; runs/ stays
	rm -rf .venv .venv-flower docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("vefl_sim needs Python 3.11 or newer, this is " + sys.version) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv .venv

.venv/.installed: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --upgrade --constraint constraints.txt pip setuptools
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	@touch $@

.venv/.report: .venv/.installed  # all that figures need is always installed
	@touch $@

.venv/.dev: .venv/.installed
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

.venv/.docs: .venv/.installed
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	@touch $@

.venv-flower/.installed: pyproject.toml  # without constraints.txt: Flower needs earlier versions of rich and typer
	$(PYTHON) -m venv .venv-flower
	.venv-flower/bin/python -m pip install --quiet --editable '.[flower]' pytest hypothesis
	.venv-flower/bin/python -m pip check
	@touch $@
