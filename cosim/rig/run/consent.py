"""Consent to the motion of real motors: to a plan that is known, and still holds when they are switched on."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from cosim.execution import rest
from cosim.execution.motion_plan import MotionPlan
from cosim.execution.scheduler import Scheduler

LOOK_PAUSE = 0.1  # s between two looks at joints that are off
LONGEST_WAIT = 10.0  # s for joints that move


class Consent:
    """Consent to a plan by decide(plan, which joint has moved since the plan before, or ""): whether
    `MotionPlan.confirm_turns` is agreed to; raises InputError where the motion is refused.

    in_advance: whether it was given before there was a plan, on the command line: nobody compares then where joints
    stand."""

    in_advance = False

    def __init__(self, decide: Callable[[MotionPlan, str], bool]) -> None:
        self._decide = decide

    def __call__(self, plan: MotionPlan, moved: str) -> bool:
        return self._decide(plan, moved)

    def note(self, line: str) -> None:
        """A line for humans, before a wait."""


class RunQuestion:
    """Asks before each of several runs by ask(lines), which raises InputError where a run is refused. in_advance: see
    `Consent`."""

    in_advance = False

    def __init__(self, ask: Callable[[Sequence[str]], object]) -> None:
        self._ask = ask

    def begin(self, lines: Sequence[str]) -> None:
        """What would move, before anything is connected."""
        self(lines)

    def __call__(self, lines: Sequence[str]) -> None:
        self._ask(lines)

    def note(self, line: str) -> None:
        """A line for humans, before a wait."""


# one of a kind, or a function that decides or asks
GivenConsent = Consent | Callable[[MotionPlan, str], bool]
GivenQuestion = RunQuestion | Callable[[Sequence[str]], object]


class Agreement(NamedTuple):
    """What a user has agreed to before motors are switched on. plan: that was confirmed, None where nobody was asked;
    allow_turns: see `Scheduler.arm`."""

    plan: MotionPlan | None = None
    allow_turns: bool = False


def asking(given: GivenQuestion, lines: Sequence[str]) -> Consent:
    """Consent by a question: to these lines, before anything is connected, then to the plan; nobody can confirm
    turns."""
    question = given if isinstance(given, RunQuestion) else RunQuestion(given)
    question.begin(lines)
    return _Asking(question)


class _Asking(Consent):
    """Consent by a question, see `asking`."""

    def __init__(self, question: RunQuestion) -> None:
        super().__init__(self._confirmed)
        self._question, self.in_advance = question, question.in_advance

    def _confirmed(self, plan: MotionPlan, moved: str) -> bool:
        self._question([*([moved] if moved else []), *(f"  {line}" for line in plan.lines())])
        return False

    def note(self, line: str) -> None:
        self._question.note(line)


def agree(scheduler: Scheduler, ticks: int, given: GivenConsent | None, allow_turns: bool) -> Agreement:
    """Ask for consent to a run of so many ticks, motors off; again as long as joints are moved meanwhile. given: None
    where nobody is asked.

    Raises what consent raises, and RunError for a joint that could not start."""
    if given is None:
        return Agreement(None, allow_turns)
    consent = given if isinstance(given, Consent) else Consent(given)
    wait_for_rest(scheduler, consent.note)
    plan, moved = scheduler.plan(ticks), ""
    while True:
        allowed = consent(plan, moved) or allow_turns
        if consent.in_advance:  # `arm` decides by where the joints stand then
            return Agreement(None, allowed)
        later = scheduler.plan(ticks)
        if not (moved := plan.moved(later)):
            return Agreement(plan, allowed)
        plan = later


def wait_for_rest(scheduler: Scheduler, note: Callable[[str], object]) -> None:
    """Wait for joints that still move, motors off, as after a stop: their motion can be confirmed when they rest. Not
    for longer than LONGEST_WAIT: joints that still move then are the matter of `agree` and `arm`. note: gets a line for
    humans before a wait."""

    def mover(before: MotionPlan, now: MotionPlan) -> str:
        return "" if (one := before.mover(now)) is None else one.joint

    def moves(name: str) -> None:
        note(f"joint '{name}' moves, motors off; waiting until it rests, for {LONGEST_WAIT:g} s at most")

    rest.wait_for_rest(scheduler.standing, mover, time.sleep, LOOK_PAUSE, LONGEST_WAIT, quick=True, moves=moves)
