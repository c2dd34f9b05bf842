"""How many rows a person has in a table: a bound that has to be public."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Set
from typing import Any

from dpcgd.datasets.arguments import check_whole, is_real
from dpcgd.datasets.numerals import POINT
from dpcgd.datasets.variable import text_of

__all__ = ["check_rows_per_person"]

NO_COLUMN = "ids must be one column, an entry a row; give the column of a DataFrame"

NOBODY = "a row belongs to nobody; give each row the id of its person, or drop it"


def check_rows_per_person(ids: Iterable, rows_per_person: int, n: int | None = None) -> None:
    """Check that nobody has more rows than a public bound.

    Parameters
    ----------
    ids : iterable
        Of each row whose it is, such as the column of a DataFrame. Ids are compared as text
        without blanks at its ends: 7 and ``"7"`` are one person. A number that is whole is that
        whole number, also as text: 7.0 and ``"7.0"`` are person 7 too, since a column with gaps is
        written like this. ``"07"`` is another person.
    rows_per_person : int
        The bound, fixed without a look at the table.
    n : int, optional
        The number of records, to be compared with the number of ids.

    Raises
    ------
    ValueError
        If somebody has more; the message does not say who, or how many. If a row is nobody's, as
        its id is missing or blank, there is no row, there are not `n`, or `ids` is a table, a
        text, or a set or a mapping, which do not have an entry for each row.

    Privacy
    -------
    None: whether the table is refused depends on the records. The curator checks before the run,
    repairs by a rule that was fixed beforehand (keep the k earliest rows of each person, say), and
    tells nobody of the outcome. Whoever has too many rows would not be protected by the run.

    Examples
    --------
    >>> check_rows_per_person(["ann", "bob", "ann"], 2)
    >>> check_rows_per_person(["ann", "bob", "ann"], 1)
    Traceback (most recent call last):
    ...
    ValueError: a person has more rows than rows_per_person = 1; keep so many of each by ...
    """
    check_whole("rows_per_person", rows_per_person, 1)
    counted = _counted(ids)
    total = counted.total()
    if total == 0:
        raise ValueError("ids is empty; give an entry for each row of the table")
    if n is not None and total != n:
        raise ValueError(f"ids has {total} entries for {n} records; give one for each row")
    rows: Counter = Counter()
    for value, count in counted.items():
        rows[_person(value)] += count
    if max(rows.values()) > rows_per_person:
        problem = f"a person has more rows than rows_per_person = {rows_per_person}"
        raise ValueError(f"{problem}; keep so many of each by a rule fixed beforehand")


def _counted(ids) -> Counter:
    """How often each id stands in the one column that is given."""
    no_column = isinstance(ids, (str, bytes, Mapping, Set)) or hasattr(ids, "columns")
    if no_column or not isinstance(ids, Iterable) or getattr(ids, "ndim", 1) != 1:
        raise ValueError(NO_COLUMN)
    try:
        return Counter(value.as_py() if hasattr(value, "as_py") else value for value in ids)
    except TypeError:  # an entry is a list or a row
        raise ValueError(NO_COLUMN) from None


def _person(value: Any) -> str | tuple:
    """What two ids of one person have in common."""
    if isinstance(value, tuple):
        return tuple(map(_person, value))
    if is_real(value) and math.isfinite(value) and value == int(value):
        return str(int(value))
    text = text_of(value).strip()
    if not text:
        raise ValueError(NOBODY)
    return POINT.whole(text) or text
