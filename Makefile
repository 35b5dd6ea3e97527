# Two commands for a newcomer: `make demo` and `make test`. Each makes .venv where there is none,
# installs what it needs, and needs nothing else but Python 3.11+, a C++20 compiler and make.
# The package is installed as a user would install it (not editable), again whenever it changed.
# For the daily loop, `make check` puts an editable build into the same .venv; the next `make test`
# replaces it.

PYTHON ?= python3
DEMO_OUT ?= demo-out
# Text for `make demo-real`, one document a line; without English, our own texts are taken.
ENGLISH ?= $(wildcard ../shared/data/train/en.txt.zst)
HINDI ?= $(wildcard ../shared/data/train/hi.txt.zst)
# Tests that share what is costly to load go to one worker: a module, or a group that has a name.
PYTEST_FLAGS ?= -n 2 --dist loadgroup
MINUTES ?= 10
SEED ?= 0
# Of the tests marked `nightly`: none, all, or a share of them such as 3/8 (tests/nightly.py).
NIGHTLY ?=
SANITIZER ?= address

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
SOURCES := $(shell find src cpp -type f ! -name '*.pyc' ! -name '*.so') \
           pyproject.toml constraints.txt README.md LICENSE
CORE := $(shell find cpp -type f) pyproject.toml constraints.txt
CPP := $(shell find cpp -name '*.h' -o -name '*.cpp' | grep -v tables)

# Tests must not reach for the network, and two workers must not fight for two cores. Files of
# tests are compiled once, not by every worker in every run: half the time of collecting them.
TEST_ENV := HF_HUB_OFFLINE=1 HF_DATASETS_OFFLINE=1 OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false \
            PYTHONDONTWRITEBYTECODE= VOCABSHIFT_NIGHTLY=$(NIGHTLY)

.PHONY: help demo demo-real recipes test golden site check fuzz fuzz-core sanitize coverage lint format bench clean

help:
	@echo "make demo    walk text -> tokenizer -> model -> measured difference (4 minutes at most)"
	@echo "make demo-real  trim a real model, SmolLM2, for English; extend it to Hindi (HINDI=FILE)"
	@echo "make recipes make the papers' tables anew at the size of the READMEs (DATA; an hour)"
	@echo "make test    run the tests (NIGHTLY=all: the long sweeps too)"
	@echo "make golden  write the golden files of names, flags, JSON and files anew (docs/stability.md)"
	@echo "make site    build the documentation as a site, in build/site/html; check its links"
	@echo "make fuzz    drawn tests with examples that nobody has seen, for MINUTES=$(MINUTES)"
	@echo "make fuzz-core  the core on any bytes, by libFuzzer with sanitizers, for MINUTES in all"
	@echo "make sanitize  run all tests with a sanitized core (SANITIZER=address or thread)"
	@echo "make coverage  which lines and branches the tests reach, of src and of the core"
	@echo "make check   editable build, lint, the quick tests of what changed since main"
	@echo "make lint    ruff, mypy, clang-format: report only"
	@echo "make format  ruff and clang-format: rewrite"
	@echo "make bench   the five figures of the README, measured here (a few minutes)"
	@echo "make clean   remove .venv, build folders, caches and $(DEMO_OUT)"

demo: $(VENV)/.demo
	$(BIN)/vocabshift demo --force -o $(DEMO_OUT)

demo-real: $(VENV)/.demo-real
	PYTHON=$(BIN)/python recipes/smollm2/get.sh
	$(BIN)/python recipes/smollm2/demo.py runs/smollm2/model -o runs/demo-real \
	  $(if $(ENGLISH),--english $(ENGLISH)) $(if $(HINDI),--hindi $(HINDI))

