# make install  only install, as for an upgrade
# make run    chat with the bot: installs what it needs, then starts (see README)
# make setup  from a clone to the first answer in Telegram or Slack
# make test   set up, then every check; make check: the same without set-up; make fix: format
# make fuzz   10,000 generated conversations, judged by the rules of every API (minutes; for the night)
# make crash  500 kills with SIGKILL in the midst of everything, and what has to hold then (ten minutes);
#             SEED=… repeats one
# make bench  every measure, with its goal; make soak MINUTES=30: whether a long run with faults grows
SHELL := /bin/bash
PYTHON ?= python3
DATA ?= data
CONFIG ?=
MINUTES ?= 30
VENV := .venv
BIN := $(VENV)/bin

.PHONY: install run setup test check fix lint types layers tests fuzz crash bench soak lock playground clean

install: $(VENV)/run.ok

run: $(VENV)/run.ok
	@$(BIN)/galata run --data "$(DATA)" $(if $(CONFIG),--config "$(CONFIG)")

setup: $(VENV)/run.ok
	@$(BIN)/galata setup --data "$(DATA)" $(if $(CONFIG),--config "$(CONFIG)")

$(VENV)/run.ok: requirements/run.txt pyproject.toml requirements/install.sh
	@PYTHON="$(PYTHON)" VENV="$(VENV)" requirements/install.sh run

$(VENV)/dev.ok: requirements/dev.txt requirements/local.txt pyproject.toml requirements/install.sh
	@PYTHON="$(PYTHON)" VENV="$(VENV)" requirements/install.sh dev

test: $(VENV)/dev.ok
	@$(MAKE) --no-print-directory check

check: lint types layers tests

lint:
	@$(BIN)/ruff format --check --quiet . || { echo "not formatted: make fix"; exit 1; }
	@$(BIN)/ruff check --quiet .

types:
	@$(BIN)/mypy
	@$(BIN)/basedpyright

layers:
	@$(BIN)/lint-imports --cache-dir .cache/import-linter

# What Python has compiled is kept whatever the environment says: many processes read it again. Three
# workers for two cores, since tests wait for servers, disks and timers a third of the time.
tests:
	@PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n 3 --dist worksteal

fuzz: $(VENV)/dev.ok
	@$(BIN)/pytest -n 2 --dist worksteal --hypothesis-profile=fuzz tests/fuzz

crash: $(VENV)/dev.ok
	@$(BIN)/python -m tests.crash.memory_day
	@$(BIN)/python -m tests.crash

fix: $(VENV)/dev.ok
	@$(BIN)/ruff format --quiet .
	@$(BIN)/ruff check --fix --quiet .

bench: $(VENV)/dev.ok
	@$(BIN)/python -m bench

soak: $(VENV)/dev.ok
	@$(BIN)/python -m bench.soak --minutes $(MINUTES)

playground: $(VENV)/dev.ok
	@$(BIN)/python -m tests.servers.playground

lock:
	@requirements/lock.sh

clean:
	@rm -rf $(VENV) .cache
