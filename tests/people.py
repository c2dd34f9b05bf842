"""What the tests of tables of people share: short tables, and refusals in one line."""

import json

import numpy as np
import pandas as pd
import pytest

from dpcgd import Dataset, read_csv, read_release
from dpcgd.privacy.sealed_file import digest_of

BIT = ["0", "1"]
LEVELS = {"a": BIT, "b": BIT}


def levels_of(sizes):
    """Variables with so many levels."""
    return {f"v{i}": [str(k) for k in range(size)] for i, size in enumerate(sizes)}


def drawn(rng, sizes, n):
    """Random records of variables with so many levels."""
    return Dataset(np.column_stack([rng.integers(k, size=n) for k in sizes]), levels_of(sizes))


def frame_of(data):
    """The values of a data set."""
    columns = zip(data.levels.items(), data.codes.T, strict=True)
    return pd.DataFrame({name: np.array(levels)[codes] for (name, levels), codes in columns})


def csv_of(folder, text, schema=LEVELS, **settings):
    """The codes of a file with this text."""
    (folder / "clinic.csv").write_bytes(text.encode(errors="surrogateescape"))
    return read_csv(folder / "clinic.csv", schema, **settings).codes.tolist()


def cases(by_cure):
    """What is refused and its cure, a pair for each, from every cure to all that it is for."""
    return [(value, cure) for cure, values in by_cure.items() for value in values]


def refused(cure, call, *given, kind=ValueError, **settings):
    """Whether a call is refused in one line that names the cure."""
    with pytest.raises(kind, match=cure) as error:
        call(*given, **settings)
    assert "\n" not in str(error.value)


def read_back(release, path):
    """A release as its receipt has it, which is written there."""
    release.save(path)
    return read_release(path)


def resealed(path, change=lambda content: None):
    """A receipt that somebody edited who can make a new seal."""
    content = json.loads(path.read_text())
    change(content)
    content.pop("sha256")
    path.write_text(json.dumps({**content, "sha256": digest_of(content)}))
    return path
