"""A strain wave gear: a ratio, a torsion spring that hardens, and the kinematic error of the teeth.

    M = k_1 φ + k_3 φ³ + b φ̇,   φ = θ_in / N + A sin(2 θ_in) − θ_out

The kinematic error A sin(2 θ_in) has two waves per turn of the wave generator (Tuttle and Seering, IEEE Trans. Robotics
and Automation 12(3), 1996). It belongs to the ratio, ω_out = (1 / N + 2 A cos 2 θ_in) ω_in, which conserves power.

Ports: `input`, from a 1-junction (the wave generator); `output`, to a 1-junction.
"""

from __future__ import annotations

import math

from cosim import ops
from cosim.bondgraph import TF, BondGraph, C, Law, R
from cosim.types import param, params


@params
class Params:
    ratio: float = param(unit="1", above=1.0, doc="N, turns of the wave generator per turn of the output")
    stiffness: float = param(unit="N*m/rad", above=0.0, doc="k_1, at the output")
    hardening: float = param(unit="1", min=0.0, default=0.0, doc="k_3 [N·m/rad³], at the output")
    damping: float = param(unit="N*m*s/rad", min=0.0, default=0.0, doc="b, at the output")
    error: float = param(unit="rad", min=0.0, max=math.pi, default=0.0, doc="A, amplitude at the output")


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
    return graph
