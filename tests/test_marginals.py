import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng
from scipy import stats

from dpcgd import Budget, BudgetSpent, Dataset, Knowledge, load, table_pc
from dpcgd.audit import Witness, empirical_epsilon
from dpcgd.marginals import (
    ExactMarginals,
    Marginals,
    MeasuredMarginals,
    Moment,
    TableOracle,
    _design,
    association,
    contrasts,
    interaction_sensitivity,
    pairs_sensitivity,
    shares,
)
from dpcgd.mechanisms import SeededNoise
from dpcgd.privacy import Filter
from dpcgd.search import search
from dpcgd.tables import Tables

seeded = settings(derandomize=True, deadline=None, max_examples=60)
some_levels = st.lists(st.integers(1, 5), min_size=2, max_size=5)


class Counts:
    """Tables of a given contingency table."""

    def __init__(self, table):
        self.table, self.n, self.levels = table, int(table.sum()), table.shape

    def counts(self, variables):
        kept = sorted(variables)
        others = tuple(v for v in range(self.table.ndim) if v not in kept)
        return self.table.sum(axis=others).transpose([kept.index(v) for v in variables])


class Blurred(ExactMarginals):
    """Noise of a chosen deviation, for experiments."""

    def __init__(self, tables, deviation, rng):
        super().__init__(tables)
        self.deviation, self.rng = deviation, rng

    def _release(self, subsets, sensitivity, rho):
        exact = self._exactly(subsets)
        noise = self.deviation * self.rng.standard_normal(len(exact))
        self._keep(subsets, exact + noise, self.deviation)


def records(codes, levels):
    names = {f"v{i}": [str(k) for k in range(of)] for i, of in enumerate(levels)}
    return Dataset(np.atleast_2d(codes), names)


def everything(marginals):
    """Release all interactions of up to four variables."""
    marginals.measure_pairs(1.0)
    for size in (3, 4):
        for subset in itertools.combinations(range(len(marginals.levels)), size):
            marginals.measure(subset, 1.0)
    return marginals


def exact(table):
    return everything(ExactMarginals(Counts(table)))


def random_table(shape, n, rng, concentration=3.0):
    share = rng.dirichlet(np.full(math.prod(shape), concentration))
    return rng.multinomial(n, share).reshape(shape)


def independent(shape, rng, concentration=2.0):
    """Probabilities under which the first two variables are independent given the others."""
    strata = math.prod(shape[2:])
    weight = rng.dirichlet(np.full(strata, concentration))
    x, y = (rng.dirichlet(np.full(of, concentration), strata) for of in shape[:2])
    return np.einsum("s,sa,sb->abs", weight, x, y).reshape(shape)


@pytest.mark.parametrize("levels", [1, 2, 3, 7])
def test_contrasts_are_orthonormal_and_sum_to_zero(levels):
    columns = contrasts(levels)
    assert columns.shape == (levels, levels - 1)
    assert np.allclose(columns.T @ columns, np.eye(levels - 1))
    assert np.allclose(columns.sum(axis=0), 0)


@pytest.mark.parametrize(
    "levels",
    [(2, 2), (2, 3), (2, 2, 2), (2, 3, 4), (3, 3, 2, 2), (2, 2, 2, 2, 2), (1, 2, 3), (1, 1)],
)
def test_sensitivities_are_the_largest_distance_of_two_records(levels):
    domain = list(itertools.product(*map(range, levels)))
    variables = range(len(levels))
    pairs = [*itertools.combinations(variables, 1), *itertools.combinations(variables, 2)]

    def spread(subsets):
        told = [ExactMarginals(Tables(records(one, levels)))._exactly(subsets) for one in domain]
        return max(np.linalg.norm(a - b) for a, b in itertools.product(told, repeat=2))

    assert pairs_sensitivity(levels) == pytest.approx(spread(pairs), abs=1e-12)
    assert interaction_sensitivity(levels) == pytest.approx(spread([tuple(variables)]), abs=1e-12)


