"""Discrete Bayesian networks from BIF files."""

import os
import re
from collections.abc import Iterator
from operator import contains, indexOf
from pathlib import Path
from typing import NoReturn

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
    reader = _BifReader(path)
    return Network(Path(path).stem, *reader.read())


COMMENT = re.compile(r'("[^"]*")|//[^\n]*|/\*.*?\*/', re.DOTALL)

WORD = re.compile(r'\s*("[^"]*"|[{}()\[\];,|]|[^\s{}()\[\];,|"]+)')

BAR = re.compile(r'("[^"]*")|\|')

BY_COMMAS = re.compile(r'(?:"[^"]*"|[^,])+')
BY_COMMAS_OUTSIDE_BRACKETS = re.compile(r'(?:"[^"]*"|[\[(][^\[\]()]*[\])]|[^,])+')
BY_COMMAS_AND_BLANKS = re.compile(r'(?:"[^"]*"|[^\s,"])+')
"""How the names in a list may be parted."""


def _lists(text: str) -> Iterator[list[str]]:
    """The lists of names that a text may stand for, the likeliest first."""
    for pattern in (BY_COMMAS, BY_COMMAS_OUTSIDE_BRACKETS, BY_COMMAS_AND_BLANKS):
        pieces = (piece.strip() for piece in pattern.findall(text))
        yield [_name(piece) for piece in pieces if piece]


def _name(piece: str) -> str:
    if piece.startswith('"'):
        return piece.strip('"')
    return " ".join(piece.split())


