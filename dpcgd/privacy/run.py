"""Opening and closing a run: the checks of all systems, their public terms, and their receipt."""

import importlib.metadata
import inspect
import math
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, is_dataclass, replace
from functools import cache, partial, wraps
from typing import Any, ParamSpec, Required, TypedDict, TypeVar, get_args, get_type_hints

import numpy as np

from dpcgd.datasets.arguments import is_real, is_whole, refuses_weights
from dpcgd.datasets.dataset import check_records, check_values
from dpcgd.datasets.variable import Parts, check_variables
from dpcgd.privacy.account_file import ReservedEpsilon
from dpcgd.privacy.budget import LEAST, MOST, Budget, delta_for, kept_for_rounding
from dpcgd.privacy.filters import Account, Filter, NoPrivacy
from dpcgd.privacy.noise import noise_source
from dpcgd.privacy.sealed_file import digest_of

__all__ = ["Run", "RunKeywords", "Terms", "open_run", "run_without_privacy", "takes_keywords"]
__all__ += ["check_data", "check_settings", "domain_of"]

_P = ParamSpec("_P")
_R = TypeVar("_R")

# --- what is fixed before a run: all of it is public, and goes with the release

Domain = Mapping[str, tuple]
"""The levels of each variable, or the ends of its range."""

PACKAGES = ("dpcgd", "numpy", "opendp")
"""Packages whose versions a release records."""

KINDS = {
    "secure": "release",
    "seeded": "experiment, not a release",
    "none": "no privacy, not a release",
}


@cache
def versions() -> dict[str, str]:
    """The versions of Python and of the installed packages that a release depends on."""
    installed = {"python": platform.python_version()}
    for name in PACKAGES:
        with suppress(importlib.metadata.PackageNotFoundError):
            installed[name] = importlib.metadata.version(name)
    return installed


@dataclass(frozen=True)
class Terms:
    """The public terms of a run, fixed before it. No record influences them, so they cost nothing.

    Attributes
    ----------
    noise : str
        "secure", "seeded" (whoever knows the seed knows the noise), or "none".
    n : int
        Records.
    domain : mapping
        The levels of each variable, or the ends of its range.
    system : str
        Name of the system that ran.
    theorems : tuple of str
        Labels of the theorems that prove the guarantee of this run; empty if it is only claimed.
    rows_per_person : int
    settings : mapping
        The settings of the run, by name. Values that are neither numbers nor knowledge are text.
    rules : mapping
        The schema of each variable: levels, edges or a range, the rules for values outside and for
        missing values, and whether levels have an order.
    versions : mapping
        The versions of Python and of the packages that ran.
    account_entry : str
        The entry of the reservation that paid, in an account file; empty without one.

    Examples
    --------
    >>> Terms("seeded", 100, {"x": ("no", "yes"), "y": ("no", "yes")}).kind
    'experiment, not a release'
    """

    noise: str
    n: int
    domain: Domain
    system: str = ""
    theorems: tuple[str, ...] = ()
    rows_per_person: int = 1
    settings: Mapping[str, Any] = field(default_factory=dict)
    rules: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=versions)
    account_entry: str = ""

    @property
    def kind(self) -> str:
        """Whether this is a release, or an experiment that must not be published as one."""
        return KINDS[self.noise]

    @property
    def source(self) -> str:
        """The source of the noise, in words."""
        if self.noise == "secure":
            return f"OpenDP {self.versions.get('opendp')}, randomness of the operating system"
        return {"seeded": f"numpy {self.versions.get('numpy')}, a seed", "none": "none"}[self.noise]

    @property
    def digest(self) -> str:
        """SHA-256 digest of the domain."""
        return digest_of([[name, list(levels)] for name, levels in self.domain.items()])


