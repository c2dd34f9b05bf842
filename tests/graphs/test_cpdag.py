"""Graphs with undirected edges: completion, scores, formats of other packages, and drawings."""

import itertools
import re
import xml.etree.ElementTree as ET
from functools import partial

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays
from known_graphs import NAMES, equivalence_classes
from refusals import refusals

from dpcgd.graphs.cpdag import CPDAG, Certainty, consistent_extension, meek
from dpcgd.graphs.drawing import WIDEST, layered_positions, to_svg

seeded = settings(derandomize=True, max_examples=200)


def graph(variables, *edges):
    """CPDAG from "a->b" and "a-b"."""
    arcs = nx.empty_graph(variables, create_using=nx.DiGraph)
    for edge in edges:
        start, sign, end = re.fullmatch(r"(\w+)(->|-)(\w+)", edge).groups()
        arcs.add_edges_from([(start, end), (end, start)][: 1 + (sign == "-")])
    return CPDAG.from_networkx(arcs)


def union_of_arcs(dags):
    """An arc stays where one member has it: both ways where they disagree."""
    arcs = np.array([nx.to_numpy_array(dag, nodelist=sorted(dag)) > 0 for dag in dags]).any(axis=0)
    return CPDAG(sorted(dags[0]), arcs)


mixed_graphs = arrays(bool, (6, 6)).map(lambda arcs: arcs & ~np.eye(6, dtype=bool))


# --- completion


@pytest.mark.parametrize(("size", "dags", "classes"), [(2, 3, 2), (3, 25, 11), (4, 543, 185)])
def test_completion_directs_an_edge_where_all_dags_agree(size, dags, classes):
    """Of a class, and of its members with one more arc known (Meek 1995, theorem 4)."""
    all_classes = equivalence_classes(size)
    assert (sum(map(len, all_classes)), len(all_classes)) == (dags, classes)
    for members in all_classes:
        completed = union_of_arcs(members)
        assert all(CPDAG.from_dag(dag) == completed for dag in members)
        for a, b in np.argwhere(completed.arcs & completed.arcs.T):
            agreeing = [dag for dag in members if dag.has_edge(NAMES[a], NAMES[b])]
            arcs = completed.arcs.copy()
            arcs[b, a] = False
            assert CPDAG(completed.variables, meek(arcs)) == union_of_arcs(agreeing)


@seeded
@given(mixed_graphs, st.randoms(use_true_random=False))
def test_meek_ignores_the_order_of_nodes_and_only_directs_edges(arcs, random):
    before, after = arcs.copy(), meek(arcs)
    assert (arcs == before).all()
    assert ((after | after.T) == (arcs | arcs.T)).all()
    assert not (after & ~arcs).any()
    assert (meek(after) == after).all()
    order = random.sample(range(len(arcs)), len(arcs))
    shuffled = np.ix_(order, order)
    assert (meek(arcs[shuffled]) == after[shuffled]).all()


# --- other packages


@seeded
@given(mixed_graphs)
def test_round_trips_keep_the_graph(arcs):
    before = CPDAG(["tub", "x ray", "é&\"'", "a\\b", "-> b;", "e"], arcs)
    assert CPDAG.from_networkx(before.to_networkx()) == before
    read = CPDAG.from_networkx(nx.parse_gml(before.to_gml()))
    assert (read, read.variables) == (before, before.variables)
    for kind in ("pcalg", "causal-learn"):
        assert CPDAG.from_amat(before.to_amat(kind), before.variables, kind) == before
    directed, undirected = before.to_edge_lists()
    assert set(directed) == before.arrows
    assert {frozenset(ends) for ends in (*directed, *undirected)} == before.skeleton
    marks = {(a, b): bool(mark) for a, b, mark in before.to_networkx().edges(data="directed")}
    assert {arc for arc, mark in marks.items() if mark} == before.arrows


MATRICES = [
    ("pcalg", [[0, 0], [1, 0]], [[0, 1], [1, 0]]),
    ("causal-learn", [[0, -1], [1, 0]], [[0, -1], [-1, 0]]),
]


@pytest.mark.parametrize(("convention", "directed", "undirected"), MATRICES)
def test_matrices_have_the_marks_of_their_convention(convention, directed, undirected):
    assert graph("ab", "a->b").to_amat(convention).tolist() == directed
    assert graph("ab", "a-b").to_amat(convention).tolist() == undirected
    assert CPDAG.from_amat(directed, "ab", convention).arrows == {("a", "b")}


