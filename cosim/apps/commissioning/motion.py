"""Motion of joints that are commissioned: what the model expects of each one that moves alone, and its control.

In effort mode a joint is held by kp (r − q) + kd (ṙ − q̇) + ki ∫ (r − q) dt + g(q) with kp = J ω², kd = 2 J ω and
ki = J ω³ / 4, J and g by the model: critically damped at the frequency ω. Drives in velocity or position mode
close their own loops.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from cosim.apps.commissioning.session import LiveJoints
from cosim.core.types import Array
from cosim.rig.wiring.wired_rig import WiredRig

DIFFERENCE = 1e-4  # rad or m
LOOP_FREQUENCY = 2.5  # Hz
PER_PERIOD = 0.15  # largest ω · period
INSIDE_TIME = 0.1  # s, times the speed: how far before its limit the reference of a joint stops
POSITION_GAIN = 5.0  # 1/s, of the position error in velocity mode


class ExpectedJoint(NamedTuple):
    """What the model expects of a joint that moves alone.

    inertia: (least, largest) that its drive moves [kg·m² or kg], with all others free and with all others at rest;
    gravity: effort that holds it against gravity and springs [N·m or N]; stiffness: its change with the joint's own
    position, per rad or m.
    """

    inertia: tuple[float, float]
    gravity: float
    stiffness: float = 0.0


def expected(rig: WiredRig, positions: Mapping[str, float]) -> dict[str, ExpectedJoint]:
    """By joint, at these positions; joints without one are at their initial position."""
    model = rig.plant.model
    chart = np.array([positions.get(name, spec.initial_position) for name, spec in rig.spec.joints.items()])
    q = model.coordinates(chart)
    mass = np.atleast_2d(np.asarray(model.mass_matrix(q), dtype=float))
    rest = np.zeros(model.nv)
    gravity, *columns = (
        np.atleast_1d(np.asarray(model.nonlinear_effects(model.coordinates(at), rest), dtype=float))
        for at in (chart, *(chart + DIFFERENCE * np.eye(len(chart))))
    )
    stiffness = [float(column[k] - gravity[k]) / DIFFERENCE for k, column in enumerate(columns)]
    free = 1.0 / np.diag(np.linalg.inv(mass))
    rows = zip(rig.joints, free, np.diag(mass), gravity, stiffness, strict=True)
    return {
        name: ExpectedJoint((float(least), float(largest)), float(effort), slope)
        for name, least, largest, effort, slope in rows
        if name in positions
    }


class HoldingLoop:
    """Commands of all live joints that follow their references (n,)."""

    def __init__(self, live: LiveJoints, mode: str, expect: Mapping[str, ExpectedJoint]) -> None:
        inertia = np.array([expect[name].inertia[1] for name in live.names])
        omega = min(2.0 * math.pi * LOOP_FREQUENCY, PER_PERIOD / live.period)
        self._live, self._mode = live, mode
        self._kp, self._kd, self._ki = inertia * omega**2, 2.0 * inertia * omega, inertia * omega**3 / 4.0
        self._gravity = np.array([expect[name].gravity for name in live.names])
        self._integral = np.zeros(len(live.names))
        self.reference = live.position.copy()

    def follow(self, velocity: Sequence[float] | Array) -> None:
        """Move the references at this velocity (n,) since the last tick, and send the commands. Raises RunError."""
        live, rate = self._live, np.asarray(velocity, dtype=float)
        limits, inside = live.guard.bounds, INSIDE_TIME * np.abs(rate)
        wanted = self.reference + rate * live.dt
        # a reference beyond may come back
        lowest = np.minimum(limits["lower"] + inside, self.reference)
        highest = np.maximum(limits["upper"] - inside, self.reference)
        moved = np.clip(wanted, lowest, highest)
        rate = np.where(moved == self.reference, 0.0, rate)
        self.reference = moved
        error = self.reference - live.position
        if self._mode == "effort":
            bound = limits["effort"]
            self._integral = np.clip(self._integral + self._ki * error * live.dt, -bound, bound)
            effort = self._gravity + self._integral
            live.write(self.reference, position=self.reference, velocity=rate, kp=self._kp, kd=self._kd, effort=effort)
        elif self._mode == "velocity":
            bound = 0.5 * limits["velocity"]
            self._integral = np.clip(self._integral + 0.25 * POSITION_GAIN**2 * error * live.dt, -bound, bound)
            live.write(self.reference, position=self.reference, velocity=rate + POSITION_GAIN * error + self._integral)
        else:
            live.write(self.reference, position=self.reference, velocity=rate)
