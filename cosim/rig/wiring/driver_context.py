"""The contexts of the drivers of a rig, and its real joints and load motors."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from cosim.control.load_emulation import LoadMotor
from cosim.core.driver_contract import DriverContext
from cosim.core.types import Limits
from cosim.rig.sections.drivers import DriverSpec
from cosim.rig.sections.joints import JointSpec
from cosim.rig.sections.rig_spec import RigSpec
from cosim.rig.wiring.power_on_turns import turns_of
from cosim.simulation.plant.plant import Plant


def driver_contexts(
    spec: RigSpec, joints: Sequence[str], limits: Limits, continuous: Collection[str]
) -> dict[str, DriverContext]:
    """Driver -> its context. joints, limits (nv,): of the whole rig; continuous: joints of this kind."""
    return {driver.name: _context(spec, driver, joints, limits, continuous) for driver in spec.drivers}


def _context(
    rig: RigSpec, spec: DriverSpec, joints: Sequence[str], limits: Limits, continuous: Collection[str]
) -> DriverContext:
    own = limits.at(np.array([joints.index(name) for name in spec.joints], dtype=int))
    if spec.loads:
        effort = np.array([load.effort for load in spec.loads.values()])
        own = Limits(own.lower, own.upper, own.velocity, effort)
    return DriverContext(
        joints=spec.joints,
        wiring=tuple(spec.wiring.values()),
        limits=own,
        period=rig.schedule.step_ns * 1e-9,
        mode=spec.mode,
        place=lambda *keys: rig.source.place(spec.at(*keys)),
        turns=tuple(
            turns_of(spec, name, float(span), continuous)
            for name, span in zip(spec.joints, own.upper - own.lower, strict=True)
        ),
        torque_constants=() if spec.loads else tuple(torque_constant(rig.joints[name]) for name in spec.joints),
    )


def torque_constant(joint: JointSpec) -> float:
    """Of the motor of a joint, behind its gear [N·m/A or N/A]; NaN if the rig does not say it."""
    motor = joint.actuator.params if joint.actuator else None
    constant, ratio = (getattr(motor, name, math.nan) for name in ("torque_constant", "ratio"))
    return float(constant) * float(ratio)


def real_joints(drivers: Sequence[DriverSpec]) -> tuple[str, ...]:
    """Joints with a measured motion; a load motor is on the shaft of one of them."""
    return tuple(name for spec in drivers if not spec.loads for name in spec.joints)


def drive_controlled(plant: Plant, drivers: Sequence[DriverSpec]) -> frozenset[str]:
    """Joints whose drives, real or simulated, close a velocity or position loop themselves."""
    return plant.drive_controlled | {name for spec in drivers if spec.mode != "effort" for name in spec.joints}


def velocity_controlled(drivers: Sequence[DriverSpec]) -> frozenset[str]:
    """Real joints that are commanded a velocity."""
    return frozenset(name for spec in drivers if spec.mode == "velocity" and not spec.loads for name in spec.joints)


def observer_bandwidths(drivers: Sequence[DriverSpec]) -> np.ndarray:
    """(m,) of the observers of the real joints [Hz]."""
    return np.array([spec.observer for spec in drivers if not spec.loads for _ in spec.joints])


def load_motors(
    joints: Sequence[str], rotors: Mapping[str, float], drivers: Sequence[DriverSpec]
) -> tuple[LoadMotor, ...]:
    """All load motors, in the order of the drivers. rotors: joint -> reflected inertia of the motor under test."""
    return tuple(
        LoadMotor(joints.index(name), rotors.get(name, 0.0), load.inertia, load.viscous, load.effort)
        for spec in drivers
        for name, load in spec.loads.items()
    )
