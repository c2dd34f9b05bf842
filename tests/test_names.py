"""Nothing has a name that says nothing."""

import names

TEXT = """
def f(of, *, how=1):
    told, (x, found) = of
    self.at = [one for one in told]
    try:
        y = x.at + how
    except ValueError as again:
        each: int = 3
"""


def test_no_file_has_a_banned_name():
    assert names.to_change() == [], "rename them; scripts/names.py lists them"


def test_banned_names_are_seen_wherever_they_are_given():
    assert sorted(names.banned_in(TEXT)) == [2, 2, 3, 3, 4, 4, 7, 8]
    assert names.banned_in("def ahead(row):\n    return row.at(of=1)") == []
