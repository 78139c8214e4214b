"""Consent to the motion of real motors: to a plan that is known, and still holds when they are switched on."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from cosim.execution.motion_plan import MotionPlan
from cosim.execution.scheduler import Scheduler

# (plan, which joint has moved since the plan before, or "") -> whether `MotionPlan.confirm_turns` is agreed to;
# raises InputError where it is refused
Consent = Callable[[MotionPlan, str], bool]

PAUSE = 0.1  # s between two looks at joints that are off
LOOKS = 8  # without motion after which a joint rests: one that swings stands at its turning points
MOST_LOOKS = 100  # at joints that move


class Agreement(NamedTuple):
    """plan: that was confirmed, None where nobody was asked; allow_turns: see `Scheduler.arm`."""

    plan: MotionPlan | None = None
    allow_turns: bool = False


def asking(ask: Callable[[Sequence[str]], object], lines: Sequence[str]) -> Consent:
    """Consent by ask(lines), which raises InputError where it is refused: to these lines, before anything is connected,
    then to the plan; nobody can confirm turns. Where `ask` has a method `begin`, that gets the first lines."""
    getattr(ask, "begin", ask)(lines)
    return _Asking(ask)


class _Asking:
    """Consent by `ask`, see `asking`."""

    def __init__(self, ask: Callable[[Sequence[str]], object]) -> None:
        self._ask, self.in_advance = ask, is_in_advance(ask)
        self.note = getattr(ask, "note", _silent)

    def __call__(self, plan: MotionPlan, moved: str) -> bool:
        self._ask([*([moved] if moved else []), *(f"  {line}" for line in plan.lines())])
        return False


def _silent(line: str) -> None:
    """A line for humans that nobody reads."""


def is_in_advance(consent: object) -> bool:
    """Whether it was given before there was a plan, on the command line: nobody compares then where joints stand."""
    return getattr(consent, "in_advance", False)


def agree(scheduler: Scheduler, ticks: int, consent: Consent | None, allow_turns: bool) -> Agreement:
    """Ask for consent to a run of so many ticks, motors off; again as long as joints are moved meanwhile.

    Raises what `consent` raises, and RunError for a joint that could not start."""
    if consent is None:
        return Agreement(None, allow_turns)
    wait_for_rest(scheduler, getattr(consent, "note", _silent))
    plan, moved = scheduler.plan(ticks), ""
    while True:
        allowed = consent(plan, moved) or allow_turns
        if is_in_advance(consent):  # `arm` decides by where the joints stand then
            return Agreement(None, allowed)
        later = scheduler.plan(ticks)
        if not (moved := plan.moved(later)):
            return Agreement(plan, allowed)
        plan = later


def wait_for_rest(scheduler: Scheduler, note: Callable[[str], object] = _silent) -> None:
    """Wait for joints that still move, motors off, as after a stop: their motion can be confirmed when they rest.
    Not for longer than MOST_LOOKS looks: joints that still move then are the matter of `agree` and `arm`. note: gets a
    line for humans before a wait."""
    before, still, noted = scheduler.standing(), LOOKS - 1, False  # one look is enough for joints that rest already
    for _ in range(MOST_LOOKS):
        time.sleep(PAUSE)
        now = scheduler.standing()
        if (mover := before.mover(now)) is not None:
            before, still = now, 0
            if not noted:
                longest = PAUSE * MOST_LOOKS
                note(f"joint '{mover.joint}' moves, motors off; waiting until it rests, for {longest:g} s at most")
                noted = True
        elif (still := still + 1) >= LOOKS:
            return
