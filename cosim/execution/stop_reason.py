"""Why a run was stopped: by the guard, or by what became of the plant; in one sentence with the mend."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cosim.control import guard
from cosim.control.bumpless_start import BumplessStart
from cosim.plant.event_stepper import ENDLESS, OPEN
from cosim.tick.tick_model import TickModel
from cosim.types import requested_effort
from cosim.units import JOINT_DIMENSIONS

# a joint that moves within this is not what made an effort overflow
SENSIBLE = 1e100
# element of G below which a constraint does not feel a dof
TOUCHED = 1e-9


def stop_reason(simulation: TickModel, tick: int, memory: np.ndarray) -> str:
    """`memory` is what the tick left behind; its verdicts are not all FINE, or the plant is in trouble."""
    parts, t = simulation.layout.unpack(memory), tick * simulation.step
    trouble = float(simulation.plant_fault(t, simulation.plant.layout.pack(parts["plant"])))
    broken = guard.NOT_FINITE in parts["verdict"]
    told = _guarded if broken else {ENDLESS: _endless, OPEN: _open}.get(trouble, _guarded)
    if told is _guarded and parts["controlled_stop"]["reason"] and parts["fault"] == parts["controlled_stop"]["reason"]:
        told = _rested
    return f"stopped at tick {tick} (t = {t:.6g} s): {told(simulation, t, parts)}"


def _rested(simulation: TickModel, t: float, parts: dict) -> str:
    """What the guard found first, before the joints were brought to rest."""
    joint = _Seen(simulation, parts, int(np.argmax(parts["controlled_stop"]["first_verdict"])))
    halting = BumplessStart.of(parts["bumpless_start"], simulation.nv).halting
    assert halting is not None
    what = _RESTED[int(parts["controlled_stop"]["reason"])](joint)
    mend = f"change the trajectory or joints.{joint.name}.limits"
    return f"joint '{joint.name}' {what} at t = {float(halting.t):.6g} s, and all were brought to rest; {mend}"


def _guarded(simulation: TickModel, t: float, parts: dict) -> str:
    """The worst verdict of the guard."""
    k = int(np.argmax(parts["verdict"]))
    with np.errstate(all="ignore"):  # what diverged is told too
        joint = _Seen(simulation, parts, k)
    return f"joint '{joint.name}' {_SENTENCES[int(parts['verdict'][k])](joint)}"


class _Seen:
    """Joint k of a stopped rig in figures with units: what was measured, asked for and allowed."""

    def __init__(self, simulation: TickModel, parts: dict, k: int) -> None:
        model, self.held = simulation.plant.model, simulation.guard
        self.name, self.unit = model.dof_names[k], model.dof_units[k]
        self.force = JOINT_DIMENSIONS["joint effort"][self.unit == "m"]
        self.position, self.velocity = (float(parts["measured"][what][k]) for what in ("position", "velocity"))
        asked = requested_effort(parts["command"], parts["measured"])[k]
        self.asked, self.change = float(asked), float(abs(asked - parts["previous_request"][k]) / simulation.step)
        self.temperature, self.age = float(parts["temperature"][k]), float(parts["age"][k])
        self.off = float(abs(parts["reference_position"][k] - self.position))
        self.lower, self.upper = float(self.held.limits.lower[k]), float(self.held.limits.upper[k])
        self._k = k

    def limit(self, kind: str) -> str:
        return f"{float(self.held.bound(kind)[self._k]):.6g}"


def _not_finite(joint: _Seen) -> str:
    position, velocity, unit = joint.position, joint.velocity, joint.unit
    if abs(position) < SENSIBLE and abs(velocity) < SENSIBLE:
        what = f"is commanded an effort that is not finite (at {position:.6g} {unit}, {velocity:.6g} {unit}/s)"
        return f"{what}; look at its controller"
    what = f"is not finite (position {position:.6g} {unit}, velocity {velocity:.6g} {unit}/s)"
    return f"{what}; try a smaller schedule.step, more schedule.substeps or schedule.integrator: rosenbrock"


# verdict -> what is wrong and the mend
_SENTENCES: dict[int, Callable[[_Seen], str]] = {
    guard.EFFORT: lambda j: (
        f"is asked for {j.asked:.6g} {j.force}, above its limit of {j.limit('effort')} {j.force};"
        f" soften the controller or change joints.{j.name}.limits"
    ),
    guard.RATE: lambda j: (
        f"is asked for an effort that changes by {j.change:.6g} {j.force}/s, above its limit of {j.limit('rate')}"
        f" {j.force}/s; smooth the reference, soften the controller or change joints.{j.name}.limits"
    ),
    guard.POWER: lambda j: (
        f"is asked for {abs(j.asked * j.velocity):.6g} W ({j.asked:.6g} {j.force} at {j.velocity:.6g} {j.unit}/s),"
        f" above its limit of {j.limit('power')} W; slow the trajectory down or change joints.{j.name}.limits"
    ),
    guard.TRACKING: lambda j: (
        f"is {j.off:.6g} {j.unit} from its reference, more than its limit of {j.limit('tracking')} {j.unit}; look for"
        f" what holds it back, slow the trajectory down, stiffen the controller or change joints.{j.name}.limits"
    ),
    guard.TEMPERATURE: lambda j: (
        f"is at {j.temperature:.6g} degC, above its limit of {j.limit('temperature')} degC; let it cool down, ask for"
        f" less effort or change joints.{j.name}.limits"
    ),
    guard.VELOCITY: lambda j: (
        f"moves at {j.velocity:.6g} {j.unit}/s, above its limit of {j.limit('velocity')} {j.unit}/s;"
        f" slow the trajectory down, soften the controller or change joints.{j.name}.limits"
    ),
    guard.POSITION: lambda j: (
        f"is at {j.position:.6g} {j.unit}, outside its limits {j.lower:.6g} to"
        f" {j.upper:.6g} {j.unit}; change the trajectory or joints.{j.name}.limits"
    ),
    guard.STALE: lambda j: (
        f"has not been heard of for {1e3 * j.age:.6g} ms, more than the {1e3 * float(j.limit('stale')):.6g} ms of"
        " guard.stale; look at its cable and its bus"
    ),
    guard.NOT_FINITE: _not_finite,
}


# … of a stop that waited until the joints rested
_RESTED: dict[int, Callable[[_Seen], str]] = {
    guard.EFFORT: lambda j: f"was asked for more than its limit of {j.limit('effort')} {j.force}",
    guard.RATE: lambda j: (
        f"was asked for an effort that changes faster than its limit of {j.limit('rate')} {j.force}/s"
    ),
    guard.POWER: lambda j: f"was asked for more than its limit of {j.limit('power')} W",
    guard.TEMPERATURE: lambda j: f"was warmer than its limit of {j.limit('temperature')} degC",
    guard.POSITION: lambda j: f"left its limits {j.lower:.6g} to {j.upper:.6g} {j.unit}",
}


def _endless(simulation: TickModel, t: float, parts: dict) -> str:
    """Events that fired again and again within one instant, by name."""
    s = parts["plant"]["switches"]
    often = s["fired"] > 0.5 * s["fired"].max()
    triggers = [trigger.name for trigger, fired in zip(simulation.plant.switches.triggers, often, strict=True) if fired]
    names = " and ".join(f"'{name}'" for name in dict.fromkeys(triggers))
    what = f"events go on without end at t = {float(s['endless']):.6g} s: {names}"
    return f"{what}; change their conditions so that none sets off the others again"


def _open(simulation: TickModel, t: float, parts: dict) -> str:
    """The constraint that is furthest from being satisfied, and the dofs in it whose motion is given."""
    plant, model, state = simulation.plant, simulation.plant.model, parts["plant"]
    gaps = [float(gap) for gap in simulation.stepping.gaps(t, state)]
    worst = int(np.argmax(gaps))
    rows = [
        (coupling.name, row.residual_unit)
        for coupling in model.equations.constraints.members
        for row in coupling.law.rows
    ]
    name, unit = rows[worst]
    G = np.asarray(model.equations.constraint_jacobian(plant.motion(t, state)[0], t), dtype=float)
    touched = np.abs(G[[owner == name for owner, _ in rows]]).max(axis=0) > TOUCHED
    given = np.flatnonzero(np.asarray(plant.held(state), dtype=bool) & touched)
    what = f"'{name}' came open by {gaps[worst]:.3g} {unit}"
    if len(given):
        joints = " and ".join(f"'{model.dof_names[k]}'" for k in given)
        return f"{what}: it does not fit the motion given to {joints}; change that or try a smaller schedule.step"
    return f"{what}; try a smaller schedule.step, or mechanism.closing.drift: projection"
