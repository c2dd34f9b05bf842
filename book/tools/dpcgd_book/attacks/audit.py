"""Audits: the privacy a mechanism really has, and the receipt of a run.

Nothing here is private. It takes data apart that was made up for the purpose.
"""

from collections.abc import Callable
from functools import partial
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import beta

from dpcgd.privacy.events import BoundedRangeEvent, Event, GaussianEvent
from dpcgd.privacy.filters import Account
from dpcgd.privacy.noise import Noise, gaussian_scale, laplace_scale, selection_scale

__all__ = ["Recorder", "Step", "empirical_epsilon", "kind_paid"]

PURE = dict.fromkeys(("Laplace", "above threshold", "distance test", "tested release"), "Laplace")
PURE |= {"permute and flip": "exponential"}
"""The kind of noise of each mechanism that is pure, or pure except with its delta."""

BINS = 100
"""Bins into which real outputs are sorted."""

NOISES: dict[str, tuple[str, Callable]] = {
    "laplace": ("Laplace", laplace_scale),
    "gaussian": ("Gaussian", gaussian_scale),
    "gumbel_max": ("Gumbel", selection_scale),
    "exponential_max": ("exponential", selection_scale),
}
"""The kind of noise that each method of a source draws, and what gives its scale."""


def kind_paid(event: Event) -> str | None:
    """The kind of noise that an event pays for: one draw, and of a sieve all of them."""
    kinds = {GaussianEvent: "Gaussian", BoundedRangeEvent: "Gumbel"}
    return kinds.get(type(event), PURE.get(event.mechanism))


def empirical_epsilon(
    mechanism: Callable[[object], Any],
    data: object,
    neighbour: object,
    *,
    delta: float = 0.0,
    confidence: float = 1 - 1e-9,
    trials: int = 10_000,
) -> float:
    """Lower bound on the epsilon of a mechanism, from watching it on two neighbours.

    Parameters
    ----------
    mechanism : callable
        From a data set to a random output. Real numbers are sorted into bins; other outputs should
        take few values.
    data, neighbour
        Two data sets that differ in one record.
    delta : float
        Of the claim.
    confidence : float
        A mechanism that is (epsilon, delta)-private gets a bound above its epsilon with probability
        at most 1 - confidence.
    trials : int
        Runs on each data set.

    Returns
    -------
    float
        At least 0. The true epsilon may be larger: other neighbours or events may tell more.

    Notes
    -----
    The first half of the runs chooses one event, outputs with the largest estimated likelihood
    ratios; the second half bounds its two probabilities by Clopper and Pearson, so nothing is
    tested twice. Chapter 02, :prf:ref:`thm-audit`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> halved = empirical_epsilon(lambda x: x + rng.laplace(scale=0.5), 0.0, 1.0)
    >>> honest = empirical_epsilon(lambda x: x + rng.laplace(scale=1.0), 0.0, 1.0)
    >>> honest < 1 < halved < 2
    True
    """
    both = [[mechanism(case) for _ in range(trials)] for case in (data, neighbour)]
    first = trials // 2
    kinds = _kinds(both, first)
    counts = partial(np.apply_along_axis, np.bincount, 1, minlength=kinds.max() + 1)
    explored, kept = map(counts, np.split(kinds, [first], axis=1))
    level = (1 - confidence) / 2
    side, event = _most_telling(explored, delta, level)
    often, rare = kept[side, event].sum(), kept[1 - side, event].sum()
    return float(_epsilon_at_least(often, rare, trials - first, delta, level))


def _kinds(both: list[list[Any]], first: int) -> np.ndarray:
    """Number the kinds of output, real ones by bins; one row a data set.

    Bins and kinds follow from the first runs alone; what is new later is of a kind of its own.
    """
    reals: list[Any] = [x for row in both for x in row[:first] if isinstance(x, Real)]
    if len(set(reals)) > BINS:
        edges = np.unique(np.quantile(reals, np.linspace(0, 1, BINS + 1)[1:-1]))
        both = [[_bin(x, edges) if isinstance(x, Real) else x for x in row] for row in both]
    known = dict.fromkeys(x for row in both for x in row[:first])
    number = {kind: i for i, kind in enumerate(known)}
    return np.array([[number.get(x, len(number)) for x in row] for row in both])


def _bin(x: Any, edges: np.ndarray) -> tuple[str, int]:
    return "bin", int(np.searchsorted(edges, x))


def _most_telling(counts: np.ndarray, delta: float, level: float) -> tuple[int, np.ndarray]:
    """Which data set makes which event more likely: the best set of kinds with the top ratios."""
    trials, best = counts[0].sum(), (-np.inf, 0, np.zeros(1, int))
    for side in (0, 1):
        order = np.argsort(-(counts[side] + 1) / (counts[1 - side] + 1), kind="stable")
        often, rare = counts[side, order].cumsum(), counts[1 - side, order].cumsum()
        bounds = _epsilon_at_least(often, rare, trials, delta, level)
        last = int(bounds.argmax())
        if bounds[last] > best[0]:
            best = bounds[last], side, order[: last + 1]
    return best[1:]


def _epsilon_at_least(often, rare, trials, delta, level) -> np.ndarray:
    """Bound from counts of one event, each of its two probabilities wrong with chance `level`."""
    low = np.where(often > 0, beta.ppf(level, often, trials - often + 1), 0.0)
    high = np.where(rare < trials, beta.isf(level, rare + 1, trials - rare), 1.0)
    return np.maximum(0.0, np.log(np.maximum(low - delta, 1e-300) / high))


class Step(NamedTuple):
    """A payment, a choice of records or a draw: what it was about, how wide, and its answer."""

    kind: str
    about: Any
    scale: float
    answer: Any

    def __str__(self):
        return f"{self.kind} noise of scale {self.scale:g}"


class Recorder:
    """An account and a noise source in one, which notes every step of a run.

    Parameters
    ----------
    account : Account
        Who really pays.
    noise : Noise
        Who really draws.

    Attributes
    ----------
    steps : list of Step
    """

    def __init__(self, account: Account, noise: Noise):
        self._account, self._noise = account, noise
        self.steps: list[Step] = []

    def __getattr__(self, name):
        if name not in NOISES:
            return getattr(self._account, name)
        kind, scale_of = NOISES[name]

        def drawn(sensitivity, event):
            draw = getattr(self._noise, name)(sensitivity, event)
            return partial(self._note, kind, draw, scale_of(sensitivity, event))

        return drawn

    def spend(self, *events: Event) -> None:
        """Pay, and note it."""
        self._account.spend(*events)
        self._note("spend", lambda events: None, 0.0, events)

    def choose(self, n: int, m: int) -> np.ndarray:
        """Choose m distinct numbers below n."""
        return self._note("choose", lambda sizes: self._noise.choose(*sizes), 0.0, (n, m))

    def _note(self, kind, draw, scale, about):
        self.steps.append(Step(kind, about, scale, draw(about)))
        return self.steps[-1].answer
