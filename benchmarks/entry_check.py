"""What is checked before a row of a new system is believed."""

import warnings
from functools import partial

import numpy as np
from dpcgd_book.attacks.audit import empirical_epsilon
from dpcgd_book.attacks.replay import Divergence, replay, worst
from scipy.stats import ks_2samp

from benchmarks.entries import DELTA, Entry
from benchmarks.probe import Probe, probe_of
from dpcgd.graphs.check_ledger import check_ledger

EPSILON, NEIGHBOURS = 1.0, 8
OVERSPENT = 16.0
"""Times epsilon that the audit is shown to notice, or not."""
EXPLORED = 20
"""Runs by which a pair of neighbours is chosen."""


def check_entry(system: Entry, *, trials: int = 200, seed: int = 0) -> dict[str, str]:
    """Check a private system's guarantee as far as runs can; a ValueError if it would be refused.

    Returns what was checked, and what came out: the ledger as dp-accounting adds it up, the largest
    loss over its price in replays, and the audit, of so many runs on each of two neighbours, with
    its power. A check can refute a guarantee and not prove it: the proof stands in the system's
    file. Where only a test half is protected, neighbours differ there.
    """
    if system.guarantee != "proved" or not system.private:
        raise ValueError(f"{system.name} says {system.guarantee!r}: it stands apart, unchecked")
    if system.trust == "local":
        return {"channel": "the exact epsilon of a channel is read off it: chapter 10"}
    probe = probe_of(system)
    with warnings.catch_warnings(action="ignore"):
        checks = _ledger(system, probe, seed) | _replays(system, probe, seed)
        return checks | _audit(system, probe, trials, seed)


def _run(system, data, epsilon, seed):
    return system.run(data, epsilon=epsilon, delta=DELTA, rng=np.random.default_rng(seed))


def _ledger(system, probe: Probe, seed) -> dict[str, str]:
    data = probe.records[0](np.random.default_rng(seed), probe.protected(probe.n, seed))
    release = _run(system, data, EPSILON, seed)
    if not isinstance(release, probe.release) or release.guarantee != "proved":
        raise ValueError(f"{system.name}: no release with a proved guarantee; return the ledger")
    if (protects := getattr(release, "protects", "everyone")) != probe.protects:
        raise ValueError(f"{system.name}: its release protects {protects!r}; say so in its file")
    budget = release.ledger.budget
    if budget is None or budget.epsilon > EPSILON or budget.delta > DELTA:
        raise ValueError(f"{system.name}: its filter promises {budget}, not {EPSILON:g}, {DELTA:g}")
    return {"ledger by dp-accounting": f"{check_ledger(release.ledger).epsilon:.3f} of {EPSILON:g}"}


def _replays(system, probe: Probe, seed) -> dict[str, str]:
    rng, ratio = np.random.default_rng(seed), 0.0
    run = partial(_run, system, epsilon=EPSILON, seed=seed)
    who = probe.protected(probe.n, seed)
    some = [make(rng, who) for make in probe.records]
    try:
        for data in some:
            numbers = (rng.choice(np.flatnonzero(who)) for _ in range(NEIGHBOURS))
            others = [probe.replaced(data, number, rng) for number in numbers]
            ratio = max(ratio, worst(replay(run, data, *others)))
        replay(run, some[0], probe.records[0](rng, who), *some[1:])
    except Divergence as error:
        raise ValueError(f"{system.name}: {error}; let data in through mechanisms only") from None
    if ratio > 1:
        raise ValueError(f"{system.name}: a draw loses {ratio:.2f} times what was paid for it")
    return {"largest loss over its price": f"{ratio:.3g}"}


def _audit(system, probe: Probe, trials, seed) -> dict[str, str]:
    """One number of the release, on two neighbours that a few loose runs tell apart best."""
    rng = np.random.default_rng(seed)

    def answer(data, epsilon):
        while not probe.protected(data.n, drawn := int(rng.integers(2**63)))[0]:
            pass  # then the first record, where neighbours differ, is not protected
        return probe.answer(_run(system, data, epsilon, drawn))

    def apart(couple):
        loose = [[float(answer(data, OVERSPENT)) for _ in range(EXPLORED)] for data in couple]
        return ks_2samp(*loose).statistic

    try:
        couple = max(probe.couples(rng), key=apart)
        audit = partial(empirical_epsilon, delta=DELTA, trials=trials)
        shown = audit(partial(answer, epsilon=EPSILON), *couple)
        power = audit(partial(answer, epsilon=OVERSPENT * EPSILON), *couple)
    except ValueError:
        return {"audit": "none: public facts refuse so few records"}
    if shown > EPSILON:
        raise ValueError(f"{system.name}: an audit shows an epsilon of at least {shown:.2f}")
    return {"audit": f"at least {shown:.2f} at 1; of one that spends 16 it shows {power:.2f}"}
