"""What a user can do with a run now, in the words of its buttons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

START, PAUSE, RESUME, STEP, STOP, ARM = "Start", "Pause", "Resume", "Step", "Stop", "Arm the motors"
ARM_TURNS = "Arm and confirm turns"
AGAIN, PREPARE = "Start again", "Connect again"
TAKE, TAKE_OVER, RELEASE = "Take control", "Take it over", "Release control"

# button -> command of the control socket
COMMANDS: Mapping[str, str] = {
    START: "start",
    PAUSE: "pause",
    RESUME: "resume",
    STEP: "step",
    STOP: "stop",
    ARM: "arm",
    ARM_TURNS: "arm",
    TAKE: "take",
    TAKE_OVER: "take",
    RELEASE: "release",
}

# state -> buttons for the client that holds control
SIMULATED: Mapping[str, tuple[str, ...]] = {
    "waiting": (START, STOP),
    "running": (PAUSE, STOP),
    "paused": (RESUME, STEP, STOP),
}
REAL: Mapping[str, tuple[str, ...]] = {
    "waiting": (ARM, STOP),
    "armed": (START, STOP),
    "running": (STOP,),
}
OVER = ("ended", "failed", "gone")


class Situation(NamedTuple):
    """What the page knows of a run. state: of the run; real: it moves motors; own: this page starts it; controlled: its
    control socket answers; mine: control is held here; owner: who else holds it; socket: the run has a control socket,
    as far as is known; turns: of a joint, which are to be confirmed by their own button, see
    `MotionPlan.confirm_turns`."""

    state: str
    real: bool
    own: bool
    controlled: bool
    mine: bool
    owner: str = ""
    socket: bool = False
    turns: bool = False


def run_buttons(now: Situation) -> tuple[str, ...]:
    if now.own and now.state in OVER:
        return (PREPARE if now.real else AGAIN,)
    if not (now.controlled and now.mine):
        return ()
    if now.real and now.turns and now.state == "waiting":
        return (ARM_TURNS, STOP)
    return (REAL if now.real else SIMULATED).get(now.state, ())


def control_buttons(now: Situation) -> tuple[str, ...]:
    if not now.controlled or now.state in OVER:
        return ()
    return (RELEASE,) if now.mine else (TAKE_OVER,) if now.owner else (TAKE,)


def tunable(now: Situation) -> bool:
    """Whether gains can be chosen, for a run under control here or for the next one."""
    return now.mine or (now.own and now.state in OVER)


def control_line(now: Situation) -> str:
    """Who holds control, and what follows."""
    if now.state == "starting":
        return "The rig is loaded and compiled."
    if now.own and now.state in OVER:
        return "The next run has the gains that are chosen here."
    if now.state in OVER:
        return "The page goes on with the next run at this address."
    if now.socket and not now.controlled:
        return "The control socket of the run does not answer."
    if not now.controlled:
        return "Watching only: the run has no control socket (cosim run … --control)."
    if now.owner:
        return f"Watching only: {now.owner} has control."
    if not now.mine:
        return "Watching only: nobody has control."
    if now.state == "waiting" and now.real:
        return "You have control. The motors are off; arm them before the start."
    return "You have control."
