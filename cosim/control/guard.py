"""The last check between controllers and drives: limits, fresh feedback, finiteness. Pure, small, on every tick.

A limit warns, saturates or stops. All that saturates ends in one cut of the `effort` of a command, beside a commanded
position held within its bounds. The same function runs in machine code and in the Python loop; limits and actions are
known when it is traced, so what is not configured is not in the machine code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cosim import ops
from cosim.types import Array, FaultCode, Limits, requested_effort

WARN, SATURATE, STOP = "warn", "saturate", "stop"
# by weight: where several stop a joint, the last of them is told; a kind's verdict is its place in here, from 1 on.
# Those that may wait until joints rest come first, so that none of them hides one that may not
KINDS = ("effort", "rate", "power", "temperature", "position", "tracking", "velocity")
FINE, EFFORT, RATE, POWER, TEMPERATURE, POSITION, TRACKING, VELOCITY, STALE, NOT_FINITE = tuple(FaultCode)[:10]
BITS = {kind: 2.0**k for k, kind in enumerate(KINDS)}  # of a mask of kinds

LARGEST = 1.7976931348623157e308  # the largest finite double
# where efforts are cut, what gains ask for is as good as infinite beyond this [N*m or N]: its rounding would be felt
SANE = 1e12
# below the limit of temperature by this [K] the limit of effort begins to fall
DERATING = 10.0
# a speed [rad/s or m/s] below which power limits effort as if it was this
SLOW = 1e-9


@dataclass(frozen=True)
class Guard:
    """What is held of n joints, (n,) each, infinite where unbounded.

    rate: of the effort [per s]; power: |requested effort · measured velocity| [W]; tracking: |reference − measured
    position|; temperature [°C]; stale: age of feedback [s]; actions: of every kind; soft_start: time [s] in which the
    limit of effort goes up from 0 after arming; step: of ticks [s].

    A limit of effort that saturates must be there where a temperature saturates or a soft start is asked for.
    """

    limits: Limits
    rate: Array
    power: Array
    tracking: Array
    temperature: Array
    stale: Array
    actions: Mapping[str, Array]
    soft_start: float
    step: float

    def bound(self, kind: str) -> Array:
        """(n,) the limit of a kind; of the position the smaller of upper and −lower."""
        return np.minimum(self.limits.upper, -self.limits.lower) if kind == "position" else self._value(kind)

    def _value(self, kind: str) -> Array:
        return getattr(self.limits if kind in ("effort", "velocity") else self, kind)

    def does(self, action: str, kind: str) -> Array:
        """(n,) truth values: where a limit of this kind is set and does this."""
        return np.isfinite(self.bound(kind)) & (self.actions[kind] == action)

    def tells(self, kind: str) -> Array:
        """(n,) where being beyond the limit is told and the run goes on."""
        return self.does(WARN, kind) | self.does(SATURATE, kind)

    @property
    def spans(self) -> Array:
        """(n,) where a limit bounds the effort."""
        kinds = ("effort", "power", "velocity", "position")
        return np.any([self.does(SATURATE, kind) for kind in kinds], axis=0)


def is_finite(x: Any) -> Any:
    """Whether each element is a number and not infinite."""
    return ops.absolute(x) <= LARGEST


def check(held: Guard, seen: Mapping[str, Any], command: Mapping[str, Any]) -> tuple[dict[str, Any], Any, Any]:
    """(command, verdicts, warned): the command cut so that what the drives are asked for stays within the limits that
    saturate, (n,) verdicts, FINE or the reason to stop, and (n,) masks of the kinds that were warned of or saturated.

    seen: (n,) each of position, velocity, temperature [°C], age [s] as measured, request: what the drives are asked
    for so far, reference: positions that controllers follow; and armed (): time [s] since the rig was armed.
    command: fields of JointCommand, (n,) each. A command within all limits passes unchanged to the bit.
    """
    near, aimed = _aimed(held, seen["position"], command["position"])
    aim = {**command, "position": aimed}
    pull = _pull(seen, aim)
    asked = pull + command["effort"]
    lowest, highest = _span(held, seen)
    spans, rated = held.spans, held.does(SATURATE, "rate")

    def within(effort: Any) -> Any:
        return ops.where(spans, ops.clip(effort, lowest, highest), effort)

    # 0 is always within, so where a limit falls faster than the rate allows, the effort follows the limit
    before, step = seen["request"], held.rate * held.step
    smooth = ops.clip(within(asked), within(before - step), within(before + step))
    allowed = ops.where(rated, smooth, within(asked))
    kept = ops.where(allowed == asked, command["effort"], allowed - pull)
    moved = {"tracking": near != command["position"], "position": aimed != near}
    beyond = _beyond(held, seen, {"asked": asked, "allowed": allowed, "within": within(asked)})
    verdict: Any = np.zeros(len(held.stale))
    warned: Any = np.zeros(len(held.stale))
    for code, kind in enumerate(KINDS, 1):
        trips = beyond[kind]
        if kind in moved:  # of a drive without gains the commanded position is without effect
            aside = ops.logical_and(moved[kind], command["kp"] != 0.0)
            trips = ops.where(held.does(SATURATE, kind), ops.logical_or(trips, aside), trips)
        verdict = ops.where(held.does(STOP, kind), ops.where(trips, float(code), verdict), verdict)
        warned = ops.where(held.tells(kind), warned + ops.where(trips, BITS[kind], 0.0), warned)
    fresh = ops.where(seen["age"] <= held.stale, verdict, float(STALE))  # an age that is no number is not fresh
    verdict = ops.where(np.isfinite(held.stale), fresh, verdict)
    verdict = ops.where(_sound(seen, command, spans | rated), verdict, float(NOT_FINITE))
    return {**aim, "effort": kept}, verdict, warned


def _pull(seen: Mapping[str, Any], command: Mapping[str, Any]) -> Any:
    """What the gains of a command ask for."""
    return requested_effort({**command, "effort": np.zeros(len(command["effort"]))}, seen)


def _sound(seen: Mapping[str, Any], command: Mapping[str, Any], cuts: Array) -> Any:
    """Where measurement and command, as it was told, are finite; cuts: where efforts are cut."""
    pull = ops.absolute(_pull(seen, command)) <= np.where(cuts, SANE, LARGEST)
    told = ops.logical_and(pull, is_finite(command["effort"]))
    return ops.logical_and(told, ops.logical_and(is_finite(seen["position"]), is_finite(seen["velocity"])))


def _aimed(held: Guard, q: Any, position: Any) -> tuple[Any, Any]:
    """A commanded position, held near the measured one, and then within the limits too."""
    near = ops.clip(position, q - held.tracking, q + held.tracking)
    near = ops.where(held.does(SATURATE, "tracking"), near, position)
    aimed = ops.clip(near, held.limits.lower, held.limits.upper)
    return near, ops.where(held.does(SATURATE, "position"), aimed, near)


def _span(held: Guard, seen: Mapping[str, Any]) -> tuple[Any, Any]:
    """(least, greatest) effort that limits allow which saturate, the largest without one; 0 is always among them."""
    q, v = seen["position"], seen["velocity"]
    by_effort = held.does(SATURATE, "effort")
    cap: Any = np.where(by_effort, held.limits.effort, LARGEST)
    if held.soft_start > 0.0:
        cap = ops.where(by_effort, cap * ops.clip(seen["armed"] / held.soft_start, 0.0, 1.0), cap)
    # in this order a temperature that is no number, which was not measured, leaves the whole limit
    cool = ops.maximum(ops.minimum((held.temperature - seen["temperature"]) / DERATING, 1.0), 0.0)
    cap = ops.where(held.does(SATURATE, "temperature"), cap * cool, cap)
    by_power = held.power / ops.maximum(ops.absolute(v), SLOW)
    cap = ops.where(held.does(SATURATE, "power"), ops.minimum(cap, by_power), cap)
    lowest, highest = -cap, cap
    for kind, up, down in (
        ("velocity", v > held.limits.velocity, v < -held.limits.velocity),
        ("position", q > held.limits.upper, q < held.limits.lower),
    ):
        saturates = held.does(SATURATE, kind)
        highest = ops.where(saturates, ops.where(up, 0.0, highest), highest)
        lowest = ops.where(saturates, ops.where(down, 0.0, lowest), lowest)
    return lowest, highest


def _beyond(held: Guard, seen: Mapping[str, Any], effort: Mapping[str, Any]) -> dict[str, Any]:
    """Kind -> where the limit is passed. Limits that saturate go by what was asked for, others by what is left of it
    after those; the rate by what is within the span, for a drive is never asked for more."""
    q, v, limits = seen["position"], seen["velocity"], held.limits
    judged = {k: ops.where(held.does(SATURATE, k), effort["asked"], effort["allowed"]) for k in ("effort", "power")}
    warm = held.temperature - np.where(held.does(SATURATE, "temperature"), DERATING, 0.0)
    return {
        "effort": ops.absolute(judged["effort"]) > limits.effort,
        "rate": ops.absolute(effort["within"] - seen["request"]) > held.rate * held.step,
        "power": ops.absolute(judged["power"] * v) > held.power,
        "tracking": ops.absolute(seen["reference"] - q) > held.tracking,
        "temperature": seen["temperature"] > warm,
        "velocity": ops.absolute(v) > limits.velocity,
        "position": ops.logical_or(q < limits.lower, q > limits.upper),
    }
