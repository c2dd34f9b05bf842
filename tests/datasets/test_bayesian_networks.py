"""The seven networks, what is sampled from them, and the BIF files that are refused."""

import gzip
import importlib.metadata
import itertools
import re
import runpy
import shutil
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import networkx as nx
import numpy as np
import people
import pytest
from scipy.stats import binom

from dpcgd.datasets.bayesian_networks import NETWORKS, Network, from_bif, load

pytestmark = pytest.mark.filterwarnings("ignore")  # of pgmpy

DATA = Path(__file__).parents[2] / "data"
SMALL = ("earthquake", "cancer", "asia", "survey", "sachs")
SIZES = {"earthquake": (5, 4), "cancer": (5, 4), "asia": (8, 8), "survey": (6, 6)}
SIZES |= {"sachs": (11, 17), "child": (20, 25), "alarm": (37, 46)}

# A correct count is called wrong with probability at most CELL_ALARM (exact binomial tails). Fewer
# than 1,000 cells are compared in each network (asserted below), so the false-alarm rate of a run
# is below 7 * 1000 * 1e-11 = 7e-8.
CELL_ALARM = 1e-11

TWO = """network toy { }
variable A { type discrete [ 2 ] { x, y }; }
variable B { type discrete [ 3 ] { u, v, w }; }
probability ( A ) { table 0.2, 0.8; }
probability ( B | A ) {
  (x) 0.1, 0.2, 0.7;
  (y) 0.3, 0.3, 0.4;
}
"""


def parse(folder, text):
    file = folder / "toy.bif"
    file.write_text(text, encoding="utf-8")
    return from_bif(file)


def changed(old, new, text=TWO):
    assert old in text
    return text.replace(old, new, 1)


def refused(folder, text, problem=""):
    people.refused(f"^{folder / 'toy.bif'}: .*{problem}.* again$", parse, folder, text)


def same(one, two):
    tables = all(np.array_equal(one.tables[v], two.tables[v]) for v in one.levels)
    return tables and (dict(one.levels), one.parents) == (dict(two.levels), two.parents)


def reads_like_two(folder, text):
    return same(parse(folder, text), parse(folder, TWO))


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_has_its_published_size(name):
    data = load(name, 10, rng=np.random.default_rng(0))
    assert (data.d, data.truth.number_of_edges(), data.name) == (*SIZES[name], name)
    assert nx.is_directed_acyclic_graph(data.truth)
    assert tuple(data.truth) == data.variables


needs_pgmpy = pytest.mark.skipif(find_spec("pgmpy") is None, reason="pgmpy is in the book extra")


@needs_pgmpy
def test_the_script_writes_what_is_on_file_and_notices_a_change(tmp_path, monkeypatch, capsys):
    shutil.copy(DATA / "make_networks.py", tmp_path)
    monkeypatch.syspath_prepend(DATA)

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["make_networks.py", *arguments])
        runpy.run_path(str(tmp_path / "make_networks.py"), run_name="__main__")
        return capsys.readouterr().out

    run()
    for file in (DATA / "networks").iterdir():
        assert (tmp_path / "networks" / file.name).read_bytes() == file.read_bytes()
    said = [line.split() for line in run("--check").splitlines()]
    assert {name: (int(d), int(arcs)) for name, d, _, arcs, _ in said} == SIZES
    victim = tmp_path / "networks" / "cancer.bif"
    victim.write_bytes(victim.read_bytes().replace(b"9", b"8", 1))
    people.refused("differs from its source", run, "--check", kind=SystemExit)


@pytest.fixture(scope="module")
def peer():
    """pgmpy's reading of a network: its own parser, its own tables."""
    BIFReader = pytest.importorskip("pgmpy.readwrite").BIFReader  # takes seconds

    return cache(lambda name: BIFReader(str(DATA / "networks" / f"{name}.bif")).get_model())


def contraction(model):
    """Exact marginals as one tensor contraction."""
    number = {variable: i for i, variable in enumerate(model.nodes)}
    tables = ((cpd.values, [number[v] for v in cpd.variables]) for cpd in model.get_cpds())
    factors = list(itertools.chain.from_iterable(tables))
    return lambda names: np.einsum(*factors, [number[v] for v in names], optimize="greedy")