def _stored(value: Any) -> Any:
    """A setting in the form that a release stores."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str | bool | int | float) or hasattr(value, "arrays"):  # knowledge
        return value
    if is_real(value):
        return float(value)
    if is_dataclass(value):
        return repr(value)
    return getattr(value, "__name__", type(value).__name__)


# --- what a run refuses, before anything is spent


def check_data(data: Any, *, numbers: bool, records: bool = False) -> None:
    """Refuse an object that is no data set, or a data set that the system does not accept.

    Parameters
    ----------
    data : Dataset or Counts
    numbers : bool
        Whether the system accepts numbers with a range, and not only categories.
    records : bool
        Whether the system needs the records, and not only counts. If it also accepts numbers, it
        needs the numbers of each record.

    Raises
    ------
    ValueError
        With advice on how to make a usable data set.
    """
    if isinstance(data, type) or not hasattr(data, "cardinalities"):
        cure = "make one with read_csv(path, schema) or Dataset.from_pandas(frame, levels)"
        raise ValueError(f"data must be a data set, not a {type(data).__name__}; {cure}")
    check_variables(data.levels)
    if type(data.n) is not int:
        raise ValueError(f"n, the number of records, is no int of Python: {data.n!r}; use int(n)")
    if records:
        check_records(data, "this system")
    if data.numbers and not numbers:
        problem = f"{data.numbers[0]!r} is a number, and this system takes categories"
        cure = "cut numbers into bins, with data.binned(5), or edges in place of the range"
        raise ValueError(f"{problem}; {cure}")
    if records and numbers:
        check_values(data)


BELOW_ONE, ABOVE_ZERO = math.nextafter(1, 0), math.nextafter(0, 1)
MOST_TESTS = 1e50
"""The most tests that a budget may be split over; with more, each test would get almost nothing."""

NUMBERS = {
    "alpha": (LEAST, BELOW_ONE, "a significance level above 0 and below 1"),
    "bins": (2, 1024, "a whole number, at least 2 and at most 1024"),
    "clip": (1e-100, 1e100, "above 0, from 1e-100 to 1e100"),
    "l1": (0, MOST, "finite and not negative"),
    "least_effect": (0, BELOW_ONE, "at least 0 and below 1"),
    "least_share": (0, BELOW_ONE, "at least 0 and below 1"),
    "margin": (-MOST, MOST, "a finite number of noise scales"),
    "max_order": (0, math.inf, "a whole number, at least 0"),
    "planned_tests": (1, MOST_TESTS, f"at least 1 and at most {MOST_TESTS:g}"),
    "rate": (ABOVE_ZERO, 1, "above 0 and at most 1"),
    "row_norm": (1e-100, 1e100, "above 0, from 1e-100 to 1e100"),
    "steps": (1, math.inf, "a whole number, at least 1"),
    "threshold": (0, MOST, "finite and not negative"),
}
"""Settings that are numbers: the least and the largest value, and the rule in words."""

WHOLE_NUMBERS = ("bins", "max_order", "steps")
"""Settings among these that are whole numbers."""

PARTS = {
    "knowledge": ("Knowledge(forbidden=[...], required=[...])", "arrays"),
    "ridge": ("Ridge()", "fit", "change"),
    "schedule": ("dpcgd.score.schedules.uniform", "__call__"),
    "score": ("Hsic()", "value", "release"),
    "statistic": ("KendallZ()", "value", "critical"),
}
"""Settings that are parts of a system: an example, and the attributes that each needs."""

CHECKED_BEFORE = ("aim", "choose", "precision", "protects", "untested")
"""Settings that a system checks itself, before it spends."""


def check_settings(data: Any, **settings: Any) -> None:
    """Refuse unusable settings, by name; None stands for the default and is never refused.

    Raises
    ------
    ValueError
        For the first unusable setting.

    Examples
    --------
    >>> check_settings(None, max_order=2, margin=1.0)
    >>> check_settings(None, max_order=1.5)
    Traceback (most recent call last):
    ...
    ValueError: max_order must be a whole number, at least 0, not 1.5
    """
    for name, value in settings.items():
        if value is None or name in CHECKED_BEFORE:
            continue
        if name in NUMBERS:
            least, most, rule = NUMBERS[name]
            is_kind = is_whole if name in WHOLE_NUMBERS else is_real
            usable = is_kind(value) and least <= value <= most
        elif name == "standardized":
            rule, usable = "True or False", isinstance(value, bool)
        else:
            example, *attributes = PARTS[name]
            rule = f"one such as {example}"
            usable = not isinstance(value, type) and all(hasattr(value, a) for a in attributes)
        if not usable:
            raise ValueError(f"{name} must be {rule}, not {value!r}")
    if hasattr(settings.get("statistic"), "sensitivity"):
        moves = settings["statistic"].sensitivity(10**6, (2, 2))  # of this test as of any other
        if not (is_real(moves) and 0 <= moves <= MOST):
            raise ValueError(f"sensitivities are finite numbers, 0 or more, not {moves!r}")
    if settings.get("knowledge") is not None:
        settings["knowledge"].arrays(data.variables)  # refuses names that are not there


# --- the run


class RunKeywords(TypedDict, total=False):
    """The keywords that every private system takes and passes on to :func:`open_run`."""

    epsilon: Required[float]
    delta: float | None
    allow_delta: bool
    rng: np.random.Generator | None
    secure: bool
    rows_per_person: int


DEFAULTS = {"margin": 1.0, "max_order": 3}
"""Default settings of a search that pays for each test."""

OBSERVER: ContextVar[Callable[["Run"], "Run"] | None] = ContextVar("observer", default=None)
"""A replacement for account and noise, which an attack on simulated data may set in its own
context. Nothing in this package sets it, and no argument, file or environment variable does."""


@dataclass(frozen=True)
class Run:
    """An open run.

    Attributes
    ----------
    account : Account
        The account that pays for every mechanism.
    noise : Noise or None
        None if nothing is private.
    guarantee : str
        "proved", "claimed, not proved", or "none".
    terms : Terms
        The public terms of the run.
    started : float
    """

    account: Any
    noise: Any
    guarantee: str
    terms: Terms
    started: float

    def receipt(self, *theorems: str) -> dict[str, Any]:
        """The fields that every release holds beside its result: ledger, guarantee, seconds, terms.

        The time depends on the data, and no mechanism covers it; so a secure run leaves it out.

        Parameters
        ----------
        *theorems : str
            Labels of further theorems that prove the guarantee: those that are needed because of
            earlier releases of this run.
        """
        seconds = None if self.terms.noise == "secure" else time.perf_counter() - self.started
        persons = ("thm-rows-per-person",) if self.terms.rows_per_person > 1 else ()
        named = (*self.terms.theorems, *theorems, *persons)
        proved = named if self.guarantee == "proved" else ()
        ledger = self.account.ledger
        return {
            "ledger": ledger if self.guarantee == "proved" else replace(ledger, whole=""),
            "guarantee": self.guarantee,
            "seconds": seconds,
            "terms": replace(self.terms, theorems=proved),
        }


def open_run(
    data: Any,
    *,
    epsilon: float,
    delta: float | None = None,
    allow_delta: bool = False,
    rng: np.random.Generator | None = None,
    secure: bool = False,
    account: Callable[[Budget], Account] = Filter,
    numbers: bool = False,
    records: bool = False,
    rows_per_person: int = 1,
    by: tuple[str, ...] = ("",),
    **settings: Any,
) -> Run:
    """Open a run; refuse unusable data and settings by public facts, before anything is spent.

    Parameters
    ----------
    data : Dataset or Counts
        Only its public facts are used.
    epsilon : float
        With more than half a million records, a part is kept for rounding. An epsilon that an
        account file reserved pays once: the run is entered there before it spends anything.
    delta : float, optional
    allow_delta : bool
        As for :func:`~dpcgd.privacy.budget.delta_for`.
    rng : numpy.random.Generator
        Seeded noise, for experiments; secure noise unless given.
    secure : bool
        Refuses a seed.
    account : callable
        Function from the budget to the account that pays.
    numbers : bool
        Whether the system accepts numbers, and not only categories.
    records : bool
        Whether the system needs the records, as for sub-samples, and not only counts.
    rows_per_person : int
        Rows that one person may have; the budget is for all rows of a person.
    by : tuple of str
        For the receipt: the name of the system, and the labels of the theorems that prove its
        guarantee, as far as public facts decide which; see :meth:`Run.receipt`.
    settings
        Settings by name, as for :func:`~dpcgd.privacy.run.check_settings`. With a statistic without
        a proof the run's guarantee is only claimed.

    Returns
    -------
    Run

    Raises
    ------
    ValueError
        If the data, the budget, the noise source or a setting is unusable, or delta is not below
        1/n and that is not allowed.
    ImportError
        If the noise is to be secure and OpenDP is not installed.

    Privacy
    -------
    The account protects all rows of a person together. Chapter 18, :prf:ref:`thm-rows-per-person`.
    """
    started = time.perf_counter()
    terms = _terms(data, settings, numbers, records, "secure" if rng is None else "seeded")
    proved = _is_proved(settings)
    budget = Budget(epsilon, delta_for(data.n, delta, allow_delta), rows_per_person)
    if rows_per_person > max(data.n, 1):
        raise ValueError(f"rows_per_person must be at most {data.n}, the number of records")
    noise = noise_source(rng, secure)
    pays: Any = account(budget)
    pays.keep(kept_for_rounding(data.n))
    if rows_per_person > 1 and pays.guarantee != "proved":
        raise ValueError(f"{type(pays).__name__} enforces no budget of persons; take a Filter")
    guarantee = pays.guarantee if proved else "claimed, not proved"
    system, *theorems = by
    terms = replace(
        terms,
        system=system,
        theorems=tuple(theorems),  # a receipt names them if the run is proved
        rows_per_person=budget.rows_per_person,
        account_entry=epsilon.entry if isinstance(epsilon, ReservedEpsilon) else "",
    )
    if isinstance(epsilon, ReservedEpsilon):
        if guarantee != "proved":
            raise ValueError("an account pays for proved runs, and this run's guarantee is claimed")
        if (protects := settings.get("protects", "everyone")) != "everyone":
            raise ValueError(f"an account protects everyone, and this run the {protects} only")
        promise = budget, system, terms.digest, pays.divergence
        pays.before_spending = partial(epsilon.account.redeem, epsilon, *promise)
    run = Run(pays, noise, guarantee, terms, started)
    observe = OBSERVER.get()
    return observe(run) if observe else run


def takes_keywords(system: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorator for a system's shared keywords: ``help`` shows them, and unknown ones are refused.

    Parameters
    ----------
    system : callable
        Its last parameter is ``**shared: Unpack[...]`` of :class:`RunKeywords` or of a subclass.

    Examples
    --------
    >>> from typing import Unpack
    >>> @takes_keywords
    ... def my_system(data, *, margin: float = 1.0, **shared: Unpack[RunKeywords]):
    ...     return open_run(data, margin=margin, **shared)
    >>> my_system([], epsilon=1.0, marginn=2.0)
    Traceback (most recent call last):
    ...
    TypeError: my_system() got an unexpected keyword argument 'marginn'
    """
    own, opened = (inspect.signature(function) for function in (system, open_run))
    usual = DEFAULTS | {name: known.default for name, known in opened.parameters.items()}
    *first, shared = own.parameters.values()
    (keywords,) = get_args(shared.annotation)
    keyword = partial(inspect.Parameter, kind=inspect.Parameter.KEYWORD_ONLY)
    kinds = get_type_hints(keywords).items()
    spelled = [keyword(name, default=usual.get(name), annotation=kind) for name, kind in kinds]
    signature = own.replace(parameters=[*first, *spelled])

    @wraps(system)
    def called(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{system.__name__}() {error}") from None
        for name, value in kwargs.items():
            if isinstance(value, np.generic):  # narrow numbers round, or overflow, in a price
                kwargs[name] = value.item()
        return system(*args, **kwargs)

    called.__signature__ = signature  # type: ignore[attr-defined]
    return refuses_weights(called)


def _terms(data: Any, settings: dict, numbers: bool, records: bool, noise: str) -> Terms:
    """Refuse unusable data and settings, and return the public facts about them."""
    check_data(data, numbers=numbers, records=records)
    check_settings(data, **settings)
    domain = domain_of(data.levels)
    shown = {name: _stored(value) for name, value in settings.items() if value is not None}
    return Terms(noise, data.n, domain, settings=shown, rules=data.rules)


def domain_of(levels: Mapping[str, Sequence[str]]) -> dict[str, tuple]:
    """The levels of each variable, or the ends of the range of a number."""
    return {
        name: (own.low, own.high) if isinstance(own, Parts) else tuple(own)
        for name, own in levels.items()
    }


def _is_proved(settings: dict[str, Any]) -> bool:
    """Whether all sensitivities are theorems; for the package's own statistics they are.

    A class of somebody else that inherits from these has other values; it says `proved` itself.
    """
    parts = [settings.get(name) for name in ("score", "ridge")]
    are_ours = all(part is None or type(part).__module__.startswith("dpcgd.") for part in parts)
    statistic = settings.get("statistic")
    if statistic is None:
        return are_ours
    if not hasattr(statistic, "sensitivity"):
        needs = "sensitivity(n, levels), which a private run needs"
        raise ValueError(f"{statistic!r} has no {needs}; take one such as KendallZ()")
    kind = type(statistic)
    is_said = kind.__module__.startswith("dpcgd.") or "proved" in {*vars(kind), *vars(statistic)}
    return are_ours and is_said and statistic.proved


def run_without_privacy(
    data: Any, *, numbers: bool = False, records: bool = False, **settings: Any
) -> Run:
    """Open a run without any guarantee; settings are checked as for :func:`open_run`."""
    started = time.perf_counter()
    terms = _terms(data, settings, numbers, records, "none")
    return Run(NoPrivacy(), None, NoPrivacy.guarantee, terms, started)
