"""One budget for several releases, kept in a file that is written before each of them."""

import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpcgd.privacy.budget import Budget, BudgetSpent, Spent
from dpcgd.privacy.composition import ROUNDING, Composition, Divergence, Reservation
from dpcgd.privacy.conversions import renyi_order
from dpcgd.privacy.sealed_file import check_target, read_sealed, write_sealed

__all__ = ["AccountFile", "ReservedEpsilon", "open_account", "unreserved"]

FORMS = ("dpcgd account 2", "dpcgd account 1")
"""Forms that are read; the first is written."""

LONGEST_WAIT = 10.0
"""Seconds for which a run waits for another one to leave the account file."""

COMPOSITIONS = ("basic", "renyi")
"""The ways in which the runs of an account add up."""


class ReservedEpsilon(float):
    """The epsilon of a reservation: one run can pay with it, and no other.

    What is computed from it, such as half of it, is an ordinary number and belongs to no account.

    Attributes
    ----------
    account : AccountFile
    entry : str
    """

    account: "AccountFile"
    entry: str

    def __new__(cls, epsilon: float, account: "AccountFile", entry: str) -> "ReservedEpsilon":
        """Make one; :meth:`AccountFile.reserve` does."""
        reserved = super().__new__(cls, epsilon)
        reserved.account, reserved.entry = account, entry
        return reserved

    def __getnewargs__(self):
        return float(self), self.account, self.entry


def unreserved(epsilon: Any) -> Any:
    """An epsilon for runs on no data of anybody, which leave a reservation as it is."""
    return float(epsilon) if isinstance(epsilon, ReservedEpsilon) else epsilon


@dataclass(frozen=True)
class AccountFile:
    """One budget for several releases about the same people, kept in a file.

    Make or open one with :func:`open_account`.

    Attributes
    ----------
    path : Path
    composition : Composition
        How the runs add up, and their budget together.

    Privacy
    -------
    All runs that pay with a reservation from here are together within the account's budget, however
    later ones were chosen by what earlier ones released: basic composition (Dwork et al. 2006;
    Rogers et al. 2016), or a Renyi filter (Feldman and Zrnic 2021) of an order that is fixed when
    the account is made. The threat model has the proof. Each reservation is on the disk before the
    run can begin, and is marked as used, by which system and on which domain, before the run spends
    anything: a crash gives nothing back, and no second run can pay with it. Whoever deletes or
    copies the file, or makes a second one, has left the account.

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
    composition: Composition

    @property
    def budget(self) -> Budget:
        """The budget of all runs together."""
        return self.composition.budget

    @property
    def runs(self) -> tuple[Reservation, ...]:
        """What has been reserved so far, read from the file."""
        return self._read()

    @property
    def remaining(self) -> Spent:
        """What is left for one more run, read from the file."""
        return self.composition.remaining(self._read())

    def reserve(
        self, *, epsilon: float, delta: float | None = None, label: str = ""
    ) -> dict[str, Any]:
        """Take a run's budget out of the account, before the run.

        Parameters
        ----------
        epsilon : float
        delta : float, optional
            In proportion to epsilon unless given; the account's where divergences add up.
        label : str
            What the run is for.

        Returns
        -------
        dict
            ``epsilon``, ``delta`` and ``rows_per_person``, as the systems take them: all three, and
            for one run.

        Raises
        ------
        BudgetSpent
            If the account has less left. Nothing is taken then.
        ValueError
            If the budget is none, another run is at the file, or the file is not what was written.
        """
        if delta is None:
            replace(self.budget, epsilon=epsilon)  # refuses what is no epsilon
            delta = self.composition.delta_of(float(epsilon))
        asked = _in_doubles(replace(self.budget, epsilon=epsilon, delta=delta))
        if not isinstance(label, str):
            raise ValueError(f"label must be text, not {label!r}")
        with self._changing() as runs:
            granted = self.composition.granted(asked, runs)
            granted = replace(granted, label=label, entry=secrets.token_hex(16))
            runs.append(granted)
        return {
            "epsilon": ReservedEpsilon(granted.epsilon, self, granted.entry),
            "delta": granted.delta,
            "rows_per_person": self.budget.rows_per_person,
        }

    def redeem(
        self, entry: str, promised: Budget, *, system: str, domain: str, divergence: Divergence
    ) -> None:
        """Pay a run with its reservation, once, before it spends anything.

        Parameters
        ----------
        entry : str
            Of the reservation.
        promised : Budget
            Of the run: what was reserved.
        system, domain : str
            What runs, and the digest of the public domain of its data.
        divergence : callable
            From an order to the Renyi divergence that the run keeps to.

        Raises
        ------
        ValueError
            If the reservation has been used, is not in the account or is not what the run promises,
            if divergences add up and the run's exceeds what is left, or if another run is at the
            file.
        """
        with self._changing() as runs:
            entries = [run.entry for run in runs]
            if not entry or entry not in entries:
                raise ValueError("no such reservation; reserve again")
            place = entries.index(entry)
            reserved = runs.pop(place)
            if reserved.system:
                raise ValueError(f"a reservation used by {reserved.system} already; reserve again")
            budget = replace(self.budget, epsilon=reserved.epsilon, delta=reserved.delta)
            if promised != budget:
                raise ValueError(
                    f"{budget!r} reserved for this run, and it asks for {promised!r}; hand on the "
                    "whole reservation, as **account.reserve(...)"
                )
            counted = self.composition.paid(reserved, runs, divergence)
            runs.insert(place, replace(counted, system=system or "a run", domain=domain))

    @contextmanager
    def _changing(self) -> Iterator[list[Reservation]]:
        """Lock, read, let the list of runs be changed, write: nobody else can write in between."""
        with _locked(self.path) as is_ours:
            runs = list(self._read())
            try:
                yield runs
            except (BudgetSpent, ValueError) as error:
                raise type(error)(f"{self.path} has {error}") from None
            if not is_ours():
                raise ValueError(f"the lock of {self.path} was taken away meanwhile; try again")
            _write(self.path, self.composition, runs)

    def _read(self) -> tuple[Reservation, ...]:
        composition, runs = _read(self.path)
        if composition != self.composition:
            raise ValueError(f"{self.path} is another account by now; open it again")
        return runs

    def __str__(self):
        whole, left = self.budget, self.remaining
        shown = [
            f"{rest if rest > ROUNDING * amount else 0:.4g}"
            for rest, amount in zip(left, (whole.epsilon, whole.delta), strict=True)
        ]
        lines = [f"{whole!r}, {' and '.join(shown)} of it left"]
        lines += [f"  ({run.epsilon:g}, {run.delta:g}) {run.label}".rstrip() for run in self.runs]
        return "\n".join(lines)


def open_account(
    path: str | os.PathLike,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rows_per_person: int | None = None,
    composition: str | None = None,
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
    composition : str, optional
        What adds up: "basic", epsilons and deltas, unless given; with "renyi" the Renyi divergences
        of one order. That has room for more runs: at (1, 1e-6) for nine of
        :func:`~dpcgd.constraint.priv_pc.priv_pc` at epsilon .3, and not for three. One run of
        :func:`~dpcgd.tables.private_graph.private_graph` may not have all of epsilon then, for
        it can cost more than a zCDP filter may spend.

    Returns
    -------
    AccountFile

    Raises
    ------
    ValueError
        If there is no file and no budget, the budget or composition is another than the file's,
        another run is at the file, the file has two names, or it is not what was written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     promise = {"epsilon": 1.0, "delta": 1e-6, "composition": "renyi"}
    ...     account = open_account(f"{folder}/study.json", **promise)
    ...     reserved = [account.reserve(epsilon=0.3) for _ in range(9)]
    ...     round(account.remaining.epsilon, 2)
    0.23
    """
    path = _resolved(check_target(path))
    if not path.exists():
        if epsilon is None or delta is None:
            raise ValueError(f"there is no account {path}; give epsilon and delta to make one")
        rows = 1 if rows_per_person is None else rows_per_person
        new = _composition(composition, _in_doubles(Budget(epsilon, delta, rows)))
        with _locked(path):
            if not path.exists():
                _write(path, new, ())
    account = AccountFile(path, _read(path)[0])
    asked = {"epsilon": epsilon, "delta": delta, "rows_per_person": rows_per_person}
    made_for = {**vars(account.budget), "composition": account.composition.name}
    for name, value in {**asked, "composition": composition}.items():
        if value is not None and value != made_for[name]:
            made = made_for[name]
            raise ValueError(f"{path} was made for {name} = {made}, not {value!r}; leave it out")
    return account


