"""A variant of table_pc changes what it says it changes."""

import inspect

import pytest
from dpcgd_book.results.table_cases import variant_case
from dpcgd_book.systems import table_pc_variants

CLASSES = [own for own in vars(table_pc_variants).values() if inspect.isclass(own)]
OWN = [own for own in CLASSES if own.__module__ == table_pc_variants.__name__]


@pytest.mark.parametrize("variant", OWN)
def test_every_method_of_a_variant_is_one_that_its_base_has(variant):
    methods = [name for name, own in vars(variant).items() if inspect.isfunction(own)]
    assert methods
    assert all(hasattr(variant.__base__, name) for name in methods)


def test_pairs_alone_at_order_2_find_another_graph_as_on_file():
    case = {"epsilon": 1.0, "run": 1, "n": 100_000, "delta": 1e-6, "seed": 0}
    pairs, whole = (variant_case("asia", v, **case) for v in ("order 2 from pairs", "table_pc"))
    assert pairs["F1"] == 1.0 > whole["F1"]