def compared(data, marginal, variables):
    """Number of cells of one exact marginal, each compared with its count in the sample."""
    chance = np.clip(marginal(variables), 0, 1)
    counts = np.zeros(chance.shape, int)
    np.add.at(counts, tuple(data.codes[:, data.variables.index(v)] for v in variables), 1)
    below, above = binom.cdf(counts, data.n, chance), binom.sf(counts - 1, data.n, chance)
    worst = np.minimum(below, above).min()
    assert worst > CELL_ALARM / 2, f"{variables}: {counts / data.n} sampled, {chance} exact"
    return counts.size


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_a_sample_has_the_exact_marginals_of_its_network(peer, name):
    data = load(name, 100_000, rng=np.random.default_rng(NETWORKS.index(name)))
    model = peer(name)
    assert set(data.truth.edges) == set(model.edges)
    for cpd in model.get_cpds():
        assert tuple(cpd.state_names[cpd.variable]) == data.levels[cpd.variable]
    marginal = contraction(model)
    pairs = itertools.combinations(data.variables, 2) if name in SMALL else data.truth.edges
    cells = sum(compared(data, marginal, [v]) for v in data.variables)
    cells += sum(compared(data, marginal, pair) for pair in pairs)
    assert cells < 1000


def test_a_variable_with_many_parent_configurations_is_drawn_from_its_own_row():
    equal = np.stack([1 - np.eye(20), np.eye(20)], axis=-1)
    tables = {"a": np.full(20, 1 / 20), "b": np.full(20, 1 / 20), "c": equal}
    levels = {v: tuple(map(str, range(k))) for v, k in {"c": 2, "a": 20, "b": 20}.items()}
    network = Network("toy", levels, {"a": (), "b": (), "c": ("a", "b")}, tables)
    c, a, b = network.sample(5000, rng=np.random.default_rng(0)).codes.T
    assert 0 < c.sum() < 5000
    np.testing.assert_array_equal(c, a == b)


ANY = " or ".join(NETWORKS)
UNKNOWN = [("asai", "asia"), ("ALARM", "alarm"), ("sachs.bif", "sachs"), ("zzz", ANY)]


@pytest.mark.parametrize(("wrong", "near"), UNKNOWN)
def test_an_unknown_name_suggests_near_ones(wrong, near):
    cure = rf"no data set is called '{wrong}'; did you mean {near}.* the path of its \.bif file"
    people.refused(cure, load, wrong, 10, rng=np.random.default_rng(0))


def test_a_network_of_ones_own_is_named_by_its_file(tmp_path):
    shutil.copy(DATA / "networks" / "asia.bif", tmp_path / "mine.bif")
    mine = load(str(tmp_path / "mine.bif"), 50, rng=np.random.default_rng(1))
    assert mine.name == "mine"
    assert (mine.codes == load("asia", 50, rng=np.random.default_rng(1)).codes).all()


def test_a_file_cut_anywhere_but_in_the_white_space_at_its_end_is_refused(tmp_path):
    text = (DATA / "networks" / "cancer.bif").read_text()
    for end in range(len(text.rstrip())):
        refused(tmp_path, text[:end])
    assert same(parse(tmp_path, text.rstrip()), parse(tmp_path, text))


