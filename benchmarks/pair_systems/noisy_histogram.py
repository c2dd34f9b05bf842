"""One noisy histogram of both variables, then a judge of pairs on records like it.

Of an additive noise model: chapters 08 and 09. Of regression errors: the same release, read by the
score of chapter 24, which takes no square time and needs no controls.
"""

import numpy as np
from dpcgd_book.systems.direction_scores import reci

from benchmarks.pair_cases import PairSystem
from dpcgd.pairwise.anm import PairRelease, histogram_anm, noisy_histogram
from dpcgd.privacy.run import open_run

DRAWN = 10_000


# (epsilon, delta)-DP, by thm-gaussian: two cells change by one, and nothing else is looked at
def histogram_reci(pair, *, epsilon, delta, rng):
    by = "histogram_reci", "thm-gaussian"
    promise = {"epsilon": epsilon, "delta": delta, "rng": rng}
    run = open_run(pair, numbers=True, records=True, by=by, **promise)
    counts, deviation = noisy_histogram(pair, run)
    kept = np.where(counts > 2 * deviation, counts, 0.0).ravel()
    ways = pair.variables, pair.variables[::-1]
    score = _reci_of(kept, len(counts), rng)
    answer = {"direction": None, "scores": dict.fromkeys(ways)}
    if score:
        answer = {"direction": ways[score < 0], "scores": {ways[0]: -score, ways[1]: score}}
    return PairRelease(**answer, confidence=None, protects="everyone", **run.receipt())


def _reci_of(weights, bins, rng):
    """Zero, no answer, if no two rows and columns stand out of the noise."""
    rows, columns = np.nonzero(weights.reshape(bins, bins))
    if len({*rows}) < 2 or len({*columns}) < 2:
        return 0.0
    cells = rng.choice(weights.size, DRAWN, p=weights / weights.sum())
    return reci(*(np.divmod(cells, bins) + rng.random((2, DRAWN))))


SYSTEMS = [
    PairSystem("histogram", "noisy histogram", "proved", histogram_anm),
    PairSystem("histogram-RECI", "noisy histogram", "proved", histogram_reci),
]
