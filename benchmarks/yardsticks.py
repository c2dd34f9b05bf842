"""What a practitioner would use instead, scored on the records of the chapters.

.venv/bin/python benchmarks/yardsticks.py          # all cases that are not on file
.venv/bin/python benchmarks/yardsticks.py MST 600  # those of one system, for at most 600 seconds

- **Without privacy** (epsilon is infinite): our PC and causal-learn's, chi-squared at .01, sets of
  at most three, ours also with the degrees of freedom that causal-learn counts; with BIC, greedy
  equivalence search (ges) and greedy hill climbing (pyagrum).
- **With privacy**: synthetic records by MST or AIM (synthetic_records.py, where the neighbours are
  converted), then our PC with the same test. The guarantee is (epsilon, 1e-6) for neighbours that
  replace one record, by the conversion from zCDP that every system here uses.

Records are those of :func:`dpcgd_book.results.larger_networks.drawn` for the same run and
seed as in the chapters, so rows pair. Other packages live in .venv/yardsticks, made at the first
call. A finished case is appended to book/stored/yardsticks/scores.parquet and never run again; one
that took too long has a row without scores that says so.
"""

import contextlib
import itertools
import json
import math
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
from dpcgd_book.results.graph_scores import scores
from dpcgd_book.results.larger_networks import drawn
from dpcgd_book.results.stored import keep, stored_folder

import dpcgd
from benchmarks import peers
from benchmarks.entries import DELTA, LARGER
from benchmarks.kept import EPSILONS, Rows, in_time
from dpcgd.privacy.conversions import rho_of_budget
from dpcgd.statistics.categorical_statistics import AdjustedChiSquared, ChiSquared

SEED = 0
PINS = {"ges": "1.1.1", "mbi": "2.0.0", "jax": "0.10.2", "jaxlib": "0.10.2"}
"""The versions of packages beside those that peers.py pins."""

OURS, OTHER_PC = "PC, chi squared", "causal-learn's PC"
ADJUSTED = "adjusted PC, chi squared"
HERE = {OURS: ChiSquared(0.01), ADJUSTED: AdjustedChiSquared(0.01)}
CLIMBING, GES = "hill climbing, BIC", "GES, BIC"
PRIVATE = ("MST", "AIM")
ENDING = ("earthquake", "cancer", "asia", "survey")
"""Where AIM ends in time at any budget: it takes the whole joint distribution of a model at once.

On sachs, the largest where it can, there are a few tries where it hardly does.
"""

PATIENCE = 180.0
"""Seconds of processor time for AIM; by the clock twice as many for most, ten times for GES."""

JOBS = 5
"""Of one process: what mbi compiles is never freed, and a process may hold only so much of it."""

PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
ENVIRONMENT = {
    **peers.ONE_THREAD,
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false --xla_backend_optimization_level=0 "
    "--xla_cpu_use_fusion_emitters=false",
}
"""One thread, and little time for compiling, which is nearly all that a run of MST takes.

All that is compiled is kept for the processes that follow, until the call ends.
"""

KEYS = ("system", "network", "n", "epsilon", "run")
SCORES = ("F1", "arrowhead F1", "SHD", "edges", "precision", "recall", "seconds", "why_not")


def cases() -> list[dict]:
    """All cases."""
    named, hundred, both = (*dpcgd.NETWORKS, *LARGER), (100_000,), (100_000, 10_000)
    without = (math.inf,)
    plan = [
        (("MST",), named, both, EPSILONS, 20),
        (("AIM",), ENDING, both, EPSILONS, 20),
        (("AIM",), ("sachs",), hundred, (0.1, 0.3, 1.0), 20),
        (("AIM",), ("sachs",), hundred, (3.0, 10.0), 3),
        (("AIM",), ("sachs",), (10_000,), (0.1, 0.3, 1.0, 3.0), 20),
        (("AIM",), ("sachs",), (10_000,), (10.0,), 5),
        (("AIM",), ("sachs",), both, (30.0, 100.0), 1),
        ((GES, CLIMBING), named, both, without, 20),
        ((OURS, ADJUSTED), named, hundred, without, 3),
        ((OTHER_PC,), dpcgd.NETWORKS, both, without, 3),
        ((OTHER_PC,), LARGER, hundred, without, 1),
        ((OURS, ADJUSTED), dpcgd.NETWORKS, (10_000,), without, 3),
        ((OURS, ADJUSTED, CLIMBING), ("alarm", *LARGER), (1_000_000,), without, 1),
        ((GES,), LARGER, (1_000_000,), without, 1),
    ]
    return [
        dict(zip(KEYS, (system, network, n, epsilon, run), strict=True))
        for systems, networks, sizes, budgets, runs in plan
        for n, run in itertools.product(sizes, range(runs))
        for network, system, epsilon in itertools.product(networks, systems, budgets)
    ]


