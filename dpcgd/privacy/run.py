"""Opening and closing a run: what all systems share."""

import inspect
import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import Any, ParamSpec, Required, TypedDict, TypeVar, get_args, get_type_hints

import numpy as np

from dpcgd.privacy.account import Account, NoPrivacy
from dpcgd.privacy.account_file import ReservedEpsilon
from dpcgd.privacy.budget import Budget, delta_for
from dpcgd.privacy.doubles import kept_for_rounding
from dpcgd.privacy.filters import Filter
from dpcgd.privacy.noise import noise_source
from dpcgd.privacy.settings import check_data, check_settings
from dpcgd.privacy.terms import Terms, public_domain, public_rules, told

__all__ = ["Run", "RunKeywords", "open_run", "run_without_privacy", "takes_keywords"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


class RunKeywords(TypedDict, total=False):
    """The keywords that every private system takes and passes on to :func:`open_run`."""

    epsilon: Required[float]
    delta: float | None
    allow_delta: bool
    rng: np.random.Generator | None
    secure: bool
    rows_per_person: int


OBSERVER: ContextVar[Callable[["Run"], "Run"] | None] = ContextVar("observer", default=None)
"""An attack on made-up data may stand in for the account and the noise of the runs in its own
context. Nothing in this package sets it, and no argument, file or environment reaches it."""


@dataclass(frozen=True)
class Run:
    """An open run.

    Attributes
    ----------
    account : Account
        Pays for every mechanism.
    noise : Noise or None
        None where nothing is private.
    guarantee : str
        "proved", "claimed, not proved", or "none".
    terms : Terms
        What was fixed beforehand.
    started : float
    """

    account: Any
    noise: Any
    guarantee: str
    terms: Terms
    started: float

    @property
    def secure(self) -> bool:
        """Whether the noise has no seed."""
        return self.terms.noise == "secure"

    def receipt(self, *theorems: str) -> dict[str, Any]:
        """What every release holds beside its result: ledger, guarantee, seconds, terms.

        The time depends on the data and no mechanism covers it, so a secure run leaves it out.

        Parameters
        ----------
        *theorems : str
            Labels of those that prove the guarantee beside the ones known when the run was opened:
            what has been released decided that they are needed.
        """
        seconds = None if self.secure else time.perf_counter() - self.started
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
    coded: bool = True,
    records: bool = False,
    rows_per_person: int = 1,
    by: tuple[str, ...] = ("",),
    **settings: Any,
) -> Run:
    """Open a run; all that public facts can refuse is refused here, before anything is spent.

    Parameters
    ----------
    data : Dataset, Counts or Measurements
        Only its public facts are looked at.
    epsilon : float
        Of more than half a million records, a part is kept for rounding. One that an account
        file reserved pays once: the run is entered there before it spends anything.
    delta : float, optional
    allow_delta : bool
        As for :func:`~dpcgd.privacy.budget.delta_for`.
    rng : numpy.random.Generator
        Seeded noise, for experiments; secure noise unless given.
    secure : bool
        Refuses a seed.
    account : callable
        From the budget to the account that pays.
    coded : bool
        Whether the system needs levels.
    records : bool
        Whether it needs records at hand, such as for sub-samples, and not only counts.
    rows_per_person : int
        Rows that one person may have; the budget is a person's.
    by : tuple of str
        For the receipt: who runs, and the labels of the theorems that prove its guarantee, as far
        as public facts say which; see :meth:`Run.receipt`.
    settings
        By name, those of :func:`~dpcgd.privacy.settings.check_settings`. A statistic without a
        proof takes the run's guarantee.

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
    The account is for all rows of a person together. Chapter 18,
    :prf:ref:`thm-rows-per-person`.
    """
    started = time.perf_counter()
    check_data(data, coded=coded, records=records)
    check_settings(data, rows_per_person=rows_per_person, **settings)
    proved = _is_proved(settings)
    budget = Budget(epsilon, delta_for(data.n, delta, allow_delta), rows_per_person)
    budget = replace(budget, epsilon=float(epsilon))
    noise = noise_source(rng, secure)
    pays: Any = account(budget)
    if share := kept_for_rounding(data.n):
        pays.keep(share)
    if rows_per_person > 1 and pays.guarantee != "proved":
        raise ValueError(
            f"{type(pays).__name__} enforces no budget, and rows_per_person needs that; "
            "take a Filter as the account"
        )
    guarantee = pays.guarantee if proved else "claimed, not proved"
    system, *theorems = by
    terms = Terms(
        noise="secure" if rng is None else "seeded",
        n=data.n,
        domain=public_domain(data),
        system=system,
        theorems=tuple(theorems) if guarantee == "proved" else (),
        rows_per_person=int(rows_per_person),
        settings=told(settings),
        rules=public_rules(data),
        account_entry=epsilon.entry if isinstance(epsilon, ReservedEpsilon) else "",
    )
    if isinstance(epsilon, ReservedEpsilon):
        if guarantee != "proved":
            raise ValueError("an account pays for proved runs, and this one's guarantee is claimed")
        if (protects := settings.get("protects", "everyone")) != "everyone":
            raise ValueError(f"an account protects everyone, and this run the {protects} only")
        pays.before_spending = partial(
            epsilon.account.redeem,
            epsilon.entry,
            budget,
            system=system,
            domain=terms.digest,
            divergence=pays.divergence,
        )
    run = Run(pays, noise, guarantee, terms, started)
    observe = OBSERVER.get()
    return observe(run) if observe else run


def takes_keywords(system: Callable[_P, _R]) -> Callable[_P, _R]:
    """Spell out the shared keywords of a system: ``help`` shows them, and any other is refused.

    Parameters
    ----------
    system : callable
        Its last parameter is ``**shared: Unpack[...]`` of :class:`RunKeywords`, or of a dictionary
        that adds to them.

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
    own, known = inspect.signature(system), inspect.signature(open_run).parameters
    *first, shared = own.parameters.values()
    (keywords,) = get_args(shared.annotation)
    spelled = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=known[name].default if name in known else None,
            annotation=kind,
        )
        for name, kind in get_type_hints(keywords).items()
    ]
    signature = own.replace(parameters=[*first, *spelled])

    @wraps(system)
    def called(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{system.__name__}() {error}") from None
        return system(*args, **kwargs)

    called.__signature__ = signature  # type: ignore[attr-defined]
    return called


def _is_proved(settings: dict[str, Any]) -> bool:
    """Whether all sensitivities are theorems; those of the package's scores are."""
    others = [settings.get(name) for name in ("score", "ridge")]
    if any(other is not None and not _is_ours(other) for other in others):
        return False
    statistic = settings.get("statistic")
    if statistic is None:
        return True
    if not hasattr(statistic, "sensitivity"):
        raise ValueError(
            f"{statistic!r} has no sensitivity(n, levels), and a private run needs it; take one "
            "such as KendallZ()"
        )
    return statistic.proved


def _is_ours(part: Any) -> bool:
    """Whether it is of a class of this package, whose bounds are proved in the book."""
    return type(part).__module__.partition(".")[0] == __name__.partition(".")[0]


def run_without_privacy(data: Any, *, coded: bool = True, **settings: Any) -> Run:
    """Open a run that promises nothing; settings are checked as for :func:`open_run`."""
    started = time.perf_counter()
    check_data(data, coded=coded)
    check_settings(data, **settings)
    terms = Terms(
        "none", data.n, public_domain(data), settings=told(settings), rules=public_rules(data)
    )
    return Run(NoPrivacy(), None, NoPrivacy.guarantee, terms, started)
