"""Data sets with a public domain: the variables, and the levels that each may take."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from numbers import Real
from types import MappingProxyType
from typing import Any

import networkx as nx
import numpy as np

from dpcgd.datasets.arguments import check_array, check_known, check_whole, refuses_weights
from dpcgd.datasets.columns import as_table, frame_codes
from dpcgd.datasets.counts import BATCH, Counts, Vectors, cell_numbers, clipped_sums
from dpcgd.datasets.schema import Schema
from dpcgd.datasets.variable import PARTS, Parts, check_levels, check_variables

__all__ = ["Dataset", "check_records", "check_values"]

NUMBERS = (Real, Decimal, type(None))
"""Allowed types of objects among the values; None is a missing value."""


@dataclass(frozen=True, eq=False)
class Dataset(Counts):
    """Records over variables whose levels or ranges are public.

    Parameters
    ----------
    codes : integer array, shape (n, d)
        ``codes[i, j]`` is the position of the value of record i in the levels of variable j.
    levels : mapping of str to sequence of str
        Every level that each variable may take, in its natural order (rank tests use the order),
        from metadata and never from these data. The keys name the columns of `codes`, in order. The
        levels of a number with a range are its :class:`~dpcgd.datasets.variable.Parts`.
    truth : networkx.DiGraph, optional
        The true causal graph, if it is known.
    name : str, optional
        Name of the data set in figures and tables.
    ordered : iterable of str, optional
        Variables whose levels are in order, which is public. Adjacent levels of them may be merged.
        Numbers are always among them.
    missing : mapping of str to str, optional
        The level of missing values, for variables that have one; it has no place in the order. The
        level of a number is in its parts.
    schema : Schema, optional
        The schema with which the records were read. A schema with other levels is not kept.

    Raises
    ------
    ValueError
        If there is no record or there are fewer than two variables, or codes are no integers or
        outside their variable's levels, or in a DataFrame. If the true graph is cyclic or has other
        variables, or `ordered` or `missing` names an unknown variable or level.

    Notes
    -----
    Codes are read-only; each column has the smallest unsigned integer type that holds it.

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
    ordered: Collection[str] = frozenset()
    missing: Mapping[str, str] = field(default_factory=dict)
    schema: Schema | None = None

    def __post_init__(self):
        levels = check_levels(self.levels)
        codes = _check_codes(self.codes, levels)
        check_truth(self.truth, levels)
        ordered = frozenset([*check_known("ordered", self.ordered, levels), *self.numbers])
        missing = _check_missing(self.missing, levels)
        vars(self).update(codes=codes, levels=levels, ordered=ordered, missing=missing)
        if self.schema is not None and self.schema.levels != dict(levels):  # they were joined
            vars(self).update(schema=None)

    @classmethod
    @refuses_weights
    def from_pandas(
        cls,
        frame,
        schema: Any,
        *,
        ignore: Iterable[str] = (),
        columns: str | None = None,
        truth: nx.DiGraph | None = None,
        name: str = "data",
    ) -> "Dataset":
        """Read a table in memory: columns by name, values compared with the levels as text.

        Parameters
        ----------
        frame : pandas.DataFrame, or a table with an Arrow stream
            Frames of Polars, tables of Arrow, results of DuckDB and any object with
            ``__arrow_c_stream__`` have such a stream. It is read batch by batch, and needs pyarrow.
            The whole number 1 is the level ``"1"`` and True the level ``"True"``. The number 1.0 is
            the level ``"1.0"`` or, if there is none, ``"1"``. A missing value is the schema's level
            for missing values, or ``""`` if that is listed.
        schema : Schema, mapping, str or path
            An argument of :class:`~dpcgd.datasets.schema.Schema`, or a JSON file of it: the levels
            of each variable, or the range or edges of a number. It gives the order of the
            variables.
        ignore : iterable of str
            Columns to leave out, such as record numbers.
        columns : {"schema"}, optional
            Read only the schema's columns.
        truth : networkx.DiGraph, optional
        name : str, optional

        Raises
        ------
        ValueError
            If the schema contradicts itself, schema, `ignore` and frame do not name the same
            columns, a value is missing or outside its variable's levels, the points of a column of
            text may separate thousands, or a categorical column has another order than its ordered
            variable.

        Notes
        -----
        Each row counts once, and as independent of the others; weights are not supported. See
        *Weights, and several rows a person* in the book's page on your own table.

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"cough": [True, False], "id": [7, 8], "age": [19, 44]})
        >>> schema = {"age": {"edges": [15, 25, 50]}, "cough": ["False", "True"]}
        >>> data = Dataset.from_pandas(frame, schema, ignore=["id"])
        >>> data.codes.tolist(), data.levels["age"]
        ([[0, 1], [1, 0]], ('15 to 25', '25 to 50'))
        """
        schema = Schema.of(schema)
        codes = frame_codes(as_table(frame), schema.variables, ignore, columns)
        return cls.of_schema(codes, schema, truth, name)

    @classmethod
    def of_numbers(
        cls,
        values: np.ndarray,
        ranges: Mapping[str, tuple[float, float]],
        truth: nx.DiGraph | None = None,
        name: str = "data",
    ) -> "Dataset":
        """Make a data set of real values with public ranges.

        Parameters
        ----------
        values : array of numbers, shape (n, d)
            Values outside their variable's range are moved to its nearer end. Each value is stored
            as one of 32,768 equal parts of the range.
        ranges : mapping of str to (low, high)
            Ranges from metadata, never from these data. The keys name the columns, in order.
        truth, name
            As for the class.

        Raises
        ------
        ValueError
            If there is no record, a value is no finite number, a range is no pair (low, high) of
            finite distance, or the shapes or the true graph do not fit.

        Examples
        --------
        >>> values = [[20.0, 1.5], [95.0, 1.9]]
        >>> data = Dataset.of_numbers(values, {"age": (0, 80), "height": (1, 2)})
        >>> data.scaled.round(3)
        array([[-0.5,  0. ],
               [ 1. ,  0.8]])
        """
        check_variables(ranges, "ranges")
        schema = Schema({name: {"range": ends, "outside": "clip"} for name, ends in ranges.items()})
        values = _numbers(check_array("values", values, "Dataset"))
        if values.ndim != 2 or values.shape[1] != len(ranges) or len(values) == 0:
            shape = f"one row a record and one column for each of the {len(ranges)} ranges"
            raise ValueError(f"values must have {shape}, but have shape {values.shape}")
        if not np.isfinite(values).all():
            raise ValueError("a value is missing or infinite; drop or impute such records first")
        columns = zip(schema.variables.values(), values.T, strict=True)
        codes = [variable.positions_of_numbers(column) for variable, column in columns]
        return cls.of_schema(np.column_stack(codes), schema, truth, name)

    @classmethod
    def of_schema(
        cls, codes: np.ndarray, schema: Schema, truth: nx.DiGraph | None = None, name: str = "data"
    ) -> "Dataset":
        """Make a data set of codes that were read with a schema."""
        return cls(codes, schema.levels, truth, name, schema.ordered, schema.missing, schema)

    @property
    def n(self) -> int:  # type: ignore[override]  # read-only here
        """Number of records (public)."""
        return len(self.codes)

    @property
    def half_widths(self) -> np.ndarray:
        """Half of each range, the unit of :attr:`scaled`; for a category, of its level numbers."""
        every = self.levels.values()
        return np.array([x.half if isinstance(x, Parts) else max(1, len(x) - 1) / 2 for x in every])

    @property
    def scaled(self) -> np.ndarray:
        """Numbers, and the level numbers of categories, with each range scaled to [-1, 1].

        Raises
        ------
        ValueError
            If numbers may be missing.
        """
        check_values(self)
        numbers = [isinstance(levels, Parts) for levels in self.levels.values()]
        middles = np.where(numbers, 0.5, 0.0)
        halves = np.where(numbers, PARTS / 2, np.maximum(1, np.array(self.cardinalities) - 1) / 2)
        return (self.codes + middles) / halves - 1

    def binned(self, bins: int) -> "Dataset":
        """The data set with every number cut into bins of equal width; categories stay.

        A part in two bins goes to the upper one, like a number on the edge between two bins.

        Raises
        ------
        ValueError
            If bins is no whole number of 1 or more.

        Examples
        --------
        >>> data = Dataset.of_numbers([[2.0, 1.5], [9.0, 1.9]], {"age": (0, 8), "height": (1, 2)})
        >>> data.binned(4).codes.tolist(), data.binned(2).levels["age"]
        ([[1, 2], [3, 3]], ('0 to 4', '4 to 8'))
        """
        check_whole("bins", bins, 1)
        codes, levels = self.codes.astype(int), dict(self.levels)
        for v, (name, parts) in enumerate(self.levels.items()):
            if isinstance(parts, Parts):
                levels[name] = parts.joined(bins)
                codes[:, v] = np.minimum(((codes[:, v] + 1) * bins - 1) // PARTS, bins)
        return replace(self, codes=codes, levels=levels)

    def counts(self, variables: Sequence[int]) -> np.ndarray:
        """Count the records in each cell of the named variables, axes in this order.

        This is for a few tables; for many, pack the records first, as
        :class:`~dpcgd.datasets.contingency_tables.Tables` does.
        """
        shape = [self.cardinalities[v] for v in variables]
        cells = cell_numbers(self.codes.T[list(variables)], shape, self.n)
        return np.bincount(cells, minlength=math.prod(shape)).reshape(shape)

    def clipped_sums(self, vectors: Vectors, *, bound: float, n: int | None = None) -> np.ndarray:
        """Sum over records of u u^T: :func:`~dpcgd.datasets.counts.clipped_sums`."""
        parts = (([*part.T], None) for part in np.split(self.codes, range(BATCH, self.n, BATCH)))
        return clipped_sums(parts, vectors, bound=bound, n=n or self.n)

    def __reduce__(self):
        public = dict(self.levels), self.truth, self.name, self.ordered, dict(self.missing)
        return Dataset, (self.codes, *public, self.schema)

    def __repr__(self):
        known = "no truth" if self.truth is None else f"{self.truth.number_of_edges()} true edges"
        return f"Dataset({self.name!r}, n={self.n:,}, d={self.d}, {known})"


def check_records(data: object, who: str) -> None:
    """Refuse data that only answer counts, for a system that needs records.

    Parameters
    ----------
    data : Dataset or Counts
    who : str
        The system that needs records.

    Raises
    ------
    ValueError
        If the data only answer counts; the message has the cure.
    """
    # public facts have codes, too, which raise: so a run is checked up to where it would read them
    if isinstance(data, Counts) and not (isinstance(data, Dataset) or hasattr(type(data), "codes")):
        kind, cure = type(data).__name__, "make a Dataset, or take a system such as table_pc"
        raise ValueError(f"{who} needs records at hand, and {kind} only answers counts; {cure}")


def check_values(data: Counts) -> None:
    """Refuse numbers that may be missing, for a system that needs every number.

    Raises
    ------
    ValueError
        If the public description allows missing numbers.
    """
    for name, levels in data.levels.items():
        if isinstance(levels, Parts) and levels.missing is not None:
            cure = "drop or impute such records and leave 'missing' out, or cut it into bins"
            raise ValueError(f"the number {name!r} may be missing, and is needed here; {cure}")


def check_truth(truth: nx.DiGraph | None, variables: Iterable[str]):
    """Check that the true graph, if there is one, is acyclic and has these variables.

    Raises
    ------
    ValueError
        If it is not.
    """
    if truth is None:
        return
    if not isinstance(truth, nx.DiGraph):
        kind = type(truth).__name__
        raise ValueError(f"truth must be a DiGraph, not {kind}; make one with nx.DiGraph(arcs)")
    if odd := sorted(map(str, set(truth) ^ set(variables))):
        both = "the true graph and the data must name the same variables"
        raise ValueError(f"{both}; only one of them has {', '.join(odd)}")
    if not nx.is_directed_acyclic_graph(truth):
        raise ValueError("the true graph has a cycle; take one of its arcs out")


def _numbers(values: np.ndarray) -> np.ndarray:
    """A copy of the values as floats; refuse text, also if it looks like numbers."""
    numeric = values.dtype.kind in "biuf"
    if values.dtype.kind == "O":
        numeric = all(isinstance(value, NUMBERS) for value in values.flat)
    if not numeric:
        cure = "convert them first, as with np.array(values, float)"
        raise ValueError(f"the values must be numbers, not text or other objects; {cure}")
    return np.array(values, float)


def _check_missing(missing, levels) -> Mapping[str, str]:
    if not isinstance(missing, Mapping):
        raise ValueError(f"missing must map variables to levels, not {missing!r}; give a mapping")
    check_known("missing", missing, levels)
    own = {name: parts.missing for name, parts in levels.items() if isinstance(parts, Parts)}
    for name, level in missing.items():
        if level not in levels[name] or own.get(name, level) != level:
            problem = f"variable {name!r} has no level {level!r} for missing values"
            raise ValueError(f"{problem}; add it to the levels")
    every = (own | dict(missing)).items()
    return MappingProxyType({name: level for name, level in every if level is not None})


def _check_codes(codes, levels) -> np.ndarray:
    codes = check_array("codes", codes, "Dataset")
    if codes.ndim != 2 or codes.shape[1] != len(levels):
        shape = f"one row a record and one column for each of the {len(levels)} variables"
        raise ValueError(f"codes must have {shape}, but have shape {codes.shape}")
    if len(codes) == 0:
        raise ValueError("the data set is empty; give at least one record")
    if codes.dtype.kind not in "iu":
        cure = "convert them with np.array(codes, int), and values with Dataset.from_pandas"
        raise ValueError(f"codes must be integers (positions in levels), not {codes.dtype}; {cure}")
    sizes = np.array([len(listed) for listed in levels.values()])
    for code in (codes.min(axis=0), codes.max(axis=0)):
        for v in np.flatnonzero((code < 0) | (code >= sizes)):
            name, problem = list(levels)[v], f"has code {code[v]}, not 0 to {sizes[v] - 1}"
            cure = "add the level to the schema or correct the record"
            raise ValueError(f"variable {name!r} {problem}; {cure}")
    codes = np.array(codes, dtype=np.min_scalar_type(sizes.max() - 1), order="F")
    codes.flags.writeable = False
    return codes
