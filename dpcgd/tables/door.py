"""One release of a table in a file that a crash cannot lose: account, receipt, then the report."""

import os
import secrets
import signal
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from math import isclose
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from dpcgd.datasets.arguments import check_file, is_real
from dpcgd.datasets.columns import check_rows_per_person
from dpcgd.datasets.counts import Counts
from dpcgd.datasets.csv_files import read_csv, read_texts
from dpcgd.datasets.parquet_files import files_of, read_parquet
from dpcgd.datasets.schema import Schema
from dpcgd.graphs.receipt import CALLED, check_replaceable, content_of
from dpcgd.graphs.release import Release
from dpcgd.graphs.report import form_of
from dpcgd.privacy.account_file import FORM, AccountFile, Reservation, open_account
from dpcgd.privacy.budget import check_positive, delta_for
from dpcgd.privacy.run import check_data
from dpcgd.privacy.sealed_file import check_room, check_target, sealed
from dpcgd.reading.effects import effects
from dpcgd.reading.release import MarginalRelease, read_release
from dpcgd.tables.check_receipt import check_receipt
from dpcgd.tables.private_graph import private_graph, system_for
from dpcgd.tables.public_facts import PublicFacts, check_run

__all__ = ["Kept", "check_files", "read_frame", "read_table", "release_once"]

SIGNALS = {signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}
"""Signals that end a program; they wait until a receipt is written. Windows has two of them."""

DEFAULTS: dict[str, Any] = {"rows_per_person": 1, "knowledge": None, "precision": None}
COMPARED = ("schema", "system", "epsilon", "delta", "aim", *DEFAULTS)
"""What has to be as it was when a release is asked for once more, and some of its defaults."""


class Kept(NamedTuple):
    """A release, and its files on the disk.

    Attributes
    ----------
    release : Release
    path : Path or None
        The path of its receipt; None if no folder could take it.
    spent : bool
        Whether this call has spent budget; else the receipt was there already.
    problems : tuple of str
        One line for each file that could not be written.
    """

    release: Release
    path: Path | None
    spent: bool
    problems: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """Lines about the spent budget, the place of the receipt, and the problems."""
        promised = self.release.ledger.budget or self.release.ledger.spent
        budget = f"epsilon = {promised.epsilon:g} at delta = {promised.delta:g}"
        was_there = f"{self.path} was there already, of {budget}: nothing was spent or read"
        spent = f"spent {budget}; the receipt is {self.path or 'printed below'}"
        return (spent if self.spent else was_there, *self.problems)

    @property
    def receipt(self) -> str:
        """The text of the receipt, whether or not it could be written."""
        return sealed(content_of(self.release))


def read_table(
    path: str | os.PathLike,
    schema: Any,
    *,
    ids: str | None = None,
    rows_per_person: int = 1,
    ignore: Iterable[str] = (),
    **form: Any,
) -> Counts:
    """Read a table from a file: its ending means a Parquet file or folder, else CSV.

    Parameters
    ----------
    path : path
    schema : Schema, mapping, str or path
    ids : str, optional
        The column with the person of each row, if there is one; nobody may have more rows than
        ``rows_per_person``.
    rows_per_person : int
    ignore : iterable of str
        Other columns to leave out.
    form
        Other arguments of :func:`~dpcgd.datasets.csv_files.read_csv` or
        :func:`~dpcgd.datasets.parquet_files.read_parquet`.

    Raises
    ------
    ValueError
        As these do, or :func:`~dpcgd.datasets.columns.check_rows_per_person`.

    Privacy
    -------
    None: messages are for whoever holds the table.
    """
    read: Callable[..., Counts] = read_parquet if _is_parquet(path) else read_csv
    data = read(path, schema, ignore=ignore if ids is None else [*ignore, ids], **form)
    if ids is not None:
        people = read_frame(path, **form | {"columns": [ids]})[ids]
        check_rows_per_person(people, rows_per_person, data.n)
    return data


