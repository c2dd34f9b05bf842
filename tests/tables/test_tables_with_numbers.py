"""Numbers from the run to the page: odd tables, files, plans, receipts, readings, refusals."""

import numpy as np
import pandas as pd
import pytest
from numpy.random import default_rng
from people import read_back, refused
from scipy.stats import chi2

import dpcgd
from dpcgd import Counts, Dataset, Schema, private_graph
from dpcgd.datasets.variable import PARTS, Parts
from dpcgd.moments.clipped_moments import blocks_of
from dpcgd.tables.private_graph import measure_for_edges
from dpcgd.tables.public_facts import check_run

NUMBER, HOLED = Parts(0.0, 1.0), Parts(0.0, 1.0, missing="unknown")
BIT = ("no", "yes")
quiet = pytest.mark.filterwarnings("error", "ignore:the edge model was trained")


def numbers(codes, own=NUMBER):
    return Dataset(codes, {f"v{i}": own for i in range(codes.shape[1])})


def anywhere(rng, n=5000, d=9):
    return rng.integers(0, PARTS, (n, d))


def at_two_places(rng, n=5000, d=9):
    return np.where(rng.random((n, d)) < 0.4, 77, 30_000)


def with_some(first, change):
    """Independent numbers, the first of which are changed."""
    return lambda rng: np.where(np.arange(9) < first, change(codes := anywhere(rng)), codes)


def without(share):
    return lambda rng: np.where(rng.random((5000, 9)) < share, PARTS, anywhere(rng))


ODD = {
    "two": lambda rng: anywhere(rng, d=2),
    "eight": lambda rng: anywhere(rng, d=8),
    "constants": with_some(3, lambda codes: 12_345),
    "all constant": with_some(9, lambda codes: 5),
    "far too wide": with_some(5, lambda codes: 9000 + codes % 2),
    "two values": at_two_places,
    "half missing": without(0.5),
    "mostly missing": without(0.9),
    "all missing": without(1.0),
}


@quiet
@pytest.mark.parametrize("kind", ODD)
def test_nothing_is_found_where_there_is_nothing(kind):
    """Of some 36 pairs of each table; numbers, noise and parts of a range are not taken for one."""
    edges = 0
    for seed, epsilon in enumerate((1e-3, 1.0, 1.0, 1.0, 1e6)):
        data = numbers(ODD[kind](default_rng(seed)), HOLED if "missing" in kind else NUMBER)
        edges += len(private_graph(data, epsilon=epsilon, rng=default_rng(seed)).graph.skeleton)
    assert edges <= 2


@quiet
@pytest.mark.parametrize("n", [1, 2, 10])
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 1e6, 1e100])
def test_a_few_records_make_a_release(n, epsilon):
    for codes, own in ((anywhere(default_rng(n), n, 3), NUMBER), (np.full((n, 3), PARTS), HOLED)):
        data = numbers(codes, own)
        release = private_graph(data, epsilon=epsilon, delta=1e-3, rng=default_rng(0))
        assert release.ledger.spent.epsilon <= epsilon
        assert np.isfinite(list(release.probabilities.values())).all()


@pytest.mark.filterwarnings("ignore:the edge model was trained")
@pytest.mark.parametrize("places", [anywhere, at_two_places])
def test_copies_are_joined_and_a_category_that_follows_a_number_is(places):
    codes = places(default_rng(0), 20_000)
    codes[:, 1] = codes[:, 0]
    codes[:, 2] = codes[:, 3] > PARTS / 2
    levels = {f"v{i}": BIT if i == 2 else NUMBER for i in range(9)}
    pairs = [("v0", "v1"), ("v2", "v3")]
    for of, found in ((range(9), pairs), ((0, 1), pairs[:1]), ((2, 3), pairs[1:])):
        data = Dataset(codes[:, of], {f"v{i}": levels[f"v{i}"] for i in of})
        assert released(data).graph.skeleton == {*map(frozenset, found)}


# --- a mixed table, from a file to the page


SCHEMA = {
    "sex": BIT,
    "age": {"range": [0, 90]},
    "income": {"range": [1, 1e6], "scale": "log", "outside": "clip", "missing": "unknown"},
    "town": [f"t{i}" for i in range(30)],
    "size": {"range": [-10, 10], "outside": "clip"},
}


