"""The stored benchmark run has what the book shows, and nothing that names a machine."""

import json
import re
import warnings
from pathlib import Path

import pytest
from numpy.random import default_rng

from benchmarks import peers, run, yardsticks
from dpcgd import NETWORKS, load

FILE = Path(__file__).resolve().parent.parent / "benchmarks" / "results.json"
RESULTS = json.loads(FILE.read_text())


def test_every_system_that_is_timed_can_be_run():
    data = load("earthquake", n=2000, rng=default_rng(0))
    for name, task in run.runs_of_ours().items():
        with warnings.catch_warnings(action="ignore"):
            assert task(data).graph.variables == data.variables, name


def test_other_packages_have_exact_pins():
    for module in (peers, yardsticks):
        pins = module.pins()
        assert {"numpy", "causal-learn", "pyagrum"} <= set(pins)
        assert all(re.fullmatch(rf"{name}==[\d.]+", pin) for name, pin in pins.items())


def test_every_system_and_package_was_timed_on_every_network():
    timed = RESULTS["seconds"] | RESULTS["peers"]
    assert RESULTS["seconds"].keys() <= run.runs_of_ours().keys()
    assert RESULTS["peers"].keys() == peers.PACKAGES.keys()
    assert all(list(networks) == list(NETWORKS) for networks in timed.values())
    answers = [answer for networks in timed.values() for answer in networks.values()]
    assert min(a["seconds"] if isinstance(a, dict) else a for a in answers) > 0
    assert min(a["f1"] for a in answers if isinstance(a, dict)) > 0.5


def test_ratios_are_those_of_the_stored_seconds():
    for name in NETWORKS:
        theirs = min(networks[name]["seconds"] for networks in RESULTS["peers"].values())
        ours = RESULTS["seconds"]["PC, chi squared"][name]
        assert RESULTS["ratio_to_fastest_peer"][name] == pytest.approx(theirs / ours, rel=0.01)


def test_the_keys_of_the_contract_are_there():
    assert set(RESULTS["growth_n"]) == {"asia", "alarm"}
    assert list(RESULTS["growth_n"]["asia"]) == ["10000", "100000", "1000000", "10000000"]
    assert list(RESULTS["growth_d"]) == ["10", "20", "50", "100"]
    assert list(RESULTS["paper_seconds"]["EM-PC"]) == list(NETWORKS)
    assert all(set(goal) == {"goal", "measured", "met"} for goal in RESULTS["goals"].values())


def test_nothing_names_the_machine():
    assert re.fullmatch(r"\d+ cores, \w+, \w+ 3\.\d+", RESULTS["machine"])
    assert not re.search(r"[/\\~@]|localhost", FILE.read_text())
