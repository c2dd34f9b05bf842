"""What a private search on two variables shows of one record."""

import pytest
from numpy.random import default_rng


@pytest.fixture
def shown(monkeypatch):
    """What runs with a kind of noise show by whether the edge stays, and the prices of a choice.

    False alarm 1e-9, with 1,200 runs on each of two neighbours.
    """
    audit = pytest.importorskip("dpcgd_book.attacks.audit")

    def audited(run, pair, kind):
        monkeypatch.setattr("dpcgd.privacy.run.noise_source", lambda rng, _: kind(rng))
        rng, prices = default_rng(0), set()

        def edges(data):
            release = run(data, rng=rng, delta=1e-2, allow_delta=True, margin=0.0, max_order=0)
            first, *others = release.ledger.events
            prices.add(first.epsilon)
            assert len(others) <= 1  # of a single candidate
            return len(release.graph.skeleton)

        return audit.empirical_epsilon(edges, *pair, trials=2400), prices

    return audited
