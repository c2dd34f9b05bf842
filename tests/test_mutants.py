"""Every planted bug fits the code, and one a room is noticed; make mutants runs all of them."""

import importlib
from operator import attrgetter
from pathlib import Path

import planted_bugs
import planted_functions
import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "dpcgd"
BUGS = planted_bugs.BUGS + planted_functions.BUGS
ONE_A_ROOM = {bug.room: bug for bug in reversed(BUGS)}


@pytest.mark.parametrize("bug", planted_bugs.BUGS, ids=lambda bug: bug.name)
def test_the_bug_can_be_planted(bug):
    source = (PACKAGE / bug.file).read_text()
    compile(bug.patched(source), bug.file, "exec")


@pytest.mark.parametrize("bug", planted_functions.BUGS, ids=lambda bug: bug.name)
def test_what_a_function_is_planted_for_is_there(bug):
    module, _, name = bug.where.partition(":")
    attrgetter(name)(importlib.import_module(module))


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_somebody_looks_for_the_bug(bug):
    assert bug.replayed or bug.tests
    for file in bug.tests.split():
        assert (PACKAGE.parent / "tests" / file.partition("::")[0]).exists()


def test_there_are_bugs_for_every_room():
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert set(ONE_A_ROOM) == rooms
    assert len(planted_functions.BUGS) >= 50
    assert len({bug.name for bug in BUGS}) == len(BUGS)


@pytest.mark.slow
@pytest.mark.parametrize("room", ONE_A_ROOM)
def test_a_planted_bug_is_noticed(room):
    import mutants  # needs papermill

    by, told = mutants.noticed(ONE_A_ROOM[room])
    assert by, told
