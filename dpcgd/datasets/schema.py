"""The public description of a table: variables, levels and their order; and drafts of it."""

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from dpcgd.datasets.arguments import check_file, check_known, check_once, check_whole
from dpcgd.datasets.columns import FRAME, NOTATIONS, as_table, check_columns
from dpcgd.datasets.variable import POINT, REFUSE, Variable, check_range, check_variables, text_of

__all__ = ["Schema", "draft_schema", "draft_schema_from_data_not_private"]
__all__ += ["draft_schema_from_public_table"]

MOST_LEVELS = 20
"""A column of text with more different values than this does not count as a category."""


@dataclass(frozen=True)
class Schema:
    """The public description of a table, in one format for files, frames and plans.

    Parameters
    ----------
    variables : mapping of str to list or mapping
        Map from the name of each column to its description, in the order of the variables. A list
        holds every level that the variable may take. A mapping has more entries:

        ``levels``
            The list of levels. Values are compared with levels as text. A decimal with a whole
            value, such as 14.0, is the level ``"14"``, unless ``"14.0"`` is a level.
        ``range``
            For a number that stays a number: ``[0, 80]`` are its least and largest value. It is
            stored as one of 32,768 equal parts of its range. For a system that takes only
            categories, give ``edges``, or call :meth:`~dpcgd.datasets.dataset.Dataset.binned`.
        ``scale``
            The scale of a range: ``"linear"`` (the default), or ``"log"`` for a number above 0
            whose parts have equal logarithmic width.
        ``edges``
            For a number that becomes a category: ``[15, 25, 50]`` makes the levels ``15 to 25`` and
            ``25 to 50``. A level contains its lower edge, the last one also its upper edge.
        ``outside``
            Rule for a number outside the range or the edges: ``"refuse"`` the table (the default),
            or ``"clip"`` the number to the nearer end.
        ``missing``
            Rule for missing values: ``"refuse"`` the table (the default), or the name of their
            level, such as ``"unknown"``. It comes last if it is not among the levels. A list also
            gives codes of missing values, after the name of the level: ``["unknown", -9, 99,
            "NA"]``. An empty cell is always missing. Codes are compared with values before levels,
            ranges and edges, numbers as numbers and the rest as text.
        ``ordered``
            Whether the levels are in order: true or false (the default). Numbers have an order.

    Raises
    ------
    ValueError
        If the schema contradicts itself; the message names the variable and the cure.

    Attributes
    ----------
    variables : mapping of str to Variable

    Notes
    -----
    The whole schema must come from metadata, such as a questionnaire or a codebook. It is published
    with every release, and a level or an edge that is read off the data reveals who is in them.

    Examples
    --------
    >>> schema = Schema(
    ...     {
    ...         "smoke": ["no", "yes"],
    ...         "pain": {"levels": ["none", "some", "much"], "ordered": True},
    ...         "age": {"edges": [15, 25, 35, 50, 80], "outside": "clip", "missing": "unknown"},
    ...     }
    ... )
    >>> schema.levels["age"]
    ('15 to 25', '25 to 35', '35 to 50', '50 to 80', 'unknown')
    >>> sorted(schema.ordered), dict(schema.missing)
    (['age', 'pain'], {'age': 'unknown'})
    """

    variables: Mapping[str, Any]

    def __post_init__(self):
        check_variables(self.variables)
        made = {name: Variable.from_schema(name, entry) for name, entry in self.variables.items()}
        object.__setattr__(self, "variables", MappingProxyType(made))

    @classmethod
    def of(cls, schema: Any) -> "Schema":
        """Make a schema from a schema, from a mapping as for the class, or from a JSON file of it.

        Parameters
        ----------
        schema : Schema, mapping, str or path

        Raises
        ------
        ValueError
            If the file cannot be read or the mapping contradicts itself.
        """
        if isinstance(schema, cls):
            return schema
        return cls(schema if isinstance(schema, Mapping) else read_mapping(schema))

    @property
    def levels(self) -> dict[str, tuple[str, ...]]:
        """The levels of each variable, in order."""
        return {name: variable.levels for name, variable in self.variables.items()}

    @property
    def ordered(self) -> frozenset[str]:
        """Names of the variables whose levels are in order."""
        return frozenset(name for name, variable in self.variables.items() if variable.ordered)

    @property
    def missing(self) -> dict[str, str]:
        """The level of missing values, for each variable that has one."""
        return {name: v.missing for name, v in self.variables.items() if v.missing}

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """The whole schema with all defaults, as JSON can hold it.

        Examples
        --------
        >>> Schema({"smoke": ["no", "yes"], "age": {"edges": [15, 25, 50]}}).to_dict()["age"]
        {'edges': [15.0, 25.0, 50.0], 'outside': 'refuse', 'missing': 'refuse', 'ordered': True}
        """
        return {name: variable.as_schema() for name, variable in self.variables.items()}

    def __reduce__(self):
        return Schema, (dict(self.variables),)


