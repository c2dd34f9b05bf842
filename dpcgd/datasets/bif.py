"""Discrete Bayesian networks from BIF files."""

import os
import re
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

    Examples
    --------
    >>> from dpcgd.datasets.data_files import data_folder
    >>> network = from_bif(data_folder() / "networks" / "cancer.bif")
    >>> network.parents["Cancer"], network.tables["Smoker"].tolist()
    (('Pollution', 'Smoker'), [0.3, 0.7])
    """
    reader = _BifReader(path)
    return Network(Path(path).stem, *reader.read())


class _BifReader:
    """A cursor over the tokens of one BIF file."""

    TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|("[^"]*"|[{}()\[\];,|]|[^\s{}()\[\];,|"]+)', re.DOTALL)

    def __init__(self, path):
        check_file(path, "path must be the path of a file; give it as text")
        self.path = os.fspath(path)
        self.at = 0
        try:
            text = Path(path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            self.fail("it is not UTF-8 text")
        self.tokens = [token for token in self.TOKEN.findall(text) if token]  # no comments

    def fail(self, problem):
        raise ValueError(f"{self.path}: {problem}; download or export the file again")

    def next(self, expected=None):
        if self.at == len(self.tokens):
            self.fail("the file ends in the middle of a block")
        token = self.tokens[self.at]
        self.at += 1
        if expected is not None and token != expected:
            self.fail(f"expected {expected!r} but found {token!r}")
        return token.strip('"')

    def until(self, end):
        """The tokens up to `end`, without commas."""
        found = []
        while (token := self.next()) != end:
            if token != ",":
                found.append(token)
        return found

    def skip_block(self):
        while self.next() != "{":
            pass
        while self.next() != "}":
            pass

    def read(self):
        levels, parents, tables = {}, {}, {}
        while self.at < len(self.tokens):
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
        name = self.next()
        self.next("{")
        levels = ()
        while (word := self.next()) != "}":
            if word == "type":
                if (kind := self.next()) != "discrete":
                    self.fail(f"variable {name!r} is {kind}, but only discrete ones can be read")
                self.next("[")
                size = self.until("]")
                self.next("{")
                levels = tuple(self.until("}"))
                if size != [str(len(levels))]:
                    self.fail(f"variable {name!r} announces {size} levels and lists {len(levels)}")
                self.next(";")
            else:
                self.until(";")
        if not levels:
            self.fail(f"variable {name!r} has no discrete levels")
        return name, levels

    def probability(self, levels):
        self.next("(")
        child, *parents = [token for token in self.until(")") if token != "|"]
        for name in (child, *parents):
            if name not in levels:
                self.fail(f"the probabilities of {child!r} mention {name!r}, which is not declared")
        shape = tuple(len(levels[name]) for name in (*parents, child))
        table, default = np.full(shape, np.nan), np.nan
        self.next("{")
        while (word := self.next()) != "}":
            if word == "table":
                table = self.flat_table(child, shape)
            elif word == "default":
                default = self.numbers(child, shape[-1])
            elif word == "(":
                row = self.position(child, parents, self.until(")"), levels)
                if not np.isnan(table[row]).any():
                    self.fail(f"a parent configuration of {child!r} has two rows")
                table[row] = self.numbers(child, shape[-1])
            else:
                self.until(";")
        table = np.where(np.isnan(table), default, table)
        return child, tuple(parents), self.normalised(child, table)

    def position(self, child, parents, given, levels):
        if len(given) != len(parents):
            self.fail(f"a row of {child!r} gives {len(given)} levels for {len(parents)} parents")
        for parent, level in zip(parents, given, strict=True):
            if level not in levels[parent]:
                self.fail(f"a row of {child!r} says {parent} = {level}, which is not a level")
        return tuple(levels[p].index(level) for p, level in zip(parents, given, strict=True))

    def numbers(self, child, count):
        words = self.until(";")
        try:
            values = np.array([float(word) for word in words])
        except ValueError:
            self.fail(f"a probability of {child!r} is not a number: {' '.join(words)}")
        if len(values) != count:
            self.fail(f"a row of {child!r} has {len(values)} probabilities instead of {count}")
        return values

    def flat_table(self, child, shape):
        """A ``table`` entry: the child's level varies slowest, the last parent's fastest."""
        values = self.numbers(child, int(np.prod(shape)))
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
