# Each target works from a fresh clone with nothing but make and Python >= 3.11: it makes its own virtual environment,
# installs what it needs, and is quick when run again. Another Python: make test PYTHON=python3.12

PYTHON ?= python3
export MAKECMDGOALS
# A shell that forbids bytecode makes each process of a run compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

TAG := $(shell $(PYTHON) -c 'import sys; print("py%d%d" % sys.version_info[:2])' 2>/dev/null)
VENV := .venv/$(TAG)
RUN := $(VENV)/bin/python
ARGS ?=

.PHONY: demo test quick faults lint format bench costs results docs clean python

help:
	@echo "make demo    a tour of the five systems on real faces, ending with the path of a report (VARIANT=smoke for a quick look)"
	@echo "make test    the whole test suite (ARGS='-k pca' for a part of it);  make quick  leaves the slow part out"
	@echo "make faults  COUNT=3000 SEED=0 damaged files, killed processes and impossible numbers; ONLY=files:12 repeats one"
	@echo "make lint    style, types and the layering contracts;  make format  applies the style"
	@echo "make bench   timings against peers, written to benchmarks/RESULTS.md"
	@echo "make costs   operations and bytes that XLA counts, against those on paper (seconds, no clock)"
	@echo "make results DATA=FOLDER  every study whose numbers stand in README and docs (hours, goes on where it stopped;"
	@echo "             VARIANT=smoke: minutes, and the numbers stay as they are)"
	@echo "make docs    the documentation, in docs/_build/html"

python:
	@test -n "$(TAG)" || { echo "No Python found under the name '$(PYTHON)'. Install Python 3.11 or newer, or name one:"; \
	  echo "  make $(firstword $(MAKECMDGOALS)) PYTHON=python3.12"; exit 1; }

# $(call install,extra extra): the environment with these extras.
install = @$(PYTHON) tools/bootstrap.py $(VENV) $(1)

VARIANT ?= default
demo: python
	$(call install,run faces)
	@$(RUN) -m experiments.tour --config=configs/tour.py:$(VARIANT) --workdir=runs/tour-$(VARIANT) $(ARGS)

test: python
	$(call install,run faces stream test)
	$(RUN) -m pytest -q -n 2 --dist worksteal $(ARGS)

quick: python
	$(call install,run faces stream test)
	$(RUN) -m pytest -q -n 2 --dist worksteal -m "not slow" $(ARGS)

# COUNT faults of files, processes and numbers, or ONLY=files:1234: the one of a line that said so.
COUNT ?= 3000
SEED ?= 0
ONLY ?=
faults: python
	$(call install,run faces stream test)
	$(RUN) -m tests.faults --count=$(COUNT) --seed=$(SEED) --only=$(ONLY) $(ARGS)

lint: python
	$(call install,run lint)
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy
	$(VENV)/bin/lint-imports
	$(RUN) tools/house.py

format: python
	$(call install,run lint)
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

bench: python
	$(call install,run faces bench)
	$(RUN) -m benchmarks.run $(ARGS)

costs: python
	$(call install,run faces)
	$(RUN) -m benchmarks.costs

# DATA holds the sets that are not ours to pass on; ONLY=NAME,NAME makes these runs alone.
DATA ?=
results: python
	$(call install,run faces)
	$(RUN) tools/results.py --data="$(DATA)" --variant="$(filter smoke,$(VARIANT))" --only="$(ONLY)" $(ARGS)

docs: python
	$(call install,run faces docs)
	$(RUN) -m sphinx -W --keep-going -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

clean:
	rm -rf .venv docs/_build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
