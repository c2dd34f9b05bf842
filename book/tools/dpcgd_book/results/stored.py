"""Full results, kept in the repository; a build repeats some and runs others like them.

A figure needs hundreds of runs, a build has time for a few. So the runs are on file, in
``book/stored/<chapter>/<name>.parquet``, a row each, and ``made.json`` beside says when and with
what they were made. ``make results`` makes them anew. What a build compares with them are runs
repeated from their seeds, which notice a change of the noise, and fresh ones, which would notice
results that nobody else gets.
"""

import io
import json
import math
import os
import platform
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from dpcgd.privacy.sealed_file import write_whole
from dpcgd_book.results.record import checkout, results_folder
from dpcgd_book.results.sweep import CLUSTER, sweep, sweep_file

__all__ = ["LARGE", "WITHOUT_PRIVACY", "FullResults", "all_cases", "best_without_privacy"]
__all__ += ["by_cell", "keep", "made_of", "origin", "repeats", "rows_on_file"]
__all__ += ["standard_errors_apart", "stored_folder", "system_table", "telling", "yardsticks"]

LARGE = ("child", "alarm")
"""Networks of the book on which a run takes long."""

WITHOUT_PRIVACY = ("PC", "PC-adjusted", "hill-climbing", "GES", "BOSS", "GRaSP")
"""The searches without privacy in the table of chapter 17."""

RENEW = "DPCGD_RENEW"
"""An environment variable: full results are made anew, whatever is on file."""

FRESH = 1000
"""Runs that check begin with this number; those on file stay below."""

LIMIT = 6.0
"""Standard errors between fresh runs and those on file at which they disagree.

On normal differences the false alarm is 2e-9 a comparison; a test draws fresh runs from those on
file, for every table, and finds none near it.
"""

STRAY = 3
"""Of so many repeated runs one may differ; of fewer, none.

Elsewhere the last digit of an optimiser or of an eigenvalue may flip an edge; in 36 runs with the
oldest kernels of OpenBLAS and loops of numpy it flipped none, and if it were one run in thirty,
three of eight would differ in one table of seven hundred. Where one generator serves several
systems in turn, though, a flip shifts all draws after it: of four such runs two differed, so they
are not repeated. Half of the noise changes four to ten in ten of the runs in which noise shows.
Tables whose compared results are single answers, right or wrong, notice less: about one in ten.
"""


def stored_folder() -> Path:
    """Where full results are kept in the checkout that surrounds the package or the notebook."""
    return checkout(Path(__file__).resolve(), Path.cwd()) / "book" / "stored"


def yardsticks() -> pd.DataFrame:
    """What a practitioner would use instead, as ``benchmarks/yardsticks.py`` scored it.

    Returns
    -------
    DataFrame
        A row for each system, network, n, epsilon and run. Epsilon is infinite without privacy. A
        case that took too long has no scores and a reason in ``why_not``. Records are those of
        :func:`dpcgd_book.results.larger_networks.drawn` for the same run and seed.

    Examples
    --------
    >>> rows = yardsticks()
    >>> sorted(rows.system[rows.epsilon == 1].unique())
    ['AIM', 'MST']
    """
    return rows_on_file(stored_folder() / "yardsticks", "scores")


def system_table() -> pd.DataFrame:
    """The table of chapter 17, a row a run."""
    return rows_on_file(stored_folder() / "17_which_one_should_i_use", "table")


def best_without_privacy(n: int, score: str = "F1") -> pd.Series:
    """Of each network the best mean of the six systems without privacy in chapter 17's table."""
    rows = system_table()
    rows = rows[rows.system.isin(WITHOUT_PRIVACY) & (rows.n == n)]
    return rows.groupby(["network", "system"])[score].mean().unstack().max(axis=1)


