"""The release of a run, the same for all systems."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import combinations
from typing import Any

import numpy as np

from dpcgd.graphs.cpdag import CPDAG
from dpcgd.graphs.knowledge import Knowledge
from dpcgd.graphs.pc_search import Answers
from dpcgd.graphs.receipt import check_replaceable, content_of
from dpcgd.graphs.report import Page, write_report
from dpcgd.privacy import sealed_file
from dpcgd.privacy.filters import Ledger
from dpcgd.privacy.run import Terms

__all__ = ["Release"]


@dataclass(frozen=True, eq=False)
class Release:
    """The result of a run. A proved guarantee covers all fields except `seconds`.

    Attributes
    ----------
    graph : CPDAG
    ledger : Ledger
        The mechanisms that ran and their cost; ``ledger.budget`` is the promise.
    guarantee : str
        "proved", "claimed, not proved", or "none".
    seconds : float or None
        Wall time; None in a secure run, because it depends on the data and is not protected.
    terms : Terms
        The public terms, fixed beforehand; ``terms.kind`` is "release" only for a secure run.
    answers : Answers or None
        The answers of a search that tests pair by pair.
    reading : mapping or None
        The settings of the reading, if the graph was read again with other settings than the run's:
        see :func:`~dpcgd.reading.release.reread`.
    """

    graph: CPDAG
    ledger: Ledger
    guarantee: str
    seconds: float | None
    terms: Terms
    answers: Answers | None = None
    reading: Mapping[str, Any] | None = None

    def pair_status(self) -> Mapping[frozenset[str], str]:
        """The status of each pair of variables.

        Returns
        -------
        mapping of frozenset to str
            "confirmed": joined, and every test of the pair found dependence. "removed": a test
            separated it. "not testable": public facts allowed no test. "not reached": the budget
            ended before its first test. "known": knowledge decided without a test. For systems
            without tests, a pair is "likely" if the probability of its edge is at least 1/2, else
            "unlikely"; without probabilities it is "joined" or "apart".

        Privacy
        -------
        A function of what has been released.

        Examples
        --------
        >>> import numpy as np
        >>> from dpcgd import load, priv_pc
        >>> data = load("cancer", rng=np.random.default_rng(0))
        >>> release = priv_pc(data, epsilon=1.0, rng=np.random.default_rng(1))
        >>> release.pair_status()[frozenset(("Smoker", "Pollution"))]
        'removed'
        """
        names = self.graph.variables
        forbidden, required = self.knowledge.arrays(names)
        decided = np.argwhere(required | (forbidden & forbidden.T)).tolist()
        known = {frozenset((names[a], names[b])) for a, b in decided}
        pairs = map(frozenset, combinations(names, 2))
        status = {pair: "known" if pair in known else self._status(pair) for pair in pairs}
        if self.answers is not None and self.answers.stopped_early:
            asked_in_turn = [pair for pair in status if pair not in known]
            late = self.answers.untested.intersection(asked_in_turn[self.answers.tests :])
            status |= dict.fromkeys(late, "not reached")
        return status

    @property
    def knowledge(self) -> Knowledge:
        """The background knowledge of the run."""
        return (self.reading or self.terms.settings).get("knowledge") or Knowledge()

    def _status(self, pair: frozenset[str]) -> str:
        joined, answers = pair in self.graph.skeleton, self.answers
        if answers is not None:
            tested = "confirmed" if joined else "removed"
            return "not testable" if pair in answers.untested else tested
        if self.graph.certainty is not None:
            return "likely" if self.graph.certainty.edges[pair] >= 0.5 else "unlikely"
        return "joined" if joined else "apart"

    def save(self, path: str | os.PathLike) -> None:
        """Write a receipt: the whole release, its promise, and the ledger that kept the promise.

        Read it with :func:`~dpcgd.reading.release.read_release`, check it with
        :func:`~dpcgd.tables.check_receipt.check_receipt`.

        Parameters
        ----------
        path : path
            Path of a JSON file.

        Raises
        ------
        ValueError
            If the run was not private, an account or the receipt of another release is there, or
            the file cannot be written. No part of a file is left then. The receipt of a seeded run
            is no release: it is replaced without an error.

        Privacy
        -------
        It holds the release, public facts, and versions of packages, but no running time.
        """
        if self.guarantee == "none":
            raise ValueError("this run was not private, and only a private run has a receipt")
        text = sealed_file.sealed(content_of(self))
        check_replaceable(path, text)
        sealed_file.write_whole(path, text)

    def report(self, path: str | os.PathLike | None = None, *, effects: Any = ()) -> Page:
        """A page for a reviewer: the graph, the guarantee and its limits, how to cite.

        Parameters
        ----------
        path : path, optional
            Where to write it: HTML, or Markdown if it ends in ``.md``.
        effects : Effects, optional
            Results of :func:`~dpcgd.reading.effects.effects`, for a section of their own, or a
            function that computes them.

        Returns
        -------
        Page
            A text that a notebook shows as a page.

        Raises
        ------
        ValueError
            If the file cannot be written, or has another ending.

        Privacy
        -------
        As :meth:`save`.
        """
        return write_report(path, self, effects)

    def __eq__(self, other):
        """Whether both releases and their terms are equal; running times do not count."""
        if type(other) is not type(self):
            return NotImplemented
        names = (part.name for part in fields(self) if part.name != "seconds")
        return all(getattr(self, name) == getattr(other, name) for name in names)

    __hash__ = None  # type: ignore[assignment]  # it holds mappings

    def __repr__(self):
        graph, answers, rows = self.graph, self.answers, self.terms.rows_per_person
        promise = self.ledger.budget or self.ledger.spent
        unit = f" for a person of up to {rows} rows" if rows > 1 else ""
        edges = _number(len(graph.skeleton), "edges", graph.expected_right_edges)
        arrows = _number(len(graph.arrows), "directed", graph.expected_right_arrows)
        lines = [
            f"{type(self).__name__}({self.guarantee}: epsilon = {promise.epsilon:.4g} at "
            f"delta = {promise.delta:g}{unit})",
            self.terms.kind,
            f"{len(graph.variables)} variables, {edges}{self._never_tested()}, {arrows}",
        ]
        if answers is not None:
            lines.append(f"{answers.tests} tests" + ", stopped early" * answers.stopped_early)
        if self.reading:
            lines.append("read with " + ", ".join(f"{k} = {v}" for k, v in self.reading.items()))
        return "\n  ".join(lines + graph.remarks)

    def _never_tested(self) -> str:
        untested = self.answers.untested if self.answers is not None else frozenset()
        kept = len(untested & self.graph.skeleton)
        words = f", {kept} of them never tested" if kept else ""
        dropped = len(untested) - kept
        return words + (f" ({dropped} pairs left out, never tested)" if dropped else "")


def _number(number: int, what: str, right: float | None) -> str:
    expected = "" if right is None or not number else f" ({right:.1f} expected right)"
    return f"{number} {what}{expected}"
