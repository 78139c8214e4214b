"""What the plant of a rig records: each signal is declared here once, and gets its value here."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cosim.core import ops
from cosim.core.types import ACTUATOR_OUTPUTS, Numeric, Signal, Signals, State
from cosim.simulation.plant.plant import Plant
from cosim.simulation.plant.recorded_contacts import record_contacts
from cosim.simulation.plant.recorded_reactions import record_reactions
from cosim.simulation.plant.recorded_values import RecordedSignals

OF_A_DOF: Signals = {
    "position": Signal((), "joint position", "true position; of a real joint the estimated one", chart="position"),
    "velocity": Signal((), "joint velocity", "true velocity; of a real joint the estimated one", chart="velocity"),
    "acceleration": Signal(
        (), "joint acceleration", "true acceleration; of a real joint the estimated one", chart="acceleration"
    ),
    "effort": Signal(
        (),
        "joint effort",
        "effort of the actuator on the joint, without what accelerates parts of it that turn rigidly with the joint; "
        "of a prescribed joint the required effort; of a real joint the effort reported by its drive; of a passive "
        "joint 0",
        chart="effort",
    ),
    "measured_effort": Signal(
        (),
        "joint effort",
        "effort as a drive reports it and controllers get it: with what accelerates its rotor and its gear, where "
        "they turn rigidly with the joint",
        "measured",
        "effort",
    ),
    "friction_effort": Signal((), "joint effort", "effort of friction on the joint, opposed to its motion or its load"),
    "holding_effort": Signal(
        (),
        "joint effort",
        "effort on the joint of its brake, latch and stops: what they need to hold it still, or the friction of a "
        "slipping brake",
        role="holding",
        chart="effort",
    ),
    "brake_slip": Signal(
        (),
        "1",
        "1 or −1: the direction in which the brake slips; 0: it sticks or is released. Of a brake of several dofs the "
        "components of the unit vector of the direction",
    ),
    "external_effort": Signal((), "joint effort", "effort of a part on the joint"),
    "step_error": Signal((), "1", "largest estimated error of the steps of the tick before, over the tolerance"),
}
OF_A_JOINT: Signals = {"position": Signal((), "1", "component of its quaternion")}
OF_A_BASE: Signals = {"position": Signal((), "joint position", "position or orientation of the base in ground axes")}
OF_A_FRAME: Signals = {
    "position": Signal((), "joint position", "position or orientation of the frame in ground axes"),
    "velocity": Signal((), "joint velocity", "velocity of the origin of the frame in ground axes"),
    "deflection": Signal(
        (), "m", "how far the frame is from its place in the undeformed link, along the axes of the beam"
    ),
}
OF_A_FORCE: Signals = {"power": Signal((), "W", "power of the force law on the mechanism")}
OF_A_TORSION_SPRING: Signals = {
    "spring_angle": Signal((), "rad", "angle by which a torsion spring is turned, at most π"),
    "spring_moment": Signal((), "N*m", "size of the moment of a torsion spring and its damper on both bodies"),
    "spring_energy": Signal((), "J", "energy stored in a torsion spring"),
}
ENERGIES: Signals = {
    "kinetic": Signal((), "J", "kinetic energy of the mechanism and of the rotors of rigid gears"),
    "potential": Signal((), "J", "potential energy of gravity"),
    "stored": Signal((), "J", "kinetic, potential and elastic energy, and the energy stored in actuators and bristles"),
    "elastic": Signal((), "J", "elastic energy of the springs of the mechanism and of its contacts"),
    "work": Signal((), "J", "work since the start of actuator supplies and prescribed motions"),
    "dissipated": Signal((), "J", "energy dissipated since the start by friction and resistance, and in contacts"),
    "contacts": Signal((), "J", "energy lost in contacts since the start"),
    "forces": Signal((), "J", "work of the force laws on the mechanism since the start"),
    "parts": Signal((), "J", "work of the parts on the mechanism since the start"),
}
STEPS: Signals = {
    "count": Signal((), "1", "integrator steps of the tick before, including refused ones"),
    "total": Signal((), "1", "integrator steps since the start"),
    "unconverged": Signal((), "1", "implicit steps of the drives that did not converge since the start"),
}


def recorded_of(plant: Plant, t: Numeric, x: State, request: Numeric) -> RecordedSignals:
    """Motion and effort of every dof, outputs of its actuator, reactions and violations of the constraints, and the
    energy balance; nothing of a plant without dofs."""
    recorded = RecordedSignals()
    if not plant.model.nv:
        return recorded
    solution = plant.efforts(t, x, request)
    q, v, model = solution["q"], solution["v"], plant.model
    # efforts inside a rigid drive follow the acceleration of its joint
    _, outputs = plant.actuator_flows(t, x, request, q, v, solution["a"])
    equations, names, units = model.equations, model.dof_names, model.dof_units
    motion = {"position": equations.chart(q), "velocity": v, "acceleration": solution["a"]}
    for k, (name, unit) in enumerate(zip(names, units, strict=True)):
        recorded.add(name, {what: values[k] for what, values in motion.items()}, OF_A_DOF, unit)
        recorded.add(name, _efforts(plant, k, solution), OF_A_DOF, unit)
        if name in outputs:
            _record_drive(plant, recorded, name, outputs[name], unit)
    for name in plant.shared:
        _record_shared(plant, recorded, name, outputs[name])
    for k in equations.friction_laws:
        recorded.add(names[k], {"friction_effort": -solution["joint_friction"][k]}, OF_A_DOF, units[k])
    _record_holding(plant, recorded, x, solution)
    for name, unit, value in zip(model.coordinate_names, model.coordinate_units, q, strict=True):
        if unit == "1":
            recorded.add(name, {"position": value}, OF_A_JOINT)
    for joint, pose in equations.moving_base_poses(q, t).items():
        _record_axes(recorded, joint, "position", pose, OF_A_BASE)
    for frame, (pose, velocity) in equations.named_frames(q, v, t).items():
        _record_axes(recorded, frame, "position", pose, OF_A_FRAME)
        _record_axes(recorded, frame, "velocity", velocity, OF_A_FRAME)
    for frame, deflection in equations.deflections(q).items():
        _record_axes(recorded, frame, "deflection", dict(zip("xyz", deflection, strict=True)), OF_A_FRAME)
    for name, state in equations.torsion_states(q, v, t).items():
        values = {"spring_angle": state.angle, "spring_moment": state.moment, "spring_energy": state.energy}
        recorded.add(name, values, OF_A_TORSION_SPRING)
    energies = _energies(plant, t, x, solution)
    for k in plant.external.dofs:
        recorded.add(names[k], {"external_effort": solution["external"][k]}, OF_A_DOF, units[k])
    for name, power in equations.force_powers(q, v, t).items():
        recorded.add(name, {"power": power}, OF_A_FORCE)
    recorded.add("energy", energies, ENERGIES)
    if plant.control is not None and plant.control.adaptive:
        recorded.add("steps", {name: x["steps"][name] for name in ("count", "total")}, STEPS)
    elif plant.control is not None:
        for name, error in zip(names, x["steps"]["error"], strict=True):
            recorded.add(name, {"step_error": error}, OF_A_DOF)
    if plant.multirate:
        recorded.add("steps", {"unconverged": x["drive_steps"]["unconverged"]}, STEPS)
    record_reactions(plant, recorded, t, solution, plant.active(x))
    record_contacts(plant, recorded, t, q, v, x)
    return recorded


def _efforts(plant: Plant, k: int, solution: Mapping[str, Numeric]) -> dict[str, Numeric]:
    """The effort on the joint of a dof, and the drive's where a rotor turns rigidly between them."""
    measured = effort = solution["effort"][k]
    if k in plant.rotors_of_drives:
        effort = effort - plant.rotors_of_drives[k] * solution["a"][k]
    return {"effort": effort, **({"measured_effort": measured} if k in plant.measured_efforts else {})}


