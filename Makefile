# Everything from python3 alone, in .venv: `make demo` on a fresh clone is enough. `make bench` has two environments of
# its own, since the peers want much, and one of them other versions.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP     = $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

# More arguments, for pytest: make test ARGS="-k beam -x", or for the benchmarks: make bench ARGS="gpt-0.8M --rounds 3"
ARGS ?=

BENCH := .venv-bench
JOEY  := .venv-joey

.PHONY: help venv demo test test-slow bench lint clean
.DELETE_ON_ERROR:

help:
	@echo 'make demo       install, train a small translator on the built-in phrasebook, use it'
	@echo 'make venv       install plainformer in $(VENV)'
	@echo 'make test       install what the tests need, run all but the slow ones'
	@echo 'make test-slow  the slow tests'
	@echo 'make bench      install the peers, measure beside them; ARGS says what: make bench ARGS="--help"'
	@echo 'make lint       format, lint and types'
	@echo 'make clean      remove the environments and what the tools left; runs/ and data/ stay'

venv: $(VENV)/.installed

demo: $(VENV)/.installed
	$(BIN)/plainformer demo

# All tests take as many processes as there are cores (tests/conftest.py), some tests one, unless ARGS has -n. Hundreds
# of commands are started: none compiles what Python can keep, whatever the shell says.
test test-slow: export PYTHONDONTWRITEBYTECODE =
test: $(VENV)/.installed-test
	$(BIN)/pytest -m 'not slow' $(if $(ARGS),$(ARGS),-n auto --dist worksteal)

# pytest ends with 5 where no test is chosen, which is no failure here.
test-slow: $(VENV)/.installed-test
	$(BIN)/pytest -m slow $(ARGS) || test $$? -eq 5

bench: $(BENCH)/.installed $(JOEY)/.installed
	$(BENCH)/bin/python -m benchmarks --joey $(JOEY)/bin/python $(ARGS)

lint: $(VENV)/.installed-test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright

# The stamps are younger than what they were made from, so that a second run starts at once. They are written last: a
# step that broke off is done again.
$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit("plainformer needs Python 3.11 or newer; name one: make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/.made
	@echo 'installing plainformer in $(VENV)'
	$(PIP) --editable .
	@touch $@

$(VENV)/.installed-test: pyproject.toml constraints.txt | $(VENV)/.made
	@echo 'installing plainformer and what its tests need in $(VENV)'
	$(PIP) --editable '.[test]'
	@touch $(VENV)/.installed $@

$(BENCH)/.installed: pyproject.toml constraints.txt | $(VENV)/.made
	@echo 'installing plainformer and the peers in $(BENCH)'
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
		--editable '.[test]' transformers ctranslate2 x-transformers
	@touch $@

# Joey NMT wants an older protobuf than we have, and imports one package more than it asks for. Its PyTorch is ours.
$(JOEY)/.installed: pyproject.toml | $(VENV)/.made
	@echo 'installing Joey NMT in $(JOEY)'
	$(PYTHON) -m venv $(JOEY)
	$(JOEY)/bin/python -m pip install --quiet --disable-pip-version-check joeynmt==2.3.0 sentencepiece==0.2.0 \
		importlib_metadata "$$(grep -o 'torch==[0-9.]*' pyproject.toml)"
	@touch $@

clean:
	rm -rf $(VENV) $(BENCH) $(JOEY) build dist .pytest_cache .ruff_cache .hypothesis
	find src tests -type d \( -name __pycache__ -o -name .ruff_cache -o -name .pytest_cache \) -prune -exec rm -rf {} +
