"""The yardsticks on file, one of them anew, and what synthetic records cost."""

import collections
import importlib
import itertools
import math
import sys
import types
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from dpcgd_book.results.graph_scores import scores
from dpcgd_book.results.larger_networks import drawn
from dpcgd_book.results.stored import yardsticks as on_file
from hypothesis import given, strategies as st

from benchmarks import discrete_scores, synthetic_records as synthetic, yardsticks
from dpcgd.privacy.conversions import zcdp_rho
from dpcgd.privacy.events import BoundedRangeEvent, GaussianEvent

ROWS = on_file()
CELL = ["system", "network", "n", "epsilon"]
SCORED = ROWS.dropna(subset="F1")


def test_every_row_on_file_is_one_of_the_plan_and_has_scores_or_says_why_not():
    assert not ROWS.duplicated([*CELL, "run"]).any()
    planned = {tuple(case.values()) for case in yardsticks.cases()}
    assert set(ROWS[[*CELL, "run"]].itertuples(False, None)) <= planned
    assert (ROWS.F1.isna() == ROWS.why_not.notna()).all()
    for score in ("F1", "arrowhead F1", "precision", "recall"):
        assert SCORED[score].between(0, 1).all(), score
    assert (SCORED[["SHD", "edges"]] >= 0).all(axis=None)
    assert (SCORED.seconds > 0).all()
    assert (np.isinf(ROWS.epsilon) == ~ROWS.system.isin(["MST", "AIM"])).all()
    some = SCORED[SCORED.edges > 0]
    both = some.precision + some.recall
    np.testing.assert_allclose(some.F1 * both, 2 * some.precision * some.recall, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("network", "n", "run"), [("asia", 100_000, 1), ("sachs", 10_000, 2)])
@pytest.mark.parametrize("system", ["PC, chi squared", "adjusted PC, chi squared"])
def test_a_row_without_privacy_comes_out_again(system, network, n, run):
    data = drawn(network, run, n, seed=0)
    again = scores(yardsticks.plain_pc(data, yardsticks.HERE[system]), data.truth)
    case = (ROWS.network == network) & (ROWS.n == n) & (ROWS.run == run)
    (row,) = ROWS[case & (ROWS.system == system)].to_dict("records")
    assert {k: row[k] for k in again} == pytest.approx(again, abs=1e-5)


def by_definition(codes, levels, x, parents):
    """The likelihood of x given its parents, a cell of a cross table at a time, and the penalty."""
    frame = pd.DataFrame(codes)
    table = pd.crosstab([frame[v] for v in parents] or [np.zeros(len(frame))], frame[x])
    shares = table.div(table.sum(axis=1), axis=0)
    both = zip(table.values.flat, shares.values.flat, strict=True)
    gain = sum(count * math.log(share) for count, share in both if count)
    return gain - math.log(len(frame)) / 2 * (levels[x] - 1) * math.prod(levels[v] for v in parents)


@given(st.integers(0, 2**32), st.lists(st.integers(1, 4), min_size=3, max_size=4), st.data())
def test_bic_of_discrete_records_is_that_of_its_definition(seed, levels, data):
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.integers(0, k, 30) for k in levels]).astype(np.uint8)
    x, *others = data.draw(st.permutations(range(len(levels))))
    parents = set(others[: data.draw(st.integers(0, len(others)))])
    expected = by_definition(codes, levels, x, sorted(parents))
    with pytest.MonkeyPatch.context() as patch:
        for most in (discrete_scores.MOST_CELLS, 1):  # all cells, or only those with a record
            patch.setattr(discrete_scores, "MOST_CELLS", most)
            score = discrete_scores.DiscreteBIC(codes, levels).local_score(x, parents)
            assert score == pytest.approx(expected, rel=1e-12, abs=1e-9)


@given(st.integers(0, 2**32), st.lists(st.integers(2, 4), min_size=3, max_size=5), st.data())
def test_bdeu_is_that_of_causal_learn(seed, levels, data):
    from causallearn.score.LocalScoreFunction import local_score_BDeu

    rng = np.random.default_rng(seed)
    # all levels occur
    codes = np.column_stack([rng.permutation(np.arange(30) % k) for k in levels])
    x, *others = data.draw(st.permutations(range(len(levels))))
    parents = others[: data.draw(st.integers(0, len(others)))]
    score = discrete_scores.DiscreteBDeu(codes, levels).local_score(x, parents)
    assert score == pytest.approx(local_score_BDeu(codes, x, parents), rel=1e-12)


