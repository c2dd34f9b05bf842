"""Bugs planted by hand as functions in place of the correct ones: each has to be noticed.

A wrong function is given the correct one, then its arguments. Who looks for it is as in
planted_bugs.py. Nothing of the package is imported before its bug is planted.
"""

import contextlib
import dataclasses
import math
import sys
import warnings

import numpy as np
from planting import Swap

__all__ = ["BUGS"]

FOUND: list[Swap] = []


def bug(name: str, where: str, replayed: str = "", tests: str = ""):
    """Add a bug to the catalogue: the function below it."""

    def add(wrong):
        FOUND.append(Swap(name, where, wrong, replayed, tests))
        return wrong

    return add


class Other:
    """A module in which some names mean something else."""

    def __init__(self, module, **names):
        self._module = module
        vars(self).update(names)

    def __getattr__(self, name):
        return getattr(self._module, name)


def single(values):
    """Rounded to single precision."""
    return np.asarray(values, np.float32).astype(float)


def in_single(right, *args, **kwargs):
    """An answer in single precision, of whatever shape."""
    found = right(*args, **kwargs)
    return single(found) if np.shape(found) else float(np.float32(found))


# --- rounded instead of cut


@bug(
    "vectors rounded instead of cut",
    "dpcgd.datasets.clipped_sums:np",
    tests="datasets/test_clipped_sums.py",
)
def _(right):
    return Other(right, trunc=np.rint)


@bug(
    "vectors cut downwards instead of towards zero",
    "dpcgd.datasets.clipped_sums:np",
    tests="datasets/test_clipped_sums.py",
)
def _(right):
    return Other(right, trunc=np.floor)


@bug(
    "vectors in single precision",
    "dpcgd.datasets.clipped_sums:np",
    tests="datasets/test_clipped_sums.py",
)
def _(right):
    return Other(right, hstack=lambda parts: single(np.hstack(parts)))


@bug(
    "a grid on which sums are not exact",
    "dpcgd.datasets.clipped_sums:_step",
    tests="datasets/test_clipped_sums.py",
)
def _(right, bound, n):
    return right(bound, n) / 2**12


@bug(
    "rows of a Gram matrix rounded upwards",
    "dpcgd.statistics.moment_matrices:_shortened",
    "gram_notears",
    "statistics/test_statistics.py",
)
def _(right, rows, bound):
    return np.ceil(right(rows, bound) * 64) / 64


@bug(
    "gradients rounded after they are clipped",
    "dpcgd.score.noleaks:clipped_gradient",
    "noleaks",
)
def _(right, rows, *args, **kwargs):
    return np.ceil(right(rows, *args, **kwargs) * 256) / 256


@bug(
    "values that are rounded into their range",
    "dpcgd.datasets.measurements:np",
    tests="datasets/test_measurements.py",
)
def _(right):
    return Other(right, clip=lambda values, low, high: np.clip(np.rint(values), low, high))


@bug(
    "a score that is rounded for a nicer table",
    "dpcgd.pairwise.dependence_scores:Kendall.value",
    "private_anm",
)
def _(right, *args):
    return round(2 * right(*args)) / 2


# --- noise of another source


def from_numpy_when_large(name, add):
    def wrong(right, self, sensitivity, event):
        from dpcgd.privacy.noise import SeededNoise

        draw = right(self, sensitivity, event)
        other = getattr(SeededNoise(np.random.default_rng()), name)(sensitivity, event)
        return lambda value: (other if add(value) else draw)(value)

    return wrong


def where_opendp_fails(name):
    def wrong(right, self, sensitivity, event):
        from dpcgd.privacy.noise import SeededNoise

        draw = right(self, sensitivity, event)
        other = getattr(SeededNoise(np.random.default_rng()), name)(sensitivity, event)

        def drawn(value):
            try:
                return draw(value)
            except Exception:
                return other(value)

        return drawn

    return wrong


for kind in ("laplace", "gaussian", "gumbel_max", "exponential_max"):
    secure = f"dpcgd.privacy.noise:SecureNoise.{kind}"
    bug(f"numpy's {kind} for large arrays", secure, tests="privacy/test_noise.py")(
        from_numpy_when_large(kind, lambda value: np.size(value) > 50_000)
    )
    bug(f"numpy's {kind} where OpenDP raises", secure, tests="privacy/test_noise.py")(
        where_opendp_fails(kind)
    )


def around_zero(right, self, sensitivity, event):
    draw = right(self, sensitivity, event)
    return lambda value: value + draw(np.zeros(np.shape(value)) if np.shape(value) else 0.0)


