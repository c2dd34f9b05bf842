"""A check of a receipt by its reader: its parts must agree with each other and with the promise."""

import json
import math
import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np

from dpcgd.datasets.schema import Schema
from dpcgd.datasets.variable import PARTS, REFUSE
from dpcgd.graphs.check_ledger import Checked, check_ledger
from dpcgd.graphs.cpdag import CPDAG
from dpcgd.graphs.receipt import content_of, read_receipt
from dpcgd.graphs.release import Release
from dpcgd.moments.clipped_moments import Aim, ClippedMoments, level_vectors, longest_kept
from dpcgd.moments.entries import ENTRIES, entries_carried
from dpcgd.moments.interactions import SENSITIVITY, Marginals, NoisyTable, Subset, pairs_sensitivity
from dpcgd.moments.joined_levels import MOST_LEVELS
from dpcgd.moments.scores import look_sensitivity
from dpcgd.privacy.budget import BudgetSpent, kept_for_rounding
from dpcgd.privacy.events import GaussianEvent, PureEvent
from dpcgd.privacy.filters import BasicFilter, Filter, GaussianFilter, PureFilter
from dpcgd.privacy.run import Terms, domain_of, versions
from dpcgd.reading.release import MarginalRelease, read, read_release
from dpcgd.tables.table_pc import LOOKS

__all__ = ["check_noise", "check_receipt"]

THEOREMS = {
    "curate_pc": ("thm-curate-filter",),
    "dag_posterior": ("thm-whole-table",),
    "em_pc": ("thm-em-pc",),
    "gram_notears": ("thm-gram-notears", "thm-second-moments"),
    "laplace_pc": ("thm-laplace", "thm-filter"),
    "graph_from_moments": ("thm-learned-pc",),
    "noleaks": ("thm-noleaks",),
    "priv_pc": ("thm-priv-pc",),
    "svt_pc": ("thm-above-threshold", "thm-filter"),
    "table_pc": ("thm-table-pc",),
}
"""Labels of the theorems that every run of a system rests on, whatever it measured."""

UNANSWERED = ("known", "not testable", "not reached")
"""The statuses of pairs that no mechanism was asked about."""

ACCOUNTS: tuple[Any, ...] = (Filter, GaussianFilter, PureFilter, BasicFilter)
"""The kinds of accounts; every proved run is paid by one of them."""

ROUNDING = 1e-6
"""Allowed relative difference of used budgets between machines, from last digits of conversions."""

CLOSE = 0.01
"""Allowed difference between machines of a probability from random walks among graphs."""

ROUNDING_OF_NOISE = 1e-9
"""Allowed relative difference between two computations of a deviation."""


def check_receipt(path: str | os.PathLike) -> Checked:
    """Verify that a receipt is unchanged, and that its parts agree with each other.

    The ledger is added up with dp-accounting. The noise of every released number is compared with
    the sensitivity that follows from public levels and with the noise multiplier that was paid for.
    Words, theorems, levels and rules are computed again from other parts. A graph that was read
    from moments is read once more, by the reading that the receipt names, if this version of the
    package wrote it. That takes as long as the first time. Random walks among the graphs of a whole
    table may differ on another kind of processor; the message says so.

    Parameters
    ----------
    path : path
        The receipt that :meth:`~dpcgd.graphs.release.Release.save` wrote.

    Returns
    -------
    Checked
        The result of :func:`~dpcgd.graphs.check_ledger.check_ledger`, and whether the graph was
        read again.

    Raises
    ------
    ValueError
        If the file was changed, promises nothing, its ledger exceeds the promise, or one part of it
        contradicts another. The digest in the file is not a signature: it shows accidents and edits
        by hand, but whoever edits all parts with care can make a new one.
    ImportError
        If dp-accounting is not installed.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from dpcgd import load, private_graph
    >>> data = load("survey", rng=np.random.default_rng(0))
    >>> release = private_graph(data, epsilon=1.0, rng=np.random.default_rng(1))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     release.save(f"{folder}/receipt.json")
    ...     checked = check_receipt(f"{folder}/receipt.json")
    >>> checked.epsilon <= 1.0, checked.recomputed[0], checked.ours
    (True, 'prices of Laplace', ('sensitivities',))
    """
    release = read_release(path)
    try:
        checked = check_ledger(release.ledger)
        check_noise(release)
        _check_account(release)
        _check_terms(release)
        checked = checked._replace(reread=_check_reading(release))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    for part in _differences(json.loads(json.dumps(content_of(release))), read_receipt(path)):
        raise ValueError(f"{path}: {part} does not follow from the rest of the receipt")
    return checked


