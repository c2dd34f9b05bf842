"""One bug planted in this process before anything else imports the package; then somebody looks.

python tests/planting.py "name of a bug" replay table_pc,graph_from_moments 1600 60 0
python tests/planting.py "name of a bug" pytest privacy/test_run.py -x

A bug is an edit of the syntax tree of one function, or a function in place of another one. Neither
depends on formatting; an edit depends on names of locals only where it writes them.
"""

import ast
import importlib
import importlib.util
import inspect
import itertools
import pkgutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FunctionType
from typing import ClassVar

TESTS = Path(__file__).resolve().parent
PACKAGE = TESTS.parent / "dpcgd"
NUMBER = itertools.count()


# --- places


@cache
def names_in(file: Path) -> frozenset[str]:
    """The names that a file defines at its top."""
    nodes = ast.parse(file.read_text()).body
    return frozenset(name for node in nodes for name in names_of(node))


def names_of(node: ast.AST) -> list[str]:
    """The names that a statement defines, if it defines any."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = getattr(node, "targets", [getattr(node, "target", None)])
    return [target.id for target in targets if isinstance(target, ast.Name)]


def file_of(where: str) -> Path:
    """The file of "room/file:name", or the one of "room:name" that defines the name."""
    place, _, name = where.partition(":")
    if "/" in place:
        return PACKAGE / f"{place}.py"
    outermost = name.partition(".")[0]
    files = [file for file in sorted((PACKAGE / place).glob("*.py")) if outermost in names_in(file)]
    if len(files) != 1:
        raise ValueError(f"{len(files)} files of {place} define {outermost}")
    return files[0]


def inside(tree: ast.AST, name: str) -> ast.AST:
    """The definition with this qualified name; without one, the whole file."""
    for part in filter(None, name.split(".")):
        (tree,) = (node for node in tree.body if part in names_of(node))
    return tree


# --- edits


def is_any(pattern) -> bool:
    """Whether a pattern is `...`, alone or as a body."""
    if isinstance(pattern, list) and len(pattern) == 1:
        pattern = pattern[0]
    pattern = getattr(pattern, "value", None) if isinstance(pattern, ast.Expr) else pattern
    return isinstance(pattern, ast.Constant) and pattern.value is ...


def is_free(pattern) -> bool:
    """Whether a pattern is `_` or one capital letter."""
    return isinstance(pattern, ast.Name) and pattern.id in "_ABCDEFGH"


def fits(pattern, node, parts: dict) -> bool:
    """Whether a node looks like a pattern.

    `...` is anything; so are `_` and single capital letters, which are kept as parts. A name is
    also an attribute of that name. A call is looked at as far as the pattern names its arguments.
    """
    if is_any(pattern):
        return True
    if is_free(pattern):
        return ast.unparse(parts.setdefault(pattern.id, node)) == ast.unparse(node)
    if isinstance(pattern, ast.Name):
        return pattern.id == getattr(node, "id", getattr(node, "attr", None))
    if isinstance(pattern, list):
        pairs = zip(pattern, node, strict=False)
        return len(pattern) == len(node) and all(fits(a, b, parts) for a, b in pairs)
    if not isinstance(pattern, ast.AST):
        return pattern == node
    if type(pattern) is not type(node):
        return False
    if isinstance(pattern, ast.Call):
        return fits_call(pattern, node, parts)
    fields = [name for name in pattern._fields if name not in ("ctx", "kind", "type_comment")]
    return all(fits(getattr(pattern, name), getattr(node, name), parts) for name in fields)


def fits_call(pattern: ast.Call, node: ast.Call, parts: dict) -> bool:
    """Whether a call has at least the arguments of another one."""
    given = {keyword.arg: keyword.value for keyword in node.keywords}
    return (
        fits(pattern.func, node.func, parts)
        and len(pattern.args) <= len(node.args)
        and all(fits(a, b, parts) for a, b in zip(pattern.args, node.args, strict=False))
        and all(k.arg in given and fits(k.value, given[k.arg], parts) for k in pattern.keywords)
    )


class Filled(ast.NodeTransformer):
    """Puts the parts of the correct code where the wrong code names them."""

    def __init__(self, parts: dict):
        self.parts = parts

    def visit_Expr(self, node):
        part = self.parts.get(getattr(node.value, "id", None))
        return part if isinstance(part, ast.stmt) else self.generic_visit(node)

    def visit_Name(self, node):
        return self.parts.get(node.id, node)


class Replaced(ast.NodeTransformer):
    """Puts other code in the place of one node."""

    def __init__(self, node, other):
        self.node, self.other = node, other

    def visit(self, node):
        return self.other if node is self.node else self.generic_visit(node)


@dataclass(frozen=True)
class Edit:
    """The one place in a function that fits a pattern, and the code that is written there.

    Where the pattern has a `_`, only that part is replaced. In the wrong code `_` and capital
    letters stand for what they stood for in the pattern; without a `_` there, `_` is all that fits.
    No pattern is the beginning of the function.
    """

    name: str
    where: str
    pattern: str
    wrong: str
    replayed: str = ""
    tests: str = ""

    def patched(self) -> str:
        """The source of the whole file with the bug in it."""
        tree = ast.parse(file_of(self.where).read_text())
        scope = inside(tree, self.where.partition(":")[2])
        if self.pattern:
            self._edit(scope)
        else:
            scope.body[1 if ast.get_docstring(scope) else 0 : 0] = ast.parse(self.wrong).body
        return ast.unparse(ast.fix_missing_locations(tree))

    def _edit(self, scope: ast.AST):
        (pattern,) = ast.parse(self.pattern).body
        pattern = pattern.value if isinstance(pattern, ast.Expr) else pattern
        places = [(n, p) for n in ast.walk(scope) if fits(pattern, n, p := {})]
        if len(places) != 1:
            raise ValueError(f"{len(places)} places in {self.where} fit {self.pattern}")
        ((whole, parts),) = places
        node = parts.setdefault("_", whole)
        wrong = ast.parse(self.wrong).body
        if not isinstance(node, ast.stmt):
            wrong = wrong[0].value
        filled = Filled(parts)
        other = [filled.visit(w) for w in wrong] if isinstance(wrong, list) else filled.visit(wrong)
        Replaced(node, other).visit(scope)

    def plant(self, folder: str) -> None:
        """Let the module be imported with the bug in it."""
        Patched.bug, Patched.folder = self, folder
        sys.meta_path.insert(0, Finder)


class Patched(SourceFileLoader):
    """Compiles one module with a bug in it, under a file name of its own.

    Numba keeps compiled code by file name: there the bug meets none of the correct module's.
    """

    bug, folder = None, ""

    def get_code(self, fullname):
        file = Path(self.folder, f"{fullname}.py")
        file.write_text(self.bug.patched())
        return compile(file.read_text(), file, "exec")


class Finder:
    """Finds the module that has the bug."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != module_of(Patched.bug.where):
            return None
        file = str(file_of(Patched.bug.where))
        return importlib.util.spec_from_file_location(name, file, loader=Patched(name, file))


