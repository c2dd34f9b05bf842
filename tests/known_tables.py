"""Tables of known counts and noise for the tests of what is released about them."""

import math

import numpy as np
from dpcgd_book.results.known_tables import Counts, independent_model

from dpcgd import Dataset
from dpcgd.datasets.contingency_tables import Tables
from dpcgd.datasets.variable import PARTS
from dpcgd.moments.interactions import MeasuredMarginals, exactly, subsets_of


def records(codes, levels):
    names = {f"v{i}": [str(k) for k in range(size)] for i, size in enumerate(levels)}
    return Dataset(np.atleast_2d(codes), names)


class Blind(Tables):
    """Tables that fail when they are looked at."""

    def counts(self, variables):
        raise AssertionError("looked")

    counts_many = counts


class OnlyCounts:
    """Tables that only count, one after the other."""

    def __init__(self, tables):
        self.n, self.levels = tables.n, tables.levels
        self.counts, self.shape = tables.counts, tables.shape


def numbers_in(data):
    """Of each number the values that are kept, the middles of its parts."""
    columns = zip(data.levels.items(), data.codes.T, strict=True)
    return {name: own.values(codes) for (name, own), codes in columns if name in data.numbers}


def check_kept(data, columns):
    """Whether all values of columns are inside their ranges, and kept but for half a part."""
    for (name, kept), column in zip(numbers_in(data).items(), columns, strict=True):
        own = data.levels[name]
        assert own.low <= min(column) <= max(column) <= own.high
        np.testing.assert_allclose(kept, column, rtol=1e-12, atol=own.half / PARTS)


def unrelated(levels, n, rng):
    """Records of independent variables with so many levels, all equally common."""
    return records(rng.integers(0, levels, (n, len(levels))), levels)


def exact(table):
    """All interactions of a table without noise."""
    marginals = MeasuredMarginals(Counts(table), exactly)
    for subset in filter(None, subsets_of(tuple(range(table.ndim)))):
        marginals.measure(subset, 1.0)
    return marginals


def random_table(shape, n, rng, concentration=3.0):
    share = rng.dirichlet(np.full(math.prod(shape), concentration))
    return rng.multinomial(n, share).reshape(shape)


def independent(shape, rng):
    """Probabilities under which the first two variables are independent given the others."""
    return independent_model(shape, False, rng, spread=2.0)


def alone_and_joined(n: int, rows: int = 1) -> tuple[Dataset, Dataset]:
    """One record, or so many, against a crowd that agrees on both variables; the same in the crowd.

    Between them Kendall's z falls to 0: with one record by its whole sensitivity.
    """
    levels = {"x": ["no", "yes"], "y": ["no", "yes"]}
    crowd = np.ones((n - rows, 2), int)
    return tuple(Dataset(np.vstack([[first] * rows, crowd]), levels) for first in ([0, 0], [1, 1]))
