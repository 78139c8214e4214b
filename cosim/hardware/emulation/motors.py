"""Motors of a simulated rig as their drives see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cosim.tick.virtual_plant import VirtualPlant


@dataclass(eq=False)
class EmulatedMotor:
    """One motor, in the units of its drive (rad, rad/s, N·m, A, V, °C); `EmulatedMotors` keeps it up to date."""

    torque_constant: float  # N·m/A
    max_effort: float
    max_velocity: float
    max_temperature: float
    voltage: float
    temperature: float
    position: float = 0.0
    velocity: float = 0.0
    effort: float = 0.0
    current: float = 0.0
    trouble: str = ""
    jump: float = 0.0  # by which its encoder is off
    asked: float = 0.0

    def ask(self, effort: float) -> None:
        """The effort it is to give until it is asked again; what is more than it can is cut."""
        self.asked = min(max(effort, -self.max_effort), self.max_effort) if effort == effort else 0.0


@dataclass(frozen=True)
class MotorWiring:
    """How a motor is wired to its joint, and how it warms up."""

    index: int  # of the joint
    scale: float  # of the drive's position per joint's: direction · ratio
    zero: float  # of the joint, where the drive shows 0
    ambient: float  # °C
    rise: float  # K, after long at the most effort
    warming: float  # s


class EmulatedMotors:
    """All emulated motors of a world: measured from it, asked of it.

    A motor warms up by the square of its effort: warming · dT/dt = ambient + rise · (effort/max_effort)² − T.
    """

    def __init__(
        self, world: VirtualPlant, motors: Sequence[EmulatedMotor], wired: Sequence[MotorWiring], step: float
    ) -> None:
        self.world, self.motors, self._wired, self._step = world, tuple(motors), tuple(wired), step
        self._index = np.array([w.index for w in wired], dtype=int)
        self._request = np.zeros(len(self.motors))

    def measure(self) -> None:
        """What the drives' sensors say now."""
        position, velocity, effort = (values[self._index].tolist() for values in self.world.measure())
        for k, (motor, wired) in enumerate(zip(self.motors, self._wired, strict=True)):
            motor.position = wired.scale * (position[k] - wired.zero) + motor.jump
            motor.velocity = wired.scale * velocity[k]
            motor.effort = effort[k] / wired.scale
            motor.current = motor.effort / motor.torque_constant
            share = motor.effort / motor.max_effort
            target = wired.ambient + wired.rise * share * share
            motor.temperature += self._step / wired.warming * (target - motor.temperature)

    def ask(self) -> None:
        """What the drives ask of their motors, into the world."""
        for k, (motor, wired) in enumerate(zip(self.motors, self._wired, strict=True)):
            self._request[k] = motor.asked * wired.scale
        self.world.request(self._index, self._request)

    def scale_of(self, motor: EmulatedMotor) -> float:
        """Of the drive's position per joint's."""
        return self._wired[self.motors.index(motor)].scale

    def value(self, joint: int, what: str) -> Any:
        """Of the joint at this place: position, velocity, effort as it is; temperature of its drive."""
        if what == "temperature":
            return next(m.temperature for m, w in zip(self.motors, self._wired, strict=True) if w.index == joint)
        return self.world.sample[("position", "velocity", "effort").index(what)][joint]
