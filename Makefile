# A thin front for Meson: meson.build is the one description of the build.
#
#   make            build/hapax, and the libraries: build/libhapax.a, .so, build/libhapax-client.a, .so
#   make examples   the programs in examples/, into build/examples/
#   make run        installs what is missing, builds, and starts the demo
#   make install    installs program, libraries, headers, man pages and the unit (DESTDIR, PREFIX)
#   make deb        builds Debian packages into build-deb/
#   make image      builds a container image out of them, without a registry, into build-image/
#   make site       builds the documents as a static site with a search, into build-site/html
#   make check      builds what changed, and runs the fast tests: about a minute
#   make format     sets every C file as .clang-format says
#   make test       installs what is missing, builds, and runs every test
#   make test-all   the same, and what takes longer: packages in a system of their own, the image
#   make recipes    installs what the recipes of docs/recipes need, and runs all of them
#   make fuzz       fuzzes each target for FUZZ_SECONDS (default 600)
#   make bench      installs what it compares with, measures, writes bench/results/
#   make bench-quick  the main ratios against nginx, in two minutes; with AGAINST=PROGRAM, of two programs
#   make bench-attack  what honest callers notice of thousands of connections that attack
#   make bench-unknowns  what a backlog of unknown outcomes costs, and how fast it is settled
#   make clean      removes the build folders

BUILD ?= build
FUZZ_SECONDS ?= 600

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD) build.ninja > /dev/null # a folder from before a pull knows no new targets
	meson compile -C $(BUILD) hapax:executable hapax:static_library hapax:shared_library \
		hapax-client:static_library hapax-client:shared_library

$(BUILD)/build.ninja:
	@tools/packages build
	meson setup $(BUILD)

examples: all
	meson compile -C $(BUILD) payments provider pay

# DEMO=--once ends after the story.
run:
	@tools/packages build run
	@$(MAKE) --no-print-directory all
	$(BUILD)/hapax demo $(DEMO)

# The prefix is part of what is built (hapax.pc): it is told before.
install: $(BUILD)/build.ninja
	$(if $(PREFIX),meson configure $(BUILD) '-Dprefix=$(PREFIX)')
	$(MAKE) all
	meson compile -C $(BUILD) manual hapax.service hapax-reconcile.service
	meson install -C $(BUILD) --no-rebuild $(if $(DESTDIR),--destdir "$$(realpath -m '$(DESTDIR)')")

deb:
	@tools/packages build deb
	tools/deb

image: deb
	@tools/packages image
	tools/image

site:
	@tools/packages site
	tools/site

check test:
	@tools/packages build test
	tools/test $(filter check,$@)

test-all: test
	@tools/packages build deb image
	tests/install/packages.sh build-packages || [ $$? = 77 ]
	/usr/bin/python3 -B -m pytest -q -rs -p no:cacheprovider tests/install

recipes:
	@tools/packages build test clients recipes
	HAPAX_RECIPES=all tools/test deploy
	/usr/bin/python3 -B -m pytest -q -rs -p no:cacheprovider tests/e2e/test_client_functions.py tests/e2e/test_python_client.py

format:
	@tools/packages test
	tools/format

fuzz:
	@tools/packages build test
	tools/fuzz $(FUZZ_SECONDS)

# What is measured can be said: BENCH="first replay" SYSTEMS="nginx hapax-sqlite"
# RUNS=5 SECONDS=5; docs/internals/performance.md has all of it.
bench bench-quick bench-unknowns bench-attack: all
	@tools/packages bench
	meson compile -C $(BUILD) bench-tools
	cd bench && BUILD=$(abspath $(BUILD)) /usr/bin/python3 -B -m driver $(patsubst bench%,%,$(subst -,,$@))

clean:
	rm -rf build build-*

.PHONY: all examples run install deb image site check format test test-all recipes fuzz bench bench-quick bench-unknowns bench-attack clean
