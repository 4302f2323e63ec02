# Every target sets up what it needs in .venv, once; after that it works without a network.
.DEFAULT_GOAL := help
.NOTPARALLEL:
SHELL := /bin/sh

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
# A set-up is good for this folder and these dependencies, not for a moved copy or an older list.
KEY := $(shell { pwd; cat pyproject.toml; } | cksum | tr ' ' '-')
READY_RUN := $(VENV)/.ready-run-$(KEY)
READY_DEV := $(VENV)/.ready-dev-$(KEY)
TORCH_VENV := .venv-torch
READY_RECORDER := $(TORCH_VENV)/.ready-recorder-$(KEY)
# Where `make recorder` has been run there is a PyTorch to measure with.
WITH_TORCH = $(if $(wildcard $(READY_RECORDER)),$(TORCH_VENV)/bin/python,$(PY))
FUZZ_VENV := .venv-fuzz
READY_FUZZ := $(FUZZ_VENV)/.ready-fuzz-$(KEY)
READY_SAMPLES := $(VENV)/.ready-samples-$(KEY)

SAMPLE := sample_logs/nan_in_one_layer.csv

.PHONY: help demo test lint recorder accuracy bench samples golden fuzz

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1\t\2/p' Makefile | expand -t 16

demo: $(READY_RUN) ## diagnose a real sample log, then show its timeline
	$(VENV)/bin/stabdiag analyze $(SAMPLE)
	$(VENV)/bin/stabdiag timeline $(SAMPLE)

test: $(READY_DEV) ## run the tests
	$(PY) -m pytest $(ARGS)

lint: $(READY_DEV) ## formatting, ruff, strict types, import contracts
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m mypy
	$(VENV)/bin/lint-imports --no-logo

recorder: $(READY_RECORDER) ## test the recorder with PyTorch, in an environment of its own
	$(TORCH_VENV)/bin/python -m pytest tests/recorder $(ARGS)

fuzz: $(READY_FUZZ) ## fuzz the readers, led by coverage (ARGS="--seconds 60 csv")
	$(FUZZ_VENV)/bin/python -m tests.fuzz $(ARGS)

accuracy: $(READY_DEV) ## score the diagnosis on labelled runs and incidents (ARGS="--show-wrong")
	$(PY) -m tests.accuracy $(ARGS)

bench: $(READY_DEV) ## time and memory beside the plain library read (ARGS="--quick")
	$(PY) -m tests.bench $(ARGS)
	$(PY) -m tests.bench.growth
	$(PY) -m tests.bench.fleet
	$(WITH_TORCH) -m tests.bench.recorder

samples: $(READY_SAMPLES) ## record the sample logs again (trains small models; needs PyTorch)
	$(PY) sample_logs/record/make_samples.py $(ARGS)

golden: $(READY_DEV) ## write the expected reports again; review the diff like code
	$(PY) -m pytest tests/golden --golden $(ARGS)

$(READY_RUN): ; @sh .ci/setup "$(PYTHON)" $(VENV) $(KEY) run
$(READY_DEV): ; @sh .ci/setup "$(PYTHON)" $(VENV) $(KEY) dev
$(READY_RECORDER): ; @sh .ci/setup "$(PYTHON)" $(TORCH_VENV) $(KEY) recorder
$(READY_FUZZ): ; @sh .ci/setup "$(PYTHON)" $(FUZZ_VENV) $(KEY) fuzz
$(READY_SAMPLES): ; @sh .ci/setup "$(PYTHON)" $(VENV) $(KEY) samples
