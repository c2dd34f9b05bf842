"""Replay: a run on one data set, answered with the noisy values of a run on another.

What a run tells may depend on the data through its mechanisms only. So a run on other data that
gets the same noisy answers has to ask the same questions, pay the same prices, and release, warn,
print and refuse the same. And at every draw the exact loss between neighbours has to stay within
what was paid for it. Nothing here is private.
"""

import contextlib
import io
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, is_dataclass
from typing import Any
from unittest import mock

import numpy as np

from dpcgd.privacy.account import Account
from dpcgd.privacy.doubles import ROOM
from dpcgd.privacy.events import (
    ApproximateEvent,
    BoundedRangeEvent,
    Event,
    GaussianEvent,
    PureEvent,
)
from dpcgd.privacy.mechanisms import before_amplification
from dpcgd.privacy.noise import Noise
from dpcgd.privacy.run import Run
from dpcgd.privacy.scales import gaussian_scale, laplace_scale, selection_scale

__all__ = ["Divergence", "Draw", "replay", "worst"]

PAID_BY: dict[str, type | tuple[type, ...]] = {
    "laplace": (PureEvent, ApproximateEvent),
    "gaussian": GaussianEvent,
    "gumbel": BoundedRangeEvent,
    "exponential": PureEvent,
}
"""What an account has to be told of each kind of noise."""


KNOWN = ("spend", "choose")
"""Steps that follow from what is public and from earlier answers."""


class Divergence(AssertionError):
    """Two runs that got the same noisy answers did something different."""


@dataclass(frozen=True)
class Draw:
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


@dataclass(frozen=True)
class _Step:
    """A payment, or a draw: its kind, what it was about, how wide, and the answer."""

    kind: str
    about: Any
    scale: float
    answer: Any

    def __str__(self):
        if self.kind in KNOWN:
            return f"{self.kind} {self.about}"
        return f"{self.kind} noise of scale {self.scale:g} on shape {np.shape(self.about)}"


class _Both:
    """Account and noise in one, which notes every step of a run."""

    def __init__(self, account: Account, noise: Noise):
        self._account, self._noise = account, noise
        self.steps: list[_Step] = []

    def __getattr__(self, name):
        return getattr(self._account, name)

    def spend(self, *events: Event) -> None:
        """Pay, and note it."""
        self._account.spend(*events)
        self._note("spend", events, 0.0, lambda: None)

    def laplace(self, sensitivity, event):
        """Laplace noise."""
        scale = laplace_scale(sensitivity, event)
        return self._noted("laplace", scale, self._noise.laplace(sensitivity, event))

    def gaussian(self, sensitivity, event):
        """Gaussian noise."""
        scale = gaussian_scale(sensitivity, event)
        return self._noted("gaussian", scale, self._noise.gaussian(sensitivity, event))

    def gumbel_max(self, sensitivity, event):
        """Where scores plus Gumbel noise are largest."""
        scale = selection_scale(sensitivity, event)
        return self._noted("gumbel", scale, self._noise.gumbel_max(sensitivity, event))

    def exponential_max(self, sensitivity, event):
        """Where scores plus exponential noise are largest."""
        scale = selection_scale(sensitivity, event)
        return self._noted("exponential", scale, self._noise.exponential_max(sensitivity, event))

    def _noted(self, kind, scale, draw):
        return lambda value: self._note(kind, value, scale, lambda: draw(value))

    def choose(self, n, m):
        """m distinct numbers below n."""
        return self._note("choose", (n, m), 0.0, lambda: self._noise.choose(n, m))

    def _note(self, kind, about, scale, draw):
        self.steps.append(_Step(kind, about, scale, draw()))
        return self.steps[-1].answer

    def check_ended(self) -> None:
        """Refuse to end before the run that is replayed."""


