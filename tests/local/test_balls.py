"""Cells by their distance, counted."""

import itertools
import math

import numpy as np
import pytest
from known_distances import ways_by_distance

from dpcgd.local.balls import balls_of


@pytest.mark.parametrize("norm", [1, 2, math.inf])
@pytest.mark.parametrize("levels", [(2, 3), (4, 2, 4), (5, 5, 5)])
def test_counts_and_radii_are_those_of_a_list_of_all_cells(levels, norm):
    balls = balls_of(levels, norm)
    cells = np.array(list(itertools.product(*map(range, levels))))
    places = np.unique(balls.canonical(cells)[0], axis=0)
    assert {tuple(row) for rows in balls.kinds() for row in rows} == set(map(tuple, places))
    sorted_cells = np.array(list(itertools.product(*map(range, sorted(levels)))))
    for place, counts, radius in zip(
        places, balls.counts(places)[0], balls.radius(places), strict=True
    ):
        apart = np.linalg.norm(sorted_cells - place, ord=norm, axis=1)
        expected = [np.isclose(apart, distance).sum() for distance in balls.distances]
        assert counts.tolist() == expected
        assert radius == pytest.approx(apart.max(), rel=1e-15)


@pytest.mark.parametrize("norm", [1, 2, math.inf])
def test_counts_of_a_large_domain_are_exact_integers(norm):
    levels, places = (10,) * 15, np.arange(15) % 5
    ways = ways_by_distance(places, 10, norm)
    found = balls_of(levels, norm).counts(np.sort(places)[None])[0][0]
    assert {far: int(count) for far, count in enumerate(found) if count} == ways