def test_texts_name_every_variable_and_every_edge_once():
    edges = graph("abc", "a->b", "c->b", "a-c")
    assert (str(edges), str(graph("ab"))) == ("a -> b\na -- c\nc -> b", "(no edge)")
    variables = '  "a";\n  "b";\n  "c";\n  "a" -> "b";\n'
    assert edges.to_dot() == f'digraph {{\n{variables}  "a" -> "c" [dir=none];\n  "c" -> "b";\n}}'
    assert edges.to_dagitty() == f'pdag {{\n{variables}  "a" -- "c";\n  "c" -> "b";\n}}'
    sure = Certainty({frozenset("ab"): 0.9}, {("a", "b"): 0.7, ("b", "a"): 0.1})
    marks = 'probability="0.9", arrow_probability="0.7", reverse_probability="0.1"'
    assert f'"a" -> "b" [{marks}];' in CPDAG("ab", [[0, 1], [0, 0]], sure).to_dagitty()


# Graphviz's scanner: inside quotes a backslash takes the next character along.
QUOTED = r'"((?:[^"\\]|\\.)*)"'


@pytest.mark.parametrize("name", ["x ray", 'the "x"', "-> b;", "é", "a\\b", "ends in \\", '\\"'])
def test_dot_quotes_any_name(name):
    text = CPDAG([name, "b"], [[0, 1], [0, 0]]).to_dot()
    lines = rf"digraph {{\n  {QUOTED};\n  \"b\";\n  {QUOTED} -> \"b\";\n}}"
    first, again = re.fullmatch(lines, text, re.DOTALL).groups()
    assert (first, re.sub(r'\\(["\\])', r"\1", first)) == (again, name)


KNOWN = graph("abcdef", "a->c", "b->c", "c->d", "e-f")


def test_causal_learn_reads_the_matrix_as_its_graph():
    GeneralGraph = pytest.importorskip("causallearn.graph.GeneralGraph").GeneralGraph
    GraphNode = pytest.importorskip("causallearn.graph.GraphNode").GraphNode
    theirs = GeneralGraph([GraphNode(name) for name in KNOWN.variables])
    theirs.graph = KNOWN.to_amat("causal-learn")
    theirs.reconstitute_dpath(theirs.get_graph_edges())
    nodes = {node.get_name(): node for node in theirs.get_nodes()}
    assert theirs.is_directed_from_to(nodes["a"], nodes["c"])
    assert theirs.is_undirected_from_to(nodes["e"], nodes["f"])
    assert theirs.is_ancestor_of(nodes["a"], nodes["d"])
    assert CPDAG.from_amat(theirs.graph, KNOWN.variables, "causal-learn") == KNOWN


def test_pgmpy_takes_the_edge_lists():
    base = pytest.importorskip("pgmpy.base")
    directed, undirected = KNOWN.to_edge_lists()
    theirs = base.PDAG(directed_ebunch=directed, undirected_ebunch=undirected)
    assert theirs.directed_edges == KNOWN.arrows
    assert {frozenset(edge) for edge in theirs.undirected_edges} == {frozenset("ef")}


# --- scores


SCORED = [
    # 2 of 3 joined pairs on either side are common, and 1 arrow of 1 and 3.
    # b - c lost its direction, c -> d is missing, a - d is extra.
    ("abcd", "a->c b-c a-d", "a->c b->c c->d", (2 / 3, 1 / 2, 3)),
    ("ab", "a->b", "b->a", (1, 0, 1)),
    ("ab", "", "", (1, 1, 0)),
    ("ab", "", "a->b", (0, 0, 1)),
    ("ab", "a->b", "", (0, 0, 1)),
    ("ab", "a-b", "a-b", (1, 1, 0)),
]


@pytest.mark.parametrize(("variables", "found", "true", "scores"), SCORED)
def test_scores_of_hand_worked_examples(variables, found, true, scores):
    found = graph(variables, *found.split())
    for order in itertools.permutations(variables):
        truth = graph(order, *true.split())
        assert found.skeleton_f1(truth) == pytest.approx(scores[0], abs=1e-15)
        assert found.arrowhead_f1(truth) == pytest.approx(scores[1], abs=1e-15)
        assert found.shd(truth) == truth.shd(found) == scores[2]