class _Again(_Both):
    """The same, answering as an earlier run was answered; it refuses to do anything else."""

    def __init__(self, account: Account, noise: Noise, steps: list[_Step]):
        super().__init__(account, noise)
        self._known = iter(steps)

    def _note(self, kind, about, scale, draw):
        step = next(self._known, None)
        if step is None:
            raise Divergence(f"one run ends, the other goes on with {kind}")
        same = (kind, scale, np.shape(about)) == (step.kind, step.scale, np.shape(step.about))
        if not same or (kind in KNOWN and about != step.about):
            now, before = _Step(kind, about, scale, None), step
            raise Divergence(f"one run has {before}, the other {now}")
        draw()  # what is not private afterwards may use the same seed
        self.steps.append(_Step(kind, about, scale, step.answer))
        return step.answer

    def check_ended(self) -> None:
        if next(self._known, None):
            raise Divergence("one run goes on, the other ends")


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
    >>> how = {"epsilon": 1.0, "delta": 1e-3, "max_order": 0}
    >>> (draw,) = replay(
    ...     lambda data: laplace_pc(data, rng=np.random.default_rng(0), **how), *pair
    ... )
    >>> draw.mechanism, round(draw.loss / draw.price, 6)
    ('Laplace', 1.0)
    """
    first = _watched(system, data, _Both)
    found: list[Draw] = []
    for other in others:
        again = _watched(system, other, lambda account, noise: _Again(account, noise, first.steps))
        if difference := _told_apart(first, again):
            raise Divergence(f"the runs differ in {difference}")
        found += _draws(first.steps, again.steps)
    if first.error:
        raise first.error
    return found


@dataclass(frozen=True)
class _Watched:
    """All that whoever started a run gets to see, and its steps."""

    release: Any
    warned: list[tuple[str, str]]
    printed: str
    error: Exception | None
    steps: list[_Step]


def _watched(system, data, watch) -> _Watched:
    """A run with its account, its noise and its outputs watched."""
    seen: list[_Both] = []
    release, error, printed = None, None, io.StringIO()

    def opened(account, noise, *rest):
        seen.append(watch(account, noise))
        return Run(seen[0], seen[0], *rest)

    with (
        mock.patch("dpcgd.privacy.run.Run", opened),
        warnings.catch_warnings(record=True) as warned,
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
    ):
        warnings.simplefilter("always")
        try:
            release = system(data)
        except Divergence:
            raise
        except Exception as found:
            error = found
    steps = seen[0].steps if seen else []
    if error and any(step.kind == "spend" for step in steps):
        raise Divergence(f"a run breaks off once it has paid: {error!r}") from error
    if not error:
        seen[0].check_ended()
    said = [(of.category.__name__, str(of.message)) for of in warned]
    return _Watched(release, said, printed.getvalue(), error, steps)


def _told_apart(first: _Watched, second: _Watched) -> str | None:
    """By what whoever sees two runs can tell them apart."""
    if repr(first.error) != repr(second.error):
        return f"what they refuse: {first.error!r}, {second.error!r}"
    for name in ("warned", "printed"):
        if (one := getattr(first, name)) != (two := getattr(second, name)):
            return f"what is {name}: {one!r}, {two!r}"
    if first.error:
        return None
    one, two = vars(first.release), vars(second.release)
    order = (of for of, value in one.items() if isinstance(value, dict) and of in two)
    moved = (f"the order of {of}" for of in order if [*one[of]] != [*two[of]])
    return _difference(first.release, second.release) or next(moved, None)


def _difference(first: Any, second: Any) -> str | None:
    """The first field in which two releases differ, seconds aside."""
    one, two = vars(first), vars(second)
    for name in dict.fromkeys([*one, *two]):
        held = name in one and name in two
        if name != "seconds" and not (held and _equal(one[name], two[name], set())):
            return f"the release: {name}"
    return None


def _equal(one: Any, two: Any, seen: set[int]) -> bool:
    if isinstance(one, np.ndarray):
        return np.array_equal(one, two)
    if isinstance(one, tuple | list):
        pairs = zip(one, two, strict=False)
        return len(one) == len(two) and all(_equal(*pair, seen) for pair in pairs)
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(_equal(one[k], two[k], seen) for k in one)
    ours = is_dataclass(one) or type(one).__module__.startswith("dpcgd.")  # however they compare
    if hasattr(one, "__dict__") and (ours or type(one).__eq__ is object.__eq__):
        if id(one) in seen:  # objects may hold each other
            return True
        seen.add(id(one))
        return type(one) is type(two) and _equal(vars(one), vars(two), seen)
    return bool(one == two)


def _draws(steps: list[_Step], others: list[_Step]) -> Iterator[Draw]:
    """Each draw of two runs beside the payment that covers it."""
    events: list[Event] = []
    rate = 1.0
    for step, other in zip(steps, others, strict=True):
        if step.kind == "spend":
            events, rate = list(step.about), 1.0
        elif step.kind == "choose":  # a sample drawn for an earlier payment amplifies nothing
            rate = step.about[1] / step.about[0]
        else:
            if not (events and isinstance(events[0], PAID_BY[step.kind])):
                raise Divergence(f"nobody paid for {step.kind} noise of scale {step.scale:g}")
            event = events[0]
            if event.mechanism != "above threshold":  # one payment for many draws
                events = events[1:]
            moved = np.asarray(other.about, float) - np.asarray(step.about, float)
            distance, price = _distance(step.kind, moved), _price(event, rate)
            yield Draw(event.mechanism, _over(distance, step.scale), price * (1 + ROOM))


def _distance(kind: str, moved: np.ndarray) -> float:
    if kind == "gumbel":
        return float(np.ptp(moved))
    if kind == "exponential":
        return 2 * float(np.abs(moved).max())
    if kind == "laplace":
        return float(np.abs(moved).sum())
    return float(np.linalg.norm(moved))


def _price(event: Event, rate: float) -> float:
    if isinstance(event, GaussianEvent):
        return 1 / event.noise_multiplier
    if event.mechanism == "above threshold":
        return before_amplification(event.epsilon, rate) / 4
    return event.epsilon


def _over(distance: float, scale: float) -> float:
    """What never moves needs no noise."""
    if scale == 0:
        return math.inf if distance else 0.0
    return distance / scale


def worst(draws: list[Draw]) -> float:
    """The largest loss over its price; 0 without a draw.

    Tested releases are left out: their price covers the loss only but for a delta.
    """
    always = (draw for draw in draws if draw.mechanism != "tested release")
    return max((draw.loss / draw.price for draw in always), default=0.0)