DAMAGED = [
    ("0.1, 0.2, 0.7", "0.1, 0.2, 0.6", "a row of 'B' sums to 0.9 instead of 1"),
    ("0.2, 0.8", "0.2, 0.80002", "a row of 'A' sums to 1.00002 instead of 1"),
    ("[ 3 ] { u, v, w }", "[ 3 ] { u, v }", "announces .* levels and lists 2"),
    ("0.1, 0.2, 0.7", "0.3, 0.7", "a row of 'B' has 2 probabilities instead of 3"),
    ("( B | A )", "( B | C )", "mention 'C', which is not declared"),
    ("(y) 0.3, 0.3, 0.4;", "", "some parent configuration of 'B' has no row"),
    ("(y)", "(z)", "says A = z, which is not a level"),
    ("(y)", "(y, y)", "gives 2 levels for 1 parents"),
    ("0.2, 0.7", "0.2, often", "a probability of 'B' is not a number"),
    ("0.2, 0.7", "nan, 0.7", "'B'"),
    ("0.1, 0.2, 0.7", "-0.1, 0.4, 0.7", "'B' has a negative probability"),
    ("discrete [ 2 ] { x, y }", "continuous", "'A' is continuous"),
    ("type discrete [ 2 ] { x, y };", "", "'A' is without discrete levels"),
    ("probability ( A ) { table 0.2, 0.8; }", "", "'A' has no probabilities"),
    ("variable B", "variable A", "'A' is declared twice"),
    ("network toy", "net toy", "no block is called 'net'"),
    ("( A ) { table", "( A | A ) { default", "form a cycle"),
    ("( A ) { table", "( A | B ) { default", "form a cycle"),
    ("(x) 0.1, 0.2, 0.7;", "(x) 0.1, 0.2, 0.7", "not a number"),
    ("(y) 0.3, 0.3, 0.4;", "(y) 0.3, 0.3, 0.4", "no semicolon"),
    ("(y) 0.3", "(x) 0.2, 0.2, 0.6;\n  (y) 0.3", "'B' has two rows"),
    ("{ x, y }", "{ a, b, c, d }", "announces 2 levels .*a comma in a level needs quotation"),
    (TWO, TWO + "}", "no block"),
    (TWO, TWO + "probability ( A ) {", "ends in the middle"),
    (TWO, TWO + "probability ( A ) { table 0.5, 0.5; }", "'A' has two blocks"),
    (TWO, "", "at least two variables, this has 0"),
    ("{ u, v, w }", "{ u, v, u }", "'B' lists level 'u' twice; list each level once"),
]


@pytest.mark.parametrize(("old", "new", "problem"), DAMAGED)
def test_a_damaged_file_is_refused(tmp_path, old, new, problem):
    refused(tmp_path, changed(old, new), problem)


def test_rounded_rows_are_scaled_to_sum_to_one(tmp_path):
    table = parse(tmp_path, changed("0.1, 0.2, 0.7", "0.333333, 0.333333, 0.333333")).tables["B"]
    assert table[0].tolist() == pytest.approx([1 / 3] * 3, rel=1e-15)
    assert table[1].tolist() == [0.3, 0.3, 0.4]


INTERVALS = ["(0,10]", "(10,20]"], ["[0,5)", "5 or more", "not said"]
"""Levels that bnlearn writes as they are: its discretize makes such intervals."""


def with_levels(first, second, text=TWO):
    """Two variables with other levels, without quotation marks."""
    for old, new in zip("xyuvw", first + second, strict=True):
        text = re.sub(rf"(?<=[{{(,] ){old}\b|(?<=\(){old}(?=\))", lambda _, new=new: new, text)
    return text


WRITTEN_PLAINLY = [
    INTERVALS,
    (["(0.0, 10.0]", "(10.0, inf]"], ["-1", "1e3", "a.b"]),
    (["[0,5)", "[5,9]"], ["x (y, z)", "x)", "(x"]),
    (["two words", "a|b"], ["über", "50%", "<=3"]),
    (["(0_10]", "(10_20]"], ["a/b", "c=d", "e'f"]),
]


@pytest.mark.parametrize(("first", "second"), WRITTEN_PLAINLY)
def test_levels_may_hold_blanks_and_brackets_without_quotation_marks(tmp_path, first, second):
    network = parse(tmp_path, with_levels(first, second))
    assert dict(network.levels) == {"A": tuple(first), "B": tuple(second)}
    assert network.tables["B"].tolist() == parse(tmp_path, TWO).tables["B"].tolist()


def test_several_parents_may_hold_brackets(tmp_path):
    child = """variable our child { type discrete [ 2 ] { no, yes }; }
    probability ( our child | A, B ) {
      default 0.5, 0.5;
      ((10,20], [0,5)) 0.25, 0.75;
      ((0,10], 5 or more) 0.125, 0.875; }"""
    network = parse(tmp_path, with_levels(*INTERVALS) + child)
    assert network.parents["our child"] == ("A", "B")
    table = network.tables["our child"]
    assert (table[1, 0, 0], table[0, 1, 0], table[0, 0, 0]) == (0.25, 0.125, 0.5)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_byte_order_mark_is_no_part_of_the_file(tmp_path, end):
    (tmp_path / "toy.bif").write_bytes(("\ufeff" + TWO).replace("\n", end).encode())
    assert same(from_bif(tmp_path / "toy.bif"), parse(tmp_path, TWO))


