# The two commands of the README, and what they need; everything else is in .ci/run.
#
#   make run    check the main spec, spec/replication.spec
#   make test   run the unit tests and those of agreement between engines, and beside them the gate, which
#               holds replog to its specs (without it: ARGS=, what pytest is to run)
#
# `make vsix` builds the extension for VS Code, editors/vscode/dist/specchk.vsix; it needs Node 20 with npm.
#
# `make docs-site` builds the documents as a static site, in .venv/site, with the playground if that was built.
#
# `make playground` builds the playground, a page that runs specs in the browser: the folder playground/dist, for any
# web server.  It needs Node 20 with npm.
#
# `make kafka` has Apache Kafka itself lose a record, step by step beside the spec, and then keep it by a repair; it
# needs Java 17 with its compiler, and Maven, which fetches Kafka into ~/.cache/specchk/kafka.
#
# `make system` runs the other tests: processes, Spark, browsers, documents, mutants, whole specs, and the slow
# ones, sampled (SLOW=1: all of them).
#
# Each makes .venv on first use.  PYTHON names another interpreter than python3 (3.11 or newer).
#
# `make test` draws the same random examples everywhere and every time.  `make nightly` runs all tests with
# examples of a new seed; RANDOM=N takes seed N again.  A failure's last line is the command that repeats it.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
SPEC   ?= spec/replication.spec
SEED   ?= $(shell git rev-parse --short HEAD 2>/dev/null || echo 0)
RANDOM :=
REPORTS := $(VENV)/gate
# The largest first: what began last would be waited for.
SMALL  := store requests log_start coordinator reassignment delivery controller_log quorum metadata producer_state groups fetcher isr_timing membership placement proposals
ALL    := replication $(SMALL) files recordings behaviour
PARTS  := $(ALL)
BOUND  = $(filter replication $(SMALL),$(PARTS))
RUNS   = $(or $(strip $(if $(BOUND),bindings) $(filter-out $(BOUND),$(PARTS))),$(error no part of the gate in PARTS: $(ALL)))
SAMPLED = $(if $(SLOW),--slow,--sample-seed=$(SEED))
EXAMPLES = $(addprefix --random-seed=,$(RANDOM))
PYTEST := $(BIN)/python -m pytest -n auto --maxprocesses=4 --dist=worksteal

# The tests and the gate start hundreds of processes: without kept bytecode each compiles all modules again.
export PYTHONDONTWRITEBYTECODE =

.PHONY: run kafka test tests system nightly gate gate-report gate-begin $(RUNS:%=gate-%) lint docs docs-site clean vsix playground playground-parts

kafka: $(VENV)/.installed
	@$(BIN)/python -m conformance.apache_kafka loss
	@$(BIN)/specchk draw spec/kafka_stories.spec --scenario b21 -o $(VENV)/b21.svg

run: $(VENV)/.installed
	$(BIN)/specchk run $(SPEC)

# The report of the gate comes last, whichever ends first.  A make of its own and not `&`: so Ctrl-C ends both.
test: $(VENV)/.tested
ifdef ARGS
	@$(MAKE) --no-print-directory tests
else
	@$(MAKE) --no-print-directory --keep-going --jobs=3 tests gate-report; failed=$$?; cat $(REPORTS)/report.txt; exit $$failed
endif

tests system: export PYTHONHASHSEED = $(or $(RANDOM),0)
tests:
	$(PYTEST) $(if $(ARGS),$(SAMPLED),--part=unit --part=agreement) $(EXAMPLES) $(ARGS)

system: $(VENV)/.tested
	$(PYTEST) --part=system --durations=30 $(SAMPLED) $(EXAMPLES)

nightly:
	$(MAKE) test system SLOW=1 RANDOM=$(or $(RANDOM),$(shell $(PYTHON) -c 'import secrets; print(secrets.randbelow(2 ** 32))'))