def neighbours(rng, levels, n=40):
    codes = np.column_stack([rng.integers(0, k, n) for k in levels])
    other = codes.copy()
    other[0] = [rng.integers(0, k) for k in levels]
    return codes, other


@given(st.integers(0, 2**32), st.lists(st.integers(2, 4), min_size=3, max_size=4))
def test_replacing_a_record_moves_tables_and_choices_no_further_than_is_paid_for(seed, levels):
    rng = np.random.default_rng(seed)
    one, two = (synthetic.PaidRecords(c, levels, 1.0, rng) for c in neighbours(rng, levels))
    cliques = synthetic.workload(len(levels))
    for clique in cliques:
        moved = one._counts(clique) - two._counts(clique)
        assert (moved**2).sum() <= synthetic.SQUARED_MOVE
        assert np.abs(moved).sum() <= synthetic.MOVE
    expected = {c: rng.uniform(0, 20, one.size(c)) for c in cliques}
    weights, allowed = rng.uniform(0.5, 3, (2, len(cliques)))
    first, second = (of._exponents(expected, 0.7, weights, allowed) for of in (one, two))
    assert np.abs(first - second).max() <= 0.7 / 2 + 1e-9


@pytest.fixture
def without_mbi(monkeypatch):
    """The names that a model needs of the packages in the other environment."""

    class Domain:
        def __init__(self, variables, levels):
            self.variables, self.shape = variables, levels

        def __len__(self):
            return len(self.shape)

        def size(self, of=None):
            return math.prod(self.shape[v] for v in (self.variables if of is None else of))

    mbi = types.SimpleNamespace(Domain=Domain, MarginalLossFn=lambda *of: of)
    mbi.LinearMeasurement = lambda *of: of
    settings = types.SimpleNamespace(update=lambda *_: None)
    monkeypatch.setitem(sys.modules, "jax", types.SimpleNamespace(config=settings))
    monkeypatch.setitem(sys.modules, "mbi", mbi)
    return mbi


def factors(rng, levels, cliques):
    """A model's factors, as mbi keeps them."""
    of = {c: types.SimpleNamespace(values=rng.normal(size=[levels[v] for v in c])) for c in cliques}
    of = collections.UserDict(of)
    of.cliques = list(cliques)
    return of


def test_a_square_of_every_cell_is_the_distance_from_all_tables(without_mbi):
    rng, levels = np.random.default_rng(0), (2, 3, 2, 4)
    fit = synthetic.FitOfFewCells(levels, 100)
    tables = [(c, rng.normal(10, 9, [levels[v] for v in c])) for c in synthetic.workload(4)]
    tables = [(c, table, rng.uniform(0.3, 5)) for c, table in tables if 2 not in c or len(c) < 3]
    for clique, table, deviation in tables:
        fit.add(clique, table.ravel(), deviation)
    every, square, data, steepest = fit._loss()
    assert every == ((0, 1, 2, 3),)

    def distance(cells):
        joint = cells.reshape(levels)
        sums = [(joint.sum(tuple({0, 1, 2, 3} - {*c})), t, s) for c, t, s in tables]
        return sum((((of - table) / s) ** 2).sum() / 2 for of, table, s in sums)

    def asked(cells):
        one = factors(rng, levels, every)
        one[every[0]].values = cells.reshape(levels)
        return square(one, data)

    first, *others = rng.uniform(0, 20, (9, math.prod(levels)))
    for cells in others:
        assert asked(cells) - asked(first) == pytest.approx(distance(cells) - distance(first))
        assert np.linalg.norm(data[0] @ cells) <= steepest * np.linalg.norm(cells) * (1 + 1e-9)
    assert asked(data[1]) == pytest.approx(0, abs=1e-9)


