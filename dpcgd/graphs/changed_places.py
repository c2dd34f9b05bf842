"""Pairs that tests separated although not all of them can be apart."""

from collections.abc import Mapping

__all__ = ["changed_places"]


def changed_places(
    separating_sets: Mapping[frozenset[str], tuple[str, ...]],
) -> dict[str, list[frozenset[str]]]:
    """Find variables that each of two others separates from the other one.

    Suppose that y is independent of x given z (and others), and of z given x (and these others).
    Then y depends on neither x nor z. But a test found before that y depends on both. Copies x and
    z make tests say this, because given one of them the other is constant. Noise makes tests say it
    where dependence is weak.

    Parameters
    ----------
    separating_sets : mapping
        From each pair that a search separated to the set that separated it.

    Returns
    -------
    dict
        From each y to its pairs of x and z, sorted.

    Privacy
    -------
    It is post-processing of a release.

    Examples
    --------
    >>> apart = {frozenset("xy"): ("z",), frozenset("yz"): ("x",)}
    >>> [(y, [sorted(pair) for pair in pairs]) for y, pairs in changed_places(apart).items()]
    [('y', [['x', 'z']])]
    """
    changed: dict[str, set[frozenset[str]]] = {}
    for pair, given in separating_sets.items():
        for z in given:
            for x in pair:
                (y,) = pair - {x}
                reverse = separating_sets.get(frozenset((y, z)), ())
                if x in reverse and {*reverse} - {x} == {*given} - {z}:
                    changed.setdefault(y, set()).add(frozenset((x, z)))
    return {y: sorted(changed[y], key=sorted) for y in sorted(changed)}
