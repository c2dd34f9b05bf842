"""The search against d-separation and coins, whatever its oracle says; what is worked out ahead."""

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from refusals import refusals

from dpcgd import CPDAG, BudgetSpent, Knowledge
from dpcgd.graphs.pc_search import FIRST, Ahead, conditioning_sets, neighbours_of, search

seeded = settings(derandomize=True, max_examples=60)


class Asked:
    """Notes what it is asked."""

    def __init__(self):
        self.asked = []

    def separates(self, x, y, given):
        self.asked.append((x, y, given))
        return self.says(x, y, given)


class Separation(Asked):
    """The truth about a DAG."""

    def __init__(self, dag):
        super().__init__()
        self.dag, self.variables = dag, list(dag)

    def says(self, x, y, given):
        a, b, *separating = (self.variables[v] for v in (x, y, *given))
        return nx.is_d_separator(self.dag, {a}, {b}, set(separating))

    def nearnesses(self, tests):
        return [float(self.says(*test)) for test in tests]


class Coins(Asked):
    """Answers by a fixed coin for each question, whatever the order of x, y and the set."""

    def __init__(self, seed, chance):
        super().__init__()
        self.seed, self.chance = seed, chance

    def says(self, x, y, given):
        question = [self.seed, *sorted((x, y)), 99, *sorted(given)]
        return np.random.default_rng(question).random() < self.chance


class Broke(Separation):
    """Its budget is spent after k answers, or at the beginning of an order."""

    def __init__(self, dag, answers, orders=9):
        super().__init__(dag)
        self.answers, self.orders = answers, orders

    def begin_order(self, order, joined, to_test):
        if order >= self.orders:
            raise BudgetSpent

    def says(self, x, y, given):
        if len(self.asked) > self.answers:
            raise BudgetSpent
        return super().says(x, y, given)


def pairs_of(variables):
    return {frozenset(pair) for pair in itertools.combinations(variables, 2)}


@st.composite
def dags(draw, smallest=3, largest=7):
    names = [f"v{i}" for i in range(draw(st.integers(smallest, largest)))]
    dag = nx.empty_graph(names, create_using=nx.DiGraph)
    pairs = itertools.combinations(draw(st.permutations(names)), 2)
    dag.add_edges_from(pair for pair in pairs if draw(st.booleans()))
    return dag


@st.composite
def knowledge_of(draw, names):
    """Any forbidden and required arcs that do not contradict one another."""
    pairs = list(itertools.permutations(names, 2))
    required = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=4))
    assume(not required or nx.is_directed_acyclic_graph(nx.DiGraph(required)))
    forbidden = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=6))
    return Knowledge([arc for arc in forbidden if arc not in required], required)


def obeys(graph, knowledge):
    forbidden = graph.to_networkx().edges & set(knowledge.forbidden)
    return graph.arrows.issuperset(knowledge.required) and not forbidden


@seeded
@given(dags(), st.booleans())
def test_search_finds_the_completed_graph_of_any_dag(dag, graded):
    oracle = Separation(dag)
    found = search(oracle, list(dag), max_order=len(dag), grading=oracle if graded else None)
    assert (found.graph, found.tests) == (CPDAG.from_dag(dag), len(oracle.asked))
    assert not found.stopped_early
    assert found.separating_sets.keys() == pairs_of(dag) - found.graph.skeleton
    for (a, b), separating in found.separating_sets.items():
        assert nx.is_d_separator(dag, {a}, {b}, set(separating))


