"""Receipts whose parts contradict each other are refused, also under a new seal."""

import json
import math
from functools import cache

import numpy as np
import pytest
from dpcgd_book.data.cause_effect_pairs import synthetic_pair
from numpy.random import default_rng

from dpcgd import (
    Dataset,
    check_ledger,
    check_receipt,
    curate_pc,
    dag_posterior,
    em_pc,
    graph_from_moments,
    laplace_pc,
    load,
    priv_pc,
    private_anm,
    table_pc,
)
from dpcgd.constraint.priv_pc import svt_pc
from dpcgd.pairwise.dependence_scores import Iqr
from dpcgd.privacy.budget import Budget
from dpcgd.privacy.events import ApproximateEvent, GaussianEvent, Neighbours, PureEvent
from dpcgd.privacy.filters import BasicFilter, Ledger, Spent
from dpcgd.privacy.sealed_file import digest_of
from dpcgd.score.noleaks import noleaks
from dpcgd.score.notears import gram_notears


def one_wide(n=20_000):
    """A variable of 30 levels, whose levels a run joins."""
    rng = default_rng(3)
    codes = np.column_stack([rng.integers(0, 30, n), rng.integers(0, 2, (n, 3))])
    return Dataset(
        codes, {"town": [f"t{i}" for i in range(30)], **dict.fromkeys("abc", ("no", "yes"))}
    )


SMALL = load("cancer", n=5000, rng=default_rng(0))
MANY = load("sachs", n=100_000, rng=default_rng(0))
NOISY = load("sachs", n=2000, rng=default_rng(0))

RELEASES = {
    "table": lambda rng: dag_posterior(SMALL, epsilon=1.0, rng=rng),
    "pairs": lambda rng: graph_from_moments(SMALL, epsilon=1.0, rng=rng),
    "triples": lambda rng: graph_from_moments(MANY, epsilon=1.0, rng=rng),
    "clipped": lambda rng: graph_from_moments(NOISY, epsilon=1.0, rng=rng),
    "joined": lambda rng: graph_from_moments(one_wide(), epsilon=1.0, rng=rng),
    "looks": lambda rng: table_pc(MANY, epsilon=1.0, rng=rng),
    "joined, looks": lambda rng: table_pc(one_wide(), epsilon=1.0, rng=rng),
    "tests": lambda rng: laplace_pc(SMALL, epsilon=1.0, rng=rng),
    "persons": lambda rng: priv_pc(SMALL, epsilon=1.0, rng=rng, rows_per_person=3),
    "choices": lambda rng: em_pc(SMALL, epsilon=1.0, rng=rng),
    "thresholds": lambda rng: svt_pc(SMALL, epsilon=1.0, rng=rng),
    "planned": lambda rng: curate_pc(SMALL, epsilon=1.0, rng=rng),
    "once": lambda rng: gram_notears(SMALL, epsilon=1.0, rng=rng),
    "steps": lambda rng: noleaks(SMALL, epsilon=1.0, steps=3, rng=rng),
}


@cache
def written(name) -> str:
    """The text of a receipt."""
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "receipt.json"
        RELEASES[name](default_rng(0)).save(path)
        return path.read_text()


def checked(name, path, change=lambda content: None):
    """A receipt that somebody edited who can make a new seal."""
    content = json.loads(written(name))
    change(content)
    content.pop("sha256")
    path.write_text(json.dumps({**content, "sha256": digest_of(content)}))
    return check_receipt(path)


@pytest.mark.filterwarnings("ignore:the edge model was trained")
@pytest.mark.parametrize("name", RELEASES)
def test_a_receipt_as_it_was_written_is_accepted(name, tmp_path):
    found = checked(name, tmp_path / "receipt.json")
    assert found.epsilon <= 1.0
    assert found.delta <= 1e-6


def moments(content):
    return content["released"]["marginals"]["marginals"]["moments"]


def narrower(part=0.99, size=None):
    def change(content):
        for moment in moments(content):
            if size in (None, len(moment["variables"])):
                moment["deviation"] *= part

    return change


def events(content):
    return content["ledger"]["events"]


