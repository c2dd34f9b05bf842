"""The exact privacy of a channel, read off its entries."""

import math

import numpy as np
import pytest

from dpcgd.local.channels import privacy_loss


def test_a_report_that_is_possible_from_one_input_only_gives_it_away():
    assert privacy_loss(np.array([[0.5, 0.5], [1.0, 0.0]])) == math.inf


def test_a_report_that_is_impossible_from_two_inputs_does_not_tell_them_apart():
    channel = np.array([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0], [0.25, 0.25, 0.5]])
    assert privacy_loss(channel[:2]) == pytest.approx(math.log(2))
    assert privacy_loss(channel) == math.inf


def test_the_loss_per_unit_of_distance_and_from_some_inputs_only():
    channel = np.array([[0.8, 0.2], [0.6, 0.4], [0.2, 0.8]])
    apart = np.abs(np.subtract.outer(range(3), range(3)))
    assert privacy_loss(channel) == pytest.approx(math.log(4))
    assert privacy_loss(channel, apart) == pytest.approx(math.log(3))  # 0.6 to 0.2, a step
    assert privacy_loss(channel, inputs=[1]) == pytest.approx(math.log(3))
    assert privacy_loss(channel, apart, inputs=[0]) == pytest.approx(math.log(2))
