"""Control of a synchronous machine in the axes d and q of its rotor: setpoints of both currents, and the voltages.

Below the speed at which the voltage limits, i_d = 0. Above, the field is weakened: the current in d that keeps the
back-EMF at U, 0.9 of the limit of the voltage, is i_d = (√((U / pω)² − (L_q i_q)²) − ψ) / L_d, at most 0, where i_q is
at most 0.98 U / (pω L_q). With `currents: mtpa` both currents are the least ones of the torque, which
`_operating_point` finds within the same U. Voltages are limited as a vector, their direction is kept. Of a linear
machine π/τ stands for p, and its velocity for ω.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from cosim.core import ops
from cosim.core.types import Numeric, State
from cosim.mechanics.bondgraph import BondGraph, Law
from cosim.mechanics.bondgraph.components._current_control import (
    CurrentControl,
    MachineWindings,
    PhaseLimits,
    Values,
    add_observer,
    left_beside,
    limited,
    missing,
)
from cosim.mechanics.bondgraph.components._operating_point import LinearFlux

AXES = ("_d", "_q")
LOST = tuple(missing(axis) for axis in AXES)  # signals of d̂

LOWEST_SPEED = 1e-3  # rad/s, electrical, below which the back-EMF does not limit
SMALLEST_VOLTAGE = 1e-12  # V²
BACK_EMF = 0.9  # of the limit of the voltage; the rest drives the currents
LARGEST_Q = 0.98  # of the i_q that alone induces that voltage: near it, i_d would change without bound


def limited_vector(limit: Numeric, u_d: Numeric, u_q: Numeric) -> tuple[Numeric, Numeric]:
    """The voltages within a limit of their vector."""
    if ops.is_infinite(limit):
        return u_d, u_q
    share = ops.minimum(limit / ops.sqrt(u_d * u_d + u_q * u_q + SMALLEST_VOLTAGE), 1.0)
    return share * u_d, share * u_q


@dataclass(frozen=True)
class SynchronousAxes:
    """The axes of a synchronous machine: electrical angle per travel p [rad/rad or rad/m], R [Ω], L_d and L_q [H], the
    flux ψ of its magnets [V·s]. scale: of its currents, voltages and flux per amplitude of a phase, such that u i is
    the power of all phases."""

    electrical_ratio: float
    resistance: float
    inductance_d: float
    inductance_q: float
    flux: float
    scale: float

    @property
    def effort_constant(self) -> float:
        """Torque [N·m] or force [N] per i_q without i_d."""
        return self.electrical_ratio * self.flux

    @property
    def linkages(self) -> LinearFlux:
        """Fluxes by currents."""
        return LinearFlux(self.flux, self.inductance_d, self.inductance_q)

    def largest_effort(self, control: CurrentControl, largest: Numeric) -> Numeric:
        """At standstill [N·m or N] with this amplitude, with this scale."""
        if control.currents == "mtpa" and not ops.is_infinite(largest):
            return self.electrical_ratio * self.linkages.torque(*self.linkages.of_amplitude(largest))
        return self.effort_constant * largest

    def setpoints(
        self, control: CurrentControl, wanted: Numeric, speed: Numeric, limits: PhaseLimits
    ) -> tuple[Numeric, Numeric]:
        """Setpoints of both currents from the speed [rad/s] and the i_q setpoint before its limit."""
        ld, lq = self.inductance_d, self.inductance_q
        largest, limit = self.scale * limits.current, self.scale * limits.voltage
        if control.currents == "mtpa":
            linkage = math.inf if ops.is_infinite(limit) else self._linkage(limit, speed)
            return self.linkages.setpoints(wanted * self.flux, linkage, largest, limits.circle)
        i_q = limited(wanted, largest)
        if ops.is_infinite(limit):
            return 0.0, i_q
        linkage = self._linkage(limit, speed)
        i_q = limited(i_q, LARGEST_Q * linkage / lq)
        room = ops.sqrt(linkage * linkage - (lq * i_q) * (lq * i_q))
        i_d = ops.clip((room - self.flux) / ld, -largest, 0.0)
        rest = left_beside(i_d, largest, limits.circle)
        return i_d, ops.clip(i_q, -rest, rest)

    def _linkage(self, limit: Numeric, speed: Numeric) -> Numeric:
        """The largest flux linkage [V·s] whose back-EMF leaves voltage to drive the currents."""
        return BACK_EMF * limit / ops.maximum(ops.abs(self.electrical_ratio * speed), LOWEST_SPEED)

    def induced(self, i_d: Numeric, i_q: Numeric, speed: Numeric) -> tuple[Numeric, Numeric]:
        """Voltages of the motion."""
        p = self.electrical_ratio
        return -(p * speed * self.inductance_q * i_q), p * speed * (self.inductance_d * i_d + self.flux)

    def voltages(
        self,
        control: CurrentControl,
        wanted: Numeric,
        i_d: Numeric,
        i_q: Numeric,
        speed: Numeric,
        lost_d: Numeric,
        lost_q: Numeric,
        *limiting: Numeric,
    ) -> tuple[Numeric, Numeric]:
        """Commanded ones of the continuous loops of both currents; wanted: as of `setpoints`; lost: d̂;
        limiting: values of `control.limited_by`."""
        r, ld, lq = self.resistance, self.inductance_d, self.inductance_q
        limits = control.limits(*limiting)
        d, q = self.setpoints(control, wanted, speed, limits)
        e_d, e_q = self.induced(i_d, i_q, speed)
        u_d = r * d + ld * control.rate * (d - i_d) + e_d - lost_d
        u_q = r * q + lq * control.rate * (q - i_q) + e_q - lost_q
        return limited_vector(self.scale * limits.voltage, u_d, u_q)

    def disturbances(
        self,
        control: CurrentControl,
        at_d: Numeric,
        at_q: Numeric,
        wanted: Numeric,
        i_d: Numeric,
        i_q: Numeric,
        speed: Numeric,
        *known: Numeric,
    ) -> tuple[Numeric, Numeric]:
        """d of both axes; at: voltages L i̇ at the inductances; wanted, known: as of `voltages`."""
        u_d, u_q = self.voltages(control, wanted, i_d, i_q, speed, *known)
        e_d, e_q = self.induced(i_d, i_q, speed)
        return at_d - (u_d - self.resistance * i_d - e_d), at_q - (u_q - self.resistance * i_q - e_q)

    def add_observers(self, graph: BondGraph, disturbances: Callable[..., Values], uses: tuple[str, ...]) -> None:
        """The states d̂ of both axes. disturbances: d of these signals."""
        for k, (axis, inductance) in enumerate(zip(AXES, (self.inductance_d, self.inductance_q), strict=True)):
            law = Law(lambda *signals, k=k: disturbances(*signals)[k], uses)
            add_observer(graph, axis, self.resistance, inductance, law)

    def windings(self, control: CurrentControl, currents: Callable[[State], Values]) -> MachineWindings:
        """What a sampled current loop knows; currents: of both axes, from the states of the machine."""

        def induced(_: State, currents: Values, speed: Numeric) -> Values:
            i_d, i_q = currents
            return self.induced(i_d, i_q, speed)

        def setpoints(_: State, torque: Numeric, speed: Numeric, limits: PhaseLimits) -> Values:
            return self.setpoints(control, torque / self.effort_constant, speed, limits)

        return MachineWindings(
            axes=AXES,
            currents=currents,
            resistance=self.resistance,
            inductances=(self.inductance_d, self.inductance_q),
            setpoints=setpoints,
            induced=induced,
            limited=lambda voltages, limits: limited_vector(self.scale * limits.voltage, *voltages),
            largest_torque=lambda largest: self.largest_effort(control, self.scale * largest),
            per_amplitude=self.scale,
        )
