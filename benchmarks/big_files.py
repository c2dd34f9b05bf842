"""A table that no memory holds: made in Parquet files, read, packed, released; one line a size.

python benchmarks/big_files.py alarm 1e6 1e7 1e8
python benchmarks/big_files.py asia 1e9 --folder /somewhere/with/room
python benchmarks/big_files.py survey 1.4e6 --doors

Each size is a line of JSON: seconds to read and pack and to release by table_pc, the largest
resident memory of the process that did both, bytes on disk, and F1 of the skeleton. The files are
removed after each size unless --keep is given; with it they are made once.

With --doors the table is one CSV file, read by Arrow, row by row as without pyarrow, and as a frame
of categories: a line each of processor seconds, all threads together, and the largest memory.
"""

import argparse
import json
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import parquet

import dpcgd

GROUP = 10**6
"""Records of a row group."""

FILE = 10**7
"""Records of a file."""

EPSILON = 1.0


def make(network: str, n: int, folder: Path, rng: np.random.Generator) -> None:
    """Draw n records of a network into files of their own, a row group at a time."""
    folder.mkdir(parents=True)
    for first in range(0, n, FILE):
        path, last = folder / f"{first // FILE:04}.parquet", min(first + FILE, n)
        with warnings.catch_warnings(action="ignore"):
            writer = None
            for start in range(first, last, GROUP):
                data = dpcgd.load(network, min(GROUP, last - start), rng=rng)
                table = as_table(data)
                writer = writer or parquet.ParquetWriter(path, table.schema)
                writer.write_table(table, row_group_size=GROUP)
            writer.close()


def as_table(data: dpcgd.Dataset) -> pa.Table:
    """Every variable as numbers of its levels, and the levels."""
    pairs = zip(data.codes.T.astype(np.int32), data.levels.values(), strict=True)
    columns = [pa.DictionaryArray.from_arrays(codes, list(levels)) for codes, levels in pairs]
    return pa.table(columns, names=list(data.levels))


def peak_bytes() -> int:
    """The largest resident memory of this process; getrusage starts with that of its parent."""
    status = Path("/proc/self/status")
    if status.exists():  # on Linux
        return 1024 * int(re.search(r"VmHWM:\s*(\d+) kB", status.read_text())[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def measure(network: str, folder: str, spill: bool) -> dict:
    """Read, pack and release; what it took."""
    truth = dpcgd.load(network, 10, rng=np.random.default_rng(0))
    before = time.perf_counter()
    data = dpcgd.read_parquet(folder, truth.levels, spill=spill)
    packed = time.perf_counter()
    rng = np.random.default_rng(1)
    release = dpcgd.table_pc(data, epsilon=EPSILON, delta=0.1 / data.n, rng=rng)
    done = time.perf_counter()
    return {
        "network": network,
        "n": data.n,
        "seconds": round(done - before, 2),
        "read": round(packed - before, 2),
        "release": round(done - packed, 2),
        "peak_bytes": peak_bytes(),
        "f1": round(release.graph.skeleton_f1(truth.truth), 3),
    }


def measure_door(network: str, path: str, door: str) -> dict:
    """Read a CSV file by one of its doors."""
    levels = dpcgd.load(network, 10, rng=np.random.default_rng(0)).levels
    if door == "rows":
        sys.modules["pyarrow"] = None  # as if it were not installed
    is_frame = door == "frame"
    table = pd.read_csv(path, dtype="category") if is_frame else path
    before = time.process_time()
    data = (dpcgd.Dataset.from_pandas if is_frame else dpcgd.read_csv)(table, levels)
    seconds = round(time.process_time() - before, 2)
    return {"door": door, "n": data.n, "processor": seconds, "peak_bytes": peak_bytes()}


def doors(network: str, n: int, folder: Path) -> None:
    """Write a CSV file and read it by each door, in a process of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{network}.csv"
    data = dpcgd.load(network, n, rng=np.random.default_rng(n))
    as_table(data).to_pandas().to_csv(path, index=False)
    for door in ("arrow", "rows", "frame"):
        command = [sys.executable, __file__, "--measure", path, network, "--door", door]
        subprocess.run(command, check=True)
    path.unlink()


def warm_up(network: str) -> None:
    """What is compiled is compiled before anything is timed."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(action="ignore"):
        make(network, 10_000, Path(folder) / "few", np.random.default_rng(0))
        measure(network, str(Path(folder) / "few"), False)


def run(network: str, n: int, folder: Path, *, spill: bool, keep: bool) -> dict:
    """One size, measured in a process of its own."""
    table = folder / f"{network}_{n}"
    if not table.exists():
        make(network, n, table, np.random.default_rng(n))
    how = ["--spill"] if spill else []
    command = [sys.executable, __file__, "--measure", str(table), network, *how]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    size = sum(path.stat().st_size for path in table.iterdir())
    found = json.loads(printed.splitlines()[-1]) | {"disk_bytes": size, "spill": spill}
    if not keep:
        shutil.rmtree(table)
    return found


def main() -> None:
    """Measure the sizes that were asked for, each line as soon as it is there."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("network")
    parser.add_argument("sizes", nargs="*", type=float)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "big_files")
    parser.add_argument("--spill", action="store_true")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--doors", action="store_true")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--door", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.door:
        print(json.dumps(measure_door(asked.network, asked.measure, asked.door)))
        return
    if asked.measure:
        warm_up(asked.network)
        print(json.dumps(measure(asked.network, asked.measure, asked.spill)))
        return
    before = None
    for n in map(int, asked.sizes):
        if asked.doors:
            doors(asked.network, n, asked.folder)
            continue
        found = run(asked.network, n, asked.folder, spill=asked.spill, keep=asked.keep)
        if before:  # seconds, and what the size before predicts
            found["predicted"] = round(before["seconds"] * n / before["n"], 2)
        before = before or found
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
