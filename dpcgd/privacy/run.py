"""Opening and closing a run: what all systems share."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcgd.privacy.account import Account, NoPrivacy
from dpcgd.privacy.budget import Budget
from dpcgd.privacy.doubles import kept_for_rounding
from dpcgd.privacy.filters import Filter
from dpcgd.privacy.noise import noise_source
from dpcgd.privacy.settings import check_data, check_settings

__all__ = ["Run", "open_run", "run_without_privacy"]


@dataclass(frozen=True)
class Run:
    """An open run.

    Attributes
    ----------
    account : Account
        Pays for every mechanism.
    noise : Noise or None
        None where nothing is private.
    guarantee : str
        "proved", "claimed, not proved", or "none".
    secure : bool
    started : float
    """

    account: Any
    noise: Any
    guarantee: str
    secure: bool
    started: float

    def receipt(self) -> dict[str, Any]:
        """What every release holds beside its result: ledger, guarantee, seconds.

        The time depends on the data and no mechanism covers it, so a secure run leaves it out.
        """
        seconds = None if self.secure else time.perf_counter() - self.started
        return {"ledger": self.account.ledger, "guarantee": self.guarantee, "seconds": seconds}


def open_run(
    data: Any,
    *,
    epsilon: float,
    delta: float,
    rng: np.random.Generator | None,
    secure: bool = False,
    account: Callable[[Budget], Account] = Filter,
    coded: bool = True,
    **settings: Any,
) -> Run:
    """Open a run; all that public facts can refuse is refused here, before anything is spent.

    Parameters
    ----------
    data : Dataset or Measurements
        Only its public facts are looked at.
    epsilon, delta : float
        Of more than half a million records, a part of epsilon is kept for rounding.
    rng : numpy.random.Generator
        Seeded noise, for experiments.
    secure : bool
        Floating-point-safe noise without a seed, for real releases.
    account : callable
        From the budget to the account that pays.
    coded : bool
        Whether the system needs levels.
    settings
        By name, those of :func:`~dpcgd.privacy.settings.check_settings`. A statistic without a
        proof takes the run's guarantee.

    Returns
    -------
    Run

    Raises
    ------
    ValueError
        If the data, the budget, the noise source or a setting is unusable.

    Warns
    -----
    UserWarning
        If delta is not below 1/n.
    """
    started = time.perf_counter()
    check_data(data, coded=coded)
    check_settings(data, **settings)
    proved = _is_proved(settings)
    budget = Budget(epsilon, delta)
    noise = noise_source(rng, secure)
    pays = account(Budget(epsilon * (1 - kept_for_rounding(data.n)), delta))
    budget.warn_if_weak(data.n)
    guarantee = pays.guarantee if proved else "claimed, not proved"
    return Run(pays, noise, guarantee, secure, started)


def _is_proved(settings: dict[str, Any]) -> bool:
    """Whether the statistic's sensitivity is a theorem; the default ones' are."""
    statistic = settings.get("statistic")
    if statistic is None:
        return True
    if not hasattr(statistic, "sensitivity"):
        raise ValueError(
            f"{statistic!r} has no sensitivity(n, levels), and a private run needs it; take one "
            "such as KendallZ()"
        )
    return statistic.proved


def run_without_privacy(data: Any, *, coded: bool = True, **settings: Any) -> Run:
    """Open a run that promises nothing; settings are checked as for :func:`open_run`."""
    started = time.perf_counter()
    check_data(data, coded=coded)
    check_settings(data, **settings)
    return Run(NoPrivacy(), None, NoPrivacy.guarantee, False, started)
