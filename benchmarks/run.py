"""Time the package, other packages and the paper's numbers: one command, one table, one file.

python benchmarks/run.py

Results go to _build/results/benchmark.json and, if every package answered, to results.json here,
which the book shows. The other packages run in .venv/peers (peers.py). Takes about ten minutes.
"""

import functools
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
from dpcgd_book.data.mixed_networks import random_sem
from dpcgd_book.results.record import record, results_folder
from dpcgd_book.systems import as_published

import dpcgd
from benchmarks import peers
from benchmarks.peers import timed
from dpcgd.constraint.laplace_pc import PlainOracle
from dpcgd.constraint.priv_pc import SieveOracle, share_of_the_rest
from dpcgd.datasets.contingency_tables import Tables
from dpcgd.graphs.pc_search import search
from dpcgd.privacy.filters import Filter
from dpcgd.privacy.noise import SeededNoise
from dpcgd.statistics.categorical_statistics import ChiSquared
from dpcgd.statistics.rank_statistics import KendallP, KendallZ

SAME_TEST = "PC, chi squared"
"""Ours at the test and order limit of the other packages."""

PAPER = {
    "EM-PC": (176.04, 64.62, 531.80, 68.13, 4858.42, 25140.67, 10601.33),
    "SVT-PC": (3.38, 2.94, 10.06, 1.21, 4.29, 32.85, 71.23),
    "Priv-PC": (6.62, 6.09, 16.19, 2.13, 16.65, 85.55, 143.01),
    "Priv-PC, all records": (11.01, 10.83, 19.40, 5.12, 72.98, 191.31, 315.32),
}
"""Seconds in the order of NETWORKS: Wang, Pang and Song (2020), table 2, on their machine."""

RELEASE = "release people.csv schema.json --epsilon 1 --budget 9 --account a.json --report r.html"
"""The one command from CSV to report, but for the name of the release."""
READ = r"""
import json, re, time, dpcgd
started = time.process_time()
dpcgd.read_csv("many.csv", json.load(open("schema.json")))
most = re.search(r"VmHWM:\s*(\d+)", open("/proc/self/status").read())[1]
print(time.process_time() - started, int(most) / 1024)
"""
"""Prints processor seconds and the peak of memory, on Linux."""

SIZES = (10**4, 10**5, 10**6, 10**7)
DIMENSIONS = (10, 20, 50, 100)
LONGEST = 60.0
"""No n is tried at which a run would take more seconds than this."""


def doors() -> dict[str, float]:
    """Seconds from a CSV file to a release, its report and its effects, first and then again.

    The first run compiles anew. Then seconds and megabytes for reading 1.4 million records.
    """
    with tempfile.TemporaryDirectory() as folder:
        for name, n in (("people", 100_000), ("many", 1_400_000)):
            data = dpcgd.load("survey", n=n, rng=np.random.default_rng(n))
            columns = zip(data.codes.T, data.levels.items(), strict=True)
            frame = {v: pd.Categorical.from_codes(codes, own) for codes, (v, own) in columns}
            pd.DataFrame(frame).to_csv(f"{folder}/{name}.csv", index=False)
        Path(folder, "schema.json").write_text(json.dumps(data.rules))
        run = [sys.executable, "-m", "dpcgd.tables.command_line", *RELEASE.split(), "--out"]
        settings = {"cwd": folder, "check": True, "stdout": subprocess.DEVNULL}
        settings["env"] = os.environ | {"NUMBA_CACHE_DIR": folder}
        found = {}
        for name in ("first", "again"):
            started = time.perf_counter()
            subprocess.run([*run, f"{name}.json"], **settings)
            found[name] = time.perf_counter() - started
        printed = subprocess.check_output([sys.executable, "-c", READ], cwd=folder, text=True)
    return found | dict(zip(("read", "megabytes"), map(float, printed.split()), strict=True))


