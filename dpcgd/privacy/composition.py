"""How the runs that one account pays for add up."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from dpcgd.privacy.budget import Budget, BudgetSpent, Spent
from dpcgd.privacy.conversions import epsilon_of_rho, renyi_limit, rho_of_budget
from dpcgd.privacy.doubles import ROOM

__all__ = ["Composition", "Reservation"]

ROUNDING = 1e-12
"""Of epsilons and deltas, the last run may get less than it asks for by this part, for rounding."""

Divergence = Callable[[float], float]
"""A run's bound on its Renyi divergence, by the order."""


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
        What it counts where divergences add up: until a run pays with it, as much as a zCDP filter
        may spend.
    """

    epsilon: float
    delta: float
    label: str = ""
    entry: str = field(default="", compare=False)
    system: str = field(default="", compare=False)
    domain: str = field(default="", compare=False)
    divergence: float | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Composition:
    """What adds up over the runs of an account: epsilons and deltas, or Renyi divergences.

    Attributes
    ----------
    budget : Budget
        Of all runs together.
    order : float or None
        Of the divergences, fixed when the account was made; None for epsilons and deltas.

    Privacy
    -------
    Epsilons and deltas add up, whatever the runs are (Dwork et al. 2006; Rogers et al. 2016). If
    the divergences of the runs, each fixed before its run, add up to at most the limit, all that
    they release together satisfies the budget (Feldman and Zrnic 2021); the threat model has the
    proof. A run by a zCDP or Gaussian filter counts its rho times the order, a pure one what
    randomised response has, and a run of which no divergence is proved is refused.
    """

    budget: Budget
    order: float | None = None

    @property
    def name(self) -> str:
        """Its name, as :func:`~dpcgd.privacy.account_file.open_account` takes it."""
        return "renyi" if self.order else "basic"

    def delta_of(self, epsilon: float) -> float:
        """The delta of a run that names none: in proportion, or all of it, as divergences have."""
        share = 1.0 if self.order else min(epsilon / self.budget.epsilon, 1.0)
        return share * self.budget.delta

    def _counted(self, run: Reservation) -> tuple[float, ...]:
        """The amounts of a run that add up."""
        return (run.divergence or 0.0,) if self.order else (run.epsilon, run.delta)

    def _left(self, runs: Sequence[Reservation]) -> list[Fraction]:
        """What the runs leave of each amount, exactly."""
        limits = [self.budget.epsilon, self.budget.delta]
        if self.order:
            limits = [renyi_limit(self.order, self.budget) * (1 - ROOM / 2)]
        counted = [self._counted(run) for run in runs]
        return [
            Fraction(limit) - sum(Fraction(amounts[i]) for amounts in counted)
            for i, limit in enumerate(limits)
        ]

    def remaining(self, runs: Sequence[Reservation]) -> Spent:
        """What one more run may have; a run by a zCDP filter, where divergences add up."""
        left = [at_most(amount) for amount in self._left(runs)]
        if not self.order:
            return Spent(*left)
        epsilon = epsilon_of_rho(max(0.0, left[0]) / self.order, self.budget.delta)
        return Spent(epsilon * (1 - ROOM), self.budget.delta)

    def granted(self, asked: Budget, runs: Sequence[Reservation]) -> Reservation:
        """What was asked for, or, of the last run, an amount that rounding makes less.

        Raises
        ------
        BudgetSpent
            If less is left; where divergences add up, less than a zCDP filter may spend.
        """
        granted, slack = Reservation(asked.epsilon, asked.delta), ROUNDING
        if self.order:
            rho = rho_of_budget(replace(asked, rows_per_person=1))
            granted, slack = replace(granted, divergence=self.order * rho), 0.0
        left = self.remaining(runs)
        for amount, rest in zip(self._counted(granted), self._left(runs), strict=True):
            if Fraction(amount) > rest * (1 + Fraction(slack)):
                raise BudgetSpent(
                    f"epsilon = {left.epsilon:g} at delta = {left.delta:g} left, and "
                    f"{asked.epsilon:g} at {asked.delta:g} was asked for; reserve less"
                )
        if self.order:
            return granted
        return Reservation(min(asked.epsilon, left.epsilon), min(asked.delta, left.delta))

    def paid(
        self, reserved: Reservation, others: Sequence[Reservation], divergence: Divergence
    ) -> Reservation:
        """What a reservation counts once it is known which run pays with it.

        Raises
        ------
        ValueError
            If that is more than what is left.
        """
        if not self.order:
            return reserved
        counted, left = divergence(self.order), self._left(others)[0]
        if not counted <= left:
            raise ValueError(
                f"a Renyi divergence of {at_most(left):.4g} left, and this run may have "
                f"{counted:.4g}, more than a zCDP filter; reserve a smaller epsilon for it"
            )
        return replace(reserved, divergence=counted)


def at_most(amount: Fraction) -> float:
    """The largest double that is not above it."""
    near = float(amount)
    return math.nextafter(near, -math.inf) if Fraction(near) > amount else near
