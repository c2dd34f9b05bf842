"""How many cells lie how far from a place, by merging variables' distances in a dictionary."""

import itertools
import math

import numpy as np


def cells_of(mechanism):
    """All inputs of a local mechanism: codes for one variable, rows for several."""
    cells = np.array(list(itertools.product(*map(range, mechanism.shape))))
    return cells if isinstance(mechanism.levels, tuple) else cells[:, 0]


def ways_by_distance(places, levels, norm):
    """From each distance (to the power of a finite norm) to its number of cells, exactly."""
    ways = {0: 1}
    for place in places:
        merged = {}
        for (far, count), level in itertools.product(ways.items(), range(levels)):
            step = abs(level - int(place))
            total = max(far, step) if norm == math.inf else far + step**norm
            merged[total] = merged.get(total, 0) + count
        ways = merged
    return ways