def runs_of_ours() -> dict:
    """From a system's name to a run of it on a data set."""

    def seeded(system, **settings):
        def run(data, **more):
            as_published._flips.cache_clear()  # nothing is left in memory by the run before
            return system(data, **settings, **more, rng=np.random.default_rng(0))

        return run

    papers = {"SVT-PC": "svt_pc", "Priv-PC": "priv_pc", "EM-PC": "em_pc", "CURATE": "curate_pc"}
    private = {
        "Laplace-PC": dpcgd.laplace_pc,
        "Gram NOTEARS": dpcgd.gram_notears,
        "Released tables": dpcgd.table_pc,
        **{k: getattr(dpcgd, name) for k, name in papers.items()},
    }
    published = {k: getattr(as_published, f"published_{name}") for k, name in papers.items()}
    claims = {"epsilon": 1.0, "delta": 1e-3, "allow_delta": True}
    same = ChiSquared(peers.ALPHA)
    return {
        "PC": dpcgd.pc,
        SAME_TEST: functools.partial(dpcgd.pc, statistic=same, max_order=peers.MAX_ORDER),
        "NOTEARS": dpcgd.notears,
        **{k: seeded(system, epsilon=1.0) for k, system in private.items()},
        **{f"{k}, published": seeded(system, **claims) for k, system in published.items()},
    }


def systems(samples) -> dict[str, dict]:
    """Seconds of each system on each network, and the release."""
    found = {}
    for system, run in runs_of_ours().items():
        print(f"timing {system}", flush=True)
        found[system] = {k: timed(functools.partial(run, data)) for k, data in samples.items()}
    return found


def others(samples, ours) -> tuple[dict, dict[str, str]]:
    """The other packages on the same data, and what could not be installed."""
    python, errors = peers.install()
    measured = {}
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{name}.npz" for name in samples]
        for file, data in zip(files, samples.values(), strict=True):
            np.savez(file, codes=data.codes, levels=data.cardinalities)
        for package in (name for name in peers.PACKAGES if name not in errors):
            print(f"timing {package}", flush=True)
            answers = peers.answers(python, package, files).items()
            measured[package] = {k: scored(a, samples[k], ours[k].graph) for k, a in answers}
    return measured, errors


def scored(answer, data, ours) -> dict:
    """A package's answer with its skeleton's F1 and the number of pairs where ours differs."""
    if "error" in answer:
        return answer
    arcs = np.zeros((data.d, data.d), bool)
    for a, b in answer.pop("skeleton"):
        arcs[a, b] = arcs[b, a] = True
    graph = dpcgd.CPDAG(data.variables, arcs)
    differing = (arcs != (ours.arcs | ours.arcs.T)).sum() // 2
    return answer | {"f1": graph.skeleton_f1(data.truth), "pairs_unlike_ours": int(differing)}


def tests_of(release) -> int:
    return release.answers.tests if release.answers else 0


def seconds_of(answers) -> dict[str, float]:
    return {name: answer.get("seconds") for name, answer in answers.items()}


def ratios(times, measured) -> dict[str, float]:
    """How many times longer the fastest package takes than ours, at the same test and limit."""
    theirs = pd.DataFrame({package: seconds_of(row) for package, row in measured.items()})
    fastest = theirs.min(axis=1).dropna()
    return {name: seconds / times[SAME_TEST][name] for name, seconds in fastest.items()}


def random_network(d, rng) -> dpcgd.Network:
    """Up to two parents a variable, two or three levels, rows from strong to weak dependence."""
    names = [f"v{i}" for i in range(d)]
    levels = {name: tuple("abc"[: rng.integers(2, 4)]) for name in names}
    order, parents, tables = rng.permutation(names), {}, {}
    for i, name in enumerate(order):
        some = rng.choice(order[:i], rng.integers(0, min(i, 2) + 1), replace=False).tolist()
        shape = [len(levels[parent]) for parent in some]
        spread = rng.choice([1, 4, 12]) if some else 2
        parents[name] = tuple(some)
        tables[name] = rng.dirichlet(spread * np.ones(len(levels[name])), size=shape or None)
    return dpcgd.Network("random", levels, parents, tables)