class Worker:
    """A process of the other environment that does one job after the other."""

    def __init__(self, python, folder):
        self.command = [python, Path(__file__).with_name("yardstick_worker.py")]
        self.environment = os.environ | ENVIRONMENT | {"JAX_COMPILATION_CACHE_DIR": str(folder)}
        self.process, self.jobs = None, 0

    def ask(self, job, patience) -> dict:
        """Its answer; an error if there is none in time, and a new process for the next job."""
        if self.process is None or self.jobs == JOBS:
            self.close()
            self.process = subprocess.Popen(self.command, env=self.environment, **PIPES)
            self.jobs = 0
        self.jobs += 1
        print(json.dumps(job), file=self.process.stdin, flush=True)
        if not select.select([self.process.stdout], [], [], patience)[0]:
            self.close()
            return {"error": f"over {patience:g} s by the clock"}
        if line := self.process.stdout.readline():
            return json.loads(line)
        raise RuntimeError(f"the other process ended with {self.process.wait()} at {job}")

    def close(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def graph_of(arcs, data, acyclic) -> dpcgd.CPDAG:
    """The equivalence class of a directed acyclic graph, or a partly directed graph as it is."""
    graph = nx.empty_graph(data.variables, nx.DiGraph)
    graph.add_edges_from((data.variables[a], data.variables[b]) for a, b in arcs)
    return (dpcgd.CPDAG.from_dag if acyclic else dpcgd.CPDAG.from_networkx)(graph)


def plain_pc(data, statistic=HERE[OURS]) -> dpcgd.CPDAG:
    return dpcgd.pc(data, statistic=statistic, max_order=3).graph


def row_of(case, data, worker, folder) -> dict:
    """What a case comes to."""
    started, system = time.perf_counter(), case["system"]
    if system in HERE:
        graph = plain_pc(data, HERE[system])
        return scores(graph, data.truth) | {"seconds": time.perf_counter() - started}
    job = {"system": system, "records": str(folder / "records.npz")}
    job |= {"synthetic": str(folder / "synthetic.npz"), "noise": [SEED, case["run"], 17]}
    job |= {"settings": {"patience": PATIENCE} if system == "AIM" else {}}
    if system in PRIVATE:
        job["rho"] = rho_of_budget(dpcgd.Budget(case["epsilon"], DELTA))
    answer = worker.ask(job, PATIENCE * {"AIM": 6, GES: 10}.get(system, 2))
    if "error" in answer:
        return {"why_not": answer["error"]}
    if system in PRIVATE:
        assert answer["spent"] <= job["rho"] * (1 + 1e-9)
        with np.load(job["synthetic"]) as records:
            graph = plain_pc(dpcgd.Dataset(records["codes"], data.levels))
    else:
        graph = graph_of(answer["arcs"], data, acyclic=system == CLIMBING)
    return scores(graph, data.truth) | {"seconds": time.perf_counter() - started}


def pins() -> dict[str, str]:
    known = peers.pins() | {name: f"{name}=={version}" for name, version in PINS.items()}
    return {name: known[name] for name in (*peers.SHARED, "causal-learn", "pyagrum", *PINS)}


def rows_of(some) -> Iterator[tuple[dict, dict]]:
    """Cases, and what each comes to."""
    python, errors = peers.install("yardsticks", pins())
    if errors:
        sys.exit(f"not installed: {errors}")

    def records_of(case):
        return {key: case[key] for key in ("network", "run", "n")}

    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        worker = stack.enter_context(contextlib.closing(Worker(python, folder / "compiled")))
        for records, cases_of_them in itertools.groupby(some, records_of):
            data = drawn(**records, seed=SEED)
            np.savez(folder / "records.npz", codes=data.codes, levels=data.cardinalities)
            yield from ((case, row_of(case, data, worker, folder)) for case in cases_of_them)


def run_yardstick(**case) -> dict:
    """One of these cases again, for :mod:`table`."""
    ((_, row),) = rows_of([case])
    return row


def write(kept: Rows):
    """Put all rows on file."""
    rows = pd.DataFrame(kept.rows.values(), columns=[*KEYS, *SCORES, "delta", "seed"])
    theirs = dict(pin.split("==") for pin in pins().values())
    about = {"made_by": "python benchmarks/yardsticks.py", "versions": theirs}
    cases_on_file = rows[[*KEYS, "delta", "seed"]].to_dict("records")
    keep(kept.folder, kept.name, rows, cases_on_file, "F1", **about)


def main(only: str | None = None, seconds: str = "inf"):
    kept = Rows(stored_folder() / "yardsticks", "scores", KEYS)
    left = kept.left(case for case in cases() if only in (None, case["system"]))
    some = (case for [case] in in_time(left, float(seconds), 1))
    for number, (case, row) in enumerate(rows_of(some), 1):
        kept.add([{"delta": DELTA, "seed": SEED, **case, **row}])
        write(kept)
        shown = row.get("why_not") or f"F1 {row['F1']:.3f}, {row['seconds']:.0f} s"
        print(f"{number} of {len(left)}: {case}: {shown}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
