"""Replay: a run on one data set, answered with the noisy values of a run on another.

What a run releases may depend on the data through its mechanisms only. So a run on other data that
gets the same noisy answers has to ask the same questions, pay the same prices and release the same.
And at every draw the exact loss between neighbours has to stay within what was paid for it. Nothing
here is private.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np

from dpcgd.privacy.account import Account
from dpcgd.privacy.doubles import ROOM
from dpcgd.privacy.events import Event, GaussianEvent
from dpcgd.privacy.mechanisms import before_amplification
from dpcgd.privacy.noise import Noise
from dpcgd.privacy.run import Run

__all__ = ["Divergence", "Draw", "replay", "worst"]

SLACK = 1e-7
"""Statistics are computed in doubles: a loss may exceed its price by this part of it."""


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


@dataclass
class _Step:
    """A payment, or a draw: its kind, what it was about, how wide, and the answer."""

    kind: str
    about: Any
    scale: float = 0.0
    answer: Any = None
    other: Any = None


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

    def laplace(self, value, scale):
        """`value` plus Laplace noise."""
        return self._note("laplace", value, scale, lambda: self._noise.laplace(value, scale))

    def gaussian(self, value, scale):
        """`value` plus Gaussian noise."""
        return self._note("gaussian", value, scale, lambda: self._noise.gaussian(value, scale))

    def gumbel_max(self, scores, scale):
        """Where `scores` plus Gumbel noise are largest."""
        return self._note("gumbel", scores, scale, lambda: self._noise.gumbel_max(scores, scale))

    def exponential_max(self, scores, scale):
        """Where `scores` plus exponential noise are largest."""
        draw = self._noise.exponential_max
        return self._note("exponential", scores, scale, lambda: draw(scores, scale))

    def choose(self, n, m):
        """m distinct numbers below n."""
        return self._note("choose", (n, m), 0.0, lambda: self._noise.choose(n, m))

    def _note(self, kind, about, scale, draw):
        self.steps.append(_Step(kind, about, scale, draw()))
        return self.steps[-1].answer


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
        if not same or (kind in ("spend", "choose") and about != step.about):
            raise Divergence(f"{kind} {about} of scale {scale:g} in one run, {step} in the other")
        draw()  # what is not private afterwards may use the same seed
        step.other = about
        self.steps.append(step)
        return step.answer


def replay(system: Callable[[Any], Any], data: Any, other: Any, *, rate: float = 1.0) -> list[Draw]:
    """Run a system on two data sets with the same noisy answers, and compare.

    Parameters
    ----------
    system : callable
        From a data set to a release; each call has to start from the same seed.
    data, other
        With the same public facts. Losses are within prices if they are neighbours.
    rate : float
        Of sub-samples, which are the same in both runs.

    Returns
    -------
    list of Draw

    Raises
    ------
    Divergence
        If the runs pay or draw differently, release anything different, seconds aside, or draw
        noise that nobody paid for.

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
    first, steps = _watched(system, data, _Both)
    again, _ = _watched(system, other, lambda account, noise: _Again(account, noise, steps))
    if len([step for step in steps if step.other is not None]) < len(steps):
        raise Divergence("one run goes on, the other ends")
    if difference := _difference(first, again):
        raise Divergence(f"the releases differ in {difference}")
    return list(_draws(steps, rate))


def _watched(system, data, watch) -> tuple[Any, list[_Step]]:
    """A run with its account and noise watched."""
    seen: list[_Both] = []

    def opened(account, noise, *rest):
        seen.append(watch(account, noise))
        return Run(seen[0], seen[0], *rest)

    with mock.patch("dpcgd.privacy.run.Run", opened):
        release = system(data)
    return release, seen[0].steps


def _difference(first: Any, second: Any) -> str | None:
    """The first field in which two releases differ, seconds aside."""
    for name, value in vars(first).items():
        if name != "seconds" and not _equal(value, getattr(second, name)):
            return name
    return None


def _equal(one: Any, two: Any) -> bool:
    if isinstance(one, np.ndarray):
        return np.array_equal(one, two)
    if isinstance(one, tuple | list):
        return len(one) == len(two) and all(map(_equal, one, two))
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(_equal(one[key], two[key]) for key in one)
    if type(one).__eq__ is object.__eq__ and hasattr(one, "__dict__"):
        return type(one) is type(two) and _equal(vars(one), vars(two))
    return bool(one == two)


def _draws(steps: list[_Step], rate: float) -> Iterator[Draw]:
    """Each draw beside the payment that covers it."""
    events: list[Event] = []
    for step in steps:
        if step.kind == "spend":
            events = list(step.about)
        elif step.kind != "choose":
            if not events:
                raise Divergence(f"nobody paid for {step.kind} noise of scale {step.scale:g}")
            event = events[0]
            if event.mechanism != "above threshold":  # one payment for many draws
                events = events[1:]
            yield _draw(step, event, rate)


def _draw(step: _Step, event: Event, rate: float) -> Draw:
    moved = np.asarray(step.other, float) - np.asarray(step.about, float)
    if isinstance(event, GaussianEvent):
        loss, price = float(np.linalg.norm(moved)) / step.scale, 1 / event.noise_multiplier
    elif step.kind == "gumbel":
        loss, price = float(np.ptp(moved)) / step.scale, event.epsilon
    elif step.kind == "exponential":
        loss, price = 2 * float(np.abs(moved).max()) / step.scale, event.epsilon
    elif event.mechanism == "above threshold":
        loss, price = abs(float(moved)) / step.scale, before_amplification(event.epsilon, rate) / 4
    else:
        loss, price = abs(float(moved)) / step.scale, event.epsilon
    return Draw(event.mechanism, loss, price * (1 + SLACK + ROOM))


def worst(draws: list[Draw]) -> float:
    """The largest loss over its price; 0 without a draw."""
    return max((draw.loss / draw.price for draw in draws), default=0.0)
