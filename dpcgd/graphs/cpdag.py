"""Completed partially directed acyclic graphs (CPDAGs), their exports and their scores."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import networkx as nx
import numpy as np
import pandas as pd

__all__ = ["CPDAG", "Certainty", "EdgeLists", "Probabilities"]
__all__ += ["consistent_extension", "meek", "two_digits"]

NO_PAIR = "at this noise no pair stands out"

FEW_RIGHT = "most of the edges drawn are expected to be wrong"

PROBABILITIES = ("probability", "arrow_probability", "reverse_probability")
"""Names in exports of three probabilities: of an edge, its arrow, and the reverse arrow."""

ATTRIBUTES = ", ".join(f'{name}="{{{i}}}"' for i, name in enumerate(PROBABILITIES, 1))
"""The probabilities of an edge as attributes in texts for other programs."""


def meek(arcs: np.ndarray, untested: np.ndarray | bool = False) -> np.ndarray:
    """Orient every edge that the directed ones force (Meek 1995, rules 1 to 4).

    Parameters
    ----------
    arcs : boolean array, shape (d, d)
        a - b is ``arcs[a, b] and arcs[b, a]``, a -> b is ``arcs[a, b]`` alone.
    untested : boolean array, shape (d, d), optional
        Pairs without an edge that were never tested. A variable between the two may be a collider
        that no test has ruled out, so the rules treat such pairs as joined.

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
    while (forced := _forced(arcs, untested)).any():
        arcs &= ~forced.T
    return arcs


def _forced(arcs, untested) -> np.ndarray:
    """Undirected edges a - b that a rule directs as a -> b; an edge directed both ways stays."""
    directed, undirected, adjacent = arcs & ~arcs.T, arcs & arcs.T, arcs | arcs.T
    apart = _apart(adjacent | untested)
    a, b = np.nonzero(undirected)
    beside_a, before_b, apart_from_b = undirected[a], directed[:, b].T, apart[:, b].T
    ends, middles = beside_a & before_b, beside_a & apart_from_b
    forced = np.zeros_like(arcs)
    forced[a, b] = (
        (directed[:, a].T & apart_from_b)
        | (directed[a] & before_b)
        | (_meet(ends, apart) & ends)
        | (_meet(middles, directed) & before_b & adjacent[a])
    ).any(axis=1)
    return forced & ~forced.T


def _apart(adjacent) -> np.ndarray:
    """Pairs of different variables that are not adjacent."""
    return ~(adjacent | np.eye(len(adjacent), dtype=bool))


def _meet(left, right) -> np.ndarray:
    """Whether row i of the first array and column j of the second share a variable."""
    return left.astype(np.float32) @ right.astype(np.float32) > 0


class EdgeLists(NamedTuple):
    """The directed edges of a graph, by name as (from, to), and its undirected edges."""

    directed: list[tuple[str, str]]
    undirected: list[tuple[str, str]]


class Probabilities(NamedTuple):
    """Probabilities of edges and arrows as frames: a row and a column for each variable.

    ``edges`` is symmetric. ``arrows`` has causes in its rows and effects in its columns. An entry
    is missing if the graph gives no probability.
    """

    edges: pd.DataFrame
    arrows: pd.DataFrame


@dataclass(frozen=True)
class Certainty:
    """Probabilities of the edges and arrows of a graph.

    Parameters
    ----------
    edges : mapping of frozenset to float
        Map from a pair of variables to the probability of an edge. It may hold pairs that the graph
        does not join. Probabilities of 1 or 0 come from background knowledge.
    arrows : mapping of tuple to float
        Map from (cause, effect) to the probability that the pair has an edge with this direction.
    caution : str, optional
        A reason to doubt these numbers, from public facts only.

    Raises
    ------
    ValueError
        If a number is not between 0 and 1.

    Examples
    --------
    >>> weak = Certainty({frozenset("ab"): 0.2, frozenset("ac"): 0.1, frozenset("bc"): 0.1}, {})
    >>> weak.verdict(joined=[])
    'at this noise no pair stands out'
    """

    edges: Mapping[frozenset[str], float]
    arrows: Mapping[tuple[str, str], float]
    caution: str = ""

    def __post_init__(self):
        for name in ("edges", "arrows"):
            numbers = {key: float(number) for key, number in getattr(self, name).items()}
            if wrong := [number for number in numbers.values() if not 0 <= number <= 1]:
                raise ValueError(f"a probability lies between 0 and 1; {wrong[0]:g} does not")
            object.__setattr__(self, name, numbers)

    def verdict(self, joined: Collection[frozenset[str]]) -> str:
        """A warning in words if a graph of these pairs is uninformative; else an empty text.

        Pairs that knowledge fixed do not count.
        """
        open_pairs = {pair: number for pair, number in self.edges.items() if 0 < number < 1}
        drawn = [open_pairs[pair] for pair in joined if pair in open_pairs]
        nothing = bool(open_pairs) and max(open_pairs.values()) < 0.5
        return "; ".join([NO_PAIR] * nothing + [FEW_RIGHT] * (sum(drawn) < len(drawn) / 2))

    def of_edge(self, start: str, end: str) -> tuple[float, float, float]:
        """The probabilities of an edge, of its arrow, and of the reverse arrow.

        Raises
        ------
        ValueError
            If one of them is missing.
        """
        try:
            arrows = self.arrows[start, end], self.arrows[end, start]
            return self.edges[frozenset((start, end))], *arrows
        except KeyError:
            problem = f"{start} and {end} are joined without a probability"
            cure = "give one to every edge, and to its arrows both ways round"
            raise ValueError(f"{problem}; {cure}") from None


