"""Discrete Bayesian networks: their tables, samples from them, BIF files, the papers' networks."""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import contains, indexOf
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

from dpcgd.datasets.arguments import check_file, check_generator, check_whole, data_folder
from dpcgd.datasets.counts import cell_numbers
from dpcgd.datasets.dataset import Dataset
from dpcgd.datasets.variable import check_levels

__all__ = ["NETWORKS", "Network", "from_bif", "load"]

NETWORKS = ("earthquake", "cancer", "asia", "survey", "sachs", "child", "alarm")
"""The networks of the papers, small to large."""

PLAIN = re.compile(r"[\w.-]+")
"""Pattern of names that need no quotation marks in a BIF file."""

ROW_SUM_TOLERANCE = 1e-5
"""Published probabilities are rounded; a row whose sum is further than this from 1 is refused."""


@dataclass(frozen=True, eq=False)
class Network:
    """A discrete Bayesian network: its graph and its conditional probability tables.

    Parameters
    ----------
    name : str
    levels : mapping of str to sequence of str
        The levels of every variable, in file order.
    parents : mapping of str to tuple of str
    tables : mapping of str to array
        ``tables[v]`` has one axis for each parent of v, in the order of ``parents[v]``. Its last
        axis is over the levels of v, and sums to 1.
    """

    name: str
    levels: Mapping[str, Sequence[str]]
    parents: Mapping[str, tuple[str, ...]]
    tables: Mapping[str, np.ndarray] = field(repr=False)

    @property
    def graph(self) -> nx.DiGraph:
        """The causal graph, with an arc from each parent to its child."""
        graph = nx.DiGraph()
        graph.add_nodes_from(self.levels)
        graph.add_edges_from((p, v) for v, parents in self.parents.items() for p in parents)
        return graph

    def sample(self, n: int, *, rng: np.random.Generator) -> Dataset:
        """Draw n independent records, parents before children.

        Raises
        ------
        ValueError
            If n is no whole number of 1 or more, or rng no Generator.

        Examples
        --------
        >>> from dpcgd import load
        >>> load("asia", n=5, rng=np.random.default_rng(0)).codes.shape
        (5, 8)
        """
        check_whole("n", n, 1)
        check_generator(rng)
        column = {variable: j for j, variable in enumerate(self.levels)}
        size = max(map(len, self.levels.values()))
        codes = np.zeros((n, len(column)), np.min_scalar_type(size - 1), order="F")
        for variable in nx.topological_sort(self.graph):
            parents = self.parents[variable]
            sizes = [len(self.levels[parent]) for parent in parents]
            row = cell_numbers((codes[:, column[parent]] for parent in parents), sizes, n)
            table = self.tables[variable].reshape(-1, len(self.levels[variable]))
            below, draw = np.cumsum(table, axis=1), rng.random(n)
            for level in range(table.shape[1] - 1):
                codes[:, column[variable]] += draw >= below[row, level]
        return Dataset(codes, self.levels, truth=nx.freeze(self.graph), name=self.name)

    def to_bif(self, errors: Mapping[str, np.ndarray] | None = None) -> str:
        """The network as text of a BIF file; :func:`from_bif`, pgmpy and bnlearn read it.

        Names and levels that are no plain words get quotation marks. pgmpy reads most of these;
        :meth:`to_pgmpy` accepts all.

        Parameters
        ----------
        errors : mapping of str to array, optional
            Standard errors, shaped like the tables; they are comments beside each row.

        Raises
        ------
        ValueError
            If a name or a level holds a quotation mark or a line break.

        Examples
        --------
        >>> levels, even = {"coin": ("heads", "tails")}, {"coin": np.full(2, 0.5)}
        >>> coin = Network("toss", levels, {"coin": ()}, even)
        >>> print(coin.to_bif({"coin": np.full(2, 0.01)}))
        network toss {
        }
        variable coin {
          type discrete [ 2 ] { heads, tails };
        }
        probability ( coin ) {
          table 0.5, 0.5; // standard errors 0.01, 0.01
        }
        """
        lines = [f"network {_quoted(self.name)} {{", "}"]
        for name, levels in self.levels.items():
            kind = f"  type discrete [ {len(levels)} ] {{ {', '.join(map(_quoted, levels))} }};"
            lines += [f"variable {_quoted(name)} {{", kind, "}"]
        for child, parents in self.parents.items():
            given = " | " * bool(parents) + ", ".join(map(_quoted, parents))
            lines.append(f"probability ( {_quoted(child)}{given} ) {{")
            for row in np.ndindex(self.tables[child].shape[:-1]):
                own = (_quoted(self.levels[u][i]) for u, i in zip(parents, row, strict=True))
                head = f"({', '.join(own)})" if parents else "table"
                line = f"  {head} {', '.join(map(repr, self.tables[child][row].tolist()))};"
                if errors is not None:
                    numbers = ", ".join(f"{error:.2g}" for error in errors[child][row])
                    line += f" // standard errors {numbers}"
                lines.append(line)
            lines.append("}")
        return "\n".join(lines) + "\n"

    def to_pgmpy(self, errors: Mapping[str, np.ndarray] | None = None) -> Any:
        """The network as a ``DiscreteBayesianNetwork`` of pgmpy.

        Parameters
        ----------
        errors : mapping of str to array, optional
            Standard errors, shaped like the tables. They are the attribute ``standard_errors`` of a
            variable's node, shaped like the values of its ``TabularCPD``.

        Raises
        ------
        ImportError
            If pgmpy is not installed.
        """
        try:
            from pgmpy.factors.discrete import TabularCPD
            from pgmpy.models import DiscreteBayesianNetwork
        except ImportError:
            raise ImportError("this needs pgmpy; pip install pgmpy") from None
        model = DiscreteBayesianNetwork()
        model.add_nodes_from(self.levels)
        model.add_edges_from(self.graph.edges)
        for child, parents in self.parents.items():
            levels = {name: list(self.levels[name]) for name in (child, *parents)}
            own, *sizes = map(len, levels.values())
            values = self.tables[child].reshape(-1, own).T
            model.add_cpds(TabularCPD(child, own, values, [*parents], sizes, state_names=levels))
            if errors is not None:
                model.nodes[child]["standard_errors"] = errors[child].reshape(-1, own).T
        return model


