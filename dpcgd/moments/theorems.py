"""Which theorems a release of moments rests on: those of what was measured, and of no more."""

from collections.abc import Mapping
from typing import Any

from dpcgd.moments.clipped_moments import ClippedMoments
from dpcgd.moments.interactions import Marginals

__all__ = ["theorems_of"]


def theorems_of(
    marginals: Marginals, joined_levels: Mapping[str, Any], *, triples: str = "thm-triples"
) -> tuple[str, ...]:
    """Labels of the theorems that give the sensitivities of what has been released.

    Parameters
    ----------
    marginals : Marginals
    joined_levels : mapping
        As a release has it: empty where no levels were joined.
    triples : str
        The theorem for triples: all of them at once, unless given.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcgd.moments.interactions import Moment
    >>> pair = {(0,): Moment(np.zeros(1), 1.0), (0, 1): Moment(np.zeros((1, 1)), 1.0)}
    >>> theorems_of(Marginals(100, [2, 2], pair), {"town": {"A": "A"}})
    ('thm-pairs', 'thm-joined-levels')
    """
    released = marginals.released
    sizes = set(map(len, released))
    precisions = {moment.deviation for subset, moment in released.items() if len(subset) == 2}
    ran = {
        "thm-pairs": 2 in sizes,
        triples: 3 in sizes,
        "thm-look-again": len(precisions) > 1,
        "thm-clipped-moments": isinstance(marginals, ClippedMoments),
        "thm-joined-levels": bool(joined_levels),
    }
    return tuple(label for label, used in ran.items() if used)
