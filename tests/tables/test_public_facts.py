"""What public facts refuse, they refuse without a table."""

import numpy as np
import pytest

import dpcgd
from dpcgd import Dataset, Knowledge
from dpcgd.tables.public_facts import PublicFacts, RecordsAsked, check_run

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
    rng = np.random.default_rng(0)
    data = Dataset(rng.integers(2, size=(N, 3)), LEVELS)
    said = refusal(lambda: system(data, rng=rng, **how))
    assert refusal(lambda: check_run(system, LEVELS, N, rng=rng, **how)) == said
    assert (said is None) == (not settings)


def test_nothing_is_counted_where_there_are_no_records():
    with pytest.raises(RecordsAsked):
        PublicFacts(dpcgd.Schema(LEVELS), N).counts([0])
