"""A file of JSON lines that loses no line, whenever its writer is killed."""

import fcntl
import json
import os
from pathlib import Path
from typing import Any

__all__ = ["LineFile"]


class LineFile:
    """A file of JSON lines, open for one writer.

    A line is on the disk, whole, when :meth:`append` returns. A last line that was cut off, when
    the writer or the machine went down, is dropped when the file is opened again.

    Parameters
    ----------
    path : path
        Of a file; it is made, with its folder, if it is not there. Use it in a ``with``.

    Attributes
    ----------
    lines : list
        What the file held when it was opened.

    Raises
    ------
    ValueError
        If another process is writing to the file, it cannot be written, or holds something else.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with LineFile(Path(folder, "lines.jsonl")) as file:
    ...         file.append({"x": 1})
    ...     with LineFile(Path(folder, "lines.jsonl")) as file:
    ...         file.lines
    [{'x': 1}]
    """

    def __init__(self, path: Path | str):
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._handle = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
        except OSError as error:
            raise ValueError(f"{self.path} cannot be written: {error.strerror}") from None
        try:
            self._lock()
            self.lines = self._read()
        except BaseException:
            os.close(self._handle)
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self._handle)

    def append(self, content: Any) -> None:
        """Write a line, to the disk.

        Raises
        ------
        ValueError
            If it cannot be written; nothing of it is in the file then.
        """
        line = (json.dumps(content) + "\n").encode()
        before = os.fstat(self._handle).st_size
        try:
            written = os.write(self._handle, line)
            os.fsync(self._handle)
        except OSError as error:
            os.ftruncate(self._handle, before)
            raise ValueError(f"{self.path} cannot be written: {error.strerror}") from None
        if written < len(line):
            os.ftruncate(self._handle, before)
            raise ValueError(f"{self.path} cannot be written: the disk is full")

    def _lock(self):
        """The system lifts it when the process ends, however it does."""
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ValueError(
                f"{self.path} is being written by another process; wait for it"
            ) from None

    def _read(self) -> list:
        content = self.path.read_bytes()
        whole = content.rfind(b"\n") + 1
        try:
            lines = [json.loads(line) for line in content[:whole].splitlines()]
        except ValueError as error:
            raise ValueError(
                f"{self.path} holds no lines of JSON ({error}); delete it or name another"
            ) from None
        os.ftruncate(self._handle, whole)
        return lines
