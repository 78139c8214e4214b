"""Permanent-magnet linear synchronous machine: a `pmsm` unrolled, that pushes.

    F = K i_q + 3/2 π/τ (L_d − L_q) i_d i_q,   K = 3/2 π/τ ψ

of the pole pitch τ, half the period of its magnets; currents and K are per amplitude of a phase. The electrical angle
is π/τ x. The friction of its guides is F_B = b v + (F_0 + μ |F|) s(v), s(v) = v / √(v² + v_0²).

Ports: `d` and `q`, the meshes that sources of voltage are bonded to; `shaft`, the mover.
"""

from __future__ import annotations

import math

from cosim.core.types import param, params
from cosim.core.units import TURN
from cosim.mechanics.bondgraph.components import _bearing, pmsm
from cosim.mechanics.bondgraph.components._flux_tables import FluxTables
from cosim.mechanics.bondgraph.components._iron import IronLosses
from cosim.mechanics.bondgraph.components._thermal import Thermal

BRIDGE = pmsm.BRIDGE


@params
class Params:
    pole_pitch: float = param(unit="m", above=0.0, doc="τ, from magnet to magnet")
    force_constant: float = param(unit="N/A", above=0.0, doc="K, force per amplitude of the current of a phase")
    resistance: float = param(unit="ohm", above=0.0, doc="R of a phase")
    inductance_d: float = param(unit="H", above=0.0, doc="L_d")
    inductance_q: float = param(unit="H", above=0.0, doc="L_q")
    mass: float = param(unit="kg", min=0.0, default=0.0, doc="of the mover; 0: in the joint's body")
    viscous: float = _bearing.viscous("N*s/m")
    coulomb: float = _bearing.coulomb("N")
    load_friction: float = _bearing.load_friction()
    creep_speed: float = _bearing.creep_speed("m/s", 1e-3)
    cogging: float = param(unit="N", min=0.0, default=0.0, doc="amplitude of the cogging force")
    cogging_pitch: float | None = param(unit="m", above=0.0, default=None, doc="its period; by default τ")
    thermal: Thermal | None = param(default=None, doc="of winding and housing; without it both stay cold")
    flux_tables: FluxTables | None = param(
        default=None, doc="of the machine; its drive goes on knowing K and inductances"
    )

    @property
    def doubts(self) -> list[str]:
        """What a user should know of its parameters."""
        return [] if self.flux_tables is None else self.flux_tables.doubts

    @property
    def domain(self) -> str:
        return "translational"

    @property
    def electrical_ratio(self) -> float:
        """rad/m"""
        return math.pi / self.pole_pitch

    @property
    def flux(self) -> float:
        """ψ [V s]"""
        return self.force_constant / (1.5 * self.electrical_ratio)

    @property
    def inertia(self) -> float:
        """kg"""
        return self.mass

    @property
    def iron(self) -> IronLosses | None:
        """Iron losses are of a machine that turns."""
        return None

    @property
    def cogging_rate(self) -> float:
        """rad/m"""
        return TURN / (self.pole_pitch if self.cogging_pitch is None else self.cogging_pitch)


build, axes = pmsm.build, pmsm.axes
controlled, with_voltages, windings = pmsm.controlled, pmsm.with_voltages, pmsm.windings
