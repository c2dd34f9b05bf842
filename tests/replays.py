"""Every private system with random settings: runs replayed on neighbours, and on strangers.

python tests/replays.py systems pairs strangers seed     # as priv_pc,em_pc 1000 20 0

Neighbours differ in one record: there each loss has to be within its price. Strangers have nothing
in common but their public facts: there the same answers have to lead to the same release.
"""

import contextlib
import dataclasses
import json
import math
import sys
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from unittest import mock

import numpy as np
from dpcgd_book.attacks.replay import replay, worst
from numpy.random import Generator, default_rng
from people import levels_of

import dpcgd
from dpcgd import Counts, Dataset, Schema
from dpcgd.datasets.bit_columns import BitColumns, PackedRecords, pack
from dpcgd.datasets.variable import PARTS, Parts
from dpcgd.graphs.receipt import content_of
from dpcgd.pairwise.dependence_scores import Hsic, Iqr, Kendall, Spearman
from dpcgd.pairwise.kernel_ridge import LEAST_PENALTY, GaussianRidge, Ridge
from dpcgd.privacy.budget import kept_for_rounding
from dpcgd.privacy.mechanisms import exponential, permute_and_flip
from dpcgd.privacy.noise import SeededNoise
from dpcgd.reading.effects import graphs_of
from dpcgd.reading.second_moments import moments_of
from dpcgd.statistics.categorical_statistics import ChiSquared, GTest
from dpcgd.statistics.moment_matrices import PartialCorrelation
from dpcgd.statistics.rank_statistics import KendallP, KendallZ, SpearmanP, SpearmanZ

NEIGHBOURS = 16
"""Of each data set: one run is replayed on all of them."""


def any_of(*choices):
    return lambda rng: choices[rng.integers(len(choices))]


def log_uniform(low, high):
    return lambda rng: float(10 ** rng.uniform(math.log10(low), math.log10(high)))


def any_level(rng):
    return float(10 ** rng.uniform(-12, -1) if rng.integers(2) else rng.uniform(1e-6, 0.999))


def any_statistic(rng):
    level, critical = any_level(rng), float(rng.normal(scale=3))
    made = [partial(kind, level) for kind in (KendallP, SpearmanP, GTest, ChiSquared)]
    made += [partial(kind, critical) for kind in (KendallZ, SpearmanZ, PartialCorrelation)]
    return any_of(*made)(rng)()


def any_score(rng):
    iqr = lambda: Iqr(width=any_of(0.2, 0.5, 1.0, 1e-9, 1e9)(rng))  # noqa: E731
    return any_of(Hsic, Kendall, Spearman, iqr, iqr)(rng)()


def any_ridge(rng):
    penalty = any_of((LEAST_PENALTY, 1), (1e-3, 0.1))(rng)
    width = any_of((1e-3, 1e15), (0.1, 2))(rng)
    kind = any_of(Ridge, Ridge, GaussianRidge)(rng)
    return kind(penalty=log_uniform(*penalty)(rng), width=log_uniform(*width)(rng))


MARGIN = {"margin": lambda rng: float(rng.normal(scale=3))}
ORDER = {"max_order": any_of(0, 1, 2, 3)}
STATISTIC = {"statistic": any_statistic}
SEARCH = STATISTIC | MARGIN | ORDER
WEIGHTS = {"threshold": any_of(0, 0.05), "standardized": any_of(True, False)}


# --- data -------------------------------------------------------------------------------------


FEW, MANY = (1, 2, 2, 2, 2, 2, 3, 3), (2, 3, 17, 20, 30)
"""Levels of a variable."""


