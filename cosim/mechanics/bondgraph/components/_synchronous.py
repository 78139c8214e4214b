"""Control of a synchronous machine in the axes d and q of its rotor: setpoints of both currents, and the voltages.

Below the speed at which the voltage limits, i_d = 0. Above, the field is weakened: the current in d that keeps the
back-EMF at U, 0.9 of the limit of the voltage, is i_d = (√((U / pω)² − (L_q i_q)²) − ψ) / L_d, at most 0, where i_q is
at most 0.98 U / (pω L_q). Voltages are limited as a vector, their direction is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cosim.core import ops
from cosim.core.types import Numeric, State
from cosim.mechanics.bondgraph.components._current_control import CurrentControl, MachineWindings, Values, limited

LOWEST_SPEED = 1e-3  # rad/s, electrical, below which the back-EMF does not limit
SMALLEST_VOLTAGE = 1e-12  # V²
BACK_EMF = 0.9  # of the limit of the voltage; the rest drives the currents
LARGEST_Q = 0.98  # of the i_q that alone induces that voltage: near it, i_d would change without bound


def limited_vector(control: CurrentControl, scale: float, u_d: Numeric, u_q: Numeric) -> tuple[Numeric, Numeric]:
    """The voltages that the inverter can give; scale: of their values per amplitude of a phase."""
    limit = scale * control.voltage_limit
    if ops.is_infinite(limit):
        return u_d, u_q
    share = ops.minimum(limit / ops.sqrt(u_d * u_d + u_q * u_q + SMALLEST_VOLTAGE), 1.0)
    return share * u_d, share * u_q


@dataclass(frozen=True)
class SynchronousAxes:
    """The axes of a synchronous machine: p pole pairs, R [Ω], L_d and L_q [H], the flux ψ of its magnets [V·s]. scale:
    of its currents, voltages and flux per amplitude of a phase, such that u i is the power of all phases."""

    pole_pairs: int
    resistance: float
    inductance_d: float
    inductance_q: float
    flux: float
    scale: float

    def setpoints(
        self, control: CurrentControl, wanted: Numeric, speed: Numeric, largest: Numeric
    ) -> tuple[Numeric, Numeric]:
        """Setpoints of both currents from the speed [rad/s] and the i_q setpoint before its limit; largest: amplitude,
        with this scale."""
        p, ld, lq = self.pole_pairs, self.inductance_d, self.inductance_q
        limit = self.scale * control.voltage_limit
        i_q = limited(wanted, largest)
        if ops.is_infinite(limit):
            return 0.0, i_q
        voltage = BACK_EMF * limit / ops.maximum(ops.abs(p * speed), LOWEST_SPEED)
        i_q = limited(i_q, LARGEST_Q * voltage / lq)
        room = ops.sqrt(voltage * voltage - (lq * i_q) * (lq * i_q))
        i_d = ops.clip((room - self.flux) / ld, -largest, 0.0)
        rest = ops.sqrt(ops.maximum(largest * largest - i_d * i_d, 0.0))
        return i_d, ops.clip(i_q, -rest, rest)

    def voltages(
        self, control: CurrentControl, wanted: Numeric, i_d: Numeric, i_q: Numeric, speed: Numeric, *heating: Numeric
    ) -> tuple[Numeric, Numeric]:
        """Commanded ones of the continuous loops of both currents; wanted: as of `setpoints`."""
        p, ld, lq, r = self.pole_pairs, self.inductance_d, self.inductance_q, self.resistance
        largest = self.scale * control.largest_current(*heating)
        d, q = self.setpoints(control, wanted, speed, largest)
        u_d = r * d + ld * control.rate * (d - i_d) - p * speed * lq * i_q
        u_q = r * q + lq * control.rate * (q - i_q) + p * speed * (ld * i_d + self.flux)
        return limited_vector(control, self.scale, u_d, u_q)

    def windings(self, control: CurrentControl, currents: Callable[[State], Values]) -> MachineWindings:
        """What a sampled current loop knows; currents: of both axes, from the states of the machine."""
        p, ld, lq, flux = self.pole_pairs, self.inductance_d, self.inductance_q, self.flux

        def induced(_: State, currents: Values, speed: Numeric) -> Values:
            i_d, i_q = currents
            return -p * speed * lq * i_q, p * speed * (ld * i_d + flux)

        def setpoints(_: State, torque: Numeric, speed: Numeric, largest: Numeric) -> Values:
            return self.setpoints(control, torque / (p * flux), speed, self.scale * largest)

        return MachineWindings(
            axes=("_d", "_q"),
            currents=currents,
            resistance=self.resistance,
            inductances=(ld, lq),
            setpoints=setpoints,
            induced=induced,
            limited=lambda voltages: limited_vector(control, self.scale, *voltages),
            torque_constant=p * flux * self.scale,
        )
