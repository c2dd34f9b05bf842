# Paths are relative throughout, so a checkout may lie in a folder with spaces in its name.
PYTHON ?= python3
PROFILE ?= quick
VENV = .venv/bin/python
# CLUSTER=tcp://host:8786 for what a Dask cluster shall compute: make results, make book PROFILE=paper
CLUSTER ?=
export DPCGD_CLUSTER ?= $(CLUSTER)

.PHONY: book results table pairs reader third_reader colliders look chapter check test portable halved mutants golden bench lock clean

# make book CHAPTER=06 executes and renders one; CHAPTER=06,07 some.
book: .venv/installed
	$(VENV) scripts/build_book.py $(PROFILE) $(CHAPTER)
	$(VENV) scripts/house.py

# The full results behind the figures, anew: about an hour on two cores; goes on where it stopped.
# CHAPTER=05 those of one. Prints what moved.
results: .venv/installed
	$(VENV) scripts/results.py $(CHAPTER)

# Every system on every network, the table of chapter 12: some thirteen hours of one core; goes on where it stopped.
# CASE="table_pc child 1 100000 3" runs one row again; SYSTEM=table_pc what is missing of one, and
# what other code has made; RUNS=3 the first runs; CHECK=table_pc its guarantee, as far as runs can;
# MEMORY=1 the peaks of memory.
table: .venv/installed
	OMP_NUM_THREADS=1 $(VENV) benchmarks/table.py $(if $(CASE),--case "$(CASE)") \
		$(if $(SYSTEM),--system $(SYSTEM)) $(if $(RUNS),--runs $(RUNS)) \
		$(if $(CHECK),--check $(CHECK)) $(if $(MEMORY),--memory)

# Every system for cause or effect, chapter 12's second table: twenty minutes on one core.
# CASE="histogram sine 1 4000 3" runs one row again; SYSTEM, RUNS and CHECK as for make table.
pairs: .venv/installed
	OMP_NUM_THREADS=1 $(VENV) benchmarks/pairs.py $(if $(CASE),--case "$(CASE)") \
		$(if $(SYSTEM),--system $(SYSTEM)) $(if $(RUNS),--runs $(RUNS)) $(if $(CHECK),--check $(CHECK))

# The reader of released pairs, trained anew on simulated networks: data/reader.json.
reader: .venv/installed
	$(VENV) scripts/make_reader.py

# What reads releases with triples, trained anew after the reader: data/third_reader.json.
third_reader: .venv/installed
	$(VENV) scripts/make_third_reader.py

# What says which triples are colliders, trained anew after the reader: data/colliders.json.
colliders: .venv/installed
	$(VENV) scripts/make_colliders.py

# Every built page in a browser, wide, on a phone and in the dark: pictures of it, and its faults.
look: .venv/installed
	$(VENV) scripts/look.py

# A chapter of your own, as a copy: make chapter FROM=04 NAME=31_my_question
chapter: .venv/installed
	$(VENV) scripts/new_chapter.py $(FROM) $(NAME)

# Style, types and the fast tests; no chapters. For every save.
check: .venv/installed
	$(VENV) -m ruff format --check .
	$(VENV) -m ruff check .
	$(VENV) -m mypy
	OMP_NUM_THREADS=1 $(VENV) -m pytest -q -m "not slow" \
		--ignore tests/test_notebooks.py --ignore tests/test_benchmarks.py

test: .venv/installed
	$(VENV) -m ruff format --check .
	$(VENV) -m ruff check .
	OMP_NUM_THREADS=1 $(VENV) -m pytest
	$(VENV) scripts/portable.py passed

# Chapters and tests on other processors, emulated here; MACHINE=nehalem names one, and with it
# CHAPTER=06 chapters, without the tests.
portable: .venv/installed
	$(VENV) scripts/portable.py $(MACHINE) $(CHAPTER)

# Every chapter with half of its noise: something has to notice.
halved: .venv/installed
	$(VENV) scripts/halved.py $(CHAPTER)

# Bugs planted in the package, one at a time: something has to notice each. Then thousands of replays
# of every system, of which none may find anything.
mutants: .venv/installed
	$(VENV) scripts/mutants.py

# Run the chapters and take their results as the new golden values; prints what moved.
golden: .venv/installed
	$(VENV) scripts/golden.py

# Timings, never part of the tests. Other packages go to .venv/peers, beside the locked environment.
bench: .venv/installed
	OMP_NUM_THREADS=1 $(VENV) benchmarks/run.py

# The lock alone decides what is installed; a test holds pyproject.toml against it.
.venv/installed: requirements.lock book/tools/pyproject.toml
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'dpcgd needs Python 3.11 or newer; name one with: make PYTHON=python3.11')"
	$(PYTHON) -m venv --clear .venv
	$(VENV) -m pip install --quiet --require-hashes --requirement requirements.lock
	$(VENV) -m pip install --quiet --no-deps --no-build-isolation --editable . --editable book/tools
	@touch $@

# Resolve pyproject.toml anew, for every platform; what still fits keeps its version.
lock: .venv/installed
	$(VENV) -m pip install --quiet uv==0.13.8
	$(VENV) -m uv pip compile --quiet --universal --generate-hashes --no-emit-index-url \
		--custom-compile-command "make lock" --python-version 3.11 \
		--extra book --extra secure --extra test --output-file requirements.lock pyproject.toml

clean:
	rm -rf .venv _build
