# Each target installs what it needs; only Python 3.11 or newer has to be there.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
TORCH ?= 2.13.0
TOPV2 ?= $(or $(TREEPIECE_TOPV2),../shared/topv2)
ARGS ?=
# A file of tests stays in one process, which sets up its models once.
WORKERS ?= -n 2 --dist loadfile

.PHONY: demo check test lint docs build release-check minimum-versions bench model reproduce clean

demo: $(VENV)/.run
	$(BIN)/python examples/demo.py

# The fast tests, for the inner loop.
check: $(VENV)/.dev
	$(BIN)/python -m pytest $(WORKERS) -m 'not slow and not browser and not ray' $(ARGS)

# All of them.
test: $(VENV)/.dev
	$(BIN)/python -m pytest $(WORKERS) $(ARGS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The documentation, in site/index.html, after generating its figures and the command reference. It needs no PyTorch.
docs: $(VENV)/.docs
	$(BIN)/python -m tools.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# The sdist and the wheel, in the folder dist.
build: $(VENV)/.dev
	rm -rf dist build/lib
	$(BIN)/python -m build

# What a release must pass, with one line for each step: lint, build, metadata, the tests against the installed wheel on
# Python 3.11 to 3.13, and with the lowest version of each dependency. The logs are in build/release.
release-check: $(VENV)/.dev
	$(BIN)/python -m tools.release --torch $(TORCH)

# The last of these steps alone.
minimum-versions: $(VENV)/.dev
	$(BIN)/python -m tools.release.minimum_versions --torch $(TORCH)

bench: $(VENV)/.bench
	$(BIN)/python -m experiments tokenizer --topv2 "$(TOPV2)" $(ARGS)

# The model that comes with treepiece, from a training run: make model RUN=runs/topv2 TOPV2=topv2
NOTES := --licence 'TOPv2, CC BY-SA 4.0' --notes recipes/topv2-notes.md --data '$(TOPV2)' --split eval --calibration '$(TOPV2)'
model: $(VENV)/.dev
	@test -n '$(RUN)' -a -n '$(TOPV2)' || { echo 'say which: make model RUN=DIR TOPV2=DIR' >&2; exit 2; }
	rm -rf build/model
	$(BIN)/treepiece export --model '$(RUN)' --output build/model/graphs --no-float $(NOTES)
	$(BIN)/treepiece export --model '$(RUN)' --output build/model/weights --no-float --no-int8 --weights half $(NOTES)
	rm -rf src/treepiece/bundled checkpoints/topv2-minilm && mkdir -p checkpoints
	mv build/model/graphs src/treepiece/bundled
	mv build/model/weights checkpoints/topv2-minilm

# The paper's tables and figures into docs/results.md. Hours to days: stop with Ctrl-C; the same command continues.
reproduce: $(VENV)/.reproduce
	$(BIN)/python -m experiments reproduce --topv2 "$(TOPV2)" $(ARGS)

clean:
	rm -rf $(VENV) build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/.run: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: set PYTHON=")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.dev: $(VENV)/.run
	$(BIN)/python -m pip install --quiet torch==$(TORCH)
	$(BIN)/python -m pip install --quiet --editable '.[dev,bench,train,serve,spacy,docs]'
	touch $@

$(VENV)/.docs: $(VENV)/.run
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	touch $@

$(VENV)/.bench: $(VENV)/.run
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	touch $@

$(VENV)/.reproduce: $(VENV)/.run
	$(BIN)/python -m pip install --quiet torch==$(TORCH)
	$(BIN)/python -m pip install --quiet --editable '.[bench,train]'
	touch $@
