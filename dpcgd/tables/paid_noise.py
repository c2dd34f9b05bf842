"""Whether the noise in a release is what its ledger paid for."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from itertools import combinations, product
from typing import Any

from dpcgd.graphs.release import Release
from dpcgd.moments.clipped_moments import ClippedMoments, level_vectors, longest_kept
from dpcgd.moments.interactions import (
    Marginals,
    Subset,
    interaction_sensitivity,
    pairs_sensitivity,
    triples_sensitivity,
)
from dpcgd.moments.joined_levels import MOST_LEVELS
from dpcgd.moments.noisy_table import NoisyTable
from dpcgd.privacy.events import GaussianEvent, PureEvent
from dpcgd.privacy.run import Terms
from dpcgd.reading.release import MarginalRelease
from dpcgd.tables.table_pc import LOOKS

__all__ = ["check_noise"]

ROUNDING = 1e-9
"""Two ways of computing a deviation may differ by this share of it."""

SEARCHES = ("curate_pc", "em_pc", "laplace_pc", "priv_pc", "svt_pc")
"""These systems ask test by test, and pay for each."""

UNANSWERED = ("known", "not testable", "not reached")
"""No mechanism was asked about a pair of such a status."""

TABLE = 2.0
"""Two tables are so far apart, in L1 norm, when one record has been replaced."""


def check_noise(release: Release) -> None:
    """Refuse a release with a number in it whose noise its ledger did not pay for.

    Raises
    ------
    ValueError
        If a deviation, times the records and over the noise multiplier, is not the sensitivity that
        follows from public levels; if the ledger lacks a mechanism or has one that gave nothing; or
        if a search has more answers than mechanisms.
    """
    checks: dict[str, Callable[[Any], None]] = {
        "dag_posterior": _check_table,
        "graph_from_moments": _check_moments,
        "table_pc": _check_looks,
    }
    checks.get(release.terms.system, _check_answers)(release)


def _check_table(result: MarginalRelease) -> None:
    events, table = result.ledger.events, result.marginals
    if not isinstance(table, NoisyTable):
        raise ValueError("its system releases a whole table, and this holds none")
    if table.counts.shape != tuple(map(len, result.terms.domain.values())):
        raise ValueError("the released table has other levels than the domain")
    if len(events) != 1 or not isinstance(events[0], PureEvent):
        raise ValueError(f"one table was released, and the ledger holds {len(events)} mechanisms")
    _check_equal("the table", table.scale, TABLE / events[0].epsilon)


def _check_moments(result: MarginalRelease) -> None:
    domain = result.terms.domain.items()
    if set(result.joined_levels) != {name for name, old in domain if len(old) > MOST_LEVELS}:
        raise ValueError("other variables have joined levels than those with too many")
    released, paid = result.marginals, _paid(result)
    if isinstance(released, ClippedMoments):
        _check_sets(released, [1])
        apart = math.hypot(*(_distance(released, (v,)) for v in range(len(released.levels))))
        _check_together(released, [1], apart, paid)
        _check_clipped(released, paid)
    else:
        triples = any(len(subset) == 3 for subset in released.released)
        _check_sets(released, [1, 2, 3] if triples else [1, 2])
        _check_together(released, [1, 2], pairs_sensitivity(released.levels), paid)
        if triples:
            _check_together(released, [3], triples_sensitivity(released.levels), paid)
    if paid:
        raise ValueError(f"{len(paid)} mechanisms of the ledger gave nothing that was released")


def _check_looks(result: MarginalRelease) -> None:
    """Pairs first, then triples one by one, and in between looks at some pairs once more."""
    released, paid = result.marginals, _paid(result)
    _check_sets(released, [1, 2], or_more=True)
    _check_together(released, [1], pairs_sensitivity(released.levels), paid)
    _check_again(released, _without_triples(released, paid))


def _paid(result: Any) -> list[float]:
    """The noise multipliers in the ledger, but for that of the look that joined levels."""
    domain, levels = result.terms.domain, result.levels
    for name, old in domain.items():
        became = result.joined_levels.get(name, dict(zip(old, old, strict=True)))
        if set(became) != set(old) or set(became.values()) != set(levels.get(name, ())):
            raise ValueError(f"{name} has other levels than those that its own were joined to")
    if tuple(map(len, levels.values())) != result.marginals.levels or len(levels) != len(domain):
        raise ValueError("the released moments have other levels than the release")
    if result.marginals.n != result.terms.n:
        raise ValueError("the released moments are of another number of records")
    if not all(isinstance(event, GaussianEvent) for event in result.ledger.events):
        raise ValueError("moments have Gaussian noise, and the ledger holds another mechanism")
    paid = [event.noise_multiplier for event in result.ledger.events]
    if result.joined_levels:
        _next(paid)
    return paid


def _next(paid: list[float]) -> float:
    if not paid:
        raise ValueError("the ledger lacks a mechanism for what was released")
    return paid.pop(0)


def _check_sets(marginals: Marginals, sizes: Sequence[int], *, or_more: bool = False) -> None:
    everyone = range(len(marginals.levels))
    wanted = {subset for size in (0, *sizes) for subset in combinations(everyone, size)}
    if not wanted <= set(marginals.released) or not (or_more or wanted == set(marginals.released)):
        raise ValueError("other moments were released than are measured together")


def _check_together(
    marginals: Marginals, sizes: Sequence[int], distance: float, paid: list[float]
) -> None:
    """All sets of these sizes have the noise of one mechanism."""
    multiplier = _next(paid) if distance else 0.0
    for subset, moment in marginals.released.items():
        if len(subset) in sizes:
            _check_equal(subset, moment.deviation * marginals.n, multiplier * distance)


def _check_clipped(marginals: ClippedMoments, paid: list[float]) -> None:
    """The bound follows from the first look, and two clipped records are its square apart."""
    multiplier, bound = 0.0, 0.0
    if max(marginals.levels) > 1:
        multiplier = _next(paid)
        singles = Marginals(marginals.n, marginals.levels, marginals.released)
        bound = longest_kept(singles, level_vectors(singles), multiplier)
    _check_equal("the clipped moments", marginals.deviation * marginals.n, multiplier * bound**2)


def _without_triples(marginals: Marginals, paid: Sequence[float]) -> list[float]:
    """The multipliers that are left once every triple, in turn, has taken its own."""
    left, triples = [], [subset for subset in marginals.released if len(subset) > 2]
    wanted = {subset: _distance(marginals, subset) for subset in triples}
    for multiplier in paid:
        subset = next((part for part, distance in wanted.items() if distance), None)
        if subset and _agree(
            marginals.released[subset].deviation * marginals.n, multiplier * wanted[subset]
        ):
            del wanted[subset]
        else:
            left.append(multiplier)
    for subset, distance in wanted.items():
        if distance or marginals.released[subset].deviation:
            raise ValueError(f"the ledger paid for no noise like that of {subset}")
    return left


def _check_again(marginals: Marginals, looks: Sequence[float]) -> None:
    """Some pairs were seen again: their noise is that of all looks, weighed by precision."""
    first = marginals.released[0,].deviation * marginals.n
    again: dict[float, list[Subset]] = defaultdict(list)
    for subset, moment in marginals.released.items():
        if len(subset) == 2 and moment.deviation * marginals.n != first:
            again[moment.deviation * marginals.n].append(subset)
    if not (looks or again):
        return
    many = 2 ** len(looks)  # sets of looks, one a bit pattern
    fits = first > 0 and len(looks) <= len(LOOKS) and len(again) < many
    ways = product(range(1, many), repeat=len(again)) if fits else ()
    if not any(_explains(marginals, first, again, way, looks) for way in ways):
        raise ValueError(
            "pairs have other noise than the ledger paid for when they were seen again"
        )


def _explains(marginals, first, again, way, looks) -> bool:
    """Whether deviations follow if each group of pairs was seen by the looks whose bit it has."""
    precisions = dict.fromkeys(again, first**-2)
    for i, multiplier in enumerate(looks):
        seen = [deviation for deviation, bits in zip(again, way, strict=True) if bits >> i & 1]
        apart = [_distance(marginals, pair) for deviation in seen for pair in again[deviation]]
        distance = min(math.hypot(*apart), pairs_sensitivity(marginals.levels))
        if not distance:
            return False
        for deviation in seen:
            precisions[deviation] += (multiplier * distance) ** -2
    return all(_agree(deviation, precision**-0.5) for deviation, precision in precisions.items())


def _distance(marginals: Marginals, subset: Subset) -> float:
    """Of the interaction of these variables alone."""
    return interaction_sensitivity([marginals.levels[v] for v in subset])


def _check_equal(what: object, deviation: float, expected: float) -> None:
    if not _agree(deviation, expected):
        raise ValueError(
            f"the noise of {what} has deviation {deviation:g} in records, and the ledger paid for "
            f"{expected:g}"
        )


def _agree(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=ROUNDING)


def _check_answers(result: Release) -> None:
    """No search has more answers than it paid for, and no single measurement other mechanisms."""
    ran = Counter(event.mechanism for event in result.ledger.events)
    became = result.pair_status()
    answered = sum(status not in UNANSWERED for status in became.values())
    if result.terms.system in SEARCHES:
        if result.answers is None:
            raise ValueError(f"{result.terms.system} asks test by test, and no answers are there")
        separated = set(result.answers.separating_sets)
        if {pair for pair in became if became[pair] == "removed"} != separated:
            raise ValueError("other pairs were separated than those that are not joined")
        if missing := _least(result.terms, answered, len(separated)) - ran:
            mechanism, times = next(iter(missing.items()))
            raise ValueError(
                f"the ledger holds {mechanism} {ran[mechanism]} times, and the answers that were "
                f"released need it {ran[mechanism] + times} times"
            )
    if result.terms.system in ("gram_notears", "noleaks"):
        wanted = 1 + result.terms.settings.get("steps", 0)  # steps of the one alone
        if ran != {"Gaussian": wanted}:
            raise ValueError(f"the ledger holds {ran.total()} mechanisms, and {wanted} ran")
    if answered and not ran:
        raise ValueError(f"{answered} pairs were answered, and the ledger holds no mechanism")


def _least(terms: Terms, answered: int, separated: int) -> Counter[str]:
    """How often each mechanism ran at least in a search with so many answers."""
    some = min(answered, 1)
    choice = str(terms.settings.get("choose", "")).replace("_", " ")
    least = {
        "curate_pc": {"Laplace": answered},
        "em_pc": {choice: some + separated},
        "laplace_pc": {"Laplace": answered},
        "priv_pc": {"above threshold": max(some, separated), "Laplace": separated},
        "svt_pc": {"above threshold": max(some, separated)},
    }
    return Counter(least[terms.system])