def scale(content):
    content["released"]["marginals"]["marginals"]["scale"] *= 0.99


def clipped(content):
    content["released"]["marginals"]["marginals"]["clipped"]["deviation"] *= 0.999


def wider_on_paper(content):
    for event in events(content):
        event["noise_multiplier"] *= 1.1


def with_a_removed_edge(content):
    removed = next(entry for entry in content["pairs"] if entry["status"] == "removed")
    content["graph"]["undirected"].append(removed["pair"])


def cheaper_for_a_person(content):
    """The words too: as if the run had been opened for one row."""
    promise = content["guarantee"]
    promise.update(rows_per_person=4)
    promise["unit"] = promise["unit"].replace("3", "4")
    promise["neighbours"] = promise["neighbours"].replace("3", "4")


TAMPERED = {
    "less noise in a table": ("table", scale),
    "less noise in pairs": ("pairs", narrower()),
    "less noise in one pair": ("pairs", lambda c: moments(c)[-1].update(deviation=1e-9)),
    "less noise in triples": ("triples", narrower(size=3)),
    "less noise in clipped moments": ("clipped", clipped),
    "less noise in single variables": ("clipped", narrower(size=1)),
    "less noise in a triple": ("looks", narrower(size=3)),
    "less noise in pairs seen again": ("looks", narrower(0.9, size=2)),
    "more noise on paper": ("pairs", wider_on_paper),
    "other records": ("pairs", lambda c: c["data"].update(n=10**6)),
    "no mechanism for a table": ("table", lambda c: events(c).clear()),
    "no mechanism for moments": ("pairs", lambda c: events(c).clear()),
    "no mechanism for triples": ("triples", lambda c: events(c).pop()),
    "no mechanism for a look that joined levels": ("joined", lambda c: events(c).pop(0)),
    "no mechanism for a triple": ("looks", lambda c: events(c).pop()),
    "no mechanism for tests": ("tests", lambda c: events(c).clear()),
    "no mechanism for one test": ("tests", lambda c: events(c).pop()),
    "no mechanism for a step": ("steps", lambda c: events(c).pop()),
    "two measurements in place of one": ("once", lambda c: events(c).append(events(c)[0])),
    "a moment less": ("pairs", lambda c: moments(c).pop()),
    "another cell": ("table", lambda c: c["data"]["domain"]["Smoker"].append("sometimes")),
    "other neighbours": ("tests", lambda c: events(c)[0].update(neighbours="ADD_OR_REMOVE_ONE")),
    "more rows of a person": ("persons", cheaper_for_a_person),
    "less used than it cost": ("tests", lambda c: c["ledger"]["used"].update(epsilon=0.01)),
    "kinder words": ("persons", lambda c: c["guarantee"].update(in_words=["Nobody can learn."])),
    "one word less": ("persons", lambda c: c["guarantee"]["not_protected"].pop()),
    "another unit": ("persons", lambda c: c["guarantee"].update(unit="one person")),
    "a theorem too many": ("pairs", lambda c: c["guarantee"]["theorems"].append("thm-triples")),
    "a theorem less": ("joined", lambda c: c["guarantee"]["theorems"].remove("thm-joined-levels")),
    "not joined": ("joined", lambda c: c["released"].update(joined_levels={"mapping": []})),
    "a release, no experiment": ("tests", lambda c: c.update(kind="release")),
    "another source": ("tests", lambda c: c.update(noise_source="OpenDP 1.0")),
    "another digest": ("tests", lambda c: c["data"].update(domain_sha256="0" * 64)),
    "an entry in an account": ("tests", lambda c: c.pop("account_entry")),
    "a comment": ("tests", lambda c: c["guarantee"].update(comment="audited")),
    "other rules": ("tests", lambda c: c["data"]["rules"]["Smoker"]["levels"].reverse()),
    "an edge that a test removed": ("tests", with_a_removed_edge),
    "a choice less": ("choices", lambda c: events(c).__delitem__(slice(2, None))),
    "a sieve less": ("persons", lambda c: events(c).__delitem__(slice(2, None))),
    "a better account": ("pairs", lambda c: c["guarantee"].update(whole_run="0.001-zCDP")),
    "another account": ("table", lambda c: c["ledger"].update(accountant="audited")),
    "a status": ("tests", lambda c: c["pairs"][0].update(status="not testable")),
}