def _check_account(result: Release) -> None:
    """Pay for the ledger once more from an account of the same kind, and compare the totals."""
    ledger = result.ledger
    for kind in ACCOUNTS:
        account = kind(ledger.budget)
        account.keep(kept_for_rounding(result.terms.n))
        whole = account.ledger.whole if result.guarantee == "proved" else ""
        if (account.ledger.accountant, whole) == (ledger.accountant, ledger.whole):
            break
    else:
        raise ValueError(f"no account gives {ledger.accountant!r} with {ledger.whole!r}")
    try:
        account.spend(*ledger.events)
    except (BudgetSpent, TypeError) as error:
        raise ValueError(f"the ledger is more than its account pays for: {error}") from None
    paid, said = account.ledger.spent, ledger.spent
    if not np.allclose(paid, said, rtol=ROUNDING, atol=0):
        raise ValueError(f"{said} is said to have been used, and the ledger comes to {paid}")


def _differences(made: Any, read: Any, part: str = "") -> Iterator[str]:
    """The names of the parts in which two contents differ."""
    if isinstance(made, dict) and isinstance(read, dict) and made.keys() == read.keys():
        for key in made:
            yield from _differences(made[key], read[key], f"{part}.{key}" if part else key)
    elif made != read:
        yield part or "its list of parts"


def _check_reading(result: Release) -> bool:
    """Read the graph once more; False if a search made it, or another version read it."""
    system, settings = result.terms.system, result.terms.settings
    said = result.reading or {"precision": settings.get("precision")}
    read_from_moments = result.reading or system in ("dag_posterior", "graph_from_moments")
    if not read_from_moments or result.terms.versions.get("dpcgd") != versions().get("dpcgd"):
        return False
    graph = read(result, **said)
    numbers, others = map(_probabilities, (result.graph, graph))
    close = (math.isclose(p, others.get(key, 2), abs_tol=CLOSE) for key, p in numbers.items())
    if result.graph != graph or len(numbers) < len(others) or not all(close):
        raise ValueError("its reading gives another graph here; check it on the machine it is from")
    return True


def _probabilities(graph: CPDAG) -> dict:
    """The probabilities of edges and arrows of a graph."""
    return {**graph.certainty.edges, **graph.certainty.arrows} if graph.certainty else {}


def _check_terms(result: Release) -> None:
    terms = result.terms
    if tuple(terms.domain) != result.graph.variables:
        raise ValueError("the graph has other variables than the domain")
    if terms.noise == "secure" and "opendp" not in terms.versions:
        raise ValueError("its noise is said to be secure, and it names no version of OpenDP")
    if domain_of(Schema(terms.rules).levels) != dict(terms.domain):
        raise ValueError("the rules of the schema make other levels than the domain")
    wanted = sorted(_theorems(result))
    if terms.system in THEOREMS and sorted(terms.theorems) != wanted:
        raise ValueError(f"it names the theorems {sorted(terms.theorems)}, and rests on {wanted}")


def _theorems(result) -> set[str]:
    """The theorems behind what ran, by releases and settings; none if the guarantee is claimed."""
    terms = result.terms
    if result.guarantee != "proved":
        return set()
    wanted = set(THEOREMS.get(terms.system, ()))
    if terms.rows_per_person > 1:
        wanted.add("thm-rows-per-person")
    if terms.settings.get("rate", 1) != 1:
        wanted.add("thm-subsampling")
    if "choose" in terms.settings:
        wanted.add(f"thm-{terms.settings['choose'].replace('_', '-')}")
    if terms.system in ("graph_from_moments", "table_pc"):
        wanted |= set(result.marginals.theorems())
        if result.joined_levels:
            wanted.add("thm-joined-levels")
    return wanted