for kind in ("laplace", "gaussian"):
    secure = f"dpcgd.privacy.noise:SecureNoise.{kind}"
    bug(f"a secure {kind} around zero, added in doubles", secure, tests="privacy/test_noise.py")(
        around_zero
    )


@bug(
    "secure noise added to values in single precision",
    "dpcgd.privacy.noise:_as_doubles",
    tests="privacy/test_noise.py",
)
def _(right, values):
    return right(single(values))


@bug(
    "noise that OpenDP prices higher is drawn all the same",
    "dpcgd.privacy.noise:_check_price",
    tests="privacy/test_noise.py",
)
def _(right, *args):
    with contextlib.suppress(RuntimeError):
        right(*args)


@bug(
    "a secure sample of one half or the other",
    "dpcgd.privacy.noise:SecureNoise.choose",
    tests="privacy/test_mechanisms.py::test_every_subset_is_equally_likely",
)
def _(right, self, n, m):
    return np.sort(right(self, n, m)) if right(self, 2, 1)[0] else np.arange(m)


@bug(
    "an exact answer where noise is narrow",
    "dpcgd.privacy.mechanisms:laplace",
    "dag_posterior",
)
def _(right, query, *, sensitivity, epsilon, **how):
    noisy = right(query, sensitivity=sensitivity, epsilon=epsilon, **how)
    return np.rint(query()) if sensitivity / epsilon < 0.2 else noisy


@bug(
    "numpy's reports for many records",
    "dpcgd.local.draws:SecureDraws.from_rows",
    tests="local/test_draws.py",
)
def _(right, self, weights, row):
    from dpcgd.local.draws import SeededDraws

    if len(row) > 1000:
        return SeededDraws(np.random.default_rng()).from_rows(weights, row)
    return right(self, weights, row)


@bug(
    "a coin of numpy for many records",
    "dpcgd.local.draws:SecureDraws.happens",
    tests="local/test_draws.py",
)
def _(right, self, chance, n):
    return np.random.default_rng().random(n) < float(chance) if n > 1000 else right(self, chance, n)


@bug(
    "uniform cells of numpy for many records",
    "dpcgd.local.draws:SecureDraws.uniform",
    tests="local/test_draws.py",
)
def _(right, self, levels, n):
    if n > 1000:
        return np.random.default_rng().integers(0, levels, (n, len(levels)))
    return right(self, levels, n)


@bug(
    "weights of reports in single precision",
    "dpcgd.local.draws:as_integers",
    tests="local/test_draws.py",
)
def _(right, weights):
    return right(single(list(weights)).tolist())


# --- single precision


@bug(
    "answers in single precision",
    "dpcgd.privacy.mechanisms:_paid_answer",
    "dag_posterior",
)
def _(right, query, *rest):
    return right(lambda: np.asarray(query(), np.float32), *rest)


@bug(
    "scores of choices in single precision",
    "dpcgd.constraint.em_pc:values_of",
    "em_pc",
    "constraint/test_em_pc.py",
)
def _(right, *args):
    return single(right(*args))


@bug(
    "statistics in single precision",
    "dpcgd.statistics.categorical_statistics:_entropy_sum",
    "laplace_pc",
    "statistics/test_statistics.py",
)
def _(right, counts):
    return in_single(right, counts)


@bug(
    "interactions in single precision",
    "dpcgd.moments.interactions:interaction_of",
    "table_pc",
)
def _(right, table):
    return in_single(right, table)


@bug(
    "second moments in single precision",
    "dpcgd.score.notears:second_moments",
    "gram_notears",
    "score/test_notears.py",
)
def _(right, *args, **kwargs):
    return in_single(right, *args, **kwargs)


@bug(
    "counts of rows with weights in single precision",
    "dpcgd.datasets.bit_columns:BitColumns.counts_many",
    "table_pc",
    "datasets/test_many_records.py",
)
def _(right, *args):
    return [table.astype(np.float32).astype(np.int64) for table in right(*args)]


@bug(
    "weights of rows in four bytes",
    "dpcgd.datasets.bit_columns:_weight_planes",
    tests="datasets/test_many_records.py",
)
def _(right, weights):
    return right(weights.astype(np.uint32))


@bug(
    "counts of others in single precision",
    "dpcgd.datasets.contingency_tables:_Asked._checked",
    tests="datasets/test_many_records.py",
)
def _(right, self, at, table):
    return right(self, at, table).astype(np.float32).astype(np.int64)


@bug(
    "a kernel of distances in single precision",
    "dpcgd.pairwise.dependence_scores:Hsic.value",
    "private_anm",
    "pairwise/test_dependence_scores.py",
)
def _(right, self, *columns):
    return right(self, *map(single, columns))


