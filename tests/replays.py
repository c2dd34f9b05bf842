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
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from unittest import mock

import numpy as np
from numpy.random import Generator, default_rng

import dpcgd
from dpcgd import Dataset, Measurements
from dpcgd.pairwise.dependence_scores import Hsic, Iqr, Kendall, Spearman
from dpcgd.pairwise.kernel_ridge import LEAST_PENALTY, GaussianRidge, Ridge
from dpcgd.privacy.mechanisms import exponential, permute_and_flip
from dpcgd.privacy.replay import replay, worst
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
    made = (
        *(partial(kind, level) for kind in (KendallP, SpearmanP, GTest, ChiSquared)),
        *(partial(kind, critical) for kind in (KendallZ, SpearmanZ, PartialCorrelation)),
    )
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


def codes_of(
    rng: Generator, sizes=(2, 2, 3, 3, 3, 4), levels=FEW
) -> tuple[np.ndarray, tuple[int, ...]]:
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


def data_set(codes, shape) -> Dataset:
    return Dataset(codes, {f"v{i}": [str(k) for k in range(of)] for i, of in enumerate(shape)})


def coded(rng: Generator, _=None, **sizes):
    """A data set and neighbours of it."""
    codes, shape = codes_of(rng, **sizes)
    yield data_set(codes, shape)
    for _ in range(NEIGHBOURS):
        other = codes.copy()
        who = rng.choice([0, 0, rng.integers(len(codes)), len(codes) - 1])
        mirrored = np.array(shape) - 1 - codes[who]
        kept = np.argmax(codes[-1] == codes[-2])  # where two crowds agree
        mirrored[kept] = codes[who, kept]
        to = [rng.integers(0, shape), corners(rng, shape, 1)[0], mirrored, mirrored]
        other[who] = to[rng.integers(4)]
        yield data_set(other, shape)


def coded_with_many(rng: Generator, _=None, **sizes):
    """The same, with many levels every other time, of which two variables' may stand in order."""
    ordered = any_of((), ("v0", "v1"))(rng)
    for data in coded(rng, levels=any_of(FEW, MANY)(rng), **sizes):
        yield replace(data, ordered=ordered)


coded_with_more = partial(coded_with_many, sizes=(2, 3, 4, 9, 9, 10))
"""The same, with more variables every other time."""


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


def measurements(values) -> Measurements:
    return Measurements(values, {f"v{i}": (-1, 1) for i in range(values.shape[1])})


def stranger(data, rng):
    """Something else with the same public facts."""
    kind = rng.integers(3)
    if isinstance(data, Dataset):
        shape = data.cardinalities
        kinds = np.zeros_like(data.codes), rng.integers(0, shape, data.codes.shape), data.codes[:1]
        return replace(data, codes=np.broadcast_to(kinds[kind], data.codes.shape))
    return measurements(values_of(rng, data.d, data.n))


def measured(rng: Generator, _=None, **sizes):
    if rng.integers(2):
        yield from coded(rng, **sizes)
        return
    yield from neighbours_of(
        values_of(rng, int(rng.integers(2, 4)), int(rng.integers(2, 120))), rng
    )


def neighbours_of(values, rng, replaceable=None):
    yield measurements(values)
    replaceable = range(len(values)) if replaceable is None else replaceable
    for _ in range(NEIGHBOURS):
        other = values.copy()
        to = rng.uniform(-1, 1, values.shape[1])
        at_the_end = np.sign(to) * (np.arange(values.shape[1]) > rng.integers(-1, 1))
        other[rng.choice(replaceable)] = at_the_end if rng.integers(3) else to
        yield measurements(other)


def paired(rng: Generator, settings, **_):
    """Two columns; where only the test half is protected, neighbours differ there."""
    values = values_of(rng, 2, n := int(rng.integers(4, 80)))
    half = scoring_half(settings["seed"], n) if settings.get("protects") == "test set" else None
    yield from neighbours_of(values, rng, half)


