"""Receipts: a release as a file that a program and a person can read."""

import math
import os
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from dpcgd.graphs.answers import Answers
from dpcgd.graphs.certainty import Certainty
from dpcgd.graphs.cpdag import CPDAG
from dpcgd.graphs.knowledge import Knowledge
from dpcgd.graphs.promise import in_words, not_protected, unit_of
from dpcgd.privacy.budget import Budget, Spent
from dpcgd.privacy.events import (
    ApproximateEvent,
    BoundedRangeEvent,
    Event,
    GaussianEvent,
    Neighbours,
    PureEvent,
)
from dpcgd.privacy.filters import Ledger
from dpcgd.privacy.run import Terms
from dpcgd.privacy.sealed_file import read_sealed, write_sealed

__all__ = ["content_of", "read_receipt", "release_fields", "write_receipt"]

FORM = "dpcgd receipt 3"
"""Receipts of this form are written and read."""

EVENTS = {
    kind.__name__: kind for kind in (PureEvent, BoundedRangeEvent, GaussianEvent, ApproximateEvent)
}

DISTRIBUTIONS = {
    "above threshold": "Laplace",
    "distance test": "Laplace",
    "exponential": "Gumbel",
    "permute and flip": "exponential",
    "tested release": "Laplace",
}
"""What a mechanism draws, where it is not called by that."""

PLAIN = ("graph", "ledger", "guarantee", "seconds", "terms", "answers")
"""A receipt shows these fields of every release by themselves."""


def write_receipt(path: str | os.PathLike, of: Any, status: Mapping[frozenset[str], str]) -> None:
    """Write the receipt of a release; see :meth:`dpcgd.graphs.release.Release.save`."""
    if of.guarantee == "none":
        raise ValueError("this run was not private, and a receipt is for what was promised")
    write_sealed(path, content_of(of, status))


def read_receipt(path: str | os.PathLike) -> dict[str, Any]:
    """The content of a receipt, once it has verified.

    Raises
    ------
    ValueError
        If there is no such file, or it is not what was written.
    """
    return read_sealed(path, FORM)


def content_of(of: Any, status: Mapping[frozenset[str], str]) -> dict[str, Any]:
    """What stands in the receipt of a release, as JSON holds it."""
    terms, ledger, answers = of.terms, of.ledger, of.answers
    return {
        "format": FORM,
        "kind": terms.kind,
        "made_by": {"system": terms.system, "versions": dict(terms.versions)},
        "guarantee": {
            "status": of.guarantee,
            "epsilon": ledger.budget and ledger.budget.epsilon,
            "delta": ledger.budget and ledger.budget.delta,
            "neighbours": Neighbours.REPLACE_ONE.of(terms.rows_per_person),
            "unit": unit_of(terms),
            "rows_per_person": terms.rows_per_person,
            "theorems": list(terms.theorems),
            "whole_run": ledger.whole,
            "in_words": in_words(of.guarantee, ledger.budget, terms),
            "not_protected": not_protected(terms),
        },
        "data": {
            "n": terms.n,
            "domain": {name: list(levels) for name, levels in terms.domain.items()},
            "domain_sha256": terms.digest,
            "rules": {name: dict(rule) for name, rule in terms.rules.items()},
        },
        "noise": terms.noise,
        "noise_source": terms.source,
        "noise_distributions": sorted(
            {DISTRIBUTIONS.get(event.mechanism, event.mechanism) for event in ledger.events}
        ),
        "settings": {name: _encoded(value) for name, value in terms.settings.items()},
        "account_entry": terms.account_entry,
        "graph": {"variables": list(of.graph.variables), **of.graph.to_edge_lists()._asdict()},
        "certainty": _certainty(of.graph),
        "pairs": [_pair(of, pair, status) for pair in status],
        "search": answers and {"tests": answers.tests, "stopped_early": answers.stopped_early},
        "ledger": {
            "accountant": ledger.accountant,
            "used": {
                name: number if math.isfinite(number) else None  # JSON has no infinity
                for name, number in ledger.spent._asdict().items()
            },
            "events": [_event(event) for event in ledger.events],
        },
        "release": type(of).__name__,
        "released": {
            part.name: _encoded(getattr(of, part.name))
            for part in fields(of)
            if part.name not in PLAIN
        },
    }


def _pair(of, pair, status) -> dict[str, Any]:
    entry = {"pair": sorted(pair, key=of.graph.variables.index), "status": status[pair]}
    if of.answers is not None:
        entry["tested"] = pair not in of.answers.untested
        if pair in of.answers.separating_sets:
            entry["separating_set"] = list(of.answers.separating_sets[pair])
    return entry


