"""One release from a table in a file, none of which is lost: account, receipt, then the rest."""

import os
import secrets
import signal
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from math import isclose
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from dpcgd.datasets.arguments import check_file
from dpcgd.datasets.columns import check_rows_per_person
from dpcgd.datasets.counts import Counts
from dpcgd.datasets.csv_files import read_csv
from dpcgd.datasets.parquet_files import read_parquet
from dpcgd.datasets.schema import Schema
from dpcgd.graphs.receipt import content_of
from dpcgd.graphs.release import Release
from dpcgd.graphs.report import form_of
from dpcgd.privacy.account_file import FORM, AccountFile, Reservation, open_account
from dpcgd.privacy.budget import delta_for
from dpcgd.privacy.run import check_data, domain_of
from dpcgd.privacy.sealed_file import check_room, check_target, sealed
from dpcgd.reading.effects import effects
from dpcgd.reading.release import MarginalRelease, read_release
from dpcgd.tables.check_receipt import check_receipt
from dpcgd.tables.private_graph import private_graph
from dpcgd.tables.public_facts import check_run

__all__ = ["Kept", "check_files", "read_frame", "read_table", "release_once"]

SIGNALS = {signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}
"""What ends a program politely; it waits until a receipt is written. Windows has two of them."""


class Kept(NamedTuple):
    """A release, and what is on the disk of it.

    Attributes
    ----------
    release : Release
    path : Path or None
        Of its receipt; None if no folder took it.
    spent : bool
        Whether this call has spent; else the receipt was there already.
    problems : tuple of str
        What could not be written, a line each.
    """

    release: Release
    path: Path | None
    spent: bool
    problems: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """What was spent, where the receipt is, and the problems."""
        promised = self.release.ledger.budget or self.release.ledger.spent
        budget = f"epsilon = {promised.epsilon:g} at delta = {promised.delta:g}"
        was_there = f"{self.path} was there already, of {budget}: nothing was spent"
        spent = f"spent {budget}; the receipt is {self.path or 'what follows'}"
        return (spent if self.spent else was_there, *self.problems)

    @property
    def receipt(self) -> str:
        """The text of the receipt, whether or not it could be written."""
        return sealed(content_of(self.release))


def read_table(
    path: str | os.PathLike,
    schema: Any,
    *,
    ids: str = "",
    rows_per_person: int = 1,
    ignore: Iterable[str] = (),
    **form: Any,
) -> Counts:
    """Read a table from a file by its ending: a Parquet file or folder, else CSV.

    Parameters
    ----------
    path : path
    schema : Schema, mapping, str or path
    ids : str
        The column that says whose row it is, if there is one; nobody may have more rows than
        ``rows_per_person``.
    rows_per_person : int
    ignore : iterable of str
        Other columns to leave out.
    form
        What else :func:`~dpcgd.datasets.csv_files.read_csv` or
        :func:`~dpcgd.datasets.parquet_files.read_parquet` takes.

    Raises
    ------
    ValueError
        As they do, or :func:`~dpcgd.datasets.columns.check_rows_per_person`.

    Privacy
    -------
    None: messages are for whoever holds the table.
    """
    read: Callable[..., Counts] = read_parquet if _is_parquet(path) else read_csv
    data = read(path, schema, ignore=[*ignore, ids] if ids else ignore, **form)
    if ids:
        people = read_frame(path, **form | {"columns": [ids]})[ids]
        check_rows_per_person(people, rows_per_person, data.n)
    return data


def _is_parquet(path) -> bool:
    return Path(path).is_dir() or Path(path).suffix.lower() == ".parquet"


def read_frame(
    path, columns: list[str] | None = None, separator=",", encoding="utf-8", **_
) -> pd.DataFrame:
    """Read a table as pandas does, which is not what a release takes.

    Parameters
    ----------
    path : path
    columns : list of str, optional
        Those to read, as text; all unless given.
    separator, encoding : str, optional
        Of a CSV file.
    """
    if _is_parquet(path):
        return pd.read_parquet(path, columns=columns)
    kind = None if columns is None else str
    return pd.read_csv(path, usecols=columns, dtype=kind, sep=separator, encoding=encoding)


