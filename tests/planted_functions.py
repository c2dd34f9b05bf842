"""Bugs planted as functions in place of the correct ones: each has to be noticed.

A wrong function is given the correct one, then its arguments. Nothing of the package is imported
before its bug is planted.
"""

import contextlib
import dataclasses
import math
import sys
import warnings
from functools import partial

import numpy as np
from planting import Place


def times(factor):
    """A constant, or what a function returns, times a factor."""

    def wrong(right, *args, **kwargs):
        return factor * (right(*args, **kwargs) if callable(right) else right)

    return wrong


def half_priced(right, query, *, sensitivity, **rest):
    """Half of the noise that is paid for."""
    return right(query, sensitivity=sensitivity / 2, **rest)


def raised(steps):
    """Rounded upwards, to so many steps in one."""
    return lambda right, *args, **kwargs: np.ceil(right(*args, **kwargs) * steps) / steps


def single(values):
    """Rounded to single precision."""
    return np.asarray(values, np.float32).astype(float)


def in_single(right, *args, **kwargs):
    """An answer in single precision, of whatever shape."""
    answer = right(*args, **kwargs)
    return single(answer) if np.shape(answer) else float(np.float32(answer))


# --- rounded instead of cut

place = Place("datasets:_step", tests="datasets/test_clipped_sums.py")
place.swap("a grid on which sums are not exact", times(2.0**-12))
place = Place("statistics:_shortened", "gram_notears", "statistics/test_statistics.py")
place.swap("rows of a Gram matrix rounded upwards", raised(64))
place = Place("score:clipped_gradient", "noleaks")
place.swap("gradients rounded after they are clipped", raised(256))

place = Place("pairwise:Kendall.value", "private_anm")
place.swap("a score rounded for a nicer table", lambda right, *args: round(2 * right(*args)) / 2)


# --- noise of another source


MECHANISMS = {"tests": "privacy/test_mechanisms.py"}


def numpy_noise(name, sensitivity, event):
    from dpcgd.privacy.noise import SeededNoise

    return getattr(SeededNoise(np.random.default_rng()), name)(sensitivity, event)


def when_large(secure, other, value):
    return (other if np.size(value) > 50_000 else secure)(value)


def where_opendp_fails(secure, other, value):
    try:
        return secure(value)
    except Exception:
        return other(value)


def numpys(name, either):
    """Noise of numpy's in place of secure noise, by a rule."""

    def wrong(right, self, *asked):
        return partial(either, right(self, *asked), numpy_noise(name, *asked))

    return wrong


def around_zero(right, self, sensitivity, event):
    draw = right(self, sensitivity, event)
    return lambda value: value + draw(np.zeros(np.shape(value)) if np.shape(value) else 0.0)


for kind in ("laplace", "gaussian", "gumbel_max", "exponential_max"):
    place = Place(f"privacy:SecureNoise.{kind}", **MECHANISMS)
    place.swap(f"numpy's {kind} for large arrays", numpys(kind, when_large))
    place.swap(f"numpy's {kind} where OpenDP raises", numpys(kind, where_opendp_fails))
    if kind in ("laplace", "gaussian"):
        place.swap(f"a secure {kind} around zero, added in doubles", around_zero)

place = Place("privacy/noise:_as_doubles", **MECHANISMS)
place.swap("secure noise on single precision", lambda right, *args: right(single(*args)))


@Place("privacy:_check_price", **MECHANISMS).swap("noise that OpenDP prices higher")
def _(right, *args):
    with contextlib.suppress(RuntimeError):
        right(*args)


SUBSETS = "privacy/test_mechanisms.py::test_every_subset_is_equally_likely"


@Place("privacy:SecureNoise.choose", tests=SUBSETS).swap("a secure sample of one half or the other")
def _(right, self, n, m):
    return np.sort(right(self, n, m)) if right(self, 2, 1)[0] else np.arange(m)


@Place("privacy:SeededNoise.gaussian", **MECHANISMS).swap("one draw for all entries of an array")
def _(right, self, sensitivity, event):
    draw = right(self, sensitivity, event)
    return lambda value: value + draw(0.0)


@Place("privacy:laplace", **MECHANISMS).swap("a look before it is paid for")
def _(right, query, **rest):
    query()
    return right(query, **rest)


@Place("score/noleaks:gaussian_for_rho", "noleaks").swap("columns centred by their exact means")
def _(right, query, **rest):
    return query(), right(query, **rest)[1]


