"""The parts of a rig, built from its checked file and connected: plant, guard, control loops, model of its ticks."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from cosim.control.cogging import Cogging
from cosim.control.guard import Guard
from cosim.control.limits import LIMITS, POSITION_TOLERANCE
from cosim.core.driver_contract import DriverContext
from cosim.core.errors import InputError, InputErrors
from cosim.core.types import Limits
from cosim.rig.reading.schema import Reading
from cosim.rig.sections.rig_spec import RigSpec
from cosim.rig.wiring.control_loops import build_loops, check_reference_limits, followed_positions
from cosim.rig.wiring.coupling import build_coupling
from cosim.rig.wiring.driver_context import (
    drive_controlled,
    driver_contexts,
    load_motors,
    observer_bandwidths,
    real_joints,
    velocity_controlled,
)
from cosim.rig.wiring.drivers import bus_loads, driver_errors
from cosim.rig.wiring.emulated_plant import with_twins
from cosim.rig.wiring.initial_state import is_spherical_dof
from cosim.rig.wiring.plant import build_encoders, build_plant, with_samples
from cosim.rig.wiring.wall_limits import wall_limits
from cosim.simulation.plant.encoder import Encoders
from cosim.simulation.plant.plant import Plant
from cosim.simulation.tick.tick_model import TickModel


class RigParts(NamedTuple):
    """What a checked rig file is built into; a `WiredRig` has it.

    spec: with the substeps that samples of actuators need; limits, guard: (nv,); tick_model: one control cycle;
    contexts: driver -> its DriverContext; bus_loads: driver -> fraction of its bus that is used, at worst.
    """

    spec: RigSpec
    plant: Plant
    guard: Guard
    limits: Limits
    tick_model: TickModel
    contexts: dict[str, DriverContext]
    bus_loads: dict[str, float]


def build_parts(spec: RigSpec, compiled: bool) -> RigParts:
    """compiled: False for plain Python. Raises InputErrors for parts that do not fit together."""
    drivers, joints = spec.drivers, tuple(spec.joints)
    reading = Reading(spec.source.place, [], spec.path.parent)
    guard = guard_of(spec)
    limits = guard.limits
    plant = build_plant(spec, real_joints(drivers), reading)
    spec = with_samples(with_twins(spec, plant.twins), plant, reading)
    schedule = spec.schedule
    loops = build_loops(spec, plant, limits, reading)
    _check_real_joints(spec, reading)
    _check_wall_limits(spec, plant, reading)
    contexts = driver_contexts(spec, joints, limits, plant.model.continuous)
    loads: dict[str, float] = {}
    reading.errors.extend(wrong := list(driver_errors(drivers, contexts)))
    try:
        loads = {} if wrong else bus_loads(drivers, contexts)
    except InputError as error:
        reading.errors.append(error)
    if loads:
        reading.errors.extend(limit.error for limit in wall_limits(spec, plant, contexts, loads) if limit.error)
    check_reference_limits(loops, spec, reading)
    _check_temperature_limits(spec, plant, reading)
    encoders = build_encoders(spec, plant.model.dof_units)
    coupling = build_coupling(spec, plant.model.dof_names, plant.model.dof_units, reading)
    guard = with_encoders(with_real_defaults(guard, spec, followed_positions(loops), plant.haptic), spec, encoders)
    if reading.errors:
        raise InputErrors(reading.errors)
    closed = drive_controlled(plant, drivers)
    tick_model = TickModel(
        plant=plant,
        encoders=encoders,
        loops=[loop for loop in loops if loop is not None],
        guard=guard,
        integrator=schedule.integrator,
        step_ns=schedule.step_ns,
        substeps=schedule.substeps,
        compiled=compiled,
        loads=load_motors(joints, plant.rotors, drivers),
        bandwidths=observer_bandwidths(drivers),
        drive_controlled=np.isin(joints, list(closed)) if closed else None,
        velocity_controlled=np.isin(joints, list(velocity_controlled(drivers))),
        coupling=coupling,
        shadow=spec.guard.shadow,
        coggings=_coggings(spec),
        deceleration=spec.guard.deceleration,
        order=spec.schedule.order,
        blend=schedule.blend,
    )
    return RigParts(spec, plant, guard, limits, tick_model, contexts, loads)


def _coggings(spec: RigSpec) -> tuple[Cogging | None, ...]:
    """Of real joints, by dof; empty where none has one: a simulated motor has no cogging to compensate."""
    real = real_joints(spec.drivers)
    found = tuple(joint.cogging if name in real else None for name, joint in spec.joints.items())
    return found if any(found) else ()


def _check_temperature_limits(spec: RigSpec, plant: Plant, reading: Reading) -> None:
    """Record limits of temperature of simulated joints whose drives know rises: the guard would never act on them."""
    for name, joint in spec.joints.items():
        rises = getattr(plant.actuators.get(name), "temperatures", {})
        if not rises:
            rises = {what for drive in plant.shared.values() for what in getattr(drive.actuator, "temperatures", {})}
            rises = {what for what in rises if what.startswith(f"{name}.")}
        if rises and name not in plant.real and np.isfinite(joint.limits["temperature"]):
            what = f"the simulated drive of joint '{name}' has rises of temperature in K, and the guard acts on no rise"
            fix = "give winding_limit, or limit of a node, of its motor's 'thermal', above which a run warns"
            reading.fail(("joints", name, "limits", "temperature"), f"{what}; {fix}")


def _check_real_joints(spec: RigSpec, reading: Reading) -> None:
    """Record real drives of dofs of joints with a quaternion."""
    for driver in spec.drivers:
        for name in (name for name in driver.joints if is_spherical_dof(spec, name)):
            what = f"'{name}' is one dof of '{spec.owners[name]}', which turns, and cannot be real by itself"
            reading.fail(driver.at("joints", name), f"{what}; use a chain of revolute and prismatic joints")


def _check_wall_limits(spec: RigSpec, plant: Plant, reading: Reading) -> None:
    """Record limits of what virtual contacts give to real joints that feel none."""
    for name in (name for name in plant.real if name not in plant.haptic):
        for key in (key for row in LIMITS if row.needs_wall for key in row.bound_keys):
            if np.isfinite(spec.joints[name].limits[key]):
                what = f"no drive of a virtual contact moves joint '{name}'"
                fix = "give a contact that its links can touch 'virtual: true', or take the limit out"
                reading.fail(("joints", name, "limits", key), f"{what}; {fix}")


def guard_of(spec: RigSpec) -> Guard:
    """The guard of all dofs; feedback of simulated motors is never stale."""
    joints, real, guard = spec.joints.values(), real_joints(spec.drivers), spec.guard
    actions = [guard.actions | joint.actions for joint in joints]
    keys = [key for row in LIMITS for key in row.bound_keys]
    return Guard(
        bounds={key: np.array([joint.limits[key] for joint in joints], dtype=float) for key in keys},
        actions={row.key: np.array([action[row.key] for action in actions]) for row in LIMITS},
        stale=np.array([guard.stale if name in real else np.inf for name in spec.joints]),
        soft_start=guard.soft_start,
        step=spec.schedule.step_ns * 1e-9,
        position_tolerance=np.full(len(joints), POSITION_TOLERANCE),
    )


def with_encoders(guard: Guard, spec: RigSpec, encoders: Encoders) -> Guard:
    """The guard with the position tolerance of joints with simulated encoders, which round by half a count at most."""
    real = real_joints(spec.drivers)
    simulated = [name not in real for name in spec.joints]
    rounding = np.where(simulated, 0.5 * encoders.params.resolution, 0.0)
    return replace(guard, position_tolerance=guard.position_tolerance + rounding)


def with_real_defaults(guard: Guard, spec: RigSpec, followed: Collection[int], haptic: Collection[str]) -> Guard:
    """The guard with the default limits of real joints. followed: dofs that have a controller with a position
    reference; haptic: dofs whose drives exert virtual contacts."""
    real = real_joints(spec.drivers)
    bounds = {key: values.copy() for key, values in guard.bounds.items()}
    for row in LIMITS:
        if row.real_default is None:
            continue
        having = haptic if row.needs_wall else real
        for k in (k for k, name in enumerate(spec.joints) if name in having):
            if np.isinf(bounds[row.key][k]) and (row.reference != "required" or k in followed):
                bounds[row.key][k] = row.real_default({key: float(values[k]) for key, values in bounds.items()})
    return replace(guard, bounds=bounds)
