"""Pairs that tests have parted and that cannot all be apart: copies, or the work of noise."""

from collections.abc import Mapping

__all__ = ["changed_places"]


def changed_places(
    separating_sets: Mapping[frozenset[str], tuple[str, ...]],
) -> dict[str, list[frozenset[str]]]:
    """Variables that each of two others parts from the other one, and which two these are.

    If y were independent of x given z (and others), and of z given x (and these others), it would
    depend on neither of x and z. But a test found that it depends on both before. Of copies x and
    z, tests find it all the same: given either of them the other is constant. Noise finds it where
    dependence is weak.

    Parameters
    ----------
    separating_sets : mapping
        Of a search: from pairs to the set that separated them.

    Returns
    -------
    dict
        From y to the pairs of x and z; sorted.

    Privacy
    -------
    Post-processing of what a release holds.

    Examples
    --------
    >>> apart = {frozenset("xy"): ("z",), frozenset("yz"): ("x",)}
    >>> [(y, [sorted(pair) for pair in pairs]) for y, pairs in changed_places(apart).items()]
    [('y', [['x', 'z']])]
    """
    found: dict[str, set[frozenset[str]]] = {}
    for pair, given in separating_sets.items():
        for z in given:
            for x in pair:
                (y,) = pair - {x}
                turned = separating_sets.get(frozenset((y, z)))
                if turned is not None and {*turned} - {x} == {*given} - {z} and x in turned:
                    found.setdefault(y, set()).add(frozenset((x, z)))
    return {y: sorted(found[y], key=sorted) for y in sorted(found)}
