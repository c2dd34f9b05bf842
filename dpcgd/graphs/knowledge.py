"""What is known about the arcs before the data is seen."""

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, product

import networkx as nx
import numpy as np

from dpcgd.privacy.run import RunKeywords

__all__ = ["Knowledge", "SearchKeywords"]

NO_GROUPS = (str, bytes, dict)
"""Iterables that are not taken for groups of names."""


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
        for field in ("forbidden", "required"):
            cure = f"give a list of pairs (cause, effect), as in {field}=[('smoke', 'lung')]"
            kinds = (tuple, list, np.ndarray)
            arcs = _groups_of_names(field, getattr(self, field), kinds, cure, length=2)
            object.__setattr__(self, field, arcs)
        cure = "give a list of lists of names, as in tiers=[['age'], ['smoke', 'lung']]"
        object.__setattr__(self, "tiers", _groups_of_names("tiers", self.tiers, Iterable, cure))
        for earlier, later in combinations(self.tiers, 2):
            for name in {*earlier} & {*later}:
                raise ValueError(f"{name!r} is in the tiers twice; name each variable once")
        for cause, effect in sorted({*self.required} & {*self.forbidden, *self._backwards()}):
            cure = "drop one, or a tier"
            raise ValueError(f"{cause} -> {effect} is both forbidden and required; {cure}")
        if self.required and not nx.is_directed_acyclic_graph(nx.DiGraph(self.required)):
            raise ValueError("the required arcs form a cycle; take one of them out")

    def arrays(self, variables: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """(forbidden, required) as boolean arrays over these variables."""
        column = {name: i for i, name in enumerate(variables)}
        for name in chain(*self.forbidden, *self.required, *self.tiers):
            if name not in column:
                near = difflib.get_close_matches(name, variables, n=1) or list(variables)
                raise ValueError(f"no variable is called {name!r}; did you mean {near[0]!r}?")
        forbidden, required = np.zeros((2, len(variables), len(variables)), bool)
        for cause, effect in (*self.forbidden, *self._backwards()):
            forbidden[column[cause], column[effect]] = True
        for cause, effect in self.required:
            required[column[cause], column[effect]] = True
        return forbidden | required.T, required

    def _backwards(self) -> Iterator[tuple[str, str]]:
        """Arcs from a later tier to an earlier one."""
        for earlier, later in combinations(self.tiers, 2):
            yield from product(later, earlier)


class SearchKeywords(RunKeywords, total=False):
    """The keywords of a private system that honours knowledge."""

    knowledge: Knowledge | None


def _groups_of_names(field, groups, kinds, cure, length=None) -> tuple[tuple[str, ...], ...]:
    """Groups of different names as tuples; each group must be of one of these kinds."""
    if not isinstance(groups, Iterable) or isinstance(groups, NO_GROUPS):
        raise ValueError(f"{field} cannot be {groups!r}; {cure}")
    checked = []
    for group in groups:
        is_group = isinstance(group, kinds) and not isinstance(group, NO_GROUPS)
        names = tuple(group) if is_group else (None,)
        are_names = all(isinstance(name, str) for name in names) and len({*names}) == len(names)
        if not are_names or length not in (None, len(names)):
            raise ValueError(f"{field} holds {group!r}, which are no different names; {cure}")
        checked.append(names)
    return tuple(checked)