gate: $(VENV)/.tested
	@$(MAKE) --no-print-directory --jobs=2 gate-report; code=$$?; cat $(REPORTS)/report.txt; exit $$code

# The gate is several runs, each to its end: of all bindings, of crashes inside steps on files, of recordings, and
# of accepted behaviour.  Each leaves its report, its exit code and, of cases, JUnit XML in .venv/gate; then comes
# the verdict.  A run without an exit code has not ended, and has failed.  `make gate PARTS=store` runs one binding,
# `make gate PARTS=files` one run.
gate-report: $(RUNS:%=gate-%)
	@failed=; for run in $(RUNS); do echo "== $$run"; cat $(REPORTS)/$$run.txt; \
	    code=$$(cat $(REPORTS)/$$run.exit); [ "$$code" = 0 ] || failed="$$failed $$run ($${code:-not ended})"; \
	done >$(REPORTS)/report.txt 2>&1 || failed=" report"; \
	echo "== gate: $(words $(RUNS)) runs,$${failed:- none} failed" >>$(REPORTS)/report.txt && [ -z "$$failed" ]

$(RUNS:%=gate-%): gate-begin
gate-begin:
	@rm -rf $(REPORTS) && mkdir -p $(REPORTS)

ENDED = >$(REPORTS)/$(1).txt 2>&1; echo $$? >$(REPORTS)/$(1).exit

gate-bindings:
	@$(BIN)/specchk conform \
	    $(foreach part,$(BOUND),conformance/$(if $(filter-out replication,$(part)),$(part)/)binding.py) \
	    --tier gate --lock --junit $(REPORTS) $(call ENDED,bindings)

gate-files:
	@$(BIN)/specchk conform conformance/on_files.py --suite faults --model two_brokers \
	    --set MaxOffset=1 --set MaxEpoch=0 $(call ENDED,files)

gate-recordings:
	@{ $(BIN)/replog sim --seeds 0..39 --record $(REPORTS)/recordings && \
	    $(BIN)/specchk validate conformance/tracing.py $(REPORTS)/recordings && \
	    $(BIN)/replog sim --seeds 0..7 --profile delete --record $(REPORTS)/delete && \
	    $(BIN)/replog sim --seeds 0..7 --profile retain --record $(REPORTS)/retain && \
	    $(BIN)/specchk validate conformance/log_start/start_tracing.py $(REPORTS)/delete $(REPORTS)/retain \
	        --no-power; } $(call ENDED,recordings)

# In another folder, time zone and locale, with another umask and other hash seeds than the lock was written with.
gate-behaviour:
	@(cd $(REPORTS) && umask 077 && env -u PYTHONHASHSEED TZ=XYZ4 LC_ALL=C "$(abspath $(BIN))/specchk" \
	    behaviour "$(abspath conformance/behaviour/behaviours.py)" --lock --junit behaviour.xml) \
	    $(call ENDED,behaviour)

vsix:
	cd editors/vscode && npm ci --no-audit --no-fund && npm run package

WHEELS = playground/build
playground: playground-parts
	node playground/build.mjs

playground-parts: $(VENV)/.installed
	cd playground && npm ci --no-audit --no-fund
	rm -rf $(WHEELS)
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir $(WHEELS) . lark click bottle
	$(BIN)/python -m pip download --quiet --no-deps --only-binary :all: --platform pyemscripten_2026_0_wasm32 \
	    --python-version 3.14 --implementation cp --abi cp314 --dest $(WHEELS) msgspec

lint: $(VENV)/.tested
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

# The output of every command in README.md and docs/, as it is now; read the diff.
docs: $(VENV)/.tested
	$(BIN)/python -m pytest tests/docs --rewrite

docs-site: $(VENV)/.installed
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@PATH="$(abspath $(BIN)):$$PATH" .ci/site $(VENV)/site

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "specchk needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	@$(PYTHON) -c 'import ensurepip, venv' || { echo "this Python has no venv; on Debian: apt-get install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.tested: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV)