def _is_parquet(path) -> bool:
    return Path(path).is_dir() or Path(path).suffix.lower() == ".parquet"


def read_frame(
    path, columns: list[str] | None = None, separator=",", encoding="utf-8", **_
) -> pd.DataFrame:
    """Read a table as a frame of pandas; a release takes a data set instead.

    Parameters
    ----------
    path : path
    columns : list of str, optional
        Columns to read; all by default. Those of a CSV file are text.
    separator, encoding : str, optional
        Format of a CSV file.
    """
    if _is_parquet(path):
        return pd.concat([pd.read_parquet(file, columns=columns) for file in files_of(path)])
    return read_texts(path, columns, separator, encoding)


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

    If the receipt exists already, it is read, and nothing is spent; table and account are not
    compared with it.

    Parameters
    ----------
    table : Counts or callable
        A data set, or a function that reads one; it is called only if there is no receipt.
    schema : Schema, mapping, str or path
    epsilon : float
        Epsilon of this release.
    account : path
        The account file. If there is none, one is made.
    out : path
        The receipt to write.
    report : path, optional
        A page to write, which ends in .html or .md.
    budget : float, optional
        Epsilon of the whole account. An existing account must have been made for it; a new one is
        made for it. A new account is made for `epsilon` by default.
    system : callable
    settings
        Other arguments of the system. By default delta is in proportion to the account's delta.

    Returns
    -------
    Kept

    Raises
    ------
    ValueError, BudgetSpent, ImportError, TypeError
        If anything can be refused before the run; then nothing is spent and nothing is written. An
        error during the run, such as lack of memory, comes after the entry is made. Also if the
        receipt is of another schema, system, epsilon, delta, rows per person, knowledge, precision
        or aim.

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
    given = [check_target(path) for path in (account, out, report) if path is not None]
    account, out, *pages = named = [Path(os.path.realpath(path)) for path in given]
    for page in pages:
        form_of(page)
        check_replaceable(page, CALLED)
    if len({*named}) < len(named):
        raise ValueError("account, out and report are one file; give each its own name")
    if out.exists():
        kept = Kept(_earlier(out, schema, system, epsilon=epsilon, **settings), out, spent=False)
    else:
        data = table() if callable(table) else table
        settings["epsilon"] = epsilon
        kept = _spend(data, schema, account, out, budget, system, settings)
    if report is not None:
        try:
            measured = isinstance(kept.release, MarginalRelease)
            kept.release.report(report, effects=partial(effects, kept.release) if measured else ())
        except Exception as error:  # whatever the error, the release exists
            problem = f"there is a receipt and no report: {error}; the same call tries again"
            kept = kept._replace(problems=(*kept.problems, problem))
    return kept


def _earlier(out: Path, schema: Schema, system: Callable, **asked: Any) -> Release:
    """The release in an existing receipt, if it has this schema, system and settings."""
    release = read_release(out)
    terms, promised = release.terms, release.ledger.budget or release.ledger.spent
    if system is private_graph:
        system = system_for(PublicFacts(schema, terms.n))
    was = {**DEFAULTS, **terms.settings, "schema": dict(terms.rules), "system": terms.system}
    was |= {"epsilon": promised.epsilon, "delta": promised.delta}
    was["rows_per_person"] = terms.rows_per_person
    known = {name: value for name, value in asked.items() if value is not None}
    now = {**DEFAULTS, "aim": "edges", **known, "schema": schema.to_dict()}
    if system.__module__.startswith("dpcgd."):  # another one may call any of ours
        now["system"] = system.__name__
    for name in [name for name in COMPARED if name in was and name in now]:
        old, new = was[name], now[name]
        if not (isclose(old, new, rel_tol=1e-9) if is_real(old) and is_real(new) else old == new):
            raise ValueError(f"{out} holds a release of another {name}; give this one another out")
    return release


