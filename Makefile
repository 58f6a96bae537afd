# Everything a person or a machine does with this project. `make run` and `make test` need nothing but Debian's
# python3, python3-venv, make and git.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PORT   ?= 8501
JOBS   ?= 4

.PHONY: run test check lint types unit bench soak lock system clean format screenshots

run: $(VENV)/.run
	$(BIN)/python tools/serve.py --port $(PORT)

test: system $(VENV)/.dev lint types unit

check: lint types unit

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/.dev
	$(BIN)/mypy

unit: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -q

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
