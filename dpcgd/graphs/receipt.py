"""Receipts: a release as a file that a program and a person can read."""

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from typing import Any, get_args

import numpy as np

from dpcgd.graphs.cpdag import CPDAG, Certainty
from dpcgd.graphs.knowledge import Knowledge
from dpcgd.graphs.pc_search import Answers
from dpcgd.graphs.texts import in_words, not_protected, unit_of
from dpcgd.privacy.budget import Budget, Spent
from dpcgd.privacy.events import Event, Neighbours
from dpcgd.privacy.filters import Ledger
from dpcgd.privacy.run import Terms
from dpcgd.privacy.sealed_file import check_target, read_sealed

__all__ = ["check_replaceable", "content_of", "read_receipt", "release_fields"]

START = 4096
"""Number of bytes that are read to recognise a file: more than a receipt's first line needs."""

CALLED = "A causal graph by"
"""How the title of each report begins."""

TABLES_AND_PAGES = (".csv", ".tsv", ".gz", ".parquet", ".html", ".md")
"""Endings of files that are not replaced by something else."""

FORM = "dpcgd receipt 3"
"""Format of the receipts that are written and read."""

EVENTS = {kind.__name__: kind for kind in get_args(Event)}

DISTRIBUTIONS = {"exponential": "Gumbel", "permute and flip": "exponential"}
DISTRIBUTIONS |= dict.fromkeys(("above threshold", "distance test", "tested release"), "Laplace")
"""The noise that a mechanism draws, if its name does not say so."""

PLAIN = ("graph", "ledger", "guarantee", "seconds", "terms", "answers")
"""Fields of every release that have their own place in a receipt."""

LATER = (("rest", None), ("without_causes", ()))
"""Parts of knowledge that earlier receipts lack; later receipts hold them if they are not empty."""


def read_receipt(path: str | os.PathLike) -> dict[str, Any]:
    """The content of a receipt whose digest is right.

    Raises
    ------
    ValueError
        If there is no such file, or it was edited.
    """
    return read_sealed(path, FORM)


def check_replaceable(path: str | os.PathLike, text: str, read: Iterable[str] = ()) -> None:
    """Refuse to replace a receipt, an account, another table or page, or a file in use.

    A receipt of an experiment with seeded noise may be replaced.

    Parameters
    ----------
    path : path
    text : str
        What is to be written there.
    read : iterable of str
        Files that are in use.

    Raises
    ------
    ValueError
        If such a file is there, or no file can be written.
    """
    path, new = check_target(path), text.encode()
    if not path.exists():
        return
    with path.open("rb") as file:
        held = file.read(START)
        is_sealed = b'"format": "dpcgd ' in held[:99]
        held += file.read() if is_sealed else b""  # a table may be larger than the memory
    is_kept = is_sealed and held != new and b'"noise": "seeded"' not in held
    alike = CALLED.encode() in held if CALLED in text else held.split()[:1] == new.split()[:1]
    is_other = path.suffix in TABLES_AND_PAGES and held.strip() and not alike
    if is_kept or is_other or os.path.realpath(path) in map(os.path.realpath, read):
        raise ValueError(f"{path} holds something else, which would be lost; give another path")


