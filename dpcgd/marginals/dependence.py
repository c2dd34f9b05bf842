"""How likely two variables depend on each other at all, by what was released about the two.

An edge is no likelier than that. The edge model was trained on networks with edges; where nothing
is to be found, or noise is all there is, this limit holds its probabilities to what was seen.
"""

import numpy as np
from scipy.special import expit, logit

from dpcgd.marginals.blocks import blocks_of
from dpcgd.marginals.interactions import Marginals

__all__ = ["PRIOR", "dependence"]

PRIOR = 0.09
"""Probability of an edge before anything is known: that of a graph posterior of two variables,
2 e^-3 / (1 + 2 e^-3)."""


PSEUDO_PAIRS = 1.1
"""Pairs that the prior is worth when the share of dependent pairs is estimated."""


EFFECTS = np.geomspace(0.01, 0.6, 8)
"""Deviations of a correlation where two variables depend on each other, all alike beforehand."""


STEPS = 100
"""Of the estimate of that share; its error falls by a constant factor in each."""


LARGEST = 300.0
"""Log-likelihood ratios beyond are as good as certain; their exponential is a number."""


def dependence(marginals: Marginals) -> np.ndarray:
    """Probability that two variables depend on each other, as far as their pair was released.

    Parameters
    ----------
    marginals : Marginals
        With all pairs released.

    Returns
    -------
    array of shape (d, d)
        Symmetric. The prior where the noise hides everything, near zero where the release shows
        that there is nothing, near one where it shows an association.

    Raises
    ------
    KeyError
        If a pair has not been released.

    Privacy
    -------
    Post-processing.

    Notes
    -----
    Empirical Bayes: the share of dependent pairs is the likeliest for this release, and at most the
    prior. Chapter 15.
    """
    ratios = _log_ratios(marginals)
    pairs = np.triu_indices(len(ratios), 1)
    share = PRIOR
    for _ in range(STEPS):
        likely = expit(logit(share) + ratios)
        share = (PRIOR * PSEUDO_PAIRS + likely[pairs].sum()) / (PSEUDO_PAIRS + len(pairs[0]))
    return expit(logit(min(share, PRIOR)) + ratios)


def _log_ratios(marginals) -> np.ndarray:
    """Log-likelihood of each pair if it is dependent, less that if it is not.

    An effect is in all entries of the pair's block alike, or in one of them.
    """
    blocks = blocks_of(marginals)
    variance = blocks.variances + blocks.further
    entries = blocks.sums(np.ones_like(variance))
    total = np.full(entries.shape, -np.inf)
    for effect in EFFECTS:
        signal = effect**2 / (variance + effect**2)
        each = (blocks.correlations**2 / variance * signal + np.log1p(-signal)) / 2
        together = blocks.sums(each)
        alone = np.log(blocks.sums(np.exp(np.minimum(each, LARGEST))) / entries)
        total = np.logaddexp.reduce([total, together, alone])
    return total - np.log(2 * len(EFFECTS))
