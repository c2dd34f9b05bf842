"""Whatever answers counts: every system that needs no more takes it, the others say so."""

import itertools
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from dpcgd_book.systems import as_published
from dpcgd_book.systems.tests_and_scores import BDeu, GSquare
from hypothesis import given, settings, strategies as st
from numpy.random import default_rng
from people import drawn, levels_of, refused

import dpcgd
from dpcgd import load
from dpcgd.datasets.contingency_tables import Tables
from dpcgd.datasets.counts import Counts
from dpcgd.local.randomized_response import RandomizedResponse
from dpcgd.local.report import report
from dpcgd.moments.clipped_moments import ClippedMoments
from dpcgd.moments.interactions import exactly
from dpcgd.moments.joined_levels import JoinedCounts, join_levels

HOW = {"epsilon": 2.0, "delta": 1e-6}


class Elsewhere(Counts):
    """Records that nobody but this object sees, as little as a Counts may have."""

    def __init__(self, data, answer=lambda table: table):
        self.levels, self.n = data.levels, data.n
        self._data, self._answer, self.asked = data, answer, 0

    def counts(self, variables):
        self.asked += 1
        return self._answer(self._data.counts(variables))


@pytest.fixture(scope="module")
def survey():
    return load("survey", 20_000, rng=default_rng(0))


def test_a_data_set_answers_counts(survey):
    assert isinstance(survey, Counts)
    assert isinstance(Elsewhere(survey), Counts)
    assert not isinstance(survey.levels, Counts)
    for at in itertools.permutations(range(survey.d), 3):
        assert np.array_equal(survey.counts(at), Tables(survey).counts(at))


SEARCHES = [dpcgd.laplace_pc, dpcgd.svt_pc, dpcgd.priv_pc, dpcgd.em_pc, dpcgd.curate_pc]
OF_MOMENTS = [dpcgd.table_pc, dpcgd.graph_from_moments, dpcgd.private_graph]
PUBLISHED = [as_published.published_curate_pc, as_published.published_em_pc]


@pytest.mark.parametrize("system", [*SEARCHES, *OF_MOMENTS, *PUBLISHED])
def test_a_run_on_counts_is_the_run_on_the_records(system, survey):
    one, other = (system(data, rng=default_rng(1), **HOW) for data in (survey, Elsewhere(survey)))
    assert one == other


class Further(Elsewhere):
    """The same, and it sums over its records too."""

    def clipped_sums(self, vectors, *, bound, n=None):
        return self._data.clipped_sums(vectors, bound=bound, n=n)


def test_moments_of_many_variables_are_clipped_where_records_can_be_summed():
    data = load("sachs", 5_000, rng=default_rng(0))
    forms = data, Further(data), Elsewhere(data)
    one, same, other = (dpcgd.graph_from_moments(d, rng=default_rng(1), **HOW) for d in forms)
    assert one == same
    kinds = [isinstance(release.marginals, ClippedMoments) for release in (same, other)]
    assert (kinds, (0, 1) in other.marginals.released) == ([True, False], True)


def test_plain_pc_and_tests_take_counts(survey):
    assert dpcgd.pc(Elsewhere(survey)).graph == dpcgd.pc(survey).graph
    tests = [GSquare(data).log_p(0, 1, (2,)) for data in (survey, Elsewhere(survey))]
    assert tests[0] == tests[1]


MECHANISM = RandomizedResponse.from_epsilon((3, 2, 2, 2, 2, 3), 1.0)
SETTINGS = {**HOW, "rng": default_rng(0)}
PRIVATE = [dpcgd.gram_notears, dpcgd.noleaks, dpcgd.private_anm, as_published.published_noleaks]
SAMPLED = [dpcgd.priv_pc, dpcgd.svt_pc, as_published.published_svt_pc]
NEED_RECORDS = [
    *[partial(system, **SETTINGS) for system in (*PRIVATE, as_published.published_priv_pc)],
    *[partial(system, rate=0.5, **SETTINGS) for system in SAMPLED],
    partial(report, mechanism=MECHANISM, rng=default_rng(0)),
    dpcgd.notears,
    BDeu,
]


@pytest.mark.parametrize("needs", NEED_RECORDS)
def test_who_needs_records_says_so_before_anything_is_asked(needs, survey):
    data = Elsewhere(survey)
    refused("needs records at hand, and Elsewhere only", needs, data)
    assert data.asked == 0


WRONG = [
    (lambda table: table[:1], r"must be integers of shape \(3,\), not int64 of"),
    (lambda table: table / 2, r"must be integers of shape \(3,\), not float64 of"),
    (lambda table: table - np.eye(3, dtype=int)[0], "does not hold 20000 records"),
    (lambda table: table * [-1, 1, 1], "does not hold 20000 records, as n says; count all"),
]


@pytest.mark.parametrize(("answer", "cure"), WRONG)
def test_a_table_that_cannot_be_right_is_refused(answer, cure, survey):
    refused(cure, Tables(Elsewhere(survey, answer)).counts, [0])


def test_a_question_is_asked_once(survey):
    data = Elsewhere(survey)
    tables = Tables(data)
    for _ in range(2):
        for at in itertools.permutations([0, 3, 5], 3):
            assert np.array_equal(tables.counts(at), survey.counts(at))
        counted = tables.count_all(np.array([[0, 3, 5], [5, 3, 0]])).tables()
        assert all(map(np.array_equal, counted, survey.counts_many([[0, 3, 5], [5, 3, 0]])))
    assert data.asked == 1
    found = tables.counts_many([[3, 0, 5], [2], [0, 5, 3]])
    assert all(map(np.array_equal, found, survey.counts_many([[3, 0, 5], [2], [0, 5, 3]])))
    assert data.asked == 2
    with pytest.raises(ValueError, match="read-only"):
        tables.counts([0, 3, 5])[0, 0, 0] = 1


# --- joined levels

SOME_LEVELS = st.lists(st.integers(1, 9), min_size=2, max_size=4)


@settings(derandomize=True, database=None, max_examples=60)
@given(SOME_LEVELS, st.integers(1, 60), st.booleans(), st.integers(0, 2**32 - 1))
def test_joined_counts_are_those_of_recoded_records(levels, n, ordered, seed):
    data = drawn(default_rng(seed), levels, n)
    known = {"ordered": frozenset(levels_of(levels) if ordered else ()), "missing": {"v0": "0"}}
    data, other = replace(data, **known), Elsewhere(data)
    vars(other).update(known)
    recoded, joined = join_levels(data, exactly, 1.0, most=3)
    summed, same = join_levels(other, exactly, 1.0, most=3)
    assert (joined, recoded.levels, recoded.n) == (same, dict(summed.levels), summed.n)
    assert isinstance(summed, JoinedCounts) == (max(levels) > 3)
    asked = list(itertools.permutations(range(len(levels)), 2))
    assert all(map(np.array_equal, recoded.counts_many(asked), summed.counts_many(asked)))
    assert all(map(np.array_equal, map(recoded.counts, asked), map(summed.counts, asked)))