# First the scripts that keep all cores busy (FULL: 200,000 tokens on all of the text), and those that
# record into the same file as another one (iso, extrinsic); then two at a time those that mostly use
# one. What runs/ holds is kept, so the same command resumes; RECIPES names fewer.
RECIPES ?= $(RECIPES_FULL) $(RECIPES_WIDE) $(RECIPES_NARROW)
RECIPES_FULL := ist/run matra/run vocabshift/run
RECIPES_WIDE := ist/ablate matra/open indic_study/front indic_study/iso indic_study/extrinsic
RECIPES_NARROW := continued_bpe/run indic_study/run glitch/run vendors/run normalization/run vocabshift/parity

recipes: $(VENV)/.dev
	@for name in $(filter-out $(RECIPES_NARROW),$(RECIPES)); do $(timed); done
	@printf '%s\n' $(filter $(RECIPES_NARROW),$(RECIPES)) | THREADS=1 OMP_NUM_THREADS=1 \
	  xargs -P 2 -I{} sh -c 'name={}; $(timed)'

timed = begun=$$(date +%s); PYTHON=$(BIN)/python RECORD=1 recipes/$$name.sh || exit 1; \
        echo "recipes/$$name.sh: $$(($$(date +%s) - begun)) s"

test: $(VENV)/.dev
	$(TEST_ENV) $(BIN)/python -m pytest --import-mode=importlib $(PYTEST_FLAGS)

golden: $(VENV)/.dev
	$(TEST_ENV) VOCABSHIFT_GOLDEN=write $(BIN)/python -m pytest -n 0 tests/golden/test_public.py

site: $(VENV)/.site
	$(BIN)/python tools/site.py  # build/site/html

fuzz: $(VENV)/.dev
	$(TEST_ENV) $(BIN)/python benchmarks/fuzz.py --minutes $(MINUTES)

fuzz-core: $(VENV)/.dev
	$(PIP) install -c constraints.txt cmake ninja
	$(BIN)/cmake -S cpp -B build/fuzz -G Ninja -DVOCABSHIFT_FUZZ=ON -DCMAKE_CXX_COMPILER=clang++ \
	  -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN))/ninja
	$(BIN)/cmake --build build/fuzz
	$(BIN)/python benchmarks/fuzz_core.py build/fuzz --minutes $(MINUTES) --seed $(SEED)

# A copy of the package with a sanitized core comes before the installed one on PYTHONPATH; a test
# checks that it is the one loaded. Leaks are not reported: Python frees much only when it exits. The
# thread sanitizer of GCC 12 fails under address space randomization, hence setarch -R. A shell does
# not start with it, nor a thread in a forked worker: tests of those are left out.
SANITIZED := build/sanitize-$(SANITIZER)
LIBRARIES := $(if $(filter thread,$(SANITIZER)),libtsan.so,libasan.so libubsan.so)
sanitize: $(VENV)/.dev
	$(call package_with_core,$(SANITIZED),-DVOCABSHIFT_SANITIZE=$(SANITIZER) -DCMAKE_BUILD_TYPE=RelWithDebInfo)
	$(TEST_ENV) VOCABSHIFT_SANITIZER=$(SANITIZER) PYTHONPATH=$(abspath $(SANITIZED))/package \
	  ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1 \
	  TSAN_OPTIONS="halt_on_error=1 die_after_fork=0 suppressions=$(abspath tests/tsan_suppressions.txt)" \
	  LD_PRELOAD="$(foreach name,$(LIBRARIES),$$(g++ -print-file-name=$(name)))" \
	  setarch -R $(BIN)/python -m pytest --import-mode=importlib $(PYTEST_FLAGS) \
	  $(if $(filter thread,$(SANITIZER)),-m "not no_tsan")

