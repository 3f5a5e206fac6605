# Every target sets up what it needs: Python 3.11 or newer is all that has to be there.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
TORCH ?= 2.13.0
TOPV2 ?= $(or $(TREEPIECE_TOPV2),../shared/topv2)
ARGS ?=

.PHONY: demo test lint docs bench model reproduce clean

demo: $(VENV)/.run
	$(BIN)/python examples/demo.py

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The site, in the folder site: open site/index.html. Figures and the page on the command line are made anew before.
docs: $(VENV)/.dev
	$(BIN)/python -m documentation
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/tokenizer.py

# The model that comes with treepiece, from a training run: make model RUN=runs/topv2 TOPV2=topv2
NOTES := --licence 'TOPv2, CC BY-SA 4.0' --notes recipes/topv2-notes.md --data '$(TOPV2)' --split eval
model: $(VENV)/.dev
	@test -n '$(RUN)' -a -n '$(TOPV2)' || { echo 'say which: make model RUN=DIR TOPV2=DIR' >&2; exit 2; }
	rm -rf build/model
	$(BIN)/treepiece export '$(RUN)' --output build/model/graphs --no-float $(NOTES)
	$(BIN)/treepiece export '$(RUN)' --output build/model/weights --no-float --no-int8 --weights half $(NOTES)
	rm -rf src/treepiece/bundled checkpoints/topv2-minilm && mkdir -p checkpoints
	mv build/model/graphs src/treepiece/bundled
	mv build/model/weights checkpoints/topv2-minilm

# The paper's tables and figures into docs/results.md. Hours to days: Ctrl-C at any time, the same command goes on.
reproduce: $(VENV)/.reproduce
	$(BIN)/python -m reproduction --topv2 "$(TOPV2)" $(ARGS)

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

$(VENV)/.bench: $(VENV)/.run
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	touch $@

$(VENV)/.reproduce: $(VENV)/.run
	$(BIN)/python -m pip install --quiet torch==$(TORCH)
	$(BIN)/python -m pip install --quiet --editable '.[bench,train]'
	touch $@
