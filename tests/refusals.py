"""One test for all that a file's tests want refused."""

import re

import pytest


def refusals(*cases):
    """A test that each call is refused in one line with these words; for a name `test_...`."""

    @pytest.mark.parametrize(("call", "words"), cases)
    def is_refused(call, words):
        with pytest.raises(ValueError, match=f"^.*{re.escape(words)}.*$"):
            call()

    return is_refused