def _certainty(graph: CPDAG) -> dict[str, Any] | None:
    """The probabilities of the edges in the order of the pairs, and of the arrows by their ends."""
    if graph.certainty is None:
        return None
    edges, arrows = graph.certainty.edges.items(), graph.certainty.arrows.items()
    return {
        "edges": [[*sorted(pair, key=graph.variables.index), p] for pair, p in edges],
        "arrows": [[*ends, p] for ends, p in arrows],
        "caution": graph.certainty.caution,
    }


def _event(event: Event) -> dict[str, Any]:
    values = {name: getattr(event, name) for name in event.parameters}
    about = {"mechanism": event.mechanism, "label": event.label}
    return {"kind": type(event).__name__, **about, **values, "neighbours": event.neighbours.name}


def _encoded(value: Any) -> Any:
    """As JSON has it, with a tag for what JSON has not."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)):
        return [_encoded(part) for part in value]
    if isinstance(value, frozenset):
        return {"set": sorted(map(_encoded, value), key=repr)}
    if isinstance(value, Mapping):
        return {"mapping": [[_encoded(key), _encoded(part)] for key, part in value.items()]}
    if isinstance(value, np.ndarray):
        return {"array": value.tolist()}
    if isinstance(value, Knowledge):
        return {"knowledge": {name: _encoded(part) for name, part in vars(value).items()}}
    if hasattr(value, "to_receipt"):
        return {"marginals": value.to_receipt()}
    raise TypeError(f"a receipt has no way to write {value!r}; add one to _encoded")


def _decoded(value: Any, read_marginals: Any = None) -> Any:
    """What was encoded."""
    if isinstance(value, list):
        return tuple(_decoded(part, read_marginals) for part in value)
    if not isinstance(value, dict):
        return value
    ((tag, held),) = value.items()
    if tag == "marginals":
        return read_marginals(held)
    if tag == "knowledge":
        return Knowledge(**{name: _decoded(part) for name, part in held.items()})
    read: Any = {"set": frozenset, "mapping": dict, "array": np.array}[tag]
    return read(_decoded(held, read_marginals))


def release_fields(content: Mapping[str, Any], read_marginals) -> dict[str, Any]:
    """The fields of a release from the content of its receipt.

    Parameters
    ----------
    content : mapping
    read_marginals : callable
        From measured moments as they stand in a receipt to marginals.
    """
    return {
        "graph": _graph(content["graph"], content["certainty"]),
        "ledger": _ledger(content),
        "guarantee": content["guarantee"]["status"],
        "seconds": None,
        "terms": _terms(content),
        "answers": content["search"] and _answers(content),
        **{name: _decoded(part, read_marginals) for name, part in content["released"].items()},
    }


def _answers(content) -> Answers:
    pairs = {frozenset(entry["pair"]): entry for entry in content["pairs"]}
    return Answers(
        {p: tuple(e["separating_set"]) for p, e in pairs.items() if "separating_set" in e},
        frozenset(pair for pair, entry in pairs.items() if not entry["tested"]),
        **content["search"],
    )


def _graph(content, certainty) -> CPDAG:
    names = content["variables"]
    arcs = np.zeros((len(names), len(names)), bool)
    both = [ends[::-1] for ends in content["undirected"]]
    for start, end in (*content["directed"], *content["undirected"], *both):
        arcs[names.index(start), names.index(end)] = True
    return CPDAG(names, arcs, certainty and _written_certainty(certainty))


def _written_certainty(content) -> Certainty:
    edges = {frozenset(pair): probability for *pair, probability in content["edges"]}
    arrows = {(start, end): probability for start, end, probability in content["arrows"]}
    return Certainty(edges, arrows, content["caution"])


def _ledger(content) -> Ledger:
    ledger, promise = content["ledger"], content["guarantee"]
    terms = (promise[name] for name in ("epsilon", "delta", "rows_per_person"))
    used = (math.inf if number is None else number for number in ledger["used"].values())
    return Ledger(
        tuple(map(_read_event, ledger["events"])),
        Spent(*used),
        promise["epsilon"] and Budget(*terms),
        ledger["accountant"],
        promise.get("whole_run", ""),
    )


def _read_event(content) -> Event:
    values = {k: v for k, v in content.items() if k not in ("kind", "neighbours")}
    return EVENTS[content["kind"]](**values, neighbours=Neighbours[content["neighbours"]])


def _terms(content) -> Terms:
    return Terms(
        noise=content["noise"],
        n=content["data"]["n"],
        domain={name: tuple(levels) for name, levels in content["data"]["domain"].items()},
        system=content["made_by"]["system"],
        theorems=tuple(content["guarantee"]["theorems"]),
        rows_per_person=content["guarantee"]["rows_per_person"],
        settings={name: _decoded(part) for name, part in content["settings"].items()},
        rules=content["data"].get("rules", {}),
        versions=content["made_by"]["versions"],
        account_entry=content.get("account_entry", ""),
    )