def codes_of(rng: Generator, sizes=(2, 2, 3, 3, 3, 4), levels=FEW):
    """Records: independent, copies of one column, crowds in few cells, or two records."""
    shape = tuple(rng.choice(levels, rng.choice(sizes)).tolist())
    n, kind = int(rng.integers(40, 250)), rng.integers(10)
    codes = rng.integers(0, shape, (n, len(shape)))
    if kind < 2:
        codes = np.minimum(codes[:, :1], np.array(shape) - 1)
    elif kind < 4:
        few = rng.integers(1, 4)
        cells = codes[:few] if rng.integers(2) else corners(rng, shape, few)
        codes = cells[np.sort(rng.integers(len(cells), size=n))]
    elif kind < 8:
        codes = flat_crowds(rng, shape, n)
    elif kind == 8:
        codes = codes[:2]
    return codes, shape


def corners(rng, shape, size):
    return rng.integers(0, 2, (size, len(shape))) * (np.array(shape) - 1)


def flat_crowds(rng, shape, n):
    """Two crowds that agree in one variable and in no other, and a few strays.

    There sensitivities of conditional tests are reached (chapter 03).
    """
    same, top = rng.integers(len(shape)), np.array(shape) - 1
    codes = np.where(np.arange(n)[:, None] % 2, top, 0)
    codes[:, same] = 0
    strays = rng.integers(1, 5)
    codes[:strays] = np.where(np.arange(len(shape)) % 2, top, 0)
    codes[:strays, same] = top[same]
    return codes


class Counted(Counts):
    """Rows that stand for many records, of which only counts can be had."""

    def __init__(self, codes, weights, levels, ordered):
        self.levels, self.ordered, self.n = levels, ordered, int(weights.sum())
        self._codes, self._weights = codes, weights

    def counts(self, variables):
        table = np.zeros([self.cardinalities[v] for v in variables], np.int64)
        np.add.at(table, tuple(self._codes[:, v] for v in variables), self._weights)
        return table


def as_records(codes, weights, levels, ordered):
    return Dataset(codes, levels, ordered=ordered)


def as_bits(codes, weights, levels, ordered, *, most_bytes=0):
    """The same in bits, each record by itself, or each distinct row."""
    shape, kept = tuple(len(of) for of in levels.values()), []

    def room(size, kind):
        kept.append(np.zeros(size, kind))
        return kept[-1]

    bits = pack([list(codes.T)], shape, len(codes), most_bytes=most_bytes, allocate=room)
    if kept:
        bits = BitColumns(shape, kept[-1], weights)
    return PackedRecords(bits, Schema({v: entry_of(v, of, ordered) for v, of in levels.items()}))


def entry_of(name, levels, ordered):
    """What a schema says of a variable."""
    if isinstance(levels, Parts):
        missing = levels.missing or "refuse"
        return {"range": [levels.low, levels.high], "scale": levels.scale, "missing": missing}
    return {"levels": levels, "ordered": name in ordered}


as_distinct_rows = partial(as_bits, most_bytes=1 << 16)
ANY_FORM = (as_records, as_bits, as_distinct_rows, as_bits, Counted)


def crowd_of(rng, shape) -> tuple[np.ndarray, np.ndarray]:
    """A few rows that stand for up to 10^12 records."""
    rows = corners(rng, shape, rng.integers(1, 4))
    return rows, rng.multinomial(int(log_uniform(3, 1e12)(rng)), np.full(len(rows), 1 / len(rows)))