@pytest.mark.filterwarnings("ignore:the edge model was trained")
@pytest.mark.parametrize("how", TAMPERED)
def test_a_receipt_that_contradicts_itself_is_refused(how, tmp_path):
    name, change = TAMPERED[how]
    with pytest.raises(ValueError, match=r"receipt\.json") as caught:
        checked(name, tmp_path / "receipt.json", change)
    assert "\n" not in str(caught.value)


# --- ledgers


def ledger(*paid, budget, spent=math.inf):
    return Ledger(paid, Spent(spent, budget.delta), budget, "by hand")


def test_the_deltas_of_a_person_are_held_against_the_promise():
    """Of three rows a delta of 9e-7 becomes (1 + e^.18 + e^.36) 9e-7 = 3.27e-6."""
    one_row, three = (Budget(1.0, 1e-6, rows_per_person=rows) for rows in (1, 3))
    tested = ApproximateEvent("tested release", 0.18, 9e-7)
    assert check_ledger(ledger(tested, budget=one_row)).delta <= 1e-6
    with pytest.raises(ValueError, match=r"delta = 1e-06, and its ledger comes to 3\.267"):
        check_ledger(ledger(tested, budget=three))


def test_deltas_are_summed():
    half = ApproximateEvent("tested release", 0.1, 6e-7)
    with pytest.raises(ValueError, match=r"delta = 1e-06, and its ledger comes to 1\.2e-06"):
        check_ledger(ledger(half, half, budget=Budget(1.0, 1e-6)))


def test_what_basic_composition_allows_a_person_is_accepted():
    budget = Budget(1.0, 1e-6, rows_per_person=4)
    account = BasicFilter(budget)
    epsilon, delta = (of / 2 * (1 - 1e-9) for of in account.limit)
    for _ in range(2):
        account.spend(ApproximateEvent("tested release", epsilon, delta))
    assert check_ledger(account.ledger).epsilon <= 1.0


def test_a_release_with_a_tested_score_is_accepted():
    pair = synthetic_pair(2000, rng=default_rng(0))
    for rows in (1, 2):
        how = {"score": Iqr(), "rows_per_person": rows, "rng": default_rng(0)}
        assert check_ledger(private_anm(pair, epsilon=1.0, **how).ledger).epsilon <= 1.0


def test_neighbours_other_than_the_promise_are_refused():
    event = PureEvent("Laplace", 0.1, neighbours=Neighbours.ADD_OR_REMOVE_ONE)
    with pytest.raises(ValueError, match="neighbours that add or remove one record"):
        check_ledger(ledger(event, budget=Budget(1.0, 1e-6)))


@pytest.mark.parametrize(
    "event", [PureEvent("Laplace", -0.1), GaussianEvent("Gaussian", -9.0), PureEvent("x", math.nan)]
)
def test_what_is_no_price_is_refused(event):
    with pytest.raises(ValueError, match="must be a positive finite number"):
        check_ledger(ledger(event, budget=Budget(1.0, 1e-6)))


@pytest.mark.parametrize(
    ("events", "recomputed", "ours"),
    [
        ([GaussianEvent("Gaussian", 9.0)], "prices of Gaussian", "sensitivities"),
        ([PureEvent("Laplace", 0.1)] * 9, "prices of Laplace", "sensitivities"),
        ([PureEvent("above threshold", 0.1)], None, "prices of above threshold"),
        ([PureEvent("above threshold", 0.02)] * 90, "their sum", "prices of above threshold"),
    ],
)
def test_it_is_said_whose_prices_they_are(events, recomputed, ours):
    found = check_ledger(ledger(*events, budget=Budget(9.0, 1e-6)))
    assert ours in found.ours
    assert not set(found.ours) & set(found.recomputed)
    assert recomputed in found.recomputed if recomputed else found.recomputed == ()


# --- sensitivities by a third way: all pairs of records of a small table
