"""What is known about the arcs before the data is seen."""

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, product

import networkx as nx
import numpy as np

from dpcgd.privacy.run import RunKeywords

__all__ = ["Knowledge", "SearchKeywords"]


@dataclass(frozen=True)
class Knowledge:
    """What is known before looking at the data.

    Parameters
    ----------
    forbidden : iterable of (cause, effect)
        Arcs that cannot be. A pair forbidden both ways is never tested.
    required : iterable of (cause, effect)
        Arcs that must be. They are never tested either.
    tiers : iterable of iterable of str
        Groups of variables, earlier ones first: no arc leads from a later tier to an earlier one.
        Within a tier, and for variables that are in none, nothing is known. Pairs stay to be
        tested.

    Raises
    ------
    ValueError
        If something else than a list of pairs of names is given, an arc joins a variable to itself
        or is both forbidden and required, the required arcs form a cycle or one of them leads to an
        earlier tier, a tier is no list of names, or a variable is in two.

    Examples
    --------
    >>> Knowledge(required=[("smoke", "lung")], forbidden=[("lung", "asia")]).required
    (('smoke', 'lung'),)
    >>> Knowledge(tiers=[["asia", "smoke"], ["lung"]]).tiers
    (('asia', 'smoke'), ('lung',))
    """

    forbidden: Iterable[tuple[str, str]] = ()
    required: Iterable[tuple[str, str]] = ()
    tiers: Iterable[Iterable[str]] = ()

    def __post_init__(self):
        for name in ("forbidden", "required"):
            object.__setattr__(self, name, _check_arcs(name, getattr(self, name)))
        loops = [a for a, b in self.forbidden if a == b]
        if loops:
            raise ValueError(f"{loops[0]} -> {loops[0]} is no arc; take it out of forbidden")
        both = set(self.forbidden) & set(self.required)
        if both:
            a, b = sorted(both)[0]
            raise ValueError(f"{a} -> {b} is both forbidden and required; drop one of the two")
        if self.required and not nx.is_directed_acyclic_graph(nx.DiGraph(self.required)):
            raise ValueError("the required arcs form a cycle; take one of them out")
        object.__setattr__(self, "tiers", _check_tiers(self.tiers))
        back = set(self.required) & set(self._backwards())
        if back:
            a, b = sorted(back)[0]
            raise ValueError(
                f"{a} -> {b} is required and leads to an earlier tier; drop it, or move one of both"
            )

    def arrays(self, variables: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """(forbidden, required) as boolean arrays over these variables."""
        at = {name: i for i, name in enumerate(variables)}
        arrays = np.zeros((2, len(variables), len(variables)), bool)
        for name in chain(*self.forbidden, *self.required, *self.tiers):
            if name not in at:
                near = difflib.get_close_matches(str(name), variables, n=1) or list(variables)
                raise ValueError(f"no variable is called {name!r}; did you mean {near[0]!r}?")
        forbidden_arcs = (*self.forbidden, *self._backwards())
        for array, arcs in zip(arrays, (forbidden_arcs, self.required), strict=True):
            for a, b in arcs:
                array[at[a], at[b]] = True
        forbidden, required = arrays
        return forbidden | required.T, required

    def _backwards(self) -> Iterator[tuple[str, str]]:
        """Arcs from a later tier to an earlier one."""
        for earlier, later in combinations(self.tiers, 2):
            yield from product(later, earlier)


def _check_arcs(name, arcs) -> tuple[tuple[str, str], ...]:
    cure = f"give a list of pairs (cause, effect), as in {name}=[('smoke', 'lung')]"
    if not _is_list(arcs):
        raise ValueError(f"{name} must hold arcs, not be {arcs!r}; {cure}")
    arcs = tuple(arcs)
    for arc in arcs:
        if not _is_pair(arc):
            raise ValueError(f"{name} holds {arc!r}, which is no pair of names; {cure}")
    return tuple((a, b) for a, b in arcs)


class SearchKeywords(RunKeywords, total=False):
    """The keywords of a private system that honours knowledge."""

    knowledge: Knowledge | None


def _check_tiers(tiers) -> tuple[tuple[str, ...], ...]:
    cure = "give a list of lists of names, as in tiers=[['age'], ['smoke', 'lung']]"
    if not _is_list(tiers):
        raise ValueError(f"tiers must hold groups of variables, not be {tiers!r}; {cure}")
    tiers = tuple(tiers)
    for tier in tiers:
        if not _is_list(tier):
            raise ValueError(f"tiers holds {tier!r}, which is no list of names; {cure}")
    tiers = tuple(tuple(tier) for tier in tiers)
    names = [name for tier in tiers for name in tier]
    for name in names:
        if not isinstance(name, str):
            raise ValueError(f"tiers holds {name!r}, which is no name; {cure}")
        if names.count(name) > 1:
            raise ValueError(f"{name!r} is in the tiers twice; name each variable once")
    return tiers


def _is_list(groups) -> bool:
    return isinstance(groups, Iterable) and not isinstance(groups, (str, bytes, dict))


def _is_pair(arc) -> bool:
    listed = isinstance(arc, (tuple, list, np.ndarray))
    return listed and len(arc) == 2 and all(isinstance(name, str) for name in arc)