def release_once(
    table: Counts | Callable[[], Counts],
    schema: Any,
    *,
    epsilon: float,
    account: str | os.PathLike,
    out: str | os.PathLike,
    report: str | os.PathLike | None = None,
    budget: float | None = None,
    system: Callable[..., Release] = private_graph,
    **settings: Any,
) -> Kept:
    """Release a table once: the account is written first, then the receipt, then the report.

    Where the receipt is there already it is read, and nothing is spent.

    Parameters
    ----------
    table : Counts or callable
        A data set, or what reads one; it is called only if there is no receipt.
    schema : Schema, mapping, str or path
    epsilon : float
        Of this release.
    account : path
        Of the account file. If there is none, one is made.
    out : path
        Of the receipt.
    report : path, optional
        Of a page that ends in .html or .md.
    budget : float, optional
        Epsilon of the whole account: what it was made for, or, if it has to be made, what it is
        made for; epsilon unless given.
    system : callable
    settings
        What else the system takes. Delta is in proportion to the account's unless given.

    Returns
    -------
    Kept

    Raises
    ------
    ValueError, BudgetSpent, ImportError
        If anything can be refused: then nothing is spent and nothing is written. If the receipt is
        of another schema or epsilon.

    Privacy
    -------
    As the system. An entry is in the account, on the disk, before noise is drawn, and the receipt
    is written as soon as there is a release. So a program that is killed at any moment leaves one
    of three states: no entry, and nothing was drawn; entry and receipt; or an entry without a
    receipt. In the third, what was drawn is lost and stays spent, `out` is refused from then on,
    and :func:`check_files` says so. An interrupt that can be caught waits for the receipt. Where
    the receipt cannot be written to `out` any more, it goes to the folder of temporary files, and
    `problems` says so.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcgd import Schema, load
    >>> data = load("cancer", rng=np.random.default_rng(0))
    >>> schema = Schema(data.rules)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = {"account": f"{folder}/study.json", "out": f"{folder}/release.json"}
    ...     first = release_once(data, schema, epsilon=1.0, rng=np.random.default_rng(1), **files)
    ...     second = release_once(data, schema, epsilon=1.0, **files)
    >>> first.spent, second.spent, second.release == first.release
    (True, False, True)
    """
    schema = Schema.of(schema)
    named = [check_target(path).resolve() for path in (account, out, report) if path is not None]
    account, out, *pages = named
    for page in pages:
        form_of(page)
    if len({*named}) < len(named):
        raise ValueError("account, out and report are one file; give each its own name")
    if out.exists():
        kept = Kept(_earlier(out, schema, epsilon), out, spent=False)
    else:
        data = table() if callable(table) else table
        settings["epsilon"] = epsilon
        kept = _spend(data, schema, account, out, budget, system, settings)
    if report is not None:
        try:
            measured = isinstance(kept.release, MarginalRelease)
            kept.release.report(report, effects=effects(kept.release) if measured else ())
        except Exception as error:  # whatever it is, the release is there
            problem = f"there is a receipt and no report: {error}; the same call tries again"
            kept = kept._replace(problems=(*kept.problems, problem))
    return kept


def _earlier(out: Path, schema: Schema, epsilon: float) -> Release:
    """The release that was made already."""
    release = read_release(out)
    promised = (release.ledger.budget or release.ledger.spent).epsilon
    is_same = dict(release.terms.domain) == domain_of(schema.levels)
    if not (is_same and isclose(promised, epsilon, rel_tol=1e-9)):
        other = f"of {'this' if is_same else 'another'} schema at epsilon = {promised:g}"
        raise ValueError(f"{out} holds a release {other}; give this one another out")
    return release


def _spend(data, schema, account: Path, out: Path, budget, system, settings) -> Kept:
    """Refuse what can be refused, then run and write the receipt."""
    check_data(data, numbers=True)
    if domain_of(data.levels) != domain_of(schema.levels):
        raise ValueError("the table was read with another schema; give that one here too")
    check_run(system, schema, data.n, **settings)
    check_room(out)
    settings |= _paid(data.n, account, out, budget, **settings)
    with _interrupts_wait(), warnings.catch_warnings(action="always"):  # none may end it once paid
        return _keep(system(data, **settings), out)