def test_truth_may_be_a_dag_a_cpdag_or_networkx():
    dag = nx.DiGraph([("d", "e"), ("c", "d"), ("b", "c"), ("a", "c"), ("f", "g")])
    truth = CPDAG.from_dag(dag)
    found = graph("abcdefg", "a->c", "b->c", "c->d", "e->d", "g-f")
    for form in (dag, truth, truth.to_networkx()):
        scores = found.skeleton_f1(form), found.arrowhead_f1(form), found.shd(form)
        assert scores == (1, pytest.approx(2 * 3 / (4 + 4)), 1)


def test_other_types_are_refused():
    for metric, other in itertools.product(METRICS, ([("a", "b")], nx.Graph([("a", "b")]))):
        with pytest.raises(TypeError, match=f"not a {type(other).__name__}"):
            metric(PLAIN, other)


def test_equality_ignores_the_order_of_the_variables_and_nothing_else():
    chain = graph("abc", "a->b", "b-c")
    assert chain == graph("cab", "a->b", "b-c")
    others = [graph("cab", "b->a", "b-c"), graph("abd", "a->b"), graph("ab", "a->b"), "a -> b"]
    assert all(chain != other for other in others)


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


# --- a DAG of a class


@seeded
@given(st.integers(0, 10**6))
def test_the_extension_of_a_class_is_one_of_its_dags(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 9))
    arcs = np.triu(rng.random((size, size)) < rng.uniform(0.1, 0.7), 1)
    order = rng.permutation(size)
    whole = CPDAG.from_dag(nx.from_numpy_array(arcs[order][:, order], create_using=nx.DiGraph))
    dag = consistent_extension(whole)
    assert (tuple(dag), CPDAG.from_dag(dag)) == (whole.variables, whole)


@seeded
@given(mixed_graphs)
def test_any_graph_gets_a_dag_with_its_skeleton(arcs):
    dag = consistent_extension(CPDAG("abcdef", arcs))
    assert nx.is_directed_acyclic_graph(dag)
    assert {frozenset(arc) for arc in dag.edges} == CPDAG("abcdef", arcs).skeleton


def test_a_cycle_loses_one_arrow():
    cycle = graph("abc", "a->b", "b->c", "c->a")
    assert len(cycle.arrows & set(consistent_extension(cycle).edges)) == 2


# --- probabilities of edges

PAIRS = {"ab": 0.97, "bc": 0.625, "ac": 0.25, "ad": 0.125, "bd": 0.0625, "cd": 0.03125}
ARROWS = {("a", "b"): 0.88, ("b", "a"): 0.015625, ("b", "c"): 0.3125, ("c", "b"): 0.21875}
PLAIN = graph("abcd", "a->b", "b-c")
NOTHING = "at this noise no pair stands out"
FEW = "most of the edges drawn are expected to be wrong"


def sure(pairs=PAIRS, arrows=ARROWS, caution=""):
    return Certainty({frozenset(pair): p for pair, p in pairs.items()}, arrows, caution)


def weighed(*certainty, **how):
    return CPDAG(PLAIN.variables, PLAIN.arcs, sure(*certainty, **how))


def test_a_pair_that_knowledge_forbids_says_nothing_about_noise():
    assert sure({"ab": 0.0, "bc": 1.0}, {}).verdict([]) == ""


def test_probabilities_change_no_score_and_add_up_to_what_is_expected_right():
    assert (weighed(), weighed().shd(PLAIN)) == (PLAIN, 0)
    assert weighed().expected_right_edges == pytest.approx(0.97 + 0.625)
    assert weighed().expected_right_arrows == pytest.approx(0.88)
    assert PLAIN.expected_right_edges is PLAIN.expected_right_arrows is None


def check_probabilities(edges):
    """Of edges with their attributes each has its numbers to the digit."""
    for a, b, data in edges:
        assert float(data["probability"]) == PAIRS["".join(sorted(a + b))]
        assert float(data["arrow_probability"]) == ARROWS[a, b]
        assert float(data["reverse_probability"]) == ARROWS[b, a]


EXPORTS = [
    lambda graph: graph.to_networkx(),
    lambda graph: nx.parse_gml(graph.to_gml()),
    lambda graph: nx.parse_graphml("".join(nx.generate_graphml(graph.to_networkx()))),
]


@pytest.mark.parametrize("written", EXPORTS)
def test_exports_carry_every_probability_to_the_digit_and_are_read_back(written):
    before = weighed(caution="the model saw no such table")
    arcs = written(before)
    check_probabilities(arcs.edges(data=True))
    again = CPDAG.from_networkx(arcs)
    assert again == before
    joined = {frozenset("ab"): 0.97, frozenset("bc"): 0.625}
    assert again.certainty == Certainty(joined, ARROWS, "the model saw no such table")
    assert again.remarks == before.remarks


