# Everything runs from .venv, which is made by the first target that needs it. `make help` lists the targets.

PYTHON ?= python3
WORKERS ?= 3

BIN := .venv/bin
INSTALLED := .venv/.installed

.DEFAULT_GOAL := help
.PHONY: help setup demo docs test browser gpu nightly newest lint format clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(INSTALLED) ## make .venv with the pinned dependencies and the package

demo: $(INSTALLED) ## derive, check and measure the example operator
	$(BIN)/python examples/demo.py

docs: $(INSTALLED) ## build the site into build/site, and run every piece of code on its pages
	$(BIN)/python -m pip install --quiet --no-input --disable-pip-version-check -c constraints.txt -e '.[docs]'
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going -c docs/site -d build/doctrees . build/site
	$(BIN)/pytest --quiet -m 'nightly or not nightly' tests/test_documentation.py
	@echo "The site is build/site/index.html."

test: export PYTHONDONTWRITEBYTECODE =  # the tests start a hundred processes, which would compile every module anew
test: $(INSTALLED) ## run the tests; with SINCE=main only those that changes since main can affect
	$(BIN)/pytest --forks $(WORKERS) $(if $(SINCE),--since $(SINCE))

browser: $(INSTALLED) ## look at the report page in Chromium, which has to be installed with its driver
	$(BIN)/pytest tests/page/test_browser.py

gpu: $(INSTALLED) ## run the tests that need a GPU
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m gpu tests/on_gpu

nightly: $(INSTALLED) ## run the long tests, then all tests in reverse order
	$(BIN)/python -m pip install --quiet --no-input --disable-pip-version-check -c constraints.txt -e '.[wild]'
	$(BIN)/pytest -m nightly --record-sweeps -o hang_limit=0
	$(BIN)/pytest --backwards

newest: ## run the tests on the newest PyTorch, in .venv-newest (gigabytes)
	$(PYTHON) -m venv .venv-newest
	.venv-newest/bin/python -m pip install --quiet --no-input --upgrade torch -e '.[test]'
	.venv-newest/bin/pytest --forks $(WORKERS)

lint: $(INSTALLED) ## check style, types and the architecture
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest --quiet tests/architecture

format: $(INSTALLED) ## format the code and apply safe fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## remove .venv, caches and build products
	rm -rf .venv .venv-newest build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "opwright needs Python 3.11 or newer, and $(PYTHON) is not."; echo "hint: make PYTHON=python3.11"; exit 1; } >&2
	@echo "Installing the package and its pinned dependencies into .venv; this takes minutes the first time."
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --no-input --disable-pip-version-check -c constraints.txt -e '.[test,lint]'
	@touch $@
