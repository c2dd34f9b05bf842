"""All of a table that a run may look at before it pays, in the place of the table."""

import warnings
from collections.abc import Callable, Sequence
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
    """A run went beyond what is public."""


class PublicFacts(Counts):
    """A table without records: its schema and their number.

    Attributes
    ----------
    schema : Schema
    n : int
    """

    def __init__(self, schema: Schema, n: int):
        self.schema, self.n, self.levels = schema, n, schema.levels
        self.ordered, self.missing = schema.ordered, schema.missing

    def counts(self, *_: Any, **__: Any) -> Any:
        """There is nothing to count, nor to sum.

        Raises
        ------
        RecordsAsked
            Always.
        """
        raise RecordsAsked

    clipped_sums = counts


class Expected(PublicFacts):
    """A table that is not there: independent variables with these shares of their levels.

    Attributes
    ----------
    schema : Schema
    n : int
    shares : sequence of array
        Of each variable, in its order.
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
    """Refuse what a system would refuse of a table, without the table.

    A reservation is gone once it is made. So settings that no run would accept had better be
    refused before it.

    Parameters
    ----------
    system : callable
        One that asks for counts, such as :func:`~dpcgd.tables.private_graph.private_graph`.
    levels : Schema, mapping, str or path
        What :class:`~dpcgd.datasets.schema.Schema` takes.
    n : int
        Records of the table.
    settings
        All that the system takes beside its data. A reservation is used up by this, as by a run.

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
    ValueError: no variable is called 'x'; did you mean 'a'?
    """
    try:
        with warnings.catch_warnings(action="ignore"):  # the run gives them
            system(PublicFacts(Schema.of(levels), n), **settings)
    except RecordsAsked:
        pass


def refuse_data(levels: object) -> None:
    """Refuse data where public facts are asked for.

    Raises
    ------
    ValueError
        With what to pass instead.
    """
    if isinstance(levels, (Counts, pd.DataFrame, np.ndarray)):
        kind = type(levels).__name__
        raise ValueError(f"this takes no data, and a {kind} holds some; pass the schema")