def two_digits(probability: float) -> str:
    """A probability with two digits; it is shown as 0 or 1 only if it is exactly 0 or 1.

    Examples
    --------
    >>> [two_digits(p) for p in (0, 0.001, 0.874, 0.9999, 1)]
    ['0', '<0.01', '0.87', '>0.99', '1']
    """
    if probability in (0, 1):
        return f"{probability:g}"
    if probability < 0.005:
        return "<0.01"
    return f"{probability:.2f}" if probability < 0.995 else ">0.99"


@dataclass(frozen=True, eq=False)
class CPDAG:
    """A graph with directed and undirected edges over named variables.

    Parameters
    ----------
    variables : sequence of str
    arcs : boolean array, shape (d, d)
        a - b is ``arcs[a, b] and arcs[b, a]``, a -> b is ``arcs[a, b]`` alone.
    certainty : Certainty, optional
        Probabilities of every edge and its arrows both ways. Equality and scores ignore them.

    Raises
    ------
    ValueError
        If the array does not fit the variables or joins one to itself, or the certainty lacks an
        edge.

    Notes
    -----
    A search on finite data may return a graph that is the CPDAG of no DAG; it is kept unchanged.

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
        vars(self).update(variables=variables, arcs=arcs)
        if self.certainty:
            for start, end in sorted(map(sorted, self.skeleton)):
                self.certainty.of_edge(start, end)

    @classmethod
    def from_dag(cls, dag: nx.DiGraph) -> "CPDAG":
        """The CPDAG of a DAG: an edge is directed if all Markov-equivalent DAGs agree on it."""
        if not nx.is_directed_acyclic_graph(dag):
            raise ValueError("the graph has a cycle; take one of its arcs out")
        causes = nx.to_numpy_array(dag, weight=None) > 0
        adjacent = causes | causes.T
        into_colliders = causes & _meet(_apart(adjacent), causes)
        return cls(tuple(dag), meek(adjacent & ~into_colliders.T))

    @classmethod
    def from_networkx(cls, graph: nx.DiGraph) -> "CPDAG":
        """Read a graph in which an undirected edge is a pair of opposite arcs.

        Probabilities from :meth:`to_networkx` are read back if every arc has them.
        """
        arcs = nx.to_numpy_array(graph, weight=None) > 0
        return cls(tuple(graph), arcs, _written_certainty(graph))

    @classmethod
    def from_amat(
        cls,
        amat: np.ndarray,
        variables: Sequence[str],
        convention: str,
        probabilities: Probabilities | None = None,
    ) -> "CPDAG":
        """Read an adjacency matrix written by another package; see :meth:`to_amat`.

        Probabilities are given as by :meth:`to_probabilities`.
        """
        _check_convention(convention)
        amat = np.asarray(amat)
        known = None if probabilities is None else _framed_certainty(*probabilities)
        if convention == "pcalg":
            return cls(variables, amat.T != 0, known)
        if ((amat == 1) & (amat.T == 1)).any() or (amat == 2).any():
            raise ValueError("the graph has bidirected or circle marks; a CPDAG has neither")
        return cls(variables, amat == -1, known)

    def to_networkx(self) -> nx.DiGraph:
        """A DiGraph; an undirected edge becomes both arcs, and each arc has ``directed``.

        With a certainty each arc has three attributes: ``probability`` of its edge,
        ``arrow_probability`` of this direction, and ``reverse_probability`` of the other. The graph
        has ``caution`` and ``verdict`` if they are not empty.
        """
        graph = nx.DiGraph(**self._remarks())
        graph.add_nodes_from(self.variables)
        for a, b in np.argwhere(self.arcs):
            ends = self.variables[a], self.variables[b]
            numbers = self.certainty.of_edge(*ends) if self.certainty else ()
            probabilities = dict(zip(PROBABILITIES, numbers, strict=False))
            graph.add_edge(*ends, directed=not self.arcs[b, a], **probabilities)
        return graph

    def _remarks(self) -> dict[str, str]:
        sure = self.certainty
        remarks = {"verdict": sure.verdict(self.skeleton), "caution": sure.caution} if sure else {}
        return {name: remark for name, remark in remarks.items() if remark}

    def to_amat(self, convention: str) -> np.ndarray:
        """An adjacency matrix in another package's convention.

        Parameters
        ----------
        convention : {"pcalg", "causal-learn"}
            For a -> b, pcalg has ``amat[a, b] = 0`` and ``amat[b, a] = 1``; causal-learn has
            ``G[b, a] = 1`` and ``G[a, b] = -1``. Undirected: 1 and 1, or -1 and -1.

        Notes
        -----
        Neither convention has a place for probabilities: :meth:`to_probabilities` gives them as
        matrices of the same shape. pcalg reads the first as ``as(t(amat), "graphNEL")``; a
        ``GeneralGraph`` of causal-learn takes the second as its ``graph``.
        """
        _check_convention(convention)
        if convention == "pcalg":
            return self.arcs.T.astype(int)
        return (self.arcs.T & ~self.arcs).astype(int) - self.arcs

    def to_probabilities(self) -> Probabilities:
        """The probabilities that belong to a matrix of :meth:`to_amat`, in any convention.

        Raises
        ------
        ValueError
            If the graph has no certainty.

        Examples
        --------
        >>> pair = Certainty({frozenset("ab"): 0.9}, {("a", "b"): 0.7, ("b", "a"): 0.1})
        >>> CPDAG("ab", [[False, True], [False, False]], pair).to_probabilities().arrows.loc["a"]
        a    NaN
        b    0.7
        Name: a, dtype: float64
        """
        if self.certainty is None:
            raise ValueError("the graph has no probabilities; read it from a release of moments")
        edges = pd.DataFrame(np.nan, self.variables, self.variables)
        arrows = edges.copy()
        edges.attrs["caution"] = self.certainty.caution
        for pair, number in self.certainty.edges.items():
            edges.loc[*pair] = edges.loc[*reversed([*pair])] = number
        for ends, number in self.certainty.arrows.items():
            arrows.loc[*ends] = number
        return Probabilities(edges, arrows)

    def to_dot(self) -> str:
        """Graphviz source; with a certainty each edge has its probabilities, and a label."""
        remarks = [f"label={_quoted('; '.join(self.remarks))}"] if self.remarks else []
        return self._in_braces("digraph", remarks, "{} -> {} [dir=none]", 'label="{0}", ')

    def to_dagitty(self) -> str:
        """Text for dagitty; with a certainty each edge has its probabilities as attributes.

        Examples
        --------
        >>> print(CPDAG("ab", [[False, True], [False, False]]).to_dagitty())
        pdag {
          "a";
          "b";
          "a" -> "b";
        }
        """
        return self._in_braces("pdag", [], "{} -- {}", "")

    def _in_braces(self, kind, heads, undirected, label) -> str:
        """Variables and edges in the syntax of Graphviz and dagitty."""
        names = [_quoted(name) for name in self.variables]
        edges = self._edge_lines(names, undirected, f" [{label}{ATTRIBUTES}]")
        return "\n".join([f"{kind} {{", *(f"  {line};" for line in (*heads, *names, *edges)), "}"])

    def _edge_lines(self, names, undirected, words: str) -> list[str]:
        """Each edge as text; `words` has places for its label and its probabilities, if any."""
        lines = []
        for a, b in self.edges:
            edge = (undirected if self.arcs[b, a] else "{} -> {}").format(names[a], names[b])
            if self.certainty:
                numbers = self.certainty.of_edge(self.variables[a], self.variables[b])
                edge += words.format(self.label(a, b), *numbers)
            lines.append(edge)
        return lines

    def to_gml(self) -> str:
        """GML, where each arc has ``directed`` 1 or 0; an undirected edge becomes both arcs.

        Read it with ``CPDAG.from_networkx(networkx.parse_gml(text))``.
        """
        return "\n".join(nx.generate_gml(self.to_networkx()))

    def to_edge_lists(self) -> EdgeLists:
        """The directed and the undirected edges, as pairs of names.

        pgmpy takes them: ``PDAG(directed_ebunch=directed, undirected_ebunch=undirected)``. The
        format has no place for probabilities; :meth:`to_frame` has them.

        Examples
        --------
        >>> CPDAG.from_dag(nx.DiGraph([("a", "c"), ("b", "c"), ("c", "d")])).to_edge_lists()
        EdgeLists(directed=[('a', 'c'), ('c', 'd'), ('b', 'c')], undirected=[])
        """
        lists = EdgeLists([], [])
        for a, b in self.edges:
            lists[int(self.arcs[b, a])].append((self.variables[a], self.variables[b]))
        return lists

    def to_frame(self) -> pd.DataFrame:
        """One row an edge: ``from``, ``to``, ``directed``, and its probabilities if there are any.

        Probabilities are named as in :meth:`to_networkx`; ``attrs`` has ``caution`` and
        ``verdict``.

        Examples
        --------
        >>> pair = Certainty({frozenset("ab"): 0.9}, {("a", "b"): 0.7, ("b", "a"): 0.1})
        >>> frame = CPDAG("ab", [[False, True], [False, False]], pair).to_frame()
        >>> print(frame[["from", "to", "probability", "arrow_probability"]].to_string(index=False))
        from to  probability  arrow_probability
           a  b          0.9                0.7
        """
        names, graph = self.variables, self.to_networkx()
        edges = [(names[a], names[b]) for a, b in self.edges]
        rows = [{"from": start, "to": end, **graph.edges[start, end]} for start, end in edges]
        frame = pd.DataFrame(rows, columns=None if rows else ["from", "to", "directed"])
        frame.attrs |= graph.graph
        return frame

    @property
    def expected_right_edges(self) -> float | None:
        """The sum of the probabilities of the edges; None without a certainty."""
        sure = self.certainty
        return sum(sorted(sure.edges[pair] for pair in self.skeleton)) if sure else None

    @property
    def expected_right_arrows(self) -> float | None:
        """The sum of the probabilities of the arrows drawn; None without a certainty."""
        sure = self.certainty
        return sum(sorted(sure.arrows[arrow] for arrow in self.arrows)) if sure else None

    @property
    def remarks(self) -> list[str]:
        """Warnings: the graph is uninformative, or there is a reason to doubt its probabilities."""
        return list(self._remarks().values())

    @property
    def edges(self) -> list[tuple[int, int]]:
        """Each edge once, by column numbers: cause and effect; if undirected, in column order."""
        return [(a, b) for a, b in np.argwhere(self.arcs).tolist() if a < b or not self.arcs[b, a]]

    def label(self, a: int, b: int, short: bool = False) -> str:
        """The probabilities of an edge as text; empty without a certainty.

        Parameters
        ----------
        a, b : int
            As in :attr:`edges`.
        short : bool
            Numbers only, for a drawing: the edge, and after a slash its arrow.
        """
        if self.certainty is None:
            return ""
        numbers = self.certainty.of_edge(self.variables[a], self.variables[b])
        edge, there, back = map(two_digits, numbers)
        directed = not self.arcs[b, a]
        if short:
            return (f"{edge}/{there}" if directed else edge).replace("0.", ".")
        return f"edge {edge}, " + (f"arrow {there}" if directed else f"-> {there}, <- {back}")

    def __str__(self):
        lines = self._edge_lines(self.variables, "{} -- {}", "  ({})")
        return "\n".join((lines or ["(no edge)"]) + self.remarks)

    def __eq__(self, other):
        if not isinstance(other, CPDAG):
            return NotImplemented
        return set(self.variables) == set(other.variables) and self.shd(other) == 0

    @property
    def skeleton(self) -> frozenset[frozenset[str]]:
        """The joined pairs, without direction."""
        return frozenset(map(frozenset, chain(*self.to_edge_lists())))

    @property
    def arrows(self) -> frozenset[tuple[str, str]]:
        """The directed edges, as (from, to)."""
        return frozenset(self.to_edge_lists().directed)

    def skeleton_f1(self, truth: "CPDAG | nx.DiGraph") -> float:
        """F1 score of the joined pairs, direction ignored.

        Parameters
        ----------
        truth : CPDAG or networkx.DiGraph
            A graph over the same variables; a DAG is replaced by its CPDAG.
        """
        return _f1(self.skeleton, self._comparable(truth).skeleton)

    def arrowhead_f1(self, truth: "CPDAG | nx.DiGraph") -> float:
        """F1 score of the directed edges; undirected edges do not count in either graph."""
        return _f1(self.arrows, self._comparable(truth).arrows)

    def shd(self, truth: "CPDAG | nx.DiGraph") -> int:
        """Structural Hamming distance: pairs that differ in the edge or in its direction."""
        truth = self._comparable(truth)
        columns = [truth.variables.index(name) for name in self.variables]
        differ = self.arcs != truth.arcs[np.ix_(columns, columns)]
        return int(np.triu(differ | differ.T).sum())

    def _comparable(self, truth) -> "CPDAG":
        if isinstance(truth, nx.DiGraph):
            acyclic = nx.is_directed_acyclic_graph(truth)
            truth = CPDAG.from_dag(truth) if acyclic else CPDAG.from_networkx(truth)
        if not isinstance(truth, CPDAG):
            raise TypeError(f"give a CPDAG or a networkx.DiGraph, not a {type(truth).__name__}")
        if odd := set(truth.variables) ^ set(self.variables):
            names = ", ".join(sorted(odd))
            raise ValueError(f"only one of the two graphs has {names}; name both alike")
        return truth


def _check_convention(convention):
    if convention not in ("pcalg", "causal-learn"):
        raise ValueError(f"no convention {convention!r}; it is 'pcalg' or 'causal-learn'")


def _quoted(text: str) -> str:
    """A quoted string of Graphviz."""
    return '"{}"'.format(text.replace("\\", "\\\\").replace('"', '\\"'))


def _written_certainty(graph: nx.DiGraph) -> Certainty | None:
    """The certainty in the arcs of a graph, if every arc has probabilities."""
    edges, arrows = {}, {}
    for a, b, data in graph.edges(data=True):
        if not {*PROBABILITIES} <= data.keys():
            return None
        edges[frozenset((a, b))], arrows[a, b], arrows[b, a] = map(data.get, PROBABILITIES)
    return Certainty(edges, arrows, graph.graph.get("caution", "")) if edges else None


def _framed_certainty(edges: pd.DataFrame, arrows: pd.DataFrame) -> Certainty:
    """The certainty in two frames of probabilities."""
    known, pointing = (frame.stack().dropna().items() for frame in (edges, arrows))
    pairs = {frozenset(pair): number for pair, number in known}
    return Certainty(pairs, dict(pointing), edges.attrs.get("caution", ""))


def _f1(edges: frozenset, others: frozenset) -> float:
    return 2 * len(edges & others) / (len(edges) + len(others)) if edges or others else 1.0


def consistent_extension(graph: CPDAG) -> nx.DiGraph:
    """Direct all edges so that no cycle and no new collider arises, if that is possible.

    Parameters
    ----------
    graph : CPDAG

    Returns
    -------
    networkx.DiGraph
        It is acyclic, joins the same pairs, and keeps the order of the variables. A search on
        finite data may return a graph that is not the CPDAG of any DAG. Then some arrows are
        reversed or form new colliders; the heuristic below keeps their number small.

    Notes
    -----
    Dor and Tarsi (1992) remove one variable after the other. Each removed variable has no arrow out
    of it, and its undirected neighbours are joined to all its other neighbours; its edges then
    point at it. If there is none, we remove the one with the fewest violations.

    Examples
    --------
    >>> truth = nx.DiGraph([("a", "c"), ("b", "c"), ("c", "d")])
    >>> sorted(consistent_extension(CPDAG.from_dag(truth)).edges)
    [('a', 'c'), ('b', 'c'), ('c', 'd')]
    """
    arcs, left = graph.arcs.copy(), set(range(len(graph.variables)))
    dag = nx.empty_graph(graph.variables, create_using=nx.DiGraph)
    while left:
        last = min(sorted(left), key=lambda v: _violations(arcs, v))
        joined = np.flatnonzero(arcs[last] | arcs[:, last])
        dag.add_edges_from((graph.variables[v], graph.variables[last]) for v in joined.tolist())
        arcs[last] = arcs[:, last] = False
        left.remove(last)
    return dag


def _violations(arcs, v) -> tuple[int, int]:
    """Violations by v: arrows out of v, and pairs of neighbours that would form a new collider."""
    joined, undirected = arcs[v] | arcs[:, v], arcs[v] & arcs[:, v]
    apart = ~(arcs | arcs.T)[np.ix_(undirected, joined)]
    return int((arcs[v] & ~arcs[:, v]).sum()), int(apart.sum() - undirected.sum())
