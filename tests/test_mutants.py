"""Every planted bug fits the code, and one a room is noticed; make mutants runs all of them."""

from pathlib import Path

import planted_bugs
import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "dpcgd"
ONE_A_ROOM = {bug.room: bug for bug in reversed(planted_bugs.BUGS)}


@pytest.mark.parametrize("bug", planted_bugs.BUGS, ids=lambda bug: bug.name)
def test_the_bug_can_be_planted_and_somebody_looks_for_it(bug):
    source = (PACKAGE / bug.file).read_text()
    compile(bug.patched(source), bug.file, "exec")
    assert bug.replayed or bug.tests


def test_there_are_bugs_for_every_room():
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert set(ONE_A_ROOM) == rooms - {"book"}
    assert len(planted_bugs.BUGS) >= 60
    assert len({bug.name for bug in planted_bugs.BUGS}) == len(planted_bugs.BUGS)


@pytest.mark.slow
@pytest.mark.parametrize("room", ONE_A_ROOM)
def test_a_planted_bug_is_noticed(room):
    import mutants  # needs papermill

    by, told = mutants.noticed(ONE_A_ROOM[room])
    assert by, told
