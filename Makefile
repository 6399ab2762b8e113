# binlake: `make` (or `make help`) lists what there is. Needs Python 3.11 or newer and make; the rest is fetched.

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
PYTEST_ARGS ?=
# The lines of Spark that make test-lines tries; 3.5 is the main one, which the other suites run on.
LINES ?= 3.5 4.0 4.1 4.2 4.3
TEST_PYTHON ?= 3.14
# Processes that the tests run in; each may start a Spark session (2 GB of heap), a broker and an HDFS of its own. Two leave
# half of two cores idle: tests wait for services, locks and files.
WORKERS ?= 3
SOAK_ARGS ?=
FUZZ_ARGS ?=
MUTANTS_ARGS ?=
BENCH_ARGS ?=
# make oracle: how many seeds, and the first of them.
SEEDS ?= 40
START ?= 1
ORACLE_ARGS ?= --shrink
PROOFS_ARGS ?=

# A process that is through takes tests from the end of the other's; tests/conftest.py sorts them.
# How long each test took is in build/<target>.xml; the slowest are printed.
PARALLEL = $(PY) -m pytest -n $(WORKERS) --dist worksteal --durations=30 --durations-min=1 --junitxml=build/$@.xml
# CI prints how long the tests took. Every promise of docs/guarantees.md is proved in `make test`.
TEST_MINUTES := 18
REST_MINUTES := 70
NIGHTLY_MINUTES := 45

# Suites that start services or Spark; everything else is fast. A test marked lines too runs on every line of Spark.
SLOW := spark or kafka or database or hdfs or judge or cluster or hms or postgresql or hbase or packages

# The definitions of the three distributions.
PROJECTS := pyproject.toml distributions/hudilake/pyproject.toml distributions/lakemetastore/pyproject.toml

LOCK_FLAGS := --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --no-emit-find-links \
  --no-emit-package hudilake --no-emit-package lakemetastore

# Tests start some hundred Python processes. Each would compile all modules again where the environment forbids to keep them.
unexport PYTHONDONTWRITEBYTECODE

# Spark's pipelines, which a test compares with history tables, need Spark Connect. What lines/requirements.lock has already.
CONNECT := grpcio grpcio-status googleapis-common-protos
IN_LINES := -c lines/requirements.lock --no-emit-package typing-extensions --no-emit-package zstandard

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-rest test-all test-nightly test-fast test-lines test-python test-trino test-mysql lint audit docs format soak fuzz mutants oracle proofs bench package image-binlake image-test-broker lock venv install clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z][a-z0-9-]*:.*## / {printf "  make %-17s %s\n", $$1, $$2}' Makefile

demo: venv  ## Kafka, recorded and live MySQL changes, the stream, its console, a verdict; KEEP=1 keeps stream and console up
	$(PY) -m demo $(if $(KEEP),--stay)

test: venv  ## every promise of docs/guarantees.md, with real services; says at its start how long it takes
	@echo "make test: every promise, with Spark, Kafka, HDFS, S3, MariaDB, PostgreSQL, Hive Metastores, HBase and Hudi's own readers."
	@echo "make test: $(WORKERS) processes; about $(TEST_MINUTES) minutes on 2 cores. make test-rest has what it leaves out."
	$(PARALLEL) -m "not full and not trino and not mysql" $(PYTEST_ARGS)

test-rest: venv  ## what make test leaves out: full matrices, further histories and services
	@echo "make test-rest: $(WORKERS) processes; about $(REST_MINUTES) minutes on 2 cores."
	$(PARALLEL) -m "full and not trino and not mysql" $(PYTEST_ARGS)

test-all: venv  ## every test but Trino's and MySQL's on the main line of Spark: make test and make test-rest in one run
	@echo "make test-all: $(WORKERS) processes; about $$(($(TEST_MINUTES) + $(REST_MINUTES))) minutes on 2 cores."
	$(PARALLEL) -m "not trino and not mysql" $(PYTEST_ARGS)

test-nightly: venv  ## the same tests with all examples, seeds and rounds
	@echo "make test-nightly: $(WORKERS) processes; about $(NIGHTLY_MINUTES) minutes on 2 cores."
	$(PARALLEL) -m "not trino and not mysql" --hypothesis-profile nightly $(PYTEST_ARGS)

test-fast: venv  ## the tests that start nothing; minutes
	$(PARALLEL) -m "not ($(SLOW) or lines or trino or mysql or full)" $(PYTEST_ARGS)

test-trino: venv  ## Trino's queries through the metastore; fetches Trino (821 MB) and its Java once
	$(PY) -m pytest -m trino $(PYTEST_ARGS)

test-mysql: venv  ## source.mysql and load on MySQL of today; fetches it (65 MB) from Debian's unstable suite once
	$(PY) -m pytest -m mysql $(PYTEST_ARGS)

test-lines: $(LINES:%=test-line-%)  ## the short suite on further lines of Spark, each with its own environment; LINES="4.1 4.3"

test-line-3.5: venv
	$(call line,$(PY))

test-line-%: .venv-spark-%/.installed
	$(call line,.venv-spark-$*/bin/python)

# Runs the short suite with the Python $(1) and records the result: lines/results.json. Only modules with the mark are
# imported, since all modules take a minute.
define line
	$(1) -m pytest -m lines $(shell grep -rl --include='test_*.py' 'mark\.lines' tests) --junitxml=build/$@.xml $(PYTEST_ARGS); status=$$?; \
	  $(1) -m tests.line_results build/$@.xml && exit $$status
endef

