"""The budget that it takes to see a dependence of a given size."""

import math
import warnings
from bisect import bisect_left
from collections import ChainMap
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from dpcgd.privacy.budget import delta_for
from dpcgd.tables.plan import Plan, check_between, plan

__all__ = ["epsilon_for"]

GRID = [float(f"{digits}e{power}") for power in range(-5, 1) for digits in range(100, 1000)]
"""Every epsilon of three digits from .001 to 999."""


STEP = 100
"""The first, coarse look over the grid takes steps of this length."""

NO_NOISE = 1e9
"""At this epsilon only settings are refused."""

MORE_RECORDS = 1000
"""So many times as many records show whether more records would help."""


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
    """Find the epsilon it takes to see a dependence of a given size, before any data is touched.

    Parameters
    ----------
    levels, n, delta
        As for :func:`~dpcgd.tables.plan.plan`.
    correlation, points : float
        One of both: the size, as a (partial) correlation, or as a difference between two groups in
        percentage points.
    order : int
        Whether only the pairwise tests have to find it (0), or those given one more variable too
        (1): one such test has to be there, and all that are there have to find it.
    between : tuple of str, optional
        Two variables; without it, the dependence has to be found between any two.
    settings
        ``alpha``, ``max_order``, ``power``, ``shares``, ``related``, ``least_effect``,
        ``least_share``, ``rows_per_person`` and ``system`` of :func:`~dpcgd.tables.plan.plan`.

    Returns
    -------
    float
        To three digits; with the next smaller one of these, the plan does not find it.

    Raises
    ------
    ValueError
        If no epsilon up to 999 would do, with what would instead, or as
        :func:`~dpcgd.tables.plan.plan` does.

    Privacy
    -------
    It takes no data: whatever it tells is public, and costs nothing.

    Examples
    --------
    >>> levels = {name: ["no", "yes"] for name in "abcdefgh"}
    >>> epsilon_for(levels, 20_000, correlation=0.05)
    0.221
    >>> epsilon_for(levels, 20_000, points=10)
    0.0943
    """
    kind = "correlation" if points is None else "points"
    size, most = (correlation, 1) if points is None else (points, 100)
    if size is None or (correlation is not None and points is not None):
        raise ValueError("say how large a dependence is to be seen: as correlation or as points")
    check_between(kind, size, 0, most)
    planned_with = partial(plan, levels=levels, n=n, delta=delta, **settings)
    exact = planned_with(epsilon=NO_NOISE)  # refuses once for all
    pairs = _asked(exact, between)
    if order not in (0, 1):
        raise ValueError(f"order must be 0 or 1, not {order!r}")
    columns = [kind, f"partial_{kind}"][: 1 + order * (len(exact.shares) > 2)]

    def smallest(epsilon: float, pairs=pairs, **changed: Any) -> float:
        """What is found in all pairs; not a number if nothing is in one of them."""
        try:
            planned = planned_with(epsilon=epsilon, **changed).pairs
        except ValueError:  # too much noise for any test
            return math.nan
        found = [getattr(planned[pair], name) for pair in pairs for name in columns]
        return math.nan if any(map(math.isnan, found)) else max(found)

    def enough(epsilon: float, pairs=pairs, **changed: Any) -> bool:
        return smallest(epsilon, pairs, **changed) <= size

    with warnings.catch_warnings(action="ignore"):
        if not enough(GRID[-1]):
            cures = list(_cures(exact, partial(enough, GRID[-1]), pairs))
            if (least := smallest(GRID[-1])) < most:
                cures.insert(0, f"look for {_rounded_up(least):g} or more")
            raise ValueError(
                f"no epsilon up to {GRID[-1]:g} finds that among {n:,} records; "
                f"{', or '.join(cures) or 'it is too small to be seen in any table'}"
            )
        above = next(i for i in [*range(0, len(GRID), STEP), len(GRID) - 1] if enough(GRID[i]))
        low = max(0, above - STEP)
        return GRID[bisect_left(range(low, above), True, key=lambda i: enough(GRID[i])) + low]


def _cures(exact: Plan, enough: Callable[..., bool], pairs) -> Iterator[str]:
    """What would do beside a larger dependence; each has been tried."""
    if (helped := next((pair for pair in pairs if enough([pair])), None)) and len(pairs) > 1:
        yield f"ask for one pair, such as between={helped!r}"
    changes = _changes(exact)
    needed = dict(changes)
    for name in changes:
        others = {key: change for key, change in needed.items() if key != name}
        needed = others if enough(**ChainMap(*others.values())) else needed
    if enough(**ChainMap(*needed.values())):
        yield f"take {' and '.join(needed)}"


def _changes(exact: Plan) -> dict[str, dict[str, Any]]:
    """By what they are called, the largest steps away from what was asked."""
    n = MORE_RECORDS * exact.n
    return {
        "fewer levels": {"levels": {v: of[:2] for v, of in exact.levels.items()}, "shares": None},
        "a smaller least_share": {"least_share": 0.0},
        "a smaller least_effect": {"least_effect": 0.0},
        "more records": {"n": n, "delta": min(exact.budget.delta, delta_for(n))},
        "max_order=1": {"max_order": max(exact.rules.max_order, 1)},
    }


def _rounded_up(value: float) -> float:
    """To three digits."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return math.ceil(value / unit) * unit


def _asked(planned: Plan, between) -> list[tuple[str, str]]:
    """The pairs it has to be found in: variables of one level depend on nothing."""
    if between is None:
        many = {name for name, of in planned.levels.items() if len(of) > 1}
        pairs = [pair for pair in planned.pairs if many.issuperset(pair)]
        if not pairs:
            raise ValueError("no two variables have two levels or more; nothing can be found")
        return pairs
    asked = [pair for pair in planned.pairs if between in (pair, pair[::-1])]
    if not asked:
        raise ValueError(
            f"between must name two variables of the table, as in ('a', 'b'), not {between!r}"
        )
    return asked
