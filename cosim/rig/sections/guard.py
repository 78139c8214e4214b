"""The section `guard` of a rig: actions of limits, age of feedback, soft start, controlled stop, watchdog, e-stop; and
the limits of a joint. The keys of limits and actions come from the table of limits."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from cosim.control.limits import LIMITS, GuardLimit
from cosim.control.shadow import ShadowParams
from cosim.core.types import param, params
from cosim.core.units import show_time
from cosim.execution.hardware.estop import EstopParams
from cosim.mechanics.multibody.mechanism import Joint
from cosim.rig.reading.schema import Reading, read_fields
from cosim.rig.reading.yaml_source import YamlValue

WATCHDOG_STEPS = 5  # minimum of the watchdog
WATCHDOG = 0.1  # s without a tick until real motors are switched off, unless the rig sets another time
STALE_STEPS, STALE_NS = 5, 20_000_000  # default age of feedback: steps, at least ns


def _dataclass(name: str, fields: Iterable[tuple[str, Any, Any]]) -> Any:
    return dataclasses.make_dataclass(name, fields, frozen=True)


def _action_of(row: GuardLimit) -> Any:
    """The annotation of an action of this limit."""
    literal: Any = Literal
    return literal[row.actions]


_JointActionKeys = _dataclass(
    "_JointActionKeys", [(row.key, _action_of(row) | None, param(default=None)) for row in LIMITS]
)
_ActionKeys = _dataclass(
    "_ActionKeys", [(row.key, _action_of(row), param(default=row.default_action)) for row in LIMITS]
)
_LimitKeys = _dataclass(
    "_LimitKeys",
    [
        (key, float | None, param(unit=row.unit, above=0 if row.positive else None, default=None, doc=row.meaning))
        for row in LIMITS
        for key in row.bound_keys
    ],
)


@params
class JointActions(_JointActionKeys):
    """The actions of one joint's limits that differ from the rig's."""

    @property
    def given(self) -> dict[str, str]:
        """Limit -> action."""
        return {key: action for key, action in dataclasses.asdict(self).items() if action is not None}


@params
class Actions(_ActionKeys):
    """The actions of all limits in a rig."""


@params
class JointLimits(_LimitKeys):
    """The limits of a joint as given in the rig."""

    actions: JointActions = param(default=JointActions())

    def bounds(self, joint: Joint | None) -> dict[str, float]:
        """Key -> bound of the rig, else of the mechanism's joint, else infinite."""
        bounds = {}
        for row in LIMITS:
            for key, attribute in zip(row.bound_keys, row.inherited or (None,) * len(row.bound_keys), strict=True):
                default = -math.inf if key == "lower" else math.inf
                inherited = default if joint is None or attribute is None else getattr(joint, attribute)
                given = getattr(self, key)
                bounds[key] = inherited if given is None else given
        return bounds


@params
class GuardKeys:
    actions: Actions = param(default=Actions())
    stale: float | None = param(unit="s", above=0, default=None, doc="age of feedback above which a run stops")
    soft_start: float = param(unit="s", min=0, default=0.0, doc="ramp of the effort limit after arming")
    deceleration: float | None = param(
        unit="joint acceleration", above=0, default=None, doc="of controlled stops; without it all stops are immediate"
    )
    watchdog: float | None = param(
        unit="s", above=0, default=None, doc="time without a tick after which motors are switched off"
    )
    shadow: ShadowParams | None = param(default=None, doc="simulated twins of real joints")
    estop: EstopParams | None = param(default=None, doc="the emergency stop")


@dataclass(frozen=True)
class GuardSpec:
    """The checked section `guard`: what violations lead to, and how a run starts and stops. actions: of every limit;
    stale: largest age of feedback [s]; soft_start: duration [s]."""

    actions: dict[str, str]
    stale: float
    soft_start: float
    deceleration: float | None = None
    watchdog: float | None = None
    shadow: ShadowParams | None = None
    estop: EstopParams | None = None


def read_guard(data: YamlValue, step_ns: int | None, reading: Reading) -> GuardSpec:
    """The section `guard`, with defaults for wrong values. step_ns: None if unknown."""
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
    if values.get("shadow") is None and isinstance(data, dict) and data.get("shadow") is not None:
        values["shadow"] = ShadowParams()  # a mistake in it is not taken for a rig without
    more = {key: values.get(key) for key in ("deceleration", "watchdog", "shadow", "estop")}
    return GuardSpec(actions, stale_ns * 1e-9, values.get("soft_start", 0.0), **more)


def watchdog_time(guard: GuardSpec, hardware: bool, step: float) -> float | None:
    """s without a tick until the watchdog switches motors off; None for a rig that it does not monitor.

    hardware: whether there are real motors; step [s]: of the ticks."""
    if guard.watchdog is None and hardware:
        return max(WATCHDOG, WATCHDOG_STEPS * step)
    return guard.watchdog
