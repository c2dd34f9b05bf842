"""A ledger added up once more by others, against the promise that it was kept for."""

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
"""Of epsilon or delta, by which two ways of computing it may differ."""

BY_ACCOUNTING = ("their sum", "its conversion to (epsilon, delta)")
"""Of prices: dp-accounting computes it whatever the prices are."""

OURS = ("sensitivities",)
"""No accountant knows them: they are theorems about what is released."""

THEIRS = {"Gaussian": GaussianEvent, "Laplace": PureEvent}
"""dp-accounting knows the noise of these mechanisms, and not only what our theorem says of it."""


class Checked(NamedTuple):
    """What a ledger comes to for the unit of its promise, and whose figures that rests on.

    Attributes
    ----------
    epsilon, delta : float
        At most what was promised.
    recomputed : tuple of str
        What dp-accounting computed without a line of this package.
    ours : tuple of str
        What it was given, and rests on the theorems of this book.
    reread : bool
        Whether the graph was read from the moments once more, and came out the same.
    """

    epsilon: float
    delta: float
    recomputed: tuple[str, ...]
    ours: tuple[str, ...]
    reread: bool = False


def check_ledger(ledger: Ledger) -> Checked:
    """Add a ledger up with dp-accounting, and hold every part of it against the promise.

    Parameters
    ----------
    ledger : Ledger
        Of any release.

    Returns
    -------
    Checked
        What the mechanisms in the ledger come to. It is computed as if all prices had been fixed
        beforehand, and is a check of the sums: the guarantee is the promise.

    Raises
    ------
    ValueError
        If the ledger promises nothing, exceeds its promise in epsilon or delta, says that less was
        used than its mechanisms cost, or holds a mechanism that is proved for other neighbours.
    ImportError
        If dp-accounting is not installed.

    Notes
    -----
    dp-accounting prices Gaussian noise by its noise multiplier and Laplace noise by its scale. It
    has no other mechanism of this package: those enter with what their theorem in chapter 02 says.
    It adds the prices up and converts the sum, unless the plain sum of epsilons is less.

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
    """What the events cost for all rows of a person, by the way that gives the least epsilon."""
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
    """How often the delta of one row counts for a person: 1 + e^epsilon + ..., a term a row."""
    if rows == 1 or not isinstance(event, ApproximateEvent):
        return 1.0
    most = growth(rows * event.epsilon)
    return most / growth(event.epsilon) if math.isfinite(most) else math.inf


def _composed(events: Sequence[Event], rows: int, delta: float) -> float:
    """What dp-accounting says: of Gaussian noise alone exactly, else by Renyi divergences.

    The rows of a person move an answer by up to so many sensitivities: as much as one row would
    with noise that is so many times narrower. The Renyi divergence of a person with so many rows is
    at most their square times one row's.
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
