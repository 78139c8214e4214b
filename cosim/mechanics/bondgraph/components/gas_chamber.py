"""A volume of air, which a wall may change: internal energy U and mass m are states.

    dm/dt = Σ ṁ,   dU/dt = Σ c_p T ṁ − p dV/dt − (T − T_a) / R_th,   T = U / (m c_v),   p = (γ − 1) U / V

Without a thermal resistance R_th it is adiabatic. `isothermal` keeps the temperature, p = m R T / V: what it exchanges
with the surroundings then is the power that their source supplies, and so is its internal energy.

The wall feels p − p_ambient; it is an Se in the hydraulic domain, and what that supplies the gas loses as −p dV/dt.
"""

from __future__ import annotations

from cosim.core.types import Numeric, param, params
from cosim.mechanics.bondgraph import BondGraph, C, Element, Law, R, Se, Sf
from cosim.mechanics.bondgraph.components import _gas
from cosim.mechanics.bondgraph.components._fluid import AMBIENT


@params
class Params:
    volume: float = param(unit="m^3", above=0, doc="at the start")
    pressure: float = _gas.pressure("at the start")
    temperature: float = _gas.temperature()
    thermal_resistance: float | None = param(unit="K/W", above=0, default=None, doc="of its shell; adiabatic without")
    ambient_temperature: float = _gas.temperature("around the shell")
    isothermal: bool = param(default=False, doc="the air keeps its temperature")

    def __post_init__(self) -> None:
        check_heat(self.isothermal, self.thermal_resistance)


def check_heat(isothermal: bool, thermal_resistance: float | None) -> None:
    """Raises ValueError for an isothermal chamber with a shell."""
    if isothermal and thermal_resistance is not None:
        raise ValueError("an isothermal chamber has no thermal resistance; take one of both out")


def build(params: Params) -> BondGraph:
    """Port: `port`; closed without a bond."""
    return chamber(params, moves=False)


def chamber(params: Params, moves: bool) -> BondGraph:
    graph = BondGraph(ports={"port": "inlet", "temperature": "inlet_enthalpy"})
    _gas.gas_junction(graph, "inlet")
    swept = ("wall.displacement",) if moves else ()
    graph.add("gas", _mass(params, swept))
    graph.bond("inlet", "gas")
    for domain, junction in (("pneumatic", "inlet"), ("enthalpy", "inlet_enthalpy")):  # so that it can be closed
        graph.add(f"seal_of_{junction}", Sf(domain, Law(lambda: 0.0)))
        graph.bond(f"seal_of_{junction}", junction)
    if params.isothermal:
        graph.add("heat", Se("enthalpy", params.temperature))
        graph.bond("heat", "inlet_enthalpy")
    else:
        start = params.pressure * params.volume / (_gas.GAMMA - 1.0)
        energy = Law(lambda u, m: u / (m * _gas.C_V), ("displacement", "gas.displacement"))
        graph.add("energy", C("enthalpy", energy, initial=start))
        graph.bond("inlet_enthalpy", "energy")
    if params.thermal_resistance is not None:
        graph.junction("shell", "1")
        graph.add("resistance", R("enthalpy", params.thermal_resistance))
        graph.add("ambient", Se("enthalpy", params.ambient_temperature))
        graph.chain("inlet_enthalpy", "shell", "resistance")
        graph.bond("shell", "ambient")
    if moves:
        _add_wall(graph, params)
    return graph


def _mass(params: Params, swept: tuple[str, ...]) -> Element:
    """The air, by its mass."""

    def volume(*moved: Numeric) -> Numeric:
        return params.volume - moved[0] if moved else params.volume

    start = params.pressure * params.volume / (_gas.GAS_CONSTANT * params.temperature)
    if params.isothermal:
        factor = _gas.GAS_CONSTANT * params.temperature
        law = Law(lambda m, *moved: factor * m / volume(*moved), ("displacement", *swept))
    else:
        law = Law(lambda u, *moved: (_gas.GAMMA - 1.0) * u / volume(*moved), ("energy.displacement", *swept))
    return C("pneumatic", law, initial=start)


def _add_wall(graph: BondGraph, params: Params) -> None:
    graph.add("wall", Se("hydraulic", Law(lambda p: p - AMBIENT, ("gas.effort",))))
    if not params.isothermal:
        graph.add("work", Sf("enthalpy", Law(lambda p, q: p * q, ("gas.effort", "wall.flow"))))
        graph.bond("work", "inlet_enthalpy")