def standard_errors_apart(
    fresh: Sequence[float], stored: Sequence[Sequence[float]], usual: float
) -> float:
    """The mean of fresh runs against the runs on file of the same cells, in standard errors.

    Parameters
    ----------
    fresh : sequence of float
        One new value for each of some cells.
    stored : sequence of sequences of float
        At least two values on file of each of these cells.
    usual : float
        The mean variance of all cells on file. A cell counts with no less: a few equal values do
        not say that it never varies.

    Returns
    -------
    float
        The sum of the differences over its standard error.

    Examples
    --------
    >>> standard_errors_apart([0.9, 0.9], [[0.7, 0.8, 0.9], [0.8, 0.8, 0.8]], 0.01)
    1.224...
    """
    variances = [max(usual, float(np.var(own, ddof=1))) * (1 + 1 / len(own)) for own in stored]
    error = math.sqrt(sum(variances))
    apart = math.fsum(f - np.mean(values) for f, values in zip(fresh, stored, strict=True))
    if abs(apart) < 1e-6 * max([1, *map(abs, fresh)]):  # the file has six digits
        return 0.0
    return apart / error if error else math.copysign(math.inf, apart)


def all_cases(networks: Iterable[str], runs: int, on_large: int, **over) -> list[dict]:
    """Cases for full results: all combinations of settings, on so many samples of each network.

    Parameters
    ----------
    networks : iterable of str
    runs, on_large : int
        Samples of a network, and of one in `LARGE`.
    **over
        From the name of a setting to all its values, or to its only one.

    Examples
    --------
    >>> all_cases(["asia"], 1, 1, epsilon=[0.1, 1.0], seed=0)[1]
    {'network': 'asia', 'epsilon': 1.0, 'seed': 0, 'run': 0}
    """
    lists = [[v] if isinstance(v, str | int | float) else v for v in over.values()]
    return [
        {"network": name, **dict(zip(over, values, strict=True)), "run": run}
        for name, values in product(networks, product(*lists))
        for run in range(on_large if name in LARGE else runs)
    ]


