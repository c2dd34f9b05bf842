"""A receipt checked by whoever reads it: every part against the others, and against the promise."""

import json
import os
from collections.abc import Iterable, Iterator
from typing import Any, cast

import numpy as np

from dpcgd.datasets.schema import Schema
from dpcgd.graphs.check_ledger import Checked, check_ledger
from dpcgd.graphs.receipt import content_of, read_receipt
from dpcgd.graphs.release import Release
from dpcgd.privacy.budget import BudgetSpent
from dpcgd.privacy.doubles import kept_for_rounding
from dpcgd.privacy.filters import BasicFilter, Filter, GaussianFilter, PureFilter
from dpcgd.reading.release import MarginalRelease, read_release
from dpcgd.tables.paid_noise import check_noise

__all__ = ["check_receipt"]

THEOREMS = {
    "curate_pc": ("thm-curate-filter",),
    "dag_posterior": ("thm-whole-table",),
    "em_pc": ("thm-em-pc",),
    "gram_notears": ("thm-gram-notears", "thm-second-moments"),
    "laplace_pc": ("thm-laplace", "thm-filter"),
    "graph_from_moments": ("thm-learned-pc",),
    "noleaks": ("thm-noleaks",),
    "priv_pc": ("thm-priv-pc",),
    "svt_pc": ("thm-above-threshold", "thm-filter"),
    "table_pc": ("thm-table-pc",),
}
"""Every run of a system rests on these, whatever it measured."""

MEASURE = ("dag_posterior", "graph_from_moments", "table_pc")
"""These systems release moments."""

ACCOUNTS = (Filter, GaussianFilter, PureFilter, BasicFilter)
"""A proved run is paid by one of them."""

ROUNDING = 1e-6
"""Two machines may differ by this share of what was used, for conversions differ in last digits."""


def check_receipt(path: str | os.PathLike) -> Checked:
    """Verify that a receipt is what was written, and that its parts agree with each other.

    The ledger is added up with dp-accounting. The noise of every released number is compared with
    the sensitivity that follows from public levels and with the noise multiplier that was paid
    for. Words, theorems, levels and rules are made anew from what they follow from.

    Parameters
    ----------
    path : path
        Of what :meth:`~dpcgd.graphs.release.Release.save` wrote.

    Returns
    -------
    Checked
        What :func:`~dpcgd.graphs.check_ledger.check_ledger` finds, and which figures are whose.

    Raises
    ------
    ValueError
        If the file is not what was written, promises nothing, its ledger exceeds the promise, or
        one part of it contradicts another. The digest in the file is no signature: it shows
        accidents and edits by hand, and whoever edits all parts with care can make a new one.
    ImportError
        If dp-accounting is not installed.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from dpcgd import load, private_graph
    >>> data = load("survey", rng=np.random.default_rng(0))
    >>> release = private_graph(data, epsilon=1.0, rng=np.random.default_rng(1))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     release.save(f"{folder}/receipt.json")
    ...     checked = check_receipt(f"{folder}/receipt.json")
    >>> checked.epsilon <= 1.0, checked.recomputed[0], checked.ours
    (True, 'prices of Laplace', ('sensitivities',))
    """
    release = read_release(path)
    try:
        checked = check_ledger(release.ledger)
        check_noise(release)
        _check_account(release)
        _check_terms(release)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    made = json.loads(json.dumps(content_of(release, release.pair_status())))
    for part in _differences(made, read_receipt(path)):
        raise ValueError(f"{path}: {part} does not follow from the rest of the receipt")
    return checked


def _check_account(result: Release) -> None:
    """Pay for the ledger once more, from an account of the same kind."""
    ledger, kinds = result.ledger, cast("Iterable[Any]", ACCOUNTS)
    for kind in kinds:
        account = kind(ledger.budget)
        account.keep(kept_for_rounding(result.terms.n))
        whole = account.ledger.whole if result.guarantee == "proved" else ""
        if (account.ledger.accountant, whole) == (ledger.accountant, ledger.whole):
            break
    else:
        raise ValueError(f"no account keeps to {ledger.accountant!r} and {ledger.whole!r}")
    try:
        account.spend(*ledger.events)
    except (BudgetSpent, TypeError) as error:
        raise ValueError(f"the ledger is more than its account pays for: {error}") from None
    paid, said = account.ledger.spent, ledger.spent
    if not np.allclose(paid, said, rtol=ROUNDING, atol=0):
        raise ValueError(f"{said} is said to have been used, and the ledger comes to {paid}")


def _differences(one: Any, other: Any, part: str = "") -> Iterator[str]:
    """Where two contents differ."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        for key in one:
            yield from _differences(one[key], other[key], f"{part}.{key}" if part else key)
    elif one != other:
        yield part or "its list of parts"


def _check_terms(result: Release) -> None:
    terms = result.terms
    if tuple(terms.domain) != result.graph.variables:
        raise ValueError("the graph has other variables than the domain")
    if isinstance(result, MarginalRelease) is not (terms.system in MEASURE):
        raise ValueError(f"{terms.system} gives no {type(result).__name__}")
    if terms.noise == "secure" and "opendp" not in terms.versions:
        raise ValueError("its noise is said to be secure, and it names no version of OpenDP")
    if _domain(terms.rules) != {name: tuple(levels) for name, levels in terms.domain.items()}:
        raise ValueError("the rules of the schema make other levels than the domain")
    wanted = sorted(_theorems(result))
    if terms.system in THEOREMS and sorted(terms.theorems) != wanted:
        raise ValueError(f"it names the theorems {sorted(terms.theorems)}, and rests on {wanted}")


def _domain(rules) -> dict[str, tuple]:
    """The levels or ranges that rules make."""
    real = {name: tuple(rule["range"]) for name, rule in rules.items() if "range" in rule}
    coded = {name: rule for name, rule in rules.items() if "range" not in rule}
    return real or Schema(coded).levels


def _theorems(result) -> set[str]:
    """Of what ran, by what was released and set; none where the guarantee is only claimed."""
    terms = result.terms
    if result.guarantee != "proved":
        return set()
    wanted = set(THEOREMS.get(terms.system, ()))
    if terms.rows_per_person > 1:
        wanted.add("thm-rows-per-person")
    if terms.settings.get("rate", 1) != 1:
        wanted.add("thm-subsampling")
    if "choose" in terms.settings:
        wanted.add(f"thm-{terms.settings['choose'].replace('_', '-')}")
    if terms.system in ("graph_from_moments", "table_pc"):
        triples = "thm-interactions" if terms.system == "table_pc" else "thm-triples"
        wanted |= set(result.marginals.theorems(triples))
        if result.joined_levels:
            wanted.add("thm-joined-levels")
    return wanted