class _BifReader:
    """A cursor over the text of one BIF file."""

    def __init__(self, path):
        check_file(path, "path must be the path of a file; give it as text")
        self.path = os.fspath(path)
        self.at = 0
        try:
            text = Path(path).read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:
            self.fail("it is not UTF-8 text")
        self.text = COMMENT.sub(lambda match: match[1] or " ", text).rstrip()

    def fail(self, problem) -> NoReturn:
        raise ValueError(f"{self.path}: {problem}; download or export the file again")

    def next(self, expected=None):
        """The next word or mark."""
        match = WORD.match(self.text, self.at)
        if match is None:
            self.fail("the file ends in the middle of a block")
        self.at = match.end()
        if expected is not None and match[1] != expected:
            self.fail(f"expected {expected!r} but found {match[1]!r}")
        return match[1].strip('"')

    def until(self, end):
        """The text up to a mark that stands outside quotation marks."""
        match = re.compile(rf'((?:"[^"]*"|[^"{re.escape(end)}])*){re.escape(end)}').match(
            self.text, self.at
        )
        if match is None:
            self.fail("the file ends in the middle of a block")
        self.at = match.end()
        return match[1].strip()

    def skip_block(self):
        self.until("{")
        self.until("}")

    def read(self):
        levels, parents, tables = {}, {}, {}
        while self.at < len(self.text):
            block = self.next()
            if block == "network":
                self.skip_block()
            elif block == "variable":
                name, of = self.variable()
                if name in levels:
                    self.fail(f"variable {name!r} is declared twice")
                levels[name] = of
            elif block == "probability":
                child, of, table = self.probability(levels)
                if child in tables:
                    self.fail(f"variable {child!r} has two blocks of probabilities")
                parents[child], tables[child] = of, table
            else:
                self.fail(f"no block is called {block!r}")
        return self.check(levels, parents, tables)

    def check(self, levels, parents, tables):
        if not levels:
            self.fail("the file declares no variable")
        missing = [name for name in levels if name not in tables]
        if missing:
            self.fail(f"variable {missing[0]!r} has no probabilities (is the file cut short?)")
        arcs = nx.DiGraph((p, child) for child, of in parents.items() for p in of)
        if not nx.is_directed_acyclic_graph(arcs):
            self.fail("the parents form a cycle")
        return check_levels(levels), parents, tables

    def variable(self):
        name = _name(self.until("{"))
        levels = ()
        while (word := self.next()) != "}":
            if word == "type":
                if (kind := self.next()) != "discrete":
                    self.fail(f"variable {name!r} is {kind}, but only discrete ones can be read")
                self.next("[")
                size = self.until("]")
                self.next("{")
                levels = self.levels(name, size, self.until("}"))
                self.next(";")
            else:
                self.until(";")
        if not levels:
            self.fail(f"variable {name!r} has no discrete levels")
        return name, levels

    def levels(self, name, size, text):
        lists = list(_lists(text))
        for levels in lists:
            if size == str(len(levels)):
                return tuple(levels)
        self.fail(
            f"variable {name!r} announces {size} levels and lists {len(lists[0])} (a comma in a "
            "level needs quotation marks)"
        )

    def probability(self, levels):
        child, *parents = self.family(levels)
        shape = tuple(len(levels[name]) for name in (*parents, child))
        table, default = np.full(shape, np.nan), np.nan
        while (word := self.next()) != "}":
            if word == "table":
                table = self.flat_table(child, shape)
            elif word == "default":
                default = self.numbers(child, shape[-1], self.until(";"))
            elif word == "(":
                row, values = self.row(child, {name: levels[name] for name in parents})
                if not np.isnan(table[row]).any():
                    self.fail(f"a parent configuration of {child!r} has two rows")
                table[row] = self.numbers(child, shape[-1], values)
            else:
                self.until(";")
        table = np.where(np.isnan(table), default, table)
        return child, tuple(parents), self.normalised(child, table)

    def family(self, levels):
        """The child and its parents, which a bar, commas or blanks part."""
        self.next("(")
        given = self.until("{").removesuffix(")")
        lists = [names for names in _lists(BAR.sub(lambda bar: bar[1] or ",", given)) if names]
        for names in lists:
            if all(name in levels for name in names):
                return names
        if not lists:
            self.fail("a block of probabilities names no variable")
        child, odd = lists[0][0], next(name for name in lists[0] if name not in levels)
        self.fail(f"the probabilities of {child!r} mention {odd!r}, which is not declared")

    def row(self, child, parents):
        """The position of a parent configuration, and the text of its numbers."""
        text = self.until(";")
        for bracket in re.finditer(r"\)", text):  # levels may hold brackets too
            for given in _lists(text[: bracket.start()]):
                if len(given) == len(parents) and all(map(contains, parents.values(), given)):
                    position = tuple(map(indexOf, parents.values(), given))
                    return position, text[bracket.end() :]
        self.fail(self.wrong_row(child, parents, text.rpartition(")")[0]))

    def wrong_row(self, child, parents, text):
        lists = list(_lists(text))
        given = next((names for names in lists if len(names) == len(parents)), lists[0])
        for (parent, levels), level in zip(parents.items(), given, strict=False):
            if len(given) == len(parents) and level not in levels:
                return f"a row of {child!r} says {parent} = {level}, which is not a level"
        return f"a row of {child!r} gives {len(given)} levels for {len(parents)} parents"

    def numbers(self, child, count, text):
        words = text.replace(",", " ").split()
        try:
            values = np.array([float(word) for word in words])
        except ValueError:
            self.fail(f"a probability of {child!r} is not a number: {' '.join(words)}")
        if len(values) != count:
            self.fail(f"a row of {child!r} has {len(values)} probabilities instead of {count}")
        return values

    def flat_table(self, child, shape):
        """A ``table`` entry: the child's level varies slowest, the last parent's fastest."""
        values = self.numbers(child, int(np.prod(shape)), self.until(";"))
        return np.moveaxis(values.reshape(shape[-1:] + shape[:-1]), 0, -1).copy()

    def normalised(self, child, table):
        if np.isnan(table).any():
            self.fail(f"some parent configuration of {child!r} has no row of probabilities")
        if (table < 0).any():
            self.fail(f"{child!r} has a negative probability")
        total = table.sum(axis=-1, keepdims=True)
        worst = total.flat[np.argmax(np.abs(total - 1))]
        if abs(worst - 1) > ROW_SUM_TOLERANCE:
            self.fail(f"a row of {child!r} sums to {worst:.6g} instead of 1")
        return table / total
