"""The plant of a rig: mechanism with friction and actuators, prescribed motions, initial state, modes and encoders."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from cosim.core.errors import InputError, InputErrors, listed
from cosim.core.types import Actuator
from cosim.core.units import TURN, show_time
from cosim.mechanics.formulations import SEPARATE_BODIES
from cosim.mechanics.integrators.methods import INTEGRATORS
from cosim.mechanics.multibody.friction import JointFriction
from cosim.mechanics.multibody.mechanism import Joint, Mechanism
from cosim.rig.reading.contracts import load_actuator, load_shared_actuator
from cosim.rig.reading.schema import KeyPath, Reading
from cosim.rig.sections.rig_spec import PlantSpec, RigSpec
from cosim.rig.wiring.emulated_plant import twins_of
from cosim.rig.wiring.initial_state import (
    hybrid_modes_of,
    loop_closure_of,
    with_elastic_equilibrium,
    with_initial_state,
)
from cosim.rig.wiring.prescribed_motion import (
    check_jumps,
    prescribed_rotations,
    prescribed_trajectories,
    with_shaped_motion,
)
from cosim.rig.wiring.virtual_contacts import haptic_joints, movers
from cosim.simulation.plant.encoder import Encoders
from cosim.simulation.plant.exact_contacts import MOST_MOVED
from cosim.simulation.plant.inertial_drives import rotor_of
from cosim.simulation.plant.plant import Plant
from cosim.simulation.plant.plant_description import SharedDrive
from cosim.simulation.plant.sampling import nearest_steps, samples_per_tick, whole_substeps
from cosim.simulation.plant.step_control import StepControl


def build_plant(spec: RigSpec, real: Sequence[str], reading: Reading) -> Plant:
    """The plant at its initial state. real: joints whose motion is measured.

    Raises InputErrors with the errors recorded in `reading`.
    """
    actuators = {}
    for name, joint in spec.joints.items():
        if joint.actuator is not None:
            actuators[name] = load_actuator(joint.actuator, ("joints", name, "actuator"), reading)
    shared = shared_drives(spec, reading)
    prescribed, rotations = prescribed_trajectories(spec, reading), prescribed_rotations(spec, reading)
    check_friction(spec, reading)
    _check_loads(spec, actuators, reading)
    if reading.errors:
        raise InputErrors(reading.errors)
    mechanism, schedule = spec.mechanism, spec.schedule
    starts = {name: spec.joints[name].initial_position or 0.0 for name in real if name in actuators}
    rotors = {name: rotor_of(actuators.pop(name), position) for name, position in starts.items()}
    plant = Plant(
        with_friction(mechanism.description, friction_laws(spec), spec.owners),
        mechanism.gravity,
        actuators,
        prescribed,
        shared,
        rotations=rotations,
        loop_closure=loop_closure_of(mechanism.loop_closure),
        real=tuple(real),
        rotors=rotors,
        twins=twins_of(spec, real, reading),
        control=None if schedule.tolerance is None else StepControl(schedule.tolerance, schedule.adaptive),
        multirate=INTEGRATORS[schedule.integrator].multirate,
        moreau=INTEGRATORS[schedule.integrator].moreau,
        contact_bounds=schedule.contact,
        exact=any(contact.exact for contact in mechanism.description.contacts),
        formulation=mechanism.formulation,
        coupled=tuple(name for name in spec.joints if name in spec.couplings.loaded_dofs),
        haptic=haptic_joints(spec, real, reading),
    )
    _check_motion(plant, {drive.name: drive.section for drive in spec.bond_graphs}, reading)
    check_contacts(plant, reading)
    if reading.errors:
        raise InputErrors(reading.errors)
    if plant.multirate and plant.shared:
        what = "multirate takes drives of one joint each"
        reading.fail(("schedule", "integrator"), f"{what}; use rosenbrock or rodas4")
        raise InputErrors(reading.errors)
    if plant.multirate and plant.full_model.constraint_rows:
        what = "multirate takes mechanisms without closed loops and constraints"
        reading.fail(("schedule", "integrator"), f"{what}; use rosenbrock or rodas4")
        raise InputErrors(reading.errors)
    _check_loads_of_mechanism(plant, spec, reading)
    plant = with_elastic_equilibrium(with_initial_state(plant, spec), spec, reading)
    plant = with_shaped_motion(plant, spec, reading)
    check_jumps(plant, reading)
    _check_redundancy(plant, spec, reading)
    _check_rigid_contacts(plant, spec, reading)
    if plant.exact:
        _check_exact_start(plant, reading)
    plant = plant.with_modes(hybrid_modes_of(spec, plant))
    _check_formulation(plant, reading)
    return plant


def check_contacts(plant: Plant, reading: Reading) -> None:
    """Record what contacts cannot be together with."""
    if plant.moreau and plant.shared:
        reading.fail(("schedule", "integrator"), "moreau takes drives of one joint each")
    if not plant.exact:
        return
    drives = [*plant.shared, *(name for name, of in plant.actuators.items() if getattr(of, "is_inertial", False))]
    why = ""
    if drives:
        why = f"the drive '{drives[0]}' is solved together with the mechanism"
    elif plant.real:
        why = f"joint '{plant.real[0]}' is real, and its measured velocity jumps from tick to tick"
    elif plant.breaks.has_jumps:
        why = "the velocity of a given motion jumps"
    if why:
        at = plant.mechanism.contacts[0].place
        reading.errors.append(InputError(f"{why}, which exact contacts do not take; take 'exact' out", at))


def _check_exact_start(plant: Plant, reading: Reading) -> None:
    """Record points of exact contacts that start inside of what they touch."""
    points, _ = plant.contacts.points_and_rates(plant.model.equations, 0.0, plant.start.q, plant.start.v)
    for contact, point in zip(plant.contacts.contacts.of_points, points, strict=True):
        if (depth := -float(point.gap)) > MOST_MOVED:
            what = f"contact '{contact.name}' starts {depth:.3g} m deep, and an exact contact is rigid"
            reading.errors.append(InputError(f"{what}; change the start", contact.place))
            return


def _check_rigid_contacts(plant: Plant, spec: RigSpec, reading: Reading) -> None:
    """Record rigid contacts that only given motions can open and close."""
    if not plant.contacts:
        return
    W, contacts = plant.contact_mobility, plant.contacts.contacts
    for contact, points in contacts.by_contact:
        own = slice(contacts.at(points.start).start, contacts.at(points.stop).start)
        if contact.law.stiffness is not None:
            continue
        if not np.any(W[own, own]):
            what = f"contact '{contact.name}' is rigid, and both its links follow given motions"
        elif _given_movers(plant, spec, contact.name) and not contacts.normals(np.diag(W)[own]).all():
            what = f"contact '{contact.name}' is rigid, and given motions alone move its links along its normal"
        else:
            continue
        reading.errors.append(InputError(f"{what}; give it a stiffness", contact.place))


def _given_movers(plant: Plant, spec: RigSpec, name: str) -> bool:
    """Whether a given motion moves one link of a contact against the other."""
    given = {dof for dof, is_so in zip(plant.full_model.dof_names, plant.imposed, strict=True) if is_so}
    contact = next(each for each in spec.mechanism.description.contacts if each.name == name)
    return any(side & given for side in movers(spec, contact))


def shared_drives(spec: RigSpec | PlantSpec, reading: Reading) -> dict[str, SharedDrive]:
    """The drives of several joints by name; errors are recorded."""
    found = {}
    for drive in spec.bond_graphs:
        actuator = load_shared_actuator(drive.plugin, list(drive.joints), (drive.section, drive.name), reading)
        if actuator is not None:
            found[drive.name] = SharedDrive(actuator, {f"{key}.": dof for key, dof in drive.joints.items()})
    return found


def with_samples(spec: RigSpec, plant: Plant, reading: Reading) -> RigSpec:
    """The rig with substeps that are a multiple of the samples of its actuators, and as short as their `longest_step`.
    Records actuators of whose periods a tick is no whole number."""
    schedule, samples = spec.schedule, {}
    for name, period in plant.periods.items():
        count = samples_per_tick(period, schedule.step_ns)
        if count is None:
            fixes = " or ".join(show_time(step) for step in nearest_steps(period, schedule.step_ns))
            every, step = show_time(period * 1e9), show_time(schedule.step_ns)
            what = f"its loops run every {every}, and the step of {step} is no whole number of these"
            reading.fail(("joints", name, "actuator"), f"{what}; use schedule.step: {fixes}")
        else:
            samples[name] = count
    longest = [getattr(actuator, "longest_step", math.inf) for actuator in plant.actuators.values()]
    least = math.ceil(schedule.step_ns * 1e-9 / min(longest, default=math.inf) - 1e-6)
    substeps = whole_substeps(max(schedule.substeps, least), samples)
    return spec if substeps == schedule.substeps else replace(spec, schedule=replace(schedule, substeps=substeps))


def _check_motion(plant: Plant, sections: Mapping[str, str], reading: Reading) -> None:
    """Raises InputErrors for actuators that turn a linear joint, or push a rotational one. sections: of drives of
    several joints by name."""
    words = {"rad": "torque", "m": "force"}
    units = dict(zip(plant.full_model.dof_names, plant.full_model.dof_units, strict=True))
    driven: list[tuple[KeyPath, str, str, str]] = [
        (("joints", name, "actuator"), name, getattr(of, "moves", units[name]), _for_other_joints(of))
        for name, of in plant.actuators.items()
    ]
    for name, drive in plant.shared.items():
        of, fixes = drive.actuator, getattr(drive.actuator, "for_joint", {})
        for before, dof in drive.joints.items():
            place = ("joints", dof, "actuator") if dof in fixes else (sections[name], name)
            driven.append((place, dof, of.units[before], fixes.get(dof) or _for_other_joints(of)))
    for place, name, moves, fix in driven:
        if moves != units[name]:
            what = f"it moves the joint by a {words[moves]}, and '{name}' moves by a {words[units[name]]}"
            reading.fail(place, f"{what}; {fix}")
    if reading.errors:
        raise InputErrors(reading.errors)


def _for_other_joints(actuator: object) -> str:
    return getattr(actuator, "for_other_joints", "give it another actuator")


def _check_redundancy(plant: Plant, spec: RigSpec, reading: Reading) -> None:
    """Record redundant constraints with `redundant: refuse`."""
    redundant = plant.start.redundant
    if redundant and spec.mechanism.loop_closure.redundant == "refuse":
        rows = ", ".join(plant.model.constraint_rows[r] for r in redundant)
        what = f"{rows} follow from the other constraints; take them out or use redundant: resolve"
        reading.fail(("mechanism", "loop_closure", "redundant"), what)


def _check_formulation(plant: Plant, reading: Reading) -> None:
    """Record a formulation that does not exist, cannot treat the mechanism, or does not have what the rig needs."""
    at = ("mechanism", "formulation")
    try:
        if plant.other_formulation is None:
            return
    except InputError as error:
        reading.fail(at, error.what)
        return
    needs = [f"joint '{name}' is prescribed" for name in (*plant.prescribed, *plant.rotations)]
    needs += [f"joint '{name}' is real" for name in plant.real]
    needs += [f"the rig has {_modes(plant)}"] if plant.modes else []
    needs += ["the integrator moreau solves with the sweeps of separate bodies"] if plant.moreau else []
    needs += ["the integrator multirate solves with the mass matrix"] if plant.multirate else []
    if needs:
        what = f"'{plant.formulation}' gives accelerations of free joints only, and {needs[0]}"
        reading.fail(at, f"{what}; use {SEPARATE_BODIES}")


def _modes(plant: Plant) -> str:
    """By name: `the event 'bang', the hard stop 'hinge at its upper stop', joints latched at the start: slide`."""
    modes = plant.modes
    found = [f"the event '{event.name}'" for event in modes.events]
    found += [f"the hard stop '{stop.name}'" for stop in modes.stops]
    latched = ", ".join(plant.model.dof_names[k] for k in modes.latched)
    found += [f"the exact contact '{name}'" for name in dict.fromkeys(point.name for point in modes.points)]
    return listed([*found, *[f"joints latched at the start: {latched}"] * bool(latched)])


def build_encoders(spec: RigSpec, dof_units: Sequence[str]) -> Encoders:
    """The encoders of all dofs. dof_units: of their positions, rad or m."""
    resolution, noise, late = [], [], []
    for joint, unit in zip(spec.joints.values(), dof_units, strict=True):
        full = 1.0 if unit == "m" else TURN
        cpr = joint.encoder.cpr if joint.encoder else None
        resolution.append(full / cpr if cpr else 0.0)
        noise.append(joint.encoder.noise if joint.encoder else 0.0)
        late.append(bool(joint.encoder and joint.encoder.delay))
    return Encoders(resolution, noise, late, spec.schedule.step_ns * 1e-9, spec.schedule.seed)


def friction_laws(spec: RigSpec | PlantSpec) -> dict[str, JointFriction]:
    """Dof -> the law of its friction, where it has one."""
    return {name: joint.friction for name, joint in spec.joints.items() if joint.friction is not None}


def with_friction(mechanism: Mechanism, laws: Mapping[str, JointFriction], owners: Mapping[str, str]) -> Mechanism:
    """The mechanism with laws of friction of these dofs. owners: dof -> its joint, of all dofs."""
    if not laws:
        return mechanism
    dofs: dict[str, list[str]] = {}
    for dof, joint in owners.items():
        dofs.setdefault(joint, []).append(dof)

    def of(joint: Joint) -> Joint:
        own = tuple(laws.get(dof) for dof in dofs.get(joint.name, ()))
        return replace(joint, friction_laws=own) if any(own) else joint

    loops = tuple(replace(loop, joint=of(loop.joint)) for loop in mechanism.loops)
    return replace(mechanism, joints=tuple(of(joint) for joint in mechanism.joints), loops=loops)


def _check_loads(spec: RigSpec, actuators: Mapping[str, Actuator], reading: Reading) -> None:
    """Record friction of the load of a drive whose effort is known with the acceleration only."""
    for name, law in friction_laws(spec).items():
        if law.of_drive and getattr(actuators.get(name), "is_inertial", False):
            what = f"the load of the drive of '{name}' depends on the acceleration, which this friction changes"
            fix = "put load_friction into a gear_stage of the drive, or take it out"
            reading.fail(("joints", name, "friction", law.of_drive[0]), f"{what}; {fix}")


def load_of_mechanism(plant: Plant) -> str:
    """Why it is not known what a joint carries beside its drive, before its acceleration is known; "" where it is."""
    if plant.exact:
        return "with exact contacts the load of the mechanism depends on its acceleration; take it out"
    for apart, name in ((plant.multirate, "multirate"), (plant.moreau, "moreau")):
        if apart:
            return f"{name} solves drives with their friction apart from the mechanism; use rosenbrock or rodas4"
    if plant.full_model.constraint_rows:
        return "with closed loops and constraints the load of the mechanism depends on its acceleration; take it out"
    return ""


def _check_loads_of_mechanism(plant: Plant, spec: RigSpec, reading: Reading) -> None:
    """Record friction that grows with a load of the mechanism that is not known."""
    if not (why := load_of_mechanism(plant)):
        return
    for name, law in friction_laws(spec).items():
        if law.of_external:
            reading.fail(("joints", name, "friction", law.of_external[0]), why)
    if reading.errors:
        raise InputErrors(reading.errors)


def check_friction(spec: RigSpec, reading: Reading) -> None:
    """Record bristles in explicit steps, which would diverge, and friction of a load that is not known."""
    *implicit, last = (name for name, method in INTEGRATORS.items() if method.implicit)
    for name, law in friction_laws(spec).items():
        path = ("joints", name, "friction")
        if law.sticks and spec.schedule.integrator not in (*implicit, last):
            what = f"bristles are too stiff for steps of {spec.schedule.integrator}"
            reading.fail(path, f"{what}; use schedule.integrator: {', '.join(implicit)} or {last}, or model: stribeck")
        if law.of_drive and spec.joints[name].actuator is None:
            what = f"joint '{name}' has no actuator whose effort would be its load"
            reading.fail((*path, law.of_drive[0]), f"{what}; give it one or take {law.of_drive[0]} out")
