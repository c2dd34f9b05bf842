"""Every chapter runs in its quick profile and still says what it said."""

import ast
import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml

nbformat = pytest.importorskip("nbformat", reason="it is in the book extra, as papermill is")

import chapters  # noqa: E402
import golden  # noqa: E402
import reading  # noqa: E402

NAMES = [path.stem for path in chapters.chapters()]
SECTIONS = ["What you will be able to do", "What breaks", "Fork me"]
PAPER_SECTIONS = ["The verdicts", "Fork me"]


def is_paper(name):
    """A chapter that records verdicts on a paper's tables and figures re-runs it."""
    return "item" in golden.of(name).get("verdicts", {"value": [{}]})["value"][0]


def test_chapter_runs_and_its_results_are_the_golden_ones(executed, name):
    assert executed[name].error is None, executed[name].error
    found = json.loads((chapters.home("quick").results / f"{name}.json").read_text())
    assert golden.off(golden.of(name), found) == []


def test_chapter_17_quotes_the_golden_values_of_others():
    assert golden.quoted() == json.loads(golden.QUOTED.read_text())


def test_every_golden_value_is_exact_or_says_how_far_it_may_move(name):
    for result, entry in golden.of(name).items():
        assert entry.keys() in ({"value", "exact"}, {"value", "tolerance", "why"}), result
        assert len(entry.get("exact", entry.get("why"))) > 10, result
        allowed = entry.get("tolerance", 1.0)
        several = allowed.values() if isinstance(allowed, dict) else [allowed]
        assert all(golden.EXACT < size <= 1 for size in several), result


CLOCK = r'"seconds": [^"]|\d[^"]* times (as long as|[^"]*\'s time)'


def test_what_a_clock_says_is_no_golden_value(name):
    """Otherwise make bench, or a busy machine, moves it."""
    assert not re.search(CLOCK, json.dumps(golden.of(name)))


def read(name):
    return nbformat.read(chapters.NOTEBOOKS / f"{name}.ipynb", as_version=4)


def visible(book):
    code = (cell for cell in book.cells if cell.cell_type == "code")
    return [cell for cell in code if not reading.tags(cell) & reading.HIDDEN]


def test_chapter_is_stored_without_outputs_and_says_what_every_chapter_says(name):
    book = read(name)
    nbformat.validate(book)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in code)
    assert sum("parameters" in reading.tags(cell) for cell in code) == 1
    assert max(len(cell.source.splitlines()) for cell in visible(book)) <= 17
    prose = [cell.source for cell in book.cells if cell.cell_type == "markdown"]
    assert not re.search(r"[\x00-\x08\x0b-\x1f]", "".join(prose)), "an escape that went wrong"
    headings = re.findall(r"^## (.*)", "\n".join(prose), re.MULTILINE)
    for section in PAPER_SECTIONS if is_paper(name) else SECTIONS:
        assert sum(heading.startswith(section) for heading in headings) == 1, section


def test_every_parameter_can_be_set_and_no_path_hangs_on_a_folder(name):
    """What papermill does not see is an assignment to several names at once."""
    for cell in read(name).cells:
        if cell.cell_type == "code":
            assert '"../' not in cell.source
        if "parameters" in reading.tags(cell):
            for statement in ast.parse(cell.source).body:
                assert isinstance(statement, ast.Assign)
                assert [type(target) for target in statement.targets] == [ast.Name]


def test_every_chapter_is_within_its_limits(name):
    assert reading.over(reading.measured(chapters.NOTEBOOKS / f"{name}.ipynb")) == []


@pytest.fixture
def alone(name):
    return visible(read(name))


def test_visible_cells_use_only_names_that_are_seen(alone):
    assert reading.undefined([cell.source for cell in alone]) == []


OWN = tomllib.loads(Path(__file__).with_name("own_algorithms.toml").read_text())
REMOVED = """
import dpcgd, pkgutil, sys, numpy as np
from dpcgd_book.attacks.exercises import same_as
asia = dpcgd.load("asia", n=20_000, rng=np.random.default_rng(0))
how = {{"epsilon": 1.0, "delta": 1e-6}}
named = lambda pairs: {{frozenset(asia.variables[v] for v in pair) for pair in pairs}}
rng = np.random.default_rng(1)
wanted = {package}
gone = [pkgutil.resolve_name("dpcgd." + path) for path in {removed}]
for module in [*sys.modules.values()]:
    for name, value in [*vars(module).items()]:
        if any(value is thing for thing in gone):
            setattr(module, name, None)
rng = np.random.default_rng(1)
same_as(lambda: wanted, (), close=1e-5)(lambda: {chapter})
"""
"""A cell that runs a chapter's own algorithm where the package's version is gone."""


@pytest.fixture(scope="module")
def outcomes_alone(request, tmp_path_factory):
    """What comes of the visible cells of each chapter that is tested, several at a time."""
    folder, wanted = tmp_path_factory.mktemp("alone"), []
    for item in request.session.items:
        if getattr(item, "originalname", "") == "test_visible_cells_and_own_algorithms_run_alone":
            book = read(name := item.callspec.params["name"])
            wanted.append(folder / f"{name}.ipynb")
            rows = OWN.get(name[:2], [])
            own = [nbformat.v4.new_code_cell(REMOVED.format(**row)) for row in rows]
            nbformat.write(nbformat.from_dict(book | {"cells": visible(book) + own}), wanted[-1])
    outcomes = chapters.execute_all(chapters.Home(folder / "home"), "quick", wanted)
    return {outcome.chapter: outcome.error for outcome in outcomes}