def people(n=20_000):
    rng = default_rng(0)
    size, other = rng.normal(size=(2, n))
    age = np.clip(45 + 10 * (size + other), 0, 90)
    income = np.where(rng.random(n) < 0.2, np.nan, np.exp(age / 10))
    sex, town = rng.choice(BIT, n), rng.choice(SCHEMA["town"], n)
    return pd.DataFrame({"sex": sex, "age": age, "income": income, "town": town, "size": size})


FRAME = people()
DATA = Dataset.from_pandas(FRAME, SCHEMA)


def released(data=DATA, seed=1, **settings):
    return private_graph(data, epsilon=1.0, rng=default_rng(seed), **settings)


def test_a_run_on_files_is_the_run_on_the_data_set(tmp_path):
    pytest.importorskip("pyarrow", reason="it is in the parquet extra")
    for i in range(3):
        FRAME[i * 7000 : (i + 1) * 7000].to_parquet(tmp_path / f"{i}.parquet", row_group_size=900)
    release = released()
    assert release.graph.skeleton == {frozenset(p) for p in (("age", "size"), ("age", "income"))}
    for spill in (False, True):
        assert released(dpcgd.read_parquet(tmp_path, SCHEMA, spill=spill)) == release


def test_a_secure_run_needs_no_seed():
    pytest.importorskip("opendp")
    release = private_graph(DATA, epsilon=1.0, secure=True)
    assert (release.terms.kind, release.seconds) == ("release", None)
    assert frozenset(("age", "size")) in release.graph.skeleton


def test_what_a_release_can_do_it_does_with_numbers(tmp_path):
    release = released()
    again = read_back(release, tmp_path / "receipt.json")
    assert again == release
    assert dpcgd.check_receipt(tmp_path / "receipt.json").epsilon <= 1.0
    for v, number in release.marginals.numbers.items():
        assert np.array_equal(number.vectors, again.marginals.numbers[v].vectors)
    for name in ("page.html", "page.md"):
        assert "income" in str(release.report(tmp_path / name))
        assert len((tmp_path / name).read_text()) < 100_000
    assert "age" in release.graph.to_dot()
    assert "5 variables" in repr(release)
    few, many = (dpcgd.read(again, precision=share).skeleton for share in (0.99, 0.1))
    assert few < many
    assert dpcgd.read(again) == release.graph
    refused("'age' is a number, which has no table", dpcgd.fit_network, release, rng=default_rng(0))


@pytest.mark.parametrize("system", ["table_pc", "priv_pc", "em_pc", "curate_pc", "dag_posterior"])
def test_systems_for_categories_refuse_numbers_and_say_what_to_do(system):
    cure = r"^'age' is a number.*data\.binned\(5\)"
    refused(cure, check_run, getattr(dpcgd, system), SCHEMA, 1000, epsilon=1.0, rng=default_rng(0))


class CountsAlone(Counts):
    levels, n, counts = Schema(SCHEMA).levels, 20_000, None


def test_counts_without_records_are_refused_before_anything_is_spent(tmp_path):
    account = dpcgd.open_account(tmp_path / "account.json", epsilon=2.0, delta=1e-6)
    cure = "^'age' is a number, and CountsAlone answers counts"
    refused(cure, private_graph, CountsAlone(), **account.reserve(epsilon=1.0, delta=1e-7))
    assert [run.system for run in account.runs] == [""]


# --- plans


UNIFORM = {f"x{i}": {"range": [0, 2]} for i in range(6)} | {"sex": BIT, "town": SCHEMA["town"]}


@pytest.mark.parametrize("holes", [0, 1])
def test_a_plan_has_the_noise_of_its_run_where_numbers_lie_evenly(holes):
    schema = Schema(UNIFORM | {"h": {"range": [0, 1], "missing": "unknown"}} if holes else UNIFORM)
    rng, n = default_rng(0), 50_000
    codes = [rng.integers(len(own), size=n) for own in schema.levels.values()]
    release = released(Dataset.of_schema(np.column_stack(codes), schema))
    planned = dpcgd.plan(schema, n, epsilon=1.0, shares={"h": (2**15, 1)} if holes else {})
    assert planned.marginals.deviation == pytest.approx(release.marginals.deviation, rel=0.01)
    for subset, moment in release.marginals.released.items():
        assert planned.marginals.released[subset].deviation == pytest.approx(moment.deviation)
    assert "points" in repr(planned)


