"""A ledger, of a run or of a receipt, added up once more by others."""

import os
from collections.abc import Sequence

import numpy as np

from dpcgd.graphs.receipt import events_of, read_receipt
from dpcgd.privacy.budget import Budget, Spent
from dpcgd.privacy.conversions import zcdp_rho
from dpcgd.privacy.events import Event, GaussianEvent
from dpcgd.privacy.ledger import Ledger

__all__ = ["check_ledger", "check_receipt"]

ROUNDING = 1e-6
"""Of epsilon, by which two ways of computing it may differ."""


def check_receipt(path: str | os.PathLike) -> Spent:
    """Verify that a receipt is what was written, and add its ledger up with dp-accounting.

    Parameters
    ----------
    path : path
        Of what :meth:`~dpcgd.graphs.release.Release.save` wrote.

    Returns
    -------
    Spent
        What the mechanisms in the ledger come to, by dp-accounting, for the unit of the promise; at
        most what was promised. It is computed as if all prices had been fixed beforehand, and is a
        check of the sums: the guarantee is the promise.

    Raises
    ------
    ValueError
        If the file is not what was written, promises nothing, or its ledger exceeds the promise.
        The digest in the file is no signature: it shows accidents and edits by hand, and whoever
        edits with care can make a new one.
    ImportError
        If dp-accounting is not installed.
    """
    content = read_receipt(path)
    promise = content["guarantee"]
    if promise["epsilon"] is None:
        raise ValueError(f"{path} promises nothing, so there is nothing to check")
    terms = (promise[name] for name in ("epsilon", "delta", "rows_per_person"))
    return _added_up(path, events_of(content), Budget(*terms))


def check_ledger(ledger: Ledger) -> Spent:
    """Add a ledger up with dp-accounting, as :func:`check_receipt` does that of a receipt.

    Parameters
    ----------
    ledger : Ledger
        Of any release.

    Returns
    -------
    Spent

    Raises
    ------
    ValueError
        If the ledger promises nothing, or exceeds its promise.
    ImportError
        If dp-accounting is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcgd import laplace_pc, load
    >>> data = load("cancer", n=5000, rng=np.random.default_rng(0))
    >>> release = laplace_pc(data, epsilon=1.0, rng=np.random.default_rng(1))
    >>> check_ledger(release.ledger).epsilon <= 1
    True
    """
    if ledger.budget is None:
        raise ValueError("the ledger promises nothing, so there is nothing to check")
    return _added_up("the run", ledger.events, ledger.budget)


def _added_up(what, events: Sequence[Event], promise: Budget) -> Spent:
    delta = promise.delta - sum(event.delta for event in events)
    epsilon = _epsilon(events, promise.rows_per_person, delta)
    if not epsilon <= promise.epsilon * (1 + ROUNDING):
        raise ValueError(
            f"{what} promises epsilon = {promise.epsilon:g}, and its ledger comes to {epsilon:g}"
        )
    return Spent(epsilon, promise.delta)


def _epsilon(events: Sequence[Event], rows: int, delta: float) -> float:
    """By dp-accounting: Gaussian noise alone exactly, other ledgers by their Renyi divergences.

    The rows of a person move an answer by up to so many sensitivities: as much as one row would
    with noise that is so many times narrower, or for a price that is so many times higher.
    """
    try:
        from dp_accounting import ZCDpEvent, get_epsilon_gaussian
        from dp_accounting.rdp import RdpAccountant
    except ImportError:
        raise ImportError(
            "checking a receipt needs dp-accounting; install it with: pip install dp-accounting"
        ) from None
    if not events:
        return 0.0
    gaussian = [event.noise_multiplier for event in events if isinstance(event, GaussianEvent)]
    if len(gaussian) == len(events):
        together = 1 / np.linalg.norm(1 / np.array(gaussian))
        return float(get_epsilon_gaussian(together / rows, delta))
    orders, epsilon = 1 + np.geomspace(1e-4, 1e8, 100), np.inf
    for width in (2.0, 1.05, 1.002):  # ever closer around the best order
        accountant = RdpAccountant(orders)
        for event in events:
            accountant.compose(ZCDpEvent(rows**2 * zcdp_rho(event)))
        epsilon, best = accountant.get_epsilon_and_optimal_order(delta)
        orders = 1 + (best - 1) * np.geomspace(1 / width, width, 60)
    basic = rows * sum(getattr(event, "epsilon", np.inf) for event in events)
    return float(min(epsilon, basic))