@needs_pgmpy
@pytest.mark.parametrize(("first", "second"), [INTERVALS, (["a b", "(c]"], ["[0,5)", "d e", "f"])])
def test_what_pgmpy_writes_is_read(tmp_path, first, second):
    from pgmpy.factors.discrete import TabularCPD
    from pgmpy.models import DiscreteBayesianNetwork
    from pgmpy.readwrite import BIFWriter

    model = DiscreteBayesianNetwork([("A", "B")])
    states, rows = {"A": first, "B": second}, [[0.1, 0.3], [0.2, 0.3], [0.7, 0.4]]
    a = TabularCPD("A", 2, [[0.2], [0.8]], state_names={"A": first})
    model.add_cpds(a, TabularCPD("B", 3, rows, ["A"], [2], state_names=states))
    BIFWriter(model).write(str(tmp_path / "toy.bif"))
    network = from_bif(tmp_path / "toy.bif")
    assert {v: list(levels) for v, levels in network.levels.items()} == states
    assert network.tables["B"].tolist() == parse(tmp_path, TWO).tables["B"].tolist()


@pytest.mark.parametrize("words", ['"visible, yes"', "at = (3, [4])", 'by "http://a.b/toy" '])
@pytest.mark.parametrize("place", ["network toy {", "variable B {", "( B | A ) {"])
@pytest.mark.parametrize("end", ["", "\n"])
def test_properties_are_skipped(tmp_path, words, place, end):
    assert reads_like_two(tmp_path, changed(place, f"{place}{end} property {words};{end}"))


ROWS = TWO[TWO.index("  (x)") : TWO.rindex("}")]
FIRST = TWO[TWO.index("probability ( A") : TWO.index("probability ( B")]
COMMENTED = changed("(x)", "// (x) 1, 0, 0;\n  /* (y)\n 0, 0, 1; */ (x)")


OTHER_WAYS = [
    "// exported }\n/* variable A { */" + COMMENTED + "// end",
    re.sub(r"\b([ABxyuvw])\b", r'"\1"', TWO),
    changed("{ u, v, w }", "{ u v  w }").replace("( B | A )", "( B A )"),
    changed(ROWS, "(x) 0.1, 0.2, 0.7; default 0.3, 0.3, 0.4;"),
    changed(ROWS, "default 0.3, 0.3, 0.4; (x) 0.1, 0.2, 0.7;"),
    changed(ROWS, "(y) 0.3, 0.3, 0.4; default 0.1, 0.2, 0.7;"),
    changed(ROWS, "(y) 0.3, 0.3, 0.4; (x) 0.1, 0.2, 0.7;"),
    TWO.replace(FIRST, "") + FIRST,
]


@pytest.mark.parametrize("text", OTHER_WAYS)
def test_the_same_network_may_be_written_in_other_ways(tmp_path, text):
    assert reads_like_two(tmp_path, text)


def test_a_flat_table_lists_the_child_slowest_and_the_last_parent_fastest(tmp_path):
    head = TWO[: TWO.index("probability ( B")] + "probability ( B ) { table 0.5, 0.25, 0.25; }"
    head += "variable C { type discrete [ 2 ] { f, t }; }"
    rows = """probability ( C | A, B ) {
      (x, u) 0.01, 0.99;  (x, v) 0.02, 0.98;  (x, w) 0.03, 0.97;
      (y, u) 0.04, 0.96;  (y, v) 0.05, 0.95;  (y, w) 0.06, 0.94; }"""
    flat = """probability ( C | A, B ) {
      table 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.99, 0.98, 0.97, 0.96, 0.95, 0.94; }"""
    one, two = parse(tmp_path, head + rows), parse(tmp_path, head + flat)
    assert same(one, two)
    assert one.tables["C"][1, 0].tolist() == [0.04, 0.96]