def as_numbers(rng, shape, many) -> tuple[dict, list]:
    """Levels of variables, of which so many are numbers, and the part that stands for each code.

    Of a number the parts are anywhere or side by side, and the last code may be a missing one.
    """
    levels, places = levels_of(shape), [np.arange(of) for of in shape]
    for v in rng.permutation(len(shape))[:many] if many else ():
        gap = int(rng.choice([1, 30, PARTS // shape[v]]))
        places[v] = rng.integers(PARTS - gap * (shape[v] - 1)) + gap * places[v]
        missing = (None, "unknown")[rng.integers(2)]
        if missing and shape[v] > 1:
            places[v][-1] = PARTS
        levels[f"v{v}"] = Parts(0.0, 1.0, missing=missing)
    return levels, places


def coded(rng: Generator, settings=None, *, forms=(as_records,), strange=False, **sizes):
    """A data set and neighbours of it, or a stranger; the records that change stand for one each.

    Some of those that are no records at hand have a crowd beside them.
    """
    codes, shape = codes_of(rng, **sizes)
    settings, form = settings or {}, any_of(*forms)(rng)
    ordered = settings.get("in_order", ())
    rows, weights = corners(rng, shape, 0), np.zeros(0, np.int64)
    if form in (as_bits, Counted) and rng.integers(2):
        rows, weights = crowd_of(rng, shape)
    weights = np.concatenate([np.ones(len(codes), np.int64), weights])

    levels, places = as_numbers(rng, shape, settings.get("numbers", 0))

    def data(these):
        columns = np.concatenate([these, rows]).T
        codes = [place[column] for place, column in zip(places, columns, strict=True)]
        return form(np.column_stack(codes), weights, levels, ordered)

    yield data(codes)
    if strange:
        yield data(strangers_of(codes, shape, rng))
    for _ in range(0 if strange else NEIGHBOURS):
        yield data(neighbour_of(codes, shape, rng, settings.get("rows_per_person", 1)))


def neighbour_of(codes, shape, rng, rows):
    """Up to so many records replaced: by any, by a corner, by the mirrored one."""
    other = codes.copy()
    for first in rng.choice([0, rng.integers(len(codes)), len(codes) - 1], rows):
        who = (0, first)[rng.integers(2)]
        mirrored = np.array(shape) - 1 - codes[who]
        kept = np.argmax(codes[-1] == codes[-2])  # where two crowds agree
        mirrored[kept] = codes[who, kept]
        to = [rng.integers(0, shape), corners(rng, shape, 1)[0], mirrored, mirrored]
        other[who] = to[rng.integers(4)]
    return other


def strangers_of(codes, shape, rng):
    """Records that have nothing in common with these."""
    kinds = np.zeros_like(codes), rng.integers(0, shape, codes.shape), codes[:1]
    return np.broadcast_to(kinds[rng.integers(3)], codes.shape)


def coded_with_many(rng: Generator, settings, **how):
    """The same, with many levels every other time, of which two variables' may stand in order."""
    in_order = {"in_order": any_of((), ("v0", "v1"))(rng)}
    yield from coded(rng, settings | in_order, levels=any_of(FEW, MANY)(rng), **how)


in_any_form = partial(coded, forms=ANY_FORM)
many_in_any_form = partial(coded_with_many, forms=ANY_FORM)


def more_in_any_form(rng: Generator, settings, sizes=(2, 3, 4, 9, 9, 10), **how):
    """The same, with more variables every other time, and often with numbers among them."""
    numbers = {"numbers": any_of(0, 1, 3)(rng)}
    yield from many_in_any_form(rng, settings | numbers, sizes=sizes, **how)


def sampled(rng: Generator, settings, **how):
    """In any form where everybody is looked at; sub-samples are of records at hand."""
    forms = ANY_FORM if settings.get("rate") == 1 else (as_records,)
    yield from coded(rng, settings, forms=forms, **how)


def values_of(rng: Generator, d: int, n: int) -> np.ndarray:
    """Reals: independent, at the ends, dependent, the same, or a few inputs with next to no effect.

    In the last a record of the training half moves the residuals of all others (chapter 09).
    """
    values, kind = rng.uniform(-1, 1, (n, d)), rng.integers(8)
    if kind == 0:
        values = np.sign(values)
    if kind in (1, 2):
        values[:, 1:] = values[:, :1] ** 2
    if kind == 3:
        values[:] = values[0]
    if kind > 4:
        values[:, 0] = rng.choice([-1.0, 0.0, 1.0], n) if rng.integers(2) else 0
        values[:, 1:] *= rng.choice([0, 1e-3, 1e-2])
    return values * 10.0 ** -rng.uniform(0, 12) if rng.integers(5) == 0 else values


def numbers_of(values) -> Dataset:
    return Dataset.of_numbers(values, {f"v{i}": (-1, 1) for i in range(values.shape[1])})


def measured(rng: Generator, settings=None, *, strange=False, **sizes):
    if rng.integers(2):
        yield from coded(rng, settings, strange=strange, **sizes)
        return
    values = values_of(rng, int(rng.integers(2, 4)), int(rng.integers(2, 120)))
    yield from values_beside(values, rng, settings or {}, strange)


def values_beside(values, rng, settings, strange, replaceable=None):
    """These, and neighbours or a stranger."""
    yield numbers_of(values)
    if strange:
        yield numbers_of(values_of(rng, values.shape[1], len(values)))
    replaceable = range(len(values)) if replaceable is None else replaceable
    for _ in range(0 if strange else NEIGHBOURS):
        other = values.copy()
        for _ in range(settings.get("rows_per_person", 1)):
            to = rng.uniform(-1, 1, values.shape[1])
            at_the_end = np.sign(to) * (np.arange(values.shape[1]) > rng.integers(-1, 1))
            other[rng.choice(replaceable)] = at_the_end if rng.integers(3) else to
        yield numbers_of(other)


def paired(rng: Generator, settings, *, strange=False, **_):
    """Two columns; where only the test half is protected, neighbours differ there."""
    values = values_of(rng, 2, n := int(rng.integers(4, 80)))
    half = scoring_half(settings["seed"], n) if settings.get("protects") == "test set" else None
    yield from values_beside(values, rng, settings, strange, half)


def scoring_half(seed, n) -> np.ndarray:
    """Who gives residuals: a run draws its halves first, without a look at the data."""
    return default_rng(seed).choice(n, n - n // 2, replace=False, shuffle=False)


# --- systems -----------------------------------------------------------------------------------


def with_what_follows(data, *, rng, **settings):
    """The table system and everything that its release leads to."""
    release = dpcgd.table_pc(data, rng=rng, **settings)
    known = {"status": release.pair_status(), "page": release.report()}
    known |= {"further": dpcgd.read(release, precision=0.9)}
    known |= {"receipt": content_of(dataclasses.replace(release, seconds=None))}
    fitted = dpcgd.fit_network(release, rng=rng or default_rng(0), redraws=2)
    known |= {"network": vars(fitted), "climbed": dpcgd.climb(release)}
    known |= {"once more": dpcgd.reread(release, precision=0.9).graph}
    varying = [v for v, own in release.levels.items() if len(own) > 1][:2]
    if len(varying) == 2:
        known |= {"moments": moments_of(release).values, "graphs": repr(graphs_of(release))}
        known |= {"effect": repr(dpcgd.effect(release, *varying))}
        known |= {"effects": repr(dpcgd.effects(release, [varying]))}
    return SimpleNamespace(**vars(release), **known)


def with_arrows(data, *, rng, **settings):
    """The trained system, and how sure its arrows are."""
    release = dpcgd.graph_from_moments(data, rng=rng, **settings)
    return SimpleNamespace(**vars(release), arrows=release.arrow_shares)


@dataclasses.dataclass(frozen=True)
class Replayed:
    """A private system, random settings, its data, and how many variables strangers have."""

    system: Callable
    settings: dict[str, Callable]
    data: Callable
    sizes: tuple[int, ...] = (3, 4, 5)

    def drawn(self, rng: Generator) -> dict:
        """Settings that it accepts."""
        most = {"epsilon": log_uniform(1e-3, 1e7)(rng), "delta": log_uniform(1e-300, 0.5)(rng)}
        usual = {"epsilon": log_uniform(0.5, 50)(rng), "delta": log_uniform(1e-9, 1e-3)(rng)}
        some = {name: draw(rng) for name, draw in self.settings.items() if rng.integers(4)}
        some |= {"rows_per_person": any_of(2, 3)(rng)} if rng.integers(4) == 0 else {}
        some |= {"released": bool(rng.integers(2)), "seed": int(rng.integers(2**32))}
        return any_of(most, usual, usual)(rng) | some


RATE = {"rate": any_of(0.01, 0.25, 0.5, 1)}
PRECISION = {"precision": any_of(None, 0.5, 0.9)}
OF_PC = SEARCH | {"planned_tests": any_of(1, 7.5, 1e50)}
OF_CHOICES = SEARCH | {"choose": any_of(exponential, permute_and_flip)}
OF_CURATE = MARGIN | {"max_order": lambda rng: int(rng.integers(16) == 0)} | STATISTIC
OF_TABLES = {"alpha": any_level, "max_order": any_of(0, 1, 2), "untested": any_of("drop", "keep")}
OF_TABLES |= {"least_effect": any_of(0, 1e-4, 0.1), "least_share": any_of(0, 0.02, 0.5)}
OF_GRAM, OF_STEPS = {"row_norm": log_uniform(1e-3, 1e3)}, {"clip": log_uniform(1e-100, 1e100)}
OF_PAIRS = {"score": any_score, "ridge": any_ridge, "protects": any_of("everyone", "test set")}
OF_HISTOGRAMS = {"bins": any_of(*7 * [2], 9)}
SYSTEMS = {
    "laplace_pc": Replayed(dpcgd.laplace_pc, OF_PC, in_any_form),
    "svt_pc": Replayed(dpcgd.svt_pc, SEARCH | RATE, sampled),
    "priv_pc": Replayed(dpcgd.priv_pc, SEARCH | RATE, sampled),
    "em_pc": Replayed(dpcgd.em_pc, OF_CHOICES, in_any_form),
    "curate_pc": Replayed(dpcgd.curate_pc, OF_CURATE, in_any_form),
    "graph_from_moments": Replayed(dpcgd.graph_from_moments, PRECISION, more_in_any_form, (3, 9)),
    "dag_posterior": Replayed(dpcgd.dag_posterior, PRECISION, in_any_form, (3, 4)),
    "table_pc": Replayed(dpcgd.table_pc, OF_TABLES, many_in_any_form),
    "gram_notears": Replayed(dpcgd.gram_notears, WEIGHTS | OF_GRAM, measured),
    "noleaks": Replayed(dpcgd.noleaks, WEIGHTS | OF_STEPS, measured),
    "private_anm": Replayed(dpcgd.private_anm, OF_PAIRS, paired),
    "histogram_anm": Replayed(dpcgd.histogram_anm, OF_HISTOGRAMS, paired),
    "private_graph": Replayed(dpcgd.private_graph, PRECISION, more_in_any_form, (3, 9)),
}
FAST = {"gram_notears": {"l1": 1e9}, "noleaks": {"l1": 1e9, "steps": 3}}
FAST |= {"histogram_anm": {"score": Kendall()}, "curate_pc": {"max_order": 0}}
"""Settings under which what follows the draws takes less time. No arc is worth such an l1."""


FOLLOWED = {"table_pc": with_what_follows, "graph_from_moments": with_arrows}
"""With what follows from a release; for strangers, since neighbours' answers are the same."""


@dataclasses.dataclass
class Found:
    """What replaying a system has shown: worst is a loss over its price."""

    pairs: int = 0
    strangers: int = 0
    refused: int = 0
    worst: float = 0.0


def _every_record(batches, levels):
    rows = [np.concatenate(parts) for parts in zip(*batches, strict=True)]
    return rows, np.ones(len(rows[0]), np.uint8)


IN_FILE_ORDER = ("dpcgd.datasets.bit_columns._collapsed", _every_record)
"""Then a sample is of the same people whatever the data; otherwise it is as uniform, of others."""


def started(system, settings):
    """The system from its seed on; it checks each release by itself.

    A release has no seed: there what stands in for the secure noise has one, unknown to the system.
    """
    seed, released = settings["seed"], settings.get("released")
    how = {name: value for name, value in settings.items() if name not in ("seed", "released")}
    how["allow_delta"] = True

    def run(data):
        with contextlib.ExitStack() as stack:
            stack.enter_context(mock.patch("dpcgd.pairwise.anm.CONTROLS", 1))  # after the release
            if "rate" in settings:
                stack.enter_context(mock.patch(*IN_FILE_ORDER))
            if released:
                source = SeededNoise(default_rng(seed))
                stand_in = mock.patch("dpcgd.privacy.noise.SecureNoise", return_value=source)
                stack.enter_context(stand_in)
                stack.enter_context(mock.patch("numpy.random.default_rng", from_nothing))
            secure = settings.get("secure") or released
            release = system(data, rng=None if secure else default_rng(seed), **how)
        check_release(release, settings)
        assert not (secure and release.seconds), "a release tells how long it took"
        return release

    return run


def from_nothing(seed=0):
    return default_rng(seed)


def check_release(release, settings):
    """The reading is within the budget, and every number is one."""
    spent = release.ledger.spent
    assert spent.epsilon <= settings["epsilon"], (spent, settings)
    assert spent.delta <= settings["delta"], (spent, settings)
    for name, value in vars(release).items():
        assert all(map(math.isfinite, numbers(value))), (name, value, settings)


def numbers(value):
    """All real numbers in a field of a release."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        yield from value.ravel().tolist()
    elif isinstance(value, float):
        yield value
    elif hasattr(value, "released"):
        yield from numbers(value.released)
    elif isinstance(value, dict):
        yield from numbers(list(value.values()))
    elif isinstance(value, list | tuple | set | frozenset):
        yield from (number for part in value for number in numbers(part))
    elif dataclasses.is_dataclass(value):
        yield from numbers(list(vars(value).values()))


def on_neighbours(name: str, rng: Generator, found: Found) -> None:
    """Replay one run on neighbours of its data."""
    case = SYSTEMS[name]
    settings = FAST.get(name, {}) | case.drawn(rng)
    data, *others = case.data(rng, settings)
    run = started(case.system, settings)
    try:
        draws = replay(run, data, *others)
    except ValueError:  # by public facts, or replay would have told
        found.refused += 1
        return
    of_a_row = worst(draws) / settings.get("rows_per_person", 1) / (1 + kept_for_rounding(data.n))
    found.pairs += len(others)
    found.worst = max(found.worst, of_a_row)
    assert of_a_row <= 1, (name, settings, of_a_row)


def on_a_stranger(name: str, rng: Generator, found: Found) -> None:
    """Replay one run on data that share nothing with its own."""
    case = SYSTEMS[name]
    little_noise = {"epsilon": log_uniform(2, 1e4)(rng), "delta": 1e-3}
    settings = FAST.get(name, {}) | case.drawn(rng) | little_noise
    for unusual in ("l1", "row_norm"):  # with the usual ones the data speak
        settings.pop(unusual, None)
    data = case.data(rng, settings, sizes=case.sizes, strange=True)
    try:
        replay(started(FOLLOWED.get(name, case.system), settings), *data)
    except ValueError:  # by public facts
        found.refused += 1
        return
    found.strangers += 1


def attacked(name: str, pairs: int, strangers: int, seed: int = 0) -> Found:
    """So many replays of a system."""
    rng, found = default_rng([seed, list(SYSTEMS).index(name)]), Found()
    while found.strangers < strangers or found.pairs < pairs:
        attack = on_a_stranger if found.strangers < strangers else on_neighbours
        attack(name, rng, found)
        assert found.refused <= 100 * (pairs + strangers), f"{name} refuses nearly everything"
    return found


def main(systems: str, *numbers: str) -> None:
    """What replays of some systems have shown, a line each."""
    for system in systems.split(","):
        print(json.dumps(dataclasses.asdict(attacked(system, *map(int, numbers)))), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
