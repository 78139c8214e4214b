"""The guard of a rig: what each kind of limit does, how old feedback may be, how efforts come up."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

from cosim.hardware.estop import EstopParams
from cosim.rig.reading.schema import Reading, read_fields
from cosim.rig.sections.schedule import show_time
from cosim.types import param, params

Action = Literal["warn", "saturate", "stop"]

# unless the rig says how old feedback may be: steps, and the least time [ns]
WATCHDOG_STEPS = 5  # least time of the watchdog
STALE_STEPS, STALE_NS = 5, 20_000_000


@params
class JointActions:
    """What the limits of one joint do, where that is another than in the rest of the rig."""

    position: Action | None = param(default=None)
    velocity: Action | None = param(default=None)
    effort: Action | None = param(default=None)
    rate: Action | None = param(default=None)
    temperature: Action | None = param(default=None)
    power: Action | None = param(default=None)
    tracking: Action | None = param(default=None)

    @property
    def given(self) -> dict[str, str]:
        """Kind -> action."""
        return {kind: action for kind, action in dataclasses.asdict(self).items() if action is not None}


@params
class Actions:
    position: Action = param(default="stop")
    velocity: Action = param(default="stop")
    effort: Action = param(default="saturate")
    rate: Action = param(default="saturate")
    temperature: Action = param(default="stop")
    power: Action = param(default="saturate")
    tracking: Action = param(default="stop")


@params
class GuardKeys:
    actions: Actions = param(default=Actions())
    stale: float | None = param(unit="s", above=0, default=None, doc="age of feedback that stops a run")
    soft_start: float = param(unit="s", min=0, default=0.0, doc="in which efforts come up after arming")
    deceleration: float | None = param(
        unit="joint acceleration", above=0, default=None, doc="with which a stop that can wait brings joints to rest"
    )
    watchdog: float | None = param(
        unit="s", above=0, default=None, doc="time without a tick after which motors are off"
    )
    estop: EstopParams | None = param(default=None, doc="the emergency stop")


@dataclass(frozen=True)
class GuardSpec:
    """actions: of every kind of limit; stale: the greatest age of feedback [s]; soft_start: time [s]."""

    actions: dict[str, str]
    stale: float
    soft_start: float
    deceleration: float | None = None
    watchdog: float | None = None
    estop: EstopParams | None = None


def read_guard(data: Any, step_ns: int | None, reading: Reading) -> GuardSpec:
    """The section `guard`; what is wrong in it has its default. step_ns: None when it is not known."""
    at = ("guard",)
    values = read_fields(GuardKeys, data, at, reading)
    stale_ns = float(max(STALE_STEPS * (step_ns or 0), STALE_NS))
    if values.get("stale") is not None:
        stale_ns = values["stale"] * 1e9
        if step_ns is not None and stale_ns < step_ns:
            what = f"must be at least one step ({show_time(step_ns)}), is {show_time(stale_ns)}"
            reading.fail((*at, "stale"), what)
    actions = dataclasses.asdict(values.get("actions") or Actions())
    watchdog = values.get("watchdog")
    if watchdog is not None and step_ns is not None and watchdog * 1e9 < WATCHDOG_STEPS * step_ns:
        what = f"must be at least {WATCHDOG_STEPS} steps ({show_time(WATCHDOG_STEPS * step_ns)})"
        reading.fail((*at, "watchdog"), f"{what}, is {show_time(watchdog * 1e9)}")
    more = {key: values.get(key) for key in ("deceleration", "watchdog", "estop")}
    return GuardSpec(actions, stale_ns * 1e-9, values.get("soft_start", 0.0), **more)
