"""Data sets with a public domain: who the variables are and which levels each may take."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from types import MappingProxyType

import networkx as nx
import numpy as np
import pandas as pd

from dpcgd.datasets.arguments import check_array, check_name, check_once
from dpcgd.datasets.columns import FRAME, as_text, check_frame, encode

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
        its variable's levels, a DataFrame instead of an array, or a true graph that is cyclic or
        over other variables.

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
        check_truth(self.truth, levels, "levels")
        object.__setattr__(self, "levels", levels)
        object.__setattr__(self, "codes", codes)

    @classmethod
    def from_pandas(
        cls,
        frame,
        levels: Mapping[str, Sequence[str]],
        *,
        ignore: Iterable[str] = (),
        truth: nx.DiGraph | None = None,
        name: str = "data",
    ) -> "Dataset":
        """Take the columns of a DataFrame by name and compare their values with the levels as text.

        Parameters
        ----------
        frame : pandas.DataFrame
            The whole number 1 is the level ``"1"`` and True the level ``"True"``. A missing value
            is the level ``""``, if that is listed.
        levels : mapping of str to sequence of str
            As for the class; its order is the order of the variables.
        ignore : iterable of str
            Columns to leave out, such as record numbers.
        truth : networkx.DiGraph, optional
        name : str, optional

        Raises
        ------
        ValueError
            If the levels, `ignore` and the frame do not name the same columns, or a value is
            missing or outside its variable's levels.

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"cough": [True, False], "id": [7, 8], "smoke": [0, 1]})
        >>> levels = {"smoke": ("0", "1"), "cough": ("False", "True")}
        >>> Dataset.from_pandas(frame, levels, ignore=["id"]).codes.tolist()
        [[0, 1], [1, 0]]
        """
        levels = check_levels(levels)
        check_frame(frame, levels, ignore)
        columns = [encode(FRAME, as_text(frame[name]), of) for name, of in levels.items()]
        return cls(np.column_stack(columns), levels, truth, name)

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
        If there are fewer than two variables, a name is no text, a variable has no level, or a
        level comes twice, is missing, nested or has blanks at its ends.
    """
    if not isinstance(levels, Mapping):
        raise ValueError(
            "levels must be a mapping from each variable's name to the list of its levels"
        )
    if len(levels) < 2:
        raise ValueError(f"a causal graph needs at least two variables, this has {len(levels)}")
    for name in levels:
        check_name(name)
    return MappingProxyType({name: _check_variable(name, of) for name, of in levels.items()})


def _check_variable(name, levels) -> tuple[str, ...]:
    if isinstance(levels, (str, bytes, Set, Mapping)) or not isinstance(levels, Iterable):
        raise ValueError(f"variable {name!r}: give its levels as a list, not {levels!r}")
    levels = tuple(_check_level(name, level) for level in levels)
    if not levels:
        raise ValueError(f"variable {name!r} has no level; list every value it may take")
    check_once(levels, f"variable {name!r} lists level", "list each level once")
    return levels


def _check_level(name, level) -> str:
    if isinstance(level, Iterable) and not isinstance(level, str):
        raise ValueError(f"variable {name!r} has {level!r} among its levels; list them one by one")
    if pd.isna(level):
        raise ValueError(
            f"variable {name!r} has the missing value {level} among its levels; take it out, or "
            "list '' if 'not known' is an answer"
        )
    text = str(level)
    if text != text.strip():
        raise ValueError(f"variable {name!r}: level {text!r} has blanks at its ends; take them out")
    return text


def check_truth(truth: nx.DiGraph | None, variables: Iterable[str], public: str):
    """Check that the true graph, if there is one, is acyclic and over the variables.

    Raises
    ------
    ValueError
        If it is not; `public` says what else names the variables.
    """
    if truth is None:
        return
    if not isinstance(truth, nx.DiGraph):
        raise ValueError(
            f"truth must be a networkx.DiGraph, not {type(truth).__name__}; "
            "make one with networkx.DiGraph(arcs)"
        )
    odd = sorted(map(str, set(truth) ^ set(variables)))
    if odd:
        raise ValueError(
            f"the true graph and the {public} must name the same variables; "
            f"only one of them has {', '.join(odd)}"
        )
    if not nx.is_directed_acyclic_graph(truth):
        raise ValueError("the true graph has a cycle; take one of its arcs out")


def _check_codes(codes, levels) -> np.ndarray:
    codes = check_array("codes", codes, "Dataset")
    if codes.ndim != 2 or codes.shape[1] != len(levels):
        raise ValueError(
            f"codes must have one row a record and one column for each of the {len(levels)} "
            f"variables, but have shape {codes.shape}"
        )
    if len(codes) == 0:
        raise ValueError("the data set is empty; give at least one record")
    if codes.dtype.kind not in "iu":
        raise ValueError(
            f"codes must be integers (positions in the levels), not {codes.dtype}; convert them "
            "with np.array(codes, int), and values with read_csv or Dataset.from_pandas"
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