# Lines and branches that the tests reach, of src and of cpp/core; the reports are in build/coverage.
# clang counts what stands in the source: gcov has branches of each instance of a template, and of
# what the compiler adds for exceptions. A test that fails leaves the reports to be made.
COVERAGE := build/coverage
LLVM_COV = llvm-cov $(1) $(COVERAGE)/_core.*.so -instr-profile=$(COVERAGE)/core.profdata cpp/core
coverage: $(VENV)/.dev
	$(PIP) install -c constraints.txt coverage
	$(call package_with_core,$(COVERAGE),-DVOCABSHIFT_COVERAGE=ON -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_COMPILER=clang++)
	rm -f $(COVERAGE)/data* $(COVERAGE)/*.profraw
	-$(TEST_ENV) PYTHONPATH=$(abspath $(COVERAGE))/package \
	  LLVM_PROFILE_FILE=$(abspath $(COVERAGE))/core-%4m.profraw \
	  $(BIN)/coverage run -m pytest --import-mode=importlib $(PYTEST_FLAGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage html --quiet --directory $(COVERAGE)/python
	$(BIN)/coverage report --skip-covered --sort=miss | tee $(COVERAGE)/python.txt
	llvm-profdata merge $(COVERAGE)/*.profraw -o $(COVERAGE)/core.profdata
	$(call LLVM_COV,show) -format=html -show-branches=count -output-dir=$(COVERAGE)/core
	$(call LLVM_COV,report) -show-region-summary=false | tee $(COVERAGE)/core.txt

# The package in $(1)/package, with a core that is built by these options of cmake.
define package_with_core
$(PIP) install -c constraints.txt cmake ninja 'pybind11>=3.0'
$(BIN)/cmake -S cpp -B $(1) -G Ninja $(2) -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN))/ninja \
  -DPython_EXECUTABLE=$(abspath $(BIN))/python \
  -Dpybind11_DIR="$$($(BIN)/python -m pybind11 --cmakedir)"
$(BIN)/cmake --build $(1)
rm -rf $(1)/package && mkdir $(1)/package
cp -r src/vocabshift $(1)/package
rm -f $(1)/package/vocabshift/_core.*.so && cp $(1)/_core.*.so $(1)/package/vocabshift
endef

check: $(VENV)/.editable
	$(lint)
	$(TEST_ENV) $(BIN)/python tools/check_changed.py -- $(PYTEST_FLAGS)

lint: $(VENV)/.dev
	$(lint)

define lint
$(BIN)/ruff check .
$(BIN)/ruff format --check .
$(BIN)/mypy
$(BIN)/mypy --platform win32 --cache-dir .mypy_cache/win32
$(BIN)/clang-format --dry-run --Werror $(CPP)
endef

format: $(VENV)/.dev
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CPP)

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/bench.py

clean:
	rm -rf $(VENV) build dist $(DEMO_OUT) .pytest_cache .mypy_cache .ruff_cache .hypothesis

# Stamps keyed on every file that is installed or names what is installed. pip builds and replaces
# a package given as a folder each time, and leaves dependencies alone that are there already.
$(VENV)/.demo: $(SOURCES)
	$(call install,hf)

COMMA := ,
$(VENV)/.demo-real: $(SOURCES)
	$(call install,hf$(COMMA)gguf)

$(VENV)/.site: $(SOURCES)
	$(call install,docs)

$(VENV)/.dev: $(SOURCES)
	$(call install,dev)

define install
test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
@echo "installing vocabshift[$(1)] and what it needs into $(VENV) (a few minutes at first)"
$(PIP) install -c constraints.txt '.[$(1)]'
@rm -f $(VENV)/.editable
@touch $@
endef

# Python files are used where they lie, so only the core makes this stamp old. The build folder
# stays, and ninja compiles what changed.
$(VENV)/.editable: $(CORE)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "building vocabshift in place, with what tests need in $(VENV) (a few minutes at first)"
	$(PIP) install -c constraints.txt 'scikit-build-core>=0.11' 'pybind11>=3.0' cmake ninja wheel
	$(PIP) install -c constraints.txt --no-build-isolation -e '.[dev]'
	@rm -f $(VENV)/.demo $(VENV)/.demo-real $(VENV)/.site $(VENV)/.dev
	@touch $@