@bug(
    "regressions in single precision",
    "dpcgd.pairwise.kernel_ridge:Ridge.fit",
    "private_anm",
    "pairwise/test_kernel_ridge.py",
)
def _(right, self, x, y, *rest):
    return right(self, single(x), single(y), *rest)


@bug(
    "prices added up in single precision",
    "dpcgd.privacy.conversions:zcdp_rho",
    tests="privacy/test_accounts.py",
)
def _(right, event):
    return float(np.float32(right(event)))


@bug(
    "an epsilon in single precision",
    "dpcgd.privacy.conversions:epsilon_of_rho",
    tests="privacy/test_accounts.py",
)
def _(right, rho, delta):
    return float(np.float32(right(rho, delta)))


# --- warnings, words and refusals that depend on data


@bug(
    "a warning of empty cells",
    "dpcgd.constraint.laplace_pc:value_of",
    "laplace_pc",
)
def _(right, statistic, tables, tested):
    if not tables.counts(tested).all():
        warnings.warn("some cells are empty; the test may be weak", stacklevel=2)
    return right(statistic, tables, tested)


@bug(
    "a test that prints its value",
    "dpcgd.constraint.priv_pc:value_of",
    "svt_pc,priv_pc",
)
def _(right, *args):
    print("statistic", found := right(*args))
    return found


@bug(
    "a statistic that numpy warns of",
    "dpcgd.statistics.rank_statistics:KendallZ.value",
    "laplace_pc",
)
def _(right, self, table):
    np.float64(1.0) / np.float64(table.min())
    return right(self, table)


@bug(
    "a warning of variables that hardly vary",
    "dpcgd.moments.interactions:MeasuredMarginals.exact",
    "table_pc,learned_pc",
)
def _(right, self, subsets):
    found = right(self, subsets)
    if (np.abs(found) > 0.9 * self.n).any():
        warnings.warn("some variables hardly vary", stacklevel=2)
    return found


@bug(
    "a whole table that tells how full it is",
    "dpcgd.moments.noisy_table:Tables.counts_many",
    "dag_posterior",
)
def _(right, self, questions):
    found = right(self, questions)
    print(f"{np.mean(found[0] > 0):.0%} of the cells are filled", file=sys.stderr)
    return found


@bug(
    "a run that refuses a constant column",
    "dpcgd.privacy.run:check_data",
    "laplace_pc,em_pc",
)
def _(right, data, **how):
    right(data, **how)
    if hasattr(data, "codes") and not np.ptp(data.codes, axis=0).all():
        raise ValueError("a column is constant; leave it out")


@bug(
    "a refusal that names a value",
    "dpcgd.privacy.run:check_data",
    "gram_notears,noleaks",
)
def _(right, data, **how):
    right(data, **how)
    values = data.values if hasattr(data, "values") else data.codes
    if values.max() < 1:
        raise ValueError(f"the largest value is {values.max()}")


@bug(
    "a warning of columns that are copies",
    "dpcgd.score.notears:second_moments",
    "gram_notears",
)
def _(right, rows, **how):
    if np.linalg.matrix_rank(rows) < rows.shape[1]:
        warnings.warn("columns are collinear", stacklevel=2)
    return right(rows, **how)


@bug(
    "gradients that print how long they are",
    "dpcgd.score.noleaks:clipped_gradient",
    "noleaks",
)
def _(right, *args, **kwargs):
    print(np.linalg.norm(found := right(*args, **kwargs)))
    return found


@bug(
    "a warning of a pair that is too regular",
    "dpcgd.pairwise.anm:_Look._columns",
    "private_anm",
)
def _(right, self, names):
    x, y = right(self, names)
    if not np.ptp(x):
        warnings.warn(f"{names[0]} is constant", stacklevel=2)
    return x, y


@bug(
    "a histogram that warns of empty bins",
    "dpcgd.pairwise.anm:_histogram",
    "histogram_anm",
)
def _(right, *args):
    found = right(*args)
    if not found.all():
        warnings.warn("some bins are empty", stacklevel=2)
    return found


@bug(
    "counts that warn where a table is thin",
    "dpcgd.datasets.contingency_tables:Tables.counts_many",
    "table_pc,dag_posterior",
)
def _(right, self, questions):
    found = right(self, questions)
    if min(table.max() for table in found) < self.n / 3:
        warnings.warn("a table is thin", stacklevel=2)
    return found


@bug(
    "a search that logs a count",
    "dpcgd.constraint.em_pc:values_of",
    "em_pc",
)
def _(right, statistic, tables, asked):
    print(int(tables.counts((0, 1))[0, 0]))
    return right(statistic, tables, asked)


