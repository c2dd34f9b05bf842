"""Records packed to bits on the workers of a Dask cluster, which answer with counts."""

import importlib.util
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from operator import attrgetter

import numpy as np

from dpcgd.datasets.bit_columns import CHANGED, BitColumns
from dpcgd.datasets.counts import Counts, Vectors
from dpcgd.datasets.schema import Schema

__all__ = ["ClusterRecords"]

TRIES = 20
"""How often the work of dead workers is started again."""

PATIENCE = 60
"""Seconds without an answer after which we check that the cluster has workers."""

DIE = (
    "workers die whenever they pack or count these records; give them more memory, or write the "
    "files with smaller row groups"
)
"""The message if workers keep dying."""


class ClusterRecords(Counts):
    """Counts of records that are stored, packed, on the workers of a cluster.

    If a worker dies, another worker packs its records again from the files. The files must not have
    changed: their size, the time when they were written and a digest of the packed records.

    Parameters
    ----------
    client : distributed.Client
    pack : callable
        Function from some parts to their records as
        :class:`~dpcgd.datasets.bit_columns.BitColumns`.
    parts : sequence of list of Part
        Each list is packed together; the workers see the files under these paths.
    schema : Schema
    name : str

    Raises
    ------
    ValueError
        If there is no such client, a file is damaged or a value does not fit its variable (the
        first one that is found, by file and record), or workers die whenever they pack. Here and
        later: if a file has changed, or the cluster has no workers left.
    """

    def __init__(self, client, pack, parts: Sequence[list], schema: Schema, name: str = "data"):
        _check_client(client)
        self.schema, self.name, self._client = schema, name, client
        self.levels, self.ordered, self.missing = schema.levels, schema.ordered, schema.missing
        self.n = sum(part.n for some in parts for part in some)
        self._parts = client.map(pack, parts, pure=False)
        self._digests = self._results(client.map(attrgetter("digest"), self._parts, pure=False))

    def counts(self, variables: Sequence[int]) -> np.ndarray:
        """Count the records in each cell of the named variables, axes in this order."""
        return self.counts_many([variables])[0]

    def counts_many(self, questions: Iterable[Sequence[int]]) -> list[np.ndarray]:
        """Count the cells of several tables: add the counts of each worker's records."""
        asked = [list(variables) for variables in questions]
        if not asked:
            return []
        cells = sum(self._asked(partial(_count, questions=asked)))
        shapes = [[self.cardinalities[v] for v in variables] for variables in asked]
        parts = np.split(cells, np.cumsum([np.prod(shape, dtype=int) for shape in shapes])[:-1])
        return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]

    def clipped_sums(self, vectors: Vectors, *, bound: float, n: int | None = None) -> np.ndarray:
        """Sum over records of u u^T; each worker sums over its own records."""
        ask = partial(BitColumns.clipped_sums, vectors=vectors, bound=bound, n=n or self.n)
        return np.sum(self._asked(ask), axis=0)

    def _asked(self, ask: Callable[[BitColumns], np.ndarray]) -> list[np.ndarray]:
        """The answer of each part, from the records that were packed first."""
        answer = partial(_answer, ask=ask)
        return self._results(self._client.map(answer, self._parts, self._digests, pure=False))

    def _results(self, futures) -> list:
        """Wait for all answers; start those again that failed because their worker died."""
        from distributed import KilledWorker

        for _ in range(TRIES):
            self._wait(futures)
            if any(future.cancelled() for future in futures):
                raise ValueError("the cluster has gone; connect to it, and read the files anew")
            failed = [future for future in futures if future.status == "error"]
            for error in (future.exception() for future in failed):
                if not isinstance(error, KilledWorker):
                    raise ValueError(str(error).partition("\n")[0]) from None
            if failed:
                self._client.retry(failed)
                continue
            with suppress(KilledWorker):
                return self._client.gather(futures)
        raise ValueError(DIE)

    def _wait(self, futures) -> None:
        """Wait for all answers, while the cluster has workers."""
        from distributed import wait

        while True:
            with suppress(TimeoutError):
                wait(futures, timeout=PATIENCE)
                return
            try:
                self._client.wait_for_workers(1, timeout=PATIENCE)
            except TimeoutError:
                raise ValueError("the cluster has no worker; start some, and call again") from None

    def __repr__(self):
        return f"ClusterRecords({self.name!r}, n={self.n:,}, d={self.d})"


def _check_client(client):
    if importlib.util.find_spec("distributed") is None:
        raise ValueError("a cluster takes distributed; pip install distributed, or pass no client")
    from distributed import Client

    if not isinstance(client, Client):
        kind = type(client).__name__
        raise ValueError(f"client must be a distributed.Client, not a {kind}; use Client(address)")


def _answer(columns: BitColumns, digest: bytes, ask) -> np.ndarray:
    if columns.digest != digest:
        raise ValueError(CHANGED)
    return ask(columns)


def _count(columns: BitColumns, questions) -> np.ndarray:
    """All cells of all tables as one array; Dask takes minutes to send 20,000 small arrays."""
    return np.concatenate([table.ravel() for table in columns.counts_many(questions)])
