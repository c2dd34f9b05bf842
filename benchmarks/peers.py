"""Other people's PC on the same data, in an environment of its own: .venv/peers.

python benchmarks/peers.py causal-learn asia.npz ...

Installed and called by run.py. Chi-squared at level .05, conditioning sets of at most three, the
order-independent variant, one thread. What a package builds of its data is timed, loading is not.
"""

import importlib.metadata
import json
import os
import statistics
import subprocess
import sys
import time
import tomllib
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parent.parent
ALPHA, MAX_ORDER = 0.05, 3
SHARED = ("numpy", "pandas", "scipy")
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
PATIENCE = 600
"""Seconds until a package is given up."""


def timed(task, most=5, enough=30.0) -> tuple[float, object]:
    """Median wall time and last answer; a first call counts only if it is too slow to repeat."""
    times = []
    while not times or (len(times) <= most and sum(times) + times[-1] < enough):
        started = time.perf_counter()
        answer = task()
        times.append(time.perf_counter() - started)
    return statistics.median(times[1:] or times), answer


def causal_learn(codes, levels):
    from causallearn.search.ConstraintBased.PC import pc

    data = codes.astype(np.int64, order="C")

    def run():
        graph = pc(data, ALPHA, "chisq", stable=True, max_k=MAX_ORDER, show_progress=False)
        asked = [key for key in graph.test.pvalue_cache if ";" in key]  # the others are notes
        return list(zip(*np.nonzero(graph.G.graph), strict=True)), len(asked)

    return run


def pgmpy(codes, levels):
    from pgmpy.causal_discovery import PC

    data = pd.DataFrame(codes)
    settings = {"variant": "stable", "ci_test": "chi_square", "significance_level": ALPHA}

    def run():
        model = PC(**settings, max_cond_vars=MAX_ORDER, n_jobs=1, show_progress=False).fit(data)
        return list(model.skeleton_.edges), len(model.ci_test_._result_cache)

    return run


def gum_learner(codes, levels):
    """A learner of pyagrum with one thread, and from one of its nodes to the variable's number."""
    import pyagrum as gum

    names = [f"v{i}" for i in range(len(levels))]
    domain = gum.BayesNet()
    for name, k in zip(names, levels, strict=True):
        domain.add(gum.LabelizedVariable(name, name, int(k)))
    learner = gum.BNLearner(pd.DataFrame(codes, columns=names), domain)
    learner.setNumberOfThreads(1)
    return learner, lambda node: names.index(learner.nameFromId(node))


def pyagrum(codes, levels):
    def run():
        learner, number = gum_learner(codes, levels)
        learner.usePC().useChi2Test().setPCAlpha(ALPHA)
        learner.setPCMaxCondSetSize(MAX_ORDER).setPCStable(True)
        graph = learner.learnPDAG()
        return [(number(a), number(b)) for a, b in {*graph.edges(), *graph.arcs()}], None

    return run


PACKAGES = {"causal-learn": causal_learn, "pgmpy": pgmpy, "pyagrum": pyagrum}


def measure(package, file) -> dict:
    """Seconds, number of distinct tests where the package tells, and the skeleton."""
    with np.load(file) as data:
        codes, levels = data["codes"], data["levels"]
    try:
        seconds, (pairs, tests) = timed(PACKAGES[package](codes, levels))
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    skeleton = sorted({(int(min(pair)), int(max(pair))) for pair in pairs})
    return {"seconds": seconds, "tests": tests, "skeleton": skeleton}


def pins() -> dict[str, str]:
    """From a package's name to its pin, of the packages timed and of what they compute with."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    known = {pin.partition("==")[0]: pin for of in ("book", "peers") for pin in extras[of]}
    shared = {name: f"{name}=={importlib.metadata.version(name)}" for name in SHARED}
    return shared | {name: known[name] for name in PACKAGES}


def install(name="peers", wanted=None) -> tuple[Path, dict[str, str]]:
    """The Python of an environment below .venv, and what went wrong with which package."""
    wanted = wanted or pins()
    folder = ROOT / ".venv" / name
    python, stamp = folder / "bin" / "python", folder / "installed"
    if stamp.exists() and stamp.read_text() == "\n".join(wanted.values()):
        return python, {}
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    pip = [python, "-m", "pip", "install", "--quiet", "--retries", "1", *map(wanted.get, SHARED)]
    errors = {}
    for name in (name for name in wanted if name not in SHARED):
        done = subprocess.run([*pip, wanted[name]], capture_output=True, text=True)
        errors |= {name: _last_line(done.stderr)} if done.returncode else {}
    if not errors:
        stamp.write_text("\n".join(wanted.values()))
    return python, errors


def _last_line(text) -> str:
    return (text.strip().splitlines() or ["no message"])[-1]


def answers(python, package, files) -> dict[str, dict]:
    """What :func:`measure` says of each file, from a process of the other environment."""
    command, environment = [python, __file__, package, *files], os.environ | ONE_THREAD
    ways = {"capture_output": True, "text": True, "timeout": PATIENCE, "env": environment}
    try:
        done = subprocess.run(command, **ways)
    except subprocess.TimeoutExpired:
        done = subprocess.CompletedProcess(command, 1, "", f"took over {PATIENCE} seconds")
    if done.returncode:
        return {file.stem: {"error": _last_line(done.stderr)} for file in files}
    return json.loads(_last_line(done.stdout))


def main():
    warnings.simplefilter("ignore")
    package, *files = sys.argv[1:]
    importlib.metadata.version(package)  # says in a line that it is missing
    print(json.dumps({Path(file).stem: measure(package, file) for file in files}))


if __name__ == "__main__":
    main()