def load(name: str, n: int = 100_000, *, rng: np.random.Generator) -> Dataset:
    """Sample records from one of the papers' networks, or from your own network.

    Parameters
    ----------
    name : str
        One of `NETWORKS`, or the path of a file that ends in ``.bif``.
    n : int
        Number of records.
    rng : numpy.random.Generator
        Source of the sample; the same state gives the same records.

    Returns
    -------
    Dataset
        The records, with their public levels and the true graph.

    Raises
    ------
    ValueError
        If there is no such network (the message suggests near names) or file, the file is no
        network, n is no whole number of 1 or more, or rng no Generator.

    Examples
    --------
    >>> load("asia", n=1000, rng=np.random.default_rng(0))
    Dataset('asia', n=1,000, d=8, 8 true edges)
    """
    if str(name).endswith(".bif") and Path(name).is_file():
        return from_bif(name).sample(n, rng=rng)
    if name not in NETWORKS:
        near = difflib.get_close_matches(str(name).lower(), NETWORKS, n=2, cutoff=0.5) or NETWORKS
        problem = f"no data set is called {name!r}; did you mean {' or '.join(near)}?"
        raise ValueError(f"{problem} (a network of your own is named by the path of its .bif file)")
    return from_bif(data_folder() / "networks" / f"{name}.bif").sample(n, rng=rng)


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
    >>> from dpcgd.datasets.arguments import data_folder
    >>> network = from_bif(data_folder() / "networks" / "cancer.bif")
    >>> network.parents["Cancer"], network.tables["Smoker"].tolist()
    (('Pollution', 'Smoker'), [0.3, 0.7])
    """
    check_file(path, "path must be the path of a file; give it as text")
    try:
        text = COMMENT.sub(lambda match: match[1] or " ", Path(path).read_text("utf-8-sig"))
        return _network(Path(path).stem, text.rstrip())
    except ValueError as error:
        is_text = not isinstance(error, UnicodeDecodeError)
        problem = str(error) if is_text else "it is not UTF-8 text"
        raise ValueError(f"{path}: {problem}; download or export the file again") from None


def _quoted(name: str) -> str:
    """A name in the syntax of BIF files, with quotation marks if needed."""
    if '"' in name or len(name.splitlines()) > 1:
        raise ValueError(f"{name!r} has a mark that no BIF file can hold; name it otherwise")
    return name if PLAIN.fullmatch(name) else f'"{name}"'


COMMENT = re.compile(r'("[^"]*")|//[^\n]*|/\*.*?\*/', re.DOTALL)

BLOCK = re.compile(
    r"""\s*(?P<kind>[^\s{}()\[\];,|"]+)
    (?P<head>(?:"[^"]*"|[^"{])*)\{
    (?P<body>(?:"[^"]*"|\{(?:"[^"]*"|[^"}])*\}|[^"{}])*)\}\s*""",
    re.VERBOSE,
)
"""A block: a kind, a head and, in braces, statements. The levels of a variable have braces too."""

STATEMENT = re.compile(r'\s*((?:"[^"]*"|[^";])*);\s*')
DISCRETE = re.compile(r'type\s+discrete\s*\[([^\]]*)\]\s*\{((?:"[^"]*"|[^"}])*)\}\s*')

BAR = re.compile(r'("[^"]*")|\|')

BY_COMMAS = re.compile(r'(?:"[^"]*"|[^,])+')
BY_COMMAS_OUTSIDE_BRACKETS = re.compile(r'(?:"[^"]*"|[\[(][^\[\]()]*[\])]|[^,])+')
BY_COMMAS_AND_BLANKS = re.compile(r'(?:"[^"]*"|[^\s,"])+')
"""Possible separators of the names in a list."""


def _lists(text: str) -> Iterator[list[str]]:
    """The possible lists of names in a text, the likeliest first."""
    for pattern in (BY_COMMAS, BY_COMMAS_OUTSIDE_BRACKETS, BY_COMMAS_AND_BLANKS):
        pieces = (piece.strip() for piece in pattern.findall(text))
        yield [_name(piece) for piece in pieces if piece]


def _name(piece: str) -> str:
    return piece.strip('"') if piece.startswith('"') else " ".join(piece.split())


def _network(name, text) -> Network:
    """The network in the text of a file; errors are raised without the path."""
    levels: dict[str, tuple[str, ...]] = {}
    families, tables, position = {}, {}, 0
    while position < len(text):
        block = BLOCK.match(text, position)
        kind = block["kind"] if block else text[position:].split(maxsplit=1)[0]
        if kind not in ("network", "variable", "probability"):
            raise ValueError(f"no block is called {kind!r}")
        if block is None:
            raise ValueError("the file ends in the middle of a block")
        position = block.end()
        head, body = block["head"].strip(), block["body"]
        if kind == "variable":
            if _name(head) in levels:
                raise ValueError(f"variable {_name(head)!r} is declared twice")
            levels[_name(head)] = _levels(_name(head), _statements(body))
        elif kind == "probability":
            child, *parents = _family(head, levels)
            if child in tables:
                raise ValueError(f"variable {child!r} has two blocks of probabilities")
            families[child] = tuple(parents)
            those = {parent: levels[parent] for parent in parents}
            tables[child] = _table(child, levels[child], those, _statements(body))
    if missing := [variable for variable in levels if variable not in tables]:
        raise ValueError(f"variable {missing[0]!r} has no probabilities (is the file cut short?)")
    network = Network(name, check_levels(levels), families, tables)
    if not nx.is_directed_acyclic_graph(network.graph):
        raise ValueError("the parents form a cycle")
    return network


def _statements(body: str) -> list[str]:
    """The statements of a text, which end with semicolons outside quotation marks."""
    if rest := STATEMENT.sub("", body).strip():
        raise ValueError(f"no semicolon follows {rest!r}")
    return [text.strip() for text in STATEMENT.findall(body)]


def _levels(name, statements) -> tuple[str, ...]:
    kind = next((text for text in statements if text.startswith("type")), "type without")
    match = DISCRETE.fullmatch(kind)
    if match is None:
        said = kind.split(maxsplit=1)[-1]
        raise ValueError(f"variable {name!r} is {said} discrete levels; only such can be read")
    size, lists = match[1].strip(), list(_lists(match[2]))
    for levels in lists:
        if size == str(len(levels)):
            return tuple(levels)
    problem = f"variable {name!r} announces {size} levels and lists {len(lists[0])}"
    raise ValueError(f"{problem} (a comma in a level needs quotation marks)")


def _family(head, levels) -> list[str]:
    """The child and its parents, separated by a bar, commas or blanks."""
    given = head.removeprefix("(").removesuffix(")")
    lists = [names for names in _lists(BAR.sub(lambda bar: bar[1] or ",", given)) if names]
    if not lists:
        raise ValueError("a block of probabilities names no variable")
    for names in lists:
        if all(name in levels for name in names):
            return names
    child, odd = lists[0][0], next(name for name in lists[0] if name not in levels)
    raise ValueError(f"the probabilities of {child!r} mention {odd!r}, which is not declared")


def _table(child, levels, parents: dict[str, tuple[str, ...]], statements) -> np.ndarray:
    """The probabilities of a block, each row scaled to sum to 1; the child is the last axis."""
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
        raise ValueError(f"a probability of {child!r} is not a number: {' '.join(words)}") from None
    if len(values) != count:
        raise ValueError(f"a row of {child!r} has {len(values)} probabilities instead of {count}")
    return values