@seeded
@given(st.integers(2, 7), st.integers(0, 10**6), st.floats(0, 1), st.integers(0, 3))
def test_questions_are_those_of_pc_stable_and_none_is_asked_twice(size, seed, chance, most):
    oracle = Coins(seed, chance)
    found = search(oracle, [f"v{i}" for i in range(size)], max_order=most)
    questions = [(frozenset((x, y)), frozenset(given)) for x, y, given in oracle.asked]
    assert questions == sorted(questions, key=lambda question: len(question[1]))
    last, adjacent = dict(questions), pairs_of(range(size))
    assert all(last[pair] == s for pair, s in questions if oracle.says(*pair, s))
    for order in range(most + 1):
        asked = [question for question in questions if len(question[1]) == order]
        assert len(set(asked)) == len(asked)
        near = {v: {w for w in range(size) if {v, w} in adjacent} for v in range(size)}
        ends = [(pair, near[end] - pair) for pair in adjacent for end in pair]
        sets = [(pair, itertools.combinations(others, order)) for pair, others in ends]
        allowed = {(pair, frozenset(given)) for pair, several in sets for given in several}
        assert set(asked) <= allowed
        separated = {pair for pair, given in asked if oracle.says(*pair, given)}
        assert {pair for pair, _ in allowed - set(asked)} <= separated
        adjacent -= separated
    assert found.graph.skeleton == {frozenset(f"v{v}" for v in pair) for pair in adjacent}
    assert found.tests == len(oracle.asked)


def test_a_spent_budget_keeps_what_is_left_after_any_number_of_answers():
    dag = nx.DiGraph([("a", "c"), ("b", "c"), ("c", "d"), ("c", "e"), ("d", "f"), ("e", "f")])
    variables, whole = list(dag), Separation(dag)
    name = variables.__getitem__
    full = search(whole, variables)
    assert full.tests > 20
    for k in range(full.tests + 1):
        found = search(Broke(dag, k), variables)
        assert (found.stopped_early, found.tests) == (k < full.tests, k)
        apart = [test for test in whole.asked[:k] if whole.says(*test)]
        removed = {frozenset(map(name, (x, y))): tuple(map(name, given)) for x, y, given in apart}
        assert found.separating_sets == removed
        assert found.graph.skeleton == pairs_of(variables) - removed.keys()
    for orders in range(3):
        found, asked = search(Broke(dag, full.tests, orders), variables), whole.asked
        assert (found.stopped_early, found.tests) == (True, sum(len(s) < orders for *_, s in asked))


test_bad_settings_are_refused_before_anything_is_asked = refusals(
    (lambda: search(None, list("abc"), max_order=-1), "0 or more"),
    (lambda: search(None, list("abc"), untested=True), "must be 'keep' or 'drop'"),
)


@settings(seeded, max_examples=150)
@given(st.data(), dags(3, 5), st.booleans())
def test_the_result_never_violates_the_knowledge(data, dag, truthful):
    known = data.draw(knowledge_of(list(dag)))
    seed, chance = data.draw(st.integers(0, 10**6)), data.draw(st.floats(0, 1))
    oracle = Separation(dag) if truthful else Coins(seed, chance)
    assert obeys(search(oracle, list(dag), knowledge=known).graph, known)
    decided = {*known.required} | {a for a in known.forbidden if a[::-1] in known.forbidden}
    asked = {frozenset((f"v{x}", f"v{y}")) for x, y, _ in oracle.asked}
    assert not asked & {*map(frozenset, decided)}


def test_a_pair_that_was_never_tested_does_not_rule_out_a_collider():
    dag = nx.DiGraph([("a", "c"), ("b", "c")])
    known = Knowledge(forbidden=[("a", "b"), ("b", "a"), ("c", "a")])
    found = search(Separation(dag), list(dag), knowledge=known)
    assert found.graph.arrows <= set(dag.edges)
    assert ("a", "c") in found.graph.arrows


@pytest.mark.slow
@settings(seeded, max_examples=300)
@given(st.data(), dags(3, 6))
def test_true_knowledge_never_costs_a_true_edge_or_a_known_arrow(data, dag):
    arcs = list(dag.edges)
    others = [arc for arc in itertools.permutations(dag, 2) if arc not in arcs]
    required = data.draw(st.lists(st.sampled_from(arcs), unique=True)) if arcs else []
    forbidden = data.draw(st.lists(st.sampled_from(others), unique=True)) if others else []
    known = Knowledge(forbidden, required)
    found = search(Separation(dag), list(dag), max_order=len(dag), knowledge=known).graph
    assert found.skeleton == CPDAG.from_dag(dag).skeleton
    assert obeys(found, known)
    assert found.arrows <= set(dag.edges)


