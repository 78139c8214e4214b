"""Emulated motors: the quantities that their drives measure, simulated by a rig."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cosim.servo.commanded import CommandedLoops
from cosim.tick.virtual_plant import VirtualPlant


@dataclass(eq=False)
class EmulatedMotor:
    """One motor in the units of its drive (rad, rad/s, N·m, A, V, °C), updated by `EmulatedMotors`."""

    torque_constant: float  # N·m/A
    max_effort: float
    max_velocity: float
    max_temperature: float
    voltage: float
    temperature: float
    # as of a DC motor at the output of the drive
    resistance: float = 0.0  # Ω, 0: an ideal motor, without windings
    inductance: float = 0.0  # H
    lag: float = 0.0  # s, of the effort behind a request
    loops: CommandedLoops | None = None  # of its drive
    enabled: bool = False  # whether its drive is switched on
    # of the motor, and as its encoder gives them
    shaft_position: float = 0.0
    shaft_velocity: float = 0.0
    position: float = 0.0
    velocity: float = 0.0
    effort: float = 0.0
    current: float = 0.0
    fault_cause: str = ""
    # faults of its encoder
    jump: float = 0.0  # offset of the position
    noise: float = 0.0  # standard deviation of the position
    frozen: bool = False
    blind: bool = False  # it gives NaN
    requested: float = 0.0

    def request(self, effort: float) -> None:
        """Set the effort to apply until the next request, within its limit."""
        self.requested = min(max(effort, -self.max_effort), self.max_effort) if effort == effort else 0.0


@dataclass(frozen=True)
class MotorWiring:
    """How a motor is coupled to its joint, and its thermal model."""

    index: int  # of the joint
    scale: float  # drive position / joint position: direction · ratio
    zero: float  # joint position at which the drive reports 0
    ambient: float  # °C
    temperature_rise: float  # K, steady state at the greatest effort
    thermal_time_constant: float  # s


class EmulatedMotors:
    """All emulated motors on a simulated plant. A drive measures the effort of its motor, which is 0 without current:
    the friction in the gear of a motor that is off is not measured.

    First-order thermal model: τ dT/dt = ambient + temperature_rise · (effort/max_effort)² − T, τ the thermal time
    constant.
    """

    def __init__(
        self,
        plant: VirtualPlant,
        motors: Sequence[EmulatedMotor],
        wiring: Sequence[MotorWiring],
        step: float,
        seed: int = 0,
    ) -> None:
        """step [s]; seed: of the noise of encoders."""
        self.plant, self.motors, self._wiring, self._step = plant, tuple(motors), tuple(wiring), step
        self._random = random.Random(seed)
        self._index = np.array([w.index for w in wiring], dtype=int)
        self._request = np.zeros(len(self.motors))

    def measure(self) -> None:
        """Update all motors from the plant."""
        position, velocity, effort = (values[self._index].tolist() for values in self.plant.measure())
        for k, (motor, wired) in enumerate(zip(self.motors, self._wiring, strict=True)):
            self._read_encoder(motor, wired.scale * (position[k] - wired.zero), wired.scale * velocity[k])
            motor.effort = effort[k] / wired.scale if motor.requested else 0.0
            motor.current = motor.effort / motor.torque_constant
            fraction = motor.effort / motor.max_effort
            target = wired.ambient + wired.temperature_rise * fraction * fraction
            motor.temperature += self._step / wired.thermal_time_constant * (target - motor.temperature)

    def _read_encoder(self, motor: EmulatedMotor, position: float, velocity: float) -> None:
        """What the encoder gives at this position and velocity of the motor."""
        motor.shaft_position, motor.shaft_velocity = position, velocity
        if motor.blind:
            motor.position = motor.velocity = math.nan
        elif motor.frozen:
            motor.velocity = 0.0
        else:
            noise = self._random.gauss(0.0, motor.noise) if motor.noise else 0.0
            motor.position, motor.velocity = position + motor.jump + noise, velocity

    @property
    def requested(self) -> bool:
        """Whether a drive requests an effort of its motor."""
        return any(motor.requested for motor in self.motors)

    def write_requests(self) -> None:
        """Request the efforts of all motors of the plant, and switch their drives on or off."""
        for k, (motor, wired) in enumerate(zip(self.motors, self._wiring, strict=True)):
            self._request[k] = motor.requested * wired.scale
        self.plant.request(self._index, self._request)
        self.plant.enable(self._index, np.array([motor.enabled for motor in self.motors], dtype=float))

    def scale_of(self, motor: EmulatedMotor) -> float:
        """Drive position / joint position."""
        return self._wiring[self.motors.index(motor)].scale

    def value(self, joint: int, what: str) -> float:
        """Position or velocity of the joint at this index, or the effort or the temperature of its drive."""
        if what in ("position", "velocity"):
            return float(self.plant.sample[what == "velocity"][joint])
        motor, wired = next(pair for pair in zip(self.motors, self._wiring, strict=True) if pair[1].index == joint)
        return motor.temperature if what == "temperature" else motor.effort * wired.scale