class FullResults:
    """The full results of one chapter.

    Parameters
    ----------
    chapter : str
        The notebook's name without its ending.
    profile : str
        "paper" runs everything here and now, as ``make results`` does: on the cores of this machine
        or, if the environment has an address in ``DPCGD_CLUSTER``, on a Dask cluster.
    seed : int
        Of the sample that is run again.

    Attributes
    ----------
    complete : bool
        Whether every table so far was a full one.
    """

    def __init__(self, chapter: str, *, profile: str, seed: int):
        self.chapter, self.seed, self.complete = chapter, seed, True
        self._renews = profile == "paper" or bool(os.environ.get(RENEW))
        self._told: dict[str, str] = {}
        self._command = f"make results CHAPTER={chapter[:2]}"
        self._cure = f"if the package was meant to change: {self._command}"

    def rows(
        self,
        name: str,
        task: Callable[..., dict],
        cases: Iterable[dict],
        *,
        few: Iterable[dict],
        compare: str,
        rerun: int = 6,
        repeat: int = 8,
        sample: Callable[[pd.DataFrame], pd.Series] | None = None,
        but: Sequence[str] = (),
    ) -> pd.DataFrame:
        """The runs of a table or figure, one a row.

        Parameters
        ----------
        name : str
            Of the table, a file name without its ending.
        task : callable
            Called as ``task(**case)``; returns a dictionary of numbers, texts and None.
        cases : iterable of dict
            All of them, of numbers and texts; each has a ``run`` and a ``seed``, on which the
            task's random numbers depend, and at least two runs of each cell.
        few : iterable of dict
            Cases to run if these are not on file, as after a change of the chapter's parameters.
        compare : str
            The result in which fresh runs have to agree with those on file.
        rerun : int
            Cells to run again.
        repeat : int
            Runs on file to repeat from their seeds. They are drawn from those in which noise shows,
            :func:`telling`.
        sample : callable, optional
            From the table to which of its rows may be repeated: those that take little time, or
            have noise.
        but : sequence of str
            Results that a repeated run need not give again, as seconds.

        Returns
        -------
        DataFrame
            A column for each entry of the cases and of the results.

        Raises
        ------
        AssertionError
            If in more than one of three repeated runs half of the results are other ones than on
            file, or if fresh runs and those on file are more than six standard errors apart.
        """
        cases = list(cases)
        if self._renews:
            return self._made_anew(name, task, cases, compare)
        kept = _on_file(stored_folder() / self.chapter, name, cases)
        if kept is None:
            self.complete, few = False, list(few)
            self._told[name] = f"{_runs(few)} of each in this build"
            return pd.DataFrame(sweep(task, few))
        if repeat:
            may = kept if sample is None else kept[sample(kept)]
            self._repeat(name, task, may, list(cases[0]), compare, repeat, but)
        self._compare(name, task, kept, _cell(cases[0]), compare, rerun)
        date = made_of(stored_folder() / self.chapter)[name]["date"]
        since = f"{_runs(cases)} of each, on file since {date}; {rerun} cells were run again"
        self._told[name] = since + f", {repeat} runs repeated from their seeds" * bool(repeat)
        return kept

    def kept(
        self, name: str, task: Callable, *, sample: Callable, compare: str, rerun: int = 6
    ) -> pd.DataFrame:
        """The runs of a table that a script of its own makes; no profile makes them anew.

        Its rows may be of several versions of the code, so the chapter itself repeats some of them,
        by :func:`repeats`.

        Parameters
        ----------
        name, task, compare, rerun
            As for :meth:`rows`; with `rerun` at 0, as for a table of one run each, nothing is run.
        sample : callable
            From the table to which of its rows may be run again: those that take little time.

        Returns
        -------
        DataFrame

        Raises
        ------
        AssertionError
            If fresh runs and those on file are more than six standard errors apart.
        """
        folder = stored_folder() / self.chapter
        kept, about = rows_on_file(folder, name), made_of(folder)[name]
        if rerun:
            self._compare(name, task, kept[sample(kept)], about["cell"], compare, rerun)
        self._told[name] = f"on file since {about['date']}; {rerun} cells were run again"
        return kept

    def told(self, name: str) -> str:
        """How many runs a table rests on and where they are from, for its caption."""
        return self._told[name]

    def _made_anew(self, name, task, cases, compare) -> pd.DataFrame:
        (path, version), title = sweep_file(), f"{self.chapter}.{name}"
        where: dict = {"workers": os.cpu_count() or 1, "cluster": os.environ.get(CLUSTER)}
        rows = sweep(task, cases, path=path, name=title, version=version, **where)
        folder = results_folder() / "full" / self.chapter
        keep(folder, name, pd.DataFrame(rows), cases, compare, made_by=self._command)
        self._told[name] = f"{_runs(cases)} of each, made in this build"
        return _on_file(folder, name, cases)

    def _repeat(self, name, task, rows, keys, compare, repeat, but):
        cell = _cell(keys)
        rows = rows[telling(rows, cell, compare)]
        rng = np.random.default_rng([self.seed, zlib.crc32(name.encode()), 1])
        chosen = rng.choice(len(rows), min(repeat, len(rows)), replace=False)
        others = rows.columns.difference([*cell, "run", "seed", compare, *but], sort=False)
        varying = others[by_cell(rows, cell)[list(others)].nunique().max() > 1]
        repeated = repeats(task, rows.iloc[chosen], keys, [compare, *varying])
        off = repeated[~repeated["same"]].drop(columns="same").to_dict("records")
        assert len(off) <= len(repeated) // STRAY, (
            f"{self.chapter}, {name}: {len(off)} of {len(repeated)} runs repeated from their seeds "
            f"differ from the results on file, the first with {off[0]}; {self._cure}"
        )

    def _compare(self, name, task, kept, cell, compare, rerun):
        groups = kept.groupby(cell, sort=False)[compare]
        values = {key: own for key, runs in groups if len(own := runs.dropna().tolist()) > 1}
        rng, cells = np.random.default_rng([self.seed, zlib.crc32(name.encode())]), [*values]
        chosen = rng.choice(len(cells), min(rerun, len(cells)), replace=False)
        runs = [(*cells[k], FRESH + i, self.seed) for i, k in enumerate(chosen)]
        cases = (as_written(dict(zip([*cell, "run", "seed"], run, strict=True))) for run in runs)
        fresh = [row for row in sweep(task, cases) if row[compare] is not None]
        stored = [values[tuple(row[key] for key in cell)] for row in fresh]
        usual = float(np.mean([np.var(own, ddof=1) for own in values.values()]))
        apart = standard_errors_apart([row[compare] for row in fresh], stored, usual)
        assert abs(apart) < LIMIT, (
            f"{self.chapter}, {name}: fresh runs are {apart:.1f} standard errors from the full "
            f"results on file; {self._cure}"
        )