def test_colliders_that_demand_opposite_arrowheads_leave_the_edge_undirected():
    path = {frozenset("ab"), frozenset("bc"), frozenset("cd")}
    for order in itertools.permutations("abcd"):
        columns = [sorted(map(order.index, pair)) for pair in pairs_of("abcd") - path]
        found = search(Graded({pair: {(): 1.0} for pair in map(tuple, columns)}), order).graph
        assert (found.skeleton, found.arrows) == (path, {("a", "b"), ("d", "c")})


class Graded:
    """Parts the pairs that it has grades of; grades are by pair and set, 0 for all others."""

    def __init__(self, grades):
        self.grades = {frozenset(pair): of for pair, of in grades.items()}

    def separates(self, x, y, given):
        grade = self.grades.get(frozenset((x, y)), {}).get(given, 0.0)
        return None if grade is None else grade > 0

    def nearnesses(self, tests):
        return [self.grades.get(frozenset((x, y)), {}).get(given, 0.0) for x, y, given in tests]


def test_with_grades_the_clearest_set_decides_about_a_collider():
    """0 - 1 is separated by anything a little, and clearly by x: that is no collider."""
    for order in itertools.permutations(["a", "b", "c"]):
        names = ["x", "y", *order]
        sets = {(names.index(v),): clear for v, clear in (("a", 0.9), ("b", 0.02), ("c", 0.02))}
        oracle = Graded({(0, 1): sets})
        graph = search(oracle, names, max_order=1, grading=oracle).graph
        assert {("x", "b"), ("y", "b"), ("x", "c"), ("y", "c")} <= graph.arrows
        assert not {("x", "a"), ("y", "a")} & graph.arrows
    assert graph != search(oracle, names, max_order=1).graph


def test_refused_sets_have_no_grade():
    oracle = Graded({(0, 1): {(): 0.5, (2,): None}})
    assert search(oracle, "xyc", grading=oracle).graph.arrows == {("x", "c"), ("y", "c")}


@pytest.mark.parametrize("clear", [0.001, 0.003])
def test_of_two_colliders_at_odds_the_clearer_one_holds(clear):
    """a - b - c - d: a -> b <- c and b -> c <- d; given its middle a - c is near .002."""
    grades = {(0, 2): {(): 0.9, (1,): 0.002}, (1, 3): {(): 0.9, (2,): clear}, (0, 3): {(): 1.0}}
    oracle = Graded(grades)
    found = search(oracle, "abcd", grading=oracle).graph
    second = clear < 0.002
    assert ("b" if second else "c", "c" if second else "b") in found.arrows
    assert (("d", "c") in found.arrows, ("a", "b") in found.arrows) == (second, not second)


@pytest.mark.parametrize("seed", range(5))
def test_an_oracle_that_plans_is_told_what_it_will_be_asked(seed):
    class Planning(Coins):
        def begin_order(self, order, joined, to_test):
            self.announced = {(x, y, order) for x, y in np.argwhere(to_test).tolist()}
            self.neighbours = neighbours_of(joined)
            assert (joined == joined.T).all()

        def separates(self, x, y, given):
            assert (x, y, len(given)) in self.announced
            assert given in conditioning_sets(x, y, self.neighbours, len(given))
            return super().separates(x, y, given)

    oracle, plain = Planning(seed, 0.3), Coins(seed, 0.3)
    assert search(oracle, "abcdef").graph == search(plain, "abcdef").graph
    assert oracle.asked == plain.asked


class Untestable(Coins):
    """Public facts allow no test of the first pair, nor any of order 1."""

    def separates(self, x, y, given):
        return None if (x, y) == (0, 1) or given else super().separates(x, y, given)


def test_pairs_that_were_never_tested_are_told():
    found = search(Untestable(0, 0.0), "abc", max_order=1)
    assert found.untested == {frozenset("ab")}
    known = Knowledge(required=[("b", "c")])
    found = search(Untestable(0, 0.0), "abc", max_order=1, knowledge=known)
    assert found.untested == {frozenset("ab"), frozenset("bc")}
    assert search(Coins(0, 1.0), "abc").untested == frozenset()