@pytest.mark.slow
def test_visible_cells_and_own_algorithms_run_alone(alone, name, outcomes_alone):
    assert outcomes_alone[name] is None, outcomes_alone[name]


UNDEFINED = [
    (["import a.b as c", "def f(x):\n    return [c(y) for y in x]", "f([1])"], []),
    *((["x = x + 1", "x"], ["x"]), (["x += 1"], ["x"])),
    (["def f():\n    return g()", "def g():\n    return f()"], ["g"]),
    (["class A:\n    y = 1\n    def f(self):\n        return y"], ["y"]),
    (["for i in range(3):\n    print(i)", "print(f'{j}', i)"], ["j"]),
]


@pytest.mark.parametrize(("cells", "names"), UNDEFINED)
def test_names_that_no_cell_before_defines(cells, names):
    assert reading.undefined(cells) == names


def test_proofs_are_folds_and_every_assertion_says_what_it_holds_against(name):
    for cell in read(name).cells:
        if cell.cell_type == "markdown":
            proofs = re.findall(r"\{prf:proof\}.*\n(.*)", cell.source)
            assert all(line == ":class: dropdown" for line in proofs), cell.source[:80]
            assert not re.search(r"^#+ Claim", cell.source, re.MULTILINE)
        else:
            asserted = [n for n in ast.walk(ast.parse(cell.source)) if isinstance(n, ast.Assert)]
            assert all(statement.msg for statement in asserted), cell.source


def test_the_table_of_contents_gives_chapters_the_numbers_of_their_files():
    parts = yaml.safe_load((chapters.ROOT / "_toc.yml").read_text())["parts"]
    numbered = [page["file"] for part in parts if "numbered" in part for page in part["chapters"]]
    assert numbered == [f"notebooks/{name}" for name in NAMES]


def write_chapter(path, code):
    setting = nbformat.v4.new_code_cell('profile = "quick"', metadata={"tags": ["parameters"]})
    cells = [setting, nbformat.v4.new_code_cell(code)]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), path)


def test_a_failing_chapter_is_reported_with_its_cell_and_error(tmp_path):
    broken = tmp_path / "99_broken.ipynb"
    write_chapter(broken, "1 / 0")
    at = chapters.Home(tmp_path / "home")
    (outcome,) = chapters.execute_all(at, "quick", [broken])
    assert outcome.result == "FAILED"
    assert "99_broken, cell 2: ZeroDivisionError" in outcome.error
    assert not at.stamp(broken).exists()


@pytest.fixture
def compiled(monkeypatch):
    """What chapters of two lines do not use is not compiled for them."""
    monkeypatch.setattr(chapters.Run, "compile_once", lambda self: None)


def test_a_chapter_is_executed_once_for_the_same_contents(tmp_path, compiled):
    at, chapter = chapters.Home(tmp_path / "home"), tmp_path / "98_counts.ipynb"

    def write(text):
        lines = ["import os, pathlib", 'folder = pathlib.Path(os.environ["DPCGD_RESULTS"])']
        lines += ['file = folder / "98_counts.json"', f"file.write_text({text!r})"]
        write_chapter(chapter, "\n".join(lines))

    def result(**how):
        (outcome,) = chapters.execute_all(at, "quick", [chapter], **how)
        assert outcome.error is None, outcome.error
        return outcome.result

    write("1")
    assert [result(), result()] == ["ok", "reused"]
    assert result(OPENBLAS_CORETYPE="Generic") == "ok"
    write("2")
    assert [result(), result()] == ["ok", "reused"]
    assert at.result(chapter).read_text() == "2"
    at.result(chapter).unlink()
    assert result() == "ok"


def test_tables_of_other_chapters_count_where_a_chapter_names_them(tmp_path, monkeypatch):
    read, chapter = [], tmp_path / "98_tables.ipynb"
    chapter.write_text('rows_on_file(folder / "17_which_one_should_i_use", "table"); yardsticks()')
    monkeypatch.setattr(chapters, "digest", lambda paths, *facts: read.extend(paths))
    chapters.Run(chapters.Home(tmp_path), "quick", {}).contents(chapter)
    stored = chapters.ROOT / "book" / "stored"
    named = {stored / "17_which_one_should_i_use", stored / "yardsticks"}
    assert set(read) - {chapter, *chapters.READ} == named


def test_what_moved_is_told():
    old = {"a": {"value": {"x": 1.0}}, "b": {"value": 2, "tolerance": 0.5}, "gone": {"value": 0}}
    lines = ["a.x: 1.0 -> 1.1", "gone: no longer recorded", "new: not in the golden file"]
    new = {"a": {"x": 1.1}, "b": 2.2, "new": 1}
    assert golden.off(old, new) == lines
    assert golden.moved(old, new) == sorted([*lines, "b: 2 -> 2.2"])


def test_a_tolerance_may_differ_within_a_result():
    allowed = {"rough": 0.1, "otherwise": 1e-9}
    old = {"F1": {"value": {"0.1": {"fine": 1.0, "rough": 1.0}}, "tolerance": allowed}}
    assert golden.off(old, {"F1": {"0.1": {"fine": 1.0, "rough": 1.05}}}) == []
    lines = ["F1.0.1.fine: 1.0 -> 1.05", "F1.0.1.rough: 1.0 -> 1.2"]
    assert golden.off(old, {"F1": {"0.1": {"fine": 1.05, "rough": 1.2}}}) == lines


def test_chapters_are_named_by_how_they_begin():
    assert [path.stem[:2] for path in chapters.chapters("06,07")] == ["06", "07"]
    assert len(chapters.chapters("")) == len(NAMES)
    with pytest.raises(SystemExit, match="no chapter begins with '99'; there are 01_"):
        chapters.chapters("99")
