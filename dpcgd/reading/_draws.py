"""Graphs drawn by the odds of their colliders, and their completed forms, compiled.

The plain definitions are in tests/marginals/test_drawn_graphs.py and in
:func:`~dpcgd.graphs.cpdag.meek`. `parents[v, w]` says whether w is a parent of v; the neighbours of
v are `near[starts[v] : starts[v + 1]]`. Kept apart: numba compiles it.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def leads(parents, a, b, starts, near):
    """Whether a directed path leads from a to b."""
    seen, left = np.zeros(len(parents), np.bool_), np.empty(len(parents), np.int64)
    seen[b], left[0], waiting = True, b, 1
    while waiting > 0:
        waiting -= 1
        v = left[waiting]
        for i in range(starts[v], starts[v + 1]):
            w = near[i]
            if parents[v, w] and not seen[w]:
                if w == a:
                    return True
                seen[w], left[waiting] = True, w
                waiting += 1
    return False


@njit(cache=True, nogil=True)
def _of_parents(parents, c, x, starts, near, corners, odds):
    """Log odds of colliders in c of x with the other parents of c, summed."""
    size, row, total = starts[c + 1] - starts[c], 0, 0.0
    while near[starts[c] + row] != x:
        row += 1
    for i in range(size):
        other = near[starts[c] + i]
        if other != x and parents[c, other]:
            total += odds[corners[c] + row * size + i]
    return total


@njit(cache=True, nogil=True)
def sweep(parents, edges, chosen, needed, forbidden, starts, near, corners, odds):
    """Turn each chosen arc if its triples gain as much as is needed, and no cycle comes of it.

    `odds` holds the log odds of a collider in c for each two of its neighbours, row by row from
    `corners[c]` on; 0 where nothing is to be seen.
    """
    for i in range(len(chosen)):
        a, b = edges[chosen[i]]
        if not parents[b, a]:
            a, b = b, a
        if forbidden[b, a]:
            continue
        lost = _of_parents(parents, b, a, starts, near, corners, odds)
        gained = _of_parents(parents, a, b, starts, near, corners, odds)
        if gained - lost < needed[i]:
            continue
        parents[b, a] = False
        if leads(parents, a, b, starts, near):
            parents[b, a] = True
        else:
            parents[a, b] = True


@njit(cache=True, nogil=True)
def _point_at_colliders(arcs, parents, apart, starts, near):
    """Take away the arcs from a collider to its two parents, but those that are known."""
    for c in range(len(arcs)):
        of = near[starts[c] : starts[c + 1]]
        for i in range(len(of)):
            for j in range(i + 1, len(of)):
                a, b = of[i], of[j]
                if parents[c, a] and parents[c, b] and apart[a, b]:
                    arcs[c, a] &= not arcs[a, c]
                    arcs[c, b] &= not arcs[b, c]


@njit(cache=True, nogil=True)
def _two_point_at(a, b, arcs, apart, of):
    """Whether two ends, apart from each other, are undirected with a and point at b: rule 3."""
    for i in range(len(of)):
        for j in range(i + 1, len(of)):
            c, e = of[i], of[j]
            ends = arcs[a, c] and arcs[c, a] and arcs[a, e] and arcs[e, a]
            heads = arcs[c, b] and not arcs[b, c] and arcs[e, b] and not arcs[b, e]
            if ends and heads and apart[c, e]:
                return True
    return False


@njit(cache=True, nogil=True)
def _is_forced(a, b, arcs, apart, starts, near):
    """Whether one of Meek's rules turns the undirected edge a - b into a -> b."""
    of = near[starts[a] : starts[a + 1]]
    for c in of:
        into_a, out_of_a = arcs[c, a], arcs[a, c]
        if into_a and not out_of_a and apart[c, b]:
            return True
        if out_of_a and not into_a and arcs[c, b] and not arcs[b, c]:
            return True
        if into_a and out_of_a and apart[c, b]:
            for e in near[starts[c] : starts[c + 1]]:
                path = arcs[c, e] and not arcs[e, c] and arcs[e, b] and not arcs[b, e]
                if path and (arcs[a, e] or arcs[e, a]):
                    return True
    return _two_point_at(a, b, arcs, apart, of)


@njit(cache=True, nogil=True)
def complete(arcs, edges, apart, starts, near):
    """Take away arcs by Meek's rules until none is forced; what is forced both ways stays."""
    turned = True
    while turned:
        turned = False
        forced = np.zeros(len(edges), np.int64)
        for i in range(len(edges)):
            a, b = edges[i]
            if arcs[a, b] and arcs[b, a]:
                forced[i] += _is_forced(a, b, arcs, apart, starts, near)
                forced[i] -= _is_forced(b, a, arcs, apart, starts, near)
        for i in range(len(edges)):
            a, b = edges[i]
            if forced[i] > 0:
                arcs[b, a] = False
            elif forced[i] < 0:
                arcs[a, b] = False
            turned |= forced[i] != 0


@njit(cache=True, nogil=True)
def add_arrows(parents, arcs, edges, apart, starts, near, times):
    """Add one to `times` for each arrow of the completed form of a graph; `arcs` are possible."""
    left = arcs.copy()
    _point_at_colliders(left, parents, apart, starts, near)
    complete(left, edges, apart, starts, near)
    for a, b in edges:
        times[a, b] += left[a, b] and not left[b, a]
        times[b, a] += left[b, a] and not left[a, b]
