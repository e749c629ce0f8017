# make crawl                              crawl the demo intranet, then search it
# make crawl START=http://wiki/ RESTRICT='https?://[^/]*\.example/.*'     crawl yours
# make crawl WORKERS=4                    with so many processes, which share it through Redis
# make web LARM_DIR=crawl-demo            the web pages of a crawl, running or not
# make dist                               a wheel and an sdist, for pipx and uv
# make deb                                dist/larmspider_VERSION_amd64.deb, for this Debian
# make image                              the container image; ENGINE=podman
# make egg                                for scrapyd: dist/larmspider.egg, dist/requirements.txt
# make test / acceptance / core / check / docs / bench / serve / soak / screenshots

START    ?=
RESTRICT ?=
SEARCH   ?=
FRESH    ?=
LARM_DIR ?= crawl
WORKERS  ?=
ARGS     ?=
# to the recipes as they stand, whatever a shell or make would read into them
override START := $(value START)
override RESTRICT := $(value RESTRICT)
override SEARCH := $(value SEARCH)
export START RESTRICT SEARCH FRESH LARM_DIR WORKERS

VENV := .venv
BIN  := $(VENV)/bin
UV   := $(shell command -v uv 2>/dev/null)
PYTHON ?= python3

.PHONY: crawl dist deb image egg test acceptance core soak check docs bench serve web screenshots clean

# .venv is rebuilt when pyproject.toml changes; with uv where it is installed, else with venv.
# installed: larmspider alone, for a crawl; ready: and the tools of developers, for everything else
$(VENV)/installed: WHAT = .
$(VENV)/ready: WHAT = .[dev]
$(VENV)/installed $(VENV)/ready: pyproject.toml
	@echo "Installing larmspider and what it needs into $(VENV), which takes a minute or two ..."
ifdef UV
	@$(UV) venv --quiet --allow-existing $(VENV)
	@$(UV) pip install --quiet --python $(BIN)/python -e '$(WHAT)'
else
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '$(WHAT)'
endif
	@touch $@ $(VENV)/installed
	@echo "Installed."

# $(VENV)/ready is the newer of the two where both are: it installs more
ifneq ($(wildcard $(VENV)/ready),)
CRAWLS := $(VENV)/ready
else
CRAWLS := $(VENV)/installed
endif
crawl: $(CRAWLS)
	@$(BIN)/python examples/first_crawl.py --start="$$START" --restrict="$$RESTRICT" \
	    --search="$$SEARCH" --dir="$$LARM_DIR" --fresh="$$FRESH" \
	    --workers="$$WORKERS" $(ARGS)

# a wheel and an sdist, checked; the wheel has the user's pages too (larmspider help)
dist: $(VENV)/ready
	@rm -rf build dist/larmspider-*
	@$(BIN)/python -m build --outdir dist .
	@rm -rf build
	@$(BIN)/python -m twine check --strict dist/larmspider-*

# needs debhelper, dpkg-dev and python3-venv of Debian
deb: dist
	@$(BIN)/python deploy/build_deb.py dist/larmspider-*.whl dist

ENGINE ?= docker
image: dist
	$(ENGINE) build --file deploy/Dockerfile --tag larmspider .

# what a scrapyd node runs, and what is to be installed there for it
egg: $(VENV)/ready
	@$(BIN)/python deploy/build_egg.py dist

# make test leaves out what make acceptance runs: kills by the dozen, scrapyd, whole politeness.
# Most tests wait for something: three more at a time than there are processors. Files in the order
# of tests/conftest.py: xdist's own begins with those of many tests, which are short. Hundreds of
# processes begin: what they import is compiled once, whatever the environment says. make core runs
# tests/test_without_plugins.py, where no extra is installed.
# make test ORDER=7: files in a random order, another for each number
ORDER ?= 0
PARALLEL = -n $$(($$(getconf _NPROCESSORS_ONLN) + 3)) --dist loadfile --no-loadscope-reorder \
    --file-order=$(ORDER)
test acceptance: export PYTHONDONTWRITEBYTECODE =
test: $(VENV)/ready
ifeq ($(strip $(ARGS)),)
	$(BIN)/python -m pytest $(PARALLEL) -m "not acceptance" --ignore=tests/test_without_plugins.py
else
	$(BIN)/python -m pytest $(ARGS)
endif

acceptance: $(VENV)/ready
	$(BIN)/python -m pytest $(PARALLEL) -m acceptance

# without any extra, in an environment of its own (.core): by default that the core crawls and
# searches, names what is missing, and finds plugins; make core ARGS=tests/search: other tests of it
CORE_TESTS = tests/test_without_plugins.py tests/test_plugin.py tests/test_moved.py
core: export PYTHONDONTWRITEBYTECODE =
core:
ifdef UV
	@$(UV) venv --quiet --allow-existing .core
	@$(UV) pip install --quiet --python .core/bin/python '.[core-test]'
else
	@$(PYTHON) -m venv .core
	@.core/bin/python -m pip install --quiet --disable-pip-version-check '.[core-test]'
endif
	@rm -rf build  # pip has left it
	.core/bin/python -m pytest -n 2 -m "not acceptance" $(if $(strip $(ARGS)),$(ARGS),$(CORE_TESTS))

# kill -9 again and again, a minute for 40 kills; then three workers and whatever happens to them
# and to Redis, 25 s a crawl, and a Redis that loses its last second, 7 s each time.
# SEED=7 repeats what `--kill-seed 7` was shown for
KILLS ?= 1000
FAULTS ?= 40
ROLLBACKS ?= 20
SEED ?= 0
soak: $(VENV)/ready
	$(BIN)/python -m pytest -s tests/recovery/test_kill.py tests/recovery/test_killed_refresh.py \
	    tests/workers/test_faults.py \
	    --kills=$(KILLS) --faults=$(FAULTS) --rollbacks=$(ROLLBACKS) --kill-seed=$(SEED) $(ARGS)

check: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

# docs/settings.md and docs/stats.md, from settings.py and stats.py; a test fails where they differ
docs: $(VENV)/ready
	$(BIN)/python -m docs.reference

bench: $(VENV)/ready
	$(BIN)/python -m benchmarks.findability
	$(BIN)/python -m benchmarks.extraction
	$(BIN)/python -m benchmarks.documents
	$(BIN)/python -m benchmarks.canonical
	$(BIN)/python -m benchmarks.frontier --urls 10000 100000
	$(BIN)/python -m benchmarks.fetch
	$(BIN)/python -m benchmarks.profile_page
	$(BIN)/python -m benchmarks.growth
	$(BIN)/python -m benchmarks.web pages
	$(BIN)/python -m benchmarks.web crawl
	$(BIN)/python -m benchmarks.redis_costs membership
	$(BIN)/python -m benchmarks.redis_costs takeover
	$(BIN)/python -m benchmarks.workers --output benchmarks
	$(BIN)/python -m benchmarks.peers $(ARGS)

# the demo intranet by itself, on a port of its own choice
serve: $(CRAWLS)
	$(BIN)/python examples/intranet/serve.py

# the web pages of the crawl in LARM_DIR
web: $(VENV)/ready
	$(BIN)/scrapy serve --dir "$$LARM_DIR" $(ARGS)

# docs/screenshots, of the demo crawl; needs Debian's chromium and chromium-driver
screenshots: $(VENV)/ready
	$(BIN)/python examples/screenshots.py $(ARGS)

clean:
	rm -rf $(VENV) .core build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache
