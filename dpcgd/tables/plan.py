"""A plan from public facts alone: what a run could find, and the epsilon that it needs for it."""

import math
import warnings
from bisect import bisect_left
from collections import ChainMap, Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, partial
from itertools import combinations, combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dpcgd.datasets.arguments import check_known, check_once, check_whole, is_real, refuses_weights
from dpcgd.datasets.progress import progress
from dpcgd.datasets.schema import Schema
from dpcgd.datasets.variable import PARTS, Parts, as_list
from dpcgd.graphs.release import Release
from dpcgd.moments.clipped_moments import blocks_of, rows_of
from dpcgd.moments.interactions import Marginals, covariance_of_contrasts
from dpcgd.moments.joined_levels import MOST_LEVELS
from dpcgd.moments.scores import ENTRIES
from dpcgd.privacy.account_file import unreserved
from dpcgd.privacy.budget import Budget, delta_for
from dpcgd.privacy.filters import rounded_up
from dpcgd.privacy.run import check_settings
from dpcgd.reading.reader import trained_reader
from dpcgd.tables import private_graph as measuring, table_pc as testing
from dpcgd.tables.detection import Detection
from dpcgd.tables.public_facts import Expected, refuse_data
from dpcgd.tables.rehearsal import Rehearsal, rehearse

__all__ = ["Plan", "PlannedPair", "epsilon_for", "plan"]

RELATED = 0.3
"""Assumed correlation of a conditioning variable with both variables of a test."""

Shares = tuple[float, ...]
"""Shares of the levels of a variable."""

HALVED = math.sqrt(2 / math.pi)
"""Correlation of a normal score with the half of its range that it lies in."""

NEVER = (math.nan, math.nan)
"""The result for a test that cannot be made: no correlation, and no difference in points."""

GRID = [float(f"{digits}e{power}") for power in range(-5, 1) for digits in range(100, 1000)]
"""Every epsilon of three digits from .001 to 999."""

STEP = 100
"""Length of the steps of the first, coarse search over the grid."""

NO_NOISE = 1e9
"""An epsilon so large that only settings are refused."""

FOR_AN_EDGE = "an edge needs 1.5 times as much, more with many levels or variables: rehearse it"
"""A result of simulations for systems that draw edges by a model (tests/tables/test_plan.py)."""

MORE_RECORDS = 1000
"""Factor on the number of records that shows whether more records would help."""


class NumberShares(tuple):
    """Shares of a number as a test sees it: a half, two quarters, and missing values if any.

    They equal the shares of no category, because numbers have other noise.
    """

    def __eq__(self, other):
        return type(other) is type(self) and super().__eq__(other)

    __hash__ = tuple.__hash__


class PlannedPair(NamedTuple):
    """The plan for two variables; :meth:`Plan.to_frame` explains each number."""

    correlation: float
    points: float
    partial_correlation: float
    partial_points: float
    testable: tuple[float, ...]


@dataclass(frozen=True)
class Plan:
    """What a run could find, and the noise of its release. Made by :func:`plan`.

    Attributes
    ----------
    schema : Schema
    n : int
    budget : Budget
    system : callable
    rules : Rules
        Rules of the tests: ``rules.alpha`` is their significance level.
    power : float
    shares : mapping of str to tuple of float
        The shares of the levels of each variable that the plan assumes; shares of the joined levels
        if a variable has more levels than a run keeps.
    marginals : Marginals
        What a run on independent variables with these shares would release; the noise of its
        numbers is that of the planned run.
    caution : str
        A reason why an edge model may be off for such a table, or an empty text.
    """

    schema: Schema
    n: int
    budget: Budget
    system: Callable[..., Release]
    rules: testing.Rules
    power: float
    shares: Mapping[str, Shares]
    marginals: Marginals
    caution: str

    @property
    def levels(self) -> Mapping[str, Sequence[str]]:
        """Levels of each variable."""
        return self.schema.levels

    @cached_property
    def deviation(self) -> float:
        """Deviation, in records, of the noise of a number about a pair, for the noisiest pair.

        Pairs that are measured again later have less noise.
        """
        kinds = dict.fromkeys(shares for shares in self.shares.values() if len(shares) > 1)
        pairs = combinations_with_replacement(kinds, 2)
        return max((self._pair_deviation(*pair) for pair in pairs), default=0.0)

    def testable(self, x: str, y: str, given: Collection[str] = ()) -> bool:
        """Whether the run can make the test of x and y given these variables.

        Parameters
        ----------
        x, y : str
        given : collection of str

        Raises
        ------
        ValueError
            If a name is not a variable of the table, or is given twice.
        """
        return self._may(*map(len, self._shares_of(x, y, given)))

    def smallest(self, x: str, y: str, given: Collection[str] = ()) -> float:
        """Smallest correlation of x and y that the test finds with the plan's probability.

        Parameters
        ----------
        x, y : str
        given : collection of str
            One other variable or none.

        Returns
        -------
        float
            Given another variable, the partial correlation. Not a number if the test is refused, or
            would not even find the largest possible correlation.

        Raises
        ------
        ValueError
            If a name is not a variable of the table, or is given twice, or `given` holds two.
        """
        return self._smallest(*self._shares_of(x, y, given, most=1))[0]

    def power_of(self, r: float, x: str, y: str, given: Collection[str] = ()) -> float:
        """Probability that the test of x and y given these finds a correlation of r.

        Parameters
        ----------
        r : float
        x, y, given
            As for :meth:`smallest`.

        Returns
        -------
        float
            0 if the test is refused.

        Raises
        ------
        ValueError
            As :meth:`smallest`, or if r is not between 0 and 1.
        """
        _check_between("r", r, 0, 1, zero=True)
        shares = self._shares_of(x, y, given, most=1)
        return self._detection(*shares).power(r) if self._may(*map(len, shares)) else 0.0

    @cached_property
    def pairs(self) -> dict[tuple[str, str], PlannedPair]:
        """The plan for each pair of variables."""
        planned = cache(self._planned)
        pairs = progress(combinations(self.shares, 2), "planning", math.comb(len(self.shares), 2))
        return {(x, y): planned(self.shares[x], self.shares[y]) for x, y in pairs}

    def to_frame(self) -> pd.DataFrame:
        """A row for each pair of variables.

        Returns
        -------
        pandas.DataFrame
            ``correlation``: the smallest that the test of the pair finds with the plan's
            probability. For a number it is that of its normal score; for two numbers it is the
            slope in deviations. ``points``: the same dependence as a difference between two groups
            of one variable in the share of a group of the other, in percentage points; the groups
            of a number are its halves. ``partial_correlation``, ``partial_points``: the same for
            the test given one more variable, the one that makes it least sensitive among those that
            can be tested. Missing if nothing can be tested or found. ``order_0`` to ``order_2``:
            the share of the tests of this order that can be made; missing if there is no such test.
        """
        rows = [(*pair, *planned) for pair, planned in self.pairs.items()]
        frame = pd.DataFrame(rows, columns=["x", "y", *PlannedPair._fields])
        return frame.join(pd.DataFrame(frame.pop("testable").tolist()).add_prefix("order_"))

    def rehearse(self, *, rng: np.random.Generator, **settings: Any) -> Rehearsal:
        """Run the planned system on random networks: :func:`~dpcgd.tables.rehearsal.rehearse`.

        Parameters
        ----------
        rng : numpy.random.Generator
        settings
            ``runs`` and ``public``; also ``allow_delta=True`` if the plan was made with it.
        """
        rules = self.rules._asdict() if self.system is testing.table_pc else {}
        settings |= rules | vars(self.budget)
        return rehearse(self.schema, self.n, rng=rng, system=self.system, **settings)

    def __repr__(self):
        frame, budget = self.to_frame(), self.budget
        given = ("none", "one", "two")[: self.rules.max_order + 1]
        means = {number: frame[f"order_{k}"].mean() for k, number in enumerate(given)}
        # of an order without sets the mean is no number
        shown = [f"{mean:.0%} given {number}" for number, mean in means.items() if mean >= 0]
        rows = f", {budget.rows_per_person} rows a person" * (budget.rows_per_person > 1)
        promise = f"epsilon = {budget.epsilon:g} at delta = {budget.delta:g}{rows}"
        lines = [
            f"Plan({self.system.__name__}: {promise})",
            f"  {self.n:,} records, {len(self.shares)} variables, {len(frame)} pairs",
            f"  tests that can be made: {', '.join(shown)}",
            f"  noise of a released number: a deviation of {self.deviation:.3g} records",
            f"  found by a test with probability {self.power:g}:",
            *(f"    {line}" for line in _found_in(frame)),
            *(f"  {line}" for line in (FOR_AN_EDGE * self._reads, self.caution) if line),
        ]
        return "\n".join(lines)

    @property
    def _reads(self) -> bool:
        """Whether an edge model reads the release, instead of tests."""
        return self.system is not testing.table_pc

    def _planned(self, *pair: Shares) -> PlannedPair:
        others = Counter(self.shares.values()) - Counter(pair)
        sizes = Counter(map(len, others.elements()))
        orders = range(self.rules.max_order + 1)
        testable = tuple(self._share_testable(pair, sizes, order) for order in orders)
        may = [third for third in others if self._may(*map(len, (*pair, third)))]
        given_one = [self._smallest(*pair, third) for third in may]
        missed = any(math.isnan(r) for r, _ in given_one)
        worst = max(given_one) if given_one and not missed else NEVER
        return PlannedPair(*self._smallest(*pair), *worst, testable)

    def _share_testable(self, pair, sizes: Counter, order: int) -> float:
        """Share of the conditioning sets of this size whose test can be made."""
        total = may = 0
        for kind in combinations_with_replacement(sorted(sizes), order):
            ways = math.prod(math.comb(sizes[size], n) for size, n in Counter(kind).items())
            total += ways
            may += ways if self._may(*map(len, pair), *kind) else 0
        return may / total if total else math.nan

    def _may(self, x: int, y: int, *given: int) -> bool:
        """Whether a test of variables with these numbers of levels is made."""
        noisy = not self._reads and testing.too_noisy((x, y), given, self.deviation / self.n)
        return len(given) <= self.rules.max_order and not noisy

    def _smallest(self, *shares: Shares) -> tuple[float, float]:
        """The smallest correlation that is found, and its difference in percentage points."""
        if not self._may(*map(len, shares)):
            return NEVER
        test = self._detection(*shares)
        r = test.smallest(self.power)
        return r, test.points(r) * HALVED ** sum(isinstance(s, NumberShares) for s in shares[:2])

    def _detection(self, *shares: Shares) -> Detection:
        groups = tuple(map(_together, shares))
        wider = [math.sqrt(len(own) / len(few)) for own, few in zip(shares, groups, strict=True)]
        pairs = combinations([s for s in zip(shares, wider, strict=True) if len(s[0]) > 1], 2)
        widest = max((self._pair_deviation(x, y) * a * b for (x, a), (y, b) in pairs), default=0.0)
        *_, alpha, effect, share = self.rules
        n = self.n
        if self._reads:  # what only more records would show is no edge to the model
            n, effect, share = min(n, int(trained_reader().trained["records"][1])), 0.0, 0.0
        levels = tuple(map(len, shares[:2]))
        return Detection(n, groups, widest / self.n, alpha, RELATED, effect, share, levels)

    def _pair_deviation(self, *pair: Shares) -> float:
        """Deviation, in records, of the noise of a moment of the first two with these shares."""
        numbered = [*enumerate(self.shares.values())]
        (x, *_), (*_, y) = ([v for v, own in numbered if own == kind][:2] for kind in pair)
        subset, marginals = tuple(sorted({x, y})), self.marginals
        if subset in marginals.released:
            return self.n * marginals.released[subset].deviation
        rows, wide, tested = rows_of(marginals.widths), 1.0, []
        for v in subset:
            (_, own), least = numbered[v], marginals.least_variance(v)
            start, stop = rows[v].start, rows[v].stop
            if isinstance(own, NumberShares):  # a test of its score, which varies most
                start, least = stop - 1, 0.0
            wide *= (1 / np.maximum(_variances(own), least)).mean()
            tested.append(slice(start, stop))
        return self.n * math.sqrt(blocks_of(marginals).noise[tuple(tested)].mean() / wide)

    def _shares_of(self, x, y, given, most: float = math.inf) -> list[Shares]:
        given = check_known("given", given, self.shares)
        if len(given) > most:
            raise ValueError(f"a plan has no power given {len(given)} variables; call testable")
        names = [*check_known("the test", (x, y), self.shares), *given]
        check_once(names, "the test names", "name each variable once")
        return [self.shares[name] for name in names]


@refuses_weights
def plan(
    levels: Any,
    n: int,
    *,
    epsilon: float,
    delta: float | None = None,
    allow_delta: bool = False,
    system: Callable[..., Release] = measuring.private_graph,
    alpha: float = testing.ALPHA,
    max_order: int = 2,
    power: float = 0.8,
    shares: Mapping[str, Collection[float]] | None = None,
    least_effect: float = testing.LEAST_EFFECT,
    least_share: float = testing.LEAST_SHARE,
    rows_per_person: int = 1,
) -> Plan:
    """Plan a run before any data is touched: its tests, what they would find, and its noise.

    Parameters
    ----------
    levels : Schema, mapping, str or path
        What :class:`~dpcgd.datasets.schema.Schema` takes.
    n : int
        Number of records.
    epsilon, delta, allow_delta, rows_per_person
        As for the system.
    system : callable
        A system that measures at once: :func:`~dpcgd.tables.private_graph.private_graph`, one of
        the two that it chooses from, or :func:`~dpcgd.tables.table_pc.table_pc`.
    alpha, max_order, least_effect, least_share
        Rules of the tests, as for :func:`~dpcgd.tables.table_pc.table_pc`. The other systems have
        no least effect; they treat tables of more than a million records as tables of a million.
    power : float
        The probability with which a test must find a dependence for it to count as found.
    shares : mapping of str to sequence of float, optional
        Public knowledge of how common the levels of some variables are, in any unit. The levels of
        other variables are taken to be equally common, which is too optimistic if they are not. A
        number that may be missing has two shares, known and missing; one quarter is missing by
        default.

    Returns
    -------
    Plan

    Raises
    ------
    ValueError
        If public facts are enough to refuse the run, in the same words; if data is given; or if
        another argument is invalid.

    Privacy
    -------
    It takes no data: whatever it tells is public, and costs nothing.

    Notes
    -----
    "Found" refers to one test on the release: of the pair, or given one more variable. A run of
    table_pc joins a pair if all its tests find it, and measures pairs in doubt again. The edge
    model of the other systems weighs a pair by all that was released. Simulated tables had one edge
    among up to 20 variables, with a correlation of at least .01. The model drew it about as often
    as the plan says, or more often, if the dependence was one and a half times as large between
    variables of two levels. Where one had more levels it took twice as much up to 5, two and a half
    times up to 30, four times with 100 and six times with 900. Among 40 variables the model drew it
    less often. :func:`~dpcgd.tables.rehearsal.rehearse` shows it for networks with more edges.
    Power is that of the chi-squared test to first order in the noise
    (:class:`~dpcgd.tables.detection.Detection`). It is right to a few hundredths. Given very rare
    levels at the most noise that can be tested, it is up to .1 too large. The test of a category of
    more than 16 levels, which only an edge model reads as it is, is that of 16 groups of
    neighbouring levels, with the noise and the degrees of freedom of all levels.

    Examples
    --------
    >>> levels = {"smoke": ["no", "yes"], "age": range(4), "cough": ["no", "yes"]}
    >>> planned = plan(levels, 50_000, epsilon=1.0)
    >>> planned
    Plan(private_graph: epsilon = 1 at delta = 1e-06)
      50,000 records, 3 variables, 3 pairs
      tests that can be made: 100% given none, 100% given one
      noise of a released number: a deviation of 5.66 records
      found by a test with probability 0.8:
        in a pair, correlations of 0.015 to 0.018 (1.5 to 1.8 points)
        given one more, correlations of 0.015 to 0.018 (1.5 to 1.8 points)
      an edge needs 1.5 times as much, more with many levels or variables: rehearse it
    >>> planned.testable("smoke", "cough", ["age"])
    True
    """
    refuse_data(levels)
    schema = Schema.of(levels)
    check_whole("n", n, 1)
    rules = testing.Rules(max_order, "drop", alpha, least_effect, least_share)
    check_settings(None, **rules._asdict())
    _check_between("power", power, alpha, 1)
    known = {} if shares is None else shares
    if not isinstance(known, Mapping):
        raise ValueError(f"shares must map variables to the shares of their levels, not {known!r}")
    check_known("shares", known, schema.variables)
    expected = {name: _expected(name, levels, known) for name, levels in schema.levels.items()}
    table = Expected(schema, n, _shares_of_codes(schema, expected))
    measured = _measure_as(system, table, rules)(
        table,
        epsilon=unreserved(epsilon),
        delta=delta,
        allow_delta=allow_delta,
        rows_per_person=rows_per_person,
        rng=np.random.default_rng(0),  # a run needs a source of noise
    )
    kept = {name: _joined(measured, name, own) for name, own in expected.items()}
    budget, marginals, caution = measured.run.account.budget, measured.marginals, measured.caution
    return Plan(schema, n, budget, system, rules, power, kept, marginals, caution)


def _measure_as(system, table: Expected, rules: testing.Rules) -> Callable[..., measuring.Measured]:
    """The function by which a system measures such a table."""
    name = getattr(system, "__name__", repr(system))
    if system is measuring.private_graph:
        system = measuring.system_for(table)
    if system is testing.table_pc:
        return partial(testing.measure_all_pairs, rules=rules)
    if system is measuring.dag_posterior:
        return measuring.measure_all_cells
    if system is measuring.graph_from_moments:
        return measuring.measure_for_edges
    problem = f"there is a plan for private_graph and table_pc, none for {name}"
    raise ValueError(f"{problem}; rehearse(..., system={name}) takes every system")


def _expected(name: str, levels: Sequence[str], known) -> Shares:
    """Shares of a variable: all levels alike, one quarter missing of a number, unless known."""
    if not isinstance(levels, Parts):
        return _normalized(name, levels, known.get(name, (1,) * len(levels)))
    named = ("not missing", *(() if levels.missing is None else (levels.missing,)))
    there, *missing = _normalized(name, named, known.get(name, (3, 1)[: len(named)]))
    return NumberShares((there / 2, there / 4, there / 4, *missing))


def _shares_of_codes(schema: Schema, expected: Mapping[str, Shares]) -> list[np.ndarray]:
    """Shares of the codes of each variable; a number is spread evenly over its range."""
    shares = {}
    for name, own in schema.levels.items():
        shares[name] = np.array(expected[name])
        if isinstance(own, Parts):
            there, missing = shares[name][: ENTRIES + 1].sum(), shares[name][ENTRIES + 1 :]
            shares[name] = np.append(np.full(PARTS, there / PARTS), missing)
    return [*shares.values()]


def _normalized(name, levels, shares) -> Shares:
    shares = as_list(name, shares, "shares")
    if len(shares) != len(levels):
        problem = f"variable {name!r} has {len(levels)} levels and {len(shares)} shares"
        cure = f"give each level one, in the order {', '.join(levels)}"
        raise ValueError(f"{problem}; {cure}")
    for share in shares:
        _check_between(f"each share of variable {name!r}", share, 0, math.inf)
    return tuple(share / sum(shares) for share in shares)


def _joined(measured: measuring.Measured, name: str, shares: Shares) -> Shares:
    """Shares of the levels that a variable keeps, if it has too many."""
    if name not in measured.joined_levels:
        return shares
    new = [measured.levels[name].index(level) for level in measured.joined_levels[name].values()]
    return tuple(np.bincount(new, shares).tolist())


def _check_between(name: str, value: Any, low: float, high: float, *, zero: bool = False) -> None:
    """Refuse a value that is not between two numbers, both excluded; `zero` allows 0."""
    if not is_real(value) or not (low < value < high or (zero and value == 0)):
        least = "at least 0" if zero else f"above {low:g}"
        raise ValueError(f"{name} must be {least} and below {high:g}, not {value!r}")


def _found_in(frame) -> Iterator[str]:
    """Lines about the smallest dependence that is found in the easiest and in the hardest pair."""
    columns = [("in a pair, ", "", "order_0"), ("given one more, ", "partial_", "order_1")]
    for where, kind, order in columns:
        smallest, points = frame[f"{kind}correlation"].dropna(), frame[f"{kind}points"].dropna()
        nothing = f", nothing in {len(frame) - len(smallest)}" * (len(smallest) < len(frame))
        if len(smallest):
            sizes = f"correlations of {smallest.min():.3f} to {smallest.max():.3f}"
            in_points = f"({points.min():.1f} to {points.max():.1f} points)"
            yield f"{where}{sizes} {in_points}{nothing}"
        elif not kind or frame.get(order, pd.Series()).any():
            yield f"{where}nothing"


def epsilon_for(
    levels: Any,
    n: int,
    *,
    correlation: float | None = None,
    points: float | None = None,
    order: int = 1,
    between: tuple[str, str] | None = None,
    delta: float | None = None,
    **settings: Any,
) -> float:
    """The epsilon that is needed to find a dependence of a given size, before data is touched.

    Parameters
    ----------
    levels, n, delta
        As for :func:`plan`.
    correlation, points : float
        One of the two: the size, as a (partial) correlation, or as a difference between two groups
        in percentage points. For two numbers a correlation is the slope, in deviations of their
        normal scores; the groups of a number are its lower and its upper half.
    order : int
        0 if only the pairwise tests have to find it; 1 if the tests given one more variable have to
        find it too. Then there must be such a test, and all such tests have to find it.
    between : tuple of str, optional
        Two variables; by default the dependence has to be found between any two.
    settings
        ``alpha``, ``max_order``, ``power``, ``shares``, ``least_effect``, ``least_share``,
        ``rows_per_person``, ``allow_delta`` and ``system`` of :func:`plan`.

    Returns
    -------
    float
        Epsilon with three digits; with the next smaller one, the plan does not find it.

    Raises
    ------
    ValueError
        If no epsilon up to 999 is enough; the message says what would be. Also as
        :func:`plan` does.

    Privacy
    -------
    It takes no data: whatever it tells is public, and costs nothing.

    Examples
    --------
    >>> levels = {name: ["no", "yes"] for name in "abcdefgh"}
    >>> epsilon_for(levels, 20_000, correlation=0.05)
    0.211
    >>> epsilon_for(levels, 20_000, points=10)
    0.0952
    """
    kind = "correlation" if points is None else "points"
    size, most = (correlation, 1) if points is None else (points, 100)
    if size is None or (correlation is not None and points is not None):
        raise ValueError("give the size to be found, as correlation=0.1 or as points=10")
    _check_between(kind, size, 0, most)
    planned_with = partial(plan, levels=levels, n=n, delta=delta, **settings)
    exact = planned_with(epsilon=NO_NOISE)  # refuses invalid settings
    pairs = _asked(exact, between)
    if order not in (0, 1):
        raise ValueError(f"order must be 0 or 1, not {order!r}")
    columns = [kind, f"partial_{kind}"][: 1 + order * (len(exact.shares) > 2)]

    def smallest(epsilon: float, pairs=pairs, **changed: Any) -> float:
        """The smallest size that is found in all pairs; not a number if one pair has none."""
        try:
            planned = planned_with(epsilon=epsilon, **changed).pairs
        except ValueError:  # too much noise for any test
            return math.nan
        return float(np.max([getattr(planned[pair], name) for pair in pairs for name in columns]))

    def enough(epsilon: float, pairs=pairs, **changed: Any) -> bool:
        return smallest(epsilon, pairs, **changed) <= size

    with warnings.catch_warnings(action="ignore"):
        if not enough(GRID[-1]):
            cures = list(_cures(exact, partial(enough, GRID[-1]), pairs))
            if (least := smallest(GRID[-1])) < most:
                cures.insert(0, f"look for {rounded_up(least, 3)} or more")
            problem = f"no epsilon up to {GRID[-1]:g} finds that among {n:,} records"
            cure = ", or ".join(cures) or "it is too small to be seen in any table"
            raise ValueError(f"{problem}; {cure}")
        coarse = [*range(0, len(GRID), STEP), len(GRID) - 1]
        above = next(i for i in progress(coarse, "searching", len(coarse)) if enough(GRID[i]))
        return GRID[bisect_left(GRID, True, max(0, above - STEP), above, key=enough)]


@lru_cache
def _variances(shares: Shares) -> np.ndarray:
    """Variances of uncorrelated contrasts of a variable with these shares."""
    return np.linalg.eigvalsh(covariance_of_contrasts(np.array(shares), len(shares)))


def _together(shares: Shares) -> Shares:
    """Shares of neighbouring levels together, where a test of all levels would take too long."""
    parts = np.array_split(shares, MOST_LEVELS)
    return tuple(map(math.fsum, parts)) if len(shares) > MOST_LEVELS else shares


def _cures(exact: Plan, enough: Callable[..., bool], pairs) -> Iterator[str]:
    """Changes that would be enough, beside a larger dependence; each has been tried."""
    if (helped := next((pair for pair in pairs if enough([pair])), None)) and len(pairs) > 1:
        yield f"ask for one pair, such as between={helped!r}"
    n = MORE_RECORDS * exact.n
    # a number has no levels to leave out
    two = {name: own if isinstance(own, Parts) else own[:2] for name, own in exact.levels.items()}
    needed: dict[str, dict[str, Any]] = {  # the largest change of each kind
        "fewer levels": {"levels": two, "shares": None},
        "a smaller least_share": {"least_share": 0.0},
        "a smaller least_effect": {"least_effect": 0.0},
        "more records": {"n": n, "delta": min(exact.budget.delta, delta_for(n))},
        "max_order=1": {"max_order": max(exact.rules.max_order, 1)},
    }
    for name in list(needed):
        others = {key: change for key, change in needed.items() if key != name}
        needed = others if enough(**ChainMap(*others.values())) else needed
    if enough(**ChainMap(*needed.values())):
        yield f"take {' and '.join(needed)}"


def _asked(planned: Plan, between) -> list[tuple[str, str]]:
    """The pairs in which the dependence has to be found; variables of one level are left out."""
    if between is None:
        many = {name for name, levels in planned.levels.items() if len(levels) > 1}
        pairs = [pair for pair in planned.pairs if many.issuperset(pair)]
        if not pairs:
            raise ValueError("no two variables have two levels or more; nothing can be found")
        return pairs
    asked = [pair for pair in planned.pairs if between in (pair, pair[::-1])]
    if not asked:
        raise ValueError(f"between must name two variables, as in ('a', 'b'), not {between!r}")
    return asked
