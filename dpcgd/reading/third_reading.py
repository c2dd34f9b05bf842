"""What a third reading looks at, where triples were released: pairs, given any two others at once.

With triples the two others need not add up: a test given them is exact, as it is given one with
pairs alone.
"""

import math
from itertools import combinations

import numpy as np

from dpcgd.moments.interactions import Marginals, Subset
from dpcgd.reading.association import Association, associations
from dpcgd.reading.second_reading import log_odds

__all__ = ["THIRD_FEATURES", "holds_triples", "third_features"]

LEAST_OPEN = 0.03
"""Share of a variance that others have to leave open; else they tell nothing about the pair."""


LIKELY = 0.3
"""Of an edge: others that are so likely neighbours of either are looked at by themselves."""


THIRD_FEATURES = (
    "log odds",
    "association",
    "effect",
    "least given one",
    "effect at the least given one",
    "least given any two",
    "effect at the least given any two",
    "left open at the least given any two",
    "second least given any two",
    "least given two likely ones",
    "effect at the least given two likely ones",
    "left open at the least given two likely ones",
    "sets that leave nothing open",
    "likeliest path",
    "second likeliest path",
    "expected edges of both",
    "variables",
    "records",
    "noise over sampling",
    "levels of one",
    "levels of the other",
)
"""Of a pair, in the order of the columns of :func:`third_features`."""


def holds_triples(marginals: Marginals) -> bool:
    """Whether every triple has been released, and there is one.

    Examples
    --------
    >>> holds_triples(Marginals(10, (2, 2, 2)))
    False
    """
    triples = [*combinations(range(len(marginals.levels)), 3)]
    return bool(triples) and all(triple in marginals.released for triple in triples)


def third_features(marginals: Marginals, likely: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers about each pair of variables that vary.

    Parameters
    ----------
    marginals : Marginals
        With all pairs and triples released.
    likely : array of shape (d, d)
        Of an edge, as the readings of the pairs have it; symmetric, and zero on the diagonal.

    Returns
    -------
    pairs : array of shape (k, 2)
        Variables by number, x < y.
    features : array of shape (k, number of features)
        A column for each of `THIRD_FEATURES`.

    Privacy
    -------
    Post-processing of what has been released.
    """
    levels = np.array(marginals.levels)
    varying = np.flatnonzero(levels > 1).tolist()
    pairs = [*combinations(varying, 2)]
    known = _all_associations(marginals, varying, pairs)
    rows = np.array([_given_others(known, likely, varying, *pair) for pair in pairs])
    around = np.array([_around(likely, *pair) for pair in pairs])
    noise = marginals.moment(*pairs[0]).deviation * math.sqrt(marginals.n)
    shared = [len(varying), math.log10(marginals.n), math.asinh(100 * noise)]
    columns = [
        log_odds(np.array([likely[pair] for pair in pairs]))[:, None],
        rows,
        around,
        np.broadcast_to(shared, (len(pairs), len(shared))),
        np.sort(levels[pairs], axis=1),
    ]
    return np.array(pairs), np.hstack(columns).astype(np.float32)


def _given_others(known, likely, varying, x, y) -> list[float]:
    """How surprising a pair's association is, and how large, given none, one and two others."""
    others = [v for v in varying if v not in (x, y)]
    near = {v for v in others if max(likely[x, v], likely[y, v]) > LIKELY}
    alone = known[x, y]
    singles, couples = (
        {given: known[x, y, *given] for given in combinations(others, size)} for size in (1, 2)
    )
    singles, couples = _telling(singles), _telling(couples)
    single = min(singles.values(), key=_surprise, default=alone)
    ranked = sorted(couples.values(), key=_surprise)
    couple, second = (*ranked, single, single)[:2]
    close = [tested for given, tested in couples.items() if near.issuperset(given)]
    of_likely = min(close, key=_surprise, default=single)
    lost = math.comb(len(others), 2) - len(couples)
    return [
        *(_surprise(alone), alone.effect, _surprise(single), single.effect),
        *(_surprise(couple), couple.effect, couple.undetermined, _surprise(second)),
        *(_surprise(of_likely), of_likely.effect, of_likely.undetermined, lost),
    ]


def _all_associations(marginals, varying, pairs) -> dict[Subset, Association]:
    """The association of each pair given none, each and each two of the others."""
    known: dict[Subset, Association] = {}
    for size in range(min(3, len(varying) - 1)):
        tests = [
            (*pair, *given)
            for pair in pairs
            for given in combinations([v for v in varying if v not in pair], size)
        ]
        rows = associations(marginals, tests, interacting=True)
        known |= zip(tests, map(Association._make, rows), strict=True)
    return known


def _telling(tested: dict[Subset, Association]) -> dict[Subset, Association]:
    """Those that leave something open."""
    return {given: row for given, row in tested.items() if row.undetermined >= LEAST_OPEN}


def _surprise(tested: Association) -> float:
    """How many deviations above independence, on a scale that is logarithmic far out."""
    freedom = max(1, tested.freedom)
    return math.asinh((tested.statistic - freedom) / math.sqrt(2 * freedom))


def _around(likely, x, y) -> list[float]:
    """The two likeliest paths through a third variable, and the expected edges of both ends."""
    *_, second, first = np.sort([*(likely[x] * likely[y]), 0.0])
    return [first, second, float(likely[x].sum() + likely[y].sum())]
