"""Checks of arguments and files, before anything is read or drawn; errors have one line."""

import difflib
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from functools import wraps
from numbers import Integral, Real
from pathlib import Path
from typing import ParamSpec, TypeVar

import numpy as np

__all__ = ["GZIP", "UTF_16", "check_array", "check_called", "check_file", "check_generator"]
__all__ += ["check_handled", "check_known", "check_once", "check_whole", "data_folder"]
__all__ += ["first_bytes", "is_real", "is_whole", "refuses_weights"]

_P = ParamSpec("_P")
_R = TypeVar("_R")

GZIP = b"\x1f\x8b"
"""The first bytes of a file that gzip has compressed."""

UTF_16 = dict.fromkeys(
    (b"\xff\xfe", b"\xfe\xff"),
    "is UTF-16 text; save it as UTF-8, or pass encoding='utf-16' for a table",
)
"""The first bytes of UTF-16 text, in either byte order."""

NO_TEXT = {
    GZIP: "is compressed with gzip; unpack it first",
    b"PK\x03\x04": "is a zip archive or an Excel workbook; unpack it or save its sheet as CSV",
    b"\xd0\xcf\x11\xe0": "is an Excel workbook; save its sheet as CSV",
    b"PAR1": "is a Parquet file; let its name end in .parquet, or read it with read_parquet",
    **UTF_16,
}
"""The kind of a file by its first bytes, in words."""


UNHANDLED = {
    "weight": "every row counts once, and noise for one row would not hide a heavy one; leave the "
    "weights out, and have the columns that decided them in the schema",
    "cluster": "rows count as independent, and no test is corrected for those that are alike; keep "
    "one row a cluster by a rule fixed beforehand (rows_per_person protects, it does not correct)",
}
"""Names of survey weights and clusters, which this package does not handle; reason and cure."""


def check_handled(names: Iterable[object], where: str = "") -> None:
    """Refuse columns whose names say that they are weights or clusters of rows.

    Raises
    ------
    ValueError
        With the reason and the cure.

    Examples
    --------
    >>> check_handled(["epsilon", "sample_weight"])
    Traceback (most recent call last):
    ...
    ValueError: 'sample_weight' is not handled: every row counts once, and noise for one row ...
    """
    for name in names:
        for word, reason in UNHANDLED.items():
            if word in str(name).lower():
                raise ValueError(f"{where}{name!r} is not handled: {reason}")


def refuses_weights(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Have a function refuse weights and clusters of rows with the reason."""

    @wraps(function)
    def called(*args: _P.args, **keywords: _P.kwargs) -> _R:
        check_handled(keywords)
        return function(*args, **keywords)

    return called


def is_real(value) -> bool:
    """Whether the value is a real number of Python or numpy, but no bool."""
    kind = type(value)  # usually float, for which the abstract class need not be asked
    return kind is float or (issubclass(kind, Real) and kind is not bool)


def as_doubles(record, names) -> None:
    """Store numbers of a frozen record as doubles: sums in narrower types lose small prices."""
    for name in names:
        object.__setattr__(record, name, float(getattr(record, name)))


def is_whole(value) -> bool:
    """Whether the value is a whole number of Python or numpy, but no bool."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_whole(name: str, value, least: int):
    """Check that an argument is a whole number and at least `least`.

    Raises
    ------
    ValueError
        If it is not.
    """
    if not (is_whole(value) and value >= least):
        raise ValueError(f"{name} must be a whole number, at least {least}, not {value!r}")


def check_generator(rng):
    """Check that `rng` is a numpy Generator.

    Raises
    ------
    ValueError
        If it is not.
    """
    if not isinstance(rng, np.random.Generator):
        kind = type(rng).__name__
        raise ValueError(f"rng must be a numpy Generator, not {kind}; pass default_rng(seed)")


def check_array(name: str, values, owner: str) -> np.ndarray:
    """Return `values` as an array; refuse tables with named columns, whose names would be lost.

    Raises
    ------
    ValueError
        If it is a table with named columns, or rows differ in length.
    """
    if hasattr(values, "columns"):
        kind = type(values).__name__
        raise ValueError(f"{name} must be an array, not a {kind}; use {owner}.from_pandas")
    try:
        return np.asarray(values)
    except ValueError:  # numpy finds no shape
        raise ValueError(f"the rows of {name} differ in length; give all as many entries") from None


def check_called(name, variables: Collection[str]) -> None:
    """Check that a variable has this name.

    Raises
    ------
    ValueError
        If no variable has; the message gives the nearest name.

    Examples
    --------
    >>> check_called("Smokr", ["Cancer", "Smoker"])
    Traceback (most recent call last):
    ...
    ValueError: no variable is called 'Smokr'; did you mean 'Smoker'?
    """
    if name not in variables:
        near = difflib.get_close_matches(str(name), variables, n=1) or [*variables][:9]
        raise ValueError(f"no variable is called {name!r}; did you mean {str(near)[1:-1]}?")


def check_known(argument: str, names, public) -> list:
    """Return the names in an argument; refuse names of no variable.

    Raises
    ------
    ValueError
        If a name is no variable, or the argument is no list.
    """
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise ValueError(f"{argument} must be a list of variables, not {names!r}; give a list")
    listed = list(names)
    for name in listed:
        if name not in public:
            raise ValueError(f"{argument} names {name!r}, which is no variable; correct the name")
    return listed


def check_once(names, says: str, cure: str):
    """Check that no name occurs twice.

    Raises
    ------
    ValueError
        If one does; the message has the name and the cure.
    """
    for name, times in Counter(names).items():
        if times > 1:
            raise ValueError(f"{says} {name!r} twice; {cure}")


def first_bytes(path, refusal: str) -> bytes:
    """The first four bytes of the file at `path`.

    Raises
    ------
    ValueError
        If `path` is no path (with the message `refusal`), or of no file, or of a device or a pipe.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise ValueError(refusal)
    if os.path.isdir(path):
        raise ValueError(f"{path} is a folder; give the path of a file in it")
    if not os.path.exists(path):
        raise ValueError(f"there is no file {path}; correct the path")
    if not os.path.isfile(path):
        raise ValueError(f"{path} is no ordinary file; save what it gives to one first")
    with open(path, "rb") as file:
        return file.read(4)


def check_file(path, refusal: str, *, allowed: Iterable[bytes] = ()):
    """Check that there is a file at `path`, and that its first bytes are of no other format.

    Raises
    ------
    ValueError
        If `path` is no path (with the message `refusal`), there is no such file, or it is a folder,
        compressed, a workbook, a Parquet file, or UTF-16 text, unless `allowed` has its first
        bytes.
    """
    start = first_bytes(path, refusal)
    for mark, problem in NO_TEXT.items():
        if start.startswith(mark) and mark not in allowed:
            raise ValueError(f"{path} {problem}")


def data_folder() -> Path:
    """The folder of the package's data: inside an installed package, beside it in a checkout."""
    inside = Path(__file__).resolve().parents[1] / "data"
    return inside if inside.is_dir() else inside.parents[1] / "data"