LISTS = 'map each variable\'s name to the list of its levels, as in {"smoke": ["no", "yes"]}'
"""The rule for the content of a schema file, as the cure in messages."""


def read_mapping(path, rule: str = LISTS) -> dict:
    """The mapping in a JSON file.

    Raises
    ------
    ValueError
        If the file holds no mapping; the message has the rule.
    """
    check_file(path, f"schema must be a mapping or the path of a JSON file; {rule}")
    try:
        with open(path, encoding="utf-8-sig") as file:
            content = json.load(file, object_pairs_hook=_named_once)
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text; save it as UTF-8") from None
    except RecursionError:
        raise ValueError(f"{path} is nested too deeply; {rule}") from None
    except json.JSONDecodeError as error:
        where = f"{path}, line {error.lineno}, column {error.colno}"
        raise ValueError(f"{where}: {error.msg}; correct the JSON there") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path} holds no mapping; {rule}")
    return content


def _named_once(pairs):
    check_once([name for name, _ in pairs], "the file names", "name it once")
    return dict(pairs)


def draft_schema(
    columns: Mapping[str, Any],
    *,
    bins: int | None = None,
    ordered: Collection[str] = (),
    missing: Any = REFUSE,
    outside: str = REFUSE,
) -> dict[str, dict[str, Any]]:
    """Draft a schema from a codebook, with all defaults spelled out, to be edited and saved.

    Parameters
    ----------
    columns : mapping of str to list or mapping
        For each variable a list of its levels, or ``{"range": [low, high]}`` for a number, or any
        other description of :class:`~dpcgd.datasets.schema.Schema`.
    bins : int, optional
        Number of levels of equal width, for a number with a range; it stays a number unless given.
    ordered : collection of str
        Variables whose lists of levels are in order.
    missing, outside : str
        As in a schema, for variables without an entry of their own.

    Returns
    -------
    dict
        A schema; ``json.dump`` writes it.

    Raises
    ------
    ValueError
        If a range is no two numbers, the lower one first, if bins are asked for on a log scale, or
        if the schema contradicts itself.

    Privacy
    -------
    The function uses no data: its input is public, and so is its output.

    Examples
    --------
    >>> draft = draft_schema({"age": {"range": [0, 80]}, "smoke": ["no", "yes"]}, bins=4)
    >>> draft["age"]["edges"], draft["age"]["outside"]
    ([0.0, 20.0, 40.0, 60.0, 80.0], 'refuse')
    >>> draft_schema({"age": {"range": [0, 80]}, "smoke": ["no", "yes"]})["age"]["range"]
    [0.0, 80.0]
    >>> draft["smoke"]
    {'levels': ['no', 'yes'], 'missing': 'refuse', 'ordered': False}
    """
    if bins is not None:
        check_whole("bins", bins, 2)
    if not isinstance(columns, Mapping):
        kind = f"{type(columns).__name__}; a table's own values are no metadata"
        raise ValueError(f"columns must map each variable to its levels or range, not a {kind}")
    check_known("ordered", ordered, columns)
    drafts = {}
    for name, entry in columns.items():
        draft = dict(entry) if isinstance(entry, Mapping) else {"levels": entry}
        if "range" in draft and bins is not None:
            low, high = check_range(name, draft.pop("range"))
            steps = (low + (high - low) * i / bins for i in range(bins + 1))
            draft = {"edges": [float(f"{step:.12g}") for step in steps], **draft}
        if {"edges", "range"} & set(draft):
            draft = {"outside": outside, **draft}
        elif name in ordered:
            draft = {"ordered": True, **draft}
        drafts[name] = {"missing": missing, **draft}
    return Schema(drafts).to_dict()


def draft_schema_from_data_not_private(
    frame, *, bins: int | None = None, ignore: Collection[str] = ()
) -> dict[str, dict[str, Any]]:
    """Draft a schema from the data, to be replaced by a codebook's. NOT private.

    Parameters
    ----------
    frame : pandas.DataFrame, or a table with an Arrow stream
    bins : int, optional
        Levels of equal width for a number of more than twenty values; it stays a number unless
        given.
    ignore : collection of str
        Columns to leave out, such as record numbers.

    Returns
    -------
    dict
        A schema. A column with missing values has the level ``"unknown"``.

    Raises
    ------
    ValueError
        If `frame` is no table or has fewer than two columns left, a column of text has more than
        twenty values, or `bins` is no whole number of 2 or more.

    Privacy
    -------
    None. Levels, ranges and edges reveal the values in the data, also the rarest: a release with
    this schema promises nothing until each of them has been found in metadata or replaced.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"smoke": ["no", "yes", None], "pain": [2, 0, 1]})
    >>> draft = draft_schema_from_data_not_private(frame)
    >>> draft["smoke"]["levels"], draft["smoke"]["missing"], draft["pain"]["levels"]
    (['no', 'yes', 'unknown'], 'unknown', ['0', '1', '2'])
    """
    frame = _in_pandas(frame)
    kept = [name for name in frame.columns if name not in ignore]
    check_columns(FRAME, list(frame.columns), dict.fromkeys(kept), ignore)
    return draft_schema({name: _seen(frame[name]) for name in kept}, bins=bins)


