"""What pictures show is what they are given."""

import math
from itertools import combinations, product

import numpy as np
import pytest

from dpcgd import plan

comparisons = pytest.importorskip("dpcgd_book.figures.comparisons", reason="needs matplotlib")
style = pytest.importorskip("dpcgd_book.figures.style", reason="needs matplotlib")
to_rgb = pytest.importorskip("matplotlib.colors").to_rgb
BIT = ["no", "yes"]


def test_the_picture_of_a_plan_has_its_numbers():
    schema = {"smoke": BIT, "cough": ["never", "seldom", "often"], "age": BIT, "one": ["only"]}
    planned = plan(schema, 1000, epsilon=2.0)
    shown = {text.get_text() for text in comparisons.plan(planned).axes[0].texts}
    expected = f"{planned.smallest('smoke', 'cough'):.2g}".lstrip("0")
    assert {expected, "none"} <= shown


def test_the_picture_of_a_plan_of_many_variables_has_colours_alone():
    large = plan({f"v{i}": BIT for i in range(13)}, 5000, epsilon=2.0)
    axes = comparisons.plan(large).axes[0]
    assert not axes.texts
    (image,) = axes.images
    assert image.get_array().mask.sum() == 13
    assert math.isclose(image.get_array()[0, 1], large.smallest("v0", "v1"))


SYSTEMS = [name for name in style.LOOKS if not name.startswith(("k-RR", "Geo"))]
CHANNELS = [name for name in style.LOOKS if name not in SYSTEMS]


def lab(color: str) -> np.ndarray:
    """A colour in CIELAB, where distances are about as large as they look."""
    part = np.array(to_rgb(color))
    linear = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
    to_xyz = [[0.4339, 0.3762, 0.1899], [0.2126, 0.7152, 0.0722], [0.0177, 0.1095, 0.8728]]
    x, y, z = np.cbrt(np.maximum(np.array(to_xyz) @ linear, 1e-3))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("names", [SYSTEMS, CHANNELS], ids=["systems", "channels"])
def test_every_system_has_its_own_colour_line_and_marker(names):
    looks = set(style.LOOKS[name] for name in names)  # other names of a system look like it
    for (color, *look), (other, *beside) in combinations(looks, 2):
        assert np.linalg.norm(lab(color) - lab(other)) > 20, (color, other)
        assert not set(look) & set(beside), "where nobody sees colours"


def test_no_channel_has_the_colour_of_a_system():
    for names in product(CHANNELS, SYSTEMS):
        one, other = (lab(style.LOOKS[name][0]) for name in names)
        assert np.linalg.norm(one - other) > 20, names


def test_no_two_curves_of_a_figure_look_alike():
    compared = ["table_pc", "CURATE", "CURATE, published", "best, not private", "complete graph"]
    looks = style.looks_of([*compared, "Priv-PC", "CURATE, score", *map(str, range(8))])
    seen = {(look["color"], str(look["linestyle"]), look["marker"]) for look in looks.values()}
    assert len(seen) == len(looks)
    colors = {name: look["color"] for name, look in looks.items()}
    assert colors.pop("CURATE, published") == colors["CURATE"], "a variant"
    assert colors.pop("complete graph") == colors["best, not private"], "both are references"
    assert len(set(colors.values())) == len(colors)