def plain_search(tables, names):
    tables.forget()  # every table is counted in the run that is timed
    oracle = PlainOracle(tables, KendallP())
    return search(oracle, names, grading=oracle)


def sieve_search(tables, names):
    """Priv-PC at (1, 1e-6) on tables that are built."""
    tables.forget()
    account, noise = Filter(dpcgd.Budget(1.0, 1e-6)), SeededNoise(np.random.default_rng(0))
    price = share_of_the_rest(account, math.comb(len(names), 2))
    return search(SieveOracle(tables, KendallZ(), price, 1.0, 0.0, 1.0, account, noise), names)


def growth_with_n(network) -> dict[int, dict[str, float]]:
    """Seconds to build tables, and of a search once they are built."""
    found = {}
    for n in SIZES:
        data = dpcgd.load(network, n=n, rng=np.random.default_rng(0))
        started = time.perf_counter()
        tables, names = Tables(data), data.variables
        found[n] = {"tables": time.perf_counter() - started}
        del data
        for system, run in (("PC", plain_search), ("Priv-PC", sieve_search)):
            found[n][system], _ = timed(functools.partial(run, tables, names), most=25, enough=10)
        if 10 * max(found[n].values()) > LONGEST:
            break
    return found


def growth_with_d() -> dict[int, dict[str, dict[str, float]]]:
    """Seconds and tests on random networks, n = 100,000, order <= 2."""
    runs, rng, found = runs_of_ours(), np.random.default_rng(0), {}
    for d in DIMENSIONS:
        data = random_network(d, rng).sample(100_000, rng=rng)
        found[d] = {}
        for system in ("PC", "Priv-PC", "EM-PC"):
            seconds, release = timed(functools.partial(runs[system], data, max_order=2), enough=10)
            found[d][system] = {"seconds": seconds, "tests": release.answers.tests}
    return found


def search_over_counting(data) -> float:
    """PC's search on built tables, over counting its tables, all known beforehand."""
    tables, names = Tables(data), data.variables
    with patch.object(tables, "count_all", wraps=tables.count_all) as counting:
        plain_search(tables, names)
    asked = [call.args[0] for call in counting.call_args_list]
    widths = sorted({tests.shape[1] for tests in asked})
    batches = [np.concatenate([t for t in asked if t.shape[1] == width]) for width in widths]

    def count():
        tables.forget()
        for tests in batches:
            tables.count_all(tests)

    return timed(lambda: plain_search(tables, names), most=25)[0] / timed(count, most=25)[0]


def notears_seconds() -> float:
    """NOTEARS on 20 variables with 40 arcs, n = 100,000."""
    rng = np.random.default_rng(0)
    data = random_sem(20, 40, rng=rng).sample(100_000, rng=rng)
    return timed(lambda: dpcgd.notears(data, standardized=False), enough=10)[0]


