"""One release from a table in a file, none of which is lost: account, receipt, then the rest."""

import os
import secrets
import signal
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields
from math import isclose
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from dpcgd.datasets.arguments import check_file
from dpcgd.datasets.columns import check_rows_per_person
from dpcgd.datasets.counts import Counts
from dpcgd.datasets.csv_files import read_csv
from dpcgd.datasets.parquet_files import read_parquet
from dpcgd.datasets.schema import (
    Schema,
    draft_schema,
    draft_schema_from_data_not_private,
    read_mapping,
)
from dpcgd.graphs.cpdag import CPDAG
from dpcgd.graphs.drawing import to_svg
from dpcgd.graphs.knowledge import Knowledge
from dpcgd.graphs.receipt import content_of
from dpcgd.graphs.release import Release
from dpcgd.graphs.report import form_of
from dpcgd.privacy import account_file
from dpcgd.privacy.account_file import AccountFile, Reservation, open_account
from dpcgd.privacy.budget import delta_for
from dpcgd.privacy.run import check_data, domain_of
from dpcgd.privacy.sealed_file import check_target, hold_room, sealed, write_whole
from dpcgd.reading.release import read_release
from dpcgd.tables.check_receipt import check_receipt
from dpcgd.tables.private_graph import private_graph
from dpcgd.tables.public_facts import check_run

__all__ = [
    "Kept",
    "check_files",
    "draft_of_codebook",
    "draft_of_table_not_private",
    "read_knowledge",
    "read_table",
    "release_once",
    "write_graph",
]

SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]
"""What ends a program politely; it waits until a receipt is written."""

WAITS = b"\ndpcgd: the budget may be spent by now; this ends once the receipt is written\n"

GRAPHS: dict[str, Callable[[CPDAG], str]] = {
    ".csv": lambda graph: graph.to_frame().to_csv(index=False),
    ".dagitty": CPDAG.to_dagitty,
    ".dot": CPDAG.to_dot,
    ".gml": CPDAG.to_gml,
    ".svg": to_svg,
}
"""A graph is written in one of these forms, by the ending of its file."""


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
        if not self.spent:
            done = f"{self.path} was there already, of {budget}: nothing was spent"
        else:
            done = f"spent {budget}; the receipt is {self.path or 'what follows'}"
        return (done, *self.problems)

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
        check_rows_per_person(_owners(path, ids, **form), rows_per_person, data.n)
    return data


def _is_parquet(path) -> bool:
    return Path(path).is_dir() or Path(path).suffix.lower() == ".parquet"


def _owners(path, ids, separator=",", encoding="utf-8", **_) -> pd.Series:
    if _is_parquet(path):
        return pd.read_parquet(path, columns=[ids])[ids]
    return pd.read_csv(path, usecols=[ids], dtype=str, sep=separator, encoding=encoding)[ids]


def draft_of_codebook(path: str | os.PathLike, **drafted: Any) -> dict[str, dict[str, Any]]:
    """Draft a schema from a JSON file: :func:`~dpcgd.datasets.schema.draft_schema`."""
    return draft_schema(read_mapping(path), **drafted)


def draft_of_table_not_private(
    path: str | os.PathLike, **drafted: Any
) -> dict[str, dict[str, Any]]:
    """Draft a schema off the data in a file. NOT private.

    It calls :func:`~dpcgd.datasets.schema.draft_schema_from_data_not_private`.
    """
    if _is_parquet(path):
        frame = pd.read_parquet(path)
    else:
        check_file(path, "give the path of a table")
        frame = pd.read_csv(path)
    return draft_schema_from_data_not_private(frame, **drafted)


def read_knowledge(path: str | os.PathLike) -> Knowledge:
    """Read from a JSON file what is known beforehand: ``{"tiers": [["age"], ["smoke", "cough"]]}``.

    Raises
    ------
    ValueError
        If it holds no such mapping.
    """
    known = [field.name for field in fields(Knowledge)]
    rule = f'it may say {", ".join(known)}, as in {{"tiers": [["age"], ["smoke", "cough"]]}}'
    content = read_mapping(path, rule)
    for name in content.keys() - known:
        raise ValueError(f"{path} says {name!r}; {rule}")
    return Knowledge(**content)


def write_graph(graph: CPDAG, path: str | os.PathLike) -> None:
    """Write a graph, with its probabilities, in the form that the file's ending names.

    Raises
    ------
    ValueError
        If no form has this ending, or the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_graph(CPDAG("ab", [[False, True], [False, False]]), f"{folder}/graph.csv")
    ...     print((Path(folder) / "graph.csv").read_text().rstrip())
    from,to,directed
    a,b,True
    """
    ending = check_target(path).suffix.lower()
    if ending not in GRAPHS:
        raise ValueError(f"a graph ends in {' or '.join(GRAPHS)}, not in {ending!r}")
    write_whole(path, GRAPHS[ending](graph))


