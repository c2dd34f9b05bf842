"""Bayesian networks: a graph, its conditional probability tables, and samples from them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import networkx as nx
import numpy as np

from dpcgd.datasets.arguments import check_generator, check_whole
from dpcgd.datasets.counts import cell_numbers
from dpcgd.datasets.dataset import Dataset

__all__ = ["Network"]


@dataclass(frozen=True, eq=False)
class Network:
    """A discrete Bayesian network: its graph and its conditional probability tables.

    Parameters
    ----------
    name : str
    levels : mapping of str to sequence of str
        The levels of every variable, in file order.
    parents : mapping of str to tuple of str
    tables : mapping of str to array
        ``tables[v]`` has one axis for each parent of v, in the order of ``parents[v]``, and a last
        one over the levels of v, along which it sums to 1.
    """

    name: str
    levels: Mapping[str, tuple[str, ...]]
    parents: Mapping[str, tuple[str, ...]]
    tables: Mapping[str, np.ndarray] = field(repr=False)

    @property
    def graph(self) -> nx.DiGraph:
        """The causal graph, an arc from each parent to its child."""
        graph = nx.DiGraph()
        graph.add_nodes_from(self.levels)
        for child, parents in self.parents.items():
            graph.add_edges_from((parent, child) for parent in parents)
        return graph

    def sample(self, n: int, *, rng: np.random.Generator) -> Dataset:
        """Draw n independent records, parents before children.

        Raises
        ------
        ValueError
            If n is no whole number of 1 or more, or rng no Generator.

        Examples
        --------
        >>> from dpcgd import load
        >>> load("asia", n=5, rng=np.random.default_rng(0)).codes.shape
        (5, 8)
        """
        check_whole("n", n, 1)
        check_generator(rng)
        column = {variable: j for j, variable in enumerate(self.levels)}
        size = max(map(len, self.levels.values()))
        codes = np.zeros((n, len(column)), np.min_scalar_type(size - 1), order="F")
        for variable in nx.topological_sort(self.graph):
            parents = self.parents[variable]
            sizes = [len(self.levels[parent]) for parent in parents]
            row = cell_numbers((codes[:, column[parent]] for parent in parents), sizes, n)
            table = self.tables[variable].reshape(-1, len(self.levels[variable]))
            below, draw = np.cumsum(table, axis=1), rng.random(n)
            for level in range(table.shape[1] - 1):
                codes[:, column[variable]] += draw >= below[row, level]
        return Dataset(codes, self.levels, truth=nx.freeze(self.graph), name=self.name)