def goals(times, ratio, growth, by_d, over_counting, linear, door) -> dict[str, dict]:
    """What was aimed at and what came out; nothing where it could not be measured."""
    alarm, widest = growth["alarm"], by_d[max(by_d)]
    large, small = growth["asia"][10**7], growth["asia"][10**5]
    slower = max(large[system] / small[system] for system in ("PC", "Priv-PC"))
    ten_times = alarm[10**7]["PC"] / alarm[10**6]["PC"] if 10**7 in alarm else math.inf
    em_over_pc = widest["EM-PC"]["seconds"] / widest["PC"]["seconds"]
    aims = [
        ("Priv-PC on alarm, seconds", "at most", 0.081, times["Priv-PC"]["alarm"]),
        ("EM-PC on child, seconds", "at most", 10, times["EM-PC"]["child"]),
        ("NOTEARS on 20 variables, seconds", "at most", 5, linear),
        ("Released tables on alarm, seconds", "at most", 0.3, times["Released tables"]["alarm"]),
        ("PC on alarm, n = 10^7 over n = 10^6", "at most", 12, ten_times),
        ("EM-PC over PC at d = 100", "at most", 5, em_over_pc),
        ("PC's search on alarm over its counting", "at most", 3, over_counting),
        ("search on asia, n = 10^7 over n = 10^5", "at most", 2, slower),
        ("one command from CSV to report, first, seconds", "at most", 10, door["first"]),
        ("the same again, seconds", "at most", 3, door["again"]),
        ("1.4 million records of CSV, processor seconds", "at most", 1.2, door["read"]),
        ("the same, megabytes at the peak", "at most", 200, door["megabytes"]),
    ]
    title = "PC on {}, times faster than the fastest package"
    aims += [(title.format(k), "at least", 50, ratio.get(k)) for k in ("alarm", "child")]
    return {name: goal(*aim) for name, *aim in aims}


def goal(side: str, limit: float, value: float | None) -> dict:
    """What was aimed at and what came out, and whether that is on the right side."""
    met = value and (value >= limit if side == "at least" else value <= limit)
    return {"goal": f"{side} {limit}", "measured": value, "met": met}


def report(results, uninstalled) -> bool:
    """Print seconds and goals; whether every package answered."""
    theirs = {package: seconds_of(answers) for package, answers in results["peers"].items()}
    paper = {f"{system} (paper)": row for system, row in results["paper_seconds"].items()}
    table = pd.DataFrame(results["seconds"] | theirs | paper).T.astype(float)
    print(table.to_string(float_format="{:.4g}".format, na_rep="-"))
    print(pd.DataFrame(results["goals"]).T.to_string())
    for package, answers in results["peers"].items():
        errors = {name: a["error"] for name, a in answers.items() if "error" in a}
        uninstalled |= {f"{package} on {name}": error for name, error in errors.items()}
    print(*(f"no answer of {what}: {why}" for what, why in uninstalled.items()), sep="\n")
    return not uninstalled


def main():
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    samples = {name: dpcgd.load(name, rng=rng) for name in dpcgd.NETWORKS}
    runs = systems(samples)
    times = {system: {k: run[0] for k, run in row.items()} for system, row in runs.items()}
    releases = {system: {k: run[1] for k, run in row.items()} for system, row in runs.items()}
    measured, uninstalled = others(samples, releases[SAME_TEST])
    ratio = ratios(times, measured)
    growth = {network: growth_with_n(network) for network in ("asia", "alarm")}
    by_d, over_counting = growth_with_d(), search_over_counting(samples["alarm"])
    door = doors()
    python = f"{platform.python_implementation()} {sys.version_info.major}.{sys.version_info.minor}"
    results = {
        "machine": f"{os.cpu_count()} cores, {platform.system()}, {python}",
        "seconds": times,
        "tests": {s: {k: tests_of(run) for k, run in row.items()} for s, row in releases.items()},
        "ratio_to_fastest_peer": ratio,
        "peers": measured,
        "paper_seconds": {k: dict(zip(samples, row, strict=True)) for k, row in PAPER.items()},
        "growth_n": growth,
        "growth_d": by_d,
        "goals": goals(times, ratio, growth, by_d, over_counting, notears_seconds(), door),
        "doors": door,
    }
    complete, file = report(results, uninstalled), results_folder() / "benchmark.json"
    file.unlink(missing_ok=True)
    text = json.dumps(results, default=float)
    record("benchmark", **json.loads(text, parse_float=lambda x: float(f"{float(x):.4g}")))
    if complete:
        (Path(__file__).parent / "results.json").write_text(file.read_text())


if __name__ == "__main__":
    main()
