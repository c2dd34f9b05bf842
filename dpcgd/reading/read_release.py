"""Releases that were written to a file, read back."""

import os

import numpy as np

from dpcgd.graphs.receipt import read_receipt, release_fields
from dpcgd.graphs.release import Release
from dpcgd.moments.clipped_moments import ClippedMoments
from dpcgd.moments.interactions import Marginals, Moment
from dpcgd.moments.noisy_table import NoisyTable
from dpcgd.reading.release import MarginalRelease

__all__ = ["read_release"]

KINDS = {kind.__name__: kind for kind in (Release, MarginalRelease)}


def read_release(path: str | os.PathLike) -> Release:
    """Read a release back from the receipt that :meth:`~dpcgd.graphs.release.Release.save` wrote.

    Parameters
    ----------
    path : path

    Returns
    -------
    Release
        Of the kind it had, with everything but its seconds.

    Raises
    ------
    ValueError
        If there is no such file, or it is not what was written; a digest shows accidents and edits
        by hand, and is no signature.

    Privacy
    -------
    What has been released.

    Examples
    --------
    >>> import tempfile
    >>> from dpcgd import load, table_pc
    >>> data = load("survey", rng=np.random.default_rng(0))
    >>> release = table_pc(data, epsilon=0.3, rng=np.random.default_rng(1))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     release.save(f"{folder}/receipt.json")
    ...     read_release(f"{folder}/receipt.json") == release
    True
    """
    content = read_receipt(path)
    try:
        kind = KINDS[content["release"]]
        return kind(**release_fields(content, _marginals))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(
            f"{path} holds no release that this version can read ({type(error).__name__}: "
            f"{error}); read it with the version that wrote it"
        ) from None


def _marginals(content) -> Marginals:
    if "counts" in content:
        return NoisyTable(content["n"], np.array(content["counts"]), content["scale"])
    levels = tuple(content["levels"])
    released = {}
    for moment in content["moments"]:
        subset = tuple(moment["variables"])
        shape = tuple(levels[v] - 1 for v in subset)
        values = np.array(moment["values"], float).reshape(shape)
        released[subset] = Moment(values, moment["deviation"])
    if "clipped" not in content:
        return Marginals(content["n"], levels, released)
    upper, deviation = content["clipped"]["moments"], content["clipped"]["deviation"]
    moments = np.zeros((len(upper),) * 2)
    for i, row in enumerate(upper):
        moments[i, i:] = moments[i:, i] = row
    return ClippedMoments(content["n"], levels, released, moments, deviation)
