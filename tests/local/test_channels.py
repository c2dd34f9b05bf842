"""The exact privacy of a channel, read off its entries."""

import math

import numpy as np
import pytest

from dpcgd.local.channels import privacy_loss


def test_impossible_reports_distances_and_chosen_inputs_count_as_defined():
    channel = np.array([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0], [0.25, 0.25, 0.5]])
    assert privacy_loss(channel[:2]) == pytest.approx(math.log(2))  # impossible from both
    assert privacy_loss(channel) == math.inf  # possible from one only
    channel = np.array([[0.8, 0.2], [0.6, 0.4], [0.2, 0.8]])
    apart = np.abs(np.subtract.outer(range(3), range(3)))
    assert privacy_loss(channel, apart) == pytest.approx(math.log(3))  # 0.6 to 0.2, a step
    assert privacy_loss(channel, inputs=[1]) == pytest.approx(math.log(3))
    assert privacy_loss(channel, apart, inputs=[0]) == pytest.approx(math.log(2))