def _cell(keys) -> list[str]:
    """The keys in which the runs of a cell are alike."""
    return [key for key in keys if key not in ("run", "seed")]


def _key(values):
    return tuple(v if isinstance(v, str) else f"{float(v):.6g}" for v in values)


def _runs(cases) -> int:
    return len({case["run"] for case in cases})


def made_of(folder: Path) -> dict[str, dict]:
    """When, with what and from which cases each table of a folder was made."""
    file = folder / "made.json"
    return json.loads(file.read_text()) if file.exists() else {}


def keep(
    folder: Path,
    name: str,
    rows: pd.DataFrame,
    cases: Sequence[dict],
    compare: str,
    *,
    made_by: str,
    columns: Mapping[str, str] | None = None,
    versions: Mapping[str, str] | None = None,
) -> None:
    """Put the rows of these cases on file.

    Columns that never vary are said once, in made.json, as is what the columns mean. Versions of
    further packages stand beside those of ours.
    """
    folder.mkdir(parents=True, exist_ok=True)
    fixed = {k: v for k, v in cases[0].items() if k != "run" and len(set(rows[k])) == 1}
    # numbers of six digits, and types that follow from what a whole column holds
    text = io.StringIO(rows.drop(columns=[*fixed]).to_csv(index=False, float_format="%.6g"))
    rounded = pd.read_csv(text, keep_default_na=False, na_values=[""], low_memory=False)
    table = folder / f"{name}.part"  # put in place when whole
    rounded.to_parquet(table, index=False, compression="zstd")
    about = origin(made_by, versions) | {"runs": _runs(cases), "settings": fixed}
    about["cell"] = [key for key in _cell(cases[0]) if key not in fixed]
    about |= {"compare": compare} | ({"columns": dict(columns)} if columns else {})
    made = json.dumps(made_of(folder) | {name: about}, indent=1, sort_keys=True)
    table.replace(table.with_suffix(".parquet"))
    write_whole(folder / "made.json", made + "\n")


def origin(made_by: str, versions: Mapping[str, str] | None = None) -> dict:
    """What made a result, when, and with which versions."""
    packages = {package: version(package) for package in ("dpcgd", "numpy", "scipy")}
    known = {"python": platform.python_version(), **packages, **(versions or {})}
    return {"made_by": made_by, "date": datetime.now(UTC).date().isoformat(), "versions": known}


def rows_on_file(folder: Path, name: str) -> pd.DataFrame:
    """The rows of a table, with the columns that never vary."""
    rows = pd.read_parquet(folder / f"{name}.parquet")
    settings = made_of(folder)[name]["settings"]
    return rows.assign(**{k: v for k, v in settings.items() if k not in rows})


def _on_file(folder, name, cases) -> pd.DataFrame | None:
    """The rows of just these cases, in their order; None unless all are there."""
    if not (folder / f"{name}.parquet").exists():
        return None
    rows = rows_on_file(folder, name)
    keys = [key for key in cases[0] if key != "seed"]
    if not {*keys} <= {*rows}:
        return None
    places = {_key(values): i for i, values in enumerate(rows[keys].itertuples(False, None))}
    wanted = [places.get(_key([case[key] for key in keys])) for case in cases]
    return None if None in wanted else rows.iloc[wanted].reset_index(drop=True)