def content_of(release: Any) -> dict[str, Any]:
    """The content of the receipt of a release, as JSON values."""
    graph, ledger, terms, answers = release.graph, release.ledger, release.terms, release.answers
    spent = ledger.spent._asdict().items()
    mechanisms = {event.mechanism for event in ledger.events}
    return {
        "format": FORM,
        "kind": terms.kind,
        "made_by": {"system": terms.system, "versions": dict(terms.versions)},
        "guarantee": {
            "status": release.guarantee,
            "epsilon": ledger.budget and ledger.budget.epsilon,
            "delta": ledger.budget and ledger.budget.delta,
            "neighbours": Neighbours.REPLACE_ONE.of(terms.rows_per_person),
            "unit": unit_of(terms),
            "rows_per_person": terms.rows_per_person,
            "theorems": list(terms.theorems),
            "whole_run": ledger.whole,
            "in_words": in_words(release.guarantee, ledger.budget, terms),
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
        "noise_distributions": sorted({DISTRIBUTIONS.get(name, name) for name in mechanisms}),
        "settings": {name: _encoded(value) for name, value in terms.settings.items()},
        "account_entry": terms.account_entry,
        "graph": {"variables": list(graph.variables), **graph.to_edge_lists()._asdict()},
        "certainty": graph.certainty and _certainty(graph),
        "pairs": [_pair(release, *entry) for entry in release.pair_status().items()],
        "search": answers and {"tests": answers.tests, "stopped_early": answers.stopped_early},
        "ledger": {
            "accountant": ledger.accountant,
            "used": {name: x if math.isfinite(x) else None for name, x in spent},  # JSON has no inf
            "events": [_event(event) for event in ledger.events],
        },
        "release": type(release).__name__,
        "released": {
            part.name: _encoded(getattr(release, part.name))
            for part in fields(release)
            if part.name not in PLAIN and getattr(release, part.name) is not None
        },
    }


def _pair(release, pair, status) -> dict[str, Any]:
    entry = {"pair": sorted(pair, key=release.graph.variables.index), "status": status}
    if release.answers is not None:
        entry["tested"] = pair not in release.answers.untested
        if pair in release.answers.separating_sets:
            entry["separating_set"] = list(release.answers.separating_sets[pair])
    return entry


def _certainty(graph) -> dict[str, Any]:
    """The probabilities of the edges in the order of the pairs, and of the arrows by their ends."""
    edges, arrows = graph.certainty.edges.items(), graph.certainty.arrows.items()
    return {
        "edges": [[*sorted(pair, key=graph.variables.index), p] for pair, p in edges],
        "arrows": [[*ends, p] for ends, p in arrows],
        "caution": graph.certainty.caution,
    }


def _event(event: Event) -> dict[str, Any]:
    return {"kind": type(event).__name__, **asdict(event), "neighbours": event.neighbours.name}


def _encoded(value: Any) -> Any:
    """A value in JSON, with tags for types that JSON lacks; other types cannot be written."""
    if isinstance(value, Mapping):
        return {"mapping": [[key, _encoded(part)] for key, part in value.items()]}
    if isinstance(value, Knowledge):
        said = vars(value).items()
        return {"knowledge": {name: part for name, part in said if (name, part) not in LATER}}
    return {"marginals": value.to_receipt()} if hasattr(value, "to_receipt") else value


def _decoded(value: Any, read_marginals: Any = None) -> Any:
    """The value that was encoded."""
    if isinstance(value, list):
        return tuple(map(_decoded, value))
    if not isinstance(value, dict):
        return value
    ((tag, held),) = value.items()
    if tag == "mapping":
        return dict(map(_decoded, held))
    return Knowledge(**held) if tag == "knowledge" else read_marginals(held)


def release_fields(content: Mapping[str, Any], read_marginals: Any) -> dict[str, Any]:
    """The fields of a release from the content of its receipt.

    Parameters
    ----------
    content : mapping
    read_marginals : callable
        Function from measured moments, as a receipt holds them, to marginals.
    """
    return {
        "graph": _graph(content["graph"], content["certainty"]),
        "ledger": _ledger(content["ledger"], content["guarantee"]),
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
    return CPDAG(names, arcs, certainty and _read_certainty(**certainty))


def _read_certainty(edges, arrows, caution) -> Certainty:
    pairs = {frozenset(pair): probability for *pair, probability in edges}
    return Certainty(pairs, {(start, end): p for start, end, p in arrows}, caution)


def _ledger(content, promise) -> Ledger:
    terms = (promise[name] for name in ("epsilon", "delta", "rows_per_person"))
    used = (math.inf if number is None else number for number in content["used"].values())
    return Ledger(
        tuple(_read_event(**event) for event in content["events"]),
        Spent(*used),
        promise["epsilon"] and Budget(*terms),
        content["accountant"],
        promise.get("whole_run", ""),
    )


def _read_event(kind, neighbours, **values) -> Event:
    return EVENTS[kind](neighbours=Neighbours[neighbours], **values)


def _terms(content) -> Terms:
    data, promise = content["data"], content["guarantee"]
    return Terms(
        noise=content["noise"],
        n=data["n"],
        domain={name: tuple(levels) for name, levels in data["domain"].items()},
        theorems=tuple(promise["theorems"]),
        rows_per_person=promise["rows_per_person"],
        settings={name: _decoded(part) for name, part in content["settings"].items()},
        rules=data.get("rules", {}),
        account_entry=content.get("account_entry", ""),
        **content["made_by"],
    )
