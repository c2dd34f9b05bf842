"""The examples in the prose print what the prose says they print."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = re.compile(r"```python\n(.*?)```\s+```text\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize("page", ["README.md", "book/intro.md", "book/fork.md"])
def test_the_example_prints_what_stands_below_it(page):
    ((code, printed),) = EXAMPLE.findall((ROOT / page).read_text())
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        exec(compile(code, page, "exec"), {"__name__": page})
    assert shown.getvalue() == printed


def test_the_readme_example_is_ten_lines_at_most():
    code = EXAMPLE.search((ROOT / "README.md").read_text())[1]
    assert len(code.splitlines()) <= 10
