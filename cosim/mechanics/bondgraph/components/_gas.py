"""Air as an ideal gas of constant heat capacities: p V = m R T, U = m c_v T, h = c_p T.

A gas passes ports by two bonds, `pneumatic` (pressure, mass flow) and `enthalpy` (temperature, flow of enthalpy); the
second follows the first one by itself (`BondGraph.companions`). What flows has the temperature of where it comes from:
Ḣ = c_p T ṁ. Pressures are absolute.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cosim.core import ops
from cosim.core.types import Numeric, param
from cosim.mechanics.bondgraph import BondGraph, Law, R
from cosim.mechanics.bondgraph.components._fluid import AMBIENT

GAS_CONSTANT = 287.05  # J/(kg K), dry air
GAMMA = 1.4  # c_p / c_v
C_V = GAS_CONSTANT / (GAMMA - 1.0)  # J/(kg K)
C_P = GAMMA * C_V
REFERENCE_DENSITY, REFERENCE_TEMPERATURE = 1.185, 293.15  # kg/m³ and K, of ISO 6358
LINEAR_FROM = 0.999  # pressure ratio above which the flow is linear in it: its slope at 1 would be infinite
CRITICAL = (2.0 / (GAMMA + 1.0)) ** (GAMMA / (GAMMA - 1.0))  # pressure ratio of the ideal nozzle

Psi = Callable[[Numeric], Numeric]


def pressure(at: str, default: Any = AMBIENT) -> Any:
    return param(unit="Pa", above=0, default=default, doc=f"{at}, absolute")


def temperature(at: str = "at the start") -> Any:
    return param(unit="K", above=0, default=REFERENCE_TEMPERATURE, doc=f"of the air {at}")


def iso_6358(critical: Numeric) -> Psi:
    """ψ(r) = √(1 − ((r − b) / (1 − b))²) between the critical ratio b and 1; 1 below b."""

    def psi(ratio: Numeric) -> Numeric:
        x = (ops.maximum(ratio, critical) - critical) / (1.0 - critical)
        return ops.sqrt(1.0 - x * x)

    return psi


def nozzle(ratio: Numeric) -> Numeric:
    """ψ(r) = √(2 γ / (γ − 1) (r^(2/γ) − r^((γ+1)/γ))) of Saint-Venant and Wantzel; constant below the critical r."""
    r = ops.maximum(ratio, CRITICAL)
    powers = ops.power(r, 2.0 / GAMMA) - ops.power(r, (GAMMA + 1.0) / GAMMA)
    return ops.sqrt(2.0 * GAMMA / (GAMMA - 1.0) * powers)


def mass_flow(factor: Numeric, psi: Psi, p_a: Numeric, p_b: Numeric, t_a: Numeric, t_b: Numeric) -> Numeric:
    """ṁ = factor · p ψ(r) / √T with pressure and temperature where it comes from, positive from a to b [kg/s]."""
    forward = p_a >= p_b
    high, low = ops.maximum(p_a, p_b), ops.minimum(p_a, p_b)
    ratio = low / high
    near_1 = ops.minimum((1.0 - ratio) / (1.0 - LINEAR_FROM), 1.0)
    size = factor * high * psi(ops.minimum(ratio, LINEAR_FROM)) * near_1
    return ops.where(forward, size, -size) / ops.sqrt(ops.where(forward, t_a, t_b))


def add_passage(
    graph: BondGraph, name: str, a: str, b: str, flow: Callable[..., Numeric], uses: tuple[str, ...] = ()
) -> None:
    """From junction a to b with ṁ = flow(p_a, p_b, T_a, T_b, *signals); uses: the signals."""
    through, of_a, of_b = f"{name}_through", graph.companions[a], graph.companions[b]
    graph.junction(through, "1")
    graph.junction(f"{through}_enthalpy", "1")
    graph.companions[through] = f"{through}_enthalpy"
    graph.chain(a, through, b)
    ends = tuple(f"{junction}.effort" for junction in (a, b, of_a, of_b))
    graph.add(name, R("pneumatic", Law(flow, (*ends, *uses)), gives="flow"))
    graph.bond(through, name)
    graph.add(f"{name}_enthalpy", R("enthalpy", Law(carried, (f"{name}.flow", *ends[2:])), gives="flow"))
    graph.bond(f"{through}_enthalpy", f"{name}_enthalpy")


def carried(flow: Numeric, t_a: Numeric, t_b: Numeric) -> Numeric:
    """Ḣ of a mass flow from a to b [W]."""
    return C_P * flow * ops.where(flow > 0.0, t_a, t_b)


def gas_junction(graph: BondGraph, name: str) -> None:
    """A 0-junction with the one of its enthalpy, which is a port of its own for signals."""
    graph.junction(name, "0")
    graph.junction(f"{name}_enthalpy", "0")
    graph.companions[name] = f"{name}_enthalpy"
