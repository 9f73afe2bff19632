# Two commands do everything on a fresh machine: `make demo` and `make test`. `make help` lists the rest.
PYTHON ?= python3
BIN := .venv/bin
NAME ?= source
# Three on two cores: a test that waits for a lease or a process leaves its core to another.
WORKERS ?= 3
# Each worker has one Spark session and one twin; a file's tests stay on one worker, and the longest files begin.
PYTEST := $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder --durations=10 --ignore=tests/cluster
ONE_JOURNEY := tests/journey/test_happy_path.py::test_nothing_is_dropped_silently

# What `make check` tests.
CHECKED := tests/test_house.py tests/test_docs.py tests/test_blocks.py tests/infra/test_settings.py

# What `make quick` leaves out: what takes more than six seconds of a core, what `make check` has, and the other journeys.
LONG := infra twin logstore journey batch/test_dedupe_beside_a_retry.py batch/test_retry_beside_a_batch.py \
  capacity/test_simulation.py content/test_bad_input.py operate/test_draft.py operate/test_drop.py operate/test_erase.py \
  operate/test_lake_view.py operate/test_landing.py operate/test_rollback.py privacy/test_hostile.py record/test_apart.py \
  record/test_cost.py
QUICK := -m "not jvm and not deep and not hypothesis" -k "not paper and not histories" $(addprefix --ignore=,$(CHECKED) $(LONG:%=tests/%))

# AWS's linter over the service as it is by default; the suite has it over every kind of it.
LINTED := "tests/infra/test_linters.py::test_cfn_lint_finds_nothing_in_any_region_where_the_service_is[made]"

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all test-cluster quick check mutate docs reference format bench soak synth bundle lock clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: ## make this machine ready: packages, JVM libraries, the log store (quick the second time)
	@$(PYTHON) dev/set_up.py

demo: setup ## the whole story on this machine, in one to two minutes: files in S3 become rows in Delta tables
	@$(BIN)/forebay demo

test: setup ## every promise and every feature, in some ten minutes: all tests but the deep ones and those of `make check` (WORKERS=3 processes)
	@$(PYTEST) -m "not deep" $(CHECKED:%=--ignore=%)

test-all: setup ## the whole test suite, in some thirty-five minutes: also crashes at every point, random histories, 300 tables
	@FOREBAY_PAPER_HISTORIES=$${FOREBAY_PAPER_HISTORIES:-300} FOREBAY_COMPLETE_HISTORIES=$${FOREBAY_COMPLETE_HISTORIES:-60} \
	  FOREBAY_AFTER_LOAD_HISTORIES=$${FOREBAY_AFTER_LOAD_HISTORIES:-50} $(PYTEST)

# Six JVMs at once, 200 MB to fetch, and a Python of Glue's version: too much beside the suite's own on two cores.
test-cluster: setup ## the jobs in the environments of Glue and EMR, on a master and two workers of this machine; STORY=killed is one of the stories
	@$(BIN)/python -m pytest -q tests/cluster $(if $(STORY),-k $(STORY))

# The journey runs beside the tests, and its result is shown after theirs.
quick: setup ## most tests that need no JVM, and one journey: two minutes; leaves out infrastructure, fuzzing and random histories
	@echo "quick: most tests that need no JVM, and one journey. 'make test' also has infrastructure, fuzzing and random histories"
	@log=$$(mktemp); $(BIN)/python -m pytest -q $(ONE_JOURNEY) >$$log 2>&1 & journey=$$!; \
	  $(PYTEST) $(QUICK); tests=$$?; wait $$journey; told=$$?; \
	  echo "the journey, $(ONE_JOURNEY):"; cat $$log; rm $$log; test $$tests$$told = 00

check: setup ## style, types, which room may import which, what the documents say, and what cfn-lint finds
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/python -m pytest -q $(CHECKED) $(LINTED)

mutate: setup ## which small changes to a room's code no test without a JVM notices; ROOM=ledger, or one module: ROOM=ledger/decision
	@$(BIN)/python dev/mutate.py $(ROOM) --jobs $(WORKERS)

docs: setup ## the documents as a site, into dist/site: open dist/site/index.html; needs no network
	@$(BIN)/python -m dev.site

reference: setup ## docs/reference from the code, after a change of a setting, a command or an event
	@$(BIN)/python -m dev.reference

format: setup ## put all files into the house style
	@$(BIN)/ruff check --fix-only -q . && $(BIN)/ruff format -q .

bench: setup ## one bench, NAME=source|reader|cli|index|fanout|pipeline|peers|small_files|latency|privacy|history|merge|endurance|compaction|stress|shapes: one JSON line with figures, and bars that hold or do not
	@$(BIN)/python -m tests.bench.$(NAME)

soak: setup ## the service in the twin for hours (SOAK_MINUTES=120), all at random: every sum must hold, and no memory grow
	@$(BIN)/python -m tests.bench.soak

synth: setup ## the CloudFormation template, into cdk.out/ (offline)
	@$(BIN)/python -m infra.app

bundle: setup ## what jobs ship with, into dist/: the package as zip and wheel, the log store, the Python environment for EMR; the same bytes each time
	@$(BIN)/python -m infra.bundle dist $(EMR_PYTHON)

lock: setup ## resolve requirements.lock anew from pyproject.toml
	@.forebay/uv/bin/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-header --no-annotate --no-emit-package forebay --quiet --upgrade -o requirements.lock >/dev/null

clean: ## remove everything that set-up and runs made
	@-test -x $(BIN)/forebay && $(BIN)/forebay local down --state .forebay/demo >/dev/null
	@-test -x $(BIN)/forebay && $(BIN)/forebay local down >/dev/null
	@rm -rf .venv .forebay build dist cdk.out .pytest_cache .mypy_cache .ruff_cache .hypothesis
