"""Draws of columns in proportion to their weights."""

import numpy as np


def draw_each(weights, rng) -> np.ndarray:
    """A column for each row, with probability proportional to its weight."""
    edges = weights.cumsum(axis=1)
    at = rng.random(len(weights)) * edges[:, -1]
    return (edges <= at[:, None]).sum(axis=1)


def draw_from(weights, row, rng) -> np.ndarray:
    """A column for each entry of `row`, with probability proportional to that row's weights."""
    edges = weights.cumsum(axis=1)
    edges /= edges[:, -1:]
    edges += np.arange(len(weights))[:, None]  # one rising sequence: a search, not a copy a record
    at = row + rng.random(len(row)) * (1 - 1e-12)
    return np.searchsorted(edges.ravel(), at, side="right") - row * weights.shape[1]
