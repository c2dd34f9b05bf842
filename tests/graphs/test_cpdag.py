import itertools
import re
import sys

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from known_graphs import NAMES, equivalence_classes

from dpcgd import load
from dpcgd.graphs.cpdag import CPDAG, meek

seeded = settings(derandomize=True, deadline=None, max_examples=200)


def graph(variables, *edges):
    """CPDAG from "a->b" and "a-b"."""
    variables = tuple(variables)
    arcs = np.zeros((len(variables),) * 2, bool)
    for edge in edges:
        a, sign, b = re.fullmatch(r"(\w+)(->|-)(\w+)", edge).groups()
        arcs[variables.index(a), variables.index(b)] = True
        if sign == "-":
            arcs[variables.index(b), variables.index(a)] = True
    return CPDAG(variables, arcs)


def union_of_arcs(dags):
    """An arc stays where one member has it: both ways where they disagree."""
    arcs = np.array([nx.to_numpy_array(dag, nodelist=sorted(dag)) > 0 for dag in dags]).any(axis=0)
    return CPDAG(sorted(dags[0]), arcs)


@st.composite
def mixed_graphs(draw):
    size = draw(st.integers(2, 6))
    arcs = np.zeros((size, size), bool)
    for a, b in itertools.combinations(range(size), 2):
        arcs[a, b], arcs[b, a] = draw(st.tuples(st.booleans(), st.booleans()))
    return arcs


@pytest.mark.parametrize(("size", "dags", "classes"), [(2, 3, 2), (3, 25, 11), (4, 543, 185)])
def test_from_dag_directs_an_edge_where_all_equivalent_dags_agree(size, dags, classes):
    found = equivalence_classes(size)
    assert (sum(map(len, found)), len(found)) == (dags, classes)
    for members in found:
        expected = union_of_arcs(members)
        assert all(CPDAG.from_dag(dag) == expected for dag in members)


def test_meek_finds_all_that_a_known_arc_forces():
    # Meek (1995, theorem 4): rules 1 to 4 are complete with background knowledge; rule 4 needs it.
    cases = 0
    for members in equivalence_classes(4):
        completed = union_of_arcs(members)
        for a, b in np.argwhere(completed.arcs & completed.arcs.T):
            agreeing = [dag for dag in members if dag.has_edge(NAMES[a], NAMES[b])]
            arcs = completed.arcs.copy()
            arcs[b, a] = False
            assert CPDAG(NAMES, meek(arcs)) == union_of_arcs(agreeing)
            cases += 1
    assert cases > 400


def test_each_rule_of_meek_alone():
    chain = graph("abc", "a->b", "b-c")
    triangle = graph("abc", "a->b", "b->c", "a-c")
    kite = graph("abcd", "a-b", "a-c", "a-d", "c->b", "d->b")
    fourth = graph("abcd", "a-b", "a-c", "a-d", "c->d", "d->b")
    for before, arrow in [
        (chain, ("b", "c")),
        (triangle, ("a", "c")),
        (kite, ("a", "b")),
        (fourth, ("a", "b")),
    ]:
        after = CPDAG(before.variables, meek(before.arcs))
        assert after.arrows == before.arrows | {arrow}
        assert after.skeleton == before.skeleton


@seeded
@given(mixed_graphs(), st.randoms(use_true_random=False))
def test_meek_does_not_depend_on_the_order_of_the_nodes(arcs, random):
    order = random.sample(range(len(arcs)), len(arcs))
    at = np.ix_(order, order)
    assert (meek(arcs[at]) == meek(arcs)[at]).all()


@seeded
@given(mixed_graphs())
def test_meek_keeps_the_skeleton_and_the_arrows_and_its_argument(arcs):
    before = arcs.copy()
    after = meek(arcs)
    assert (arcs == before).all()
    assert ((after | after.T) == (arcs | arcs.T)).all()
    assert not (after & ~arcs).any()
    assert (meek(after) == after).all()


@seeded
@given(mixed_graphs())
def test_round_trips_keep_the_graph(arcs):
    before = CPDAG([f"x{i}" for i in range(len(arcs))], arcs)
    assert CPDAG.from_networkx(before.to_networkx()) == before
    for convention in ("pcalg", "causal-learn"):
        amat = before.to_amat(convention)
        assert CPDAG.from_amat(amat, before.variables, convention) == before


def test_round_trip_through_gml_keeps_graph_and_marks(tmp_path):
    before = graph(["tub", "lung", "x ray", "é&\"'"])
    arcs = before.arcs.copy()
    arcs[0, 2] = arcs[1, 2] = arcs[2, 3] = arcs[0, 1] = arcs[1, 0] = True
    before = CPDAG(before.variables, arcs)
    nx.write_gml(before.to_networkx(), tmp_path / "graph.gml")
    read = nx.read_gml(tmp_path / "graph.gml")
    assert CPDAG.from_networkx(read) == before
    assert CPDAG.from_networkx(read).variables == before.variables
    marks = {(a, b): bool(mark) for a, b, mark in read.edges(data="directed")}
    assert marks["tub", "x ray"] is True
    assert marks["tub", "lung"] is marks["lung", "tub"] is False


