"""The rules of the driver contract. A conformance test that fails names the broken rule, within LIMIT seconds."""

from __future__ import annotations

import functools
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

RULES = {
    1: "open connects, checks and leaves the motors off",
    2: "nothing is commanded before enable, nor after stop",
    3: "enable switches on in a mode of `modes`, and the motors hold still",
    4: "stop switches the motors off, from any state and thread, and never raises",
    5: "commands and measurements are in the joint's units, with its sign, ratio and zero",
    6: "a position is reached, a velocity is held",
    7: "read never blocks past its deadline, and returns when all drives have answered",
    8: "a measurement has the time at which it came; when feedback is late, values and time stay as they were",
    9: "without commands the drives stop by themselves, however often they are read",
    10: "a command that has expired or is not finite is not sent",
    11: "a fault is reported in words with its fix, stays until it is cleared, and prevents enable",
    12: "a drive that does not answer or is another one is refused by open, at its place in the rig",
    13: "limits beyond the drive's own are refused before enable; efforts beyond its command are clipped and counted",
    14: "spoiled data are counted, and change nothing",
    15: "a lost connection raises ConnectionLost until it is opened again; drives that were left on are taken over",
}
LIMIT = 3.5  # s
PATIENCE = 20.0  # s, beyond the duration of any action on the slowest machine


class RuleBroken(AssertionError):
    """A driver violates the contract."""


class TookTooLong(BaseException):
    """Not an Exception, so that no driver handles it as an error of its connection."""


@contextmanager
def enforced(number: int) -> Iterator[None]:
    """Failures inside are reported as this rule; inner rules take precedence."""
    try:
        yield
    except RuleBroken:
        raise
    except (Exception, TookTooLong, pytest.fail.Exception) as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise RuleBroken(f"rule {number}: {RULES[number]} ({type(error).__name__}: {why})") from error


def rule(number: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A test of a rule, with the time limit."""

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(test)
        def checked(*args: Any, **keys: Any) -> Any:
            with enforced(number), time_limit():
                return test(*args, **keys)

        checked.rule = number  # type: ignore[attr-defined]
        return checked

    return decorate


# of the running benches: what each has had of the time [s], less than has passed when the machine stalls
time_had: list[Callable[[], float]] = []


@contextmanager
def prompt(number: int) -> Iterator[None]:
    """A driver that blocks for a second inside violates this rule."""
    begun = time.monotonic()
    try:
        yield
    except TookTooLong as error:
        if time.monotonic() - begun < 1.0:
            raise
        raise RuleBroken(f"rule {number}: {RULES[number]} ({error})") from error


@contextmanager
def time_limit() -> Iterator[None]:
    """Raises TookTooLong in a test whose driver blocks; time in which the machine stalled does not count."""
    seconds = LIMIT
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    begun = time.monotonic()

    def expired(*_: object) -> None:
        if time_had and time_had[-1]() < 0.6 * seconds and time.monotonic() - begun < PATIENCE:  # the machine stalls
            signal.setitimer(signal.ITIMER_REAL, 0.5)
            return
        raise TookTooLong(f"not done within {seconds:g} s")

    with _timer(signal.ITIMER_REAL, signal.SIGALRM, seconds, expired):
        yield


@contextmanager
def processor_limit(seconds: float = PATIENCE) -> Iterator[None]:
    """Raises TookTooLong in a test that computes for so long [s]: in simulated time, a driver that polls without ever
    waiting has no end."""

    def expired(*_: object) -> None:
        raise TookTooLong(f"not done within {seconds:g} s of processor time")

    with _timer(signal.ITIMER_PROF, signal.SIGPROF, seconds, expired):
        yield


@contextmanager
def _timer(timer: signal._Itimer, number: int, seconds: float, expired: Callable[..., object]) -> Iterator[None]:
    """Calls expired after so long, by the signal of this number."""
    before = signal.signal(number, expired)
    signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        signal.setitimer(timer, 0.0)
        signal.signal(number, before)