def scoring_half(seed, n) -> np.ndarray:
    """Who gives residuals: a run draws its halves first, without a look at the data."""
    return default_rng(seed).choice(n, n - n // 2, replace=False, shuffle=False)


# --- systems -----------------------------------------------------------------------------------


def with_what_follows(data, *, rng, **settings):
    """The table system and everything that its release leads to."""
    release = dpcgd.table_pc(data, rng=rng, **settings)
    rng = rng or default_rng(0)
    return SimpleNamespace(
        **vars(release),
        status=release.pair_status(),
        page=release.report(),
        confidence=dpcgd.edge_confidence(release, runs=2, rng=rng),
        network=vars(dpcgd.fit_network(release, rng=rng, redraws=2)),
        climbed=dpcgd.climb(release),
    )


def with_arrows(data, *, rng, **settings):
    """The trained system, and how sure its arrows are."""
    release = dpcgd.learned_pc(data, rng=rng, **settings)
    return SimpleNamespace(**vars(release), arrows=release.arrow_confidence())


@dataclass(frozen=True)
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
        return any_of(most, usual, usual)(rng) | some | {"seed": int(rng.integers(2**32))}


SYSTEMS = {
    "laplace_pc": Replayed(
        dpcgd.laplace_pc, SEARCH | {"planned_tests": any_of(1, 7.5, 1e50)}, coded
    ),
    "svt_pc": Replayed(dpcgd.svt_pc, SEARCH | {"rate": any_of(0.01, 0.25, 0.5)}, coded),
    "priv_pc": Replayed(dpcgd.priv_pc, SEARCH | {"rate": any_of(0.01, 0.25, 0.5)}, coded),
    "em_pc": Replayed(
        dpcgd.em_pc, SEARCH | {"choose": any_of(exponential, permute_and_flip)}, coded
    ),
    "curate_pc": Replayed(
        dpcgd.curate_pc,
        MARGIN | {"max_order": lambda rng: int(rng.integers(16) == 0)} | STATISTIC,
        coded,
    ),
    "learned_pc": Replayed(
        dpcgd.learned_pc, {"precision": any_of(None, 0.5, 0.9)}, coded_with_more, (3, 9)
    ),
    "dag_posterior": Replayed(
        dpcgd.dag_posterior, {"precision": any_of(None, 0.5, 0.9)}, coded, (3, 4)
    ),
    "table_pc": Replayed(
        dpcgd.table_pc,
        {
            "alpha": any_level,
            "max_order": any_of(0, 1, 2),
            "untested": any_of("drop", "keep"),
            "least_effect": any_of(0, 1e-4, 0.1),
            "least_share": any_of(0, 0.02, 0.5),
        },
        coded_with_many,
    ),
    "gram_notears": Replayed(
        dpcgd.gram_notears, WEIGHTS | {"row_norm": log_uniform(1e-3, 1e3)}, measured
    ),
    "noleaks": Replayed(dpcgd.noleaks, WEIGHTS | {"clip": log_uniform(1e-100, 1e100)}, measured),
    "private_anm": Replayed(
        dpcgd.private_anm,
        {"score": any_score, "ridge": any_ridge, "protects": any_of("everyone", "test set")},
        paired,
    ),
    "histogram_anm": Replayed(
        dpcgd.histogram_anm,
        {"bins": any_of(*7 * [2], 9)},
        paired,
    ),
    "private_graph": Replayed(
        dpcgd.private_graph, {"precision": any_of(None, 0.5, 0.9)}, coded_with_more, (3, 9)
    ),
}
FAST = {
    "gram_notears": {"l1": 1e9},
    "noleaks": {"l1": 1e9, "steps": 3},
    "histogram_anm": {"score": Kendall()},
    "curate_pc": {"max_order": 0},
}
"""Settings under which what follows the draws takes less time. No arc is worth such an l1."""


FOLLOWED = {"table_pc": with_what_follows, "learned_pc": with_arrows}
"""With what follows from a release; for strangers, since neighbours' answers are the same."""


@dataclass
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
    """The system from its seed on; it checks each release by itself."""
    how = {name: value for name, value in settings.items() if name != "seed"}

    def run(data):
        with contextlib.ExitStack() as stack:
            stack.enter_context(warnings.catch_warnings(action="ignore"))  # delta above 1/n
            stack.enter_context(mock.patch("dpcgd.pairwise.anm.CONTROLS", 1))  # after the release
            if "rate" in settings:
                stack.enter_context(mock.patch(*IN_FILE_ORDER))
            rng = None if settings.get("secure") else default_rng(settings["seed"])
            release = system(data, rng=rng, **how)
        check_release(release, settings)
        return release

    return run


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
        for part in value:
            yield from numbers(part)
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
    except ValueError:
        found.refused += 1
        assert all(refuses(run, other) for other in others), (name, settings)
        return
    found.pairs += len(others)
    found.worst = max(found.worst, worst(draws))
    assert worst(draws) <= 1, (name, settings, worst(draws))


def on_a_stranger(name: str, rng: Generator, found: Found) -> None:
    """Replay one run on data that share nothing with its own."""
    case = SYSTEMS[name]
    little_noise = {"epsilon": log_uniform(2, 1e4)(rng), "delta": 1e-3}
    settings = FAST.get(name, {}) | case.drawn(rng) | little_noise
    for unusual in ("l1", "row_norm"):  # with the usual ones the data speak
        settings.pop(unusual, None)
    data = next(case.data(rng, settings, sizes=case.sizes))
    with contextlib.suppress(ValueError):  # refused by public facts
        replay(started(FOLLOWED.get(name, case.system), settings), data, stranger(data, rng))
        found.strangers += 1


def refuses(run, data) -> bool:
    try:
        run(data)
    except ValueError:
        return True
    return False


def attacked(name: str, pairs: int, strangers: int, seed: int = 0) -> Found:
    """So many replays of a system."""
    rng, found = default_rng([seed, list(SYSTEMS).index(name)]), Found()
    while found.strangers < strangers:
        on_a_stranger(name, rng, found)
    while found.pairs < pairs:
        on_neighbours(name, rng, found)
    return found


def main(systems: str, *numbers: str) -> None:
    """What replays of some systems have shown, a line each."""
    for system in systems.split(","):
        found = attacked(system, *map(int, numbers))
        print(json.dumps(dataclasses.asdict(found)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