def release_once(
    table: Counts | Callable[[], Counts],
    schema: Any,
    *,
    epsilon: float,
    account: str | os.PathLike,
    out: str | os.PathLike,
    report: str | os.PathLike | None = None,
    delta: float | None = None,
    budget: float | None = None,
    rows_per_person: int = 1,
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
    epsilon, delta : float
        Of this release. Delta is in proportion to the account's unless given.
    account : path
        Of the account file. If there is none, one is made.
    out : path
        Of the receipt.
    report : path, optional
        Of a page that ends in .html or .md.
    budget : float, optional
        Epsilon of the whole account: what it was made for, or, if it has to be made, what it is
        made for; epsilon unless given.
    rows_per_person : int
    system : callable
    settings
        What else the system takes.

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
    the receipt cannot be written to `out` any more, it goes to the first of two other folders that
    takes it, and `problems` says to which.

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
    account, out = check_target(account).resolve(), check_target(out).resolve()
    if report is not None:
        form_of(report)
    _check_apart(account, out, report)
    if out.exists():
        kept = Kept(_earlier(out, schema, epsilon), out, spent=False)
    else:
        data = table() if callable(table) else table
        settings |= {"epsilon": epsilon, "delta": delta, "rows_per_person": rows_per_person}
        kept = _spend(data, schema, account, out, budget, system, settings)
    if report is None:
        return kept
    try:
        kept.release.report(report)
    except Exception as error:  # whatever it is, the release is there
        problem = f"there is a receipt and no report: {error}; the same call tries again"
        return kept._replace(problems=(*kept.problems, problem))
    return kept


def _check_apart(*paths) -> None:
    named = [Path(path).resolve() for path in paths if path is not None]
    if len({*named}) < len(named):
        raise ValueError("account, out and report must be different files; give each its own name")


def _earlier(out: Path, schema: Schema, epsilon: float) -> Release:
    """The release that was made already."""
    release, cure = read_release(out), "another release takes another out"
    promised = release.ledger.budget.epsilon if release.ledger.budget else 0.0
    if not isclose(promised, epsilon, rel_tol=1e-9):
        raise ValueError(
            f"{out} holds a release at epsilon = {promised:g}, not {epsilon:g}; {cure}"
        )
    if dict(release.terms.domain) != domain_of(schema.levels):
        raise ValueError(f"{out} holds a release of another schema; {cure}")
    return release


def _spend(data, schema, account: Path, out: Path, budget, system, settings) -> Kept:
    """Refuse what can be refused, then run and write the receipt."""
    check_data(data, numbers=True)
    if domain_of(data.levels) != domain_of(schema.levels):
        raise ValueError("the table was read with another schema; give that one here too")
    check_run(system, schema, data.n, **settings)
    with hold_room(out) as room:
        settings |= _paid(data.n, account, _label(out, account), budget, **settings)
        with _interrupts_wait(), warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")  # none may end the run once it has spent
            release = system(data, **settings)
            room.close()
            kept = _keep(release, out)
    for warning in said:
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    return kept


def _label(out: Path, account: Path) -> str:
    """What the account calls the run: its receipt, as seen from the account's folder."""
    with suppress(ValueError):
        return out.relative_to(account.parent).as_posix()
    return out.as_posix()


def _paid(n, path: Path, label, budget, *, epsilon, delta, rows_per_person, **_) -> dict[str, Any]:
    """Let the run pay from the account, which is made if it has to be."""
    limit, made_for = epsilon if budget is None else budget, {"rows_per_person": rows_per_person}
    if path.exists():
        account = open_account(path, epsilon=budget, **made_for)
    elif limit < epsilon:
        raise ValueError(f"a budget of {limit:g} is less than epsilon = {epsilon:g}; give more")
    else:
        whole = delta_for(n) if delta is None else delta * (limit / epsilon)
        account = open_account(path, epsilon=limit, delta=whole, **made_for)
    return account.pay_once(epsilon=epsilon, delta=delta, label=label)


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Let what can be caught wait, and end the program afterwards."""
    if threading.current_thread() is not threading.main_thread():  # nothing interrupts another one
        yield
        return
    met: list[int] = []

    def wait(number, _):
        met.append(number)
        with suppress(OSError):
            os.write(2, WAITS)

    before = {number: signal.signal(number, wait) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
    for number in met[:1]:
        signal.raise_signal(number)


def _keep(release: Release, out: Path) -> Kept:
    """Write the receipt to `out`, or else to the first folder that takes it."""
    name, problem = f"{out.stem}-{secrets.token_hex(4)}.json", ""
    for place in (
        lambda: out,
        lambda: Path(tempfile.gettempdir(), name),
        lambda: Path.home() / name,
    ):
        try:
            path = place()
            if path.exists():
                raise ValueError(f"{path} was written by another run meanwhile")
            release.save(path)
        except Exception as error:  # whatever it is, nothing may be lost
            problem = problem or str(error)
            continue
        problems = (f"{problem}; the receipt is {path}, move it to {out}",) if problem else ()
        return Kept(release, path, spent=True, problems=problems)
    return Kept(release, None, spent=True, problems=(f"{problem}, nor anywhere else",))


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
        if account_file.FORM.encode() in path.read_bytes():
            accounts.append(open_account(path))
            continue
        checked = check_receipt(path)
        receipts[_entry(path)] = path
        lines.append(
            f"{path}: all parts agree; its ledger comes to epsilon = {checked.epsilon:.6g}"
        )
        lines.append(f"  recomputed by dp-accounting: {', '.join(checked.recomputed) or 'nothing'}")
        lines.append(f"  taken from this package: {', '.join(checked.ours) or 'nothing'}")
    for account in accounts:
        lines.append(f"{account.path}: {account!s}".partition("\n")[0])
        lines += (f"  {run.label}: {_became(run, account, receipts)}" for run in account.runs)
    return lines


def _entry(path: Path) -> str:
    return read_release(path).terms.account_entry


def _became(run: Reservation, account: AccountFile, receipts: dict[str, Path]) -> str:
    spent = f"{run.state}, epsilon = {run.epsilon:g}"
    beside = account.path.parent / run.label
    with suppress(ValueError):
        if run.entry not in receipts and _entry(beside) == run.entry:
            receipts = {run.entry: beside}
    if run.entry in receipts:
        return f"{spent}; its receipt is {receipts[run.entry]}"
    if not run.system:
        return spent
    lost = "if it was ended before it was written, what was drawn is lost and stays spent"
    return f"{spent}; no receipt is at {beside}: name it here if it is elsewhere; {lost}"
