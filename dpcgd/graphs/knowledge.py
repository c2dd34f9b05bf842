"""Background knowledge about arcs, from before the data are seen."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, product

import networkx as nx
import numpy as np

from dpcgd.datasets.arguments import check_called, is_whole
from dpcgd.privacy.run import RunKeywords

__all__ = ["Knowledge", "SearchKeywords"]

NO_GROUPS = (str, bytes, dict)
"""Iterables that do not count as groups of names."""


@dataclass(frozen=True)
class Knowledge:
    """Background knowledge about the causal graph, fixed before the data are seen.

    Parameters
    ----------
    forbidden : iterable of (cause, effect)
        Impossible arcs. A pair that is forbidden in both directions is never tested.
    required : iterable of (cause, effect)
        Certain arcs. Their pairs are never tested either.
    tiers : iterable of iterable of str
        Groups of variables, earlier ones first: no arc leads from a later tier to an earlier one.
        Within a tier, and for variables in no tier, nothing is known. All pairs are still tested.
    rest : int, optional
        Number of the tier of all variables that no tier names, as an index of Python: 0 is the
        first tier, -1 the last. That tier may be empty, as in ``tiers=[["age"], []]``.
    without_causes : iterable of str
        Variables without incoming arcs. There is no arc between two of them.

    Raises
    ------
    ValueError
        If an argument is not a list of pairs of names, or a tier is not a list of names. If an arc
        joins a variable to itself, or is both forbidden and required. If the required arcs form a
        cycle, or one leads to an earlier tier or to a variable without causes. If a variable is in
        two tiers, or `rest` is not the number of a tier.

    Examples
    --------
    >>> Knowledge(required=[("smoke", "lung")], forbidden=[("lung", "asia")]).required
    (('smoke', 'lung'),)
    >>> Knowledge(tiers=[["asia", "smoke"], ["lung"]]).tiers
    (('asia', 'smoke'), ('lung',))
    >>> known = Knowledge(tiers=[["age"], []], rest=-1, without_causes=["sex"])
    >>> forbidden, _ = known.arrays(("age", "sex", "cough"))
    >>> forbidden.astype(int).tolist()  # no arc from the cough to age, none to sex
    [[0, 1, 0], [1, 0, 0], [1, 1, 0]]
    """

    forbidden: Iterable[tuple[str, str]] = ()
    required: Iterable[tuple[str, str]] = ()
    tiers: Iterable[Iterable[str]] = ()
    rest: int | None = None
    without_causes: Iterable[str] = ()

    def __post_init__(self):
        for field in ("forbidden", "required"):
            cure = f"give a list of pairs (cause, effect), as in {field}=[('smoke', 'lung')]"
            kinds = (tuple, list, np.ndarray)
            arcs = _groups_of_names(field, getattr(self, field), kinds, cure, length=2)
            object.__setattr__(self, field, arcs)
        cure = "give a list of lists of names, as in tiers=[['age'], ['smoke', 'lung']]"
        object.__setattr__(self, "tiers", _groups_of_names("tiers", self.tiers, Iterable, cure))
        for earlier, later in combinations(self.tiers, 2):
            for name in (name for name in earlier if name in later):
                raise ValueError(f"{name!r} is in the tiers twice; name each variable once")
        cure = "give a list of names, as in without_causes=['age']"
        (names,) = _groups_of_names("without_causes", [self.without_causes], Iterable, cure)
        object.__setattr__(self, "without_causes", names)
        many = len([*self.tiers])
        if self.rest is not None and not (is_whole(self.rest) and -many <= self.rest < many):
            number = "the number of a tier, from 0, or -1 for the last"
            raise ValueError(f"rest must be {number}, not {self.rest!r}; there are {many} tiers")
        named = {*chain(*self.forbidden, *self.required, *self.tiers, names)}
        for cause, effect in sorted({*self.required} & {*self._forbidden(named)}):
            cure = "drop one, or a tier"
            raise ValueError(f"{cause} -> {effect} is both forbidden and required; {cure}")
        if self.required and not nx.is_directed_acyclic_graph(nx.DiGraph(self.required)):
            raise ValueError("the required arcs form a cycle; take one of them out")

    def arrays(self, variables: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Forbidden and required arcs as boolean arrays of shape (d, d); a -> b is at [a, b].

        The reverse of a required arc is among the forbidden ones.

        Raises
        ------
        ValueError
            If the knowledge names a variable that is not among these.
        """
        column = {name: i for i, name in enumerate(variables)}
        for name in chain(*self.forbidden, *self.required, *self.tiers, self.without_causes):
            check_called(name, variables)
        forbidden, required = np.zeros((2, len(variables), len(variables)), bool)
        for cause, effect in self._forbidden(variables):
            forbidden[column[cause], column[effect]] = True
        for cause, effect in self.required:
            required[column[cause], column[effect]] = True
        return forbidden | required.T, required

    def _forbidden(self, variables: Collection[str]) -> Iterator[tuple[str, str]]:
        """All impossible arcs among these variables, by any of the arguments."""
        yield from self.forbidden
        yield from ((v, name) for v, name in product(variables, self.without_causes) if v != name)
        tiers = [*map(list, self.tiers)]
        if self.rest is not None:
            tiers[self.rest] += sorted({*variables}.difference(*tiers))
        for earlier, later in combinations(tiers, 2):
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
