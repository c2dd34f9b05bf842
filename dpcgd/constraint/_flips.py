"""Greedy distance of a table to the other decision of a G-test, compiled.

Kept apart: numba compiles it.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def greedy_removals(table, gains, critical):
    """How many records go, one at a time, until G falls below `critical` or reaches it.

    `table` has axes x, y and stratum and is used up. `gains[t]` is (t + 1) ln(t + 1) - t ln t. Each
    step removes the record that changes G most in the wanted direction.
    """
    of_x, of_y = table.sum(axis=1), table.sum(axis=0)
    size = of_x.sum(axis=0)
    g = _g(table, of_x, of_y, size)
    dependent, removed = g >= critical, 0
    while (g >= critical) == dependent and size.sum() > 0:
        best, at = -np.inf, (0, 0, 0)
        for x in range(table.shape[0]):
            for y in range(table.shape[1]):
                for s in range(table.shape[2]):
                    if table[x, y, s] == 0:
                        continue
                    drop = gains[table[x, y, s] - 1] + gains[size[s] - 1]
                    drop -= gains[of_x[x, s] - 1] + gains[of_y[y, s] - 1]
                    wanted = drop if dependent else -drop
                    if wanted > best:
                        best, at = wanted, (x, y, s)
        x, y, s = at
        table[x, y, s] -= 1
        of_x[x, s] -= 1
        of_y[y, s] -= 1
        size[s] -= 1
        g -= 2 * best if dependent else -2 * best
        removed += 1
    return removed if dependent else -removed


@njit(cache=True, nogil=True)
def _g(table, of_x, of_y, size):
    total = 0.0
    for counts, sign in ((table.ravel(), 1), (of_x.ravel(), -1), (of_y.ravel(), -1), (size, 1)):
        for t in counts:
            if t > 0:
                total += sign * t * np.log(t)
    return 2 * total
