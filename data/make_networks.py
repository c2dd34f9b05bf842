"""Write the papers' seven networks to data/networks, from the files inside pgmpy's wheel.

    python data/make_networks.py            # write the files and their checksums
    python data/make_networks.py --check    # only compare with what is here

Needs the `book` extra (pgmpy 1.1.2). The files are copied as they are, unpacked.
"""

import gzip
import hashlib
import importlib.metadata
import sys
from pathlib import Path

from dpcgd.datasets.bayesian_networks import NETWORKS, from_bif

FOLDER = Path(__file__).parent / "networks"
INSIDE_WHEEL = "pgmpy/utils/example_models/{}.bif.gz"


def packaged(name: str) -> bytes:
    wheel = importlib.metadata.distribution("pgmpy")
    return gzip.decompress(Path(wheel.locate_file(INSIDE_WHEEL.format(name))).read_bytes())


def main():
    texts = {f"{name}.bif": packaged(name) for name in NETWORKS}
    sums = "".join(f"{hashlib.sha256(text).hexdigest()}  {f}\n" for f, text in texts.items())
    if "--check" in sys.argv[1:]:
        same = all((FOLDER / file).read_bytes() == text for file, text in texts.items())
        if not same or (FOLDER / "SHA256SUMS").read_text() != sums:
            sys.exit("data/networks differs from pgmpy's wheel; run python data/make_networks.py")
    else:
        FOLDER.mkdir(exist_ok=True)
        for file, text in texts.items():
            (FOLDER / file).write_bytes(text)
        (FOLDER / "SHA256SUMS").write_text(sums)
    for name in NETWORKS:
        graph = from_bif(FOLDER / f"{name}.bif").graph
        print(f"{name:12}{len(graph):4} variables {graph.number_of_edges():4} edges")


if __name__ == "__main__":
    main()
