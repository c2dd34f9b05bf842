"""Completed partially directed acyclic graphs: what a search can know, and how it is scored."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import pandas as pd

from dpcgd.graphs.certainty import Certainty

__all__ = ["CPDAG", "EdgeLists", "meek"]


def meek(arcs: np.ndarray, untested: np.ndarray | bool = False) -> np.ndarray:
    """Orient every edge that the directed ones force (Meek 1995, rules 1 to 4).

    Parameters
    ----------
    arcs : boolean array, shape (d, d)
        a - b is ``arcs[a, b] and arcs[b, a]``, a -> b is ``arcs[a, b]`` alone.
    untested : boolean array, shape (d, d), optional
        Pairs that are apart without a test: between their neighbours may stand a collider that no
        test has ruled out, so the rules take them for joined.

    Returns
    -------
    boolean array, shape (d, d)
        A new array.

    Examples
    --------
    The chain a -> b - c without an edge a - c continues as b -> c (rule 1).

    >>> arcs = np.zeros((3, 3), bool)
    >>> arcs[0, 1] = arcs[1, 2] = arcs[2, 1] = True
    >>> meek(arcs).astype(int).tolist()
    [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    """
    arcs = arcs.copy()
    while forced := _forced(arcs, untested):
        for a, b in forced:
            arcs[b, a] = False
    return arcs


def _forced(arcs, untested) -> list[tuple[int, int]]:
    """Undirected edges a - b that one of the rules turns into a -> b; both ways is neither."""
    directed, undirected = arcs & ~arcs.T, arcs & arcs.T
    adjacent = arcs | arcs.T
    shielded = adjacent | untested
    found = {
        (a, b)
        for a, b in np.argwhere(undirected).tolist()
        if _is_forced(a, b, directed, undirected, adjacent, shielded)
    }
    return sorted((a, b) for a, b in found if (b, a) not in found)


def _is_forced(a, b, directed, undirected, adjacent, shielded) -> bool:
    into_b = directed[:, b]
    if (directed[:, a] & ~shielded[:, b]).any():
        return True
    if (directed[a] & into_b).any():
        return True
    ends = np.flatnonzero(undirected[a] & into_b)
    if any(not shielded[c, e] for c, e in combinations(ends, 2)):
        return True
    return any(
        not shielded[c, b] and (directed[c] & into_b & adjacent[a]).any()
        for c in np.flatnonzero(undirected[a])
        if c != b
    )


class EdgeLists(NamedTuple):
    """The edges of a graph by name: as (from, to), and without direction."""

    directed: list[tuple[str, str]]
    undirected: list[tuple[str, str]]


@dataclass(frozen=True, eq=False)
class CPDAG:
    """A graph with directed and undirected edges over named variables.

    Parameters
    ----------
    variables : sequence of str
    arcs : boolean array, shape (d, d)
        a - b is ``arcs[a, b] and arcs[b, a]``, a -> b is ``arcs[a, b]`` alone.
    certainty : Certainty, optional
        Probabilities of every edge that is joined, and of its arrows both ways round. Equality and
        scores compare marks only.

    Raises
    ------
    ValueError
        If the array does not fit the variables or joins one to itself, or the certainty lacks an
        edge.

    Notes
    -----
    A search on finite data may return a graph that no DAG has as its completed form; it is kept as
    it is.

    Examples
    --------
    >>> truth = nx.DiGraph([("a", "c"), ("b", "c"), ("c", "d")])
    >>> print(CPDAG.from_dag(truth))
    a -> c
    c -> d
    b -> c
    """

    variables: Sequence[str]
    arcs: np.ndarray
    certainty: Certainty | None = None

    def __post_init__(self):
        variables, arcs = tuple(self.variables), np.array(self.arcs, bool)
        if arcs.shape != (len(variables),) * 2 or len(set(variables)) < len(variables):
            raise ValueError(f"{len(variables)} distinct variables need a square array of arcs")
        if arcs.diagonal().any():
            raise ValueError("a variable is joined to itself; take the loop out")
        arcs.flags.writeable = False
        object.__setattr__(self, "variables", variables)
        object.__setattr__(self, "arcs", arcs)
        if self.certainty is not None:
            self.certainty.check_covers(self.skeleton)

    @classmethod
    def from_dag(cls, dag: nx.DiGraph) -> "CPDAG":
        """The completed form of a DAG: directed where all its Markov-equivalent DAGs agree."""
        if not nx.is_directed_acyclic_graph(dag):
            raise ValueError("the graph has a cycle; only an acyclic one has a completed form")
        variables = tuple(dag)
        true = nx.to_numpy_array(dag, nodelist=variables, weight=None) > 0
        adjacent = true | true.T
        arcs = adjacent.copy()
        for c in range(len(variables)):
            for a, b in combinations(np.flatnonzero(true[:, c]), 2):
                if not adjacent[a, b]:
                    arcs[c, a] = arcs[c, b] = False
        return cls(variables, meek(arcs))

    @classmethod
    def from_networkx(cls, graph: nx.DiGraph) -> "CPDAG":
        """Read a graph in which an undirected edge is a pair of opposite arcs.

        Probabilities that :meth:`to_networkx` wrote are read back if every arc has them.
        """
        arcs = nx.to_numpy_array(graph, nodelist=list(graph), weight=None) > 0
        return cls(tuple(graph), arcs, _written_certainty(graph))

    @classmethod
    def from_amat(cls, amat: np.ndarray, variables: Sequence[str], convention: str) -> "CPDAG":
        """Read an adjacency matrix written by another package; see :meth:`to_amat`."""
        amat = np.asarray(amat)
        if convention == "pcalg":
            return cls(variables, amat.T != 0)
        if convention == "causal-learn":
            if ((amat == 1) & (amat.T == 1)).any() or (amat == 2).any():
                raise ValueError("the graph has bidirected or circle marks; a CPDAG has neither")
            return cls(variables, amat == -1)
        raise ValueError(f"no convention {convention!r}; it is 'pcalg' or 'causal-learn'")

    def to_networkx(self) -> nx.DiGraph:
        """A DiGraph; an undirected edge is both arcs, and each arc says ``directed`` or not.

        With a certainty each arc has ``probability``, that of its edge, ``arrow_probability`` and
        ``reverse_probability``, those of the arrow this way and the other way round. The graph has
        ``caution`` and ``verdict`` where there is one.
        """
        graph = nx.DiGraph()
        graph.add_nodes_from(self.variables)
        for a, b in np.argwhere(self.arcs):
            start, end = self.variables[a], self.variables[b]
            directed = not self.arcs[b, a]
            graph.add_edge(start, end, directed=directed, **self._probabilities(start, end))
        graph.graph |= self._remarks()
        return graph

    def _probabilities(self, start, end) -> dict[str, float]:
        if self.certainty is None:
            return {}
        return {
            "probability": self.certainty.edges[frozenset((start, end))],
            "arrow_probability": self.certainty.arrows[start, end],
            "reverse_probability": self.certainty.arrows[end, start],
        }

    def _remarks(self) -> dict[str, str]:
        if self.certainty is None:
            return {}
        words = {
            "verdict": self.certainty.verdict(self.skeleton),
            "caution": self.certainty.caution,
        }
        return {name: word for name, word in words.items() if word}

    def to_amat(self, convention: str) -> np.ndarray:
        """An adjacency matrix in another package's convention.

        Parameters
        ----------
        convention : {"pcalg", "causal-learn"}
            For a -> b, pcalg has ``amat[a, b] = 0`` and ``amat[b, a] = 1``; causal-learn has
            ``G[b, a] = 1`` and ``G[a, b] = -1``. Undirected: 1 and 1, or -1 and -1.

        Notes
        -----
        Neither convention has a place for probabilities; :meth:`to_frame` writes them.
        """
        if convention == "pcalg":
            return self.arcs.T.astype(int)
        if convention == "causal-learn":
            return (self.arcs.T & ~self.arcs).astype(int) - self.arcs
        raise ValueError(f"no convention {convention!r}; it is 'pcalg' or 'causal-learn'")

    def to_dot(self) -> str:
        """Graphviz source; with a certainty each edge is labelled with its probabilities."""
        quoted = [_quoted(name) for name in self.variables]
        lines = [f"  label={_quoted('; '.join(self.remarks))};"] if self.remarks else []
        lines += [f"  {name};" for name in quoted]
        for a, b in self.edges:
            attributes = ["dir=none"] if self.arcs[b, a] else []
            if self.certainty:
                attributes.append(f'label="{self.label(a, b)}"')
            tail = f" [{', '.join(attributes)}]" if attributes else ""
            lines.append(f"  {quoted[a]} -> {quoted[b]}{tail};")
        return "\n".join(["digraph {", *lines, "}"])

    def to_gml(self) -> str:
        """GML, with ``directed`` 1 or 0 of each arc; an undirected edge is both arcs.

        Read it with ``CPDAG.from_networkx(networkx.parse_gml(text))``.
        """
        graph = self.to_networkx()
        for _, _, of in graph.edges(data=True):
            of["directed"] = int(of["directed"])
        return "\n".join(nx.generate_gml(graph))

    def to_edge_lists(self) -> EdgeLists:
        """Names of the ends of the directed edges and of the undirected ones.

        As pgmpy takes them: ``PDAG(directed_ebunch=directed, undirected_ebunch=undirected)``. They
        have no place for probabilities; :meth:`to_frame` writes them.

        Examples
        --------
        >>> CPDAG.from_dag(nx.DiGraph([("a", "c"), ("b", "c"), ("c", "d")])).to_edge_lists()
        EdgeLists(directed=[('a', 'c'), ('c', 'd'), ('b', 'c')], undirected=[])
        """
        named = {(a, b): (self.variables[a], self.variables[b]) for a, b in self.edges}
        directed = [names for (a, b), names in named.items() if not self.arcs[b, a]]
        return EdgeLists(directed, [names for names in named.values() if names not in directed])

    def to_frame(self) -> pd.DataFrame:
        """One row an edge: ``from``, ``to``, ``directed``, and its probabilities if there are any.

        They have the names of :meth:`to_networkx`. ``attrs`` holds ``caution`` and ``verdict``.

        Examples
        --------
        >>> pair = Certainty({frozenset("ab"): 0.9}, {("a", "b"): 0.7, ("b", "a"): 0.1})
        >>> frame = CPDAG("ab", [[False, True], [False, False]], pair).to_frame()
        >>> print(frame[["from", "to", "probability", "arrow_probability"]].to_string(index=False))
        from to  probability  arrow_probability
           a  b          0.9                0.7
        """
        rows = []
        for a, b in self.edges:
            start, end = self.variables[a], self.variables[b]
            row = {"from": start, "to": end, "directed": not self.arcs[b, a]}
            rows.append(row | self._probabilities(start, end))
        frame = pd.DataFrame(rows, columns=None if rows else ["from", "to", "directed"])
        frame.attrs |= self._remarks()
        return frame

    def to_causal_learn(self) -> Any:
        """A ``GeneralGraph`` of causal-learn; its attributes hold the probabilities, if any.

        Raises
        ------
        ImportError
            If causal-learn is not installed.
        """
        try:
            from causallearn.graph.GeneralGraph import GeneralGraph
            from causallearn.graph.GraphNode import GraphNode
        except ImportError:
            raise ImportError(
                "this needs causal-learn; install it with: pip install causal-learn; the matrix "
                "to_amat('causal-learn') needs nothing"
            ) from None
        graph = GeneralGraph([GraphNode(name) for name in self.variables])
        graph.graph = self.to_amat("causal-learn")
        graph.reconstitute_dpath(graph.get_graph_edges())
        if self.certainty:
            graph.add_attribute("edge_probabilities", dict(self.certainty.edges))
            graph.add_attribute("arrow_probabilities", dict(self.certainty.arrows))
            graph.attributes |= self._remarks()
        return graph

    @property
    def expected_right_edges(self) -> float | None:
        """The sum of the probabilities of the edges; None without a certainty."""
        if self.certainty is None:
            return None
        return sum(self.certainty.edges[pair] for pair in self.skeleton)

    @property
    def expected_right_arrows(self) -> float | None:
        """The sum of the probabilities of the arrows drawn; None without a certainty."""
        if self.certainty is None:
            return None
        return sum(self.certainty.arrows[arrow] for arrow in self.arrows)

    @property
    def remarks(self) -> list[str]:
        """A plain word where the graph tells little, and a reason to doubt its probabilities."""
        return list(self._remarks().values())

    @property
    def edges(self) -> list[tuple[int, int]]:
        """Each edge once, by column numbers, as it points or in column order."""
        pairs = np.argwhere(self.arcs).tolist()
        return [(a, b) for a, b in pairs if a < b or not self.arcs[b, a]]

    def label(self, a: int, b: int, short: bool = False) -> str:
        """The probabilities of an edge as text; empty without a certainty.

        Parameters
        ----------
        a, b : int
            As in :attr:`edges`.
        short : bool
            Numbers only, for a drawing: the edge, and after a stroke its arrow.
        """
        if self.certainty is None:
            return ""
        ends = self.variables[a], self.variables[b]
        return self.certainty.label(*ends, directed=not self.arcs[b, a], short=short)

    def __str__(self):
        edges = [self._edge(a, b) for a, b in self.edges]
        return "\n".join((edges or ["(no edge)"]) + self.remarks)

    def _edge(self, a, b) -> str:
        sign = "--" if self.arcs[b, a] else "->"
        label = self.label(a, b)
        return f"{self.variables[a]} {sign} {self.variables[b]}{label and f'  ({label})'}"

    def __eq__(self, other):
        if not isinstance(other, CPDAG):
            return NotImplemented
        if set(self.variables) != set(other.variables):
            return False
        return bool((self.arcs == other._arranged(self.variables)).all())

    @property
    def skeleton(self) -> frozenset[frozenset[str]]:
        """The joined pairs, without direction."""
        return frozenset(frozenset((self.variables[a], self.variables[b])) for a, b in self.edges)

    @property
    def arrows(self) -> frozenset[tuple[str, str]]:
        """The directed edges, as (from, to)."""
        found = np.argwhere(self.arcs & ~self.arcs.T)
        return frozenset((self.variables[a], self.variables[b]) for a, b in found)

    def skeleton_f1(self, truth: "CPDAG | nx.DiGraph") -> float:
        """F1 score of the joined pairs, direction ignored.

        Parameters
        ----------
        truth : CPDAG or networkx.DiGraph
            Over the same variables; a DAG stands for its completed form.
        """
        return _f1(self.skeleton, self._comparable(truth).skeleton)

    def arrowhead_f1(self, truth: "CPDAG | nx.DiGraph") -> float:
        """F1 score of the directed edges; undirected ones count on neither side."""
        return _f1(self.arrows, self._comparable(truth).arrows)

    def shd(self, truth: "CPDAG | nx.DiGraph") -> int:
        """Structural Hamming distance: pairs that differ, by presence or by direction."""
        differ = self.arcs != self._comparable(truth)._arranged(self.variables)
        return int(np.triu(differ | differ.T).sum())

    def _comparable(self, truth) -> "CPDAG":
        if isinstance(truth, nx.DiGraph):
            acyclic = nx.is_directed_acyclic_graph(truth)
            truth = CPDAG.from_dag(truth) if acyclic else CPDAG.from_networkx(truth)
        if not isinstance(truth, CPDAG):
            raise TypeError(
                f"compare with a CPDAG or a networkx.DiGraph, not {type(truth).__name__}"
            )
        if set(truth.variables) != set(self.variables):
            odd = sorted(set(truth.variables) ^ set(self.variables))
            raise ValueError(f"only one of the two graphs has {', '.join(odd)}; name both alike")
        return truth

    def _arranged(self, variables) -> np.ndarray:
        at = [self.variables.index(name) for name in variables]
        return self.arcs[np.ix_(at, at)]


def _quoted(text: str) -> str:
    """A string of Graphviz."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _written_certainty(graph: nx.DiGraph) -> Certainty | None:
    """The probabilities in the arcs of a graph, if all of them have some."""
    arcs = list(graph.edges(data=True))
    needed = {"probability", "arrow_probability", "reverse_probability"}
    if not arcs or not all(needed <= data.keys() for _, _, data in arcs):
        return None
    edges = {frozenset((a, b)): data["probability"] for a, b, data in arcs}
    arrows = {(b, a): data["reverse_probability"] for a, b, data in arcs}
    arrows |= {(a, b): data["arrow_probability"] for a, b, data in arcs}
    return Certainty(edges, arrows, graph.graph.get("caution", ""))


def _f1(found: frozenset, true: frozenset) -> float:
    if not found and not true:
        return 1.0
    return 2 * len(found & true) / (len(found) + len(true))
