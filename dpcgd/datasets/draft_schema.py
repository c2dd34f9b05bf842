"""A first draft of a schema, to be edited: from a codebook typed in, or, not private, from data."""

import math
from collections.abc import Collection, Mapping
from typing import Any

from dpcgd.datasets.arguments import check_known, check_whole, is_real
from dpcgd.datasets.columns import check_frame
from dpcgd.datasets.numerals import POINT
from dpcgd.datasets.schema import Schema
from dpcgd.datasets.variable import REFUSE, text_of

__all__ = ["draft_schema", "draft_schema_from_data_not_private"]

MOST_LEVELS = 20
"""A column of text with more different values than this is taken for no category."""


def draft_schema(
    columns: Mapping[str, Any],
    *,
    bins: int = 5,
    ordered: Collection[str] = (),
    missing: Any = REFUSE,
    outside: str = REFUSE,
) -> dict[str, dict[str, Any]]:
    """Write a schema from what a codebook says, everything spelled out, to be edited and saved.

    Parameters
    ----------
    columns : mapping of str to list or mapping
        Of each variable a list of its levels, or ``{"range": [low, high]}`` for a number that gets
        levels of equal width, or whatever else :class:`~dpcgd.datasets.schema.Schema` takes.
    bins : int
        Levels of a number that has a range.
    ordered : collection of str
        Variables with lists of levels that stand in order.
    missing, outside : str
        As in a schema, for the variables that do not say it themselves.

    Returns
    -------
    dict
        A schema; ``json.dump`` writes it.

    Raises
    ------
    ValueError
        If a range is no two numbers, the lower one first, or the schema contradicts itself.

    Privacy
    -------
    It sees no data: public in, public out.

    Examples
    --------
    >>> draft = draft_schema({"age": {"range": [0, 80]}, "smoke": ["no", "yes"]}, bins=4)
    >>> draft["age"]["edges"], draft["age"]["outside"]
    ([0.0, 20.0, 40.0, 60.0, 80.0], 'refuse')
    >>> draft["smoke"]
    {'levels': ['no', 'yes'], 'missing': 'refuse', 'ordered': False}
    """
    check_whole("bins", bins, 2)
    if not isinstance(columns, Mapping):
        kind = f"{type(columns).__name__}; a table's own values are no metadata"
        raise ValueError(f"columns must map each variable to its levels or range, not a {kind}")
    check_known("ordered", ordered, columns)
    drafts = {}
    for name, entry in columns.items():
        draft = dict(entry) if isinstance(entry, Mapping) else {"levels": entry}
        if "range" in draft:
            draft = {"edges": _equal_edges(name, draft.pop("range"), bins), **draft}
        if "edges" in draft:
            draft = {"outside": outside, **draft}
        elif name in ordered:
            draft = {"ordered": True, **draft}
        drafts[name] = {"missing": missing, **draft}
    return Schema(drafts).to_dict()


def draft_schema_from_data_not_private(
    frame, *, bins: int = 5, ignore: Collection[str] = ()
) -> dict[str, dict[str, Any]]:
    """Write a schema off the data, to be replaced by what a codebook says. NOT private.

    Parameters
    ----------
    frame : pandas.DataFrame
    bins : int
        Levels of a number with more than twenty values, of equal width from least to largest.
    ignore : collection of str
        Columns to leave out, such as record numbers.

    Returns
    -------
    dict
        A schema. A column with missing values has the level ``"unknown"``.

    Raises
    ------
    ValueError
        If the frame is none, a column of text has more than twenty values, or a number no range.

    Privacy
    -------
    None. Levels and edges tell what values there are, the rarest too: a release with this schema
    promises nothing until each of them has been replaced by, or found in, metadata.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"smoke": ["no", "yes", None], "pain": [2, 0, 1]})
    >>> draft = draft_schema_from_data_not_private(frame)
    >>> draft["smoke"]["levels"], draft["smoke"]["missing"], draft["pain"]["levels"]
    (['no', 'yes', 'unknown'], 'unknown', ['0', '1', '2'])
    """
    check_whole("bins", bins, 2)
    kept = [name for name in getattr(frame, "columns", ()) if name not in ignore]
    check_frame(frame, dict.fromkeys(kept), ignore)
    return draft_schema({name: _seen(frame[name], bins) for name in kept})


def _seen(column, bins) -> dict[str, Any]:
    """What the values of a column look like."""
    from pandas.api.types import is_numeric_dtype

    draft: dict[str, Any] = {"missing": "unknown"} if column.hasnans else {}
    if hasattr(column.dtype, "categories"):
        levels = list(map(str, column.cat.categories))
        return {"levels": levels, "ordered": bool(column.cat.ordered), **draft}
    values = column.dropna().drop_duplicates()
    if len(values) <= MOST_LEVELS:
        if not is_numeric_dtype(column):
            return {"levels": sorted(set(map(text_of, values.astype(object)))), **draft}
        texts = list(map(text_of, values.sort_values().astype(object)))  # gaps make 14 a 14.0
        return {"levels": list(dict.fromkeys(POINT.whole(x) or x for x in texts)), **draft}
    if is_numeric_dtype(column):
        ends = [float(values.min()), float(values.max())]
        return {"edges": _equal_edges(column.name, ends, bins), "outside": "clip", **draft}
    cure = f"pass ignore=[{column.name!r}] if it names records, or join its values first"
    raise ValueError(f"column {column.name!r} has {len(values)} different values; {cure}")


def _equal_edges(name, ends, bins) -> list[float]:
    """Edges of so many levels of equal width, without the last digits of the division."""
    pair = ends if isinstance(ends, (list, tuple)) and len(ends) == 2 else (1, 0)
    if not all(is_real(end) and math.isfinite(end) for end in pair) or pair[0] >= pair[1]:
        right = "two finite numbers, the lower one first"
        raise ValueError(f"variable {name!r}: a range is {right}, not {ends!r}; give [low, high]")
    low, high = map(float, pair)
    return [float(f"{low + (high - low) * i / bins:.12g}") for i in range(bins + 1)]