def draft_schema_from_public_table(
    frame, *, bins: int | None = None, ignore: Collection[str] = ()
) -> dict[str, dict[str, Any]]:
    """Draft a schema from a PUBLIC table with the same columns, such as a published sample.

    Parameters
    ----------
    frame : pandas.DataFrame
        A public table, such as an older census; never the table to be protected.
    bins : int, optional
        Number of levels, for a number with more than twenty values: they are about equally common
        in the public table, with round edges. It stays a number unless given.
    ignore : collection of str
        Columns to leave out, such as record numbers.

    Returns
    -------
    dict
        A schema. Ranges have round ends, and a number outside goes to the nearer end. A column with
        missing values has the level ``"unknown"``.

    Raises
    ------
    ValueError
        If `bins` is no whole number of 2 or more, or as :func:`draft_schema_from_data_not_private`
        does.

    Privacy
    -------
    The function uses public data only, and costs nothing. With the table to be protected it would
    reveal the ranges and levels of that table.

    Examples
    --------
    >>> import pandas as pd
    >>> census = pd.DataFrame({"age": range(17, 94), "income": [k**3 for k in range(77)]})
    >>> draft_schema_from_public_table(census)["income"]["range"]
    [0.0, 500000.0]
    >>> draft_schema_from_public_table(census, bins=4)["age"]["edges"]
    [10.0, 36.0, 55.0, 74.0, 100.0]
    """
    if bins is not None:
        check_whole("bins", bins, 2)
    frame = _in_pandas(frame)
    drafts = draft_schema_from_data_not_private(frame, ignore=ignore)
    for name in [name for name, entry in drafts.items() if "range" in entry]:
        entry = drafts[name]
        low, high = entry["range"]
        unit = 10.0 ** math.floor(math.log10(high - low))
        ends = [math.floor(low / unit) * unit, math.ceil(high / unit) * unit]
        entry["range"] = [float(f"{end:.12g}") for end in ends]
        if bins is not None:
            numbers = frame[name].dropna().astype(str).str.replace(",", ".").astype(float)
            inner = np.quantile(numbers, np.arange(1, bins) / bins)
            cuts = (*ends, *(_round_number(float(cut), unit) for cut in inner))
            entry["edges"] = sorted({float(f"{cut:.12g}") for cut in cuts})
            del entry["range"], entry["scale"]
    return Schema(drafts).to_dict()


def _in_pandas(frame):
    table = as_table(frame)
    return table if hasattr(table, "columns") else table.read_pandas()


def _round_number(value: float, unit: float) -> float:
    """A round number near a value: with two digits, or a multiple of a tenth of the unit."""
    two_digits = 10.0 ** (math.floor(math.log10(abs(value) or 1)) - 1)
    step = min(unit / 10, max(unit / 1000, two_digits))
    return round(value / step) * step


def _seen(column) -> dict[str, Any]:
    """The draft for a column, from its values."""
    draft: dict[str, Any] = {"missing": "unknown"} if column.hasnans else {}
    if hasattr(column.dtype, "categories"):
        levels = list(map(str, column.cat.categories))
        return {"levels": levels, "ordered": bool(column.cat.ordered), **draft}
    values = column.dropna().drop_duplicates()
    texts = sorted(set(map(text_of, values.astype(object))))
    if is_number := column.dtype.kind in "iuf" or all(map(POINT.plain, texts)):
        texts = [POINT.whole(text) or text for text in sorted(texts, key=float)]
    if len(values) <= MOST_LEVELS:  # gaps make 14 a 14.0
        return {"levels": list(dict.fromkeys(texts)), **draft}
    if is_number or all(map(NOTATIONS["decimal", ","].plain, texts)):
        numbers = [float(text.replace(",", ".")) for text in texts]
        return {"range": [min(numbers), max(numbers)], "outside": "clip", **draft}
    cure = f"pass ignore=[{column.name!r}] if it names records, or join its values first"
    raise ValueError(f"column {column.name!r} has {len(values)} different values; {cure}")
