"""Additive noise models for cause or effect in a pair, with and without privacy."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Unpack

import numpy as np

from dpcgd.datasets.arguments import check_generator
from dpcgd.datasets.dataset import Dataset
from dpcgd.pairwise.dependence_scores import DependenceScore, Hsic
from dpcgd.pairwise.kernel_ridge import GaussianRidge, Ridge
from dpcgd.privacy.budget import ROOM
from dpcgd.privacy.filters import BasicFilter, Ledger, PureFilter
from dpcgd.privacy.mechanisms import gaussian
from dpcgd.privacy.noise import Noise, SeededNoise
from dpcgd.privacy.run import (
    Run,
    RunKeywords,
    Terms,
    check_data,
    open_run,
    run_without_privacy,
    takes_keywords,
)

__all__ = ["PairRelease", "anm", "confidence", "histogram_anm", "noisy_histogram"]
__all__ += ["private_anm"]

FEWEST = 4
"""The fewest records of a pair: two to fit and two to score."""


PROTECTS = ("everyone", "test set")
"""The records that a private run can protect."""


CONTROLS = 8
"""Number of control histograms of independent columns, beside a noisy histogram."""


Direction = tuple[str, str]
"""(cause, effect)."""


@dataclass(frozen=True)
class PairRelease:
    """The release of a run on a pair. A proved guarantee covers all except `seconds`.

    Attributes
    ----------
    direction : (cause, effect) or None
        None if the mechanism gave no answer.
    scores : mapping of (cause, effect) to float or None
        The dependence of residual and supposed cause in each direction, with noise. The direction
        with the smaller score is chosen.
    confidence : float or None
        The probability that the noise has not reversed the direction, computed from the released
        scores and the noise scale. It does not say whether an additive noise model holds.
    protects : str
        "everyone", "test set" (the records that fit the regression are not protected), or "nobody".
    ledger : Ledger
        The mechanisms that ran and their cost; ``ledger.budget`` is the promise.
    guarantee : str
        "proved" (for the protected records), "claimed, not proved" (with a score or a ridge from
        outside this package), or "none".
    seconds : float or None
        Wall time; None in a secure run, because it depends on the data and is not protected.
    terms : Terms
        The public terms of the run.
    """

    direction: Direction | None
    scores: Mapping[Direction, float | None]
    confidence: float | None
    protects: str
    ledger: Ledger
    guarantee: str
    seconds: float | None
    terms: Terms


def confidence(margin: float, scale: float) -> float:
    """Probability that the difference of two Laplace variables is below a margin.

    Parameters
    ----------
    margin : float
        The difference of the two scores, at least 0.
    scale : float
        Scale of the Laplace noise on each score; 0 for no noise.

    Raises
    ------
    ValueError
        If either is negative.

    Returns
    -------
    float
        For a true margin, the probability that the noise keeps the order of the scores. For a
        released margin, the probability that its order is true, under a uniform prior.

    Notes
    -----
    1 - (margin + 2 scale) / (4 scale) e^(-margin / scale), Kusner et al. (2016), theorem 2; exact.
    Chapter 08, :prf:ref:`thm-anm-confidence`.

    Examples
    --------
    >>> confidence(0.0, 1.0), round(confidence(3.0, 1.0), 3), confidence(0.1, 0.0)
    (0.5, 0.938, 1.0)
    """
    if not (margin >= 0 and scale >= 0):
        raise ValueError(f"margin and scale must be 0 or more, not {margin!r} and {scale!r}")
    if scale == 0 or margin > 1000 * scale:
        return 1.0
    return 1 - (margin / scale + 2) / 4 * math.exp(-margin / scale)


def anm(
    pair: Dataset,
    *,
    score: DependenceScore | None = None,
    ridge: Ridge | None = None,
    rng: np.random.Generator,
) -> PairRelease:
    """Which of two variables causes the other, by an additive noise model, without privacy.

    Half of the records fit a regression in each direction, and the other half give its residuals.
    The answer is the direction whose residuals depend less on their input.

    Parameters
    ----------
    pair : Dataset
        A pair of numbers.
    score : DependenceScore, optional
        ``Hsic()`` unless given.
    ridge : Ridge, optional
        ``Ridge()`` unless given.
    rng : numpy.random.Generator
        Generator that draws the halves.

    Returns
    -------
    PairRelease
        Its guarantee is "none", and its confidence is 1 because there is no noise.

    Raises
    ------
    ValueError
        If there are not two columns or fewer than four records, or a column is constant.

    Notes
    -----
    Hoyer et al. (2009); with halves, Mooij et al. (2016) and Kusner et al. (2016), algorithm 1.

    Examples
    --------
    >>> x, noise = np.random.default_rng(0).uniform(-1, 1, (2, 1000))
    >>> columns = np.column_stack([x, np.sin(6 * x) / 2 + 0.3 * noise])
    >>> pair = Dataset.of_numbers(columns, {"x": (-1, 1), "y": (-1, 1)})
    >>> anm(pair, rng=np.random.default_rng(1)).direction
    ('x', 'y')
    """
    _check_pair(pair, ridge)
    check_generator(rng)
    run = run_without_privacy(pair, numbers=True, score=score, ridge=ridge)
    constant = np.ptp(pair.codes, axis=0) == 0
    if constant.any():
        name = pair.variables[int(constant.argmax())]
        raise ValueError(f"column {name!r} is constant within its range: it has no cause here")
    look = _Look(pair, SeededNoise(rng), ridge or Ridge())
    score = score or Hsic()
    scores = {names: score.value(*look.columns(names)) for names in _directions(pair)}
    return _release(scores, 0.0, "nobody", run)


@takes_keywords
def private_anm(
    pair: Dataset,
    *,
    score: DependenceScore | None = None,
    ridge: Ridge | None = None,
    protects: str = "everyone",
    **shared: Unpack[RunKeywords],
) -> PairRelease:
    """Which of two variables causes the other, by an additive noise model, privately.

    Parameters
    ----------
    pair : Dataset
        A pair of numbers. Values outside the public ranges have been moved to their ends.
    epsilon, delta : float
        The guarantee. Delta is spent only if the score is released by propose-test-release.
    allow_delta : bool
        Allow a delta of 1/n or more. Delta is the smaller of 1e-6 and 1/(10 n) unless given.
    rng : numpy.random.Generator, optional
        Seeded noise and halves, for experiments. Unless given, noise is safe in floating point and
        has no seed, as a real release needs it.
    secure : bool
        Refuse a seed.
    score, ridge
        As for :func:`anm`.
    protects : str
        "everyone", or "test set" for the half that gives the residuals, as in chapter 08. Then the
        records of the other half are not protected at all.
    rows_per_person : int
        Rows that one person may have, a public bound. The guarantee is for all rows of a person
        together; with "test set", for the person's rows in the test half.

    Returns
    -------
    PairRelease
        A constant column or many ties are not refused, because a refusal would reveal them: scores
        are then small numbers plus noise.

    Raises
    ------
    ValueError
        If the pair does not have two columns or has fewer than four records, `protects` is unknown,
        or the budget or the noise source is unusable. All are public facts; nothing has run then.

    Notes
    -----
    If everyone is protected, the scores have much noise: with fewer than about 100,000 records the
    direction is little better than a coin toss (chapter 09). :func:`histogram_anm` is better there.

    Privacy
    -------
    (epsilon, delta) for neighbours that replace one record; with "test set", one record of the test
    half. A replaced record is in one half only, so the noise has the scale of the larger
    sensitivity, not of the sum of both. The halves are drawn without using the data. Chapters 08
    and 09, :prf:ref:`thm-everyone`, with the sensitivity of the score: :prf:ref:`thm-hsic-test`,
    and for everyone also :prf:ref:`thm-hsic-training` and :prf:ref:`thm-markov-change`;
    :prf:ref:`thm-anm-ranks`; or :prf:ref:`thm-iqr-distance` and :prf:ref:`thm-tested-release`.

    Examples
    --------
    >>> x, noise = np.random.default_rng(0).uniform(-1, 1, (2, 4000))
    >>> columns = np.column_stack([x, np.sin(6 * x) / 2 + 0.3 * noise])
    >>> pair = Dataset.of_numbers(columns, {"x": (-1, 1), "y": (-1, 1)})
    >>> release = private_anm(pair, epsilon=2.0, protects="test set", rng=np.random.default_rng(1))
    >>> release.direction, release.confidence > 0.9, release.ledger.spent.epsilon <= 2
    (('x', 'y'), True, True)
    """
    if protects not in PROTECTS:
        raise ValueError(f"protects must be one of {PROTECTS}, not {protects!r}")
    score = Hsic() if score is None else score
    ridge = Ridge() if ridge is None else ridge
    account = BasicFilter if getattr(score, "spends_delta", True) else PureFilter
    halves = ("thm-everyone",) if protects == "everyone" else ()
    by = ("private_anm", *halves, *getattr(score, "theorems", ()))
    _check_pair(pair, ridge)
    settings: dict[str, Any] = {"protects": protects, "score": score, "ridge": ridge}
    run = open_run(pair, account=account, numbers=True, records=True, by=by, **settings, **shared)
    look = _Look(pair, run.noise, ridge)
    m = int(look.test.sum())
    change = ridge.change(pair.n - m) if protects == "everyone" else 0.0
    share, delta = (part / 2 * (1 - ROOM) for part in run.account.limit)
    priced = partial(score.release, m=m, change=change, epsilon=share, delta=delta)
    release = partial(priced, account=run.account, noise=run.noise)
    scores = {names: release(partial(look.columns, names)) for names in _directions(pair)}
    return _release(scores, score.scale(m, change, share), protects, run)


@takes_keywords
def histogram_anm(
    pair: Dataset,
    *,
    bins: int | None = None,
    score: DependenceScore | None = None,
    ridge: Ridge | None = None,
    **shared: Unpack[RunKeywords],
) -> PairRelease:
    """Which of two variables causes the other, from one noisy histogram of the pair.

    Parameters
    ----------
    pair, epsilon, delta, allow_delta, rng, secure, score, ridge, rows_per_person
        As for :func:`private_anm`.
    bins : int, optional
        Number of equally wide bins of each public range; chosen by n and the noise unless given.

    Returns
    -------
    PairRelease
        Everyone is protected. The scores are those of records drawn from the histogram, minus the
        scores of controls: equally noisy histograms of independent columns with the same margins.
        There is no confidence, and no direction if no cell exceeds the noise.

    Raises
    ------
    ValueError
        As :func:`private_anm`, or if bins is below 2.

    Privacy
    -------
    (epsilon, delta) for neighbours that replace one record: two cells change by one, so the L2
    sensitivity is sqrt(2). The rest uses the noisy histogram only. Chapters 02 and 03,
    :prf:ref:`thm-gaussian` and :prf:ref:`thm-table-gram`.

    Notes
    -----
    The controls are needed because noise in a table with one wide and one narrow margin looks like
    an additive noise model. Chapter 08.

    Examples
    --------
    >>> x, noise = np.random.default_rng(0).uniform(-1, 1, (2, 4000))
    >>> columns = np.column_stack([x, np.sin(6 * x) / 2 + 0.3 * noise])
    >>> pair = Dataset.of_numbers(columns, {"x": (-1, 1), "y": (-1, 1)})
    >>> histogram_anm(pair, epsilon=2.0, rng=np.random.default_rng(1)).direction
    ('x', 'y')
    """
    _check_pair(pair, ridge)
    by = ("histogram_anm", "thm-gaussian", "thm-table-gram")
    parts: dict[str, Any] = {"score": score, "ridge": ridge}
    run = open_run(pair, numbers=True, records=True, by=by, **parts, bins=bins, **shared)
    counts, deviation = noisy_histogram(pair, run, bins)
    rng = shared.get("rng") or np.random.default_rng()  # what follows is post-processing

    def rescore(counts) -> dict[Direction, float | None]:
        """Scores of records drawn from the cells that exceed the noise; None if there are none."""
        kept = np.where(counts > 2 * deviation, counts, 0.0)
        if not kept.any():
            return dict.fromkeys(_directions(pair))
        return dict(anm(_drawn(pair, kept, rng), rng=rng, **parts).scores)

    scores = rescore(counts)
    if None not in scores.values():
        alone = _independent(counts, pair.n)
        controls = [rescore(rng.normal(alone, deviation)) for _ in range(CONTROLS)]
        scores = {
            names: value - float(np.mean([control[names] or 0.0 for control in controls]))
            for names, value in scores.items()
            if value is not None
        }
    return replace(_release(scores, 0.0, "everyone", run), confidence=None)


def noisy_histogram(pair: Dataset, run: Run, bins: int | None = None) -> tuple[np.ndarray, float]:
    """Counts of the cells of two binned variables, with the noise that a whole budget buys.

    Parameters
    ----------
    pair : Dataset
        A pair with public ranges.
    run : Run
        Its account has spent nothing.
    bins : int, optional
        Bins of each variable; by default as many as the noise allows, 4 to 32.

    Returns
    -------
    counts : array of shape (bins, bins)
    deviation : float
        The deviation of the noise of a cell.

    Privacy
    -------
    As :func:`histogram_anm`, which reads it.
    """
    multiplier = 1 / math.sqrt(2 * run.account.rho * (1 - ROOM))
    deviation = math.sqrt(2) * multiplier
    bins = bins or int(np.clip(math.sqrt(pair.n / (2 * deviation)), 4, 32))
    counts = gaussian(
        lambda: _histogram(pair, bins),
        sensitivity=math.sqrt(2),
        noise_multiplier=multiplier,
        account=run.account,
        noise=run.noise,
    )
    return np.asarray(counts), deviation


def _histogram(pair: Dataset, bins: int) -> np.ndarray:
    codes = pair.binned(bins).codes.astype(int)
    return np.bincount(codes[:, 0] * bins + codes[:, 1], minlength=bins**2).reshape(bins, bins)


def _independent(counts: np.ndarray, n: int) -> np.ndarray:
    """A histogram of n records with independent columns and about the same margins."""
    rows, columns = (np.maximum(counts.sum(axis=axis), 1e-9) for axis in (1, 0))
    return n * np.outer(rows / rows.sum(), columns / columns.sum())


def _drawn(pair: Dataset, weights: np.ndarray, rng: np.random.Generator) -> Dataset:
    """As many records as the data have, drawn from cells by weight, and uniformly within a cell."""
    bins = len(weights)
    cells = rng.choice(weights.size, pair.n, p=weights.ravel() / weights.sum())
    places = np.column_stack(np.unravel_index(cells, weights.shape)) + rng.random((pair.n, 2))
    return Dataset.of_numbers(places * 2 / bins - 1, dict.fromkeys(pair.variables, (-1.0, 1.0)))


def _check_pair(pair: Dataset, ridge: Any):
    check_data(pair, numbers=True, records=True)
    if len(pair.numbers) < pair.d:
        odd = next(name for name in pair.variables if name not in pair.numbers)
        raise ValueError(f"{odd!r} is a category, and a pair holds numbers; give it a range")
    if pair.d != 2:
        raise ValueError(f"a pair has two columns, not {pair.d}; choose two of {pair.variables}")
    if pair.n < FEWEST:
        raise ValueError(f"{pair.n} records cannot be split in halves; give at least {FEWEST}")
    if isinstance(ridge, GaussianRidge):
        ridge.check_size(pair.n // 2)


def _directions(pair: Dataset) -> tuple[Direction, Direction]:
    first, second = pair.variables
    return (first, second), (second, first)


class _Look:
    """Inputs and residuals of the test half, computed once, when they are first needed.

    The halves are drawn without using the data; the other half fits the regression.
    """

    def __init__(self, pair: Dataset, noise: Noise, ridge: Ridge):
        self.pair, self.ridge = pair, ridge
        self.test = np.zeros(pair.n, bool)
        self.test[noise.choose(pair.n, pair.n - pair.n // 2)] = True
        self.columns = cache(self._columns)

    def _columns(self, names: Direction) -> tuple[np.ndarray, np.ndarray]:
        x, y = (self.pair.scaled[:, self.pair.variables.index(name)] for name in names)
        fitted = self.ridge.fit(x[~self.test], y[~self.test])
        return x[self.test], y[self.test] - fitted.predict(x[self.test])


def _release(scores, scale, protects, run) -> PairRelease:
    direction = certainty = None
    if None not in scores.values():
        forth, back = scores
        margin = scores[back] - scores[forth]
        direction, certainty = forth if margin > 0 else back, confidence(abs(margin), scale)
    return PairRelease(direction, scores, certainty, protects, **run.receipt())
