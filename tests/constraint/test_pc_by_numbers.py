"""PC without privacy on numbers, by Fisher's z."""

import numpy as np
import pytest
from numpy.random import default_rng
from refusals import refusals

from dpcgd import Dataset, load, pc, priv_pc
from dpcgd.datasets.variable import Parts
from dpcgd.statistics.moment_matrices import FisherZ


def linear(seed, d=8, n=3000):
    """Numbers of a random linear Gaussian model, in ranges that are wider than they are."""
    rng = default_rng(seed)
    weights = np.triu(rng.normal(size=(d, d)) * (rng.random((d, d)) < 0.4), 1)
    values = rng.normal(size=(n, d)) @ np.linalg.inv(np.eye(d) - weights)
    ranges = {f"x{i}": (-abs(column).max(), abs(column).max()) for i, column in enumerate(values.T)}
    return Dataset.of_numbers(values, ranges)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("alpha", [0.001, 0.05])
def test_pc_on_numbers_has_the_skeleton_of_causal_learn(seed, alpha):
    peer = pytest.importorskip("causallearn.search.ConstraintBased.PC")
    data = linear(seed)
    ours = pc(data, statistic=FisherZ(alpha), max_order=data.d).graph.arcs
    theirs = peer.pc(data.scaled, alpha, "fisherz", stable=True, show_progress=False).G.graph
    np.testing.assert_array_equal(ours | ours.T, theirs != 0)


def test_it_is_the_usual_test_of_numbers_and_ends_at_its_largest_order():
    data = linear(0)
    release = pc(data, max_order=0)
    assert release.guarantee == "none"
    assert release.graph == pc(data, statistic=FisherZ(0.01), max_order=0).graph
    apart = np.abs(np.arctanh(np.corrcoef(data.scaled.T)[np.triu_indices(8, 1)]))
    assert len(release.graph.skeleton) == (apart > 2.5758293 / np.sqrt(data.n - 3)).sum()


CANCER = load("cancer", n=4000, rng=default_rng(0))


def test_categories_are_tested_by_their_level_numbers():
    values = {name: (0, len(levels) - 1) for name, levels in CANCER.levels.items()}
    as_numbers = Dataset.of_numbers(CANCER.codes, values)
    by_numbers = pc(CANCER, statistic=FisherZ()).graph
    assert by_numbers.skeleton == pc(as_numbers).graph.skeleton
    mixed = {**CANCER.levels, CANCER.variables[0]: as_numbers.levels[CANCER.variables[0]]}
    codes = np.column_stack([as_numbers.codes[:, 0], CANCER.codes[:, 1:]])
    assert pc(Dataset(codes, mixed)).graph.skeleton == by_numbers.skeleton


def of_one_value(missing=None):
    return Dataset([[1, 2], [1, 5], [1, 7]], {v: Parts(0.0, 9.0, missing=missing) for v in "ab"})


FEW = "4 records cannot condition on 1 variables; lower max_order"
test_what_cannot_be_tested_is_refused_in_one_line = refusals(
    (lambda: pc(of_one_value()), "'a' is the same in all records; leave it out"),
    (lambda: pc(of_one_value("unknown")), "may be missing, and is needed here; drop or"),
    (lambda: pc(linear(0, n=4), statistic=FisherZ(0.9)), FEW),
    (lambda: priv_pc(CANCER, epsilon=1.0, statistic=FisherZ()), "take one such as KendallZ"),
    (lambda: priv_pc(linear(0), epsilon=1.0, statistic=FisherZ()), "data.binned(5)"),
    (lambda: FisherZ(0), "a significance level above 0 and below 1"),
)
