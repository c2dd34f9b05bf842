"""Every planted bug fits the code, and one a room is noticed; make mutants runs all of them."""

import ast
import builtins

import pytest
from planted_bugs import BUGS
from planting import PACKAGE, TESTS, Edit, file_of, room_of

ONE_A_ROOM = {room_of(bug): bug for bug in reversed(BUGS)}
EDITS = [bug for bug in BUGS if isinstance(bug, Edit)]
SWAPS = [bug for bug in BUGS if not isinstance(bug, Edit)]


def names_in(source):
    nodes = ast.walk(ast.parse(source))
    kinds = {ast.Name: "id", ast.Attribute: "attr", ast.arg: "arg", ast.alias: "name"}
    return {getattr(n, kinds[type(n)]) for n in nodes if type(n) in kinds} | set(dir(builtins))


@pytest.mark.parametrize("bug", EDITS, ids=lambda bug: bug.name)
def test_the_bug_can_be_planted(bug):
    source, wrong = file_of(bug.where).read_text(), bug.patched()
    assert ast.dump(ast.parse(wrong)) != ast.dump(ast.parse(source))


@pytest.mark.parametrize("bug", SWAPS, ids=lambda bug: bug.name)
def test_what_a_function_is_planted_for_is_there(bug):
    assert bug.found()


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_somebody_looks_for_the_bug(bug):
    assert bug.replayed or bug.tests
    for file in bug.tests.split():
        assert (TESTS / file.partition("::")[0]).exists()


def test_there_are_bugs_for_every_room():
    assert set(ONE_A_ROOM) == {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert len(BUGS) == len({bug.name for bug in BUGS}) >= 150


@pytest.mark.slow
@pytest.mark.parametrize("room", ONE_A_ROOM)
def test_a_planted_bug_is_noticed(room):
    import mutants  # needs papermill

    by, said = mutants.noticed(ONE_A_ROOM[room])
    assert by, said
