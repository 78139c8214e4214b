"""The guard of a rig: the limits of all dofs, with defaults where joints are real."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from cosim.control.guard import Guard
from cosim.control.limits import LIMITS, POSITION_TOLERANCE
from cosim.rig.sections.rig_spec import RigSpec
from cosim.rig.wiring.driver_context import real_joints
from cosim.simulation.plant.encoder import Encoders


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


def with_real_defaults(guard: Guard, spec: RigSpec, followed: Collection[int]) -> Guard:
    """The guard with the default limits of real joints. followed: dofs that have a controller with a position
    reference."""
    real = real_joints(spec.drivers)
    bounds = {key: values.copy() for key, values in guard.bounds.items()}
    for row in LIMITS:
        if row.real_default is None:
            continue
        for k in (k for k, name in enumerate(spec.joints) if name in real):
            if np.isinf(bounds[row.key][k]) and (row.reference != "required" or k in followed):
                bounds[row.key][k] = row.real_default({key: float(values[k]) for key, values in bounds.items()})
    return replace(guard, bounds=bounds)
