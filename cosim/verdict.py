"""Why a run was stopped: by the guard, or by what became of the plant; in one sentence with the mend."""

from __future__ import annotations

import numpy as np

from cosim import guard
from cosim.simulation import Simulation
from cosim.stepping import ENDLESS, OPEN

# a joint that moves within this is not what made an effort overflow
SENSIBLE = 1e100
# element of G below which a constraint does not feel a dof
TOUCHED = 1e-9


def explain(simulation: Simulation, tick: int, row: np.ndarray) -> str:
    """`row` is what the tick left behind; its verdicts are not all FINE, or the plant is in trouble."""
    parts, t = simulation.row.unpack(row), tick * simulation.step
    trouble = float(simulation.trouble(t, simulation.plant.layout.pack(parts["plant"])))
    broken = guard.NOT_FINITE in parts["verdict"]
    told = _guarded if broken else {ENDLESS: _endless, OPEN: _open}.get(trouble, _guarded)
    return f"stopped at tick {tick} (t = {t:.6g} s): {told(simulation, t, parts)}"


def _guarded(simulation: Simulation, t: float, parts: dict) -> str:
    """The worst verdict of the guard."""
    limits, model = simulation.limits, simulation.plant.model
    k = int(np.argmax(parts["verdict"]))
    name, unit = model.dof_names[k], model.dof_units[k]
    position, velocity = (float(parts["measured"][what][k]) for what in ("position", "velocity"))
    return {
        guard.POSITION: (
            f"joint '{name}' is at {position:.6g} {unit}, outside its limits {limits.lower[k]:.6g} to"
            f" {limits.upper[k]:.6g} {unit}; change the trajectory or joints.{name}.limits"
        ),
        guard.VELOCITY: (
            f"joint '{name}' moves at {velocity:.6g} {unit}/s, above its limit of {limits.velocity[k]:.6g} {unit}/s;"
            f" slow the trajectory down, soften the controller or change joints.{name}.limits"
        ),
        guard.NOT_FINITE: (
            f"joint '{name}' is commanded an effort that is not finite (at {position:.6g} {unit},"
            f" {velocity:.6g} {unit}/s); look at its controller"
            if abs(position) < SENSIBLE and abs(velocity) < SENSIBLE
            else f"joint '{name}' is not finite (position {position:.6g} {unit}, velocity {velocity:.6g} {unit}/s);"
            " try a smaller schedule.step, more schedule.substeps or schedule.integrator: rosenbrock"
        ),
    }[int(parts["verdict"][k])]


def _endless(simulation: Simulation, t: float, parts: dict) -> str:
    """Events that fired again and again within one instant, by name."""
    s = parts["plant"]["switches"]
    often = s["fired"] > 0.5 * s["fired"].max()
    triggers = [trigger.name for trigger, fired in zip(simulation.plant.switches.triggers, often, strict=True) if fired]
    names = " and ".join(f"'{name}'" for name in dict.fromkeys(triggers))
    what = f"events go on without end at t = {float(s['endless']):.6g} s: {names}"
    return f"{what}; change their conditions so that none sets off the others again"


def _open(simulation: Simulation, t: float, parts: dict) -> str:
    """The constraint that is furthest from being satisfied, and the dofs in it whose motion is given."""
    plant, model, state = simulation.plant, simulation.plant.model, parts["plant"]
    gaps = [float(gap) for gap in simulation.stepping.gaps(t, state)]
    worst = int(np.argmax(gaps))
    rows = [(coupling.name, row.of) for coupling in model.pure.ties.couplings for row in coupling.law.rows]
    name, unit = rows[worst]
    G = np.asarray(model.pure.constraint_jacobian(plant.motion(t, state)[0], t), dtype=float)
    touched = np.abs(G[[owner == name for owner, _ in rows]]).max(axis=0) > TOUCHED
    given = np.flatnonzero(np.asarray(plant.held(state), dtype=bool) & touched)
    what = f"'{name}' came open by {gaps[worst]:.3g} {unit}"
    if len(given):
        joints = " and ".join(f"'{model.dof_names[k]}'" for k in given)
        return f"{what}: it does not fit the motion given to {joints}; change that or try a smaller schedule.step"
    return f"{what}; try a smaller schedule.step, or mechanism.closing.drift: projection"