@pytest.mark.parametrize("d", [2, 3, 4, 8, 40])
def test_together_binary_variables_cost_half_of_what_their_tables_cost(d):
    assert pairs_sensitivity([2] * d) == pytest.approx(math.sqrt((d + 2) ** 2 // 4))
    tables = math.sqrt(d * (d - 1))
    assert (pairs_sensitivity([2] * d) < tables) == (d > 3)


@seeded
@given(some_levels)
def test_a_level_more_never_costs_less(levels):
    more = [levels[0] + 1, *levels[1:]]
    assert pairs_sensitivity(more) >= pairs_sensitivity(levels) - 1e-12
    assert pairs_sensitivity(levels) <= math.sqrt(len(levels) * (len(levels) + 1))


def test_all_interactions_without_noise_are_the_table():
    table = random_table((2, 3, 2, 4), 5000, default_rng(0)) + 1
    marginals = exact(table)
    assert np.allclose(marginals.table(0, 1, 2, 3), table / table.sum())
    assert np.allclose(marginals.table(3, 1), table.sum(axis=(0, 2)).T / table.sum())


def test_a_moment_is_the_mean_product_of_contrasts():
    data = load("survey", n=500, rng=default_rng(0))
    marginals = ExactMarginals(Tables(data))
    marginals.measure((0, 3, 1), 1.0)
    of = [contrasts(data.cardinalities[v])[data.codes[:, v]] for v in (0, 1, 3)]
    expected = np.einsum("ia,ib,ic->abc", *of) / data.n
    assert np.allclose(marginals.moment(0, 1, 3).values, expected)
    assert np.allclose(marginals.moment(3, 0, 1).values, expected.transpose(2, 0, 1))


def test_an_interaction_that_was_not_released_counts_as_zero_in_a_table():
    table = random_table((2, 3, 2), 5000, default_rng(0)) + 1
    marginals = ExactMarginals(Counts(table))
    marginals.measure_pairs(1.0)
    joint = marginals.table(0, 1, 2)
    for axis in range(3):
        assert np.allclose(joint.sum(axis=axis), table.sum(axis=axis) / table.sum())
    with pytest.raises(KeyError):
        Marginals(10, (2, 2), {}).table(0, 1)


def test_a_noisy_table_has_no_zero_and_adds_up():
    marginals = Blurred(Counts(np.array([[50, 0], [0, 50]])), 30.0, default_rng(0))
    marginals.measure_pairs(1.0)
    assert marginals.table(0, 1).min() > 0
    assert marginals.table(0, 1).sum() == pytest.approx(1)


def plain_association(table):
    """The same from strata: average covariance against its variance under independence."""
    n, x, y = table.sum(), *(contrasts(of) for of in table.shape[:2])
    q, spread = 0.0, 0.0
    for stratum in np.moveaxis(table.reshape(*table.shape[:2], -1), 2, 0) / n:
        p, a, b = stratum.sum(), stratum.sum(axis=1), stratum.sum(axis=0)
        q = q + x.T @ (stratum - np.outer(a, b) / p) @ y
        within = [np.diag(m / p) - np.outer(m / p, m / p) for m in (a, b)]
        spread = spread + p * np.kron(x.T @ within[0] @ x, y.T @ within[1] @ y)
    return n * q.ravel() @ np.linalg.solve(spread, q.ravel())


@pytest.mark.parametrize(
    "shape", [(2, 2), (3, 4), (2, 3, 2), (4, 3, 3), (2, 3, 2, 3), (3, 2, 3, 2)]
)
def test_association_without_noise_is_that_of_explicit_strata(shape):
    table = random_table(shape, 20_000, default_rng(1)) + 3
    found = association(exact(table), 0, 1, tuple(range(2, len(shape))), interacting=True)
    assert found.statistic == pytest.approx(plain_association(table), rel=1e-6)
    assert found.freedom == (shape[0] - 1) * (shape[1] - 1)


def test_with_two_variables_and_nothing_given_it_is_pearsons():
    table = random_table((3, 4), 3000, default_rng(2))
    found = association(exact(table), 0, 1)
    assert found.statistic == pytest.approx(stats.chi2_contingency(table).statistic, rel=1e-6)
    assert found.p_value == pytest.approx(stats.chi2_contingency(table).pvalue, rel=1e-6)
    assert found.undetermined == pytest.approx(1)


def test_the_statistic_does_not_depend_on_the_order_of_levels_or_of_the_pair():
    table = random_table((3, 4, 3), 20_000, default_rng(3)) + 3
    turned = table[[2, 0, 1]][:, [3, 1, 0, 2]][:, :, [1, 2, 0]]
    first = association(exact(table), 0, 1, (2,))
    for other in (
        association(exact(turned), 0, 1, (2,)),
        association(exact(table), 1, 0, (2,)),
    ):
        assert other.statistic == pytest.approx(first.statistic, rel=1e-6)
        assert other.effect == pytest.approx(first.effect, rel=1e-6)


def test_effects_that_cancel_between_strata_are_not_seen():
    table = np.stack([np.array([[400, 100], [100, 400]]), np.array([[100, 400], [400, 100]])], 2)
    assert association(exact(table), 0, 1, (2,)).p_value == pytest.approx(1)
    assert stats.chi2_contingency(table[..., 0]).pvalue < 1e-50


def test_a_determined_variable_leaves_nothing_open():
    table = np.zeros((2, 2, 2, 2), int)
    for x, z, w in itertools.product(range(2), repeat=3):
        table[x, z | w, z, w] = 250
    marginals = exact(table)
    found = association(marginals, 0, 1, (2, 3), interacting=True)
    assert found.undetermined < 1e-6
    assert not TableOracle(marginals).separates(0, 1, (2, 3))
    assert TableOracle(marginals, determined=0.0).separates(0, 1, (2, 3))


def average(marginals, given, interacting):
    design = _design(marginals, given, interacting)
    pair = marginals.moment(0, 1).values
    return design.average(design.regress(0), design.regress(1), pair).ravel()


@pytest.mark.parametrize(
    ("shape", "interacting"),
    [
        ((3, 2), False),
        ((2, 3, 2), False),
        ((3, 2, 3), False),
        ((2, 3, 2, 3), True),
        ((2, 3, 2, 3), False),
    ],
)
def test_privacy_variance_is_what_the_derivatives_say(shape, interacting):
    table = random_table(shape, 100_000, default_rng(4), 1.0) + 100
    given, truth, step = tuple(range(2, len(shape))), exact(table), 1e-6
    at = average(truth, given, interacting)
    expected = 0.0
    for subset, moment in list(truth.released.items())[1:]:
        for entry in range(moment.values.size):
            moved = moment.values.copy()
            moved.flat[entry] += step
            told = truth.released | {subset: Moment(moved, 0.0)}
            change = average(Marginals(truth.n, shape, told), given, interacting) - at
            expected = expected + np.outer(change, change) / step**2
    told = {s: Moment(m.values, 1e-9) for s, m in truth.released.items() if s}
    noisy = Marginals(truth.n, shape, told)
    design = _design(noisy, given, interacting)
    found = design.noise(design.regress(0), design.regress(1), 1e-9) / 1e-18
    assert found == pytest.approx(expected, abs=2e-3)


LEVEL_CASES = [
    ((2, 2), 400, 10.0),
    ((5, 5), 25_000, 1000.0),
    ((3, 3, 4), 36_000, 300.0),
    ((2, 2, 2, 2), 50_000, 300.0),
]


@pytest.mark.parametrize(("shape", "n", "deviation"), LEVEL_CASES)
def test_the_level_is_held(shape, n, deviation):
    # Binomial with 1,500 runs at level 0.1: 75 to 225 rejections but for a chance below 1e-9.
    rng, rejected = default_rng(5), 0
    joint = independent(shape, rng).ravel()
    for _ in range(1500):
        table = rng.multinomial(n, joint).reshape(shape)
        marginals = Blurred(Counts(table), deviation, rng)
        marginals.measure_pairs(1.0)
        for triple in [(0, 2, 3), (1, 2, 3)] if len(shape) == 4 else []:
            marginals.measure(triple, 1.0)
        given = tuple(range(2, len(shape)))
        rejected += association(marginals, 0, 1, given, interacting=True).p_value < 0.1
    assert 75 < rejected < 225


def test_a_variable_close_to_its_condition_does_not_break_the_level():
    # As above; without the noise of the condition's own margin it would be 15% too many.
    rng, rejected = default_rng(6), 0
    x, y = np.array([[0.02, 0.98], [0.98, 0.02]]), np.array([[0.95, 0.95], [0.05, 0.05]])
    joint = 0.5 * np.einsum("as,bs->abs", x, y)
    for _ in range(1500):
        marginals = Blurred(
            Counts(rng.multinomial(100_000, joint.ravel()).reshape(2, 2, 2)), 1e3, rng
        )
        marginals.measure_pairs(1.0)
        rejected += association(marginals, 0, 1, (2,)).p_value < 0.1
    assert 75 < rejected < 225


class Scale:
    """Notes how wide noise would be, and adds none."""

    def __init__(self):
        self.scales = []

    def gaussian(self, value, scale):
        self.scales.append(scale)
        return value


def test_one_draw_of_the_right_width_for_all_pairs():
    data, noise = load("asia", n=1000, rng=default_rng(0)), Scale()
    marginals = MeasuredMarginals(Tables(data), Filter(Budget(10.0, 1e-6)), noise)
    marginals.measure_pairs(0.5)
    marginals.measure((2, 0, 1), 0.125)
    assert noise.scales == pytest.approx([5.0, 2 * math.sqrt(0.5)])
    assert marginals.moment(0, 7).deviation == pytest.approx(5.0 / 1000)
    assert (0, 1, 2) in marginals.released


def test_nothing_is_looked_at_before_it_is_paid_for():
    data = load("asia", n=1_000, rng=default_rng(0))

    class Blind(Tables):
        def counts(self, variables):
            raise AssertionError("looked")

    account = Filter(Budget(0.01, 1e-6))
    marginals = MeasuredMarginals(Blind(data), account, SeededNoise(default_rng(0)))
    for measure in (marginals.measure_pairs, lambda rho: marginals.measure((0, 1, 2), rho)):
        with pytest.raises(BudgetSpent):
            measure(2 * account.rho)
    assert account.ledger.events == ()
    assert list(marginals.released) == [()]


@settings(derandomize=True, deadline=None, max_examples=25)
@given(some_levels, st.floats(0.5, 20), st.integers(0, 2))
def test_no_run_spends_more_than_its_budget(levels, epsilon, max_order):
    rng = default_rng(len(levels))
    codes = np.column_stack([rng.integers(0, of, 5000) for of in levels])
    codes[:, -1] = np.minimum(codes[:, 0], levels[-1] - 1)
    data = records(codes, levels)
    release = table_pc(data, epsilon=epsilon, rng=rng, max_order=max_order)
    assert release.ledger.spent <= (epsilon, 1e-6)
    assert release.guarantee == "proved"
    assert not release.stopped_early


@pytest.mark.parametrize("d", [2, 3, 5, 8, 9, 40])
def test_shares_pay_for_the_pairs_and_all_triples_that_are_planned(d):
    for_pairs, for_triple = shares(d)
    assert 0.6 * (1 - 1e-8) < for_pairs < 1
    whole = for_pairs + for_triple * min(8 * d, math.comb(d, 3))
    assert whole == pytest.approx(1, abs=1e-8)
    assert whole < 1


@pytest.mark.parametrize("name", ["asia", "sachs"])
def test_runs_pay_for_all_noise(name):
    data = load(name, n=20_000, rng=default_rng(0))
    release = table_pc(data, epsilon=1.0, rng=default_rng(1))
    witness = Witness(Filter(Budget(1.0, 1e-6)), SeededNoise(default_rng(1)))
    marginals = MeasuredMarginals(Tables(data), witness, witness)
    for_pairs, for_triple = shares(data.d)
    marginals.measure_pairs(for_pairs * witness.rho)
    oracle = TableOracle(marginals, price=for_triple * witness.rho)
    assert search(oracle, data.variables, max_order=2).graph == release.graph
    assert witness.unpaid == []


def test_a_run_spends_what_is_left_on_the_triples_of_families():
    data = load("asia", rng=default_rng(0))
    release = table_pc(data, epsilon=1.0, rng=default_rng(1))
    assert 0.999 < release.ledger.spent.epsilon <= 1.0


def shifted(epsilon, wrong=1.0):
    """Released pairs of one data set of few records, along the direction in which it may move."""
    levels = (2, 2, 3)
    one, other = (records([[0, 0, 0]] * 40 + [last], levels) for last in ([0, 0, 0], [1, 1, 0]))
    told = [exact_vector(Tables(data)) for data in (one, other)]
    along = (told[1] - told[0]) / np.linalg.norm(told[1] - told[0])
    rng = default_rng(7)

    class Narrow(SeededNoise):
        def gaussian(self, value, scale):
            return super().gaussian(value, scale * wrong)

    def mechanism(data):
        account = Filter(Budget(epsilon, 1e-3))
        marginals = MeasuredMarginals(tables[id(data)], account, Narrow(rng))
        marginals.measure_pairs(account.rho * (1 - 1e-9))
        values = [m.values.ravel() for s, m in marginals.released.items() if s]
        return float(np.concatenate(values) @ along)

    tables = {id(data): Tables(data) for data in (one, other)}
    return mechanism, one, other


def exact_vector(tables):
    variables = range(len(tables.levels))
    subsets = [*itertools.combinations(variables, 1), *itertools.combinations(variables, 2)]
    return ExactMarginals(tables)._exactly(subsets)


def test_the_release_of_pairs_passes_its_audit_and_a_narrow_one_fails():
    # False alarm 1e-9.
    honest = empirical_epsilon(*shifted(2.0), delta=1e-3, trials=3000)
    narrow = empirical_epsilon(*shifted(2.0, wrong=1 / 4), delta=1e-3, trials=3000)
    assert honest <= 2.0 < narrow


def test_a_release_holds_no_data():
    data = load("sachs", n=50_000, rng=default_rng(0))
    release = table_pc(data, epsilon=1.0, rng=default_rng(1))
    assert type(release.marginals) is Marginals
    assert len(pickle.dumps(release)) < 200_000 < data.codes.nbytes
    with pytest.raises(BudgetSpent, match="no data"):
        release.marginals.measure((0, 1, 2), 0.1)


def test_redrawn_marginals_carry_their_noise_twice():
    data = load("asia", rng=default_rng(0))
    told = table_pc(data, epsilon=1.0, rng=default_rng(1)).marginals
    again = told.redrawn(default_rng(2))
    assert again.released.keys() == told.released.keys()
    ratio = [
        (again.released[s].values - m.values).ravel() / m.deviation
        for s, m in told.released.items()
        if s
    ]
    ratio = np.concatenate(ratio)
    assert again.released[(0,)].deviation == pytest.approx(
        math.sqrt(2) * told.released[(0,)].deviation
    )
    assert abs(ratio.mean()) < 6.2 / math.sqrt(len(ratio))  # false alarm below 1e-9
    assert stats.kstest(ratio, "norm").pvalue > 1e-9


def test_seeded_runs_do_not_change():
    data = load("sachs", rng=default_rng(0))
    release, again = (table_pc(data, epsilon=0.3, rng=default_rng(1)) for _ in range(2))
    assert release.graph == again.graph
    assert release.ledger == again.ledger
    assert release.tests == 523
    assert release.graph.skeleton_f1(data.truth) == pytest.approx(34 / 35)
    assert len(release.marginals.released) == 108
    assert release.marginals.moment(0, 1).values[0] == pytest.approx([-0.15981104, 0.18972537])


def test_renaming_renames_the_graph():
    data = load("survey", rng=default_rng(0))
    renamed = Dataset(data.codes, {f"v_{name}": kept for name, kept in data.levels.items()})
    first, second = (table_pc(d, epsilon=0.3, rng=default_rng(0)).graph for d in (data, renamed))
    assert {frozenset(f"v_{name}" for name in pair) for pair in first.skeleton} == second.skeleton


def test_knowledge_is_obeyed():
    data = load("survey", rng=default_rng(0))
    known = Knowledge(required=[("A", "S")], forbidden=[("A", "E"), ("E", "A")])
    graph = table_pc(data, epsilon=1.0, rng=default_rng(0), knowledge=known).graph
    assert ("A", "S") in graph.arrows
    assert frozenset("AE") not in graph.skeleton


def test_variables_with_one_level_stand_alone():
    rng = default_rng(0)
    first = rng.integers(0, 2, 5000)
    codes = np.column_stack([np.zeros(5000, int), first, first, np.zeros(5000, int)])
    release = table_pc(records(codes, (1, 2, 2, 1)), epsilon=2.0, rng=rng)
    assert release.graph.skeleton == {frozenset(("v1", "v2"))}
    assert table_pc(records([[0, 0]] * 5000, (1, 1)), epsilon=2.0, rng=rng).ledger.events == ()


def test_secure_runs_say_no_seconds():
    data = load("earthquake", n=2000, rng=default_rng(0))
    release = table_pc(data, epsilon=1.0, secure=True)
    assert release.seconds is None
    assert release.ledger.spent <= (1.0, 1e-6)


def test_bad_input_is_refused_before_anything_is_spent():
    data = load("asia", n=5000, rng=default_rng(0))
    rng = default_rng(0)
    with pytest.raises(ValueError, match="max_order must be 0, 1 or 2, not 3"):
        table_pc(data, epsilon=1.0, rng=rng, max_order=3)
    with pytest.raises(ValueError, match="take a larger epsilon, fewer variables or more records"):
        table_pc(data, epsilon=0.01, rng=rng)
    wide = records(np.zeros((5000, 2), int), (30, 30))
    with pytest.raises(ValueError, match=r"30 and 30 levels.*join levels first"):
        table_pc(wide, epsilon=1.0, rng=rng)
    with pytest.raises(ValueError, match="say where the noise comes from"):
        table_pc(data, epsilon=1.0)
    assert rng.bit_generator.state == default_rng(0).bit_generator.state
