"""Replay: a run on one data set, answered with the noisy values of a run on another.

What a run tells may depend on the data through its mechanisms only. So a run on other data that
gets the same noisy answers has to ask the same questions, pay the same prices, and release, warn,
print and refuse the same. And at every draw the exact loss between neighbours has to stay within
what was paid for it. Nothing here is private.
"""

import contextlib
import io
import warnings
from collections.abc import Callable, Iterator
from contextvars import copy_context
from dataclasses import is_dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dpcgd.privacy import budget, mechanisms, run
from dpcgd.privacy.events import Event, GaussianEvent
from dpcgd_book.attacks.audit import Recorder, Step, kind_paid

__all__ = ["Divergence", "Draw", "replay", "worst"]


class Divergence(AssertionError):
    """Two runs that got the same noisy answers did something different."""


class Draw(NamedTuple):
    """One draw of noise in both runs.

    Attributes
    ----------
    mechanism : str
        As in the ledger.
    loss : float
        Of privacy, between the two data sets.
    price : float
        What was paid for; in the units of the loss.
    """

    mechanism: str
    loss: float
    price: float


class _Replayed(Recorder):
    """A recorder that answers as an earlier run was answered, and refuses any other step."""

    def __init__(self, account, noise, steps: list[Step]):
        super().__init__(account, noise)
        self._earlier = iter(steps)

    def _note(self, kind, draw, scale, about):
        earlier = next(self._earlier, None)
        if earlier is None:
            raise Divergence(f"one run ends, the other goes on with {kind}")
        step = Step(kind, about, scale, earlier.answer)
        if (before := _public(earlier)) != (now := _public(step)):
            raise Divergence(f"one run has {before}, the other {now}")
        draw(about)  # what is not private afterwards may use the same seed
        self.steps.append(step)
        return step.answer


def _public(step: Step) -> str:
    """What has to follow from public facts and from earlier answers."""
    if step.kind in ("spend", "choose"):
        return f"{step.kind} {step.about}"
    return f"{step.kind} noise of scale {step.scale!r} on shape {np.shape(step.about)}"


def replay(system: Callable[[Any], Any], data: Any, *others: Any) -> list[Draw]:
    """Run a system on data sets with the same noisy answers, and compare with the first run.

    Parameters
    ----------
    system : callable
        From a data set to a release; each call has to start from the same seed.
    data
        What the noisy answers are about.
    *others
        Data sets with the same public facts. Losses are within prices for neighbours of `data`.
        Sub-samples are of the same records.

    Returns
    -------
    list of Draw
        Of `data` and each of the others in turn.

    Raises
    ------
    Divergence
        If the runs pay or draw differently, release, warn of, print or raise anything different,
        seconds aside, draw noise that nobody paid for, or break off once something was paid.
    Exception
        That with which all of them are refused alike.

    Examples
    --------
    >>> from dpcgd import Dataset, laplace_pc
    >>> levels = {"x": ["no", "yes"], "y": ["no", "yes"]}
    >>> crowd = [[1, 1]] * 99
    >>> pair = [Dataset([first, *crowd], levels) for first in ([0, 0], [1, 1])]
    >>> def system(data):
    ...     rng = np.random.default_rng(0)
    ...     return laplace_pc(data, epsilon=1.0, delta=1e-3, max_order=0, rng=rng)
    >>> (draw,) = replay(system, *pair)
    >>> draw.mechanism, round(draw.loss / draw.price, 6)
    ('Laplace', 1.0)
    """
    first = _watched(system, data, Recorder)
    draws: list[Draw] = []
    for other in others:
        second = _watched(system, other, partial(_Replayed, steps=first.steps))
        if not second.refused and len(second.steps) < len(first.steps):
            raise Divergence("one run goes on, the other ends")
        if difference := _told_apart(first, second):
            raise Divergence(f"the runs differ in {difference}")
        draws += _draws(first.steps, second.steps)
    if first.refused:
        raise first.refused
    return draws


class _Watched(NamedTuple):
    """All that whoever started a run gets to see, and its steps."""

    release: Any
    refused: Exception | None
    warned: list[tuple[str, str]]
    printed: str
    steps: list[Step]


