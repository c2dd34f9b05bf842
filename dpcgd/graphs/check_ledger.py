"""A check of a ledger: another library adds it up, and the sum is compared with the promise."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dpcgd.privacy.budget import Budget, growth
from dpcgd.privacy.conversions import zcdp_rho
from dpcgd.privacy.events import ApproximateEvent, Event, GaussianEvent, Neighbours, PureEvent
from dpcgd.privacy.filters import Ledger

__all__ = ["Checked", "check_ledger"]

ROUNDING = 1e-6
"""Relative difference that two computations of epsilon or delta may have."""

BY_ACCOUNTING = ("their sum", "its conversion to (epsilon, delta)")
"""The computations that dp-accounting does for any prices."""

OURS = ("sensitivities",)
"""The facts that rest on the theorems of this book; no accountant can check them."""

THEIRS = {"Gaussian": GaussianEvent, "Laplace": PureEvent}
"""The mechanisms whose price dp-accounting computes from the noise itself."""


class Checked(NamedTuple):
    """The checked total of a ledger for the unit of its promise, and the sources of its figures.

    Attributes
    ----------
    epsilon, delta : float
        At most what was promised.
    recomputed : tuple of str
        The figures that dp-accounting computed without this package.
    ours : tuple of str
        The figures that it was given, which rest on the theorems of this book.
    reread : bool
        Whether the graph was read from the moments again, and was the same.
    """

    epsilon: float
    delta: float
    recomputed: tuple[str, ...]
    ours: tuple[str, ...]
    reread: bool = False


def check_ledger(ledger: Ledger) -> Checked:
    """Add a ledger up with dp-accounting, and compare every part of it with the promise.

    Parameters
    ----------
    ledger : Ledger
        Of any release.

    Returns
    -------
    Checked
        The total of the mechanisms in the ledger. It is computed as if all prices had been fixed
        beforehand, and checks the sums only: the guarantee is the promise.

    Raises
    ------
    ValueError
        If the ledger promises nothing, exceeds its promise in epsilon or delta, reports less use
        than its mechanisms cost, or holds a mechanism for other neighbours.
    ImportError
        If dp-accounting is not installed.

    Notes
    -----
    dp-accounting prices Gaussian noise by its noise multiplier and Laplace noise by its scale. It
    knows no other mechanism of this package: these enter with the price of their theorem in chapter
    02. It adds the prices up and converts the sum, unless the plain sum of epsilons is less.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcgd import laplace_pc, load
    >>> data = load("cancer", n=5000, rng=np.random.default_rng(0))
    >>> release = laplace_pc(data, epsilon=1.0, rng=np.random.default_rng(1))
    >>> checked = check_ledger(release.ledger)
    >>> checked.epsilon <= 1, checked.ours
    (True, ('sensitivities',))
    """
    promise = ledger.budget
    if promise is None:
        raise ValueError("the ledger promises nothing, so there is nothing to check")
    for event in ledger.events:
        zcdp_rho(event)  # refuses what is no price
        if event.neighbours is not Neighbours.REPLACE_ONE:
            priced = f"{event.mechanism} is priced for neighbours that {event.neighbours.value}"
            raise ValueError(f"{priced}, and the promise is for others; price it again")
    checked = _added_up(ledger.events, promise)
    for name, cost in (("epsilon", checked.epsilon), ("delta", checked.delta)):
        if not cost <= (most := getattr(promise, name)) * (1 + ROUNDING):
            raise ValueError(f"it promises {name} = {most:g}, and its ledger comes to {cost:g}")
    said, cost = ledger.spent.epsilon, checked.epsilon
    if not cost <= said * (1 + 10 * ROUNDING):
        raise ValueError(f"the ledger says that epsilon = {said:g} was used, and comes to {cost:g}")
    return checked


def _added_up(events: Sequence[Event], promise: Budget) -> Checked:
    """The cost of the events for all rows of a person, by the method with the least epsilon."""
    rows = promise.rows_per_person
    failing = math.fsum(event.delta * _times(event, rows) for event in events)
    basic = rows * math.fsum(getattr(event, "epsilon", math.inf) for event in events)
    theirs = sorted({f"prices of {event.mechanism}" for event in events if _is_theirs(event)})
    ours = sorted({f"prices of {event.mechanism}" for event in events if not _is_theirs(event)})
    left = promise.delta - failing
    composed = _composed(events, rows, left) if left > 0 and basic > 0 else math.inf
    if not composed < basic:
        return Checked(basic, max(promise.delta, failing), (), (*OURS, *theirs, *ours, "their sum"))
    return Checked(composed, promise.delta, (*theirs, *BY_ACCOUNTING), (*OURS, *ours))


def _is_theirs(event: Event) -> bool:
    return isinstance(event, THEIRS.get(event.mechanism, ()))


def _times(event: Event, rows: int) -> float:
    """The factor from a delta of one row to that of a person: 1 + e^epsilon + ..., a term a row."""
    if rows == 1 or not isinstance(event, ApproximateEvent):
        return 1.0
    most = growth(rows * event.epsilon)
    return most / growth(event.epsilon) if math.isfinite(most) else math.inf


def _composed(events: Sequence[Event], rows: int, delta: float) -> float:
    """The cost by dp-accounting: exact for Gaussian noise alone, else by Renyi divergences.

    The k rows of a person move an answer by up to k sensitivities: as much as one row does if the
    noise is k times narrower. Their Renyi divergence is at most k^2 times that of one row.
    """
    try:
        import dp_accounting.rdp
    except ImportError:
        cure = "install it with: pip install dp-accounting"
        raise ImportError(f"checking a receipt needs dp-accounting; {cure}") from None
    gaussian = [event.noise_multiplier for event in events if isinstance(event, GaussianEvent)]
    if len(gaussian) == len(events):
        together = 1 / np.linalg.norm(1 / np.array(gaussian))
        return float(dp_accounting.get_epsilon_gaussian(together / rows, delta))

    def priced(event):
        if not _is_theirs(event):
            return dp_accounting.ZCDpEvent(rows**2 * zcdp_rho(event))
        if isinstance(event, GaussianEvent):
            return dp_accounting.GaussianDpEvent(event.noise_multiplier / rows)
        return dp_accounting.LaplaceDpEvent(1 / (rows * event.epsilon))

    orders, epsilon = 1 + np.geomspace(1e-4, 1e8, 100), np.inf
    for width in (2.0, 1.05, 1.002):  # ever closer around the best order
        accountant = dp_accounting.rdp.RdpAccountant(orders)
        for event, times in Counter(events).items():
            accountant.compose(priced(event), times)
        epsilon, best = accountant.get_epsilon_and_optimal_order(delta)
        orders = 1 + (best - 1) * np.geomspace(1 / width, width, 60)
    return float(epsilon)
