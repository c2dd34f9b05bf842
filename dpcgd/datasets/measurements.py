"""Real-valued records with public ranges, and how coded data become such."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from types import MappingProxyType

import networkx as nx
import numpy as np

from dpcgd.datasets.arguments import check_array, check_whole
from dpcgd.datasets.columns import check_frame
from dpcgd.datasets.dataset import Dataset, check_records, check_truth
from dpcgd.datasets.variable import check_range, check_variables

__all__ = ["Measurements"]

NUMBERS = (Real, Decimal, type(None))
"""Objects among the values are of these types; None is a missing value."""


@dataclass(frozen=True, eq=False)
class Measurements:
    """Records over real variables whose ranges are public.

    Parameters
    ----------
    values : array of numbers, shape (n, d)
        Values outside their variable's range are moved to its nearer end.
    ranges : mapping of str to (low, high)
        From metadata and never from the data at hand. Its keys name the columns, in order.
    truth : networkx.DiGraph, optional
        The true causal graph, where it is known.
    name : str, optional
        What to call the data set in figures and tables.

    Raises
    ------
    ValueError
        If there is no record, a value is no number or not finite, a range is no pair (low, high) or
        its length no finite number, or the shapes or the true graph do not fit.

    Examples
    --------
    >>> data = Measurements([[20.0, 1.5], [95.0, 1.9]], {"age": (0, 80), "height": (1, 2)})
    >>> data.n, data.variables
    (2, ('age', 'height'))
    >>> data.scaled
    array([[-0.5,  0. ],
           [ 1. ,  0.8]])
    """

    values: np.ndarray
    ranges: Mapping[str, tuple[float, float]]
    truth: nx.DiGraph | None = None
    name: str = "data"

    def __post_init__(self):
        ranges = _check_ranges(self.ranges)
        values = _numbers(check_array("values", self.values, "Measurements"))
        if values.ndim != 2 or values.shape[1] != len(ranges) or len(values) == 0:
            shape = f"one row a record and one column for each of the {len(ranges)} ranges"
            raise ValueError(f"values must have {shape}, but have shape {values.shape}")
        if not np.isfinite(values).all():
            raise ValueError("a value is missing or infinite; drop or impute such records first")
        check_truth(self.truth, ranges, "ranges")
        values = np.clip(values, *np.array(list(ranges.values())).T)
        values.flags.writeable = False
        vars(self).update(values=values, ranges=MappingProxyType(ranges))

    @classmethod
    def from_pandas(
        cls,
        frame,
        ranges: Mapping[str, tuple[float, float]],
        *,
        ignore: Iterable[str] = (),
        truth: nx.DiGraph | None = None,
        name: str = "data",
    ) -> "Measurements":
        """Take the columns of a DataFrame by name.

        Parameters
        ----------
        frame : pandas.DataFrame
        ranges : mapping of str to (low, high)
            As for the class; its order is the order of the variables.
        ignore : iterable of str
            Columns to leave out, such as record numbers.
        truth : networkx.DiGraph, optional
        name : str, optional

        Raises
        ------
        ValueError
            If the ranges, `ignore` and the frame do not name the same columns, or a column does not
            hold numbers, none missing.

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"height": [1.5], "id": [7], "age": [20]})
        >>> ranges = {"age": (0, 80), "height": (1, 2)}
        >>> Measurements.from_pandas(frame, ranges, ignore=["id"]).values
        array([[20. ,  1.5]])
        """
        from pandas.api.types import is_numeric_dtype

        ranges = _check_ranges(ranges)
        check_frame(frame, ranges, ignore, "ranges")
        for column, kind in frame[list(ranges)].dtypes.items():
            if not is_numeric_dtype(kind):
                problem = f"column {column!r} of the frame holds {kind}, not numbers"
                raise ValueError(f"{problem}; convert it with pd.to_numeric")
        values = frame[list(ranges)].to_numpy(float, na_value=np.nan)
        return cls(values, ranges, truth, name)

    @classmethod
    def from_codes(cls, data: Dataset) -> "Measurements":
        """The level numbers of coded data; a variable's range is from its first level to its last.

        Examples
        --------
        >>> coded = Dataset([[0, 2], [1, 1]], {"smoke": ("no", "yes"), "pain": ("0", "1", "2")})
        >>> Measurements.from_codes(coded).ranges["pain"]
        (0.0, 2.0)
        """
        check_records(data, "taking codes for values")
        ranges = {name: (0, max(1, len(levels) - 1)) for name, levels in data.levels.items()}
        return cls(data.codes, ranges, data.truth, data.name)

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the variables, in column order."""
        return tuple(self.ranges)

    @property
    def n(self) -> int:
        """Number of records (public)."""
        return len(self.values)

    @property
    def d(self) -> int:
        """Number of variables."""
        return len(self.ranges)

    @property
    def half_widths(self) -> np.ndarray:
        """Half of each range, one unit of :attr:`scaled`."""
        return np.diff(list(self.ranges.values()))[:, 0] / 2

    @property
    def scaled(self) -> np.ndarray:
        """The values with each range brought to [-1, 1]."""
        low = np.array([low for low, _ in self.ranges.values()])
        return (self.values - low) / self.half_widths - 1

    def binned(self, bins: int) -> Dataset:
        """Codes of equally wide bins of the public ranges.

        Raises
        ------
        ValueError
            If bins is no whole number of 1 or more.

        Examples
        --------
        >>> data = Measurements([[20.0, 1.5], [95.0, 1.9]], {"age": (0, 80), "height": (1, 2)})
        >>> data.binned(4).codes.tolist()
        [[1, 2], [3, 3]]
        """
        check_whole("bins", bins, 1)
        codes = np.minimum((self.scaled + 1) / 2 * bins, bins - 1).astype(int)
        levels = {name: tuple(map(str, range(bins))) for name in self.ranges}
        return Dataset(codes, levels, self.truth, self.name, ordered=self.ranges)

    def __repr__(self):
        return f"Measurements({self.name!r}, n={self.n:,}, d={self.d})"


def _check_ranges(ranges) -> dict[str, tuple[float, float]]:
    check_variables(ranges, "ranges")
    return {name: check_range(name, ends) for name, ends in ranges.items()}


def _numbers(values: np.ndarray) -> np.ndarray:
    """A copy as floats; text that looks like numbers is still text."""
    numeric = values.dtype.kind in "biuf"
    if values.dtype.kind == "O":
        numeric = all(isinstance(value, NUMBERS) for value in values.flat)
    if not numeric:
        cure = "convert them first, as with np.array(values, float)"
        raise ValueError(f"the values must be numbers, not text or other objects; {cure}")
    return np.array(values, float)