# --- other functions


@dataclass(frozen=True)
class Swap:
    """A function or constant of the package, and what takes its place.

    `wrong` is given the correct one, and a function's arguments.
    """

    name: str
    where: str
    wrong: Callable
    replayed: str = ""
    tests: str = ""

    def plant(self, folder: str) -> None:
        """Replace a function for everybody who holds it, or for one module that imports it."""
        home = importlib.import_module(module_of(self.where))
        holder, name, right = self.found()
        function = inspect.unwrap(getattr(right, "fget", None) or getattr(right, "__func__", right))
        if not inspect.isfunction(function):
            replace_everywhere(name, right, self.wrong(right))
        elif function.__module__ != home.__name__:
            setattr(holder, name, lambda *args, **kwargs: self.wrong(right, *args, **kwargs))
        else:
            give_other_code(function, self.wrong)

    def found(self):
        """Who holds it, its name, and what it is."""
        holder = importlib.import_module(module_of(self.where))
        *holders, name = self.where.partition(":")[2].split(".")
        for part in holders:
            holder = getattr(holder, part)
        return holder, name, inspect.getattr_static(holder, name)


def module_of(where: str) -> str:
    """The name of the module in which a bug is."""
    file = file_of(where)
    return f"dpcgd.{file.parent.name}.{file.stem}"


def room_of(bug: Edit | Swap) -> str:
    """The room in which a bug is."""
    return bug.where.partition(":")[0].partition("/")[0]


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
    for info in pkgutil.walk_packages(package.__path__, "dpcgd."):
        module = importlib.import_module(info.name)
        if getattr(module, name, None) is right:
            setattr(module, name, wrong)


# --- the catalogue


class Place:
    """Adds the bugs of one place to the catalogue, and says who looks for them.

    A place is "room:function", "room:Class.method", "room/file:name" or, for an edit, "room/file:".
    Systems are replayed first; if their runs agree, the test files look.
    """

    bugs: ClassVar[list[Edit | Swap]] = []

    def __init__(self, where: str, replayed: str = "", tests: str = ""):
        self.where, self.noticed_by = where, (replayed, tests)

    def edit(self, name: str, pattern: str, wrong: str) -> None:
        """Add an edit; without a pattern, statements at the beginning of the function."""
        self.bugs.append(Edit(name, self.where, pattern, wrong, *self.noticed_by))

    def swap(self, name: str, wrong: Callable | None = None):
        """Add a function in place of the correct one, the one below if none is given."""
        if wrong is None:
            return lambda function: self.swap(name, function)
        self.bugs.append(Swap(name, self.where, wrong, *self.noticed_by))
        return wrong


# --- who looks


def look(way: str, *arguments: str) -> int:
    """Let replay or tests look for it."""
    if way == "replay":
        import replays

        replays.main(*arguments)
        return 0
    import pytest

    return pytest.main([*arguments])


def main(name: str, *arguments: str) -> int:
    sys.path.insert(0, str(TESTS))
    from planted_bugs import BUGS

    (bug,) = (bug for bug in BUGS if bug.name == name)
    with TemporaryDirectory() as folder:
        bug.plant(folder)
        return look(*arguments)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