WITHIN = 1e-4
"""How far a repeated result may be from that on file, relatively.

A file has six digits, and on another processor an optimiser ends in others after the fifth.
"""


def repeats(
    task: Callable[..., dict], rows: pd.DataFrame, keys: Sequence[str], columns: Sequence[str]
) -> pd.DataFrame:
    """These runs again, each from its seed, beside what is on file.

    Parameters
    ----------
    task : callable
        Called as ``task(**case)``; returns a dictionary of numbers, texts and None.
    rows : DataFrame
        Of a table on file.
    keys : sequence of str
        The columns that make a case; run and seed among them.
    columns : sequence of str
        The results that have to come out again.

    Returns
    -------
    DataFrame
        The case, and the first of its results that differs, or else the first: its name in
        `column`, its values in `on file` and `now`. `same` says that less than half of them differ:
        where a run has many results, a last digit somewhere flips one of them.

    Examples
    --------
    >>> rows = pd.DataFrame({"run": [0, 1], "seed": 0, "F1": [0.5, 0.25]})
    >>> compared = repeats(lambda run, seed: {"F1": 0.5}, rows, ["run", "seed"], ["F1"])
    >>> compared["same"].tolist()
    [True, False]
    """
    cases = [as_written(case) for case in rows[list(keys)].to_dict("records")]
    compared = []
    for case, row in zip(sweep(task, cases), rows.to_dict("records"), strict=True):
        off = [name for name in columns if not _same(row[name], case.get(name))]
        name, same = [*off, *columns][0], 2 * len(off) < len(columns)
        compared.append([*(case[key] for key in keys), name, row[name], case.get(name), same])
    return pd.DataFrame(compared, columns=[*keys, "column", "on file", "now", "same"])


def telling(rows: pd.DataFrame, cell: Sequence[str], compare: str) -> pd.Series:
    """Which runs would show a change of the noise.

    Noise shows where the runs of a cell differ: not where all are right and not where all find
    nothing. These are the cells that vary at least as much as half of those that vary at all.

    Parameters
    ----------
    rows : DataFrame
    cell : sequence of str
        The columns in which the runs of a cell are alike.
    compare : str
        A result, a number.

    Returns
    -------
    Series of bool
        One for each row; all of them if no cell varies.

    Examples
    --------
    >>> rows = pd.DataFrame({"epsilon": [1, 1, 9, 9], "F1": [0.2, 0.6, 1.0, 1.0]})
    >>> telling(rows, ["epsilon"], "F1").tolist()
    [True, True, False, False]
    """
    varies = by_cell(rows, cell)[compare].transform("var")
    varies = varies.where(rows[compare].notna(), 0.0).fillna(0.0)
    some = varies > 0
    return varies >= varies[some].median() if some.any() else rows[compare].notna()


def by_cell(rows: pd.DataFrame, cell: Sequence[str]):
    """Rows grouped by these columns; all of them in one group if there are none."""
    return rows.groupby(list(cell) if len(cell) else lambda _: 0, dropna=False)


def as_written(case: dict) -> dict:
    """A case of a table as a chapter writes it: Python's own numbers, whole ones as int.

    Examples
    --------
    >>> as_written({"epsilon": np.float64(1.0), "network": "asia"})
    {'epsilon': 1, 'network': 'asia'}
    """
    plain = {k: v.item() if isinstance(v, np.generic) else v for k, v in case.items()}
    return {k: int(v) if isinstance(v, float) and v.is_integer() else v for k, v in plain.items()}


def _same(old, new) -> bool:
    if pd.isna(old) or pd.isna(new):
        return pd.isna(old) and pd.isna(new)
    if isinstance(old, str) or isinstance(new, str):
        return str(old) == str(new)
    return math.isclose(old, new, rel_tol=WITHIN, abs_tol=1e-9)
