"""The windings of a three-phase motor behind a drive that commands voltages.

    L di/dt = v − R i − j k ω e^(jθ)        torque K Im(mean(i e^(−jθ)))

i and v are space vectors (complex, amplitude of a phase) in the frame of the stator, phase a along the real axis; θ is
the electrical angle of the magnet and ω the speed of the shaft; direct and quadrature inductance are equal.

A `Motor` is given as a DC motor: U = R₀ i + L₀ di/dt + K ω. With its current in the quadrature axis, torque K i
and power U i = 3/2 v i are the same if R = R₀/1.5, L = L₀/1.5 and k = K/1.5, from phase to centre.
"""

from __future__ import annotations

import cmath

from cosim.plugins.drivers.common.motor import Motor

PHASES = 1.5  # power of a three-phase motor, by voltage and current of its quadrature axis
POLE_PAIRS = 7
MAGNET_ANGLE = 0.7  # rad, electrical angle where the encoder is 0


def phase_resistance(motor: Motor) -> float:
    """Ω, from phase to centre"""
    return motor.resistance / PHASES


def phase_inductance(motor: Motor) -> float:
    """H, from phase to centre"""
    return motor.inductance / PHASES


class Windings:
    """The phase currents of a motor that has windings. While a step is computed the speed is constant."""

    def __init__(self, motor: Motor) -> None:
        self._motor = motor
        # A, in the frame of the stator
        self.current = 0j  # when the motor was measured
        self.next = 0j  # at the end of the last step

    def open(self) -> None:
        """All phases are switched off."""
        self.current = self.next = 0j

    def apply(self, voltage: complex, rate: float, dt: float, ahead: float = 0.0) -> float:
        """The mean torque [N·m] over a step of dt [s] that begins `ahead` [s] of the last measurement.

        voltage [V] at its beginning, turning at `rate` [rad/s, electrical].
        """
        motor, now = self._motor, self.next
        with_lag = cmath.exp(1j * rate * motor.lag)
        self.current = now / with_lag
        resistance, inductance = phase_resistance(motor), phase_inductance(motor)
        magnet, turning = self._magnet(ahead)
        driven = voltage * with_lag / (resistance + 1j * rate * inductance)
        emf = 1j * motor.torque_constant / PHASES * motor.shaft_velocity * magnet
        induced = -emf / (resistance + turning * inductance)
        free, decay = now - driven - induced, -resistance / inductance
        self.next = (
            driven * cmath.exp(1j * rate * dt) + induced * cmath.exp(turning * dt) + free * cmath.exp(decay * dt)
        )
        mean = driven * _mean((1j * rate - turning) * dt) + induced + free * _mean((decay - turning) * dt)
        return motor.torque_constant * (mean / magnet).imag

    def impose(self, current: complex, dt: float) -> float:
        """The mean torque [N·m] over a step of dt [s] at a current [A] that the drive controls."""
        self.current = self.next = current  # the loop of the current is much faster than a step
        magnet, turning = self._magnet(0.0)
        return self._motor.torque_constant * (current / magnet * _mean(-turning * dt)).imag

    def _magnet(self, ahead: float) -> tuple[complex, complex]:
        """Direction of the magnet's field, and its rate [1/s], when a request of now becomes torque."""
        motor = self._motor
        angle = POLE_PAIRS * (motor.shaft_position + (ahead + motor.lag) * motor.shaft_velocity) + MAGNET_ANGLE
        return cmath.exp(1j * angle), 1j * POLE_PAIRS * motor.shaft_velocity


def _mean(x: complex) -> complex:
    """Mean of e^(x t) for t from 0 to 1."""
    return (cmath.exp(x) - 1.0) / x if abs(x) > 1e-6 else 1.0 + 0.5 * x