def _record_drive(
    plant: Plant, recorded: RecordedSignals, name: str, values: Mapping[str, Numeric], unit: str = "rad"
) -> None:
    """What a drive has beside its effort and its powers; unit: of the positions of its joint."""
    prefix, declared = "twin_" if name in plant.twins else "", plant.drives[name].outputs
    further = [what for what in declared if what not in ACTUATOR_OUTPUTS]
    own = {prefix + what: declared[what] for what in further}
    recorded.add(name, {prefix + what: values[what] for what in further}, own, unit)


def _record_shared(plant: Plant, recorded: RecordedSignals, name: str, values: Mapping[str, Numeric]) -> None:
    """What a drive of several joints has beside its efforts and its powers: of a joint, or of the drive itself."""
    declared, joints = plant.drives[name].outputs, plant.joints_of[name]
    for what in (what for what in declared if what not in ACTUATOR_OUTPUTS):
        before = next((before for before in joints if what.startswith(before)), "")
        owner, unit = (
            (plant.model.dof_names[joints[before]], plant.model.dof_units[joints[before]]) if before else (name, "rad")
        )
        own = what.removeprefix(before)
        recorded.add(owner, {own: values[what]}, {own: declared[what]}, unit)


def recorded_at_start(plant: Plant) -> RecordedSignals:
    return recorded_of(plant, 0.0, plant.initial(), np.zeros(plant.model.nv))


