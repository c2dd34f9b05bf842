"""Numbers at the ends of double precision, for tests that ask for a defined outcome everywhere."""

import math
import sys

from hypothesis import settings, strategies as st

LEAST, MOST = sys.float_info.min, sys.float_info.max
LARGE_BUDGETS = [(1e7, 1e-6), (705.0, 1e-6), (1e160, 1e-12), (MOST, LEAST)]

extreme = settings(derandomize=True, max_examples=40)
positive = st.one_of(
    st.floats(LEAST, MOST),
    st.floats(-700, 700).map(math.exp),
    st.floats(-3, 3).map(math.exp),
    st.sampled_from([LEAST, 1e-300, 1e-160, 1e-16, 1.0, 1e16, 1e154, 1e160, 1e300, MOST]),
)
deltas = st.floats(-708, -1e-9).map(math.exp) | st.sampled_from([LEAST, 1e-6, 0.5, 1 - 2**-53])
numbers = st.one_of(st.just(0.0), positive, positive.map(lambda x: -x))
