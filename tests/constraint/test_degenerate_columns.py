"""Columns that are copies of others, or determined by them, or constant: what is said of them."""

from functools import partial

import networkx as nx
import numpy as np
import pytest
from dpcgd_book.systems.tests_and_scores import GSquare

from dpcgd import Dataset, curate_pc, em_pc, laplace_pc, pc, priv_pc, svt_pc, table_pc
from dpcgd.statistics.categorical_statistics import AdjustedChiSquared, ChiSquared, GTest
from dpcgd.statistics.rank_statistics import KendallP, KendallZ, SpearmanZ

STATISTICS = [KendallP(), KendallZ(), SpearmanZ(), ChiSquared(), AdjustedChiSquared(), GTest()]


with_statistics = pytest.mark.parametrize("statistic", STATISTICS, ids=lambda kind: kind.name)


def coded(**columns):
    levels = {name: [str(k) for k in range(1 + max(1, max(of)))] for name, of in columns.items()}
    return Dataset(np.column_stack(list(columns.values())), levels)


def binary(n, seed=0):
    return np.random.default_rng(seed).integers(0, 2, n)


def agreeing(column, share, seed=1):
    """Another binary column that agrees in exactly this share of the records."""
    differs = np.arange(len(column)) >= share * len(column)
    return np.where(np.random.default_rng(seed).permutation(differs), 1 - column, column)


def joined(release):
    return {"".join(sorted(pair)) for pair in release.graph.skeleton}


@with_statistics
@pytest.mark.parametrize("copies", [3, 4, 6])
def test_copies_of_a_column_stay_connected(statistic, copies):
    data = coded(**dict.fromkeys("abcdef"[:copies], binary(2000)), z=binary(2000, 9))
    graph = nx.Graph(map(tuple, pc(data, statistic=statistic).graph.skeleton))
    assert set(graph) == set("abcdef"[:copies])  # and nothing is joined to z
    assert nx.is_connected(graph)


@with_statistics
def test_a_column_that_codes_two_others_keeps_them_and_what_depends_on_them(statistic):
    x, y = binary(4000), binary(4000, 5)
    data = coded(x=x, y=y, z=2 * x + y, w=agreeing(x | y, 0.8))
    found = joined(pc(data, statistic=statistic))
    assert {"xz", "yz"} <= found
    assert any("w" in pair for pair in found)


def test_a_function_of_a_column_leaves_the_column_joined():
    y = np.random.default_rng(3).integers(0, 4, 4000)
    data = coded(x=y // 2, y=y, w=agreeing(y // 2, 0.75))
    assert {"xy", "wx"} <= joined(pc(data, statistic=ChiSquared(0.01)))


@with_statistics
def test_constant_and_rare_columns_are_isolated(statistic):
    x, constant, rare = binary(5000), np.zeros(5000, int), np.repeat([1, 0], [2, 4998])
    data = coded(x=x, y=agreeing(x, 0.75), k=constant, l=constant, r=rare)
    assert joined(pc(data, statistic=statistic)) == {"xy"}


@pytest.mark.parametrize("n", [1, 2, 5, 30])
def test_few_records_make_a_release_of_copies(n):
    x = np.arange(n) % 2
    assert joined(pc(coded(x=x, y=x, z=x))) == {"xy", "xz", "yz"}


def test_a_column_of_as_many_levels_as_records_is_not_testable_and_parts_nobody():
    x = binary(300)
    release = pc(coded(x=x, y=agreeing(x, 0.9), i=np.arange(300)))
    assert "xy" in joined(release)
    assert {"ix", "iy"} == {"".join(sorted(pair)) for pair in release.answers.untested}


def test_a_g_test_given_a_copy_separates_nothing():
    x = binary(2000)
    test = GSquare(coded(x=x, y=agreeing(x, 0.6), z=x))
    tests = [(0, 1, ()), (0, 2, ()), (1, 2, ()), (0, 1, (2,)), (0, 2, (1,)), (1, 2, (0,))]
    assert all(test.log_p(*asked) < np.log(0.01) for asked in tests)


@with_statistics
def test_the_skeleton_of_copies_does_not_hang_on_the_order_of_columns(statistic):
    x = binary(2000)
    columns = {"x": x, "y": agreeing(x, 0.6), "z": x, "v": agreeing(x, 0.75, 2), "w": 1 - x}
    found = joined(pc(coded(**columns), statistic=statistic))
    assert "xz" in found
    assert found & {"xy", "yz"}  # what depends on a column and its copy is joined to one of them
    for seed in range(6):
        names = np.random.default_rng(seed).permutation(list(columns))
        assert joined(pc(coded(**{n: columns[n] for n in names}), statistic=statistic)) == found


def test_released_tables_keep_copies_joined_and_constants_alone():
    x, y = binary(2000), agreeing(binary(2000), 0.6)
    for seed in range(5):
        noise = {"epsilon": 10.0, "delta": 1e-6, "rng": np.random.default_rng(seed)}
        copies = nx.Graph(map(tuple, table_pc(coded(x=x, y=x, z=x), **noise).graph.skeleton))
        assert set(copies) == {"x", "y", "z"}
        assert nx.is_connected(copies)
        pairs = joined(table_pc(coded(x=x, y=y, z=x, k=np.zeros(2000, int)), **noise))
        assert {"xz"} < pairs <= {"xy", "xz", "yz"}


@pytest.mark.parametrize("system", [priv_pc, svt_pc, laplace_pc, em_pc, curate_pc])
def test_a_private_search_parts_copies_and_its_report_says_so_and_nothing_of_a_chain(system):
    x, middle = binary(20_000), agreeing(binary(20_000), 0.8)
    chain = coded(x=x, y=middle, z=agreeing(middle, 0.8, seed=2))
    run = partial(system, epsilon=1e4, delta=1e-6, rng=np.random.default_rng(0))
    parted, kept = run(coded(**dict.fromkeys("xyz", x[:2000]))), run(chain)
    assert (joined(parted), joined(kept)) == (set(), {"xy", "yz"})
    page = parted.report()
    for one, two, three in ("xyz", "yxz", "zxy"):
        assert f"{one} is apart from two variables" in page
        assert f"{two} and {three}" in page
    assert "Copies of one column do this" in page
    assert "Copies" not in kept.report()
