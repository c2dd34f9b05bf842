"""Receipts whose parts contradict each other are refused, also under a new seal."""

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from numpy.random import default_rng
from people import refused, resealed
from replays import Counted

import dpcgd

pytestmark = pytest.mark.filterwarnings("ignore:the edge model was trained")


def one_wide(n=20_000):
    """A variable of 30 levels, which one number tells where noise is wide."""
    levels = {"town": [f"t{i}" for i in range(30)], **dict.fromkeys("abc", ("no", "yes"))}
    return dpcgd.Dataset(default_rng(3).integers(0, (30, 2, 2, 2), (n, 4)), levels)


def with_numbers(n=20_000):
    """Ages, incomes of which some are missing, and a category."""
    schema = {"age": {"range": [0, 80]}, "income": {"range": [0, 9], "missing": "unknown"}}
    codes = default_rng(4).normal((9000, 16_000, 0.5), (2000, 300, 0), (n, 3)).astype(int)
    codes[::9, 1] = 2**15
    return dpcgd.Dataset.of_schema(codes, dpcgd.Schema({**schema, "smoke": ["no", "yes"]}))


WIDE = one_wide()
ALONE = Counted(WIDE.codes, np.ones(WIDE.n, int), WIDE.levels, ())
SMALL = dpcgd.load("cancer", n=5000, rng=default_rng(0))
MANY = dpcgd.load("sachs", n=100_000, rng=default_rng(0))
NOISY = dpcgd.load("sachs", n=2000, rng=default_rng(0))

RELEASES = {
    "table": lambda rng: dpcgd.dag_posterior(SMALL, epsilon=1.0, rng=rng),
    "pairs": lambda rng: dpcgd.graph_from_moments(SMALL, epsilon=1.0, rng=rng),
    "clipped": lambda rng: dpcgd.graph_from_moments(NOISY, epsilon=1.0, rng=rng),
    "numbers": lambda rng: dpcgd.graph_from_moments(with_numbers(), epsilon=1.0, rng=rng),
    "entries": lambda rng: dpcgd.graph_from_moments(one_wide(600), epsilon=1.0, rng=rng),
    "joined": lambda rng: dpcgd.graph_from_moments(ALONE, epsilon=1.0, rng=rng),
    "looks": lambda rng: dpcgd.table_pc(MANY, epsilon=1.0, rng=rng),
    "joined, looks": lambda rng: dpcgd.table_pc(WIDE, epsilon=1.0, rng=rng),
    "tests": lambda rng: dpcgd.laplace_pc(SMALL, epsilon=1.0, rng=rng),
    "persons": lambda rng: dpcgd.priv_pc(SMALL, epsilon=1.0, rng=rng, rows_per_person=3, rate=0.5),
    "choices": lambda rng: dpcgd.em_pc(SMALL, epsilon=1.0, rng=rng),
    "once": lambda rng: dpcgd.gram_notears(SMALL, epsilon=1.0, rng=rng),
    "steps": lambda rng: dpcgd.noleaks(SMALL, epsilon=1.0, steps=3, rng=rng),
}