def test_pcalg_puts_the_mark_of_an_arrow_in_the_row_of_its_head():
    assert graph("ab", "a->b").to_amat("pcalg").tolist() == [[0, 0], [1, 0]]
    assert graph("ab", "a-b").to_amat("pcalg").tolist() == [[0, 1], [1, 0]]
    assert CPDAG.from_amat([[0, 0], [1, 0]], "ab", "pcalg").arrows == {("a", "b")}


def test_causal_learn_puts_minus_one_at_a_tail_and_one_at_a_head():
    assert graph("ab", "a->b").to_amat("causal-learn").tolist() == [[0, -1], [1, 0]]
    assert graph("ab", "a-b").to_amat("causal-learn").tolist() == [[0, -1], [-1, 0]]
    assert CPDAG.from_amat([[0, -1], [1, 0]], "ab", "causal-learn").arrows == {("a", "b")}


def test_unknown_matrix_convention_is_refused():
    with pytest.raises(ValueError, match="'pcalg' or 'causal-learn'"):
        graph("ab", "a->b").to_amat("tetrad")
    with pytest.raises(ValueError, match="'pcalg' or 'causal-learn'"):
        CPDAG.from_amat(np.zeros((2, 2)), "ab", "tetrad")


# Graphviz's scanner: inside quotes a backslash takes the next character along.
DOT_STRING = r'"((?:[^"\\]|\\.)*)"'
DOT_LINE = re.compile(rf"  {DOT_STRING}(?: -> {DOT_STRING}( \[dir=none\])?)?;", re.DOTALL)


def test_dot_names_every_variable_and_every_edge_once():
    text = graph("abc", "a->b", "c->b", "a-c").to_dot()
    assert text == (
        'digraph {\n  "a";\n  "b";\n  "c";\n  "a" -> "b";\n  "a" -> "c" [dir=none];\n'
        '  "c" -> "b";\n}'
    )


@pytest.mark.parametrize("name", ["x ray", 'the "x"', "-> b;", "é", "a\\b", "ends in \\", '\\"'])
def test_dot_quotes_any_name(name):
    body = CPDAG([name, "b"], [[0, 1], [0, 0]]).to_dot()
    assert body.startswith("digraph {\n")
    assert body.endswith("\n}")
    body = body.removeprefix("digraph {").removesuffix("\n}")
    lines = ["\n" + match[0] for match in DOT_LINE.finditer(body)]
    assert "".join(lines) == body
    found = [match.groups() for match in DOT_LINE.finditer(body)]
    quoted = found[0][0]
    assert found == [(quoted, None, None), ("b", None, None), (quoted, "b", None)]
    assert re.sub(r'\\(["\\])', r"\1", quoted) == name


def test_str_shows_each_edge_once():
    assert str(graph("abc", "a->b", "c->b", "a-c")) == "a -> b\na -- c\nc -> b"
    assert str(graph("ab")) == "(no edge)"


def test_metrics_of_a_hand_worked_example():
    truth = graph("abcd", "a->c", "b->c", "c->d")
    found = graph("abcd", "a->c", "b-c", "a-d")
    # 2 of 3 joined pairs on either side are common; 1 arrow is found, it is one of 3 true ones.
    assert found.skeleton_f1(truth) == pytest.approx(2 * 2 / (3 + 3), abs=1e-15)
    assert found.arrowhead_f1(truth) == pytest.approx(2 * 1 / (1 + 3), abs=1e-15)
    # b - c lost its direction, c -> d is missing, a - d is extra.
    assert found.shd(truth) == truth.shd(found) == 3


def test_a_reversed_edge_is_one_difference_and_no_common_arrow():
    found, truth = graph("ab", "a->b"), graph("ab", "b->a")
    assert (found.skeleton_f1(truth), found.arrowhead_f1(truth), found.shd(truth)) == (1, 0, 1)


def test_two_empty_graphs_agree_and_one_empty_graph_scores_nothing():
    empty, joined = graph("ab"), graph("ab", "a->b")
    assert (empty.skeleton_f1(empty), empty.arrowhead_f1(empty), empty.shd(empty)) == (1, 1, 0)
    assert (empty.skeleton_f1(joined), empty.arrowhead_f1(joined), empty.shd(joined)) == (0, 0, 1)
    assert (joined.skeleton_f1(empty), joined.arrowhead_f1(empty)) == (0, 0)
    assert graph("ab", "a-b").arrowhead_f1(graph("ab", "a-b")) == 1


