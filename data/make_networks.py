"""Write the papers' seven networks to data/networks, from the files inside pgmpy's wheel.

    python data/make_networks.py            # write the files and their checksums
    python data/make_networks.py --check    # only compare with what is here

Needs the `book` extra (pgmpy 1.1.2). The files are copied as they are, unpacked.
"""

import gzip
import importlib.metadata
from pathlib import Path

from sources import keep

from dpcgd.datasets.bayesian_networks import NETWORKS, from_bif

FOLDER = Path(__file__).parent / "networks"
INSIDE_WHEEL = "pgmpy/utils/example_models/{}.bif.gz"


def packaged(name: str) -> bytes:
    wheel = importlib.metadata.distribution("pgmpy")
    return gzip.decompress(Path(wheel.locate_file(INSIDE_WHEEL.format(name))).read_bytes())


def main():
    keep(FOLDER, {f"{name}.bif": packaged(name) for name in NETWORKS})
    for name in NETWORKS:
        graph = from_bif(FOLDER / f"{name}.bif").graph
        print(f"{name:12}{len(graph):4} variables {graph.number_of_edges():4} edges")


if __name__ == "__main__":
    main()