def by_pydot(text):
    """Edges with their attributes, by the parser of another package."""
    (drawn,) = pytest.importorskip("pydot").graph_from_dot_data(text)
    for edge in drawn.get_edges():
        attributes = {key: text.strip('"') for key, text in edge.get_attributes().items()}
        yield edge.get_source().strip('"'), edge.get_destination().strip('"'), attributes


def by_lines(text):
    """Edges with their attributes, by a line each, as dagitty has them."""
    for a, b, attributes in re.findall(r'"(\w+)" -[->] "(\w+)" \[(.*)\];', text):
        yield a, b, dict(re.findall(r'(\w+)="([^"]*)"', attributes))


TEXTS = [lambda g: by_pydot(g.to_dot()), lambda g: by_lines(g.to_dagitty())]


@pytest.mark.filterwarnings("ignore")  # of pydot's parser
@pytest.mark.parametrize("read", TEXTS)
def test_texts_carry_every_probability_to_the_digit(read):
    edges = list(read(weighed()))
    assert sorted(edge[:2] for edge in edges) == [("a", "b"), ("b", "c")]
    check_probabilities(edges)


@pytest.mark.parametrize("convention", ["pcalg", "causal-learn"])
def test_a_matrix_has_its_probabilities_beside_it(convention):
    before = weighed(caution="doubt")
    amat, probabilities = before.to_amat(convention), before.to_probabilities()
    assert probabilities.edges.loc["c", "d"] == probabilities.edges.loc["d", "c"] == PAIRS["cd"]
    assert probabilities.arrows.loc["b", "a"] == ARROWS["b", "a"]
    assert probabilities.arrows.isna().to_numpy().sum() == 16 - len(ARROWS)
    again = CPDAG.from_amat(amat, before.variables, convention, probabilities)
    assert (again, again.certainty) == (before, before.certainty)


def test_a_frame_has_a_row_an_edge():
    frame = weighed(caution="doubt").to_frame()
    columns = ["from", "to", "directed", "probability", "arrow_probability"]
    rows = [["a", "b", True, 0.97, 0.88], ["b", "c", False, 0.625, 0.3125]]
    assert (frame[columns].values.tolist(), frame.attrs) == (rows, {"caution": "doubt"})
    assert list(PLAIN.to_frame().columns) == columns[:3]
    assert len(CPDAG("abcd", np.zeros((4, 4), bool), sure()).to_frame()) == 0


WITHOUT = "a and b are joined without a probability"
CONVENTIONS, NO_DAG = "'pcalg' or 'causal-learn'", "bidirected or circle"
SQUARES = (2, 3), (3, 3), (4,), (2, 2, 2, 2)
METRICS = CPDAG.skeleton_f1, CPDAG.arrowhead_f1, CPDAG.shd
test_what_is_no_graph_and_what_makes_none_is_refused = refusals(
    (lambda: graph("ab").to_amat("tetrad"), CONVENTIONS),
    (lambda: CPDAG.from_amat(np.zeros((2, 2)), "ab", "tetrad"), CONVENTIONS),
    (lambda: CPDAG.from_amat([[0, 1], [1, 0]], "ab", "causal-learn"), NO_DAG),
    (lambda: CPDAG.from_amat([[0, 2], [1, 0]], "ab", "causal-learn"), NO_DAG),
    (lambda: CPDAG("ab", [[1, 0], [0, 0]]), "take the loop out"),
    (lambda: CPDAG("aa", np.zeros((2, 2))), "distinct"),
    (lambda: CPDAG.from_dag(nx.DiGraph(["ab", "ba"])), "cycle"),
    *((partial(CPDAG, "ab", np.zeros(shape)), "square") for shape in SQUARES),
    *((partial(f, PLAIN, graph("abce", "a->b")), "d, e; name both alike") for f in METRICS),
    (PLAIN.to_probabilities, "read it from a release of moments"),
    *((partial(weighed, PAIRS | {"ab": p}), "between 0 and 1") for p in (-0.1, 1.1, np.nan)),
    (lambda: weighed(PAIRS, ARROWS | {("a", "b"): 1.1}), "between 0 and 1"),
    (lambda: weighed({"bc": 0.5}, ARROWS), WITHOUT),
    (lambda: weighed(PAIRS, {}), WITHOUT),
)


