"""One budget for several releases, kept in a file that is written before each of them."""

import math
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from dpcgd.privacy.budget import ROOM, Budget, BudgetSpent, Spent
from dpcgd.privacy.conversions import epsilon_of_rho, renyi_limit, renyi_order, rho_of_budget
from dpcgd.privacy.sealed_file import check_target, read_sealed, sealed, write_whole

__all__ = ["AccountFile", "Reservation", "ReservedEpsilon", "open_account", "unreserved"]

FORM = "dpcgd account 2"
"""Format of the account files that are written and read."""

LONGEST_WAIT = 10.0
"""Seconds that a run waits if another run is using the account file."""

COMPOSITIONS = ("basic", "renyi")
"""The ways in which the runs of an account add up."""

IN_WORDS = (
    "Each run is written here before it draws noise. An entry with a system is spent, even if the "
    "run ended before its receipt was written and its draws are lost. dpcgd check says so."
)
"""A note that every account file holds for its readers."""

ROUNDING = 1e-12
"""The last run may get an epsilon and a delta that are smaller by this part, for rounding."""

Divergence = Callable[[float], float]
"""A function from an order to a run's bound on its Renyi divergence."""


@dataclass(frozen=True)
class Reservation:
    """An entry of the account: the budget of one run, spent even if the run failed.

    Attributes
    ----------
    epsilon, delta : float
    label : str
    entry : str
        A random identifier that nobody can guess.
    system : str
        The system that paid with this entry; empty before a run has paid.
    domain : str
        Digest of the public domain of the run's data.
    divergence : float or None
        The entry's part of the total if divergences add up; before a run pays, that of a zCDP
        filter.
    """

    epsilon: float
    delta: float
    label: str = ""
    entry: str = field(default="", compare=False)
    system: str = field(default="", compare=False)
    domain: str = field(default="", compare=False)
    divergence: float | None = field(default=None, compare=False)

    @property
    def state(self) -> str:
        """The state of the entry, in words."""
        return f"spent by {self.system}" if self.system else "reserved, no noise was drawn for it"


class ReservedEpsilon(float):
    """The epsilon of a reservation: one run can pay with it, and no other.

    A number computed from it, such as half of it, is an ordinary float and belongs to no account.

    Attributes
    ----------
    account : AccountFile
    entry : str
    label : str or None
        The label of a run that is entered only when it pays; None if it is in the account.
    """

    account: "AccountFile"
    entry: str
    label: str | None

    def __new__(cls, epsilon: float, account: "AccountFile", entry: str, label: str | None = None):
        """Make a reservation; called by :meth:`AccountFile.reserve`."""
        reserved = super().__new__(cls, epsilon)
        reserved.account, reserved.entry, reserved.label = account, entry, label
        return reserved

    def __getnewargs__(self):
        return float(self), self.account, self.entry, self.label


def unreserved(epsilon: Any) -> Any:
    """The epsilon as a plain float; a run on simulated data must not use up a reservation."""
    return float(epsilon) if isinstance(epsilon, ReservedEpsilon) else epsilon