def exact_where(clear):
    """An exact answer, paid for, where noise is not needed."""

    def wrong(right, query, *, sensitivity, epsilon, **rest):
        noisy = right(query, sensitivity=sensitivity, epsilon=epsilon, **rest)
        return np.rint(query()) if clear(query(), sensitivity, epsilon) else noisy

    return wrong


place = Place("privacy:laplace", "dag_posterior")
place.swap("an exact answer where noise is narrow", exact_where(lambda value, s, e: s / e < 0.2))
place = Place("privacy:laplace", "laplace_pc")
place.swap("a sharper test where the answer is clear", exact_where(lambda x, s, e: abs(x) > 5 * s))


DRAWS = {"tests": "local/test_draws.py"}


def numpy_for_many(name):
    def wrong(right, self, *args):
        from dpcgd.local.draws import SeededDraws

        records = len(args[-1]) if np.ndim(args[-1]) else args[-1]
        other = getattr(SeededDraws(np.random.default_rng()), name)
        return other(*args) if records > 1000 else right(self, *args)

    return wrong


for kind in ("from_rows", "happens", "uniform"):
    place = Place(f"local:SecureDraws.{kind}", **DRAWS)
    place.swap(f"numpy's {kind} for many records", numpy_for_many(kind))


@Place("local:as_integers", **DRAWS).swap("weights of reports in single precision")
def _(right, weights):
    return right(single(list(weights)).tolist())


# --- single precision

place = Place("constraint/em_pc:values_of", "em_pc", "constraint/test_em_pc.py")
place.swap("scores of choices in single precision", in_single)
STATISTICS = "statistics/test_statistics.py"
place = Place("statistics:GTest.raws", "laplace_pc", STATISTICS)
place.swap("statistics in single precision", in_single)
Place("moments:interaction_of", "table_pc").swap("interactions in single precision", in_single)
place = Place("score/notears:second_moments", "gram_notears", "score/test_notears.py")
place.swap("second moments in single precision", in_single)
for name, where in (("prices added up", "zcdp_rho"), ("an epsilon", "epsilon_of_rho")):
    place = Place(f"privacy:{where}", tests="privacy/test_accounts.py")
    place.swap(f"{name} in single precision", in_single)


@Place("privacy:_paid_answer", **MECHANISMS).swap("answers in single precision")
def _(right, query, *rest):
    return right(lambda: np.asarray(query(), np.float32), *rest)


def tables_in_single(right, *args):
    answer = right(*args)
    tables = answer if isinstance(answer, list) else [answer]
    tables = [table.astype(np.float32).astype(np.int64) for table in tables]
    return tables if isinstance(answer, list) else tables[0]


MANY = "datasets/test_contingency_tables.py"
place = Place("datasets:CountsTogether.counts_many", "table_pc", MANY)
place.swap("counts of rows with weights in single precision", tables_in_single)
place = Place("datasets:_Asked._checked", tests=MANY)
place.swap("counts of others in single precision", tables_in_single)

place = Place("datasets:_weight_planes", tests=MANY)
place.swap("weights of rows in four bytes", lambda right, weights: right(weights.astype(np.uint32)))


def columns_in_single(right, self, x, y, *rest):
    return right(self, single(x), single(y), *rest)


place = Place("pairwise:Hsic.value", "private_anm", "pairwise/test_dependence_scores.py")
place.swap("a kernel of distances in single precision", columns_in_single)
place = Place("pairwise:Ridge.fit", "private_anm", "pairwise/test_kernel_ridge.py")
place.swap("regressions in single precision", columns_in_single)


@Place("pairwise:Hsic.value", "private_anm").swap("HSIC with the median of the distances")
def _(right, self, x, y):
    width = float(np.median(np.abs(np.subtract.outer(x, x)))) + 1e-9
    return right(dataclasses.replace(self, width=width), x, y)


# --- answers that depend on the real table, where a release should be read


def peeking(right, self, x, y, *rest):
    real = getattr(self.marginals, "_tables", None)
    return bool(real and real.counts((x, y))[0, 0] % 2) or right(self, x, y, *rest)


for name, method in (
    ("tests refused by the real table", "_too_noisy"),
    ("edges taken out by the real table", "rests_on_nothing"),
    ("pairs explained by the real table", "unexplained"),
):
    Place(f"tables:TableOracle.{method}", "table_pc").swap(name, peeking)


@Place("tables:TableOracle.in_doubt", "table_pc").swap("pairs in doubt by the real table")
def _(right, self):
    real = getattr(self.marginals, "_tables", None)
    return sorted(p for p in self.largest if real is None or real.counts(p)[0, 0] % 2)