def _spend(data, schema, account: Path, out: Path, budget, system, settings) -> Kept:
    """Refuse what can be refused, then run the system and write the receipt."""
    check_data(data, numbers=True)
    if data.rules != schema.to_dict():
        raise ValueError("the table was read with another schema; give that one here too")
    check_run(system, schema, data.n, **settings)
    check_room(out)
    settings |= _paid(data.n, account, out, budget, **settings)
    with _interrupts_wait(), warnings.catch_warnings(action="always"):  # none may end a paid run
        return _keep(system(data, **settings), out)


def _paid(n, path: Path, out: Path, budget, *, epsilon, delta=None, rows_per_person=1, **rest):
    """Reserve the run in the account, which is made if needed; its label is the receipt's path."""
    if path.exists():
        account = open_account(path, epsilon=budget, rows_per_person=rows_per_person)
    else:
        limit = epsilon if budget is None else budget
        check_positive("budget", limit)
        if limit < epsilon:
            raise ValueError(f"budget = {limit:g} is less than epsilon = {epsilon:g}; give more")
        whole = delta_for(n, delta and delta * (limit / epsilon), rest.get("allow_delta", False))
        account = open_account(path, epsilon=limit, delta=whole, rows_per_person=rows_per_person)
    label = (out.relative_to(path.parent) if out.is_relative_to(path.parent) else out).as_posix()
    return account.reserve(epsilon=epsilon, delta=delta, label=label, once=True)


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Delay interrupts that can be caught, and raise the first of them afterwards."""
    met: list[int] = []
    is_main = threading.current_thread() is threading.main_thread()  # it alone gets signals
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
    except Exception as error:  # whatever the error, nothing may be lost
        problem = str(error) or repr(error)
    with suppress(Exception):
        path = Path(tempfile.gettempdir(), f"{out.stem}-{secrets.token_hex(4)}.json")
        release.save(path)
        cure = f"{problem}; the receipt is {path}, move it to {out}"
        return Kept(release, path, spent=True, problems=(cure,))
    return Kept(release, None, spent=True, problems=(f"{problem}; no other file could be written",))


def check_files(paths: Iterable[str | os.PathLike]) -> list[str]:
    """Check receipts, and report the state of each run of an account.

    Parameters
    ----------
    paths : iterable of path
        Receipts and accounts. The receipt of a run is looked for among them, and where
        :func:`release_once` wrote it.

    Returns
    -------
    list of str
        Lines of text.

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
        agreed = check_receipt(path)
        receipts[read_release(path).terms.account_entry] = path
        lines.append(f"{path}: all parts agree; its ledger comes to epsilon = {agreed.epsilon:.6g}")
        lines.append(f"  recomputed by dp-accounting: {', '.join(agreed.recomputed) or 'nothing'}")
        lines.append(f"  taken from this package: {', '.join(agreed.ours) or 'nothing'}")
    for account in accounts:
        lines.append(f"{account.path}: {str(account).splitlines()[0]}")
        lines += (f"  {run.label}: {_became(run, account, receipts)}" for run in account.runs)
    paid = {run.entry for account in accounts for run in account.runs}
    strays = [path for entry, path in receipts.items() if accounts and entry not in paid]
    return lines + [f"{path}: no account that is named here paid for it" for path in strays]


def _became(run: Reservation, account: AccountFile, receipts: dict[str, Path]) -> str:
    spent, beside = f"{run.state}, epsilon = {run.epsilon:g}", account.path.parent / run.label
    with suppress(ValueError):
        receipts = {read_release(beside).terms.account_entry: beside, **receipts}
    if run.entry in receipts:
        return f"{spent}; its receipt is {receipts[run.entry]}"
    lost = "if the run ended before it was written, what was drawn is lost and stays spent"
    missing = f"; no receipt is at {beside}: name it here if it is elsewhere; {lost}"
    return spent + missing * bool(run.system)
