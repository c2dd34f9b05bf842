"""Joining of levels by noisy counts of single variables, until tests can bear the noise."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from dpcgd.datasets.counts import Counts
from dpcgd.datasets.dataset import Dataset
from dpcgd.moments.interactions import Measurement
from dpcgd.moments.scores import look_sensitivity

__all__ = ["FIRST_LOOK", "MOST_LEVELS", "JoinedCounts", "join_levels"]

MOST_LEVELS = 16
"""The largest number of levels of a variable; if it has more, some are joined."""


FIRST_LOOK = 0.03
"""Share of the budget for counts of single variables, which decide which levels are joined."""


OTHER = "other"
"""Name of the joined rare levels of an unordered variable."""


def join_levels(
    data: Any, measure: Measurement, rho: float, *, most: int = MOST_LEVELS
) -> tuple[Any, dict[str, dict[str, str]]]:
    """Join levels of every variable that has too many.

    An ordered variable joins neighbouring levels, step by step the two with the least sum of
    counts. An unordered variable keeps its most frequent levels and joins the rest. If no variable
    has too many levels, nothing is measured.

    Parameters
    ----------
    data : Dataset or Counts
    measure : callable
        The measurement: :func:`~dpcgd.moments.interactions.paid` by an account, or
        :func:`~dpcgd.moments.interactions.exactly`, which is not private.
    rho : float
        Cost of the measurement.
    most : int
        The largest number of levels of a variable, at least 2.

    Returns
    -------
    Dataset or Counts
        The same variables and records with joined levels; a data set stays a data set.
    dict
        Map from each variable that had too many levels to the new name of each old level.

    Raises
    ------
    BudgetSpent
        Before the data is touched, if the account cannot pay.

    Privacy
    -------
    rho-zCDP: one Gaussian release of the counts of all levels of the variables that have too many;
    which of them are joined is a function of it and of public facts, and so the new levels are
    public. Chapter 18, :prf:ref:`thm-joined-levels`.

    Examples
    --------
    >>> from dpcgd.moments.interactions import exactly
    >>> AGES = ["young", "grown", "old"]
    >>> codes = [[0, 0], [0, 1], [1, 2], [2, 2], [3, 2]]
    >>> data = Dataset(codes, {"town": list("ABCD"), "age": AGES}, ordered=["age"])
    >>> data, joined = join_levels(data, exactly, 0.1, most=2)
    >>> joined["town"]
    {'A': 'A', 'B': 'other', 'C': 'other', 'D': 'other'}
    >>> joined["age"]
    {'young': 'young..grown', 'grown': 'young..grown', 'old': 'old'}
    >>> data.cardinalities
    (2, 2)
    """
    large = (v for v, size in enumerate(data.cardinalities) if size > most)
    wide = [v for v in large if data.variables[v] not in data.numbers]
    if not wide:
        return data, {}
    ends = np.cumsum([data.cardinalities[v] for v in wide])[:-1]
    noisy, _ = measure(
        lambda: np.concatenate(data.counts_many([v] for v in wide)).astype(float),
        sensitivity=look_sensitivity(len(wide)),
        rho=rho,
    )
    groups, levels, joined = {}, dict(data.levels), {}
    for v, counts in zip(wide, np.split(noisy, ends), strict=True):
        name, old = data.variables[v], data.levels[data.variables[v]]
        by_order = name in data.ordered
        apart = old.index(data.missing[name]) if name in data.missing else None
        groups[v] = join_groups(counts, most, by_order, apart)
        levels[name] = _names(old, groups[v], by_order)
        became = [levels[name][group] for group in groups[v].tolist()]
        joined[name] = dict(zip(old, became, strict=True))
    if isinstance(data, Dataset):
        codes = np.array(data.codes)
        for v, group in groups.items():
            codes[:, v] = group[data.codes[:, v]]
        return replace(data, codes=codes, levels=levels), joined
    return JoinedCounts(data, groups, levels), joined


class JoinedCounts(Counts):
    """Counts of data whose records stay unchanged; counts are summed over joined levels.

    Parameters
    ----------
    data : Counts or Records
    groups : mapping of int to array
        The group of each level, for each variable with joined levels.
    levels : mapping of str to tuple of str
        The levels after joining.
    """

    def __init__(
        self, data: Any, groups: Mapping[int, np.ndarray], levels: Mapping[str, Sequence[str]]
    ):
        self.levels, self.n = levels, data.n
        self.ordered, self.missing = data.ordered, data.missing
        self._data, self._groups = data, groups

    def counts(self, variables: Sequence[int]) -> np.ndarray:
        """Count the records in each cell of the named variables, axes in this order."""
        return self._summed(variables, self._data.counts(variables))

    def counts_many(self, questions: Iterable[Sequence[int]]) -> list[np.ndarray]:
        """Count the records in each cell of several tables."""
        asked = list(questions)
        return list(map(self._summed, asked, self._data.counts_many(asked)))

    def _summed(self, variables, table) -> np.ndarray:
        for axis, v in enumerate(variables):
            if v in self._groups:
                group = self._groups[v]
                holds = np.eye(group.max() + 1, dtype=np.int64)[:, group]
                table = np.moveaxis(np.tensordot(holds, table, (1, axis)), 0, axis)
        return table


def join_groups(
    counts: np.ndarray, most: int, by_order: bool, apart: int | None = None
) -> np.ndarray:
    """The group of each level, from the counts of the levels.

    Parameters
    ----------
    counts : array of shape (levels,)
    most : int
        Number of groups.
    by_order : bool
        Whether neighbouring levels are joined; otherwise the rarest levels are.
    apart : int, optional
        The level of missing values: it is not joined, and is the last group.

    Examples
    --------
    >>> join_groups(np.array([5.0, 1.0, 2.0, 9.0]), 3, by_order=True).tolist()
    [0, 1, 1, 2]
    >>> join_groups(np.array([1.0, 5.0, 2.0, 9.0]), 3, by_order=False).tolist()
    [2, 0, 2, 1]
    """
    if apart is not None:
        group = np.insert(join_groups(np.delete(counts, apart), most - 1, by_order), apart, 0)
        group[apart] = most - 1
        return group
    if not by_order:
        kept = np.sort(np.argsort(-counts, kind="stable")[: most - 1])
        group = np.full(len(counts), most - 1)
        group[kept] = np.arange(most - 1)
        return group
    sizes, sums = [1] * len(counts), counts.tolist()
    while len(sums) > most:  # join the two neighbours with the least sum
        together = [first + second for first, second in pairwise(sums)]
        first = together.index(min(together))
        sizes[first] += sizes.pop(first + 1)
        sums[first] += sums.pop(first + 1)
    return np.repeat(np.arange(most), sizes)


def _names(old, group, by_order) -> tuple[str, ...]:
    """Names of the groups: all are different, and a joined group is not named like an old level."""
    names: list[str] = []
    for number in range(int(group.max()) + 1):
        first, last = np.flatnonzero(group == number)[[0, -1]].tolist()
        name = old[first]
        if first < last:
            name = f"{name}..{old[last]}" if by_order else OTHER
            while name in (*old, *names):
                name += "'"
        names.append(name)
    return tuple(names)
