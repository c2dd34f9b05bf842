"""Larger networks than the papers', from the files of pgmpy: looked at while choosing rules."""

import gzip
import tempfile
from importlib.metadata import distribution
from pathlib import Path

import numpy as np

from dpcgd import NETWORKS, Dataset, Network, from_bif, load

__all__ = ["drawn", "packaged"]


def packaged(name: str) -> Network:
    """A network that pgmpy ships, read from its file without loading pgmpy.

    Examples
    --------
    >>> len(packaged("insurance").levels)
    27
    """
    inside = f"pgmpy/utils/example_models/{name}.bif.gz"
    text = gzip.decompress(Path(str(distribution("pgmpy").locate_file(inside))).read_bytes())
    with tempfile.TemporaryDirectory() as folder:
        (unpacked := Path(folder) / f"{name}.bif").write_bytes(text)
        return from_bif(unpacked)


def drawn(network: str, run: int, n: int, seed: int) -> Dataset:
    """Records of one of the papers' networks, or of a larger one; the same for every system."""
    rng = np.random.default_rng([seed, run])
    if network in NETWORKS:
        return load(network, n=n, rng=rng)
    return packaged(network).sample(n, rng=rng)
