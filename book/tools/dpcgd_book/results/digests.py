"""Digests of code: results are taken for those of today's code only if they were made with it."""

import dis
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import is_dataclass
from functools import lru_cache, partial
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

import dpcgd
from dpcgd.datasets.data_files import data_folder

__all__ = ["digest_of_files", "digest_of_package", "digest_of_task"]

PACKAGE = Path(dpcgd.__file__).parent
TOOLS = Path(__file__).resolve().parents[1]
PICTURES = TOOLS / "figures"
"""Its files draw: no result hangs on them."""

PLAIN = str | bytes | int | float | complex | range | slice | np.generic | None


def digest_of_files(paths: Iterable[Path | str], *facts: str, root: Path | str = ".") -> str:
    """A hash of files, of all files in folders, and of facts; caches left out.

    Parameters
    ----------
    paths : iterable of path
        Of files and folders, from the root.
    *facts : str
        What else results depend on.
    root : path
        Where the names of files begin that are part of the hash.

    Returns
    -------
    str
        64 hexadecimal digits.

    Examples
    --------
    >>> digest_of_files([Path(__file__).name], root=Path(__file__).parent) == digest_of_files([])
    False
    """
    hashed = hashlib.sha256(repr(facts).encode())
    for path in (Path(root, path) for path in paths):
        files = [f for f in sorted(path.rglob("*")) if f.is_file()] if path.is_dir() else [path]
        for file in files:
            if "__pycache__" not in file.parts:
                hashed.update(os.path.relpath(file, root).encode() + b"\0")
                hashed.update(hashlib.sha256(file.read_bytes()).digest())
    return hashed.hexdigest()


@lru_cache
def digest_of_package() -> str:
    """A hash of the package, its data too, but for what only draws.

    Returns
    -------
    str
        The same on every machine that has the same files.
    """
    data = digest_of_files(["."], root=data_folder())
    tools = digest_of_files(_files(TOOLS), root=TOOLS)
    return digest_of_files(_files(PACKAGE), data, tools, root=PACKAGE)


def digest_of_task(task: Callable[..., Any]) -> str:
    """A hash of a task: its code, its settings, and those of what it calls in its own module.

    Settings are defaults, what a partial or a closure holds, and the values of global names: texts,
    numbers, arrays, and containers and dataclasses of them. Of other objects the hash has only the
    type. Comments, and where the task stands, are no part of it.

    Parameters
    ----------
    task : callable

    Returns
    -------
    str
        64 hexadecimal digits, the same in every process of one Python.

    Examples
    --------
    >>> tasks = [lambda x, k=k: x + k for k in (1, 1, 2)]
    >>> [digest_of_task(task) == digest_of_task(tasks[0]) for task in tasks]
    [True, True, False]
    """
    inner = task
    while isinstance(inner, partial):
        inner = inner.func
    hashed = hashlib.sha256()
    for part in _parts(task, inner.__module__, {}):
        hashed.update(part + b"\0")
    return hashed.hexdigest()


def _files(root: Path) -> list[Path]:
    return [path for path in sorted(root.rglob("*.py")) if path.parent != PICTURES]


def _parts(value, home: str, seen: dict[int, Any]) -> Iterator[bytes]:
    """What a value's hash is made of; what may hold itself is looked at once."""
    if isinstance(value, PLAIN):
        yield repr(value).encode()
        return
    yield f"{type(value).__module__}.{type(value).__qualname__}".encode()
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        yield repr((value.dtype.str, value.shape)).encode() + value.tobytes()
    elif id(value) not in seen:
        seen[id(value)] = value
        for inner in _inside(value, home):
            yield from _parts(inner, home, seen)


def _inside(value, home) -> Iterable[Any]:
    """What else has to be looked at."""
    if isinstance(value, partial):
        return value.func, value.args, value.keywords
    if isinstance(value, CodeType):
        return value.co_code, value.co_names, value.co_varnames, value.co_consts
    if isinstance(value, Mapping):
        return [part for item in value.items() for part in item]
    if isinstance(value, Set):
        return sorted(value, key=repr)
    if isinstance(value, Sequence):
        return value
    return _of_object(value, home)


def _of_object(value, home) -> Iterable[Any]:
    """Of functions, classes and instances; of another module's, names alone."""
    if isinstance(value, ModuleType):
        return (value.__name__,)
    if is_dataclass(value) and not isinstance(value, type):
        return type(value), vars(value)
    if not callable(value):
        return ()
    if getattr(value, "__module__", None) != home:
        return str(getattr(value, "__module__", "")), str(getattr(value, "__qualname__", ""))
    if isinstance(value, FunctionType):
        return _of_function(value)
    if isinstance(value, type):
        return [part for part in vars(value).values() if isinstance(part, FunctionType)]
    if isinstance(value, MethodType):
        return value.__func__, value.__self__
    return (getattr(value, "__wrapped__", type(value)),)


def _of_function(function) -> Iterable[Any]:
    code, names = function.__code__, function.__globals__
    held = [cell.cell_contents for cell in function.__closure__ or ()]
    used = [names[name] for name in _global_names(code) if name in names]
    return code, function.__defaults__, function.__kwdefaults__, held, used


def _global_names(code) -> list[str]:
    """Global names that a function uses, and the functions in it."""
    own = {i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    inner = [name for c in code.co_consts if isinstance(c, CodeType) for name in _global_names(c)]
    return [*sorted(own), *inner]
