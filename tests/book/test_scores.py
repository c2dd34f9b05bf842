"""Scores of graphs against predictive distributions, likelihoods and all equivalent DAGs."""

import math

import numpy as np
import pytest
from dpcgd_book.systems.tests_and_scores import BDeu, BGe
from known_graphs import BIC, NAMES, equivalence_classes, graph_score
from people import refused
from scipy.stats import multivariate_t

from dpcgd import Dataset

EVEN = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) * 1.0
COLUMNS = EVEN[:, [0, 0, 0]], EVEN, 1e50 * EVEN, EVEN * [1e-50, 1, 1]
"""Copies of one column, and columns without correlation in several units."""
LEVELS = {"a": ["0", "1"], "b": ["0", "1", "2"], "c": ["0", "1"], "d": ["0", "1", "2", "3"]}


def gaussian_values(n=40, d=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=d)


def coded_values(n=60, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 2, n)
    b = (a + rng.integers(0, 2, n)) % 3
    c = a ^ (rng.random(n) < 0.3)
    return Dataset(np.column_stack([a, b, c, (b + c + rng.integers(0, 2, n)) % 4]), LEVELS)


def predictive(values, mean, mean_weight, freedom, scale):
    """Log probability of the records one after the other under a normal-Wishart prior."""
    matrix, total = scale * np.eye(values.shape[1]), 0.0
    for record in values:
        left = freedom - values.shape[1] + 1
        shape = matrix * (mean_weight + 1) / (mean_weight * left)
        total += multivariate_t.logpdf(record, mean, shape, df=left)
        gap = record - mean
        matrix = matrix + mean_weight / (mean_weight + 1) * np.outer(gap, gap)
        mean = (mean_weight * mean + record) / (mean_weight + 1)
        mean_weight, freedom = mean_weight + 1, freedom + 1
    return total


@pytest.mark.parametrize("at", [(0,), (2, 3), (0, 1, 3), (0, 1, 2, 3)])
def test_bge_is_the_marginal_likelihood_of_its_prior(at):
    # A block of a Wishart precision's inverse keeps its own degrees of freedom: d - l fewer.
    values = gaussian_values()
    values /= values.std(axis=0)
    expected = predictive(values[:, at], values.mean(axis=0)[list(at)], 1.0, 2.0 + len(at), 0.5)
    assert BGe(values).marginal(at) == pytest.approx(expected, rel=1e-10)


MADE = [kind(gaussian_values(), NAMES) for kind in (BGe, BIC)]


@pytest.mark.parametrize("score", [*MADE, BDeu(coded_values(), weight=3)])
def test_equivalent_dags_score_the_same_and_others_do_not(score):
    found = [[graph_score(score, dag) for dag in members] for members in equivalence_classes(4)]
    assert sum(map(len, found)) == 543
    assert max(max(members) - min(members) for members in found) < 1e-9
    means = sorted(np.mean(members) for members in found)
    assert min(np.diff(means)) > 1e-9  # 185 classes, no two with one score


@pytest.mark.parametrize(("child", "parents"), [(0, ()), (3, (1,)), (1, (0, 2)), (2, (0, 1, 3))])
def test_bdeu_is_the_probability_of_the_records_one_after_the_other(child, parents):
    data, weight = coded_values(), 3.0
    rows = math.prod(data.cardinalities[p] for p in parents)
    cell = weight / rows / data.cardinalities[child]
    seen, cells, total = {}, {}, 0.0
    for record in data.codes.tolist():
        row = tuple(record[p] for p in parents)
        at = (row, record[child])
        total += math.log((cell + cells.get(at, 0)) / (weight / rows + seen.get(row, 0)))
        seen[row], cells[at] = seen.get(row, 0) + 1, cells.get(at, 0) + 1
    assert BDeu(data, weight).local(child, parents) == pytest.approx(total, rel=1e-10)


def test_bad_columns_and_priors_are_refused_with_their_cure():
    refused("3 columns need 3 names", BGe, np.eye(3), ["a", "b"])
    refused("column 1 is constant; leave it out", BGe, [[0, 1], [1, 1]])
    refused("missing or infinite; drop or impute", BGe, [[1, 2], [2, math.nan]])
    refused("one row a record", BGe, [1, 2, 3])
    refused("at least two", BGe, [[1, 2]])
    refused("must be positive, not 0", BDeu, coded_values(), weight=0)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("columns", COLUMNS)
def test_scores_of_singular_covariances_are_numbers(columns):
    few, many = (np.tile(columns, (times, 1)) for times in (25, 250_000))
    for score in (BIC(few), BGe(few), BGe(many)):
        for parents in ((), (0,), (0, 1)):
            assert math.isfinite(score.local(2, parents))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("unit", [2.0**-1000, 2.0**600])
def test_scores_do_not_depend_on_the_unit(unit):
    values = np.random.default_rng(0).normal(size=(40, 3))
    values[:, 2] += values[:, 0]
    for kind in (BGe, BIC):
        scaled, plain = (kind(own).local(2, (0,)) for own in (values * unit, values))
        assert scaled == pytest.approx(plain)
