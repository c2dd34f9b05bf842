"""Real-valued records with public ranges, and how coded data become such."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import networkx as nx
import numpy as np

from dpcgd.datasets.dataset import Dataset

__all__ = ["Measurements"]

SHORTEST = 1e-300
"""Half of a range: values divided by it are still numbers."""


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
        If there is no record, a value is not finite, a range is empty or its length no finite
        number, or the shapes or the true graph do not fit.

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
        values = np.array(self.values, float)
        if values.ndim != 2 or values.shape[1] != len(ranges) or len(values) == 0:
            raise ValueError(
                f"values must have one row a record and one column for each of the {len(ranges)} "
                f"ranges, but have shape {values.shape}"
            )
        if not np.isfinite(values).all():
            raise ValueError("a value is missing or infinite; drop or impute such records first")
        if self.truth is not None and set(self.truth) != set(ranges):
            raise ValueError("the true graph and the ranges must name the same variables")
        low, high = np.array(list(ranges.values())).T
        values = np.clip(values, low, high)
        values.flags.writeable = False
        object.__setattr__(self, "ranges", MappingProxyType(ranges))
        object.__setattr__(self, "values", values)

    @classmethod
    def from_codes(cls, data: Dataset) -> "Measurements":
        """The level numbers of coded data; a variable's range is from its first level to its last.

        Examples
        --------
        >>> coded = Dataset([[0, 2], [1, 1]], {"smoke": ("no", "yes"), "pain": ("0", "1", "2")})
        >>> Measurements.from_codes(coded).ranges["pain"]
        (0.0, 2.0)
        """
        ranges = {name: (0, max(1, len(of) - 1)) for name, of in data.levels.items()}
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
        """Half of each range: one unit of :attr:`scaled`."""
        low, high = np.array(list(self.ranges.values())).T
        return (high - low) / 2

    @property
    def scaled(self) -> np.ndarray:
        """The values with each range brought to [-1, 1]."""
        low = np.array([low for low, _ in self.ranges.values()])
        return (self.values - low) / self.half_widths - 1

    def binned(self, bins: int) -> Dataset:
        """Codes of equally wide bins of the public ranges.

        Examples
        --------
        >>> data = Measurements([[20.0, 1.5], [95.0, 1.9]], {"age": (0, 80), "height": (1, 2)})
        >>> data.binned(4).codes.tolist()
        [[1, 2], [3, 3]]
        """
        if bins < 1:
            raise ValueError(f"bins must be at least 1, not {bins}")
        codes = np.minimum((self.scaled + 1) / 2 * bins, bins - 1).astype(int)
        levels = {name: tuple(map(str, range(bins))) for name in self.ranges}
        return Dataset(codes, levels, self.truth, self.name)

    def __repr__(self):
        return f"Measurements({self.name!r}, n={self.n:,}, d={self.d})"


def _check_ranges(ranges) -> dict[str, tuple[float, float]]:
    if not isinstance(ranges, Mapping) or len(ranges) < 2:
        raise ValueError("ranges must map each of at least two variables to its public (low, high)")
    for name, (low, high) in ranges.items():
        ends = np.isfinite(low) and np.isfinite(high) and low < high
        if not (ends and SHORTEST <= (float(high) - float(low)) / 2 < np.inf):
            raise ValueError(
                f"variable {name!r}: the range {low} to {high} is empty or not finite; "
                "give the public (low, high)"
            )
    return {str(name): (float(low), float(high)) for name, (low, high) in ranges.items()}
