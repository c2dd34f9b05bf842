"""What is checked before a row of a new system is believed."""

import tempfile
import warnings
from functools import partial
from pathlib import Path

import numpy as np

from dpcgd.book.systems import DELTA, System
from dpcgd.datasets.dataset import Dataset
from dpcgd.graphs.check_receipt import check_receipt
from dpcgd.graphs.release import Release
from dpcgd.privacy.audit import empirical_epsilon
from dpcgd.privacy.replay import Divergence, replay, worst

__all__ = ["check_entry"]

EPSILON, RECORDS, NEIGHBOURS = 1.0, 3000, 8
LEVELS = {"a": ["0", "1"], "b": ["0", "1", "2"], "c": ["0", "1"], "d": ["0", "1", "2"]}
OVERSPENT, EXPLORED = 16.0, 20
"""Times epsilon: what the audit is shown to notice, or not; and runs to choose a pair by."""


def check_entry(system: System, *, trials: int = 200, seed: int = 0) -> dict[str, str]:
    """Check a private system's guarantee as far as runs can.

    Parameters
    ----------
    system : System
        One that says "proved".
    trials : int
        Runs on each of two neighbours, for the audit.
    seed : int

    Returns
    -------
    dict of str to str
        What was checked, and what came out: the ledger as dp-accounting adds it up, the largest
        loss over its price in replays, and the audit with its power.

    Raises
    ------
    ValueError
        If the system would be refused; the message says why.

    Notes
    -----
    A check can refute a guarantee and not prove it: the proof stands in the system's file.
    """
    if system.guarantee != "proved" or not system.private:
        raise ValueError(f"{system.name} says {system.guarantee!r}: it stands apart, unchecked")
    if system.trust == "local":
        return {"channel": "the exact epsilon of a channel is read off it: chapter 10"}
    with warnings.catch_warnings(action="ignore"):
        return _ledger(system, seed) | _replays(system, seed) | _audit(system, trials, seed)


def _run(system, data, epsilon, seed):
    rng = np.random.default_rng(seed)
    return system.run(data, epsilon=epsilon, delta=DELTA, rng=rng)


def _records(n, rng, levels=LEVELS) -> Dataset:
    """A chain of variables, each like the one before it or drawn anew."""
    sizes = [len(of) for of in levels.values()]
    codes = rng.integers(0, sizes, size=(n, len(sizes)))
    for v in range(1, len(sizes)):
        same = rng.random(n) < 0.6
        codes[same, v] = codes[same, v - 1] % sizes[v]
    return Dataset(codes, levels)


def _ledger(system, seed) -> dict[str, str]:
    release = _run(system, _records(RECORDS, np.random.default_rng(seed)), EPSILON, seed)
    if not isinstance(release, Release) or release.guarantee != "proved":
        raise ValueError(f"{system.name}: no release with a proved guarantee; return the ledger")
    if release.ledger.budget is None or release.ledger.budget.epsilon > EPSILON:
        raise ValueError(f"{system.name}: its filter promises {release.ledger.budget}, not 1")
    with tempfile.TemporaryDirectory() as folder:
        release.save(Path(folder) / "receipt.json")
        spent = check_receipt(Path(folder) / "receipt.json")
    return {"ledger by dp-accounting": f"{spent.epsilon:.3f} of {EPSILON:g}"}


def _replays(system, seed) -> dict[str, str]:
    rng = np.random.default_rng(seed)
    data = _records(RECORDS, rng)
    others = [_with_one_replaced(data, rng) for _ in range(NEIGHBOURS)]
    try:
        ratio = worst(replay(lambda of: _run(system, of, EPSILON, seed), data, *others))
        replay(lambda of: _run(system, of, EPSILON, seed), data, _records(RECORDS, rng))
    except Divergence as error:
        raise ValueError(f"{system.name}: {error}; let data in through mechanisms only") from None
    if ratio > 1:
        raise ValueError(f"{system.name}: a draw loses {ratio:.2f} times what was paid for it")
    return {"largest loss over its price": f"{ratio:.3f}"}


def _with_one_replaced(data, rng) -> Dataset:
    codes = data.codes.copy()
    codes[rng.integers(data.n)] = rng.integers(0, data.cardinalities)
    return Dataset(codes, data.levels)


def _audit(system, trials, seed) -> dict[str, str]:
    """The graph alone, on two neighbours that a few loose runs tell apart best."""
    rng = np.random.default_rng(seed)

    def joined(data, epsilon):
        return bool(_run(system, data, epsilon, rng.integers(2**63)).graph.skeleton)

    def apart(pair):
        often = [np.mean([joined(data, OVERSPENT) for _ in range(EXPLORED)]) for data in pair]
        return abs(often[0] - often[1])

    try:
        pair = max(map(_two_variables, range(30, 60, 3)), key=apart)
        of = partial(empirical_epsilon, delta=DELTA, trials=trials)
        found = of(partial(joined, epsilon=EPSILON), *pair)
        power = of(partial(joined, epsilon=OVERSPENT * EPSILON), *pair)
    except ValueError:
        return {"audit": "none: public facts refuse so few records"}
    if found > EPSILON:
        raise ValueError(f"{system.name}: an audit shows an epsilon of at least {found:.2f}")
    return {"audit": f"at least {found:.2f} at 1; of one that spends 16 it shows {power:.2f}"}


def _two_variables(agree) -> tuple[Dataset, Dataset]:
    """Sixty records of which so many agree, and the same with one more that does not."""
    codes = np.repeat([[0, 0], [1, 1]], 30, axis=0)
    codes[agree:, 1] = 0
    other = codes.copy()
    other[0, 1] = 1
    levels = {name: ["0", "1"] for name in "ab"}
    return Dataset(codes, levels), Dataset(other, levels)