def check_noise(release: Release) -> None:
    """Refuse a release if its ledger did not pay for the noise of each of its numbers.

    Raises
    ------
    ValueError
        If the release is not of the kind that its system gives. If a deviation, times the records
        and over the noise multiplier, is not the sensitivity that follows from public levels. If
        the ledger lacks a mechanism, or has one that released nothing. If a search has more answers
        than mechanisms.
    """
    system = release.terms.system
    if isinstance(release, MarginalRelease) is not (system in CHECKS):
        raise ValueError(f"{system} gives no {type(release).__name__}")
    CHECKS.get(system, _check_answers)(release)


def _check_table(result: MarginalRelease) -> None:
    events, table = result.ledger.events, result.marginals
    if not isinstance(table, NoisyTable):
        raise ValueError("its system releases a whole table, and this holds none")
    if table.counts.shape != tuple(map(len, result.terms.domain.values())):
        raise ValueError("the released table has other levels than the domain")
    if len(events) != 1 or not isinstance(events[0], PureEvent):
        raise ValueError(f"one table was released, and the ledger holds {len(events)} mechanisms")
    _check_equal("the table", table.scale, SENSITIVITY / events[0].epsilon)


def _check_moments(result: MarginalRelease) -> None:
    released, paid = result.marginals, _paid(result)
    wide = {name for name, old in result.terms.domain.items() if len(old) > MOST_LEVELS}
    clipped = isinstance(released, ClippedMoments)
    if result.joined_levels and (clipped or set(result.joined_levels) != wide):
        raise ValueError("the variables with joined levels are not those with too many levels")
    if isinstance(released, ClippedMoments):
        _check_histograms(result)
        _check_entries(result)
        _check_sets(released, [1])
        _check_singles(released, paid)
        _check_clipped(released, paid, result.terms.settings.get("aim", "edges"))
    else:
        _check_sets(released, [1, 2])
        _check_together(released, [1, 2], pairs_sensitivity(released.levels), paid)
    if paid:
        raise ValueError(f"{len(paid)} mechanisms of the ledger measured nothing that was released")


def _check_looks(result: MarginalRelease) -> None:
    """Check the noise of pairs, of triples one by one, and of pairs that were measured again."""
    released, paid = result.marginals, _paid(result)
    _check_sets(released, [1, 2], or_more=True)
    _check_together(released, [1], pairs_sensitivity(released.levels), paid)
    _check_again(released, _without_triples(released, paid))


def _paid(result: Any) -> list[float]:
    """The noise multipliers in the ledger, without that of the counts that joined levels."""
    terms, levels = result.terms, result.levels
    categories = {v: own for v, own in terms.domain.items() if "range" not in terms.rules[v]}
    for name, old in categories.items():
        became = result.joined_levels.get(name, dict(zip(old, old, strict=True)))
        if set(became) != set(old) or set(became.values()) != set(levels.get(name, ())):
            raise ValueError(f"{name} has other levels than those that its levels were joined to")
    counted = [len(levels[name]) for name in categories]
    numbers = getattr(result.marginals, "numbers", {})
    measured = [own for v, own in enumerate(result.marginals.levels) if v not in numbers]
    ours = [v for v, name in enumerate(terms.domain) if name not in categories]
    if counted != measured or list(numbers) != ours or list(levels) != list(terms.domain):
        raise ValueError("the released moments have other levels than the release")
    if result.marginals.n != terms.n:
        raise ValueError("the released moments are of another number of records")
    if not all(isinstance(event, GaussianEvent) for event in result.ledger.events):
        raise ValueError("moments have Gaussian noise, and the ledger holds another mechanism")
    paid = [event.noise_multiplier for event in result.ledger.events]
    if result.joined_levels:
        _next(paid)
    return paid


