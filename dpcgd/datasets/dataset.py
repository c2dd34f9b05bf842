"""Data sets with a public domain: who the variables are and which levels each may take."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from types import MappingProxyType

import networkx as nx
import numpy as np

__all__ = ["Dataset"]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Records over discrete variables whose levels are public.

    Parameters
    ----------
    codes : integer array, shape (n, d)
        ``codes[i, j]`` is the position of record i's value in the levels of variable j.
    levels : mapping of str to sequence of str
        Every level each variable may take, in its natural order (rank tests use the order), from
        metadata and never from the data at hand. Its keys name the columns of `codes`, in order.
    truth : networkx.DiGraph, optional
        The true causal graph, where it is known.
    name : str, optional
        What to call the data set in figures and tables.

    Raises
    ------
    ValueError
        If there is no record, fewer than two variables, a code that is not an integer or is outside
        its variable's levels, or a true graph over other variables.

    Notes
    -----
    Codes are kept in the smallest unsigned integer type that holds them, column by column, and are
    read-only.

    Examples
    --------
    >>> data = Dataset([[0, 1], [1, 1]], {"smoke": ("no", "yes"), "cough": ("no", "yes")})
    >>> data.n, data.variables, data.cardinalities
    (2, ('smoke', 'cough'), (2, 2))
    """

    codes: np.ndarray
    levels: Mapping[str, Sequence[str]]
    truth: nx.DiGraph | None = None
    name: str = "data"

    def __post_init__(self):
        levels = check_levels(self.levels)
        codes = _check_codes(self.codes, levels)
        if self.truth is not None and set(self.truth) != set(levels):
            odd = sorted(map(str, set(self.truth) ^ set(levels)))
            raise ValueError(
                f"the true graph and the levels must name the same variables; "
                f"only one of them has {', '.join(odd)}"
            )
        object.__setattr__(self, "levels", levels)
        object.__setattr__(self, "codes", codes)

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the variables, in column order."""
        return tuple(self.levels)

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """Number of public levels of each variable, in column order."""
        return tuple(len(levels) for levels in self.levels.values())

    @property
    def n(self) -> int:
        """Number of records (public)."""
        return len(self.codes)

    @property
    def d(self) -> int:
        """Number of variables."""
        return len(self.levels)

    def __reduce__(self):
        return Dataset, (self.codes, dict(self.levels), self.truth, self.name)

    def __repr__(self):
        known = "no truth" if self.truth is None else f"{self.truth.number_of_edges()} true edges"
        return f"Dataset({self.name!r}, n={self.n:,}, d={self.d}, {known})"


def check_levels(levels: Mapping[str, Iterable]) -> Mapping[str, tuple[str, ...]]:
    """Return the public domain as a read-only mapping of names to tuples of strings.

    Raises
    ------
    ValueError
        If there are fewer than two variables, a variable has no level, or a level comes twice.
    """
    if not isinstance(levels, Mapping):
        raise ValueError(
            "levels must be a mapping from each variable's name to the list of its levels"
        )
    if len(levels) < 2:
        raise ValueError(f"a causal graph needs at least two variables, this has {len(levels)}")
    names = [str(name) for name in levels]
    check_once(names, "the levels name variable {!r} twice; name each variable once")
    checked = map(_check_variable, names, levels.values())
    return MappingProxyType(dict(zip(names, checked, strict=True)))


def check_once(names, problem):
    for name in names:
        if names.count(name) > 1:
            raise ValueError(problem.format(name))


def _check_variable(name, levels) -> tuple[str, ...]:
    if isinstance(levels, (str, Set)) or not isinstance(levels, Iterable):
        raise ValueError(f"variable {name!r}: give its levels as a list, not {levels!r}")
    levels = tuple(str(level) for level in levels)
    if not levels:
        raise ValueError(f"variable {name!r} has no level; list every value it may take")
    if len(set(levels)) < len(levels):
        twice = next(level for level in levels if levels.count(level) > 1)
        raise ValueError(f"variable {name!r} lists level {twice!r} twice; list each level once")
    return levels


def _check_codes(codes, levels) -> np.ndarray:
    codes = np.asarray(codes)
    if codes.ndim != 2 or codes.shape[1] != len(levels):
        raise ValueError(
            f"codes must have one row a record and one column for each of the {len(levels)} "
            f"variables, but have shape {codes.shape}"
        )
    if len(codes) == 0:
        raise ValueError("the data set is empty; give at least one record")
    if codes.dtype.kind not in "iu":
        raise ValueError(
            f"codes must be integers (positions in the levels), not {codes.dtype}; "
            "read_csv turns values into codes"
        )
    for column, (name, of) in zip(codes.T, levels.items(), strict=True):
        low, high = int(column.min()), int(column.max())
        if low < 0 or high >= len(of):
            bad = low if low < 0 else high
            raise ValueError(
                f"variable {name!r} has code {bad}, but its {len(of)} levels have codes "
                f"0 to {len(of) - 1}; add the level to the schema or correct the record"
            )
    small = np.min_scalar_type(max(len(of) for of in levels.values()) - 1)
    codes = np.array(codes, dtype=small, order="F")
    codes.flags.writeable = False
    return codes
