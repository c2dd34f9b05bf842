"""Every planted bug fits the code, and a few are noticed; make mutants runs all of them."""

import ast

import pytest
from planted_bugs import BUGS
from planting import PACKAGE, TESTS

ONE_A_ROOM = {bug.file.parent.name: bug for bug in reversed(BUGS)}


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_the_bug_can_be_planted_and_somebody_looks_for_it(bug):
    source, wrong = bug.file.read_text(), bug.patched()
    assert ast.dump(ast.parse(wrong)) != ast.dump(ast.parse(source))
    assert bug.replayed or bug.tests
    for file in bug.tests.split():
        assert (TESTS / file.partition("::")[0]).exists()


def test_there_are_bugs_for_every_room():
    assert set(ONE_A_ROOM) == {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert len(BUGS) == len({bug.name for bug in BUGS}) >= 150


@pytest.mark.slow
@pytest.mark.parametrize("room", ["constraint", "local", "score"])  # a few seconds each
def test_a_planted_bug_is_noticed(room):
    import mutants  # needs papermill

    by, said = mutants.noticed(ONE_A_ROOM[room])
    assert by, said
