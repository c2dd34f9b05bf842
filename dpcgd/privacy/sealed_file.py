"""Files that are written completely or not at all, and JSON files that reveal edits."""

import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from dpcgd.datasets.arguments import check_file
from dpcgd.datasets.schema import read_mapping

__all__ = ["check_room", "digest_of", "read_sealed", "sealed", "write_whole"]

CURE = "take the file as it was written"

SEAL = "sha256"
"""The key of the digest that a file holds of itself."""

RECEIPT = 1 << 22
"""The most characters of a file for which room is checked beforehand."""


def digest_of(content: Any) -> str:
    """SHA-256 of a JSON value, the same for any order of keys.

    Examples
    --------
    >>> digest_of({"a": 1, "b": 2}) == digest_of({"b": 2, "a": 1})
    True
    """
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def write_whole(path: str | os.PathLike, text: str) -> None:
    """Write a text file completely, and flush it to the disk, or leave the old file.

    Raises
    ------
    ValueError
        If the file cannot be written.
    """
    path = check_target(path)
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with open(beside, "x", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError as error:
        raise ValueError(f"{path} cannot be written: {error.strerror}") from None
    finally:
        with suppress(OSError):
            beside.unlink()
    with suppress(OSError):  # where the system can: the file's name on the disk too
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def check_room(path: str | os.PathLike) -> None:
    """Check the room for a file to be written later: write some megabytes there and delete them.

    Raises
    ------
    ValueError
        If such a file cannot be written, because of its name, its folder or lack of room.
    """
    path = check_target(path)
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.room")
    write_whole(beside, " " * RECEIPT)
    beside.unlink()


def check_target(path: str | os.PathLike) -> Path:
    """Refuse a path to which no file can be written.

    Raises
    ------
    ValueError
        If it is not a path, is a folder or a device, or its folder does not exist.
    """
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
        raise ValueError(f"give the path of a file to write to, not {path!r}")
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{path} is a folder; give the path of a file in it")
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is no ordinary file; give the path of one")
    if not path.parent.is_dir():
        raise ValueError(f"there is no folder {path.parent}; make it first")
    return path


def sealed(content: Mapping[str, Any]) -> str:
    """The text of a JSON file with a digest of itself."""
    return json.dumps({**content, SEAL: digest_of(content)}, indent=1, allow_nan=False) + "\n"


def read_sealed(path: str | os.PathLike, form: str) -> dict[str, Any]:
    """Read a file that holds the text of :func:`sealed`.

    Parameters
    ----------
    path : path
    form : str
        The required ``format`` of the file.

    Raises
    ------
    ValueError
        If there is no such file, it has another format, or it was edited. The digest is no
        signature: it reveals accidents and edits by hand, but an editor can compute a new one.
    """
    check_file(path, f"give the path of a {form} file, not {path!r}")
    try:
        content = read_mapping(path)  # no key twice: people see the first, programs the last
        seal = content.pop(SEAL, None)
        digest = digest_of(content)  # refuses what is no number
        if content["format"] != form:
            raise ValueError
    except (ValueError, KeyError, RecursionError):
        raise ValueError(f"{path} is no {form}; {CURE}") from None
    if seal != digest:
        raise ValueError(f"{path} does not verify: it is not what was written; {CURE}")
    return content
