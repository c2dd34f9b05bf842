"""The theorems of the chapters and the code link to each other, and the reference is complete."""

import re

import pytest

pytest.importorskip("nbformat", reason="it is in the book extra")

import house
import reference
import yaml
from reference import Box

ROOMS = {room: f"dpcgd.{room}" for room in house.ROOMS} | {"book": "dpcgd_book"}
"""From the page of a room to the package that it shows."""


def test_every_theorem_links_to_code_or_it_is_known_why_not():
    assert reference.theorems_without_code() == []
    assert set(reference.WITHOUT_CODE) <= set(reference.unlinked()), "a reason too many"


def test_every_system_names_a_theorem_or_it_is_known_why_not():
    assert reference.systems_without_theorem() == []
    assert set(reference.WITHOUT_THEOREM) <= set(reference.nameless()), "a reason too many"


def test_reproductions_and_systems_without_privacy_say_so():
    words = {reference.REPRODUCTION: "None proved", reference.NOT_PRIVATE: '"none"'}
    for name, why in reference.WITHOUT_THEOREM.items():
        assert words.get(why, "") in reference.docstrings()[name], name


def test_a_theorem_and_a_system_without_a_link_are_found(monkeypatch):
    monkeypatch.setattr(reference, "WITHOUT_CODE", {})
    monkeypatch.setattr(reference, "WITHOUT_THEOREM", {})
    assert "thm-pc-not-private" in reference.theorems_without_code()
    assert "dpcgd.constraint.laplace_pc.pc" in reference.systems_without_theorem()


def test_every_link_is_there_in_both_directions():
    assert reference.broken(reference.boxes(), reference.mentions()) == []


LAPLACE = "dpcgd.privacy.mechanisms.laplace"
PLANTED = [
    ("dpcgd.privacy.mechanisms.lapalce", {}, "which is not there"),
    ("dpcgd.graphs.cpdag.CPDAG.to_dot", {}, "CPDAG.to_dot does not name thm-x"),
    (LAPLACE, {LAPLACE: {"thm-x", "thm-y"}}, "names thm-y, which is not there"),
    (LAPLACE, {LAPLACE: {"thm-x"}, "dpcgd.local": {"thm-x"}}, "thm-x does not link to dpcgd.local"),
]


@pytest.mark.parametrize(("linked", "mentions", "message"), PLANTED)
def test_a_planted_link_is_found(linked, mentions, message):
    problems = reference.broken({"thm-x": Box("theorem", (linked,))}, mentions)
    assert any(message in problem for problem in problems)


def test_links_are_read_off_a_box():
    code = "{py:func}`~dpcgd.local.report.report` and {py:meth}`Ridge.change <dpcgd.Ridge.change>`"
    text = f"```{{prf:theorem}} A title\n:label: thm-x\nAs said.\n\nIn the package: {code}.\n```\n"
    expected = Box("theorem", ("dpcgd.local.report.report", "dpcgd.Ridge.change"))
    assert reference.boxes_in(f"Before.\n\n{text}\nAfter {code}.") == {"thm-x": expected}
    assert reference.broken({"thm-x": Box("theorem", (LAPLACE,))}, {LAPLACE: {"thm-x"}}) == []


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_module_stands_on_the_page_of_its_room(room):
    page = (reference.ROOT / f"book/api/{room}.md").read_text()
    shown = re.findall(r"^\.\. automodule:: (\S+)$", page, re.MULTILINE)
    inside = [m for m in reference.modules() if m.startswith(f"{ROOMS[room]}.")]
    listed = [module for module in inside if hasattr(reference.at(module), "__all__")]
    assert sorted(shown) == sorted([ROOMS[room], *listed])


def test_every_public_name_has_a_docstring_or_the_page_would_lack_it():
    assert [name for name, _ in reference.public() if not reference.docstrings().get(name)] == []


def test_every_room_has_a_page_in_the_book():
    toc = yaml.safe_load((reference.ROOT / "_toc.yml").read_text())
    parts = [part["chapters"] for part in toc["parts"]]
    (index,) = (page for part in parts for page in part if page["file"] == "book/api")
    assert {entry["file"] for entry in index["sections"]} == {f"book/api/{room}" for room in ROOMS}
    for room in house.ROOMS:
        assert re.search(rf"^   dpcgd\.{room}$", index_page(), re.MULTILINE), room


def test_the_table_of_systems_is_complete_and_right():
    rows = re.findall(r"^\| .* \| (\S+) \| `(\S+)` \| .*$", index_page(), re.MULTILINE)
    shown = {reference.LINK.findall(link)[0]: file for link, file in rows}
    assert set(reference.systems()) <= shown.keys()
    for name, file in shown.items():
        assert file.removeprefix("book/tools/") == name.rpartition(".")[0].replace(".", "/") + ".py"
        assert reference.at(name), name


def index_page():
    return (reference.ROOT / "book/api.md").read_text()


def test_the_reference_takes_no_part_of_a_description_for_a_type():
    napoleon = pytest.importorskip("sphinx.ext.napoleon", reason="it is in the book extra")
    for name in described_as_data():
        shown = str(napoleon.NumpyDocstring(reference.docstrings()[name], what="attribute"))
        assert ":type:" not in shown, name


def described_as_data():
    """Public constants, and what public classes hold beside methods."""
    public = dict(reference.public())
    for name in reference.docstrings():
        inside = isinstance(public.get(name.rpartition(".")[0]), type) and "._" not in name
        if (name in public or inside) and not callable(reference.at(name)):
            yield name
