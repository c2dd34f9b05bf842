"""Chapters are executed beside the other tests and looked at in the end."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"
sys.path.insert(0, str(SCRIPTS))

settings.register_profile("no clock", deadline=None)
settings.load_profile("no clock")  # a busy machine is no fault

OF_CHAPTERS = ("test_notebooks", "test_pages")
RUNNING = pytest.StashKey[subprocess.Popen]()
EXECUTE = """
import dataclasses, json, chapters
for outcome in chapters.execute_all(chapters.home("quick"), "quick"):
    print("outcome", json.dumps(dataclasses.asdict(outcome)), flush=True)
"""


def pytest_generate_tests(metafunc):
    """A test with `name` as its last argument is one of every chapter, unless it says otherwise."""
    own = [mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")]
    if metafunc.module.__name__ in OF_CHAPTERS and "name" in metafunc.fixturenames and not own:
        notebooks = (SCRIPTS.parent / "notebooks").glob("[0-9][0-9]_*.ipynb")
        metafunc.parametrize("name", sorted(path.stem for path in notebooks))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Where the book's tools are not installed, tests that attack with them are left out."""
    report = yield
    if report.failed and "No module named 'dpcgd_book'" in str(report.longrepr):
        report.outcome = "skipped"
        report.longrepr = (str(collector.path), 0, "Skipped: needs the book's tools")
    return report


def needs_chapters(item) -> bool:
    return "executed" in getattr(item, "fixturenames", ())


def pytest_collection_modifyitems(items):
    items.sort(key=needs_chapters)


def pytest_collection_finish(session):
    """In a process of its own: what a thread prints would turn up in the output of tests."""
    if any(map(needs_chapters, session.items)) and not session.config.option.collectonly:
        command = [sys.executable, "-c", EXECUTE]
        running = subprocess.Popen(command, cwd=SCRIPTS, stdout=subprocess.PIPE, text=True)
        session.config.stash[RUNNING] = running


def pytest_sessionfinish(session):
    running = session.config.stash.get(RUNNING, None)
    if running and running.poll() is None:  # the tests were stopped
        running.send_signal(signal.SIGINT)  # chapters that have not begun will not


@pytest.fixture(scope="session")
def executed(request):
    """The chapters' outcomes; what an earlier `make test` or `make book` did is not done again."""
    import chapters  # of the book extra

    outcomes, running = {}, request.config.stash[RUNNING]
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print()
        for line in running.stdout:
            if line.startswith("outcome "):
                outcome = chapters.Outcome(**json.loads(line.removeprefix("outcome ")))
                print(f"  {outcome}", flush=True)
                outcomes[outcome.chapter] = outcome
    assert running.wait() == 0, "the chapters could not be executed"
    return outcomes


@pytest.fixture
def folder_of_entry(tmp_path, monkeypatch):
    """Writes a file as benchmarks/PATH and tells the table of all systems to look there."""
    from benchmarks import entries, kept

    def written(path, text):
        file = tmp_path / "benchmarks" / path
        file.parent.mkdir(parents=True)
        file.write_text(text)
        monkeypatch.setenv(entries.FOLDER, str(tmp_path / "benchmarks" / "systems"))
        monkeypatch.setenv("DPCGD_RESULTS", str(tmp_path / "results"))
        monkeypatch.setattr(kept, "stored_folder", lambda: tmp_path / "stored")
        return file.parent

    return written
