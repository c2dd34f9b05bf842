"""One call for a table of any size: who runs, by which facts."""

import numpy as np
import pytest
from known_tables import records, unrelated
from numpy.random import default_rng

import dpcgd
from dpcgd import Dataset, Knowledge, dag_posterior, graph_from_moments, load, private_graph
from dpcgd.moments.interactions import NoisyTable
from dpcgd.tables.public_facts import PublicFacts, RecordsAsked, check_run

CHOSEN = [("survey", dag_posterior), ("sachs", graph_from_moments)]


@pytest.mark.parametrize(("name", "system"), CHOSEN)
def test_it_is_the_run_of_the_system_that_it_chooses(name, system):
    data = load(name, n=5000, rng=default_rng(0))
    how = {"epsilon": 1.0, "delta": 1e-7, "precision": 0.6, "rows_per_person": 2}
    one, same = (of(data, **how, rng=default_rng(1)) for of in (private_graph, system))
    assert (one, one.probabilities) == (same, same.probabilities)


SHAPES = [((2,) * 8, True), ((4, 4, 4, 4, 4), True), ((4, 4, 4, 4, 5), False), ((2,) * 9, False)]


@pytest.mark.parametrize(("levels", "whole"), SHAPES)
def test_up_to_eight_variables_and_1024_cells_the_whole_table_is_released(levels, whole):
    data = unrelated(levels, 2000, default_rng(0))
    release = private_graph(data, epsilon=1.0, rng=default_rng(0))
    assert isinstance(release.marginals, NoisyTable) == whole


def test_levels_that_no_record_has_count_like_all_others():
    data = records(np.zeros((2000, 5), int), (4, 4, 4, 4, 5))
    release = private_graph(data, epsilon=1.0, rng=default_rng(0))
    assert not isinstance(release.marginals, NoisyTable)


def test_a_warning_names_the_line_of_the_caller():
    data = load("alarm", n=20, rng=default_rng(0))
    with pytest.warns(UserWarning, match="trained on tables of 30 records and more") as caught:
        private_graph(data, epsilon=1.0, rng=default_rng(0))
    assert caught[0].filename == __file__


# --- what public facts refuse, they refuse without a table

SYSTEMS = ["private_graph", "table_pc", "graph_from_moments", "priv_pc", "em_pc", "curate_pc"]
N, LEVELS = 400, {name: ("no", "yes") for name in "abc"}
SETTINGS = [
    {},
    {"knowledge": Knowledge(tiers=[["a"], ["z"]])},
    {"delta": 1 / N},
    {"rows_per_person": 0},
    {"rows_per_person": N + 1},
    {"epsilon": -1.0},
    {"secure": "yes"},
    {"colour": "red"},
]


def refusal(do):
    try:
        do()
    except Exception as error:
        return type(error), str(error)
    return None


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: str(list(settings)))
def test_a_run_without_a_table_is_refused_in_the_words_of_the_run(name, settings):
    system, how = getattr(dpcgd, name), {"epsilon": 8.0, **settings}
    rng = default_rng(0)
    data = Dataset(rng.integers(2, size=(N, 3)), LEVELS)
    said = refusal(lambda: system(data, rng=rng, **how))
    assert refusal(lambda: check_run(system, LEVELS, N, rng=rng, **how)) == said
    assert (said is None) == (not settings)


def test_nothing_is_counted_where_there_are_no_records():
    with pytest.raises(RecordsAsked):
        PublicFacts(dpcgd.Schema(LEVELS), N).counts([0])