@dataclass(frozen=True)
class AccountFile:
    """One budget for several releases about the same people, kept in a file.

    Make or open one with :func:`open_account`.

    Attributes
    ----------
    path : Path
    budget : Budget
        Of all runs together.
    order : float or None
        Order of the Renyi divergences that add up over the runs, fixed when the account was made;
        None if epsilons and deltas add up.

    Privacy
    -------
    All runs that pay with a reservation of this account are together within its budget, also if
    earlier releases decide later runs. Costs add up by basic composition (Dwork et al. 2006; Rogers
    et al. 2016), or by a Renyi filter (Feldman and Zrnic 2021) of an order that is fixed when the
    account is made. In a Renyi filter a run by a zCDP or Gaussian filter counts its rho times the
    order, a pure run counts the divergence of randomised response, and a run without a proved
    divergence is refused. The threat model has the proof. Before a run spends anything, its
    reservation is on the disk and marked as used, with system and domain: a crash gives nothing
    back, and no second run can pay with it. A deleted or copied file, or a second account, ends the
    guarantee.

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
    order: float | None = None

    @property
    def runs(self) -> tuple[Reservation, ...]:
        """The reservations so far, read from the file."""
        account, runs = _read(self.path)
        if account != self:
            raise ValueError(f"{self.path} is another account by now; open it again")
        return runs

    @property
    def remaining(self) -> Spent:
        """The remaining budget for one more run, read from the file.

        If divergences add up, it is what a run by a zCDP filter may spend.
        """
        return self._as_budget(self._left(self.runs))

    def reserve(
        self, *, epsilon: float, delta: float | None = None, label: str = "", once: bool = False
    ) -> dict[str, Any]:
        """Take a run's budget out of the account, before the run.

        Parameters
        ----------
        epsilon : float
        delta : float, optional
            In proportion to epsilon unless given; the account's delta if divergences add up.
        label : str
            What the run is for.
        once : bool
            Take nothing out yet: the run makes its entry just before it first draws noise, if no
            run with its label is there by then. A run that is refused or ends before has spent
            nothing.

        Returns
        -------
        dict
            ``epsilon``, ``delta`` and ``rows_per_person``, as the systems take them: all three, and
            for one run.

        Raises
        ------
        BudgetSpent
            If the account has less left; then nothing is taken.
        ValueError
            If the budget is unusable, another run is using the file, the file was edited, or `once`
            is asked for and a run with this label has paid already.
        """
        whole = self.budget
        asked = replace(whole, epsilon=epsilon, delta=whole.delta if delta is None else delta)
        if delta is None and not self.order:
            asked = replace(asked, delta=min(asked.epsilon / whole.epsilon, 1.0) * whole.delta)
        if not isinstance(label, str):
            raise ValueError(f"label must be text, not {label!r}")
        entry = secrets.token_hex(16)
        with self._changing() as runs:
            granted = self._granted(asked, _without(label if once else None, runs))
            if not once:
                runs[entry] = replace(granted, label=label, entry=entry)
        paid = ReservedEpsilon(granted.epsilon, self, entry, label if once else None)
        rows = self.budget.rows_per_person
        return {"epsilon": paid, "delta": granted.delta, "rows_per_person": rows}

    def redeem(
        self, reserved: ReservedEpsilon, promised: Budget, system: str, domain: str, divergence
    ) -> None:
        """Pay a run with its reservation, once, before it spends anything.

        Parameters
        ----------
        reserved : ReservedEpsilon
            The epsilon of the reservation; if it has a label, its entry is made now.
        promised : Budget
            The budget of the run, which must be the reserved one.
        system, domain : str
            The system that runs, and the digest of the public domain of its data.
        divergence : callable
            Function from an order to a bound on the run's Renyi divergence.

        Raises
        ------
        ValueError
            If the entry is made now and the account has less left, if the reservation has been
            used, is not in the account or differs from the run's budget, if divergences add up and
            the run's exceeds the rest, or if another run is using the file. No BudgetSpent, which
            a search takes for the end of its own budget.
        """
        entry, label = reserved.entry, reserved.label
        with self._changing(refuses=ValueError) as runs:
            if label is not None and entry not in runs:
                granted = self._granted(promised, _without(label, runs))
                runs[entry] = replace(granted, label=label, entry=entry)
            if entry not in runs:
                raise ValueError("no such reservation; reserve again")
            run = runs[entry]
            if run.system:
                raise ValueError(f"a reservation used by {run.system} already; reserve again")
            budget = replace(self.budget, epsilon=run.epsilon, delta=run.delta)
            if promised != budget:
                cure = "hand on the whole reservation, as **account.reserve(...)"
                raise ValueError(f"{budget!r} reserved, and the run has {promised!r}; {cure}")
            others = [other for other in runs.values() if other is not run]
            counted = self._paid(run, others, divergence)
            runs[entry] = replace(counted, system=system or "a run", domain=domain)

    @contextmanager
    def _changing(self, refuses: type[Exception] | None = None) -> Iterator[dict[str, Reservation]]:
        """Lock the file, read the runs, yield them to be changed, write them, then unlock."""
        with _locked(self.path) as is_ours:
            runs = {run.entry: run for run in self.runs}
            try:
                yield runs
            except (BudgetSpent, ValueError) as error:
                raise (refuses or type(error))(f"{self.path} has {error}") from None
            if not is_ours():
                raise ValueError(f"the lock of {self.path} was taken away meanwhile; try again")
            _write(self, *runs.values())

    def _counted(self, run: Reservation) -> tuple[float, ...]:
        """The amounts of a run that the account adds up."""
        return (run.divergence or 0.0,) if self.order else (run.epsilon, run.delta)

    def _left(self, runs: Sequence[Reservation]) -> list[Fraction]:
        """The rest of each amount after these runs, exactly."""
        limits = [self.budget.epsilon, self.budget.delta]
        if self.order:
            limits = [renyi_limit(self.order, self.budget) * (1 - ROOM / 2)]
        columns = zip(limits, *map(self._counted, runs), strict=True)
        return [Fraction(limit) - sum(map(Fraction, amounts)) for limit, *amounts in columns]

    def _as_budget(self, left: Sequence[Fraction]) -> Spent:
        """The rest as a budget for one more run."""
        if not self.order:
            return Spent(*map(_at_most, left))
        rho = max(0.0, _at_most(left[0])) / self.order
        return Spent(epsilon_of_rho(rho, self.budget.delta) * (1 - ROOM), self.budget.delta)

    def _granted(self, asked: Budget, runs: Sequence[Reservation]) -> Reservation:
        """The requested budget; for the last run it may be smaller by rounding.

        If divergences add up, it counts as much as a zCDP filter may spend.
        """
        granted, slack = Reservation(asked.epsilon, asked.delta), Fraction(ROUNDING)
        if self.order:
            rho = rho_of_budget(replace(asked, rows_per_person=1))
            granted, slack = replace(granted, divergence=self.order * rho), Fraction(0)
        amounts, rests = self._counted(granted), self._left(runs)
        left = self._as_budget(rests)
        if any(a > rest * (1 + slack) for a, rest in zip(amounts, rests, strict=True)):
            rest = f"epsilon = {left.epsilon:g} at delta = {left.delta:g} left"
            wanted = f"{asked.epsilon:g} at {asked.delta:g} was asked for"
            raise BudgetSpent(f"{rest}, and {wanted}; ask for less, or of another account")
        if self.order:
            return granted
        return Reservation(min(asked.epsilon, left.epsilon), min(asked.delta, left.delta))

    def _paid(
        self, reserved: Reservation, others: Sequence[Reservation], divergence: Divergence
    ) -> Reservation:
        """A reservation with the amount that it counts once the paying run is known."""
        if not self.order:
            return reserved
        counted, (left,) = divergence(self.order), self._left(others)
        if not counted <= left:
            rest = f"a Renyi divergence of {_at_most(left):.4g} left"
            problem = f"this run may have {counted:.4g}, more than a zCDP filter"
            raise ValueError(f"{rest}, and {problem}; reserve a smaller epsilon for it")
        return replace(reserved, divergence=counted)

    def __str__(self):
        whole, left = self.budget, self.remaining
        pairs = zip(left, (whole.epsilon, whole.delta), strict=True)
        shown = [f"{rest if rest > ROUNDING * amount else 0:.4g}" for rest, amount in pairs]
        runs = (f"  ({run.epsilon:g}, {run.delta:g}) {run.label}: {run.state}" for run in self.runs)
        return "\n".join([f"{whole!r}, {' and '.join(shown)} of it left", *runs])


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
        Path of a JSON file.
    epsilon, delta : float
        The budget of all runs together. It may be left out once the file exists.
    rows_per_person : int, optional
        Rows that one person may have; 1 unless given.
    composition : str, optional
        What adds up: epsilons and deltas ("basic", the default), or Renyi divergences of one order
        ("renyi"). "renyi" has room for more runs: at (1, 1e-6) for nine of
        :func:`~dpcgd.constraint.priv_pc.priv_pc` at epsilon .3 instead of three. But one run of
        :func:`~dpcgd.tables.private_graph.private_graph` cannot have the whole epsilon, because it
        can cost more than a zCDP filter may spend.

    Returns
    -------
    AccountFile

    Raises
    ------
    ValueError
        If there is neither file nor budget, budget or composition differ from the file's, another
        run is using the file, the file has two names, or it was edited.

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
        budget = Budget(epsilon, delta, 1 if rows_per_person is None else rows_per_person)
        if composition not in (None, *COMPOSITIONS):
            raise ValueError(f"composition must be one of {COMPOSITIONS}, not {composition!r}")
        order = renyi_order(budget) if composition == "renyi" else None
        with _locked(path):
            if not path.exists():
                _write(AccountFile(path, budget, order))
    account, _ = _read(path)
    made_for = {**vars(account.budget), "composition": "renyi" if account.order else "basic"}
    for name, value in zip(made_for, (epsilon, delta, rows_per_person, composition), strict=True):
        if value not in (None, made := made_for[name]):
            raise ValueError(f"{path} was made for {name} = {made}, not {value!r}; make another")
    return account


def _without(label: str | None, runs: Mapping[str, Reservation]) -> list[Reservation]:
    """Refuse if one of the runs has this label."""
    for run in runs.values():
        if run.label == label:
            cure = "move its receipt there if it is elsewhere; else choose another path for out"
            raise ValueError(f"paid for {label} already ({run.state}); {cure}")
    return list(runs.values())


def _resolved(path: Path) -> Path:
    """The real and absolute path of the file, with all links followed."""
    with suppress(OSError, RuntimeError):  # links in a circle, before Python 3.13
        if not (real := path.resolve()).is_symlink():
            return real
    raise ValueError(f"{path} cannot be read: its links lead nowhere")


def _read(path: Path) -> tuple[AccountFile, tuple[Reservation, ...]]:
    content = read_sealed(path, FORM)
    if _resolved(path) != path or path.stat().st_nlink > 1:
        raise ValueError(f"{path} is one file under two names; keep one, and open that again")
    try:
        account = AccountFile(path, Budget(**content["budget"]), content["order"])
        return account, tuple(Reservation(**run) for run in content["runs"])
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"{path} is no {FORM}; take the file as it was written") from None


def _write(account: AccountFile, *runs: Reservation) -> None:
    made_for = {"format": FORM, "budget": vars(account.budget), "order": account.order}
    entries = [vars(run) for run in runs]
    write_whole(account.path, sealed({**made_for, "in_words": IN_WORDS, "runs": entries}))


@contextmanager
def _locked(path: Path) -> Iterator[Callable[[], bool]]:
    """Lock the file; wait while another run is using it.

    Yields a function that says whether the lock is still the one made here.
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
                problem = f"is in use by another run, and was for {LONGEST_WAIT:g} seconds"
                cure = f"wait for it, or delete {lock} if there is none"
                raise ValueError(f"{path} {problem}; {cure}") from None
            time.sleep(0.02)
        except OSError as error:
            raise ValueError(f"{lock} cannot be written: {error.strerror}") from None
    try:
        yield is_ours
    finally:
        if is_ours():
            lock.unlink(missing_ok=True)


def _at_most(amount: Fraction) -> float:
    """The largest double that is not above the value."""
    near = float(amount)
    return math.nextafter(near, -math.inf) if Fraction(near) > amount else near
