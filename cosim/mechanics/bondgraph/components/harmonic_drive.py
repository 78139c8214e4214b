"""A strain wave gear: a ratio, a torsion spring that hardens, its hysteresis, and the kinematic error of the teeth.

    M = k_1 φ + k_3 φ³ + b φ̇ + M_h,   φ = θ_in / N + A sin(2 θ_in) − θ_out,   Ṁ_h = σ (φ̇ − |φ̇| M_h / H)

The hysteresis is friction between the teeth, parallel to the spring (Dhaouadi, Ghorbel and Gandhi, A new dynamic model
of hysteresis in harmonic drives, IEEE Trans. Industrial Electronics 50(6), 2003): bristles that bend and slip (Dahl,
Solid friction damping of mechanical vibrations, AIAA Journal 14(12), 1976). A cycle of amplitude a goes between
± H tanh(σ a / H) and takes 4 H (a − H / σ tanh(σ a / H)), whatever its speed.

The kinematic error A sin(2 θ_in) has two waves per turn of the wave generator (Tuttle and Seering, IEEE Trans. Robotics
and Automation 12(3), 1996). It belongs to the ratio, ω_out = (1 / N + 2 A cos 2 θ_in) ω_in, which conserves power.

Ports: `input`, from a 1-junction (the wave generator); `output`, to a 1-junction.
"""

from __future__ import annotations

import math

from cosim.core import ops
from cosim.core.types import param, params
from cosim.mechanics.bondgraph import TF, BondGraph, C, Law, R
from cosim.mechanics.bondgraph.components.friction import bristles


@params
class Params:
    ratio: float = param(unit="1", above=1.0, doc="N, turns of the wave generator per turn of the output")
    stiffness: float = param(unit="N*m/rad", above=0.0, doc="k_1, at the output")
    hardening: float = param(unit="1", min=0.0, default=0.0, doc="k_3 [N·m/rad³], at the output")
    damping: float = param(unit="N*m*s/rad", min=0.0, default=0.0, doc="b, at the output")
    hysteresis: float = param(
        unit="N*m", min=0.0, default=0.0, doc="H, the largest torque of the hysteresis, at the output"
    )
    hysteresis_stiffness: float | None = param(
        unit="N*m/rad", above=0.0, default=None, doc="σ, where the twist turns back; adds to k_1"
    )
    error: float = param(unit="rad", min=0.0, max=math.pi, default=0.0, doc="A, amplitude at the output")

    def __post_init__(self) -> None:
        if (self.hysteresis > 0.0) != (self.hysteresis_stiffness is not None):
            raise ValueError("a hysteresis has a torque and a stiffness; give hysteresis and hysteresis_stiffness")


def build(params: Params) -> BondGraph:
    n, k1, k3, amplitude = params.ratio, params.stiffness, params.hardening, params.error
    graph = BondGraph(ports={"input": "generator", "output": "torque"})
    graph.junction("generator", "1")
    graph.junction("torque", "0")
    graph.junction("twist", "1")
    ratio = 1.0 / n
    if amplitude:
        ratio = Law(lambda angle: 1.0 / n + 2.0 * amplitude * ops.cos(2.0 * angle), ("generator.displacement",))
    graph.add("teeth", TF("rotational", "rotational", ratio))
    graph.chain("generator", "teeth", "torque", "twist")
    if k3:
        torque = Law(lambda q: k1 * q + k3 * q * q * q, ("displacement",))
        energy = Law(lambda q: 0.5 * k1 * q * q + 0.25 * k3 * q * q * q * q, ("displacement",))
        graph.add("spring", C("rotational", torque, energy=energy))
    else:
        graph.add("spring", C("rotational", k1))
    graph.bond("twist", "spring")
    if params.damping:
        graph.add("damper", R("rotational", params.damping))
        graph.bond("twist", "damper")
    if params.hysteresis_stiffness is not None:
        slip = Law(lambda v, held: ops.abs(v) / params.hysteresis * held, ("body.flow", "stiffness.effort"))
        graph.include("hysteresis", bristles("rotational", params.hysteresis_stiffness, 0.0, slip))
        graph.bond("twist", "hysteresis.body")
    return graph
