"""Stand-ins for a table that hold only what a run may use before it pays."""

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd
from scipy.linalg import block_diag

from dpcgd.datasets.counts import Counts
from dpcgd.datasets.schema import Schema
from dpcgd.graphs.release import Release

__all__ = ["Expected", "PublicFacts", "RecordsAsked", "check_run", "refuse_data"]


class RecordsAsked(Exception):
    """Raised when a run asks for more than public facts."""


class PublicFacts(Counts):
    """A table without records: its schema, and the number of records.

    Attributes
    ----------
    schema : Schema
    n : int
    """

    def __init__(self, schema: Schema, n: int):
        self.schema, self.n, self.levels = schema, n, schema.levels
        self.ordered, self.missing = schema.ordered, schema.missing

    def counts(self, *_: Any, **__: Any) -> Any:
        """Refuse to count or to sum, because there are no records.

        Raises
        ------
        RecordsAsked
            Always.
        """
        raise RecordsAsked

    clipped_sums = subsample = counts
    codes = scaled = half_widths = property(counts)


class Expected(PublicFacts):
    """A table without records: independent variables with given shares of their levels.

    Attributes
    ----------
    schema : Schema
    n : int
    shares : sequence of array
        Shares of the levels of each variable, in order.
    """

    def __init__(self, schema: Schema, n: int, shares: Sequence[np.ndarray]):
        super().__init__(schema, n)
        self.shares = shares

    def counts(self, variables: Sequence[int]) -> np.ndarray:
        """The expected counts as whole numbers with the sum n."""
        shares = (self.shares[v] for v in variables)
        expected = self.n * reduce(np.multiply.outer, shares, np.ones(()))
        up_to = np.rint(expected.cumsum()).astype(np.int64)
        return np.diff(up_to, prepend=0).reshape(expected.shape)

    def clipped_sums(
        self, vectors: Sequence[np.ndarray], *, bound: float, n: int | None = None
    ) -> np.ndarray:
        """The expected sums of u u^T, as if no record were shortened."""
        means = [share @ rows for share, rows in zip(self.shares, vectors, strict=True)]
        own = [(rows.T * share) @ rows for share, rows in zip(self.shares, vectors, strict=True)]
        apart = [block - np.outer(mean, mean) for block, mean in zip(own, means, strict=True)]
        together = np.concatenate(means)
        return self.n * (np.outer(together, together) + block_diag(*apart))


def check_run(system: Callable[..., Release], levels: Any, n: int, **settings: Any) -> None:
    """Refuse settings that a system would refuse for a table, without the table.

    A reservation cannot be taken back. So settings that no run would accept should be refused
    before the reservation.

    Parameters
    ----------
    system : callable
        A system that asks for counts, such as :func:`~dpcgd.tables.private_graph.private_graph`.
    levels : Schema, mapping, str or path
        What :class:`~dpcgd.datasets.schema.Schema` takes.
    n : int
        Records of the table.
    settings
        All arguments of the system besides its data. This uses up a reservation, as a run does.

    Raises
    ------
    ValueError, TypeError, ImportError
        As the system does before it asks for the first number.

    Privacy
    -------
    It takes no data: whatever it tells is public, and costs nothing.

    Examples
    --------
    >>> from dpcgd import Knowledge, private_graph
    >>> levels = {name: ["no", "yes"] for name in "abc"}
    >>> check_run(private_graph, levels, 1_000, epsilon=1.0)
    >>> check_run(private_graph, levels, 1_000, epsilon=1.0, knowledge=Knowledge(tiers=[["x"]]))
    Traceback (most recent call last):
    ...
    ValueError: no variable is called 'x'; did you mean 'a', 'b', 'c'?
    """
    with suppress(RecordsAsked), warnings.catch_warnings(action="ignore"):  # the run itself warns
        system(PublicFacts(Schema.of(levels), n), **settings)


def refuse_data(levels: object) -> None:
    """Refuse data in place of public facts.

    Raises
    ------
    ValueError
        If it is data; the message says what to pass instead.
    """
    if isinstance(levels, (Counts, pd.DataFrame, np.ndarray)):
        kind = type(levels).__name__
        raise ValueError(f"this takes no data, and a {kind} holds some; pass the schema")
