"""An account is read once nobody else can write to it."""

import os

import pytest

from dpcgd import BudgetSpent, open_account


def test_what_another_run_reserved_just_before_the_lock_counts(tmp_path, monkeypatch):
    path = tmp_path / "account.json"
    ours, theirs = (open_account(path, epsilon=1.0, delta=1e-6) for _ in range(2))
    locks, opened = [], os.open

    def late(file, *rest, **how):
        if str(file).endswith(".lock") and not locks:
            locks.append(file)
            theirs.reserve(epsilon=0.6)
        return opened(file, *rest, **how)

    monkeypatch.setattr(os, "open", late)
    with pytest.raises(BudgetSpent):
        ours.reserve(epsilon=0.6)
    assert locks
    assert ours.remaining.epsilon == pytest.approx(0.4)