def test_truth_may_be_a_dag_a_cpdag_or_networkx_in_any_order_of_variables():
    dag = nx.DiGraph([("d", "e"), ("c", "d"), ("b", "c"), ("a", "c")])
    dag.add_edge("f", "g")
    truth = CPDAG.from_dag(dag)
    assert truth.arrows == {("a", "c"), ("b", "c"), ("c", "d"), ("d", "e")}
    shuffled = CPDAG.from_networkx(nx.DiGraph(truth.to_networkx().reverse()).reverse())
    found = graph("abcdefg", "a->c", "b->c", "c->d", "e->d", "g-f")
    for form in (dag, truth, truth.to_networkx(), shuffled):
        assert found.skeleton_f1(form) == 1
        assert found.arrowhead_f1(form) == pytest.approx(2 * 3 / (4 + 4))
        assert found.shd(form) == 1


def test_scores_do_not_depend_on_the_order_of_the_variables():
    found = graph("abcd", "a->c", "b-c", "a-d")
    again = graph("dbca", "a->c", "b-c", "a-d")
    truth = graph("cadb", "a->c", "b->c", "c->d")
    for metric in ("skeleton_f1", "arrowhead_f1", "shd"):
        assert getattr(found, metric)(truth) == getattr(again, metric)(truth)


def test_other_variables_and_other_types_are_refused():
    found = graph("abc", "a->b")
    for metric in (found.skeleton_f1, found.arrowhead_f1, found.shd):
        with pytest.raises(ValueError, match="has c, d; name both alike"):
            metric(graph("abd", "a->b"))
        with pytest.raises(TypeError, match="not list"):
            metric([("a", "b")])
        with pytest.raises(TypeError, match="not Graph"):
            metric(nx.Graph([("a", "b")]))


def test_equality_ignores_the_order_of_the_variables_and_nothing_else():
    assert graph("abc", "a->b", "b-c") == graph("cab", "a->b", "b-c")
    assert graph("abc", "a->b", "b-c") != graph("cab", "b->a", "b-c")
    assert graph("abc", "a->b") != graph("abd", "a->b")
    assert graph("ab", "a->b") != graph("abc", "a->b")
    assert graph("ab", "a->b") != "a -> b"


def test_a_graph_cannot_be_changed():
    given_arcs = np.array([[False, True], [False, False]])
    found = CPDAG(["a", "b"], given_arcs)
    given_arcs[1, 0] = True
    assert found.arrows == {("a", "b")}
    with pytest.raises(ValueError, match="read-only"):
        found.arcs[1, 0] = True
    with pytest.raises(AttributeError):
        found.arcs = given_arcs
    with pytest.raises(TypeError, match="unhashable"):
        hash(found)


def test_what_is_no_graph_is_refused():
    with pytest.raises(ValueError, match="joined to itself"):
        CPDAG("ab", [[1, 0], [0, 0]])
    for shape in [(2, 3), (3, 3), (4,), (2, 2, 2)]:
        with pytest.raises(ValueError, match="square array"):
            CPDAG("ab", np.zeros(shape))
    with pytest.raises(ValueError, match="distinct"):
        CPDAG("aa", np.zeros((2, 2)))
    with pytest.raises(ValueError, match="cycle"):
        CPDAG.from_dag(nx.DiGraph([("a", "b"), ("b", "a")]))


@pytest.mark.parametrize("name", ["cancer", "asia", "survey"])
def test_other_packages_read_what_is_written_for_them(name):
    known = CPDAG.from_dag(load(name, n=2, rng=np.random.default_rng(0)).truth)
    assert CPDAG.from_networkx(nx.parse_gml(known.to_gml())) == known
    directed, undirected = known.to_edge_lists()
    assert set(directed) == known.arrows
    assert {frozenset(arc) for arc in (*directed, *undirected)} == known.skeleton
    assert len(directed) + len(undirected) == len(known.skeleton)


def test_causal_learn_reads_the_graph_that_is_made_for_it():
    pytest.importorskip("causallearn")
    known = CPDAG.from_dag(nx.DiGraph([("a", "c"), ("b", "c"), ("c", "d"), ("e", "f")]))
    theirs = known.to_causal_learn()
    nodes = {node.get_name(): node for node in theirs.get_nodes()}
    assert theirs.is_directed_from_to(nodes["a"], nodes["c"])
    assert theirs.is_undirected_from_to(nodes["e"], nodes["f"])
    assert theirs.is_ancestor_of(nodes["a"], nodes["d"])
    assert CPDAG.from_amat(theirs.graph, known.variables, "causal-learn") == known


def test_without_causal_learn_the_cure_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "causallearn.graph.GeneralGraph", None)
    with pytest.raises(ImportError, match="pip install causal-learn"):
        CPDAG.from_dag(nx.DiGraph([("a", "b")])).to_causal_learn()


def test_pgmpy_takes_the_edge_lists():
    base = pytest.importorskip("pgmpy.base")
    known = CPDAG.from_dag(nx.DiGraph([("a", "c"), ("b", "c"), ("e", "f")]))
    directed, undirected = known.to_edge_lists()
    theirs = base.PDAG(directed_ebunch=directed, undirected_ebunch=undirected)
    assert theirs.directed_edges == set(directed)
    assert {frozenset(edge) for edge in theirs.undirected_edges} == {frozenset("ef")}