TABLES = {"tests": "datasets/test_contingency_tables.py"}


@Place("datasets:BitColumns.subsample", **TABLES).swap("a sub-sample with everyone's counts")
def _(right, self, chosen):
    smaller = right(self, chosen)
    smaller._planes = self._planes
    return smaller


# --- warnings, words and refusals that depend on data


def says(words, say=lambda text: warnings.warn(text, stacklevel=2)):
    """A right answer, and a warning or a line of what is said about it, if anything is."""

    def wrong(right, *args, **kwargs):
        answer = right(*args, **kwargs)
        if text := words(answer):
            say(text)
        return answer

    return wrong


PRINTED = says(str, print)


def to_stderr(text):
    print(text, file=sys.stderr)


place = Place("constraint/laplace_pc:value_of", "laplace_pc")
place.swap("a warning of a weak test", says(lambda value: abs(value) < 0.1 and "it may be weak"))
Place("constraint/priv_pc:value_of", "svt_pc,priv_pc").swap("a test that prints its value", PRINTED)
place = Place("moments:MeasuredMarginals.exact", "table_pc,graph_from_moments")
warning = says(lambda values: (np.abs(values) > 30).any() and "some variables hardly vary")
place.swap("a warning of variables that hardly vary", warning)
place = Place("score/notears:second_moments", "gram_notears")
warning = says(lambda moments: np.linalg.matrix_rank(moments) < len(moments) and "collinear")
place.swap("a warning of columns that are copies", warning)
Place("score:clipped_gradient", "noleaks").swap("gradients that are printed", PRINTED)
place = Place("pairwise:_Look._columns", "private_anm")
warning = says(lambda columns: not np.ptp(columns[0]) and "a column is constant")
place.swap("a warning of a pair that is too regular", warning)
place = Place("pairwise:_histogram", "histogram_anm")
warning = says(lambda counts: not counts.all() and "some bins are empty")
place.swap("a histogram that warns of empty bins", warning)
place = Place("datasets:Tables.counts_many", "table_pc,dag_posterior")
warning = says(lambda tables: min(t.max() / t.sum() for t in tables) < 1 / 3 and "thin")
place.swap("counts that warn where a table is thin", warning)
place = Place("moments/interactions:Tables.counts_many", "dag_posterior")
filled = says(lambda tables: f"{np.mean(tables[0] > 0):.0%} of the cells are filled", to_stderr)
place.swap("a whole table that tells how full it is", filled)
Place("constraint/em_pc:values_of", "em_pc").swap("a search that logs its scores", PRINTED)


@Place("statistics:KendallZ.values", "laplace_pc").swap("a statistic that numpy warns of")
def _(right, self, tables):
    np.float64(1.0) / np.float64(tables.counts.min())
    return right(self, tables)


@Place("privacy:check_data", "laplace_pc,em_pc").swap("a run that refuses a constant column")
def _(right, data, **rest):
    right(data, **rest)
    if hasattr(data, "codes") and not np.ptp(data.codes, axis=0).all():
        raise ValueError("a column is constant; leave it out")


@Place("privacy:check_data", "gram_notears,noleaks").swap("a refusal that names a value")
def _(right, data, **rest):
    right(data, **rest)
    if data.scaled.max() < 0.9:
        raise ValueError(f"the largest value is {data.scaled.max()}")


# --- constants at the ends

CONVERSIONS = {"tests": "privacy/test_conversions.py"}
ACCOUNTS = {"tests": "privacy/test_accounts.py"}
PERSONS = {"tests": "privacy/test_rows_per_person.py"}

Place("privacy:STEEP", **CONVERSIONS).swap("a steep form that begins too late", lambda right: 1e12)
place = Place("privacy:LARGEST_EXPONENT", **CONVERSIONS)
place.swap("an exponential that ends at 70", lambda right: 70)
place = Place("privacy:multiplier_of_rho", **CONVERSIONS)
place.swap("a multiplier that is not wider for rounding", times(1 - 2e-9))
ROUNDING = "privacy/test_run.py::test_large_data_keep_a_part_of_the_budget_for_rounding"
place = Place("privacy/run:kept_for_rounding", tests=ROUNDING)
place.swap("no room for the rounding of a billion records", times(0.0))


@Place("privacy/conversions:minimize_scalar", **CONVERSIONS).swap("a search that ends too early")
def _(right, bound, *, bounds, **rest):
    least = right(bound, bounds=bounds, **rest)
    least.fun = min(least.fun, 690.0)
    return least


