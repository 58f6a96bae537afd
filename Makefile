# Everything a person or a machine does with this project. `make run` and `make test` need nothing but Debian's
# python3, python3-venv, make and git.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PORT   ?= 8501
JOBS   ?= 4

# Written once and read by every app, command and test process after the first; an environment may have forbidden it.
export PYTHONDONTWRITEBYTECODE =

.PHONY: run test check lint types warm rewritten unit bench soak lock system clean format

run: $(VENV)/.run
	$(BIN)/python tools/serve.py --warm --port $(PORT)

# The packages of the system and those of Python come from different places, so they are fetched side by side.
test:
	$(MAKE) --jobs=2 --output-sync=target system $(VENV)/.dev
	$(MAKE) check

# What needs one core each stands side by side; the tests then take all of them.
check: $(VENV)/.dev
	$(MAKE) --jobs=2 --output-sync=target lint types warm rewritten
	$(MAKE) unit

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/.dev
	$(BIN)/mypy

# The compiled loops, once for all: every test process that finds none would compile its own at the same time.
warm: $(VENV)/.dev
	$(BIN)/python -c "from horde_policy.cli.warming import warm_all; warm_all()"

# The tests with their assertions taken apart, once for all: every test process that finds none would do it at the same time.
rewritten: $(VENV)/.dev
	$(BIN)/python -m pytest --collect-only -qq >/dev/null

unit: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -q --durations=25 --durations-min=5

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks

soak: system $(VENV)/.dev
	$(BIN)/python -m pytest -q -m soak

system:
	./tools/system-packages

lock: $(VENV)/.dev
	./tools/lock $(BIN)/python

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis output

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: requirements.txt requirements.lock | $(VENV)/bin/python
	@echo "installing, a minute or two"
	$(BIN)/python -m pip install --disable-pip-version-check -q -r requirements.txt -c requirements.lock
	touch $@

$(VENV)/.dev: requirements-dev.txt requirements-postgres.txt requirements-dask.txt requirements.txt requirements.lock | $(VENV)/bin/python
	$(BIN)/python -m pip install --disable-pip-version-check -q -r requirements-dev.txt -c requirements.lock
	touch $@ $(VENV)/.run
