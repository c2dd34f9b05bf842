"""What is public about a table of people: its variables, their levels, their order."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from dpcgd.datasets.arguments import check_file, check_once
from dpcgd.datasets.variable import Variable, check_variables

__all__ = ["Schema"]


@dataclass(frozen=True)
class Schema:
    """The public description of a table, the same for every door: files, frames, plans.

    Parameters
    ----------
    variables : mapping of str to list or mapping
        Each variable by its column's name, in the order they shall have. A list holds every level
        that the variable may take. A mapping says more:

        ``levels``
            The same list. Values are compared with levels as text; a number that is whole, such as
            14.0, is the level ``"14"`` too, unless ``"14.0"`` is one.
        ``edges``
            In place of levels, for a number: ``[15, 25, 50]`` makes the levels ``15 to 25`` and
            ``25 to 50``. A level holds its lower edge, the last one its upper edge too.
        ``outside``
            Of a number: ``"refuse"`` (the default) a table with a value outside the edges, or
            ``"clip"``: it goes to the nearer end.
        ``missing``
            ``"refuse"`` (the default) a table with a missing value, or the name of a level for
            them, such as ``"unknown"``. It comes last if it is not among the levels. A list says
            which codes stand for missing values beside an empty cell, and the first of them names
            the level: ``["unknown", -9, 99, "NA"]``. Codes are compared with values before levels
            and edges are, numbers as numbers and the rest as text.
        ``ordered``
            Whether the levels stand in order: true or false, the default. Numbers have an order.

    Raises
    ------
    ValueError
        If it contradicts itself: the message names the variable and the cure.

    Attributes
    ----------
    variables : mapping of str to Variable

    Notes
    -----
    All of it must come from metadata, such as a questionnaire or a codebook: it is published with
    every release, and a level list or an edge that is read off the data tells who is in it.

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
        """Take what every door takes: a schema, a mapping as for the class, or a JSON file of one.

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
        return cls(schema if isinstance(schema, Mapping) else _read(schema))

    @property
    def levels(self) -> dict[str, tuple[str, ...]]:
        """Of each variable, in order."""
        return {name: variable.levels for name, variable in self.variables.items()}

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """Number of levels of each variable, in order."""
        return tuple(len(variable.levels) for variable in self.variables.values())

    @property
    def ordered(self) -> frozenset[str]:
        """Names of the variables whose levels stand in order."""
        return frozenset(name for name, variable in self.variables.items() if variable.ordered)

    @property
    def missing(self) -> dict[str, str]:
        """The level of missing values, of each variable that has one."""
        return {name: v.missing for name, v in self.variables.items() if v.missing}

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """All that it says, defaults too, as JSON can hold it.

        Examples
        --------
        >>> Schema({"smoke": ["no", "yes"], "age": {"edges": [15, 25, 50]}}).to_dict()["age"]
        {'edges': [15.0, 25.0, 50.0], 'outside': 'refuse', 'missing': 'refuse', 'ordered': True}
        """
        return {name: variable.as_schema() for name, variable in self.variables.items()}

    def __reduce__(self):
        return Schema, (dict(self.variables),)


def _read(path) -> dict:
    lists = "map each variable's name to the list of its levels"
    check_file(path, f"schema must be a mapping or the path of a JSON file; {lists}")
    try:
        with open(path, encoding="utf-8-sig") as file:
            content = json.load(file, object_pairs_hook=_named_once)
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text; save it as UTF-8") from None
    except json.JSONDecodeError as error:
        where = f"{path}, line {error.lineno}, column {error.colno}"
        raise ValueError(f"{where}: {error.msg}; correct the JSON there") from None
    if not isinstance(content, dict):
        raise ValueError(f'{path} holds no mapping; {lists}, as in {{"smoke": ["no", "yes"]}}')
    return content


def _named_once(pairs):
    check_once([name for name, _ in pairs], "the schema names", "name it once")
    return dict(pairs)
