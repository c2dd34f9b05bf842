"""Arrays that lie on disk and leave nothing behind."""

import math
import mmap
import tempfile

import numpy as np

__all__ = ["zeros_on_disk"]

CHUNK = 1 << 22
"""Bytes written at a time."""


def zeros_on_disk(shape: tuple[int, ...], dtype) -> np.ndarray:
    """An array of zeros in a temporary file that goes when the array goes, whatever happens.

    Parameters
    ----------
    shape : tuple of int
    dtype : numpy type

    Raises
    ------
    ValueError
        If the disk has no room for it; the file is gone then.

    Notes
    -----
    The zeros are written out, so that a full disk is found here and not at some later page. The
    folder is that of ``tempfile``: the environment variable ``TMPDIR`` names another.

    Examples
    --------
    >>> zeros_on_disk((2, 3), np.uint64).sum()
    np.uint64(0)
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size == 0:
        return np.zeros(shape, dtype)
    try:
        with tempfile.TemporaryFile() as file:
            for start in range(0, size, CHUNK):
                file.write(bytes(min(CHUNK, size - start)))
            file.flush()
            return np.frombuffer(mmap.mmap(file.fileno(), size), dtype).reshape(shape)
    except OSError as error:
        raise ValueError(
            f"{tempfile.gettempdir()} has no room for {size:,} bytes: {error.strerror}; free some "
            "room, or let the environment variable TMPDIR name another folder"
        ) from None