NORMAL = {f"x{i}": {"range": [-4, 4], "outside": "clip"} for i in range(6)}


def normals(r, n, rng):
    """Numbers of which the first two correlate by r."""
    values = rng.normal(size=(n, 6))
    values[:, 1] = r * values[:, 0] + np.sqrt(1 - r * r) * values[:, 1]
    return Dataset.from_pandas(pd.DataFrame(values, columns=list(NORMAL)), NORMAL)


@pytest.mark.slow
def test_a_plan_is_right_about_two_numbers():
    """Power .8 is within .65 and .92 in 40 runs, but for one in a thousand of such tests.

    Normal scores are cut off at 3 deviations, and pieces are not halved to the end: that costs a
    few hundredths.
    """
    pair, found, apart = dpcgd.plan(NORMAL, 20_000, epsilon=1.0).pairs["x0", "x1"], 0, []
    for run in range(40):
        rng = default_rng([7, run])
        data = normals(pair.correlation, 20_000, rng)
        blocks = blocks_of(measure_for_edges(data, epsilon=1.0, rng=rng).marginals)
        block = blocks.rows[0], blocks.rows[1]
        found += (blocks.correlations**2 / blocks.variances)[block].sum() > chi2.isf(0.01, 4)
        upper, above = data.codes[:, 0] >= 2**14, data.codes[:, 1] >= 2**14
        apart.append(100 * (above[upper].mean() - above[~upper].mean()))
    assert 0.55 * 40 < found < 0.95 * 40
    assert np.mean(apart) == pytest.approx(pair.points, abs=0.5)


def test_a_number_is_no_category_with_as_many_levels():
    """Shares are those of three and of four levels, noise is that of a score."""
    schema = NORMAL | {"three": list("abc"), "four": list("abcd")}
    schema["x0"] = {"range": [0, 1], "missing": "unknown"}
    planned = dpcgd.plan(schema, 20_000, epsilon=1.0, shares={"x0": (3, 1), "three": (2, 1, 1)})
    assert planned.smallest("x1", "x2") != pytest.approx(planned.smallest("three", "x2"), rel=0.01)
    assert planned.smallest("x0", "x2") != pytest.approx(planned.smallest("four", "x2"), rel=0.01)
    rarely = dpcgd.plan(schema, 20_000, epsilon=1.0, shares={"x0": (999, 1)})
    assert rarely.shares["x0"][-1] == pytest.approx(0.001)
    cure, shares = "not missing, unknown", {"x0": (1, 1, 1)}
    refused(cure, dpcgd.plan, schema, 20_000, epsilon=1.0, shares=shares)


def test_public_facts_of_numbers_do_for_budgets_and_rehearsals():
    less, more = (dpcgd.epsilon_for(UNIFORM, 20_000, correlation=r) for r in (0.2, 0.1))
    assert 0 < less < more
    assert dpcgd.plan(UNIFORM, 20_000, epsilon=more).smallest("x0", "x1") <= 0.1
    back = dpcgd.rehearse(SCHEMA, 20_000, epsilon=1.0, rng=default_rng(0), runs=2)
    assert len(back.to_frame()) == 2
    check_run(private_graph, SCHEMA, 1000, epsilon=1.0, rng=default_rng(0))


WIDE = [(150, 3.0, 30), (300, 1.0, 1000), (1200, 0.3, 30)]


@pytest.mark.filterwarnings("ignore:the edge model was trained")
@pytest.mark.parametrize(("n", "epsilon", "end"), WIDE)
def test_where_ranges_are_too_wide_to_be_halved_independent_numbers_have_no_edges(n, epsilon, end):
    """All lie in a few pieces, none at its middle: 1.6 to 3.2 false edges a run if that is unseen.

    No probability was above .23 in 60 runs.
    """
    for seed in range(8):
        rng = default_rng([n, seed])
        values = rng.exponential(size=(n, 9))
        data = Dataset.of_numbers(values, {f"v{i}": (0, end) for i in range(9)})
        release = private_graph(data, epsilon=epsilon, delta=1e-6, rng=rng)
        assert max(release.probabilities.values()) < 0.5
