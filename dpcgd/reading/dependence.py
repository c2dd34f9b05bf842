"""How likely two variables depend on each other at all, by what was released about the two.

An edge is no likelier than that. The edge model was trained on networks with edges; where nothing
is to be found, or noise is all there is, this limit holds its probabilities to what was seen.
"""

import networkx as nx
import numpy as np
from scipy.special import expit, logit

from dpcgd.moments.blocks import blocks_of
from dpcgd.moments.interactions import Marginals

__all__ = ["LIKELY", "PRIOR", "copies_joined", "dependence"]

PRIOR = 0.09
"""Probability of an edge before anything is known, 2 e^-3 / (1 + 2 e^-3) as in a graph posterior
of two variables."""


PSEUDO_PAIRS = 1.1
"""Pairs that the prior is worth when the share of dependent pairs is estimated."""


EFFECTS = np.geomspace(0.01, 0.6, 8)
"""Deviations of a correlation where two variables depend on each other, all alike beforehand."""


LIKELY = 0.5
"""Edges of this probability are as likely as not."""


STEPS = 100
"""Of the estimate of that share; its error falls by a constant factor in each."""


COPIED = 0.9
"""Share of the variance of either, explained by the other, from which two variables are copies."""


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
    prior. Chapter 12.
    """
    ratios = _log_ratios(marginals)
    pairs = np.triu_indices(len(ratios), 1)
    share = PRIOR
    for _ in range(STEPS):
        likely = expit(logit(share) + ratios)
        share = (PRIOR * PSEUDO_PAIRS + likely[pairs].sum()) / (PSEUDO_PAIRS + len(pairs[0]))
    return expit(logit(min(share, PRIOR)) + ratios)


def _log_ratios(marginals) -> np.ndarray:
    """Log-likelihood of each pair if it is dependent, less that if it is not; symmetric.

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
    upper = np.triu(total - np.log(2 * len(EFFECTS)), 1)
    return upper + upper.T  # the last digits of the blocks may differ


def copies_joined(marginals: Marginals, probabilities: np.ndarray) -> np.ndarray:
    """Probabilities that leave variables which are copies of each other connected.

    Given a third copy nothing is left of two others, so an edge model sees no reason for any of
    their edges. Yet a graph that explains copies connects them: the likeliest edges that do so get
    a probability of one half or more.

    Parameters
    ----------
    marginals : Marginals
        With all pairs released.
    probabilities : array of shape (d, d)

    Returns
    -------
    array of shape (d, d)

    Privacy
    -------
    Post-processing.

    Examples
    --------
    >>> from dpcgd.moments.interactions import Moment
    >>> means = {(v,): Moment(np.zeros(1), 0.0) for v in range(3)}
    >>> pairs = {pair: Moment(np.full((1, 1), 0.5), 0.0) for pair in ((0, 1), (0, 2), (1, 2))}
    >>> copies_joined(Marginals(1000, (2, 2, 2), means | pairs), np.full((3, 3), 0.2))
    array([[0.2, 0.5, 0.5],
           [0.5, 0.2, 0.2],
           [0.5, 0.2, 0.2]])
    """
    blocks = blocks_of(marginals)
    explained = blocks.sums(blocks.correlations**2 - blocks.variances)
    blurred = blocks.sums(blocks.variances + blocks.further)
    free = np.array(marginals.levels) - 1
    whole = np.maximum(np.maximum.outer(free, free), 1)
    alike = (explained >= COPIED * whole) & (blurred <= (1 - COPIED) * whole)
    alike &= probabilities > 0  # what knowledge rules out stays so
    graph = nx.from_numpy_array(np.where(np.triu(alike, 1), 1.0 + probabilities, 0.0))
    joined = probabilities.copy()
    for a, b in nx.maximum_spanning_tree(graph).edges:
        joined[a, b] = joined[b, a] = max(probabilities[a, b], LIKELY)
    return joined