def _check_histograms(result: Any) -> None:
    """Refuse a histogram unless its pieces are halves of halves, and its shares sum to one."""
    names = list(result.terms.domain)
    for v, own in result.marginals.numbers.items():
        widths = np.diff(own.starts, append=PARTS)
        covers = own.starts[0] == 0 < widths.min() and not (own.starts % widths).any()
        adds_up = (own.shares >= 0).all() and math.isclose(own.shares.sum(), 1)
        entries = ENTRIES + (result.terms.rules[names[v]]["missing"] != REFUSE)
        counted = (ENTRIES + len(own.missing), result.marginals.levels[v] - 1, len(own.shares))
        if not (covers and adds_up and counted == (entries, entries, len(widths))):
            raise ValueError(f"what was released of {names[v]} is no histogram of its range")


def _check_entries(result: Any) -> None:
    """Refuse categories whose entries do not follow from public facts and the budget."""
    account, terms = GaussianFilter(result.ledger.budget), result.terms
    account.keep(kept_for_rounding(terms.n))
    carried = entries_carried(Schema(terms.rules), terms.n, account.remaining)
    if result.marginals.entries != carried:
        raise ValueError("categories have other entries than the budget carries")


def _next(paid: list[float]) -> float:
    if not paid:
        raise ValueError("the ledger lacks a mechanism for what was released")
    return paid.pop(0)


def _check_sets(marginals: Marginals, sizes: Sequence[int], *, or_more: bool = False) -> None:
    everyone = range(len(marginals.levels))
    wanted = {subset for size in (0, *sizes) for subset in combinations(everyone, size)}
    if not wanted <= set(marginals.released) or not (or_more or wanted == set(marginals.released)):
        raise ValueError("the released moments are not those that are measured together")


def _check_together(
    marginals: Marginals, sizes: Sequence[int], distance: float, paid: list[float]
) -> None:
    """Check that all sets of these sizes have the noise of one mechanism."""
    multiplier = _next(paid) if distance else 0.0
    for subset, deviation in _deviations(marginals).items():
        if len(subset) in sizes:
            _check_equal(subset, deviation, multiplier * distance)


def _check_singles(marginals: ClippedMoments, paid: list[float]) -> None:
    """Check the noise of the counts of single variables, and of counts of pieces of numbers."""
    _check_together(marginals, [1], look_sensitivity(len(marginals.levels)), paid)
    depths = [number.depth for number in marginals.numbers.values()]
    for depth in range(1, max(depths, default=0)):
        deviation = _next(paid) * look_sensitivity(sum(own > depth for own in depths))
        _check_equal("counts of pieces", deviation, _deviations(marginals)[0,])


def _check_clipped(marginals: ClippedMoments, paid: list[float], aim: Aim) -> None:
    """Check the noise of clipped moments; their bound follows from single variables."""
    multiplier, bound = 0.0, 0.0
    if paid:  # nothing is measured if all vectors are zero
        multiplier = _next(paid)
        bound = longest_kept(marginals, level_vectors(marginals), multiplier, aim)
    _check_equal("the clipped moments", marginals.deviation * marginals.n, multiplier * bound**2)


def _without_triples(marginals: Marginals, paid: Sequence[float]) -> list[float]:
    """The multipliers that are left after every triple, in turn, has taken its own."""
    left, noise = [], _deviations(marginals)
    waiting = [s for s in noise if len(s) > 2 and (marginals.distance(s) or noise[s])]
    for multiplier in paid:
        if waiting and _agree(noise[waiting[0]], multiplier * marginals.distance(waiting[0])):
            waiting.pop(0)
        else:
            left.append(multiplier)
    if waiting:
        raise ValueError(f"the ledger paid for no noise like that of {waiting[0]}")
    return left