# --- constants at the ends


@bug(
    "a conversion whose search ends too early",
    "dpcgd.privacy.conversions:minimize_scalar",
    tests="test_extremes.py::TestConversions",
)
def _(right, bound, *, bounds, **how):
    found = right(bound, bounds=bounds, **how)
    found.fun = min(found.fun, 690.0)
    return found


@bug(
    "a delta below 1e-300 that counts as none",
    "dpcgd.privacy.conversions:gaussian_delta",
    tests="privacy/test_conversions.py",
)
def _(right, noise_multiplier, epsilon):
    found = right(noise_multiplier, epsilon)
    return found if found > 1e-280 else 0.0


@bug(
    "a delta that is never below the double's last digit",
    "dpcgd.privacy.conversions:epsilon_of_rho",
    tests="privacy/test_conversions.py",
)
def _(right, rho, delta):
    return right(rho, max(delta, 2.0**-52))


@bug(
    "a steep form that begins too late",
    "dpcgd.privacy.conversions:STEEP",
    tests="test_extremes.py::TestConversions",
)
def _(right):
    return 1e12


@bug(
    "a loss of much noise without its slope",
    "dpcgd.privacy.conversions:_steep_delta",
    tests="test_extremes.py::TestConversions",
)
def _(right, half, shift):
    return right(half, shift) / (2 if half < 1e-6 else 1)


@bug(
    "amplification that forgets the rate where epsilon is large",
    "dpcgd.privacy.mechanisms:amplified",
    tests="privacy/test_conversions.py",
)
def _(right, epsilon, rate):
    return right(epsilon, rate) if epsilon < 50 else max(0.0, epsilon + math.log(rate) - 1)


@bug(
    "an exponential that ends at 70",
    "dpcgd.privacy.doubles:LARGEST_EXPONENT",
    tests="privacy/test_conversions.py",
)
def _(right):
    return 70


@bug(
    "a person's deltas that stop growing",
    "dpcgd.privacy.filters:_times",
    tests="privacy/test_rows_per_person.py",
)
def _(right, epsilon, rows):
    return min(right(epsilon, rows), 1e3)


@bug(
    "no room for the rounding of a billion records",
    "dpcgd.privacy.run:kept_for_rounding",
    tests="privacy/test_run.py::test_large_data_keep_a_part_of_the_budget_for_rounding",
)
def _(right, n):
    return 0.0


@bug(
    "a multiplier that is not wider for rounding",
    "dpcgd.privacy.conversions:multiplier_of_rho",
    tests="privacy/test_conversions.py",
)
def _(right, rho):
    return right(rho) * (1 - 2e-9)


# --- accounts


@bug(
    "an account read before its lock",
    "dpcgd.privacy.account_file:_locked",
    tests="privacy/test_reservations.py::test_what_others_wrote_while_a_run_waited_counts",
)
def _(right, path):
    from dpcgd.privacy import account_file

    read = account_file._read
    known = read(path) if path.exists() else None
    with contextlib.contextmanager(right)(path):
        if known:
            account_file._read = lambda path: known
        try:
            yield
        finally:
            account_file._read = read


# --- checks that subtract too little


@bug(
    "a check that forgets the rows of a person",
    "dpcgd.graphs.check_ledger:_added_up",
    tests="graphs/test_receipt.py",
)
def _(right, events, promise):
    return right(events, dataclasses.replace(promise, rows_per_person=1))


@bug(
    "a check that takes the largest delta off and no other",
    "dpcgd.graphs.check_ledger:math",
    tests="graphs/test_check_ledger.py",
)
def _(right):
    def largest(values):
        return max(values, default=0.0)

    return Other(right, fsum=largest)


@bug(
    "a check that counts a person's delta once a row",
    "dpcgd.graphs.check_ledger:_times",
    tests="graphs/test_check_ledger.py",
)
def _(right, event, rows):
    return float(rows)


@bug(
    "a check that looks at epsilon alone",
    "dpcgd.graphs.check_ledger:_added_up",
    tests="graphs/test_check_ledger.py",
)
def _(right, events, promise):
    return right(events, promise)._replace(delta=0.0)


@bug(
    "a check with room for one event in a hundred",
    "dpcgd.graphs.check_ledger:ROUNDING",
    tests="graphs/test_check_ledger.py",
)
def _(right):
    return 0.01


@bug(
    "a check that takes noise for what was paid",
    "dpcgd.tables.check_receipt:check_noise",
    tests="graphs/test_check_receipt.py",
)
def _(right, release):
    return None


BUGS = tuple(FOUND)
