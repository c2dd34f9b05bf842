"""One bug planted in this process before anything else imports the package; then somebody looks.

python tests/planting.py "name of a bug" replays table_pc,graph_from_moments 1600 60 0
python tests/planting.py "name of a bug" pytest privacy/test_run.py -x

A bug is an edit of the syntax tree of one function, or a function in place of another one. Neither
depends on formatting; an edit depends on names of locals only where it writes them.
"""

import ast
import builtins
import copy
import functools
import runpy
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from tempfile import TemporaryDirectory

TESTS = Path(__file__).resolve().parent
PACKAGE = TESTS.parent / "dpcgd"


# --- places


@functools.cache
def names_in(file: Path) -> frozenset[str]:
    """The names that a file defines at its top."""
    return frozenset(name for node in ast.parse(file.read_text()).body for name in names_of(node))


def names_of(node: ast.AST) -> list[str]:
    """The names that a statement defines, if it defines any."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = getattr(node, "targets", [getattr(node, "target", None)])
    return [target.id for target in targets if isinstance(target, ast.Name)]


def inside(tree: ast.AST, name: str) -> ast.AST | None:
    """The definition with this qualified name, if it is there; without one, the whole file."""
    for part in filter(None, name.split(".")):
        tree = next((node for node in getattr(tree, "body", []) if part in names_of(node)), None)
    return tree


# --- patterns


def is_any(pattern) -> bool:
    """Whether a pattern is `...`, alone or as a body."""
    if isinstance(pattern, list) and len(pattern) == 1:
        pattern = pattern[0]
    pattern = getattr(pattern, "value", None) if isinstance(pattern, ast.Expr) else pattern
    return isinstance(pattern, ast.Constant) and pattern.value is ...


def fits(pattern, node, parts: dict) -> bool:
    """Whether a node looks like a pattern.

    `...` is anything; so are `_` and single capital letters, which are kept as parts. A name is
    also an attribute of that name. A call is looked at as far as the pattern names its arguments.
    """
    if is_any(pattern):
        return True
    if isinstance(pattern, ast.Name):
        if pattern.id in "_ABCDEFGH":
            return ast.unparse(parts.setdefault(pattern.id, node)) == ast.unparse(node)
        return pattern.id == getattr(node, "id", getattr(node, "attr", None))
    if isinstance(pattern, list):
        pairs = zip(pattern, node, strict=False)
        return len(pattern) == len(node) and all(fits(a, b, parts) for a, b in pairs)
    if not isinstance(pattern, ast.AST):
        return pattern == node
    if type(pattern) is not type(node):
        return False
    if isinstance(pattern, ast.Call):
        node = as_far_as(pattern, node)
    fields = [name for name in pattern._fields if name not in ("ctx", "kind", "type_comment")]
    return all(fits(getattr(pattern, name), getattr(node, name), parts) for name in fields)


def as_far_as(pattern: ast.Call, node: ast.Call) -> ast.Call:
    """A call with no more arguments than another one."""
    given = {keyword.arg: keyword for keyword in node.keywords}
    named = [given[keyword.arg] for keyword in pattern.keywords if keyword.arg in given]
    return ast.Call(node.func, node.args[: len(pattern.args)], named)


class Filled(ast.NodeTransformer):
    """Puts the parts of the correct code where the wrong code names them."""

    def __init__(self, parts: dict):
        self.parts = parts

    def visit_Expr(self, node):
        part = self.parts.get(getattr(node.value, "id", None))
        return part if isinstance(part, ast.stmt) else self.generic_visit(node)

    def visit_Name(self, node):
        return self.parts.get(node.id, node)


# --- bugs


@dataclass(frozen=True)
class Bug:
    """A place in the package, what is wrong there, and who looks for it.

    `wrong` is code for the one place in a function that fits the pattern. Where the pattern has a
    `_`, only that part is replaced. In the wrong code `_` and capital letters stand for what they
    stood for in the pattern; without a `_` there, `_` is all that fits. No pattern is the beginning
    of the function. Or `wrong` is a function that stands in for the correct one, and is given that
    one and its arguments; or the correct constant.
    """

    name: str
    where: str
    pattern: str
    wrong: str | Callable
    replayed: str = ""
    tests: str = ""

    @property
    def file(self) -> Path:
        """The file of "room/file:name", or the one of "room:name" that defines the name."""
        place, _, name = self.where.partition(":")
        if "/" in place:
            return PACKAGE / f"{place}.py"
        outermost = name.partition(".")[0]
        (file,) = (f for f in (PACKAGE / place).glob("*.py") if outermost in names_in(f))
        return file

    def patched(self) -> str:
        """The source of the whole file with the bug in it."""
        tree, name = ast.parse(self.file.read_text()), self.where.partition(":")[2]
        scope = inside(tree, name)
        if callable(self.wrong):
            if isinstance(scope, ast.FunctionDef):
                scope.decorator_list.append(ast.Name("planted"))
            elif scope:
                scope.value = ast.Call(ast.Name("planted"), [scope.value], [])
            else:  # from elsewhere
                tree.body += ast.parse(f"{name} = planted({name})").body
        elif self.pattern:
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
        wrong = Filled(copy.deepcopy(parts)).visit(ast.parse(self.wrong)).body
        statements = ast.If(ast.Constant(True), wrong, [])
        other = statements if isinstance(node, ast.stmt) else wrong[0].value
        node.__class__, node.__dict__ = type(other), vars(other)

    def plant(self, folder: str) -> None:
        """Let the module be imported with the bug in it, from a file of its own.

        Numba keeps compiled code by file name: there the bug meets none of the correct module's.
        """
        module, correct = f"{self.file.parent.name}.{self.file.stem}", SourceFileLoader.get_code

        def get_code(loader, fullname):
            if fullname != f"dpcgd.{module}":
                return correct(loader, fullname)
            file = Path(folder, f"{fullname}.py")
            file.write_text(self.patched())
            return compile(file.read_text(), file, "exec")

        SourceFileLoader.get_code, builtins.planted = get_code, self.stand_in

    def stand_in(self, right):
        """What takes the place of a function or a constant."""
        if not callable(right):
            return self.wrong(right)

        @functools.wraps(right)
        def other(*args, **kwargs):
            return self.wrong(right, *args, **kwargs)

        return other


class Place:
    """Adds the bugs of one place to the catalogue, and says who looks for them.

    A place is "room:function", "room:Class.method", "room/file:name" or, for an edit, "room/file:".
    Systems are replayed first; if their runs agree, the test files look.
    """

    bugs: list[Bug] = []  # noqa: RUF012

    def __init__(self, where: str, replayed: str = "", tests: str = ""):
        self.where, self.noticed_by = where, (replayed, tests)

    def edit(self, name: str, pattern: str, wrong: str | Callable) -> None:
        """Add an edit; without a pattern, statements at the beginning of the function."""
        self.bugs.append(Bug(name, self.where, pattern, wrong, *self.noticed_by))

    def swap(self, name: str, wrong: Callable | None = None):
        """Add a function in place of the correct one, the one below if none is given."""
        if wrong is None:
            return functools.partial(self.swap, name)
        self.edit(name, "", wrong)
        return wrong


def main(name: str, *command: str) -> None:
    """Plant a bug and run replays or pytest."""
    sys.path.insert(0, str(TESTS))
    from planted_bugs import BUGS

    (bug,) = (bug for bug in BUGS if bug.name == name)
    sys.argv = [*command]
    with TemporaryDirectory() as folder:
        bug.plant(folder)
        runpy.run_module(command[0], run_name="__main__")


if __name__ == "__main__":
    main(*sys.argv[1:])
