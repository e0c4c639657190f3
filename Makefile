# What a person runs. Everything is idempotent, needs no terminal, and keeps all it makes inside this folder.
PYTHON ?= python3
STACK ?= dev
PYTEST_ARGS ?=
LOCK_ARGS ?=
.DEFAULT_GOAL := help
.PHONY: help setup up down test lint bench env lock official
MAKEFLAGS += --no-print-directory

# Empty in this file's own folder; else, as in `make -f ../Makefile up`, the same goals are made there.
HERE := $(patsubst %Makefile,%,$(lastword $(MAKEFILE_LIST)))
ifneq ($(HERE),)
.PHONY: $(or $(MAKECMDGOALS),help)
$(or $(MAKECMDGOALS),help):
	@$(MAKE) -C '$(HERE)' $@
else

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile | expand -t 16

setup: ## everything the other commands need, into .venv, .tools and .models
	@$(PYTHON) -m tools.setup

up: ## deploy the dev stack: a real model on this machine, its URL, one answer, its speed
	@$(PYTHON) -m tools.setup --quiet --stack '$(STACK)'
	@.venv/bin/python -m tools.up --stack '$(STACK)'

down: ## destroy the dev stack, leaving nothing running (STACK=… for another, as above)
	@$(PYTHON) -m tools.setup --quiet --stack '$(STACK)'
	@.venv/bin/python -m tools.down --stack '$(STACK)'

test: ## the whole suite, with coverage (PYTEST_ARGS=… for a part of it)
	@$(PYTHON) -m tools.setup
	@.venv/bin/python -m tools.with_env .venv/bin/python -m tools.test $(PYTEST_ARGS)

lint: ## ruff and mypy
	@$(PYTHON) -m tools.setup --quiet
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy

bench: ## the figures of this project, as ratios within one run
	@$(PYTHON) -m tools.setup --quiet
	@.venv/bin/python -m tools.with_env .venv/bin/python -m tools.bench
	@.venv/bin/python -m tools.with_env .venv/bin/python -m sluicegate.recipes.bench
	@.venv/bin/python -m tools.with_env .venv/bin/python -m sluicegate.race.bench

env: ## for `eval "$(make -s env)"`: tools on PATH, OPENAI_BASE_URL, OPENAI_API_KEY
	@$(PYTHON) -m tools.setup --quiet --stack '$(STACK)' >&2
	@.venv/bin/python -m tools.exports --stack '$(STACK)'

lock: ## compile requirements/*.txt anew (LOCK_ARGS=--upgrade for newer versions)
	@$(PYTHON) -m tools.setup --quiet
	@.venv/bin/python -m tools.lock $(LOCK_ARGS)

official: ## try Pulumi's own downloads again, in place of the built CLI and the stand-ins
	@$(PYTHON) -m tools.setup --retry-downloads

endif
