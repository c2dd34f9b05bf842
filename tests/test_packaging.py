"""The project's promises about itself: pins, import time's causes, what a wheel holds."""

import importlib.metadata
import importlib.util
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import house
import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
ALL = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
NEEDED = [Requirement(line) for lines in ALL for line in lines]
PEERS = {Requirement(line).name for line in PROJECT["optional-dependencies"]["peers"]}
"""Only benchmarks need them, in an environment of their own."""


def locked():
    lines = re.findall(r"^([a-z0-9.-]+)==(\S+)", (ROOT / "requirements.lock").read_text(), re.M)
    return {name: {v for n, v in lines if n == name} for name, _ in lines}


locked_environment = pytest.mark.skipif(
    importlib.util.find_spec("jupyter_book") is None, reason="not the environment of the lock"
)


def pin(name):
    """The one version that the lock has, or pyproject.toml itself for what the lock leaves out."""
    if name in PEERS:
        (only,) = (str(need.specifier) for need in NEEDED if need.name == name)
        return only.removeprefix("==")
    (version,) = {v for v in locked()[name] if v == importlib.metadata.version(name)}
    return version


@locked_environment
def test_environment_yml_has_the_pins_of_the_lock():
    entries = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    (pip,) = [entry["pip"] for entry in entries if isinstance(entry, dict)]
    conda = [entry for entry in entries if isinstance(entry, str) and entry != "pip"]
    assert "python" + PROJECT["requires-python"] in conda
    pins = dict(
        re.split("==?", entry.replace("_", "-"))
        for entry in conda
        if not entry.startswith("python>")
    )
    pins |= dict(entry.split("==") for entry in pip)
    assert pins == {need.name: pin(need.name) for need in NEEDED}


@locked_environment
def test_lock_and_environment_are_within_the_ranges_of_pyproject():
    for need in NEEDED:
        if need.name not in PEERS:
            installed = importlib.metadata.version(need.name)
            assert installed in locked()[need.name], need
            assert installed in need.specifier, need


def test_the_library_takes_a_range_of_versions_and_the_book_one():
    for line in PROJECT["dependencies"]:
        assert re.fullmatch(r"[a-z0-9-]+>=[\d.]+(,<\d+)?", line), line
    for extra in ("book", "test", "peers"):
        assert all("==" in line for line in PROJECT["optional-dependencies"][extra]), extra


def test_every_dependency_is_named_with_its_reason_in_the_readme():
    readme = (ROOT / "README.md").read_text()
    table = readme[readme.index("## Dependencies and why") :]
    assert [need.name for need in NEEDED if need.name not in table] == []


def test_importing_the_package_loads_nothing_heavy():
    heavy = ["numba", "pandas", "scipy", "matplotlib", "bnlearn", "pgmpy", "opendp"]
    heavy += ["pyarrow", "distributed", "duckdb", "jinja2"]
    code = f"import sys, dpcgd; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_package_never_imports_bnlearn_or_pgmpy():
    for file in (ROOT / "dpcgd").rglob("*.py"):
        assert not re.search(r"^\s*(import|from)\s+(bnlearn|pgmpy)", file.read_text(), re.M), file


def test_the_wheel_carries_the_data(tmp_path):
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet"]
    subprocess.run([*build, "--wheel-dir", str(tmp_path), str(ROOT)], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "dpcgd/py.typed" in names
    assert "dpcgd/graphs/templates/report.jinja" in names
    assert "dpcgd/data/networks/alarm.bif" in names
    assert "dpcgd/data/networks/SHA256SUMS" in names
    assert "dpcgd/data/pairs/records.txt.gz" in names
    assert "dpcgd/data/samples/galton.csv" in names
    assert "dpcgd/data/fertility/mothers.csv.gz" in names


MODULES = {path: path.relative_to(house.PACKAGE).parts for path in house.PACKAGE.rglob("*.py")}


def test_the_package_has_its_rooms_and_nothing_beside_them():
    rooms = {parts[0] for parts in MODULES.values() if len(parts) == 2}
    assert rooms == set(house.ROOMS)
    assert [parts for parts in MODULES.values() if len(parts) != 2] == [("__init__.py",)]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: "/".join(MODULES[path]))
def test_a_file_imports_from_its_room_and_from_floors_below(path):
    room, *_ = MODULES[path]
    used = house.rooms_used(path.read_text())
    assert [other for other in used if house.is_up(room, other)] == []
    assert [other for other in used if house.is_sideways(room, other)] == []


def test_a_wrong_import_would_be_seen():
    assert house.is_sideways("score", "constraint")
    assert house.is_up("privacy", "graphs")
    assert not house.is_sideways("constraint", "graphs")
    assert not house.is_up("graphs", "statistics")
    nested = "def f():\n    from dpcgd.score.notears import notears\n    import dpcgd.local.draws\n"
    assert house.rooms_used(nested) == {"score", "local"}
    searches = (house.PACKAGE / "constraint" / "laplace_pc.py").read_text()
    assert "graphs" in house.rooms_used(searches)


def test_lines_of_code_leave_out_docstrings_and_comments():
    text = '"""Two\nlines."""\n\nX = 1\n"""What it is."""\n# why\n'
    text += 'def f():\n    """Text."""\n    return X\n'
    assert house.lines_of_code(text) == 3
