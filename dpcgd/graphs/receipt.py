"""Receipts: a release as a file that a program and a person can read."""

import math
import os
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

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
from dpcgd.privacy.ledger import Ledger
from dpcgd.privacy.sealed_file import read_sealed, write_sealed
from dpcgd.privacy.terms import Terms

__all__ = [
    "content_of",
    "read_receipt",
    "release_fields",
    "write_receipt",
]

FORMS = ("dpcgd receipt 2", "dpcgd receipt 1")
"""Forms that are read; the first is written."""

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

PLAIN = ("graph", "ledger", "guarantee", "separating_sets", "untested", "tests", "stopped_early")
"""Fields of every release that a receipt shows by themselves, beside `seconds` and `terms`."""


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
    return read_sealed(path, *FORMS)


def content_of(of: Any, status: Mapping[frozenset[str], str]) -> dict[str, Any]:
    """What stands in the receipt of a release, as JSON holds it."""
    terms, ledger = of.terms, of.ledger
    return {
        "format": FORMS[0],
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
        "noise_distributions": sorted({_distribution(event) for event in ledger.events}),
        "settings": {name: _encoded(value) for name, value in terms.settings.items()},
        "account_entry": terms.account_entry,
        "graph": {"variables": list(of.graph.variables), **of.graph.to_edge_lists()._asdict()},
        "pairs": [_pair(of, pair, status) for pair in status],
        "tests": of.tests,
        "stopped_early": of.stopped_early,
        "ledger": {
            "accountant": ledger.accountant,
            "used": {name: _finite(of) for name, of in ledger.spent._asdict().items()},
            "events": [_event(event) for event in ledger.events],
        },
        "release": type(of).__name__,
        "released": {
            part.name: _encoded(getattr(of, part.name))
            for part in fields(of)
            if part.name not in (*PLAIN, "seconds", "terms")
        },
    }


def _distribution(event: Event) -> str:
    return DISTRIBUTIONS.get(event.mechanism, event.mechanism)


def _pair(of, pair, status) -> dict[str, Any]:
    found = {"pair": _in_order(of, pair), "status": status[pair], "tested": pair not in of.untested}
    if pair in of.separating_sets:
        found["separating_set"] = list(of.separating_sets[pair])
    return found


def _finite(value: float) -> float | None:
    """JSON has no infinity."""
    return value if math.isfinite(value) else None


def _in_order(of, pair) -> list[str]:
    return [name for name in of.graph.variables if name in pair]


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
    if hasattr(value, "released"):
        return {"marginals": _measured(value)}
    raise TypeError(f"a receipt has no way to write {value!r}; add one to _encoded")


def _measured(marginals) -> dict[str, Any]:
    clipped = {}
    if hasattr(marginals, "moments"):
        upper = [row[i:].tolist() for i, row in enumerate(marginals.moments)]
        clipped = {"clipped": {"moments": upper, "deviation": marginals.deviation}}
    return {
        "n": marginals.n,
        "levels": list(marginals.levels),
        "moments": [
            {"variables": list(subset), "values": values.tolist(), "deviation": deviation}
            for subset, (values, deviation) in marginals.released.items()
            if subset
        ],
        **clipped,
    }


def _decoded(value: Any, read_marginals) -> Any:
    """What was encoded."""
    if isinstance(value, list):
        return tuple(_decoded(part, read_marginals) for part in value)
    if not isinstance(value, dict):
        return value
    ((tag, held),) = value.items()
    if tag == "marginals":
        return read_marginals(held)
    if tag == "array":
        return np.array(held)
    if tag == "knowledge":
        return Knowledge(**{k: _decoded(part, read_marginals) for k, part in held.items()})
    parts = _decoded(held, read_marginals)
    return {"set": frozenset, "mapping": dict}[tag](parts)


def release_fields(content: Mapping[str, Any], read_marginals) -> dict[str, Any]:
    """The fields of a release from the content of its receipt.

    Parameters
    ----------
    content : mapping
    read_marginals : callable
        From measured moments as they stand in a receipt to marginals.
    """
    separated = {
        frozenset(pair["pair"]): tuple(pair["separating_set"])
        for pair in content["pairs"]
        if "separating_set" in pair
    }
    untested = [frozenset(pair["pair"]) for pair in content["pairs"] if not pair["tested"]]
    return {
        "graph": _graph(content["graph"]),
        "ledger": _ledger(content),
        "guarantee": content["guarantee"]["status"],
        "separating_sets": separated,
        "untested": frozenset(untested),
        "tests": content["tests"],
        "stopped_early": content["stopped_early"],
        "seconds": None,
        "terms": _terms(content, read_marginals),
        **{name: _decoded(v, read_marginals) for name, v in content["released"].items()},
    }


def _graph(content) -> CPDAG:
    at = {name: i for i, name in enumerate(content["variables"])}
    arcs = np.zeros((len(at), len(at)), bool)
    for a, b in content["directed"]:
        arcs[at[a], at[b]] = True
    for a, b in content["undirected"]:
        arcs[at[a], at[b]] = arcs[at[b], at[a]] = True
    return CPDAG(content["variables"], arcs)


def _ledger(content) -> Ledger:
    told, promise = content["ledger"], content["guarantee"]
    budget = promise["epsilon"] and Budget(
        promise["epsilon"], promise["delta"], promise["rows_per_person"]
    )
    used = (math.inf if of is None else of for of in told["used"].values())
    return Ledger(
        _events(content), Spent(*used), budget, told["accountant"], promise.get("whole_run", "")
    )


def _events(content) -> tuple[Event, ...]:
    return tuple(
        EVENTS[event["kind"]](
            **{k: v for k, v in event.items() if k not in ("kind", "neighbours")},
            neighbours=Neighbours[event["neighbours"]],
        )
        for event in content["ledger"]["events"]
    )


def _terms(content, read_marginals) -> Terms:
    return Terms(
        noise=content["noise"],
        n=content["data"]["n"],
        domain={name: tuple(of) for name, of in content["data"]["domain"].items()},
        system=content["made_by"]["system"],
        theorems=tuple(content["guarantee"]["theorems"]),
        rows_per_person=content["guarantee"]["rows_per_person"],
        settings={k: _decoded(v, read_marginals) for k, v in content["settings"].items()},
        rules=content["data"].get("rules", {}),
        versions=content["made_by"]["versions"],
        account_entry=content.get("account_entry", ""),
    )
