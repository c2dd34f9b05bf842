"""Time the hot paths: one command, one table. Results go to _build/results/benchmark.json.

python benchmarks/run.py
"""

import statistics
import subprocess
import sys
import time

import numpy as np

import dpcgd
from dpcgd.results import record
from dpcgd.tables import Tables


def seconds(task, repeats=5) -> float:
    """Median wall time of a call, after one that is not counted."""
    task()
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        task()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def by_bincount(rows, levels, at, weights=None):
    """The usual way: one index a row, then bincount, with weights where rows are distinct."""
    index = np.zeros(len(rows), np.intp)
    for v in at:
        index = index * levels[v] + rows[:, v]
    cells = int(np.prod([levels[v] for v in at]))
    return np.bincount(index, weights=weights, minlength=cells)


def by_numpy_bits(columns, at):
    """One bit column a level, numpy's population count."""
    mask = columns[at[0]]
    for v in at[1:]:
        mask = mask[..., None, :] & columns[v]
    return np.bitwise_count(mask).sum(axis=-1, dtype=np.int64).ravel()


def level_columns(data):
    """One packed bit column for each level of each variable."""
    columns = []
    for v, k in enumerate(data.cardinalities):
        packed = [np.packbits(data.codes[:, v] == level) for level in range(k)]
        columns.append(np.array([np.pad(p, (0, -len(p) % 8)).view(np.uint64) for p in packed]))
    return columns


def tables_by_method(data) -> dict[str, dict[str, float]]:
    """Microseconds a table, all methods on the same data, and all of them equal."""
    levels, ours, columns = data.cardinalities, Tables(data), level_columns(data)
    rows, weights = np.unique(data.codes, axis=0, return_counts=True)
    ternary = [v for v in range(data.d) if levels[v] == 3]
    found = {}
    for size in (2, 3, 5):
        at = ternary[:size]
        methods = {
            "bincount": lambda at=at: by_bincount(data.codes, levels, at),
            "distinct rows": lambda at=at: by_bincount(rows, levels, at, weights),
            "numpy bits": lambda at=at: by_numpy_bits(columns, at),
            "dpcgd": lambda at=at: ours.counts(at).ravel(),
        }
        expected = methods["bincount"]()
        assert all((method() == expected).all() for method in methods.values())
        timed = {name: 1e6 * seconds(method, 50) for name, method in methods.items()}
        found["x".join("3" * size)] = timed
    return found


def import_seconds() -> float:
    code = "import time; t = time.perf_counter(); import dpcgd; print(time.perf_counter() - t)"
    command = [sys.executable, "-c", code]
    runs = [float(subprocess.run(command, capture_output=True).stdout) for _ in range(5)]
    return statistics.median(runs)


def systems(samples) -> dict[str, dict[str, float]]:
    """Seconds a run, of each system on each network."""
    tasks = {
        "PC": dpcgd.pc,
        "Laplace-PC": lambda data: dpcgd.laplace_pc(
            data, epsilon=1.0, rng=np.random.default_rng(0)
        ),
        "Priv-PC": lambda data: dpcgd.priv_pc(data, epsilon=1.0, rng=np.random.default_rng(0)),
    }
    return {
        system: {name: seconds(lambda d=data, t=task: t(d)) for name, data in samples.items()}
        for system, task in tasks.items()
    }


def show(title, rows, unit):
    names = list(next(iter(rows.values())))
    print(f"\n{title} ({unit})")
    print(" " * 14 + "".join(f"{name:>15}" for name in names))
    for row, values in rows.items():
        print(f"{row:<14}" + "".join(f"{values[name]:>15.4g}" for name in names))


def main():
    rng = np.random.default_rng(0)
    samples = {name: dpcgd.load(name, rng=rng) for name in dpcgd.NETWORKS}
    loading = seconds(lambda: dpcgd.load("alarm", rng=rng))
    tables = tables_by_method(samples["alarm"])
    runs = systems(samples)
    tests = dpcgd.pc(samples["alarm"]).tests
    print(f"import dpcgd {import_seconds():.2f} s; load alarm, n = 100,000 {loading:.3f} s")
    show("One table, alarm, n = 100,000", tables, "microseconds")
    show("One run, n = 100,000, order <= 3", runs, "seconds")
    print(f"\nPC on alarm asks {tests:,} tests: {tests / runs['PC']['alarm']:,.0f} a second")
    record(
        "benchmark",
        seconds=runs,
        tests_per_second=tests / runs["PC"]["alarm"],
        table_microseconds=tables,
        load_alarm_seconds=loading,
    )


if __name__ == "__main__":
    main()
