"""How the runs that one account pays for add up."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from dpcgd.privacy.budget import Budget, BudgetSpent, Spent
from dpcgd.privacy.conversions import epsilon_of_rho, renyi_limit, renyi_order, rho_of_budget
from dpcgd.privacy.doubles import ROOM

__all__ = ["BasicComposition", "RenyiComposition", "Reservation"]

ROUNDING = 1e-12
"""A part of what is asked for by which the last run may get less than that, for rounding."""


@dataclass(frozen=True)
class Reservation:
    """What one run may spend. It is spent, whatever became of the run.

    Attributes
    ----------
    epsilon, delta : float
    label : str
    entry : str
        What nobody can guess; empty where an earlier version of this package wrote it.
    system : str
        The system that ran with it; empty as long as no run has paid with it.
    domain : str
        Digest of the public domain of that run's data.
    divergence : float or None
        What it counts in a :class:`RenyiComposition`: until a run pays with it, as much as a zCDP
        filter may spend.
    """

    epsilon: float
    delta: float
    label: str = ""
    entry: str = field(default="", compare=False)
    system: str = field(default="", compare=False)
    domain: str = field(default="", compare=False)
    divergence: float | None = field(default=None, compare=False)


@dataclass(frozen=True)
class BasicComposition:
    """Epsilons and deltas add up, whatever the runs are (Dwork et al. 2006; Rogers et al. 2016)."""

    budget: Budget
    order: None = None

    def delta_of(self, epsilon: float) -> float:
        """The delta of a run that names none: in proportion."""
        return min(epsilon / self.budget.epsilon, 1.0) * self.budget.delta

    def remaining(self, runs: Sequence[Reservation]) -> Spent:
        """What is left."""
        return Spent(*(at_most(self._left(name, runs)) for name in Spent._fields))

    def granted(self, asked: Budget, runs: Sequence[Reservation]) -> Reservation:
        """What was asked for, or, of the last run, an amount that rounding makes less.

        Raises
        ------
        BudgetSpent
            If less is left.
        """
        left = self.remaining(runs)
        for name, rest in left._asdict().items():
            if Fraction(getattr(asked, name)) > self._left(name, runs) * (1 + Fraction(ROUNDING)):
                raise BudgetSpent(
                    f"{name} = {rest:g} of {getattr(self.budget, name):g} left, and "
                    f"{getattr(asked, name):g} was asked for"
                )
        return Reservation(min(asked.epsilon, left.epsilon), min(asked.delta, left.delta))

    def _left(self, name: str, runs: Sequence[Reservation]) -> Fraction:
        used = sum(Fraction(getattr(run, name)) for run in runs)
        return Fraction(getattr(self.budget, name)) - used

    def paid(
        self,
        reserved: Reservation,
        others: Sequence[Reservation],
        divergence: Callable[[float], float],
    ) -> Reservation:
        """What a reservation counts once it is known which run pays with it: the same."""
        return reserved


@dataclass(frozen=True)
class RenyiComposition:
    """Renyi divergences of one order add up, which was fixed when the account was made.

    Privacy
    -------
    If the divergences of the runs, each fixed before its run, add up to at most the limit, all that
    they release together satisfies the budget (Feldman and Zrnic 2021); the threat model has the
    proof. A run by a zCDP or Gaussian filter counts its rho times the order, a pure one what
    randomised response has, and a run of which no divergence is proved is refused.
    """

    budget: Budget
    order: float

    @classmethod
    def of_budget(cls, budget: Budget) -> "RenyiComposition":
        """One of the order that suits runs by zCDP filters best."""
        return cls(budget, renyi_order(budget))

    def delta_of(self, epsilon: float) -> float:
        """The delta of a run that names none: the account's, for deltas do not add up."""
        return self.budget.delta

    def remaining(self, runs: Sequence[Reservation]) -> Spent:
        """What one more run by a zCDP filter may have."""
        rho = max(0.0, at_most(self._left(runs))) / self.order
        return Spent(epsilon_of_rho(rho, self.budget.delta) * (1 - ROOM), self.budget.delta)

    def granted(self, asked: Budget, runs: Sequence[Reservation]) -> Reservation:
        """What was asked for.

        Raises
        ------
        BudgetSpent
            If less is left than a zCDP filter may spend of it.
        """
        divergence = self.order * rho_of_budget(replace(asked, rows_per_person=1))
        if divergence > self._left(runs):
            left = self.remaining(runs)
            raise BudgetSpent(
                f"epsilon = {left.epsilon:g} at delta = {left.delta:g} left, and "
                f"{asked.epsilon:g} at {asked.delta:g} was asked for"
            )
        return Reservation(asked.epsilon, asked.delta, divergence=divergence)

    def _left(self, runs: Sequence[Reservation]) -> Fraction:
        limit = renyi_limit(self.order, self.budget) * (1 - ROOM / 2)
        return Fraction(limit) - sum(Fraction(run.divergence or 0.0) for run in runs)

    def paid(
        self,
        reserved: Reservation,
        others: Sequence[Reservation],
        divergence: Callable[[float], float],
    ) -> Reservation:
        """What a reservation counts once it is known which run pays with it.

        Raises
        ------
        ValueError
            If that is more than what is left.
        """
        counted = divergence(self.order)
        if not counted <= self._left(others):
            raise ValueError(
                f"a Renyi divergence of {at_most(self._left(others)):.4g} left, and this run may "
                f"have {counted:.4g}, more than a zCDP filter; reserve a smaller epsilon for it"
            )
        return replace(reserved, divergence=counted)


def at_most(amount: Fraction) -> float:
    """The largest double that is not above it."""
    near = float(amount)
    return math.nextafter(near, -math.inf) if Fraction(near) > amount else near
