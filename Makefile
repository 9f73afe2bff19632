# Two commands do everything on a fresh machine: `make demo` and `make test`. `make help` lists the rest.
PYTHON ?= python3
BIN := .venv/bin
NAME ?= source
WORKERS ?= 2
# Each with a JVM of its own, since their sessions talk to different servers; the longest first, two at a time.
WITH_SPARK := tests/journey tests/chaos tests/upkeep/compaction/on_spark tests/source tests/table tests/batch tests/logstore tests/content/test_source.py

.DEFAULT_GOAL := help
.PHONY: help setup demo test check format bench synth bundle lock clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: ## make this machine ready: packages, JVM libraries, the log store (quick the second time)
	@$(PYTHON) dev/set_up.py

demo: setup ## the whole story on this machine, in one to two minutes: files in S3 become rows in Delta tables
	@$(BIN)/forebay demo

test: setup ## the whole test suite (WORKERS=2 processes)
	@$(BIN)/python -m pytest -n $(WORKERS) -q $(WITH_SPARK:%=--ignore=%)
	@printf '%s\n' $(WITH_SPARK) | xargs -P $(WORKERS) -I{} \
	  sh -c 'said=$$($(BIN)/python -m pytest -q {} 2>&1); ended=$$?; printf "%s\n%s\n" {} "$$said"; exit $$ended'

check: setup ## style, types, which room may import which, and what the documents say
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/python -m pytest -q tests/test_house.py tests/test_docs.py

format: setup ## put all files into the house style
	@$(BIN)/ruff check --fix-only -q . && $(BIN)/ruff format -q .

bench: setup ## one bench, NAME=source|reader|fanout|skew|pipeline|history|endurance|compaction|stress: one JSON line with figures, and bars that hold or do not
	@$(BIN)/python -m tests.bench.$(NAME)

synth: setup ## the CloudFormation template, into cdk.out/ (offline)
	@$(BIN)/python -m infra.app

bundle: setup ## what jobs ship with, into dist/: the package as zip and wheel, the log store; the same bytes each time
	@$(BIN)/python -m infra.bundle

lock: setup ## resolve requirements.lock anew from pyproject.toml
	@.forebay/uv/bin/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-header --no-annotate --no-emit-package forebay --quiet --upgrade -o requirements.lock >/dev/null

clean: ## remove everything that set-up and runs made
	@-test -x $(BIN)/forebay && $(BIN)/forebay local down --state .forebay/demo >/dev/null
	@-test -x $(BIN)/forebay && $(BIN)/forebay local down >/dev/null
	@rm -rf .venv .forebay build dist cdk.out .pytest_cache .mypy_cache .ruff_cache .hypothesis
