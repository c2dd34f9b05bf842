"""How many rows a person has in a table: a bound that has to be public."""

from collections.abc import Hashable, Iterable

import pandas as pd

from dpcgd.datasets.arguments import check_whole

__all__ = ["check_rows_per_person"]

NO_COLUMN = "ids must be one column, an entry a row; give the column of a DataFrame"


def check_rows_per_person(ids: Iterable, rows_per_person: int) -> None:
    """Check that nobody has more rows than a public bound.

    Parameters
    ----------
    ids : iterable
        Of each row whose it is, such as the column of a DataFrame.
    rows_per_person : int
        The bound, fixed without a look at the table.

    Raises
    ------
    ValueError
        If somebody has more; the message does not say who, or how many. If a row is nobody's, there
        is no row, or `ids` is a table or a text.

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
    ValueError: a person has more rows than rows_per_person = 1; keep at most so many of each ...
    """
    check_whole("rows_per_person", rows_per_person, 1)
    if isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable) or hasattr(ids, "columns"):
        raise ValueError(NO_COLUMN)
    column = pd.Series(list(ids), dtype=object)
    if not all(isinstance(one, Hashable) for one in column):
        raise ValueError(NO_COLUMN)
    if column.empty:
        raise ValueError("ids is empty; give an entry for each row of the table")
    if column.isna().any():
        raise ValueError("a row belongs to nobody; give each row the id of its person, or drop it")
    if column.value_counts().max() > rows_per_person:
        raise ValueError(
            f"a person has more rows than rows_per_person = {rows_per_person}; keep at most so "
            "many of each by a rule fixed beforehand, or raise the bound"
        )
