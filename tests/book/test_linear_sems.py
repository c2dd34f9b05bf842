"""Linear models draw what they say, at any size of their weights."""

from dpcgd_book.data.mixed_networks import random_sem
from numpy.random import default_rng
from refusals import refusals

test_impossible_models_are_refused = refusals(
    (lambda: random_sem(3, 4, rng=default_rng(0)), "at most 3 arcs"),
    (lambda: random_sem(3, 2, rng=default_rng(0)).sample(0, rng=default_rng(0)), "at least 1"),
)
