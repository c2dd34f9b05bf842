"""Means and differences of the table of chapter 17, and the claims that are held against them."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from dpcgd_book.results.graph_scores import over_networks

__all__ = ["Difference", "Lookup", "filled_in"]


class Difference(NamedTuple):
    """A mean difference on the same records.

    Attributes
    ----------
    mean, error : float
        The error is a standard error.

    Examples
    --------
    >>> gain = Difference(0.1, 0.02)
    >>> f"{gain}", gain.clear
    ('+0.100 ± 0.020', True)
    """

    mean: float
    error: float

    @property
    def clear(self) -> bool:
        """Whether it is larger than two standard errors."""
        return self.mean > 2 * self.error

    def __str__(self):
        return f"{self.mean:+.3f} ± {self.error:.3f}"


@dataclass(frozen=True)
class Lookup:
    """What a chapter asks the table.

    Attributes
    ----------
    runs : DataFrame
        Runs, one a row, with refusals counted as empty graphs.
    cells : DataFrame
        Means of these runs, as ``benchmarks.score_table.cells_of`` has them.
    groups : mapping of str to sequence of str
        From the name of a group to its networks. The first one is meant where none is named.
    epsilon : float
        The one that is meant where none is named.
    n : int
        The number of records that is meant where none is named.
    """

    runs: pd.DataFrame
    cells: pd.DataFrame
    groups: Mapping[str, Sequence[str]]
    epsilon: float
    n: int

    def mean(self, system: str, epsilon=None, network="", score="F1", n=None) -> float:
        """A number of the table for a network or a group; not a number where there is none."""
        name = network or next(iter(self.groups))
        cell = (system, name, n or self.n, epsilon or self.epsilon)
        return float(self._by_cell[score].get(cell, math.nan))

    def means(self, systems: Iterable[str], *cell, **named) -> pd.Series:
        """The same for several systems, by name."""
        return pd.Series({system: self.mean(system, *cell, **named) for system in systems})

    @cached_property
    def _by_cell(self) -> pd.DataFrame:
        return self.cells.set_index(["system", "network", "n", "epsilon"]).sort_index()

    def difference(self, first, second, epsilon=None, network="", score="F1", n=None) -> Difference:
        """How far one system is above another on the same records; each network counts alike.

        The error is over runs; where a network has one run only, over networks.
        """
        name = network or next(iter(self.groups))
        here = self.runs[self.runs.network.isin(self.groups.get(name, [name]))]
        here = here[here.epsilon.isin([epsilon or self.epsilon, math.inf])]
        here = here[here.n == (n or self.n)]
        wide = here.pivot_table(index=["network", "run"], columns="system", values=score)
        wide = wide.reindex(columns=[first, second])
        by_network = (wide[first] - wide[second]).dropna().groupby("network")
        mean, error = over_networks(by_network)
        if not by_network.size().min() > 1:
            error = by_network.mean().sem()
        return Difference(float(mean), float(error))


def filled_in(part: str, **values: Any) -> Iterator[dict[str, str]]:
    """The claims of one part of ``claims.json``, with these values in their texts.

    Examples
    --------
    >>> values = {"verdict": {"ahead": "holds"}, "to_mst": "+0.1", "to_learned": "+0.2"}
    >>> next(filled_in("book", **values))["number"]
    'over MST +0.1, over graph_from_moments +0.2'
    """
    for row in json.loads(Path(__file__).with_name("claims.json").read_text())[part]:
        yield {key: text.format(**values) for key, text in row.items()}
