"""How likely each edge and each arrow of a graph is, where its system says so."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

__all__ = ["Certainty", "two_digits"]

NO_PAIR = "at this noise no pair stands out"

FEW_RIGHT = "most of the edges drawn are expected to be wrong"


@dataclass(frozen=True)
class Certainty:
    """Probabilities of the edges and arrows of a graph.

    Parameters
    ----------
    edges : mapping of frozenset to float
        From a pair of variables to the probability that an edge joins it. It may hold pairs that
        the graph does not join. A probability of 1 or 0 was fixed beforehand, by knowledge.
    arrows : mapping of tuple to float
        From (cause, effect) to the probability that the pair has an edge that points this way.
    caution : str, optional
        A reason to doubt these numbers, from public facts only.

    Raises
    ------
    ValueError
        If a number is no probability.

    Examples
    --------
    >>> weak = Certainty({frozenset("ab"): 0.2, frozenset("ac"): 0.1, frozenset("bc"): 0.1}, {})
    >>> weak.verdict(joined=[])
    'at this noise no pair stands out'
    """

    edges: Mapping[frozenset[str], float]
    arrows: Mapping[tuple[str, str], float]
    caution: str = ""

    def __post_init__(self):
        for name in ("edges", "arrows"):
            numbers = {key: float(number) for key, number in getattr(self, name).items()}
            if wrong := [number for number in numbers.values() if not 0 <= number <= 1]:
                raise ValueError(f"a probability lies between 0 and 1; {wrong[0]:g} does not")
            object.__setattr__(self, name, numbers)

    def verdict(self, joined: Collection[frozenset[str]]) -> str:
        """A plain word where a graph that joins these pairs tells little; else nothing.

        Pairs that were fixed beforehand do not count.
        """
        open_pairs = {pair: number for pair, number in self.edges.items() if number < 1}
        drawn = [open_pairs[pair] for pair in joined if pair in open_pairs]
        nothing = bool(open_pairs) and max(open_pairs.values()) < 0.5
        few = sum(drawn) < len(drawn) / 2
        return "; ".join([NO_PAIR] * nothing + [FEW_RIGHT] * few)

    def label(self, start: str, end: str, *, directed: bool, short: bool = False) -> str:
        """The probabilities of an edge as text; see :meth:`dpcgd.graphs.cpdag.CPDAG.label`."""
        edge = two_digits(self.edges[frozenset((start, end))])
        there, back = (two_digits(self.arrows[pair]) for pair in ((start, end), (end, start)))
        if short:
            return (f"{edge}/{there}" if directed else edge).replace("0.", ".")
        return f"edge {edge}, " + (f"arrow {there}" if directed else f"-> {there}, <- {back}")

    def check_covers(self, joined: Collection[frozenset[str]]) -> None:
        """Refuse a graph of which an edge, or one of its two arrows, has no probability."""
        for start, end in sorted(map(sorted, joined)):
            known = {(start, end), (end, start)} <= self.arrows.keys()
            if not (known and frozenset((start, end)) in self.edges):
                raise ValueError(
                    f"{start} and {end} are joined without a probability; give one to every edge, "
                    "and to its arrows both ways round"
                )


def two_digits(probability: float) -> str:
    """A probability in two digits, which shows 0 and 1 only where it is 0 or 1.

    Examples
    --------
    >>> [two_digits(p) for p in (0, 0.001, 0.874, 0.9999, 1)]
    ['0', '<0.01', '0.87', '>0.99', '1']
    """
    if probability in (0, 1):
        return f"{probability:g}"
    if probability < 0.005:
        return "<0.01"
    return f"{probability:.2f}" if probability < 0.995 else ">0.99"
