"""Write earnings of men in the Current Population Survey to data/earnings, from causaldata.

    python data/make_earnings.py            # download the archive, write the table, its checksums
    python data/make_earnings.py --check    # only compare with what is here

Needs the package index (the source archive of causaldata 0.1.5, 3 MB) and pandas. The number of
each record and a column that is the same in all of them are left out; amounts are in dollars, to
the cent. Records are sorted. The schema is not made here: it is public.
"""

import gzip
import io
import tarfile
from pathlib import Path

import pandas as pd
from sources import checked, download, keep

FOLDER = Path(__file__).parent / "earnings"
ARCHIVE = "causaldata==0.1.5"
TABLE = "causaldata-0.1.5/causaldata/cps_mixtape/cps_mixtape.dta"
CHECKSUM = "1345a61d4f4f6ab84abd475906a86671b969b278a8ef0e96d8e8ba8e3c3556e1"


def from_archive() -> pd.DataFrame:
    """The table, a row for each man."""
    archive = io.BytesIO(download(ARCHIVE, "--no-binary", ":all:"))
    with tarfile.open(fileobj=archive) as tar:
        content = tar.extractfile(TABLE).read()
    checked(content, CHECKSUM, f"{TABLE} in {ARCHIVE}")
    return pd.read_stata(io.BytesIO(content)).drop(columns=["data_id", "treat"])


def written(table: pd.DataFrame) -> bytes:
    """The records in order, amounts to the cent."""
    rows = table.astype(float).round(2).sort_values(list(table))
    return rows.to_csv(index=False, float_format="%.10g", lineterminator="\n").encode()


def main():
    text, schema = written(from_archive()), (FOLDER / "schema.json").read_bytes()
    keep(FOLDER, {"earnings.csv.gz": gzip.compress(text, mtime=0), "schema.json": schema})
    print(f"{len(text.splitlines()) - 1:,} men")


if __name__ == "__main__":
    main()
