"""Statistics of tables and matrices at the ends of double precision."""

import math

import numpy as np
import pytest
from extremes import MOST

from dpcgd.statistics.categorical_statistics import ChiSquared, GTest, chi_squared
from dpcgd.statistics.moment_matrices import PartialCorrelation, clipped_gram, partial_correlation
from dpcgd.statistics.rank_statistics import KendallP, KendallZ, SpearmanZ, kendall_z
from dpcgd.statistics.statistic import in_sensitivities

pytestmark = pytest.mark.filterwarnings("error")


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_critical_values_and_levels_are_numbers(bad):
    for kind in (KendallZ, SpearmanZ, PartialCorrelation):
        with pytest.raises(ValueError, match="critical must be a finite number"):
            kind(critical=bad)
    for kind in (KendallP, GTest, ChiSquared):
        for alpha in (bad, 0.0, 1.0):
            with pytest.raises(ValueError, match="alpha must be a level"):
                kind(alpha=alpha)


def test_large_counts_do_not_leave_the_integers():
    crowd = 5 * 10**9
    table = np.array([[crowd, 0], [0, crowd]])
    assert kendall_z(table) == pytest.approx(kendall_z(table // 10**3) * math.sqrt(1e3), rel=1e-6)
    assert chi_squared(table) == pytest.approx(2 * crowd)
    assert partial_correlation(table) == pytest.approx(1)
    assert in_sensitivities(0.0, 0.0) == 0.0
    assert in_sensitivities(np.float64(1e200), 1e-200) == MOST


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, 1e-200])
def test_rows_and_their_bound(bad):
    rows = np.array([[1e200, 1.0], [0.5, 0.5], [0.0, 0.0]])
    assert np.isfinite(clipped_gram(rows, bound=1.0)).all()
    with pytest.raises(ValueError, match="bound must lie between"):
        clipped_gram(rows, bound=bad)
