"""A rehearsal of a run, on synthetic or public tables that are like the real one."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dpcgd.datasets.arguments import check_generator, check_whole
from dpcgd.datasets.dataset import Dataset
from dpcgd.datasets.progress import progress
from dpcgd.datasets.random_networks import random_network
from dpcgd.datasets.schema import Schema
from dpcgd.datasets.variable import PARTS, Parts
from dpcgd.graphs.cpdag import CPDAG
from dpcgd.graphs.release import Release
from dpcgd.privacy.account_file import unreserved
from dpcgd.privacy.budget import delta_for
from dpcgd.tables.private_graph import private_graph
from dpcgd.tables.public_facts import refuse_data

__all__ = ["Rehearsal", "RehearsedRun", "rehearse"]


class RehearsedRun(NamedTuple):
    """The result for one twin: numbers of edges, without their directions."""

    edges: int
    drawn: int
    right: int
    untested: int


NO_NOISE = 1e6
"""Epsilon with almost no noise, to find the edges of a public table."""

BINS = 5
"""Numbers of random networks are drawn from this many bins of their range, evenly in each bin."""

SCORES = ("precision", "recall", "f1")


@dataclass(frozen=True)
class Rehearsal:
    """Results of a system on twins, which are tables with the levels of the real table.

    Attributes
    ----------
    runs : tuple of RehearsedRun
        One result for each twin.
    title : str
        The system and its settings.
    """

    runs: tuple[RehearsedRun, ...]
    title: str

    def to_frame(self) -> pd.DataFrame:
        """A row for each run: numbers of edges, and scores of the edges drawn.

        Returns
        -------
        pandas.DataFrame
            ``precision`` is the share of the edges drawn that are right, ``recall`` the share of
            the network's edges that were found, ``f1`` their harmonic mean. Each is 1 if its
            denominator is 0.
        """
        frame = pd.DataFrame(self.runs).rename_axis("run")
        of_what = frame.drawn, frame.edges, (frame.drawn + frame.edges) / 2
        for name, whole in zip(SCORES, of_what, strict=True):
            frame[name] = (frame.right / whole).fillna(1.0)
        return frame

    def __repr__(self):
        frame = self.to_frame()
        mean = ", ".join(f"{name} {frame[name].mean():.2f}" for name in SCORES)
        table = frame.rename_axis(index=None, columns="run").to_string(float_format="{:.2f}".format)
        return f"Rehearsal of {self.title}\n{table}\nmean: {mean}"


def rehearse(
    levels: Any,
    n: int,
    *,
    epsilon: float,
    delta: float | None = None,
    rng: np.random.Generator,
    system: Callable[..., Release] = private_graph,
    runs: int = 5,
    public: Dataset | None = None,
    **settings: Any,
) -> Rehearsal:
    """Run a system on twins of a table: random networks with its levels, or a public table.

    Parameters
    ----------
    levels : Schema, mapping, str or path
        What :class:`~dpcgd.datasets.schema.Schema` takes.
    n : int
        Records of each twin.
    epsilon, delta : float
        As for the system.
    rng : numpy.random.Generator
        Source of networks, records and noise; with a public table, of records and noise.
    system : callable
        A system that takes a data set, epsilon, delta and rng, and gives a release.
    runs : int
        Number of twins.
    public : Dataset, optional
        A public table with these levels, such as an older census or a published sample. Each twin
        is `n` records of it, drawn with replacement. The result is compared with the table's true
        graph or, if that is unknown, with what the system finds in it at epsilon = 1e6.
    settings
        Other arguments of the system.

    Returns
    -------
    Rehearsal

    Raises
    ------
    ValueError
        If data is given as levels, or a public table has other levels; also as the schema, the
        random networks or the system do.

    Privacy
    -------
    It takes no data but what is public: whatever it tells is public, and costs nothing. Handing it
    the table to come as `public` would give that table away.

    Examples
    --------
    >>> levels = {name: ["no", "yes"] for name in "abcde"}
    >>> back = rehearse(levels, 100_000, epsilon=1.0, rng=np.random.default_rng(0), runs=2)
    >>> back.to_frame()[["edges", "drawn", "right"]].to_numpy().tolist()
    [[6, 6, 6], [6, 6, 6]]
    """
    refuse_data(levels)
    schema = Schema.of(levels)
    check_whole("n", n, 1)
    check_whole("runs", runs, 1)
    check_generator(rng)
    if not callable(system):
        raise ValueError(f"system must be one such as private_graph, not {system!r}")
    epsilon = unreserved(epsilon)
    run = partial(system, rng=rng, **settings)
    if public is None:
        twins = (_random_twin(schema, n, rng) for _ in range(runs))
        like = "sparse networks, mixed dependence"
    else:
        _check_public(public, schema)
        if public.truth is None:
            edges = run(public, epsilon=NO_NOISE, delta=delta_for(public.n)).graph.skeleton
        else:
            edges = CPDAG.from_dag(public.truth).skeleton
        drawn = (public.codes[rng.integers(public.n, size=n)] for _ in range(runs))
        twins = ((replace(public, codes=codes), edges) for codes in drawn)
        like = f"twins of {public.name}, which is public"
    delta = delta_for(n) if delta is None else delta
    shown = progress(twins, "rehearsing", runs)
    done = tuple(_compared(run(twin, epsilon=epsilon, delta=delta), true) for twin, true in shown)
    name, d = getattr(system, "__name__", "a system"), len(schema.variables)
    return Rehearsal(done, f"{name}: {d} variables, n = {n:,}, epsilon = {epsilon:g}, {like}")


def _random_twin(schema, n, rng) -> tuple[Dataset, frozenset]:
    numbers = {name for name, own in schema.levels.items() if isinstance(own, Parts)}
    levels = {v: own.joined(BINS) if v in numbers else own for v, own in schema.levels.items()}
    network = random_network("sparse", "mixed", len(levels), rng, levels=levels)
    codes = network.sample(n, rng=rng).codes.astype(int)
    for v, name in enumerate(levels):
        if name in numbers:  # evenly in one of a few bins
            anywhere = (codes[:, v] + rng.random(n)) * PARTS // BINS
            codes[:, v] = np.minimum(anywhere, PARTS)  # those that are missing come last
    return Dataset.of_schema(codes, schema, network.graph), CPDAG.from_dag(network.graph).skeleton


def _check_public(public, schema) -> None:
    if not isinstance(public, Dataset):
        kind, cure = type(public).__name__, "make one with Dataset.from_pandas or read_csv"
        raise ValueError(f"public must be a Dataset that everyone may see, not {kind}; {cure}")
    if dict(public.levels) != dict(schema.levels):
        problem = "has other variables or levels than the schema; read it with this schema"
        raise ValueError(f"the public table {public.name!r} {problem}")


def _compared(run: Release, true: frozenset) -> RehearsedRun:
    drawn, untested = run.graph.skeleton, run.answers.untested if run.answers else ()
    return RehearsedRun(len(true), len(drawn), len(true & drawn), len(untested))
