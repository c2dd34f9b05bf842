# Paths are relative throughout, so a checkout may lie in a folder with spaces in its name.
PYTHON ?= python3
PROFILE ?= quick
VENV = .venv/bin/python

.PHONY: book test golden bench lock clean

book: .venv/installed
	$(VENV) scripts/build_book.py $(PROFILE)

test: .venv/installed
	$(VENV) -m ruff format --check .
	$(VENV) -m ruff check .
	$(VENV) -m pytest

# Run the chapters and take their results as the new golden values; prints what moved.
golden: .venv/installed
	$(VENV) scripts/golden.py

# Timings, never part of the tests. Other packages go to .venv/peers, beside the locked environment.
bench: .venv/installed
	OMP_NUM_THREADS=1 $(VENV) benchmarks/run.py

.venv/installed: requirements.lock pyproject.toml
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'dpcgd needs Python 3.11 or newer; name one with: make PYTHON=python3.11')"
	$(PYTHON) -m venv --clear .venv
	$(VENV) -m pip install --quiet --require-hashes --requirement requirements.lock
	$(VENV) -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

# Resolve the pins of pyproject.toml anew, for every platform.
lock: .venv/installed
	$(VENV) -m pip install --quiet uv==0.13.8
	$(VENV) -m uv pip compile --quiet --universal --generate-hashes --no-emit-index-url \
		--custom-compile-command "make lock" --python-version 3.11 \
		--extra book --extra secure --extra test --output-file requirements.lock pyproject.toml

clean:
	rm -rf .venv _build