@pytest.mark.slow
@needs_pgmpy
def test_every_file_of_the_wheel_can_be_read(tmp_path):
    wheel = importlib.metadata.distribution("pgmpy")
    files = sorted(Path(wheel.locate_file("pgmpy/utils/example_models")).glob("*.bif.gz"))
    assert len(files) == 24
    for file in files:
        text = gzip.decompress(file.read_bytes()).decode()
        network = parse(tmp_path, text)
        assert len(network.levels) == len(re.findall(r"^variable ", text, re.MULTILINE))
        assert nx.is_directed_acyclic_graph(network.graph)
        for variable, table in network.tables.items():
            parents = network.parents[variable]
            assert table.shape == tuple(len(network.levels[v]) for v in (*parents, variable))
            np.testing.assert_allclose(table.sum(axis=-1), 1, rtol=1e-12)


# --- written


def with_errors(network):
    return {v: np.full(table.shape, 0.0125) for v, table in network.tables.items()}


@pytest.mark.parametrize("name", ["cancer", "survey", "child"])
def test_what_is_written_is_read_back(tmp_path, name):
    before = from_bif(DATA / "networks" / f"{name}.bif")
    for text in (before.to_bif(), before.to_bif(with_errors(before))):
        (tmp_path / f"{name}.bif").write_text(text)
        again = from_bif(tmp_path / f"{name}.bif")
        assert (again.levels, again.parents) == (before.levels, before.parents)
        for v, table in before.tables.items():  # rows are scaled to sum to 1, once more
            assert again.tables[v] == pytest.approx(table, abs=1e-15)
    assert text.count("standard errors 0.013, 0.013") == text.count("//")


AGE, OTHER = "age, years", "é; {0} | b"
ODD = {AGE: ("15 to 25", "(25,50]", "a, b", "x;y", "p{q}", "// no"), OTHER: ("yes", "n o")}
CHANCES = np.array([[0.1, 0.9], [0.25, 0.75], [1e-7, 1 - 1e-7], [0, 1], [1, 0], [0.5, 0.5]])
SHARES = np.array([0.5, 0.25, 0.125, 0.0625, 0.03125, 0.03125])
STRANGE = Network("my net", ODD, {AGE: (), OTHER: (AGE,)}, {AGE: SHARES, OTHER: CHANCES})


def test_any_name_and_level_is_written_so_that_it_is_read_back(tmp_path):
    (tmp_path / "my net.bif").write_text(STRANGE.to_bif(with_errors(STRANGE)), encoding="utf-8")
    assert same(from_bif(tmp_path / "my net.bif"), STRANGE)


@pytest.mark.parametrize("level", ['the "x"', "two\nlines"])
def test_what_no_file_of_that_kind_can_hold_is_refused(level):
    levels = {"a": ("no", level), "b": ("no", "yes")}
    tables = dict.fromkeys("ab", np.array([0.5, 0.5]))
    network = Network("x", levels, dict.fromkeys("ab", ()), tables)
    people.refused("name it otherwise", network.to_bif)


@needs_pgmpy
@pytest.mark.parametrize("name", ["cancer", "survey", "child"])
def test_pgmpy_reads_what_is_written_and_has_the_same_network(name):
    from pgmpy.readwrite import BIFReader

    network = from_bif(DATA / "networks" / f"{name}.bif")
    errors = with_errors(network)
    theirs, ours = BIFReader(string=network.to_bif(errors)).get_model(), network.to_pgmpy(errors)
    assert ours.check_model()
    assert set(ours.edges) == set(theirs.edges) == set(network.graph.edges)
    for cpd in ours.get_cpds():
        assert cpd == theirs.get_cpds(cpd.variable)
        assert ours.nodes[cpd.variable]["standard_errors"].shape == cpd.get_values().shape


@needs_pgmpy
def test_pgmpy_takes_any_name_and_level():
    cpd = STRANGE.to_pgmpy().get_cpds("é; {0} | b")
    assert cpd.get_value(**{"é; {0} | b": "yes", "age, years": "(25,50]"}) == 0.25
    assert "standard_errors" not in STRANGE.to_pgmpy().nodes["é; {0} | b"]


def test_without_pgmpy_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pgmpy.models", None)
    people.refused("pip install pgmpy", STRANGE.to_pgmpy, kind=ImportError)
