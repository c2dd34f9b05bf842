"""The budget that it takes to see a dependence of a given size."""

import warnings
from bisect import bisect_left
from typing import Any

from dpcgd.datasets.arguments import is_real
from dpcgd.marginals.plan import Plan, plan

__all__ = ["epsilon_for"]

GRID = [float(f"{digits}e{power}") for power in range(-5, 1) for digits in range(100, 1000)]
"""Every epsilon of three digits from .001 to 999."""


STEP = 100
"""Of the first, coarse look over the grid."""


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
        As for :func:`~dpcgd.marginals.plan.plan`.
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
        ``least_share``, ``rows_per_person`` and ``system`` of :func:`~dpcgd.marginals.plan.plan`.

    Returns
    -------
    float
        To three digits; with the next smaller one of these, the plan does not find it.

    Raises
    ------
    ValueError
        If no epsilon up to 999 would do, or as :func:`~dpcgd.marginals.plan.plan` does.

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
    size = _size(correlation, points)
    how: dict[str, Any] = {"delta": delta, **settings}
    largest = plan(levels, n, epsilon=GRID[-1], **how)  # refuses once for all
    pairs = _asked(largest, between)
    if order not in (0, 1):
        raise ValueError(f"order must be 0 or 1, not {order!r}")
    columns = (
        ["correlation", "partial_correlation"] if correlation else ["points", "partial_points"]
    )
    columns = columns[: 1 + order * (len(largest.shares) > 2)]

    def finds(planned: Plan) -> bool:
        told = (getattr(planned.pairs[pair], name) for pair in pairs for name in columns)
        return all(value <= size for value in told)

    def enough(epsilon: float) -> bool:
        try:
            return finds(plan(levels, n, epsilon=epsilon, **how))
        except ValueError:  # too much noise for any test
            return False

    if not finds(largest):
        raise ValueError(
            f"no epsilon up to {GRID[-1]:g} finds that among {n:,} records; look for something "
            "larger, or take more records, fewer levels or, with between, fewer pairs"
        )
    with warnings.catch_warnings(action="ignore"):
        above = next(at for at in [*range(0, len(GRID), STEP), len(GRID) - 1] if enough(GRID[at]))
        low = max(0, above - STEP)
        return GRID[bisect_left(range(low, above), True, key=lambda at: enough(GRID[at])) + low]


def _size(correlation, points) -> float:
    if (correlation is None) == (points is None):
        raise ValueError("say how large a dependence is to be seen: as correlation or as points")
    size, most, name = (
        (points, 100, "points") if correlation is None else (correlation, 1, "correlation")
    )
    if not (is_real(size) and 0 < size < most):
        raise ValueError(f"{name} must be above 0 and below {most}, not {size!r}")
    return size


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
