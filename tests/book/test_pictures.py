"""What pictures show is what they are given."""

import math

import pytest

from dpcgd import plan

comparisons = pytest.importorskip("dpcgd_book.figures.comparisons", reason="needs matplotlib")
BIT = ["no", "yes"]


def test_the_picture_of_a_plan_has_its_numbers():
    schema = {"smoke": BIT, "cough": ["never", "seldom", "often"], "age": BIT, "one": ["only"]}
    planned = plan(schema, 1000, epsilon=2.0)
    axes = comparisons.plan(planned).axes[0]
    shown = {text.get_text() for text in axes.texts}
    expected = f"{planned.smallest('smoke', 'cough'):.2g}".lstrip("0")
    assert {expected, "none"} <= shown


def test_the_picture_of_a_plan_of_many_variables_has_colours_alone():
    large = plan({f"v{i}": BIT for i in range(13)}, 5000, epsilon=2.0)
    axes = comparisons.plan(large).axes[0]
    assert not axes.texts
    (image,) = axes.images
    assert image.get_array().mask.sum() == 13
    assert math.isclose(image.get_array()[0, 1], large.smallest("v0", "v1"))