def _watched(system, data, record: Callable[..., Recorder]) -> _Watched:
    """A run with its account, its noise and its outputs watched."""
    recorders: list[Recorder] = []
    release, error, printed, context = None, None, io.StringIO(), copy_context()

    def observed(opened):
        recorders.append(record(opened.account, opened.noise))
        return replace(opened, account=recorders[0], noise=recorders[0])

    context.run(run.OBSERVER.set, observed)
    with (
        warnings.catch_warnings(record=True, action="always") as warned,
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
    ):
        try:
            release = context.run(system, data)
        except Divergence:
            raise
        except Exception as raised:
            error = raised
    steps = recorders[0].steps if recorders else []
    if error and any(step.kind == "spend" for step in steps):
        raise Divergence(f"a run breaks off once it has paid: {error!r}") from error
    said = [(warning.category.__name__, str(warning.message)) for warning in warned]
    return _Watched(release, error, said, printed.getvalue(), steps)


def _told_apart(first: _Watched, second: _Watched) -> str | None:
    """By what whoever sees two runs can tell them apart; seconds aside."""
    for name in ("refused", "warned", "printed"):
        here, there = repr(getattr(first, name)), repr(getattr(second, name))
        if here != there:
            return f"what is {name}: {here}, {there}"
    if first.refused:
        return None
    fields, others = vars(first.release), vars(second.release)
    for name in {**fields, **others}:
        in_both = name in fields and name in others
        if name != "seconds" and not (in_both and _equal(fields[name], others[name], set())):
            return f"the release: {name}"
        if isinstance(fields.get(name), dict) and [*fields[name]] != [*others[name]]:
            return f"the order of {name}"
    return None


def _equal(value: Any, other: Any, seen: set[int]) -> bool:
    if isinstance(value, np.ndarray):
        return np.array_equal(value, other)
    if isinstance(value, tuple | list):
        pairs = zip(value, other, strict=False)
        return len(value) == len(other) and all(_equal(*pair, seen) for pair in pairs)
    if isinstance(value, dict):
        same_keys = value.keys() == other.keys()
        return same_keys and all(_equal(value[key], other[key], seen) for key in value)
    # objects of this package are compared by what they hold, however they compare themselves
    ours = is_dataclass(value) or type(value).__module__.startswith("dpcgd.")
    if hasattr(value, "__dict__") and (ours or type(value).__eq__ is object.__eq__):
        if id(value) in seen:  # objects may hold each other
            return True
        seen.add(id(value))
        return type(value) is type(other) and _equal(vars(value), vars(other), seen)
    return bool(value == other)


def _draws(steps: list[Step], others: list[Step]) -> Iterator[Draw]:
    """Each draw of two runs beside the payment that covers it."""
    events: list[Event] = []
    rate = 1.0
    for step, other in zip(steps, others, strict=True):
        if step.kind == "spend":
            events, rate = list(step.about), 1.0
        elif step.kind == "choose":  # a sample drawn for an earlier payment amplifies nothing
            rate = step.about[1] / step.about[0]
        else:
            if not events or kind_paid(events[0]) != step.kind:
                raise Divergence(f"nobody paid for {step}")
            event = events[0]
            if event.mechanism != "above threshold":  # one payment for many draws
                events = events[1:]
            moved = np.asarray(other.about, float) - np.asarray(step.about, float)
            distance = _distance(step.kind, moved)
            loss = distance / step.scale if step.scale else np.inf if distance else 0.0
            yield Draw(event.mechanism, loss, _price(event, rate) * (1 + budget.ROOM))


def _distance(kind: str, moved: np.ndarray) -> float:
    """How far an answer moved, in the norm of its noise."""
    if kind == "Gumbel":
        return float(np.ptp(moved))
    if kind == "exponential":
        return 2 * float(np.abs(moved).max())
    return float(np.abs(moved).sum() if kind == "Laplace" else np.linalg.norm(moved))


def _price(event: Event, rate: float) -> float:
    """The loss that an event pays for."""
    if isinstance(event, GaussianEvent):
        return 1 / event.noise_multiplier
    if event.mechanism == "above threshold":
        return mechanisms.before_amplification(event.epsilon, rate) / 4
    return event.epsilon


def worst(draws: list[Draw]) -> float:
    """The largest loss over its price; 0 without a draw.

    Tested releases are left out: their price covers the loss except with probability delta.
    """
    ratios = (d.loss / d.price for d in draws if d.mechanism != "tested release")
    return max(ratios, default=0.0)