def _record_axes(
    recorded: RecordedSignals, owner: str, what: str, values: Mapping[str, Numeric], declared: Signals
) -> None:
    """`<owner>.<axis>/<what>` of x, y, z [m] and of roll, pitch, yaw [rad]."""
    for axis, value in values.items():
        recorded.add(f"{owner}.{axis}", {what: value}, declared, "m" if axis in ("x", "y", "z") else "rad")


def _energies(plant: Plant, t: Numeric, x: State, solution: State) -> dict[str, Numeric]:
    q, v, equations = solution["q"], solution["v"], plant.model.equations
    kinetic, potential = equations.kinetic_energy(q, v, t), equations.gravity_energy(q, t)
    elastic, loss = equations.elastic_energy(q, t), x["energy"]["loss"]
    of_contacts: dict[str, Numeric] = {}
    if plant.contacts:
        in_contacts = ops.sum(plant.contacts.stored_energy(equations, t, q, x))
        of_contacts["contacts"] = ops.sum(x["energy"]["contacts"]) - in_contacts
        elastic, loss = elastic + in_contacts, loss + of_contacts["contacts"]
    stored = kinetic + potential + elastic + ops.sum(y["stored"] for y in solution["outputs"].values())
    stored = stored + plant.bristles.energy(x["bristles"]) if plant.bristles else stored
    return {
        "kinetic": kinetic,
        "potential": potential,
        "stored": stored,
        **({"elastic": elastic} if equations.has_springs or plant.contacts else {}),
        "work": x["energy"]["work"],
        "dissipated": loss,
        **of_contacts,
        **({"forces": x["energy"]["forces"]} if plant.has_force_laws else {}),
        **({"parts": ops.sum(x["energy"]["external"])} if plant.coupled else {}),
    }


def _record_holding(plant: Plant, recorded: RecordedSignals, x: State, solution: Mapping[str, Numeric]) -> None:
    """`<dof>/holding_effort` of dofs with latches or brakes, and `<dof>/brake_slip`."""
    modes, names, units = plant.modes, plant.model.dof_names, plant.model.dof_units
    if not modes.holding:
        return
    held = ops.where(modes.locked(x["modes"]) > 0.5, solution["locking_effort"], 0.0)
    held = held + solution["braking_effort"] if modes.brakes else held
    for k in modes.holding:
        recorded.add(names[k], {"holding_effort": held[k]}, OF_A_DOF, units[k])
    for k, direction in modes.brakes.directions(x["modes"], solution["v"]).items():
        recorded.add(names[k], {"brake_slip": direction}, OF_A_DOF)
