"""Emulated motors: the quantities that their drives measure, simulated by a rig."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cosim.core.servo.commanded import CommandedLoops
from cosim.execution.hardware.emulation.fault_injection import winding_resistance
from cosim.simulation.tick.virtual_plant import VirtualPlant


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
    drift_rate: float = 0.0  # rate of a further offset …
    drift: float = 0.0  # … and how far it has come
    slip_rate: float = 0.0  # of the motor's velocity, which is reported, beyond the joint's
    noise: float = 0.0  # standard deviation of the position
    frozen: bool = False
    blind: bool = False  # it gives NaN
    # wrong units: what it reports relative to the true value, the position from where it was when that began
    position_scale: float = 1.0
    position_origin: float = 0.0
    velocity_scale: float = 1.0
    effort_scale: float = 1.0
    requested: float = 0.0
    # faults of its supply and of its winding
    supply: float = 1.0  # voltage relative to its nominal one
    undervoltage: float = 0.0  # V, below which the drive reports it
    hot_winding: float = -math.inf  # °C, at which a fault holds its winding at least

    def __post_init__(self) -> None:
        self._voltage, self._resistance = self.voltage, self.resistance

    def set_faults(self, supply: float, hot_winding: float, cause: str) -> None:
        """The faults of its supply and of its winding, and the cause of a fault that its drive reports."""
        self.supply, self.voltage, self.hot_winding = supply, self._voltage * supply, hot_winding
        self.resistance = self._resistance
        if hot_winding > -math.inf:
            self.resistance *= winding_resistance(hot_winding)
        self.fault_cause = cause or ("undervoltage" if self.voltage < self.undervoltage else "")

    def set_units(self, position: float, velocity: float, effort: float) -> None:
        """What it reports, relative to the true value."""
        if position != self.position_scale:
            self.position_scale, self.position_origin = position, self.shaft_position
        self.velocity_scale, self.effort_scale = velocity, effort

    def request(self, effort: float) -> None:
        """Set the effort to apply until the next request, within its limit and what its supply can drive."""
        limit = min(self.max_effort, self._driven_effort) if self.supply < 1.0 else self.max_effort
        self.requested = min(max(effort, -limit), limit) if effort == effort else 0.0

    @property
    def _driven_effort(self) -> float:
        """Of a DC motor at the voltage of the supply: K (U − K |ω|) / R; infinite without windings."""
        if not self.resistance:
            return math.inf
        emf = self.torque_constant * abs(self.shaft_velocity)
        return max(self.torque_constant * (self.voltage - emf) / self.resistance, 0.0)


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
            exerted = effort[k] / wired.scale if motor.requested else 0.0
            motor.effort = motor.effort_scale * exerted
            motor.current = exerted / motor.torque_constant
            fraction = exerted / motor.max_effort
            target = wired.ambient + wired.temperature_rise * fraction * fraction
            motor.temperature += self._step / wired.thermal_time_constant * (target - motor.temperature)
            motor.temperature = max(motor.temperature, motor.hot_winding)

    def _read_encoder(self, motor: EmulatedMotor, position: float, velocity: float) -> None:
        """What the encoder gives at this position and velocity of the motor."""
        motor.shaft_position, motor.shaft_velocity = position, velocity
        motor.drift += motor.drift_rate * self._step
        if motor.blind:
            motor.position = motor.velocity = math.nan
        elif motor.frozen:
            motor.velocity = 0.0
        else:
            noise = self._random.gauss(0.0, motor.noise) if motor.noise else 0.0
            counted = motor.position_origin + motor.position_scale * (position - motor.position_origin)
            motor.position = counted + motor.jump + motor.drift + noise
            motor.velocity = motor.velocity_scale * velocity + motor.drift_rate + motor.slip_rate

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