test-python:  ## the short suite on another Python, in a container (needs Docker): TEST_PYTHON=3.14 LINES="4.3"
	docker/test_python.sh $(TEST_PYTHON) "$(LINES)"

lint: venv  ## ruff, mypy (strict), the import contracts, the rules of the house and the links of the documentation
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	$(PY) -m tests.house
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict

audit: venv  ## known vulnerabilities of the locked packages; says so where no service of advisories answers
	.ci/audit

docs: venv  ## the documentation site in build/site, and the pages that are generated
	$(PY) -m docs.settings_reference
	$(PY) -m docs.python_reference
	$(PY) -m docs.command_reference
	$(PY) -m docs.json_schemas
	$(PY) -m docs.support_lines
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict

format: venv  ## let ruff order imports and lay out the code
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

soak: venv  ## ingest, compaction, cleaning and archival, killed at random and checked; SOAK_ARGS="--minutes 60"
	$(PY) -m tests.programs.soak $(SOAK_ARGS)

fuzz: venv  ## damaged events and files, a minute each kind; what fails is kept; FUZZ_ARGS="--seconds 600 --target log"
	$(PY) -m tests.programs.fuzz $(FUZZ_ARGS)

mutants: venv  ## each guard removed in turn, and the tests that notice it; writes docs/mutants.md
	$(PY) -m tests.programs.mutants $(MUTANTS_ARGS)

oracle: venv  ## random schemas, rows and DDL at a real server; the lake must equal it; SEEDS=200 START=1
	$(PY) -m tests.programs.oracle run --seeds $(SEEDS) --start $(START) $(ORACLE_ARGS)

proofs: venv  ## what others wrote, to equality; hours, goes on where it ended; PROOFS_ARGS="suite --limit 40"
	$(PY) -m tests.programs.proofs $(PROOFS_ARGS)

bench: venv  ## binlake beside Hudi, Delta and Paimon on this machine; BENCH_ARGS="--only small --scale 0.01"
	$(PY) -m bench $(BENCH_ARGS)

package: venv  ## the wheels hudilake, lakemetastore and binlake, and dist/binlake.zip with all three for spark-submit
	$(PY) -m distributions.build dist

image-binlake:  ## build the container image of binlake (needs Docker)
	docker/build_binlake.sh

image-test-broker: venv  ## build the container image of the test broker (needs Docker)
	PYTHON=$(CURDIR)/$(PY) docker/build_test_broker.sh

# One resolution for every supported Python and platform, each file with its hashes. UPGRADE=--upgrade takes newer ones.
lock: venv  ## resolve the three pyproject.toml again into the requirements*.lock files
	echo 'pyspark==3.5.7' | $(VENV)/bin/uv pip compile $(LOCK_FLAGS) $(UPGRADE) --all-extras pyproject.toml - -o requirements.lock
	echo 'pyspark==3.5.7' | $(VENV)/bin/uv pip compile $(LOCK_FLAGS) $(UPGRADE) pyproject.toml - -o requirements-binlake.lock
	$(VENV)/bin/uv pip compile $(LOCK_FLAGS) $(UPGRADE) --no-emit-package pyspark --no-emit-package py4j --extra console --extra demo --extra test --extra postgresql --extra glue pyproject.toml -o lines/requirements.lock
	for line in $(filter-out 3.5,$(LINES)); do \
	  printf '%s\n' "pyspark==$$line.*" $$([ $$line != 4.3 ] || echo $(CONNECT)) | \
	  $(VENV)/bin/uv pip compile $(LOCK_FLAGS) $(IN_LINES) --no-annotate $(UPGRADE) - -o lines/spark-$$line.lock; done
	printf 'setuptools>=75,<83\nwheel\n' | $(VENV)/bin/uv pip compile $(LOCK_FLAGS) $(UPGRADE) - -o requirements-build.lock

venv: $(VENV)/.installed  ## the virtual environment in .venv, from the lock: for tests, the demo and everything else

install: $(VENV)/.usable  ## binlake alone in .venv, for who uses it: a quarter of the time of make venv

clean:  ## remove what was built here, the virtual environments too
	rm -rf $(VENV) .venv-spark-* build dist *.egg-info pipeline/*.egg-info distributions/*/build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	rm -rf spark-warehouse metastore_db derby.log demo-lake

# What a virtual environment takes: the locked build tools first, since pyspark comes as source and is built with them.
# $(1) is the environment, $(2) its lock files.
define install
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "binlake needs Python 3.11 or newer; try: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(1)
	$(1)/bin/python -m pip install --quiet --require-hashes -r requirements-build.lock
	$(1)/bin/python -m pip install --quiet --require-hashes --no-build-isolation $(addprefix -r ,$(2))
	$(1)/bin/python -m pip install --quiet --no-deps --no-build-isolation \
	  --editable distributions/hudilake --editable distributions/lakemetastore --editable .
	@$(1)/bin/python -m compileall -q -j 0 pipeline  # here, not in the first command
	@touch $@
endef

$(VENV)/.installed: requirements.lock requirements-build.lock $(PROJECTS)
	$(call install,$(VENV),requirements.lock)

$(VENV)/.usable: requirements-binlake.lock requirements-build.lock $(PROJECTS)
	$(call install,$(VENV),requirements-binlake.lock)

.venv-spark-%/.installed: lines/requirements.lock lines/spark-%.lock requirements-build.lock $(PROJECTS)
	$(call install,.venv-spark-$*,lines/requirements.lock lines/spark-$*.lock)
.PRECIOUS: .venv-spark-%/.installed
