"""The contexts of the drivers of a rig, its real joints and load motors, and the turns of its drives at power-on."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from cosim.control.load_emulation import LoadMotor
from cosim.core.driver_contract import DriverContext, Turns
from cosim.core.types import Limits
from cosim.core.units import TURN
from cosim.rig.reading.driver_family import turns_at_power_off
from cosim.rig.sections.drivers import DriverSpec
from cosim.rig.sections.joints import JointSpec
from cosim.rig.sections.rig_spec import RigSpec
from cosim.simulation.plant.plant import Plant

ONE_TURN_TOLERANCE = 1e-9  # relative, of a range of exactly one turn


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


def turns_of(driver: DriverSpec, name: str, span: float, continuous: Collection[str]) -> Turns:
    """Of the drive of a joint. span: of its limits [rad or m]; continuous: joints for which whole turns are the same.

    A load motor has no position of its own; a drive that keeps its turns, or is homed, knows its place.
    """
    wired = driver.wiring[name]
    if driver.loads or wired.turns == "kept" or wired.homed or turns_at_power_off(driver.family) == "kept":
        return "known"
    if name in continuous and float(wired.ratio) == 1.0:
        return "known"
    return "ambiguous" if span * abs(float(wired.ratio)) > TURN * (1.0 + ONE_TURN_TOLERANCE) else "folded"
