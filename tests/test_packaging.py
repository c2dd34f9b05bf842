"""The project's promises about itself: pins, import time's causes, what a wheel holds."""

import importlib.metadata
import importlib.util
import re
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import house
import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
ALL = [PROJECT["dependencies"], *EXTRAS.values()]
NEEDED = [Requirement(line) for lines in ALL for line in lines]
PEERS = {Requirement(line).name for line in [*EXTRAS["peers"], *EXTRAS["lab"]]}
"""Only benchmarks and make lab need them, in environments of their own."""


def locked():
    lines = re.findall(r"^([a-z0-9.-]+)==(\S+)", (ROOT / "requirements.lock").read_text(), re.M)
    return {name: {v for n, v in lines if n == name} for name, _ in lines}


UNLOCKED = importlib.util.find_spec("jupyter_book") is None
locked_environment = pytest.mark.skipif(UNLOCKED, reason="not the environment of the lock")


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
    named = [entry.replace("_", "-") for entry in conda if not entry.startswith("python>")]
    pins = dict(re.split("==?", entry) for entry in [*named, *pip])
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
    for extra in ("book", "test", "peers", "lab"):
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


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet"]
    subprocess.run([*build, "--wheel-dir", str(folder), str(ROOT)], check=True)
    (file,) = folder.glob("*.whl")
    return file


DATA = "networks/alarm.bif networks/SHA256SUMS pairs/records.txt.gz samples/galton.csv"


@pytest.mark.slow
def test_the_wheel_holds_the_data_and_nothing_of_the_book(wheel):
    archive = zipfile.ZipFile(wheel)
    names = archive.namelist()
    (points,) = [name for name in names if name.endswith("entry_points.txt")]
    assert b"dpcgd = dpcgd.tables.command_line:main" in archive.read(points)
    held = {f"dpcgd/data/{file}" for file in [*DATA.split(), "fertility/mothers.csv.gz"]}
    code = {"py.typed", "__init__.pyi", "graphs/templates/report.jinja"}
    assert {f"dpcgd/{file}" for file in code} | held <= set(names)
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"dpcgd"}
    assert not [name for name in names if name.endswith(".ipynb") or "book" in name]


WALK = """
import importlib, importlib.util, pkgutil, sys
import dpcgd, numpy

assert dpcgd.__file__.startswith(sys.prefix), dpcgd.__file__
assert importlib.util.find_spec("dpcgd_book") is None
names = [getattr(dpcgd, name) for name in dir(dpcgd)]
for found in pkgutil.walk_packages(dpcgd.__path__, "dpcgd."):
    module = importlib.import_module(found.name)
    for thing in (getattr(module, name) for name in getattr(module, "__all__", ())):
        names += [getattr(thing, name) for name in dir(thing) if not name.startswith("_")]
assert dpcgd.load("asia", n=10, rng=numpy.random.default_rng(0)).n == 10
assert not {"dpcgd_book", "bnlearn", "pgmpy", "matplotlib"} & set(sys.modules)
print(len(names))
"""
"""Whoever has the wheel and no other part of the project asks for every public name."""


@pytest.mark.slow
def test_the_wheel_alone_has_every_public_name(wheel, tmp_path):
    """Other packages are those of this environment; its editable packages are not."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path)], check=True)
    python = tmp_path / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    subprocess.run([*install, "--no-deps", "--no-index", str(wheel)], check=True)
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    done = subprocess.run([python, "-Ic", where], capture_output=True, text=True, check=True)
    Path(done.stdout.strip(), "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    done = subprocess.run([python, "-Ic", WALK], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 500


MODULES = {path: path.relative_to(house.PACKAGE).parts for path in house.PACKAGE.rglob("*.py")}
FOREIGN = {"dpcgd_book", "bnlearn", "pgmpy", "matplotlib"}
EXPORTS = {"datasets/bayesian_networks.py": {"pgmpy"}}
"""A method that makes an object of another package loads that when it is called."""


@pytest.mark.parametrize("path", MODULES, ids=lambda path: "/".join(MODULES[path]))
def test_a_file_imports_from_its_room_and_floors_below_and_nothing_of_the_book(path):
    room, *_ = MODULES[path]
    used = house.rooms_used(text := path.read_text())
    assert [other for other in used if house.is_up(room, other)] == []
    assert [other for other in used if house.is_sideways(room, other)] == []
    others = set(re.findall(rf"^\s*(?:import|from)\s+({'|'.join(FOREIGN)})\b", text, re.M))
    assert others == EXPORTS.get("/".join(MODULES[path]), set())


def test_a_wrong_import_would_be_seen():
    assert house.is_sideways("score", "constraint")
    assert house.is_up("privacy", "graphs")
    assert not house.is_sideways("constraint", "graphs")
    assert not house.is_up("graphs", "statistics")
    nested = "def f():\n    from dpcgd.score.notears import notears\n    import dpcgd.local.draws\n"
    assert house.rooms_used(nested) == {"score", "local"}


def test_lines_of_code_leave_out_docstrings_and_comments():
    text = '"""Two\nlines."""\n\nX = 1\n"""What it is."""\n# why\n'
    text += 'def f():\n    """Text."""\n    return X\n'
    assert house.lines_of_code(text) == 3
