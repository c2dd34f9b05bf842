"""Discrete Bayesian networks from BIF files."""

import re
from collections.abc import Iterator, Mapping
from operator import contains, indexOf
from pathlib import Path

import networkx as nx
import numpy as np

from dpcgd.datasets.arguments import check_file
from dpcgd.datasets.bayesian_networks import Network
from dpcgd.datasets.levels import check_levels

__all__ = ["from_bif"]

ROW_SUM_TOLERANCE = 1e-5
"""Published files round their probabilities; a row further than this from 1 is taken for damage."""


def from_bif(path) -> Network:
    """Read a discrete Bayesian network from a BIF file.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    Network
        Rows of the probability tables are scaled to sum to exactly 1.

    Raises
    ------
    ValueError
        If there is no such file, it is compressed or cut short, a table does not fit its variables,
        or a row of probabilities does not sum to 1.

    Notes
    -----
    Reads the grammar of the Interchange Format for Bayesian Networks (1998) as tools write it
    today: ``table`` blocks, rows for parent configurations, ``default`` rows, comments, properties.
    Names and levels may hold blanks and brackets without quotation marks, such as ``(0,10]``, as
    bnlearn and pgmpy write them. A comma outside brackets needs quotation marks.

    Examples
    --------
    >>> from dpcgd.datasets.data_files import data_folder
    >>> network = from_bif(data_folder() / "networks" / "cancer.bif")
    >>> network.parents["Cancer"], network.tables["Smoker"].tolist()
    (('Pollution', 'Smoker'), [0.3, 0.7])
    """
    check_file(path, "path must be the path of a file; give it as text")
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
        levels, parents, tables = _network(
            COMMENT.sub(lambda match: match[1] or " ", text).rstrip()
        )
    except ValueError as error:
        is_text = not isinstance(error, UnicodeDecodeError)
        problem = str(error) if is_text else "it is not UTF-8 text"
        raise ValueError(f"{path}: {problem}; download or export the file again") from None
    return Network(Path(path).stem, levels, parents, tables)


COMMENT = re.compile(r'("[^"]*")|//[^\n]*|/\*.*?\*/', re.DOTALL)

BLOCK = re.compile(
    r"""\s*(?P<kind>[^\s{}()\[\];,|"]+)
    (?P<head>(?:"[^"]*"|[^"{])*)\{
    (?P<body>(?:"[^"]*"|\{(?:"[^"]*"|[^"}])*\}|[^"{}])*)\}\s*""",
    re.VERBOSE,
)
"""A block has a kind, a head and, in braces, statements; the levels of a variable have braces."""

STATEMENT = re.compile(r'\s*((?:"[^"]*"|[^";])*);\s*')
DISCRETE = re.compile(r'type\s+discrete\s*\[([^\]]*)\]\s*\{((?:"[^"]*"|[^"}])*)\}\s*')

BAR = re.compile(r'("[^"]*")|\|')

BY_COMMAS = re.compile(r'(?:"[^"]*"|[^,])+')
BY_COMMAS_OUTSIDE_BRACKETS = re.compile(r'(?:"[^"]*"|[\[(][^\[\]()]*[\])]|[^,])+')
BY_COMMAS_AND_BLANKS = re.compile(r'(?:"[^"]*"|[^\s,"])+')
"""The names in a list may be parted in these ways."""


def _lists(text: str) -> Iterator[list[str]]:
    """The lists of names that a text may stand for, the likeliest first."""
    for pattern in (BY_COMMAS, BY_COMMAS_OUTSIDE_BRACKETS, BY_COMMAS_AND_BLANKS):
        pieces = (piece.strip() for piece in pattern.findall(text))
        yield [_name(piece) for piece in pieces if piece]


def _name(piece: str) -> str:
    return piece.strip('"') if piece.startswith('"') else " ".join(piece.split())


def _network(text: str) -> tuple[Mapping, dict, dict]:
    """Levels, parents and tables of all variables; what is wrong is raised without the path."""
    levels: dict[str, list[str]] = {}
    families, tables, position = {}, {}, 0
    while position < len(text):
        block = BLOCK.match(text, position)
        kind = block["kind"] if block else text[position:].split(maxsplit=1)[0]
        if kind not in ("network", "variable", "probability"):
            raise ValueError(f"no block is called {kind!r}")
        if block is None:
            raise ValueError("the file ends in the middle of a block")
        position = block.end()
        if kind == "variable":
            name = _name(block["head"].strip())
            if name in levels:
                raise ValueError(f"variable {name!r} is declared twice")
            levels[name] = _levels(name, _statements(block["body"]))
        elif kind == "probability":
            child, *parents = _family(block["head"].strip(), levels)
            if child in tables:
                raise ValueError(f"variable {child!r} has two blocks of probabilities")
            families[child] = tuple(parents)
            those = {parent: levels[parent] for parent in parents}
            tables[child] = _table(child, levels[child], those, _statements(block["body"]))
    _check(levels, families)
    return check_levels(levels), families, tables


