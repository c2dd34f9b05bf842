"""One budget for several releases, kept in a file that is written before each of them."""

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from dpcgd.privacy.budget import Budget, BudgetSpent, Spent
from dpcgd.privacy.sealed_file import check_target, read_sealed, write_sealed

__all__ = ["AccountFile", "Reservation", "open_account"]

FORM = "dpcgd account 1"

ROUNDING = 1e-12
"""A part of what is asked for by which the last run may get less than that, for rounding."""


@dataclass(frozen=True)
class Reservation:
    """What one run may spend. It is spent, whatever became of the run.

    Attributes
    ----------
    epsilon, delta : float
    label : str
    """

    epsilon: float
    delta: float
    label: str = ""


@dataclass(frozen=True)
class AccountFile:
    """One budget for several releases about the same people, kept in a file.

    Make or open one with :func:`open_account`.

    Attributes
    ----------
    path : Path
    budget : Budget
        Of all runs together.

    Privacy
    -------
    All runs that reserved their budgets here are together within the account's: basic composition
    (Dwork et al. 2006), for a run may be chosen by what earlier ones released, but budgets do not
    depend on the records (Rogers et al. 2016). Each reservation is on the disk before the run can
    begin, so a crash gives nothing back. Whoever deletes the file, or makes a second one, has left
    the account.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from dpcgd import load, table_pc
    >>> data, rng = load("survey", rng=np.random.default_rng(0)), np.random.default_rng(1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     account = open_account(f"{folder}/study.json", epsilon=1.0, delta=1e-6)
    ...     release = table_pc(data, rng=rng, **account.reserve(epsilon=0.3, label="first look"))
    ...     account.remaining
    Spent(epsilon=0.7, delta=7e-07)
    """

    path: Path
    budget: Budget

    @property
    def runs(self) -> tuple[Reservation, ...]:
        """What has been reserved so far, read from the file."""
        return self._read()

    @property
    def remaining(self) -> Spent:
        """What is left, read from the file."""
        return Spent(*map(_at_most, self._left(self._read())))

    def reserve(
        self, *, epsilon: float, delta: float | None = None, label: str = ""
    ) -> dict[str, Any]:
        """Take a run's budget out of the account, before the run.

        Parameters
        ----------
        epsilon : float
        delta : float, optional
            In proportion to epsilon unless given.
        label : str
            What the run is for.

        Returns
        -------
        dict
            ``epsilon``, ``delta`` and ``rows_per_person``, as the systems take them.

        Raises
        ------
        BudgetSpent
            If the account has less left. Nothing is taken then.
        ValueError
            If the budget is none, another run is at the file, or the file is not what was written.
        """
        asked = self._asked(epsilon, delta)
        if not isinstance(label, str):
            raise ValueError(f"label must be text, not {label!r}")
        with _locked(self.path):
            before = self._read()
            granted = self._granted(asked, before)
            _write(self.path, self.budget, (*before, Reservation(*granted, label)))
        return {**granted._asdict(), "rows_per_person": self.budget.rows_per_person}

    def _asked(self, epsilon, delta) -> Budget:
        if delta is None:
            whole = replace(self.budget, epsilon=epsilon)  # refuses what is no epsilon
            delta = min(whole.epsilon / self.budget.epsilon, 1.0) * self.budget.delta
        return _as_doubles(replace(self.budget, epsilon=epsilon, delta=delta))

    def _granted(self, asked: Budget, before) -> Spent:
        """What was asked for, or, of the last run, an amount that rounding makes less."""
        left = self._left(before)
        for name, rest in zip(Spent._fields, left, strict=True):
            if Fraction(getattr(asked, name)) > rest * (1 + Fraction(ROUNDING)):
                raise BudgetSpent(
                    f"{self.path} has {name} = {float(rest):g} of {getattr(self.budget, name):g} "
                    f"left, and {getattr(asked, name):g} was asked for"
                )
        return Spent(min(asked.epsilon, _at_most(left[0])), min(asked.delta, _at_most(left[1])))

    def _left(self, runs) -> tuple[Fraction, Fraction]:
        epsilon = Fraction(self.budget.epsilon) - sum(Fraction(run.epsilon) for run in runs)
        delta = Fraction(self.budget.delta) - sum(Fraction(run.delta) for run in runs)
        return epsilon, delta

    def _read(self) -> tuple[Reservation, ...]:
        budget, runs = _read(self.path)
        if budget != self.budget:
            raise ValueError(f"{self.path} is another account by now; open it again")
        return runs

    def __str__(self):
        whole, left = self.budget, self.remaining
        lines = [f"{whole!r}, {left.epsilon:.4g} and {left.delta:.4g} of it left"]
        lines += [f"  ({run.epsilon:g}, {run.delta:g}) {run.label}".rstrip() for run in self.runs]
        return "\n".join(lines)


def open_account(
    path: str | os.PathLike,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rows_per_person: int | None = None,
) -> AccountFile:
    """Open the account in a file, or make one for a budget.

    Parameters
    ----------
    path : path
        Of a JSON file.
    epsilon, delta : float
        Of all runs together. They may be left out once the file is there.
    rows_per_person : int, optional
        Rows that one person may have; 1 unless given.

    Returns
    -------
    AccountFile

    Raises
    ------
    ValueError
        If there is no file and no budget, the budget is another than the file's, another run is at
        the file, or the file is not what was written.
    """
    path = check_target(path)
    if not path.exists():
        if epsilon is None or delta is None:
            raise ValueError(f"there is no account {path}; give epsilon and delta to make one")
        rows = 1 if rows_per_person is None else rows_per_person
        budget = _as_doubles(Budget(epsilon, delta, rows))
        with _locked(path):
            if not path.exists():
                _write(path, budget, ())
    budget, _ = _read(path)
    asked = {"epsilon": epsilon, "delta": delta, "rows_per_person": rows_per_person}
    for name, value in asked.items():
        there = getattr(budget, name)
        if value is not None and value != there:
            raise ValueError(f"{path} was made for {name} = {there:g}, not {value!r}; leave it out")
    return AccountFile(path, budget)


def _read(path) -> tuple[Budget, tuple[Reservation, ...]]:
    content = read_sealed(path, FORM)
    try:
        return Budget(**content["budget"]), tuple(Reservation(**run) for run in content["runs"])
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"{path} is no {FORM}; take the file as it was written") from None


def _as_doubles(budget: Budget) -> Budget:
    return Budget(float(budget.epsilon), float(budget.delta), int(budget.rows_per_person))


def _write(path, budget: Budget, runs) -> None:
    write_sealed(
        path,
        {
            "format": FORM,
            "budget": vars(budget),
            "runs": [vars(run) for run in runs],
        },
    )


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keep others from the file meanwhile."""
    lock = path.with_name(f"{path.name}.lock")
    try:
        os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        raise ValueError(
            f"{path} is in use by another run; wait for it, or delete {lock} if there is none"
        ) from None
    except OSError as error:
        raise ValueError(f"{path} cannot be written: {error.strerror}") from None
    try:
        yield
    finally:
        lock.unlink()


def _at_most(amount: Fraction) -> float:
    """The largest double that is not above it."""
    near = float(amount)
    return math.nextafter(near, -math.inf) if Fraction(near) > amount else near