def _paid(n, path: Path, out: Path, budget, *, epsilon, delta=None, rows_per_person=1, **_) -> dict:
    """Let the run pay from the account, which is made if it has to be, under its receipt's name."""
    if path.exists():
        account = open_account(path, epsilon=budget, rows_per_person=rows_per_person)
    else:
        limit = epsilon if budget is None else budget
        if limit < epsilon:
            raise ValueError(f"budget = {limit:g} is less than epsilon = {epsilon:g}; give more")
        whole = delta_for(n) if delta is None else delta * (limit / epsilon)
        account = open_account(path, epsilon=limit, delta=whole, rows_per_person=rows_per_person)
    inside = out.is_relative_to(path.parent)
    label = (out.relative_to(path.parent) if inside else out).as_posix()
    return account.reserve(epsilon=epsilon, delta=delta, label=label, once=True)


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Let what can be caught wait, and end the program afterwards."""
    met: list[int] = []
    is_main = threading.current_thread() is threading.main_thread()  # others meet none
    meets = SIGNALS if is_main else ()
    before = {number: signal.signal(number, lambda got, _: met.append(got)) for number in meets}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
    for number in met[:1]:
        signal.raise_signal(number)


def _keep(release: Release, out: Path) -> Kept:
    """Write the receipt to `out`, or else to the folder of temporary files."""
    try:
        if out.exists():
            raise ValueError(f"{out} was written by another run meanwhile")
        release.save(out)
        return Kept(release, out, spent=True)
    except Exception as error:  # whatever it is, nothing may be lost
        problem = str(error) or repr(error)
    with suppress(Exception):
        path = Path(tempfile.gettempdir(), f"{out.stem}-{secrets.token_hex(4)}.json")
        release.save(path)
        cure = f"{problem}; the receipt is {path}, move it to {out}"
        return Kept(release, path, spent=True, problems=(cure,))
    return Kept(release, None, spent=True, problems=(f"{problem}, nor can any other file",))


def check_files(paths: Iterable[str | os.PathLike]) -> list[str]:
    """Check receipts, and say of each run of an account what has become of it.

    Parameters
    ----------
    paths : iterable of path
        Receipts and accounts. The receipt of a run is sought among them, and where
        :func:`release_once` wrote it.

    Returns
    -------
    list of str
        Lines to read.

    Raises
    ------
    ValueError, ImportError
        As :func:`~dpcgd.tables.check_receipt.check_receipt` and
        :func:`~dpcgd.privacy.account_file.open_account`.
    """
    lines, accounts, receipts = [], [], {}
    for path in map(Path, paths):
        check_file(path, "give the paths of receipts and accounts")
        if FORM.encode() in path.read_bytes():
            accounts.append(open_account(path))
            continue
        checked = check_receipt(path)
        receipts[read_release(path).terms.account_entry] = path
        lines += [
            f"{path}: all parts agree; its ledger comes to epsilon = {checked.epsilon:.6g}",
            f"  recomputed by dp-accounting: {', '.join(checked.recomputed) or 'nothing'}",
            f"  taken from this package: {', '.join(checked.ours) or 'nothing'}",
        ]
    for account in accounts:
        lines.append(f"{account.path}: {str(account).splitlines()[0]}")
        lines += (f"  {run.label}: {_became(run, account, receipts)}" for run in account.runs)
    return lines


def _became(run: Reservation, account: AccountFile, receipts: dict[str, Path]) -> str:
    spent, beside = f"{run.state}, epsilon = {run.epsilon:g}", account.path.parent / run.label
    with suppress(ValueError):
        receipts = {read_release(beside).terms.account_entry: beside, **receipts}
    if run.entry in receipts:
        return f"{spent}; its receipt is {receipts[run.entry]}"
    lost = "if it was ended before it was written, what was drawn is lost and stays spent"
    missing = f"; no receipt is at {beside}: name it here if it is elsewhere; {lost}"
    return spent + missing * bool(run.system)
