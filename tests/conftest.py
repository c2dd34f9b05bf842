"""Chapters are executed beside the other tests and looked at in the end."""

import queue
import sys
import threading
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

OUTCOMES = pytest.StashKey[queue.Queue]()


def needs_chapters(item) -> bool:
    return "executed" in getattr(item, "fixturenames", ())


def pytest_collection_modifyitems(items):
    items.sort(key=needs_chapters)


def pytest_collection_finish(session):
    if any(map(needs_chapters, session.items)) and not session.config.option.collectonly:
        outcomes = session.config.stash[OUTCOMES] = queue.Queue()
        threading.Thread(target=_execute, args=[outcomes], daemon=True).start()


def _execute(outcomes):
    """Put every outcome into the queue, and None behind the last; an error goes there too."""
    try:
        import chapters  # of the book extra

        for outcome in chapters.execute_all(chapters.home("quick"), "quick"):
            outcomes.put(outcome)
        outcomes.put(None)
    except BaseException as error:
        outcomes.put(error)


@pytest.fixture(scope="session")
def executed(request):
    """The chapters' outcomes; what an earlier `make test` or `make book` did is not done again."""
    found, outcomes = {}, request.config.stash[OUTCOMES]
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print()
        while outcome := outcomes.get():
            if isinstance(outcome, BaseException):
                raise outcome
            print(f"  {outcome}", flush=True)
            found[outcome.chapter] = outcome
    return found
