"""A volume of compressible fluid: dp/dt = E_eff(p) / V · Q to first order in p / E.

The state is the fluid in it, by its volume v at ambient pressure: U(v) = v φ(V / v). Power into it is dU/dt = π dv/dt
with π = ∂U/∂v = ∫ r dp (`_fluid`), the work that brings a unit of fluid from ambient pressure into the chamber. The
volume that flows in the network is one at a mean pressure: a transformer of the ratio p / π = 1 / mean(r) joins both,
so the effort of the port is the pressure itself, and p Q = dU/dt exactly.
"""

from __future__ import annotations

from cosim.core.types import param, params
from cosim.mechanics.bondgraph import TF, BondGraph, C, Law
from cosim.mechanics.bondgraph.components import _fluid
from cosim.mechanics.bondgraph.components._fluid import Fluid


@params
class Params:
    volume: float = param(unit="m^3", above=0, doc="of the chamber")
    pressure: float = param(unit="Pa", min=0, default=0.0, doc="at the start, above ambient")
    bulk_modulus: float = _fluid.bulk_modulus()
    air_content: float = _fluid.air_content()


def build(params: Params) -> BondGraph:
    """Port: `port`."""
    fluid, volume = Fluid(params.bulk_modulus, params.air_content), params.volume

    def pressure(inside: float) -> float:
        return fluid.pressure(volume / inside)

    def potential(inside: float) -> float:
        p = pressure(inside)
        return p * fluid.mean_volume(p)

    state = ("displacement",)
    graph = BondGraph(ports={"port": "inlet"})
    graph.junction("inlet", "0")
    graph.add("fluid", C(
        "hydraulic",
        Law(potential, state),
        initial=volume / fluid.relative_volume(params.pressure),
        energy=Law(lambda inside: fluid.energy(inside, volume), state),
    ))  # fmt: skip
    ratio = Law(lambda inside: 1.0 / fluid.mean_volume(pressure(inside)), ("fluid.displacement",))
    graph.add("compression", TF("hydraulic", "hydraulic", ratio))
    graph.chain("inlet", "compression", "fluid")
    return graph
