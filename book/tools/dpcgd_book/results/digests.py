"""The project's one digest: results count as today's only if they were made by today's files."""

import hashlib
import os
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import dpcgd
from dpcgd.datasets.arguments import data_folder

__all__ = ["digest_of_files", "digest_of_package"]

PACKAGE, TOOLS = Path(dpcgd.__file__).parent, Path(__file__).resolve().parents[1]


def digest_of_files(paths: Iterable[Path | str], *facts: str, root: Path | str = ".") -> str:
    """A hash of files, of all files in folders, and of facts; caches are left out.

    Parameters
    ----------
    paths : iterable of path
        Files and folders, from the root.
    *facts : str
        What else results depend on.
    root : path
        The names of files below this folder are part of the hash.

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
    """A hash of the package with its data, and of the book's tools.

    Returns
    -------
    str
        The same on every machine that has the same files.
    """
    parts = (digest_of_files(["."], root=root) for root in (PACKAGE, TOOLS, data_folder()))
    return digest_of_files([], *parts)
