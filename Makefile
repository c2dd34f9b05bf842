# Paths are relative throughout, so a checkout may lie in a folder with spaces in its name.
PYTHON ?= python3
PROFILE ?= quick
VENV = .venv/bin/python
# CLUSTER=tcp://host:8786 for what a Dask cluster shall compute: make results, make book PROFILE=paper
CLUSTER ?=
export DPCGD_CLUSTER ?= $(CLUSTER)

.PHONY: help book results table pairs models look chapter lab check test portable halved mutants golden bench lock clean

book: .venv/installed ## every chapter executed and the book built; CHAPTER=06 one, CHAPTER=06,07 some, PROFILE=paper large
	$(VENV) scripts/build_book.py $(PROFILE) $(CHAPTER)
	$(VENV) scripts/house.py

# About an hour on two cores; goes on where it stopped, and prints what moved.
results: .venv/installed ## the full results behind the figures, anew; CHAPTER=05 those of one
	$(VENV) scripts/results.py $(CHAPTER)

# Some thirteen hours of one core; goes on where it stopped. SYSTEM=table_pc makes what is missing of
# one system, and what other code has made; RUNS=3 the first runs; CHECK=table_pc checks its
# guarantee, as far as runs can; MEMORY=1 takes the peaks of memory.
table: .venv/installed ## the table of chapter 17: what is missing of it; CASE="table_pc child 1 100000 3" one row again
	OMP_NUM_THREADS=1 $(VENV) benchmarks/table.py $(if $(CASE),--case "$(CASE)") \
		$(if $(SYSTEM),--system $(SYSTEM)) $(if $(RUNS),--runs $(RUNS)) \
		$(if $(CHECK),--check $(CHECK)) $(if $(MEMORY),--memory)

# Twenty minutes on one core; SYSTEM, RUNS and CHECK as for make table.
pairs: .venv/installed ## its second table, cause or effect; CASE="histogram sine 1 4000 3" one row again
	OMP_NUM_THREADS=1 $(VENV) benchmarks/pairs.py $(if $(CASE),--case "$(CASE)") \
		$(if $(SYSTEM),--system $(SYSTEM)) $(if $(RUNS),--runs $(RUNS)) $(if $(CHECK),--check $(CHECK))

# Some ninety minutes on two cores; goes on where it stopped.
models: .venv/installed ## what reads releases, trained anew on simulated tables
	$(VENV) scripts/training.py

look: .venv/installed ## pictures of every built page in a browser, wide, on a phone, in the dark and in print, and its faults
	$(VENV) scripts/look.py

chapter: .venv/installed ## a chapter of your own, as a copy: FROM=04 NAME=26_my_question
	$(VENV) scripts/new_chapter.py $(FROM) $(NAME)

# JupyterLab stands beside the locked environment and runs chapters in it. Work in _build/lab is kept.
lab: .venv/lab/installed ## chapters in JupyterLab, to read, change and run; CHAPTER=04 opens one
	$(VENV) scripts/lab.py $(CHAPTER)
	DPCGD_LAB=1 DPCGD_RESULTS="$(CURDIR)/_build/lab/results" .venv/lab/bin/python -m jupyterlab --notebook-dir=. \
		$$(ls _build/lab/$(or $(CHAPTER),01)_*.ipynb | head -1)

.venv/lab/installed: .venv/installed pyproject.toml
	$(VENV) -m venv --clear .venv/lab
	.venv/lab/bin/python -m pip install --quiet $$(sed -nE '/^lab = /,/^\]/s/^ *"(.*)",/\1/p' pyproject.toml)
	$(VENV) -m ipykernel install --prefix .venv/lab --name python3
	@touch $@

check: .venv/installed ## style, types and the fast tests, for every save
	$(VENV) -m ruff format --check .
	$(VENV) -m ruff check .
	$(VENV) -m mypy
	OMP_NUM_THREADS=1 $(VENV) -m pytest -q -n auto --dist worksteal -m "not slow" \
		--ignore tests/test_notebooks.py --ignore tests/test_benchmarks.py

test: .venv/installed ## style, all tests, every chapter
	$(VENV) -m ruff format --check .
	$(VENV) -m ruff check .
	OMP_NUM_THREADS=1 $(VENV) -m pytest -q -n auto --dist worksteal --ignore tests/test_notebooks.py
	OMP_NUM_THREADS=1 $(VENV) -m pytest tests/test_notebooks.py
	$(VENV) scripts/portable.py passed

# With MACHINE, CHAPTER=06 names chapters, without the tests.
portable: .venv/installed ## chapters and tests on other processors, emulated; MACHINE=nehalem one
	$(VENV) scripts/portable.py $(MACHINE) $(CHAPTER)

halved: .venv/installed ## every chapter with half of its noise: something has to notice
	$(VENV) scripts/halved.py $(CHAPTER)

# One bug at a time; then thousands of replays of every system, of which none may find anything.
mutants: .venv/installed ## bugs planted in the package: something has to notice each
	$(VENV) scripts/mutants.py

golden: .venv/installed ## the chapters' results as the new golden values; prints what moved
	$(VENV) scripts/golden.py

# Never part of the tests. Other packages go to .venv/peers, beside the locked environment.
bench: .venv/installed ## timings, beside other packages
	OMP_NUM_THREADS=1 $(VENV) benchmarks/run.py

# The lock alone decides what is installed; a test holds pyproject.toml against it.
.venv/installed: requirements.lock book/tools/pyproject.toml
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'dpcgd needs Python 3.11 or newer; name one with: make PYTHON=python3.11')"
	$(PYTHON) -m venv --clear .venv
	$(VENV) -m pip install --quiet --require-hashes --requirement requirements.lock
	$(VENV) -m pip install --quiet --no-deps --no-build-isolation --editable . --editable book/tools
	@touch $@

# Resolve pyproject.toml anew, for every platform; what still fits keeps its version.
lock: .venv/installed ## requirements.lock resolved anew
	$(VENV) -m pip install --quiet uv==0.13.8
	$(VENV) -m uv pip compile --quiet --universal --generate-hashes --no-emit-index-url \
		--custom-compile-command "make lock" --python-version 3.11 \
		--extra book --extra secure --extra test --output-file requirements.lock pyproject.toml

clean: ## the environment and everything built removed
	rm -rf .venv _build

help: ## this list
	@sed -nE 's/^([a-z_]+):.*## (.*)/\1|\2/p' Makefile | awk -F '|' '{ printf "make %-13s %s\n", $$1, $$2 }'