def _check(levels, families):
    if not levels:
        raise ValueError("the file declares no variable")
    for name in levels:
        if name not in families:
            raise ValueError(f"variable {name!r} has no probabilities (is the file cut short?)")
    arcs = nx.DiGraph((parent, child) for child, parents in families.items() for parent in parents)
    if not nx.is_directed_acyclic_graph(arcs):
        raise ValueError("the parents form a cycle")


def _statements(body: str) -> list[str]:
    """What semicolons outside quotation marks end."""
    if rest := STATEMENT.sub("", body).strip():
        raise ValueError(f"no semicolon follows {rest!r}")
    return [text.strip() for text in STATEMENT.findall(body)]


def _levels(name, statements) -> list[str]:
    for statement in statements:
        if match := DISCRETE.fullmatch(statement):
            size, lists = match[1].strip(), list(_lists(match[2]))
            for levels in lists:
                if size == str(len(levels)):
                    return levels
            raise ValueError(
                f"variable {name!r} announces {size} levels and lists {len(lists[0])} (a comma in "
                "a level needs quotation marks)"
            )
        if statement.startswith("type"):
            kind = statement.split(maxsplit=1)[-1]
            raise ValueError(f"variable {name!r} is {kind}, but only discrete ones can be read")
    raise ValueError(f"variable {name!r} has no discrete levels")


def _family(head, levels) -> list[str]:
    """The child and its parents, which a bar, commas or blanks part."""
    given = head.removeprefix("(").removesuffix(")")
    lists = [names for names in _lists(BAR.sub(lambda bar: bar[1] or ",", given)) if names]
    if not lists:
        raise ValueError("a block of probabilities names no variable")
    for names in lists:
        if all(name in levels for name in names):
            return names
    child, odd = lists[0][0], next(name for name in lists[0] if name not in levels)
    raise ValueError(f"the probabilities of {child!r} mention {odd!r}, which is not declared")


def _table(child, levels, parents: dict[str, list[str]], statements) -> np.ndarray:
    """The rows of a block, each scaled to sum to 1; the child is the last axis."""
    shape = (*map(len, parents.values()), len(levels))
    table, default = np.full(shape, np.nan), np.full(shape[-1], np.nan)
    for statement in statements:
        if statement.startswith("("):
            row, text = _row(child, parents, statement[1:])
            if not np.isnan(table[row]).any():
                raise ValueError(f"a parent configuration of {child!r} has two rows")
            table[row] = _numbers(child, shape[-1], text)
        elif statement.startswith("default"):
            default = _numbers(child, shape[-1], statement.removeprefix("default"))
        elif statement.startswith("table"):  # the child varies slowest, the last parent fastest
            numbers = _numbers(child, table.size, statement.removeprefix("table"))
            table = np.moveaxis(numbers.reshape(shape[-1:] + shape[:-1]), 0, -1).copy()
    table = np.where(np.isnan(table), default, table)
    if np.isnan(table).any():
        raise ValueError(f"some parent configuration of {child!r} has no row of probabilities")
    if (table < 0).any():
        raise ValueError(f"{child!r} has a negative probability")
    total = table.sum(axis=-1, keepdims=True)
    worst = total.flat[np.argmax(np.abs(total - 1))]
    if abs(worst - 1) > ROW_SUM_TOLERANCE:
        raise ValueError(f"a row of {child!r} sums to {worst:.6g} instead of 1")
    return table / total


def _row(child, parents, statement) -> tuple[tuple[int, ...], str]:
    """The position of a parent configuration, and the text of its numbers."""
    given: list[str] = []
    for bracket in re.finditer(r"\)", statement):  # levels may hold brackets too
        for names in _lists(statement[: bracket.start()]):
            given = given if len(given) == len(parents) else names
            if len(names) == len(parents) and all(map(contains, parents.values(), names)):
                return tuple(map(indexOf, parents.values(), names)), statement[bracket.end() :]
    if len(given) != len(parents):
        raise ValueError(f"a row of {child!r} gives {len(given)} levels for {len(parents)} parents")
    pairs = zip(parents, given, strict=True)
    odd = next(f"{name} = {level}" for name, level in pairs if level not in parents[name])
    raise ValueError(f"a row of {child!r} says {odd}, which is not a level")


def _numbers(child, count, text) -> np.ndarray:
    words = text.replace(",", " ").split()
    try:
        values = np.array([float(word) for word in words])
    except ValueError:
        numbers = " ".join(words)
        raise ValueError(f"a probability of {child!r} is not a number: {numbers}") from None
    if len(values) != count:
        raise ValueError(f"a row of {child!r} has {len(values)} probabilities instead of {count}")
    return values