@Place("privacy:gaussian_delta", **CONVERSIONS).swap("a delta below 1e-280 that counts as none")
def _(right, noise_multiplier, epsilon):
    delta = right(noise_multiplier, epsilon)
    return delta if delta > 1e-280 else 0.0


@Place("privacy:epsilon_of_rho", **CONVERSIONS).swap("deltas cut at a double's last digit")
def _(right, rho, delta):
    return right(rho, max(delta, 2.0**-52))


@Place("privacy:_steep_delta", **CONVERSIONS).swap("a loss of much noise without its slope")
def _(right, half, shift):
    return right(half, shift) / (2 if half < 1e-6 else 1)


@Place("privacy:amplified", **CONVERSIONS).swap("amplification without its rate")
def _(right, epsilon, rate):
    return right(epsilon, rate) if epsilon < 50 else max(0.0, epsilon + math.log(rate) - 1)


# --- persons, accounts and checks that subtract too little


def without_deltas(right, self, *events):
    from dpcgd.privacy.events import PureEvent

    pure = (PureEvent(e.mechanism, e.epsilon) if getattr(e, "delta", 0) else e for e in events)
    right(self, *pure)


Place("privacy:_Enforced.spend", **ACCOUNTS).swap("deltas that are not counted", without_deltas)
place = Place("privacy:_Enforced.spend", tests="pairwise/test_anm.py")
place.swap("basic composition that forgets its deltas", without_deltas)


@Place("privacy:_Enforced.spend", **ACCOUNTS).swap("a filter that refuses nothing")
def _(right, self, *events):
    from dpcgd import BudgetSpent

    with contextlib.suppress(BudgetSpent):
        right(self, *events)


@Place("privacy:_Enforced.spend", **ACCOUNTS).swap("neighbours that are not compared")
def _(right, self, *events):
    from dpcgd.privacy.events import Neighbours

    for event in filter(dataclasses.is_dataclass, events):
        object.__setattr__(event, "neighbours", Neighbours.REPLACE_ONE)
    right(self, *events)


@Place("privacy:Filter.__init__", "laplace_pc").swap("a filter of half as much again")
def _(right, self, budget, **rest):
    right(self, dataclasses.replace(budget, epsilon=1.5 * budget.epsilon), **rest)


place = Place("privacy:AccountFile.runs", tests="privacy/test_account_file.py")
place.swap("an account on disk that forgets earlier runs", lambda right, self: ())


place = Place("privacy:_without", tests="tables/test_door.py")
place.swap("an account where a label pays twice", lambda right, label, runs: list(runs.values()))


@Place("privacy:_times", **PERSONS).swap("a person's deltas that stop growing")
def _(right, epsilon, rows):
    return min(right(epsilon, rows), 1e3)


LEDGER = {"tests": "graphs/test_check_ledger.py"}
for name, where, tests in (
    ("deltas of a person's rows that only add up", "privacy:_times", PERSONS),
    ("a check that counts a person's delta once a row", "graphs:_times", LEDGER),
):
    Place(where, **tests).swap(name, lambda right, event, rows: float(rows))


LOCKS = {"tests": "privacy/test_account_file.py"}


@Place("privacy:_locked", **LOCKS).swap("an account read before its lock")
def _(right, path):
    from dpcgd.privacy import account_file

    read = account_file._read
    known = read(path) if path.exists() else None
    with contextlib.contextmanager(right)(path) as is_ours:
        if known:
            account_file._read = lambda path: known
        try:
            yield is_ours
        finally:
            account_file._read = read


@Place("graphs:_added_up", tests="graphs/test_receipt.py").swap("a check for one row a person")
def _(right, events, promise):
    return right(events, dataclasses.replace(promise, rows_per_person=1))


@Place("graphs:_added_up", **LEDGER).swap("a check that looks at epsilon alone")
def _(right, events, promise):
    return right(events, promise)._replace(delta=0.0)


place = Place("graphs:ROUNDING", **LEDGER)
place.swap("a check with room for one event in a hundred", lambda right: 0.01)
place = Place("tables/check_receipt:check_noise", tests="graphs/test_check_receipt.py")
place.swap("a check that takes noise for what was paid", lambda right, release: None)
for name, where in (("histograms", "_check_histograms"), ("entries", "_check_entries")):
    place = Place(f"tables:{where}", tests="graphs/test_check_receipt.py")
    place.swap(f"a check that takes {name} as they are", lambda right, result: None)
