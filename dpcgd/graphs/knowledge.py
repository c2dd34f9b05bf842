"""What is known about the arcs before the data is seen."""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np

__all__ = ["Knowledge"]


@dataclass(frozen=True)
class Knowledge:
    """What is known before looking at the data.

    Parameters
    ----------
    forbidden : iterable of (cause, effect)
        Arcs that cannot be. A pair forbidden both ways is never tested.
    required : iterable of (cause, effect)
        Arcs that must be. They are never tested either.

    Raises
    ------
    ValueError
        If something else than a list of pairs of names is given, an arc joins a variable to itself
        or is both forbidden and required, or the required arcs form a cycle.

    Examples
    --------
    >>> Knowledge(required=[("smoke", "lung")], forbidden=[("lung", "asia")]).required
    (('smoke', 'lung'),)
    """

    forbidden: Iterable[tuple[str, str]] = ()
    required: Iterable[tuple[str, str]] = ()

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

    def arrays(self, variables: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """(forbidden, required) as boolean arrays over these variables."""
        at = {name: i for i, name in enumerate(variables)}
        arrays = np.zeros((2, len(variables), len(variables)), bool)
        for array, arcs in zip(arrays, (self.forbidden, self.required), strict=True):
            for name in (name for arc in arcs for name in arc):
                if name not in at:
                    near = difflib.get_close_matches(str(name), variables, n=1) or list(variables)
                    raise ValueError(f"no variable is called {name!r}; did you mean {near[0]!r}?")
            for a, b in arcs:
                array[at[a], at[b]] = True
        forbidden, required = arrays
        return forbidden | required.T, required


def _check_arcs(name, arcs) -> tuple[tuple[str, str], ...]:
    cure = f"give a list of pairs (cause, effect), as in {name}=[('smoke', 'lung')]"
    if isinstance(arcs, (str, dict)) or not isinstance(arcs, Iterable):
        raise ValueError(f"{name} must hold arcs, not be {arcs!r}; {cure}")
    arcs = tuple(arcs)
    for arc in arcs:
        if not _is_pair(arc):
            raise ValueError(f"{name} holds {arc!r}, which is no pair of names; {cure}")
    return tuple((a, b) for a, b in arcs)


def _is_pair(arc) -> bool:
    listed = isinstance(arc, (tuple, list, np.ndarray))
    return listed and len(arc) == 2 and all(isinstance(name, str) for name in arc)