@cache
def written(name) -> str:
    """The text of a receipt."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "receipt.json"
        RELEASES[name](default_rng(0)).save(path)
        return path.read_text()


@pytest.fixture
def edited(tmp_path):
    """Edits a receipt, under a new seal."""

    def edit(name, change=lambda content: None):
        (tmp_path / "receipt.json").write_text(written(name))
        return resealed(tmp_path / "receipt.json", change)

    return edit


@pytest.mark.parametrize("name", RELEASES)
def test_a_receipt_as_it_was_written_is_accepted(name, edited):
    checked = dpcgd.check_receipt(edited(name))
    assert checked.epsilon <= 1.0
    assert checked.delta <= 1e-6


def test_versions_are_those_that_ran_and_not_those_that_read(edited):
    path = edited("tests", lambda c: c["made_by"]["versions"].update(numpy="1.0"))
    dpcgd.read_release(path).save(path := path.with_name("saved.json"))
    content = json.loads(path.read_text())
    assert content["made_by"]["versions"]["numpy"] == "1.0"
    assert content["noise_source"] == "numpy 1.0, a seed"


def marginals(content):
    return content["released"]["marginals"]["marginals"]


def moments(content):
    return marginals(content)["moments"]


def clipped(content):
    return [marginals(content)["clipped"]]


def narrower(part=0.99, size=None, moments=moments):
    def change(content):
        for moment in moments(content):
            if size in (None, len(moment.get("variables", ()))):
                moment["deviation"] *= part

    return change


def events(content):
    return content["ledger"]["events"]


def wider_on_paper(content):
    for event in events(content):
        event["noise_multiplier"] *= 1.1


def histogram(content, which=0):
    return marginals(content)["numbers"][which]


def swapped(content):
    here, there = marginals(content)["numbers"]
    here["variable"], there["variable"] = there["variable"], here["variable"]


def with_a_removed_edge(content):
    removed = next(entry for entry in content["pairs"] if entry["status"] == "removed")
    content["graph"]["undirected"].append(removed["pair"])


def cheaper_for_a_person(content):
    """The words too: as if the run had been opened for one row."""
    promise = content["guarantee"]
    words = {name: promise[name].replace("3", "4") for name in ("unit", "neighbours")}
    promise.update(rows_per_person=4, **words)


TAMPERED = {
    "less noise in a table": ("table", lambda c: marginals(c).update(scale=1.98)),
    "less noise in pairs": ("pairs", narrower()),
    "less noise in one pair": ("pairs", lambda c: moments(c)[-1].update(deviation=1e-9)),
    "less noise in clipped moments": ("clipped", narrower(0.999, moments=clipped)),
    "less noise in single variables": ("clipped", narrower(size=1)),
    "less noise in a look at numbers": ("numbers", narrower(size=1)),
    "less noise in moments of numbers": ("numbers", narrower(0.999, moments=clipped)),
    "no mechanism for a look at pieces": ("numbers", lambda c: events(c).pop(2)),
    "a share of a range": ("numbers", lambda c: histogram(c)["shares"].append(0.1)),
    "more in a piece": ("numbers", lambda c: histogram(c)["shares"].__setitem__(3, 0.5)),
    "a negative share": ("numbers", lambda c: histogram(c)["shares"].__setitem__(0, -0.1)),
    "other pieces": ("numbers", lambda c: histogram(c)["starts"].__setitem__(1, 3)),
    "a look that gave nothing": ("numbers", lambda c: events(c).insert(1, events(c)[1])),
    "swapped histograms": ("numbers", swapped),
    "a known number missing": ("numbers", lambda c: histogram(c)["missing"].append(0.2)),
    "another range": ("numbers", lambda c: c["data"]["rules"]["age"].update(range=[0, 90])),
    "no theorem of looks": ("numbers", lambda c: c["guarantee"]["theorems"].pop()),
    "less noise in a triple": ("looks", narrower(size=3)),
    "less noise in pairs seen again": ("looks", narrower(0.9, size=2)),
    "more noise on paper": ("pairs", wider_on_paper),
    "other records": ("pairs", lambda c: c["data"].update(n=10**6)),
    "too many entries": ("entries", lambda c: marginals(c)["entries"][0].update(width=9)),
    "no word of entries": ("entries", lambda c: marginals(c).pop("entries")),
    "no mechanism for a look that joined levels": ("joined", lambda c: events(c).pop(0)),
    "two measurements in place of one": ("once", lambda c: events(c).append(events(c)[0])),
    "a moment less": ("pairs", lambda c: moments(c).pop()),
    "another cell": ("table", lambda c: c["data"]["domain"]["Smoker"].append("sometimes")),
    "other neighbours": ("tests", lambda c: events(c)[0].update(neighbours="ADD_OR_REMOVE_ONE")),
    "more rows of a person": ("persons", cheaper_for_a_person),
    "less used than it cost": ("tests", lambda c: c["ledger"]["used"].update(epsilon=0.01)),
    "kinder words": ("persons", lambda c: c["guarantee"].update(in_words=["Nobody can learn."])),
    "one word less": ("persons", lambda c: c["guarantee"]["not_protected"].pop()),
    "a theorem too many": ("pairs", lambda c: c["guarantee"]["theorems"].append("thm-look-again")),
    "a theorem less": ("joined", lambda c: c["guarantee"]["theorems"].remove("thm-joined-levels")),
    "not joined": ("joined", lambda c: c["released"].update(joined_levels={"mapping": []})),
    "a release, no experiment": ("tests", lambda c: c.update(kind="release")),
    "another source": ("tests", lambda c: c.update(noise_source="OpenDP 1.0")),
    "another digest": ("tests", lambda c: c["data"].update(domain_sha256="0" * 64)),
    "an entry in an account": ("tests", lambda c: c.pop("account_entry")),
    "a comment": ("tests", lambda c: c["guarantee"].update(comment="audited")),
    "other rules": ("tests", lambda c: c["data"]["rules"]["Smoker"]["levels"].reverse()),
    "an edge that a test removed": ("tests", with_a_removed_edge),
    "a better account": ("pairs", lambda c: c["guarantee"].update(whole_run="0.001-zCDP")),
    "another account": ("table", lambda c: c["ledger"].update(accountant="audited")),
    "a status": ("tests", lambda c: c["pairs"][0].update(status="not testable")),
    "another system": ("tests", lambda c: c["made_by"].update(system="table_pc")),
    "a smaller promise": ("tests", lambda c: c["guarantee"].update(epsilon=0.5)),
}
EMPTY, LESS, FEW = ("table", "pairs", "tests"), ("looks", "tests", "steps"), ("choices", "persons")
TAMPERED |= {f"no mechanism, {name}": (name, lambda c: events(c).clear()) for name in EMPTY}
TAMPERED |= {f"a mechanism less, {name}": (name, lambda c: events(c).pop()) for name in LESS}
TAMPERED |= {
    f"two, {name}": (name, lambda c: events(c).__delitem__(slice(2, None))) for name in FEW
}
HISTOGRAMS = "a share of a range", "more in a piece", "a negative share", "other pieces"
UNREADABLE = {
    "another kind": lambda c: c.update(release="PairRelease"),
    "a field more": lambda c: c["released"].update(more=1),
    "another event": lambda c: events(c)[0].update(kind="Other"),
    "a stranger": lambda c: c["graph"]["directed"].append(["Smoker", "nobody"]),
    "no budget": lambda c: c["guarantee"].update(delta=7),
    "no pairs": lambda c: c.pop("pairs"),
}


@pytest.mark.parametrize("how", TAMPERED)
def test_a_receipt_that_contradicts_itself_is_refused(how, edited):
    path = edited(*TAMPERED[how])
    assert dpcgd.read_release(path)
    refused(r"receipt\.json: ", dpcgd.check_receipt, path)


@pytest.mark.parametrize("how", HISTOGRAMS)
def test_what_is_no_histogram_is_refused_as_none(how, edited):
    refused("is no histogram of its range", dpcgd.check_receipt, edited(*TAMPERED[how]))


def test_entries_that_the_budget_does_not_carry_are_refused(monkeypatch, tmp_path):
    monkeypatch.setattr("dpcgd.moments.entries.MOST_NOISE", 0.1)
    release = dpcgd.graph_from_moments(one_wide(600), epsilon=1.0, rng=default_rng(0))
    monkeypatch.undo()
    release.save(path := tmp_path / "receipt.json")
    refused("other entries than the budget carries", dpcgd.check_receipt, path)


@pytest.mark.parametrize("how", UNREADABLE)
def test_a_receipt_of_another_version_is_refused_in_one_line(how, edited):
    cure = "holds no release that this version can read"
    refused(cure, dpcgd.read_release, edited("tests", UNREADABLE[how]))
