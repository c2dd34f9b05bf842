"""Mothers in the 1980 census of the United States: a real table with people in it."""

from pathlib import Path

import pandas as pd

from dpcgd.datasets.arguments import data_folder

__all__ = ["load_mothers", "mothers_schema"]


def load_mothers() -> pd.DataFrame:
    """Load the table *Fertility*: 254,654 mothers of two children or more, in the 1980 census.

    Returns
    -------
    pandas.DataFrame
        A row for each mother. ``gender1``, ``gender2``: of her first two children. ``morekids``:
        whether she has more. ``age``: 21 to 35. ``afam``, ``hispanic``, ``other``: whether she is
        African American, Hispanic, of another group than these and white. ``work``: weeks worked
        in 1979, 0 to 52. The order of the rows is lost.

    Notes
    -----
    Married women with two children or more, from the public sample of the census, as Angrist and
    Evans (1998) selected them and the R package AER has them. Nothing in it is secret.

    Examples
    --------
    >>> mothers = load_mothers()
    >>> len(mothers), round(float(mothers.age.mean()), 2)
    (254654, 30.39)
    """
    counted = pd.read_csv(data_folder() / "fertility" / "mothers.csv.gz")
    return counted.loc[counted.index.repeat(counted.pop("mothers"))].reset_index(drop=True)


def mothers_schema() -> Path:
    """The file of the table's schema.

    Returns
    -------
    pathlib.Path
        Ages in groups of five years, and weeks by groups that the census printed, with no work a
        level of its own: public edges, none from the records.

    Examples
    --------
    >>> from dpcgd.datasets.schema import Schema
    >>> Schema.of(mothers_schema()).levels["work"]
    ('0 to 1', '1 to 27', '27 to 50', '50 to 52')
    """
    return data_folder() / "fertility" / "schema.json"
