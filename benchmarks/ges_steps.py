"""The forward step of greedy equivalence search, and its paths, fast: for yardstick_worker.py.

The package ges lists every edge that might be added anew at each step, and for each of them every
path along arcs and undirected edges from one end to the other, to ask whether all of these pass
through some set. Its answers are kept, with less work:

- A path that avoids the set avoids it when it is cut short, too, for that only leaves out nodes. So
  :func:`short_paths` has only those without shortcuts, which are far fewer.
- What an edge would gain depends on what is around its ends. :class:`ForwardSteps` asks the package
  again only where that has changed, and asks about paths only for the edge of largest gain.
"""

import functools
from collections.abc import Iterator

import numpy as np


def short_paths(fro, to, arcs) -> Iterator[list[int]]:
    """Paths from one node to another whose steps could not be skipped.

    No node of a path is one step from any but the node before it. The edge between both ends is a
    path, and no shortcut for others: the search asks what leads around it.

    Parameters
    ----------
    fro, to : int
    arcs : array, shape (d, d)
        ``arcs[a, b] != 0`` where a step from a to b can be taken.
    """
    graph = arcs.tobytes(), arcs.dtype.str, len(arcs)
    fro, to, steps = int(fro), int(to), _steps(*graph)
    if steps[fro] >> to & 1:
        yield [fro, to]
    leading = _leading_to(to, *graph) & ~(1 << to)
    left = [([fro], 1 << fro, steps[fro] & leading & ~(1 << fro))]
    while left:
        path, barred, ahead = left.pop()
        if not ahead:
            continue
        node = (ahead & -ahead).bit_length() - 1
        left.append((path, barred, ahead & (ahead - 1)))
        if steps[node] >> to & 1:
            yield [*path, node, to]
        else:
            beyond = barred | steps[path[-1]]
            left.append(([*path, node], beyond, steps[node] & leading & ~beyond))


@functools.lru_cache(maxsize=8)
def _steps(content, dtype, d) -> list[int]:
    """The nodes that each reaches in one step, a bit each."""
    arcs = np.frombuffer(content, dtype).reshape(d, d) != 0
    return [sum(1 << int(b) for b in np.flatnonzero(row)) for row in arcs]


@functools.lru_cache(maxsize=512)
def _leading_to(to, *graph) -> int:
    """The nodes from which some path leads to this one, and itself, a bit each."""
    steps, found, before = _steps(*graph), 0, 1 << to
    while found != before:
        found = before
        before = found | sum(1 << a for a, reached in enumerate(steps) if reached & found)
    return found


class ForwardSteps:
    """The package's ``forward_step`` for one run: the same edge of the same gain at every step.

    Parameters
    ----------
    inserts : callable
        From x, y, the graph and a score to what adding x -> y would gain, in every way that the
        rule about cliques allows: the package's ``score_valid_insert_operators`` without its rule
        about paths.
    insert : callable
        From x, y, the nodes whose edges to y are directed with it, and a graph to the new graph.
    """

    def __init__(self, inserts, insert):
        self._inserts, self._insert = inserts, insert
        self._known: dict[tuple[int, int], list] = {}
        self._before = None

    def __call__(self, graph, score, debug=0):
        """The largest gain and the graph that has it; 0 and the same graph if there is none."""
        apart = [*map(tuple, np.argwhere(graph + graph.T + np.eye(len(graph)) == 0).tolist())]
        as_cause, as_effect = self._touched(graph)
        self._known = {
            (x, y): self._known[x, y]
            if (x, y) in self._known and not (as_cause[x] or as_effect[y])
            else [(of[0], tuple(of[-1])) for of in self._inserts(x, y, graph, score)]
            for x, y in apart
        }
        ways = [(gain, x, y, of) for (x, y), some in self._known.items() for gain, of in some]
        for gain, x, y, of in sorted(ways, key=lambda way: -way[0]):
            through = {*of} | _common(y, x, graph)
            if all(through.intersection(path) for path in short_paths(y, x, graph)):
                return gain, self._insert(x, y, of, graph)
        return 0, graph

    def _touched(self, graph) -> tuple[np.ndarray, np.ndarray]:
        """Nodes that have gained or lost a step; these, and all of whose neighbours two have."""
        before, self._before = self._before, graph.copy()
        if before is None:
            return (np.ones(len(graph), bool),) * 2
        changed = (before != 0) != (graph != 0)
        changed |= changed.T
        beside = ((graph != 0) & (graph.T != 0)).astype(int)
        return changed.any(axis=1), changed.any(axis=1) | (beside @ changed * beside).any(axis=1)


def _common(y, x, graph) -> set[int]:
    """Neighbours of y by an undirected edge that are adjacent to x."""
    undirected = (graph[y] != 0) & (graph[:, y] != 0)
    return {*np.flatnonzero(undirected & ((graph[x] != 0) | (graph[:, x] != 0))).tolist()}