def test_tables_of_a_model_are_those_of_the_product_of_its_factors(without_mbi):
    rng, levels = np.random.default_rng(0), (2, 3, 2, 4)
    fit = synthetic.Fit(levels, 100)
    fit.model = types.SimpleNamespace(potentials=factors(rng, levels, [(0,), (1, 2), (0, 2, 3)]))
    cells = np.zeros(levels)
    for clique, factor in fit.model.potentials.items():
        cells += np.expand_dims(factor.values, [v for v in range(4) if v not in clique])
    joint = np.exp(cells)
    for clique, table in fit.tables(synthetic.workload(4)).items():
        expected = 100 * joint.sum(tuple({*range(4)} - {*clique})) / joint.sum()
        np.testing.assert_allclose(table, expected.ravel(), rtol=1e-12)


def test_the_first_job_of_a_process_draws_like_those_that_follow(monkeypatch, tmp_path):
    """Importing jax, as mbi does, draws from numpy's own generator."""
    monkeypatch.syspath_prepend(Path(yardsticks.__file__).parent)
    worker = importlib.import_module("yardstick_worker")  # with its own imports
    (tmp_path / "mbi.py").write_text("import numpy\nnumpy.random.random()\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mbi", raising=False)

    def synthesizer(records):
        importlib.import_module("mbi")
        return np.random.random(records.codes.shape)  # noqa: NPY002

    monkeypatch.setitem(worker.SYNTHESIZERS, "MST", synthesizer)
    np.savez(tmp_path / "records.npz", codes=np.zeros((5, 2), np.uint8), levels=[2, 2])
    job = {"system": "MST", "rho": 1.0, "noise": [0, 1, 17], "settings": {}}
    job |= {name: str(tmp_path / f"{name}.npz") for name in ("records", "synthetic")}
    found = []
    for _ in range(2):
        worker.answer(job)
        with np.load(tmp_path / "synthetic.npz") as drawn_records:
            found.append(drawn_records["codes"])
    del sys.modules["mbi"]
    np.testing.assert_array_equal(*found)


class NoFit:
    """A model that is uniform, whatever was measured; it keeps what that was."""

    def __init__(self, levels, n):
        self.levels, self.n, self.measured = levels, n, []

    def add(self, clique, table, deviation):
        self.measured.append((clique, deviation))

    def renew(self):
        pass

    def tables(self, cliques):
        sizes = {c: math.prod(self.levels[v] for v in c) for c in cliques}
        return {c: np.full(size, self.n / size) for c, size in sizes.items()}

    def within(self, megabytes, cliques):
        return list(cliques)

    def draw(self):
        return self.measured


@pytest.mark.parametrize(("name", "settings"), [("MST", {}), ("AIM", {"patience": 60})])
def test_synthetic_records_cost_the_whole_budget_and_no_more(monkeypatch, name, settings):
    for one in ("Fit", "FitOfFewCells"):
        monkeypatch.setattr(synthetic, one, NoFit)
    rng, choices, rho = np.random.default_rng(0), [], 0.02
    codes, _ = neighbours(rng, (2, 3, 2, 4, 2), 500)
    records = synthetic.PaidRecords(codes, (2, 3, 2, 4, 2), rho, rng)
    chosen = records.chosen
    monkeypatch.setattr(records, "chosen", lambda *of: choices.append(of[1]) or chosen(*of))
    measured = synthetic.SYNTHESIZERS[name](records, **settings)
    paid = [zcdp_rho(GaussianEvent(name, of / math.sqrt(2))) for _, of in measured]
    paid += [zcdp_rho(BoundedRangeEvent(name, of)) for of in choices]
    assert math.fsum(paid) == pytest.approx(rho, rel=1e-6)
    assert records.spent == pytest.approx(math.fsum(paid))
    with pytest.raises(ValueError, match="over budget"):
        records.noisy((0,), 10.0)
    if name == "MST":
        pairs = [c for c, _ in measured if len(c) == 2]
        assert len(measured) == 5 + len(pairs) == 9
        assert {v for pair in pairs for v in pair} == set(range(5))


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=8), st.floats(1, 100))
def test_the_nearest_table_without_negative_cells(table, total):
    table = np.array(table)
    found = synthetic.on_simplex(table, total)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(total)
    moved = table - found
    for a, b in itertools.permutations(range(len(table)), 2):
        if found[a] > 1e-6:  # moving mass from a to b does not come nearer
            assert moved[a] >= moved[b] - 1e-6