def _composition(name: str | None, budget: Budget) -> Composition:
    if name not in (None, *COMPOSITIONS):
        raise ValueError(f"composition must be one of {COMPOSITIONS}, not {name!r}")
    return Composition(budget, renyi_order(budget) if name == "renyi" else None)


def _in_doubles(budget: Budget) -> Budget:
    return Budget(float(budget.epsilon), float(budget.delta), int(budget.rows_per_person))


def _resolved(path: Path) -> Path:
    """Where the file is, whatever link leads to it and wherever the program goes."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # links in a circle
        raise ValueError(f"{path} cannot be read: its links lead nowhere") from None


def _read(path: Path) -> tuple[Composition, tuple[Reservation, ...]]:
    content = read_sealed(path, *FORMS)
    if _resolved(path) != path or path.stat().st_nlink > 1:
        raise ValueError(f"{path} is one file under two names; keep one, and open that again")
    try:
        composition = Composition(Budget(**content["budget"]), content.get("order"))
        return composition, tuple(Reservation(**run) for run in content["runs"])
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"{path} is no {FORMS[0]}; take the file as it was written") from None


def _write(path: Path, composition: Composition, runs: Sequence[Reservation]) -> None:
    budget, order = vars(composition.budget), composition.order
    content = {"format": FORMS[0], "budget": budget, "order": order}
    write_sealed(path, {**content, "runs": [vars(run) for run in runs]})


@contextmanager
def _locked(path: Path) -> Iterator[Callable[[], bool]]:
    """Keep others from the file meanwhile; wait for who is there.

    Gives a function that says whether the lock is still the one that was made here.
    """
    lock, owner = path.with_name(f"{path.name}.lock"), secrets.token_hex(16)
    latest = time.monotonic() + LONGEST_WAIT

    def is_ours() -> bool:
        with suppress(OSError):
            return lock.read_text() == owner
        return False

    while not is_ours():
        try:
            with open(lock, "x") as file:
                file.write(owner)
        except FileExistsError:
            if time.monotonic() > latest:
                raise ValueError(
                    f"{path} is in use by another run, and was for {LONGEST_WAIT:g} seconds; wait "
                    f"for it, or delete {lock} if there is none"
                ) from None
            time.sleep(0.02)
        except OSError as error:
            raise ValueError(f"{lock} cannot be written: {error.strerror}") from None
    try:
        yield is_ours
    finally:
        if is_ours():
            lock.unlink(missing_ok=True)
