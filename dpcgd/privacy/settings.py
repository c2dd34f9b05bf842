"""Which public settings a run refuses: here for all systems, before anything is spent."""

import math
from collections.abc import Callable

from dpcgd.datasets.arguments import check_whole, is_real
from dpcgd.datasets.dataset import check_records
from dpcgd.privacy.doubles import LEAST

__all__ = ["check_data", "check_level", "check_settings"]

MOST_TESTS = 1e50
"""A budget split over more tests would leave each of them next to nothing."""


def check_data(data: object, *, coded: bool, records: bool = False) -> None:
    """Refuse what is no data set; some systems need levels, others take ranges too.

    Those need records at hand, as others do that say so; the rest asks for counts.

    Raises
    ------
    ValueError
        With the way to make one.
    """
    if hasattr(data, "cardinalities"):
        if records or not coded:
            check_records(data, "this system")
        return
    if not hasattr(data, "ranges"):
        raise ValueError(
            f"data must be a data set, not a {type(data).__name__}; make one with read_csv(path, "
            "schema) or Dataset.from_pandas(frame, levels)"
        )
    if coded:
        raise ValueError(
            "this system needs levels, and these are real values; put them into bins of their "
            "public ranges with data.binned(bins)"
        )


def check_level(alpha: float) -> None:
    """Refuse what is no level of a test."""
    if not (is_real(alpha) and LEAST <= alpha < 1):
        raise ValueError(f"alpha is a level above 0 and below 1, not {alpha!r}")


def check_settings(data, **settings) -> None:
    """Refuse settings by name; None stands for a default and is never refused.

    Raises
    ------
    ValueError
        For the first that is unusable.

    Examples
    --------
    >>> check_settings(None, max_order=2, margin=1.0)
    >>> check_settings(None, max_order=1.5)
    Traceback (most recent call last):
    ...
    ValueError: max_order must be a whole number, at least 0, not 1.5
    """
    for name, value in settings.items():
        if value is not None:
            _CHECKS[name](name, value, data)


def _number(holds: Callable[[float], bool], rule: str) -> Callable:
    def check(name, value, data):
        if not (is_real(value) and holds(value)):
            raise ValueError(f"{name} must be {rule}, not {value!r}")

    return check


def _whole(least: int) -> Callable:
    return lambda name, value, data: check_whole(name, value, least)


def _made_of(methods: tuple[str, ...], example: str) -> Callable:
    def check(name, value, data):
        lacks = isinstance(value, type) or not all(hasattr(value, method) for method in methods)
        if lacks:
            raise ValueError(f"{name} must be one such as {example}, not {value!r}")

    return check


def _knowledge(name, value, data):
    if not hasattr(value, "arrays"):
        raise ValueError(
            f"{name} must be Knowledge(forbidden=[...], required=[...]), not a "
            f"{type(value).__name__}"
        )
    value.arrays(data.variables)  # refuses names that are not there


def _rows_per_person(name, value, data):
    check_whole(name, value, 1)
    if value > max(data.n, 1):
        raise ValueError(f"{name} must be at most {data.n}, the number of records, not {value}")


_NOT_NEGATIVE = _number(lambda value: 0 <= value < math.inf, "finite and not negative")
_POSITIVE = _number(lambda value: 0 < value < math.inf, "above 0 and finite")


def _checked_by_the_system(name, value, data):
    """A setting that one system has, and refuses itself before it opens its run."""


_CHECKS: dict[str, Callable] = {
    **dict.fromkeys(
        ("choose", "precision", "protects", "schedule", "standardized", "untested"),
        _checked_by_the_system,
    ),
    "alpha": lambda name, value, data: check_level(value),
    "bins": _whole(2),
    "clip": _POSITIVE,
    "knowledge": _knowledge,
    "l1": _NOT_NEGATIVE,
    "least_effect": _number(lambda value: 0 <= value < 1, "at least 0 and below 1"),
    "least_share": _number(lambda value: 0 <= value < 1, "at least 0 and below 1"),
    "margin": _number(math.isfinite, "a finite number of noise scales"),
    "max_order": _whole(0),
    "planned_tests": _number(
        lambda value: 1 <= value <= MOST_TESTS, f"at least 1 and at most {MOST_TESTS:g}"
    ),
    "rate": _number(lambda value: 0 < value <= 1, "above 0 and at most 1"),
    "ridge": _made_of(("fit", "change"), "Ridge()"),
    "rows_per_person": _rows_per_person,
    "row_norm": _number(lambda value: 1e-100 <= value <= 1e100, "above 0, from 1e-100 to 1e100"),
    "score": _made_of(("value", "release"), "Hsic()"),
    "statistic": _made_of(("value", "critical"), "KendallZ()"),
    "steps": _whole(1),
    "threshold": _NOT_NEGATIVE,
}
