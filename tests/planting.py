"""One bug planted in this process before anything else imports the package; then somebody looks.

python tests/planting.py "name of a bug" replay table_pc,learned_pc 1600 60 0
python tests/planting.py "name of a bug" pytest privacy/test_run.py -x
"""

import importlib
import importlib.util
import inspect
import itertools
import pkgutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FunctionType

TESTS = Path(__file__).resolve().parent
NUMBER = itertools.count()


@dataclass(frozen=True)
class Bug:
    """What is replaced by what in the source of which file of the package, and who may notice."""

    name: str
    file: str
    correct: str
    wrong: str
    replayed: str = ""
    tests: str = ""

    @property
    def room(self) -> str:
        return self.file.partition("/")[0]

    @property
    def module(self) -> str:
        return "dpcgd." + self.file.removesuffix(".py").replace("/", ".")

    def patched(self, source: str) -> str:
        """The source with the bug in it."""
        if source.count(self.correct) != 1:
            raise ValueError(f"{self.name}: {self.correct!r} is not in {self.file} once")
        return source.replace(self.correct, self.wrong)

    def plant(self, folder: str) -> None:
        plant_source(self, folder)


@dataclass(frozen=True)
class Swap:
    """A function or constant of the package, by module:qualified.name, and what takes its place.

    `wrong` is given the correct one, and a function's arguments.
    """

    name: str
    where: str
    wrong: Callable
    replayed: str = ""
    tests: str = ""

    @property
    def module(self) -> str:
        return self.where.partition(":")[0]

    @property
    def room(self) -> str:
        return self.module.split(".")[1]

    @property
    def file(self) -> str:
        return self.module.removeprefix("dpcgd.").replace(".", "/") + ".py"

    def plant(self, folder: str) -> None:
        plant_function(self.where, self.wrong)


class Patched(SourceFileLoader):
    """Compiles the source of one module with a bug in it, under a file name of its own.

    Numba keeps compiled code by file name: there the bug meets none of the correct module's.
    """

    bug, folder = None, ""

    def get_code(self, fullname):
        file = Path(self.folder, self.bug.file.replace("/", "_"))
        file.write_text(self.bug.patched(Path(self.path).read_text()))
        return compile(file.read_text(), file, "exec")


class Finder:
    """Finds the module that has the bug."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != Patched.bug.module:
            return None
        folder = importlib.import_module(name.rpartition(".")[0]).__path__[0]
        file = str(Path(folder, name.rpartition(".")[2] + ".py"))
        return importlib.util.spec_from_file_location(name, file, loader=Patched(name, file))


def plant_source(bug, folder: str) -> None:
    """Let the module be imported with a piece of its source replaced."""
    Patched.bug, Patched.folder = bug, folder
    sys.meta_path.insert(0, Finder)


def plant_function(where: str, wrong) -> None:
    """Replace a function for everybody who holds it, or for one module that imports it."""
    module, _, path = where.partition(":")
    *holders, name = path.split(".")
    holder = home = importlib.import_module(module)
    for part in holders:
        holder = getattr(holder, part)
    right = inspect.getattr_static(holder, name)
    function = inspect.unwrap(getattr(right, "fget", None) or getattr(right, "__func__", right))
    if not inspect.isfunction(function):
        replace_everywhere(name, right, wrong(right))
    elif function.__module__ != home.__name__:
        setattr(holder, name, lambda *args, **kwargs: wrong(right, *args, **kwargs))
    else:
        give_other_code(function, wrong)


def give_other_code(function, wrong) -> None:
    """Let a function call another, whoever holds it already."""
    kept = FunctionType(
        function.__code__, function.__globals__, function.__name__, None, function.__closure__
    )
    kept.__defaults__, kept.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    function.__signature__ = inspect.signature(kept)
    called = f"_planted_{next(NUMBER)}"
    function.__globals__[called] = lambda *args, **kwargs: wrong(kept, *args, **kwargs)
    free = "".join(f"{name}, " for name in function.__code__.co_freevars)
    lines = [f"def outer({free}):", "    def inner(*args, **kwargs):"]
    lines += [f"        ({free})", f"        return {called}(*args, **kwargs)", "    return inner"]
    made: dict = {}
    exec("\n".join(lines), made)
    inner = made["outer"](*function.__code__.co_freevars)
    function.__code__ = inner.__code__
    function.__defaults__ = function.__kwdefaults__ = None


def replace_everywhere(name: str, right, wrong) -> None:
    """Replace a constant in every module that has it by this name."""
    package = importlib.import_module("dpcgd")
    for found in pkgutil.walk_packages(package.__path__, "dpcgd."):
        module = importlib.import_module(found.name)
        if getattr(module, name, None) is right:
            setattr(module, name, wrong)


def look(how: str, *arguments: str) -> int:
    """Let replay or tests look for it."""
    if how == "replay":
        import replays

        replays.main(*arguments)
        return 0
    import pytest

    return pytest.main([*arguments])


def main(name: str, *arguments: str) -> int:
    sys.path.insert(0, str(TESTS))
    import planted_bugs
    import planted_functions

    bugs = planted_bugs.BUGS + planted_functions.BUGS
    (bug,) = (bug for bug in bugs if bug.name == name)
    with TemporaryDirectory() as folder:
        bug.plant(folder)
        return look(*arguments)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
