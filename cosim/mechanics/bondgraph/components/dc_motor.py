"""Permanent-magnet DC motor with drive electronics and a gear, all at the joint; port: `joint`.

    L i̇ = U − R i − K ω        torque K i        ω = u θ̇
    rigid gear:    effort = u K i − friction(θ̇), the reflected inertia u² J moves with the joint
    elastic gear:  u² J θ̈ = u K i − friction(θ̇) − M_s,   effort = M_s = k (θ − q) + b (θ̇ − q̇)

θ is the motor's angle divided by the ratio u. The drive turns the input `request`, an effort, into a current and, with
`drive: current`, closes a current loop of the given bandwidth with back-EMF compensation; with `drive: voltage` it
applies the voltage that gives that effort at standstill. Both saturate.

The friction of the gear is viscous, Coulomb and load-dependent, M_T = b ω + (M_0 + μ |M|) s(ω) with
s(ω) = ω / √(ω² + ω_s²), smooth around standstill. A mesh of efficiency η loses the fraction 1 − η of the motor's power
when the motor drives, and 1/η − 1 of the power that reaches the motor when the load drives it.
"""

from __future__ import annotations

import math
from typing import Literal

from cosim.core import ops
from cosim.core.types import Numeric, param, params
from cosim.core.units import TURN
from cosim.mechanics.bondgraph import GY, BondGraph, C, I, Law, R, Se, power_account
from cosim.mechanics.bondgraph.components._current_control import limited

CREEP_SPEED = 0.01  # ω_s [rad/s or m/s, joint side], below which Coulomb friction decreases to 0


def gear_friction(load: Numeric, speed: Numeric, viscous: Numeric, coulomb: Numeric, efficiency: Numeric) -> Numeric:
    """The friction effort, opposing +speed, of a gear that transmits `load`; joint side."""
    friction = viscous * speed
    lossless = ops.is_zero(1.0 - efficiency)
    if lossless and ops.is_zero(coulomb):
        return friction
    fraction = 0.0 if lossless else ops.where(load * speed > 0.0, 1.0 - efficiency, 1.0 / efficiency - 1.0)
    return friction + (coulomb + fraction * ops.abs(load)) * ops.smooth_sign(speed, CREEP_SPEED)


@params
class Params:
    resistance: float = param(unit="ohm", above=0.0, doc="R")
    inductance: float = param(unit="H", above=0.0, doc="L")
    torque_constant: float = param(unit="N*m/A", above=0.0, doc="K, also the back-EMF constant in V·s/rad")
    rotor_inertia: float = param(unit="kg*m^2", min=0.0, doc="J, at the motor's shaft")
    voltage_limit: float = param(unit="V", above=0.0, default=math.inf, doc="at the motor, in both directions")
    current_limit: float = param(unit="A", above=0.0, default=math.inf, doc="that is requested, likewise")
    ratio: float = param(unit="joint ratio", above=0.0, default=1.0, doc="turns of the motor per turn of the joint")
    efficiency: float = param(above=0.0, max=1.0, default=1.0, doc="of the gear mesh, in both directions")
    viscous: float = param(unit="N*m*s/rad", min=0.0, default=0.0, doc="friction at the joint")
    coulomb: float = param(unit="N*m", min=0.0, default=0.0, doc="friction at the joint")
    stiffness: float = param(unit="N*m/rad", above=0.0, default=math.inf, doc="of the gear, at the joint")
    damping: float = param(unit="N*m*s/rad", min=0.0, default=0.0, doc="of the gear's elasticity, at the joint")
    drive: Literal["current", "voltage"] = param(default="current")
    bandwidth: float = param(unit="Hz", above=0.0, default=200.0, doc="of the current loop")
    powers: bool = param(default=False, doc="record its powers and energies by part")

    def __post_init__(self) -> None:
        elastic = math.isfinite(self.stiffness)
        if elastic and self.rotor_inertia == 0.0:
            raise ValueError("an elastic gear needs a rotor_inertia above 0; set it, or remove stiffness")
        if self.damping and not elastic:
            raise ValueError("damping needs an elastic gear; give stiffness too, or leave damping out")

    @property
    def per_ampere(self) -> Numeric:
        """u K [N·m/A]"""
        return self.torque_constant * self.ratio

    @property
    def reflected(self) -> Numeric:
        """u² J [kg m²]"""
        return self.rotor_inertia * self.ratio**2

    @property
    def elastic(self) -> bool:
        return not ops.is_infinite(self.stiffness)


def voltage(p: Params, request: Numeric, current: Numeric, speed: Numeric) -> Numeric:
    """Of the motor [V]; speed: of the motor, divided by the ratio."""
    target = limited(request / p.per_ampere, p.current_limit)
    found = p.resistance * target
    if p.drive == "current":
        found = found + p.per_ampere * speed + p.inductance * TURN * p.bandwidth * (target - current)
    return limited(found, p.voltage_limit)


def build(params: Params) -> BondGraph:
    p = params
    graph = BondGraph(ports={"joint": "torque" if p.elastic else "rotor"}, inputs={"request": ""})
    graph.junction("mesh", "1")
    graph.junction("rotor", "1")
    controlled = Law(lambda *known: voltage(p, *known), ("request", "winding.flow", "rotor.flow"))
    graph.add("supply", Se("electrical", controlled))
    graph.add("winding", I("electrical", p.inductance))
    graph.add("resistance", R("electrical", p.resistance))
    graph.add("machine", GY("electrical", "rotational", p.per_ampere))
    graph.bond("supply", "mesh")
    graph.bond("mesh", "winding")
    graph.bond("mesh", "resistance")
    graph.chain("mesh", "machine", "rotor")
    if not ops.is_zero(p.rotor_inertia):
        graph.add("inertia", I("rotational", p.reflected))
        graph.bond("rotor", "inertia")

    def friction(speed: Numeric, current: Numeric) -> Numeric:
        return gear_friction(p.per_ampere * current, speed, p.viscous, p.coulomb, p.efficiency)

    graph.add("friction", R("rotational", Law(friction, ("flow", "winding.flow"))))
    graph.bond("rotor", "friction")
    if p.elastic:
        graph.junction("torque", "0")
        graph.junction("twist", "1")
        graph.add("spring", C("rotational", p.stiffness))
        graph.chain("rotor", "torque", "twist", "spring")
        if not ops.is_zero(p.damping):
            graph.add("damper", R("rotational", p.damping))
            graph.bond("twist", "damper")
    for name, signal, unit in (("current", "winding.flow", "A"), ("voltage", "supply.effort", "V")):
        graph.signals[name] = Law(lambda value: value, (signal,)), unit
    if p.powers:
        power_account.add_supply(graph, power_account.supplied_by(["supply"]))
        of = power_account.losses_by_part(graph, lambda name, _: "copper" if name == "resistance" else "gear")
        power_account.add_losses(graph, of)
    inertial = ["inertia.effort"] if "inertia" in graph.elements else []

    def torque(current: Numeric, *rotor: Numeric) -> Numeric:
        """At the shaft of the motor, behind its rotor; friction is in the gear."""
        return p.torque_constant * current - sum(rotor) / p.ratio

    graph.signals["motor_torque"] = Law(torque, ("winding.flow", *inertial)), "N*m"
    return graph