VERDICTS = [
    ({"ab": 0.5, "ac": 0.1}, ["ab"], []),
    ({"ab": 0.49, "ac": 0.1}, [], [NOTHING]),
    ({"ab": 0.49, "ac": 0.1}, ["ab"], [NOTHING, FEW]),
    ({"ab": 0.8, "ac": 0.1, "bc": 0.1}, ["ab", "ac", "bc"], [FEW]),
    ({"ab": 1, "ac": 0.1, "bc": 0.1}, ["ab"], [NOTHING]),  # what knowledge says is no news
    ({"ab": 1, "ac": 0.4}, ["ab", "ac"], [NOTHING, FEW]),
    ({"ab": 1}, ["ab"], []),
    ({}, [], []),
]


@pytest.mark.parametrize(("pairs", "joined", "words"), VERDICTS)
def test_a_plain_word_stands_where_little_is_told(pairs, joined, words):
    assert sure(pairs).verdict(list(map(frozenset, joined))) == "; ".join(words)


# --- drawings: where variables stand, and what is said of edges that may be wrong


def drawn(names, *arcs, certain=True, edge=0.9, caution=""):
    """A drawing of a graph with these arcs."""
    graph = nx.empty_graph(names, create_using=nx.DiGraph)
    graph.add_edges_from(arcs)
    pairs = dict.fromkeys(map(frozenset, itertools.combinations(names, 2)), edge)
    arrows = dict.fromkeys(itertools.permutations(names, 2), 0.875 * edge)
    certainty = Certainty(pairs, arrows, caution) if certain else None
    marks = CPDAG.from_networkx(graph)
    return ET.fromstring(to_svg(CPDAG(marks.variables, marks.arcs, certainty)))


def words_in(picture):
    return [element.text for element in picture.iter() if (element.text or "").strip()]


def dashed(picture):
    return [e for e in picture.iter() if e.get("stroke-dasharray")]


def test_many_variables_without_an_edge_make_no_wide_row():
    graph = nx.DiGraph([("a", "b")])
    graph.add_nodes_from(range(40 * WIDEST))
    places = layered_positions(graph)
    columns, layers = zip(*places.values(), strict=True)
    assert np.ptp(columns) < WIDEST
    assert len(set(places.values())) == len(places)
    assert places["a"][1] < places["b"][1] < min(places[v][1] for v in range(40 * WIDEST))
    assert max(layers) >= 40


@pytest.mark.parametrize("edge", [0.3, 0.6])
def test_a_drawing_shows_the_probability_of_edge_and_arrow_and_dashes_what_is_unlikely(edge):
    picture = drawn("abcd", "ab", "bc", "cb", edge=edge)
    labels = [word for word in words_in(picture) if word.startswith(".")]
    assert sorted(labels) == {0.3: [".30", ".30/.26"], 0.6: [".60", ".60/.53"]}[edge]
    assert len(dashed(picture)) == (2 if edge < 0.5 else 0)
    plain = drawn("abcd", "ab", certain=False)
    assert sorted(words_in(plain)) == ["The released graph", *"abcd"]
    assert not dashed(plain)


def test_a_drawing_says_where_little_is_told_to_those_who_see_and_those_who_hear():
    title, *words = words_in(drawn("ab", edge=0.1, caution="<odd>"))
    for text in (title, " ".join(words)):
        assert "no pair stands out" in text
        assert "<odd>" in text


def test_no_edge_leaves_a_drawing():
    """Bent edges ran out of the picture, and their labels would have been cut."""
    picture = drawn("abcdef", *itertools.combinations("abcdef", 2))
    left, top, wide, tall = map(float, picture.get("viewBox").split())
    lines = [e.get("points") for e in picture.iter() if e.tag.endswith("polyline")]
    points = np.array([list(map(float, p.split(","))) for line in lines for p in line.split()])
    assert (points >= (left, top)).all()
    assert (points <= (left + wide, top + tall)).all()


def test_labels_of_a_drawing_do_not_cover_each_other():
    """Both edges of a crossing have the same middle."""
    labels = [e for e in drawn("abcd", "ac", "ad", "bc", "bd").iter() if e.text == ".90/.79"]
    places = np.array([(float(e.get("x")), float(e.get("y"))) for e in labels])
    apart = np.abs(places[:, None] - places)
    assert len(labels) == 4
    assert ((apart > (32, 10)).any(axis=2) | np.eye(4, dtype=bool)).all()