def _check_again(marginals: Marginals, looks: Sequence[float]) -> None:
    """Check pairs that were measured again: their noise is that of all measurements together."""
    noise, sharper = _deviations(marginals), defaultdict[float, list[Subset]](list)
    first = noise[0,]
    for subset, deviation in noise.items():
        if len(subset) == 2 and deviation != first:
            sharper[deviation].append(subset)
    if not (looks or sharper):
        return
    many = 2 ** len(looks)  # each bit pattern is a set of measurements
    fits = first > 0 and len(looks) <= len(LOOKS) and len(sharper) < many
    ways = product(range(1, many), repeat=len(sharper)) if fits else ()
    if not any(_explains(marginals, first, sharper, way, looks) for way in ways):
        raise ValueError("pairs that were measured again have noise that was not paid for")


def _explains(marginals, first, sharper, way, looks) -> bool:
    """Whether deviations follow if each group of pairs was in the measurements of its bits."""
    precisions = dict.fromkeys(sharper, first**-2)
    for i, multiplier in enumerate(looks):
        seen = [deviation for deviation, bits in zip(sharper, way, strict=True) if bits >> i & 1]
        apart = [marginals.distance(pair) for deviation in seen for pair in sharper[deviation]]
        distance = min(math.hypot(*apart), pairs_sensitivity(marginals.levels))
        if not distance:
            return False
        for deviation in seen:
            precisions[deviation] += (multiplier * distance) ** -2
    return all(_agree(deviation, precision**-0.5) for deviation, precision in precisions.items())


def _deviations(marginals: Marginals) -> dict[Subset, float]:
    """The deviation of the noise of each interaction, in records."""
    return {s: moment.deviation * marginals.n for s, moment in marginals.released.items()}


def _check_equal(what: object, deviation: float, expected: float) -> None:
    if not _agree(deviation, expected):
        has = f"has deviation {deviation:g} in records"
        raise ValueError(f"the noise of {what} {has}, and the ledger paid for {expected:g}")


def _agree(deviation: float, expected: float) -> bool:
    return math.isclose(deviation, expected, rel_tol=ROUNDING_OF_NOISE)


def _check_answers(result: Release) -> None:
    """Refuse a search with more answers than it paid for, and a measurement by other mechanisms."""
    ran = Counter(event.mechanism for event in result.ledger.events)
    became = result.pair_status()
    answered = sum(status not in UNANSWERED for status in became.values())
    removed = {pair for pair, status in became.items() if status == "removed"}
    least = _least(result.terms, answered, len(removed))
    if least is not None:
        if result.answers is None:
            raise ValueError(f"{result.terms.system} asks test by test, and no answers are there")
        if removed != set(result.answers.separating_sets):
            raise ValueError("the pairs with separating sets are not those without an edge")
        if missing := least - ran:
            mechanism, times = next(iter(missing.items()))
            raise ValueError(f"the ledger lacks {mechanism} {times} times for what was answered")
    if result.terms.system in ("gram_notears", "noleaks"):
        wanted = 1 + result.terms.settings.get("steps", 0)  # only noleaks has steps
        if ran != {"Gaussian": wanted}:
            raise ValueError(f"the ledger holds {ran.total()} mechanisms, and {wanted} ran")
    if answered and not ran:
        raise ValueError(f"{answered} pairs were answered, and the ledger holds no mechanism")


def _least(terms: Terms, answered: int, separated: int) -> Counter[str] | None:
    """The least runs of each mechanism in a search with so many answers; None for other systems.

    A search asks test by test, and pays for each test.
    """
    some = min(answered, 1)
    choice = str(terms.settings.get("choose", "")).replace("_", " ")
    least: dict[str, Counter[str]] = {
        "curate_pc": Counter({"Laplace": answered}),
        "em_pc": Counter({choice: some + separated}),
        "laplace_pc": Counter({"Laplace": answered}),
        "priv_pc": Counter({"above threshold": max(some, separated), "Laplace": separated}),
        "svt_pc": Counter({"above threshold": max(some, separated)}),
    }
    return least.get(terms.system)


CHECKS: dict[str, Any] = {
    "dag_posterior": _check_table,
    "graph_from_moments": _check_moments,
    "table_pc": _check_looks,
}
"""The check of the noise, for each system that releases moments."""
