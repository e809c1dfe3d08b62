# Everything a developer does, one word each; `make` alone explains them. CI runs `make ci` and nothing else.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules --no-print-directory

# The Python of .venv: python3, but where that was built without optimisations (as pyenv does it) and the system has one, which
# was built with them, that one. The tuple path takes a fifth less of its time there.
PYTHON ?= $(shell python3 -c 'import sys, sysconfig; \
  sys.exit("--enable-optimizations" not in (sysconfig.get_config_var("CONFIG_ARGS") or ""))' 2>/dev/null \
  || { /usr/bin/python3 -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo /usr/bin/; })python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
# What the demo writes: the counts, the figures, Spark's checkpoint.
DEMO := build/demo
# A spark run's Python workers import the examples and the tests as modules, as the driver does.
export PYTHONPATH := $(CURDIR)
# Compiled modules and tests are kept, whatever the environment says: without them it takes three times as long to collect tests.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  \1\t\2/' | expand -t 16

# --- to begin with ------------------------------------------------------------------------------------------------------

.PHONY: setup
setup: java-hint $(INSTALLED) in-place ## make .venv with the package and all development tools, and compile the tuple path (again: does nothing)

$(INSTALLED): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "stormspark needs Python 3.11 or newer; say which one: make setup PYTHON=python3.11" >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || { echo "making $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "installing stormspark and its development tools into $(VENV), with $$($(BIN)/python -V) (a minute)"
	@STORMSPARK_PURE=1 $(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements.lock -e '.[dev]'
	@echo "compiling modules and tests, once and not in each process of a run (half a minute)"
	@$(BIN)/pytest --collect-only --quiet >/dev/null || :
	@touch $@

# Beside its sources, for topologies that run in this checkout. After an edit the sources run, until this is made again.
.PHONY: in-place
in-place: $(INSTALLED)
	@$(if $(filter-out 0,$(STORMSPARK_PURE)),:,$(BIN)/python setup.py --quiet build_ext --inplace 2>$(VENV)/compiled.log) || \
	  echo "the tuple path could not be compiled, so it runs as Python: $(VENV)/compiled.log says why" >&2

# Spark 4 runs on Java 17 or newer. It takes the one in JAVA_HOME before the one on PATH, and so does this.
java_version = $(shell "$${JAVA_HOME:+$$JAVA_HOME/bin/}java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p')
java_works = $(shell [ "0$(java_version)" -ge 17 ] 2>/dev/null && echo yes)
java_missing = Spark needs Java 17 or newer, found $(or $(java_version),none): \
  apt-get install openjdk-17-jre-headless, or brew install openjdk@17, or set JAVA_HOME

.PHONY: java java-hint
java: # before anything slow: stop where Spark could not start
	@$(if $(java_works),:,$(error $(java_missing)))
java-hint: # the local engine and the fast tests do without Java
	@$(if $(java_works),:,$(info $(java_missing) (--engine local and `make test-fast` do without)))

.PHONY: demo
demo: java $(INSTALLED) ## word count of Python's standard library on Spark, compared with a plain Python count
	@rm -rf $(DEMO) && mkdir -p $(DEMO)
	@$(BIN)/stormspark run examples/word_count.py --workers 2 --until-idle 3 --json $(DEMO)/figures.json \
	  -c wordcount.output="$(CURDIR)/$(DEMO)/counts"
	@$(BIN)/python examples/check_word_count.py $(DEMO)/counts

# The sources as they are, with the tuple path compiled: what benchmarks measure, whatever is edited here meanwhile.
COMPILED := build/compiled
compiled test-compiled wheels bench bench-scale: export STORMSPARK_PURE =
.PHONY: compiled
compiled: $(INSTALLED) ## build/compiled: a copy of this tree in which the tuple path is compiled (needs a C compiler)
	@mkdir -p $(COMPILED)
	@find $(COMPILED) \( -name '*.py' -o -name '*.pxd' \) -delete # of modules that are gone
	@git ls-files -co --exclude-standard -z | while IFS= read -r -d '' file; do [ ! -f "$$file" ] || printf '%s\0' "$$file"; done \
	  | tar --null -T - -cf - | tar -xf - -C $(COMPILED)
	@cd $(COMPILED) && "$(CURDIR)/$(BIN)/python" setup.py --quiet build_ext --inplace 2>setup.log || { cat setup.log >&2; exit 1; }
	@cd $(COMPILED) && PYTHONPATH="$(CURDIR)/$(COMPILED)" "$(CURDIR)/$(BIN)/python" -m stormspark.tuple_path | grep 'is compiled' || { cat setup.log >&2; exit 1; }

# --- checks -------------------------------------------------------------------------------------------------------------

# Two at a time: most tests wait for Spark most of the time, and three are no faster. A file's tests stay together, in order.
TEST_PROCESSES ?= 2
# A process of tests that dies ends the run, which names the test that it ran. With another process in its place the run would
# not end at all (pytest-xdist 3.8).
SIDE_BY_SIDE = -n $(TEST_PROCESSES) --dist loadfile --no-loadscope-reorder --max-worker-restart 0
# Tests start some hundred JVMs, which find Spark's classes parsed in here.
CLASSES := build/classes/connectors.jsa
$(CLASSES): requirements.lock tests/quick_jvm.py | java $(INSTALLED)
	@echo "archives of Spark's classes, for JVMs of tests to start with (a minute)"
	@$(BIN)/python -m tests.quick_jvm

# Whoever reads docstrings, or puts something in the place of a function, wants the sources. `tests/__init__.py` says so for tests.
docs site messages settings parity: export STORMSPARK_PURE = 1
# The order of sets is drawn too.
test test-fast test-compiled: export PYTHONHASHSEED = 1
# Hypothesis looks at fewer examples in what developers run after an edit, and in what was tested before it was compiled.
test-fast test-for test-compiled: export HYPOTHESIS_PROFILE ?= quick
# Outages last for minutes there.
soak soak-faults: export PATIENCE_SECS ?= 900

.PHONY: classes
classes: $(CLASSES) ## what `make test` makes first

.PHONY: test
test: $(CLASSES) ## all tests, with Spark and with faults (half an hour; `make soak` has their long forms)
	@status=0; SPARK_SUBMIT_OPTS= $(BIN)/pytest -m alone || status=1; $(BIN)/pytest $(SIDE_BY_SIDE) -m 'not alone' || status=1; exit $$status

# Three at a time: some wait for a timer or a thread, and the processor has nothing else to do then.
test-fast: TEST_PROCESSES = 3
.PHONY: test-fast
test-fast: $(INSTALLED) ## the tests that need no Java and no patience
	@$(BIN)/pytest $(SIDE_BY_SIDE) -m 'not spark and not slow'

# Those of its package, and those that import it themselves.
.PHONY: test-for
test-for: $(INSTALLED) ## the fast tests for a module or package: make test-for MODULE=stormspark/worker/turns.py
	@name=$$(sed 's|\.py$$||; s|/$$||; s|/|.|g' <<<'$(MODULE)') && package=$$(cut -d. -f2 <<<"$$name") && \
	  { ls -d tests/unit/$$package tests/unit/test_$$package.py 2>/dev/null || :; git grep -lE "(from|import) $${name//./\\.}\b" -- 'tests/**/test_*.py' || :; } | sort -u | \
	  { mapfile -t found && [ -n "$${found[*]}" ] || { echo "no tests for $(MODULE): name a file or folder below stormspark/" >&2; exit 1; }; \
	  $(BIN)/pytest -q $(SIDE_BY_SIDE) -m 'not spark and not slow' "$${found[@]}"; }

# Slow ones of units wait for a stop or a thread, mostly; with LONG_TESTS (`make soak`) they are there, too. None that wait at random on
# threads, and none of other languages: there the tuple path is the least of it.
IN_BOTH_FORMS = not local-2-workers and not [threads and not -threads and not test_multilang and not any_other_key and not says_today
IN_COMPILED_PYTEST = cd $(COMPILED) && PYTHONPATH="$(CURDIR)/$(COMPILED)" "$(CURDIR)/$(BIN)/pytest" -q $(SIDE_BY_SIDE) -k '$(IN_BOTH_FORMS)'
.PHONY: test-compiled
test-compiled: compiled ## the tests of the tuple path and of the semantics again, compiled, with one worker and three
	@$(IN_COMPILED_PYTEST) -m 'not spark$(if $(LONG_TESTS),, and not slow)' \
	  $(addprefix --ignore=tests/unit/worker/test_,link.py lifeline.py task_logs.py) \
	  tests/unit/acker tests/unit/api tests/unit/compat/streamparse tests/unit/grouping tests/unit/worker
	@$(IN_COMPILED_PYTEST) -m 'not spark' \
	  $(addprefix --ignore=tests/properties/test_,state_table.py backpressure.py map_state.py key_value_store.py kafka_offsets.py) \
	  tests/conformance tests/properties

# An environment for each version of Spark and Python, kept from run to run (1.5 GB each).
MATRIX_ENVIRONMENTS ?= $(HOME)/.cache/stormspark/matrix
MATRIX_ONLY ?=
.PHONY: test-matrix test-matrix-smoke test-matrix-ci test-upgrade
test-matrix: java $(INSTALLED) ## the tests on each version of Spark, Python, pandas and pyarrow (hours), then a table; MATRIX_ONLY=4.0 for some
	@$(BIN)/python -m tools.matrix --environments "$(MATRIX_ENVIRONMENTS)" --only '$(MATRIX_ONLY)'

test-matrix-smoke: java $(INSTALLED) ## a few tests on each of them
	@$(BIN)/python -m tools.matrix --environments "$(MATRIX_ENVIRONMENTS)" --only '$(MATRIX_ONLY)' --smoke

test-matrix-ci: java $(INSTALLED) ## what CI runs of it: word counts on the two older versions of Spark
	@$(BIN)/python -m tools.matrix --environments "$(MATRIX_ENVIRONMENTS)" --ci

test-upgrade: java $(INSTALLED) ## Spark's version changes under a topology that counts exactly once, up and down again
	@$(BIN)/python -m tools.upgrade --environments "$(MATRIX_ENVIRONMENTS)"

.PHONY: wheels
wheels: compiled ## both wheels, the compiled one and the one that works everywhere: built, installed on their own, run
	@rm -rf build/wheels build/lib # which has modules that are gone
	@cd $(COMPILED) && "$(CURDIR)/$(BIN)/pip" wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation -w "$(CURDIR)/build/wheels/compiled" .
	@STORMSPARK_PURE=1 $(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation -w build/wheels/Python .
	@for kind in compiled Python; do \
	  $(BIN)/pip install --quiet --disable-pip-version-check --no-deps --target build/wheels/$$kind/installed build/wheels/$$kind/*.whl; \
	  ls build/wheels/$$kind/*.whl; \
	  (cd build/wheels && export PYTHONPATH="$(CURDIR)/build/wheels/$$kind/installed" && \
	    "$(CURDIR)/$(BIN)/python" -m stormspark.tuple_path | grep "is $$kind" && \
	    { "$(CURDIR)/$(BIN)/python" -m stormspark.cli run "$(CURDIR)/examples/word_count.py" --engine local --until-idle 1 \
	      -c wordcount.output="$(CURDIR)/build/wheels/$$kind/counts" >$$kind.log 2>&1 || { cat $$kind.log; exit 1; }; } && \
	    cd $$kind && "$(CURDIR)/$(BIN)/python" -m stormspark.cli quickstart words >/dev/null && \
	    { "$(CURDIR)/$(BIN)/python" -m stormspark.cli run words/word_count.py --engine local 2>&1 | grep '4 the' >/dev/null; }); \
	done

.PHONY: lint
lint: $(INSTALLED) ## ruff: style, likely bugs, formatting
	@$(BIN)/ruff check --quiet --output-format concise .
	@$(BIN)/ruff format --check --quiet . || { echo "run: make format" >&2; exit 1; }

.PHONY: format
format: $(INSTALLED) ## let ruff format and repair what it can
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format --quiet .

.PHONY: types
types: $(INSTALLED) ## mypy, strict for the package
	@$(BIN)/mypy
	@$(BIN)/mypy tests benchmarks examples tools
	@$(BIN)/mypy jobs # apart, because a job may have the name of the example that it runs

.PHONY: layers
layers: $(INSTALLED) ## import-linter: no module imports one of a higher layer
	@$(BIN)/lint-imports --no-logo

.PHONY: docs
docs: $(INSTALLED) ## run the examples in the docstrings, the README and docs/
	@$(BIN)/pytest --doctest-modules --doctest-glob='*.md' --ignore=stormspark/spark --ignore=stormspark/compat/on_path stormspark tools/site README.md docs/*.md docs/porting/*.md docs/tutorials/*.md

# Sphinx and its theme, in an environment of their own, which also sees what .venv has: `make setup` is no slower for them.
SITE_VENV := build/site/venv
SITE_INSTALLED := $(SITE_VENV)/.installed
$(SITE_INSTALLED): tools/site/requirements.txt $(INSTALLED)
	@echo "installing Sphinx into $(SITE_VENV)"
	@rm -rf $(SITE_VENV) && $(BIN)/python -m venv $(SITE_VENV)
	@PYTHONPATH= $(SITE_VENV)/bin/pip install --quiet --disable-pip-version-check -r tools/site/requirements.txt
	@$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
	  >"$$($(SITE_VENV)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/stormspark-environment.pth"
	@touch $@

.PHONY: site
site: $(SITE_INSTALLED) ## build/site/html: the documentation as a site, with a search and the API; warnings and broken links are errors
	@$(SITE_VENV)/bin/python -m tools.site

.PHONY: parity
parity: $(INSTALLED) ## write docs/reference/parity.md: what behaves like Storm, from the tests
	@$(BIN)/python -m tests.parity

.PHONY: messages
messages: $(INSTALLED) ## write docs/reference/messages.md: what it says when something is wrong, from the code
	@$(BIN)/python -m tests.messages_page

.PHONY: settings
settings: $(INSTALLED) ## write docs/reference/settings.md: the settings, from the code
	@$(BIN)/python -m tests.settings_page

.PHONY: notebooks
notebooks: java $(INSTALLED) ## execute the notebooks
	@$(BIN)/pytest tests/notebooks

BENCH_ROUNDS ?= 5
# What is measured is compiled; results and documents are those of this tree.
IN_COMPILED = BENCH_ROOT="$(CURDIR)" STORM_PEER=$(abspath $(or $(STORM_PEER),../shared/peers/storm)) \
  PYTHONPATH="$(CURDIR)/$(COMPILED)" "$(CURDIR)/$(BIN)/python"
BENCH_ROWS ?=
.PHONY: bench
bench: java compiled ## all of docs/benchmarks.md against Storm (STORM_PEER: its sources; Maven), Bytewax and bare Spark: some hours; again: goes on
	@cd $(COMPILED) && $(IN_COMPILED) -m benchmarks.table --rounds $(BENCH_ROUNDS) $(if $(BENCH_ROWS),--rows $(BENCH_ROWS))

.PHONY: bench-scale
bench-scale: java compiled ## what a tuple costs against how much there is of everything, and what a cluster would add: docs/scale.md and its plot
	@cd $(COMPILED) && $(IN_COMPILED) -m benchmarks.scale --write && $(IN_COMPILED) -m benchmarks.cluster_costs --write

.PHONY: bench-smoke
bench-smoke: java $(INSTALLED) ## the benchmarks, too short to mean anything: do they still run?
	@$(BIN)/python -m benchmarks.table --smoke
	@$(BIN)/python -m benchmarks.scale --smoke
	@$(BIN)/python -m benchmarks.tuple_path --front-end streamparse --workers 2 --seconds 1
	@$(BIN)/python -m benchmarks.vectorised --engine local --workers 2 --seconds 1 --warmup 1 --ids row
	@$(BIN)/python -m benchmarks.multilang --engine local --seconds 2 --warmup 1
	@$(BIN)/python -m benchmarks.reporting each --tasks 3 --rounds 1
	@$(BIN)/python -m benchmarks.arrival --engine local --front-end multilang --sleep 0.2 --seconds 3

ROUNDS ?= 10
FUZZ_TOPOLOGIES ?= 500
FUZZ_SPARK ?= 40
FAULT_MESSAGES ?= 100000
FAULT_INJECTIONS ?= 5
BACKPRESSURE_SECS ?= 300
EXACTLY_ONCE_KILLS ?= 50
SCHEDULE_SECS ?= 3600
# Tests draw the same each time, but not here: other numbers each time, and what was drawn can be had again.
ifndef TEST_SEED
TEST_SEED := $(shell od -An -N3 -tu4 /dev/urandom | tr -d ' ')
endif
DRAWN_ANEW = TEST_SEED=$(TEST_SEED) PYTHONHASHSEED=$(TEST_SEED) HYPOTHESIS_PROFILE=soak $(BIN)/pytest -q --hypothesis-seed=$(TEST_SEED)
.PHONY: soak-seed
soak-seed:
	@echo "TEST_SEED=$(TEST_SEED) repeats what is drawn here: make $(or $(MAKECMDGOALS),soak) TEST_SEED=$(TEST_SEED)"

.PHONY: soak
soak: java $(INSTALLED) soak-seed soak-schedules soak-faults soak-backpressure soak-exactly-once soak-originals ## the fault tests ROUNDS times, the state machines with many more steps, random topologies by the hundred
	@LONG_TESTS=1 $(BIN)/pytest -q -m 'long and not cluster' $(addprefix --ignore=tests/faults/,nothing_lost test_executors.py test_outage.py) # in soak-faults
	@LONG_TESTS=1 $(MAKE) --no-print-directory test-compiled
	@for round in $$(seq $(ROUNDS)); do echo "round $$round of $(ROUNDS)"; TEST_SEED=$$(($(TEST_SEED) + $$round)) $(BIN)/pytest -q tests/faults; done
	@WINDOW_EXAMPLES=300 $(DRAWN_ANEW) tests/properties
	@FUZZ_TOPOLOGIES=$(FUZZ_TOPOLOGIES) FUZZ_WAITING=$(FUZZ_TOPOLOGIES) FUZZ_SPARK=$(FUZZ_SPARK) $(DRAWN_ANEW) tests/fuzz
	@SOAK_BATCHES=20000 HEAVY_TUPLES=2500 $(BIN)/pytest -q tests/unit/local/test_nothing_grows.py tests/spark/test_heavy_tuples.py

.PHONY: soak-schedules
soak-schedules: $(INSTALLED) ## the protocol of a batch under new schedules (tests/schedules), for SCHEDULE_SECS; and each planted defect is found
	@$(BIN)/python -m tests.schedules --planted
	@$(BIN)/python -m tests.schedules --seconds $(SCHEDULE_SECS)
	@$(BIN)/python -m tests.schedules.interleaved --planted
	@$(BIN)/python -m tests.schedules.interleaved --seconds $(SCHEDULE_SECS)

.PHONY: soak-faults
soak-faults: java $(INSTALLED) soak-seed ## nothing is lost: FAULT_MESSAGES and FAULT_INJECTIONS for each fault; the table is in build/nothing_lost
	@LONG_TESTS=1 FAULT_MESSAGES=$(FAULT_MESSAGES) FAULT_INJECTIONS=$(FAULT_INJECTIONS) $(DRAWN_ANEW) tests/faults/nothing_lost
	@LONG_TESTS=1 OUTAGE_SECS=600 $(DRAWN_ANEW) tests/faults/test_executors.py tests/faults/test_outage.py

.PHONY: test-cluster
test-cluster: java $(INSTALLED) ## topologies on clusters of hosts (as root): Spark standalone and YARN, HDFS and S3; hosts are killed and cut off
	@LONG_TESTS=1 PATIENCE_SECS=1500 $(BIN)/pytest -v -m cluster tests/cluster

.PHONY: soak-backpressure
soak-backpressure: java $(INSTALLED) soak-seed ## bolts that can't keep up, BACKPRESSURE_SECS for each run; the tables are in build/backpressure
	@LONG_TESTS=1 BACKPRESSURE_SECS=$(BACKPRESSURE_SECS) $(DRAWN_ANEW) tests/faults/backpressure

.PHONY: soak-exactly-once
soak-exactly-once: java $(INSTALLED) soak-seed ## kill -9 at every step of the commit protocol, of executors too, and EXACTLY_ONCE_KILLS times at random
	@LONG_TESTS=1 EXACTLY_ONCE_KILLS=$(EXACTLY_ONCE_KILLS) $(DRAWN_ANEW) -s tests/faults/exactly_once tests/faults/outputs tests/faults/windows tests/faults/test_dealt_out.py tests/spark/test_transactional.py

# Whole projects of others, as they are: fetched once, at what the tests know, but for those of which a variable names a checkout.
ORIGINALS := build/originals
STORM_ORIGINAL := https://github.com/apache/storm 73da988d9ac3f2c9b83ec224bc54edb038654f75
HERON_ORIGINAL := https://github.com/apache/incubator-heron 1c5779dcdf19eed888412f3d87b31ebb4b00e07e
STREAMPARSE_ORIGINAL := https://github.com/Parsely/streamparse aabd9d057f0fbf568d29199e3d25a6d30d62f132
PROJECTS := STORM HERON STREAMPARSE
$(ORIGINALS)/%:
	@echo "fetching $($*_ORIGINAL)"
	@rm -rf $@ $@.new && git init --quiet $@.new && git -C $@.new fetch --quiet --depth 1 $($*_ORIGINAL)
	@git -C $@.new -c advice.detachedHead=false checkout --quiet FETCH_HEAD && mv $@.new $@
.PHONY: soak-originals
soak-originals: java $(INSTALLED) $(foreach name,$(PROJECTS),$(if $($(name)_EXAMPLES),,$(ORIGINALS)/$(name))) ## projects of others run and are ported as their authors wrote them: fetched, or in STORM_EXAMPLES, HERON_EXAMPLES, STREAMPARSE_EXAMPLES
	@$(foreach name,$(PROJECTS),$(name)_EXAMPLES=$(or $($(name)_EXAMPLES),"$(CURDIR)/$(ORIGINALS)/$(name)")) $(BIN)/pytest -q \
	  tests/legacy/flux/test_originals.py tests/legacy/porting/test_originals.py tests/legacy/heronpy/test_examples.py \
	  tests/legacy/heron_streamlet tests/legacy/streamparse/test_originals.py

LEGACY_OPTIONS ?=
.PHONY: legacy
legacy: $(INSTALLED) ## what becomes of the topologies of other people's projects: LEGACY=folder with checkouts (LEGACY_OPTIONS=--no-spark)
	@test -n "$(LEGACY)" || { echo "name a folder with checkouts of projects: make legacy LEGACY=folder" >&2; exit 2; }
	@$(BIN)/python -m tools.legacy "$(LEGACY)" $(LEGACY_OPTIONS)

.PHONY: ci
ci: ## all that CI checks, tests last
	@.ci/run

# --- housekeeping -------------------------------------------------------------------------------------------------------

.PHONY: lock
lock: $(INSTALLED) ## write the installed versions to requirements.lock
	@{ head -n 1 requirements.lock; $(BIN)/python -m pip freeze --exclude stormspark; } > requirements.new
	@mv requirements.new requirements.lock

.PHONY: clean
clean: ## remove what runs and checks leave behind, and what is compiled, but not .venv
	@rm -rf build dist spark-warehouse metastore_db derby.log .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
	@find stormspark -name '*.so' -delete && rm -f stormspark/.compiled.*.json* # in this order: without its mark it would always run