class Unsure(Coins):
    """Joins all, and has no test that confirms what hangs on the first variable."""

    def unconfirmed(self, joined):
        first = np.arange(len(joined)) == 0
        return joined & (first | first[:, None])


def test_pairs_that_no_test_confirms_leave_the_graph_if_asked():
    kept = search(Unsure(0, 0.0), "abc", max_order=1)
    dropped = search(Unsure(0, 0.0), "abc", max_order=1, untested="drop")
    assert kept.untested == dropped.untested == {frozenset("ab"), frozenset("ac")}
    assert (len(kept.graph.skeleton), dropped.graph.skeleton) == (3, {frozenset("bc")})
    assert dropped.separating_sets == {}


def test_what_knowledge_requires_stays_untested():
    known = Knowledge(required=[("a", "b")])
    found = search(Unsure(0, 0.0), "abc", max_order=1, knowledge=known, untested="drop")
    assert found.graph.arrows == {("a", "b")}
    assert found.graph.skeleton == {frozenset("ab"), frozenset("bc")}
    assert frozenset("ab") in found.untested


def test_a_pair_left_out_makes_no_arrow():
    class Collider(Graded):
        def unconfirmed(self, joined):
            left_out = np.zeros_like(joined)
            left_out[:2, 3] = left_out[3, :2] = True
            return left_out & joined

    oracle = Collider({(0, 1): {(): 1.0}})
    arrows = search(oracle, "abcd", max_order=1, untested="drop").graph.arrows
    assert arrows == {("a", "c"), ("b", "c")}  # and not c -> d, for a and d may be joined


# --- what is worked out ahead


def ahead(order, joined, separates=().__contains__, tells=sum):
    """With the tests that are worked out together, one list after the other."""
    worked = []

    def work(tests):
        worked.append(list(tests))
        return list(map(tells, tests))

    looking = Ahead(work, separates)
    looking.begin_order(order, joined, np.triu(joined))
    return looking, worked


def complete(d):
    return ~np.eye(d, dtype=bool)


@pytest.mark.parametrize("likely", [range(0), range(12)])
@pytest.mark.parametrize("order", range(3))
def test_every_answer_is_its_own_and_each_test_is_worked_out_once_in_every_order(order, likely):
    joined = np.triu(np.random.default_rng(0).random((8, 8)) < 0.6, 1)
    joined |= joined.T
    looking, worked = ahead(order, joined, likely.__contains__)
    pairs, near = np.argwhere(np.triu(joined)).tolist(), neighbours_of(joined)
    tests = [(x, y, *s) for x, y in pairs for s in conditioning_sets(x, y, near, order)]
    assert [looking.of(test) for test in tests] == list(map(sum, tests))
    assert sorted(itertools.chain(*worked)) == sorted(tests)
    assert len(worked) < len(tests)
    looking.begin_order(order, joined, np.triu(joined))
    looking.of(tests[0])
    assert worked[-1] == worked[0]


def test_at_first_the_first_sets_of_every_pair_are_looked_at_and_no_further_if_given_up():
    looking, worked = ahead(2, complete(20), tells=tuple)
    looking.of((0, 1, 2, 3))
    pairs = [test[:2] for test in worked[0]]
    assert set(pairs) == set(itertools.combinations(range(20), 2))
    assert {pairs.count(pair) for pair in pairs} == {FIRST}
    for y in range(1, 20):
        looking.of((0, y, *[v for v in (1, 2, 3) if v != y][:2]))
    assert len(worked) == 1


def test_without_an_order_or_out_of_turn_a_test_is_worked_out_by_itself():
    looking, worked = ahead(1, np.zeros((6, 6), bool))
    assert (looking.of((2, 3, 5)), worked) == (10, [[(2, 3, 5)]])
    looking.begin_order(1, complete(4), np.triu(complete(4)))
    assert looking.of((1, 0, 3)) == 4
    assert (1, 0, 3) in worked[1]
