"""Bond graphs of the tests, each with the outputs that it is derived for."""

from __future__ import annotations

from cosim.core import ops
from cosim.mechanics.bondgraph import GY, IC, TF, Assembly, BondGraph, C, I, Law, R, Se, Sf, assemble
from tests.kit.given import beside

GIVEN = beside(__file__)

# a motor on a rigid gear: its rotor is in derivative causality
RIG = GIVEN["rig"]
VOLTAGE = Law(lambda request: request / 5.0, ("request",))


def motor() -> Assembly:
    """A motor with an inertia that drives a mass through a rigid gear: the load is in derivative causality."""
    graph = BondGraph(inputs={"request": "V"})
    graph.junction("armature", "1")
    graph.junction("shaft", "1")
    graph.junction("carriage", "1")
    graph.add("supply", Se("electrical", VOLTAGE))
    graph.add("winding", I("electrical", 0.9e-3))
    graph.add("resistance", R("electrical", 0.5))
    graph.add("motor", GY("electrical", "rotational", 0.05))
    graph.add("rotor", I("rotational", 1e-5))
    graph.add("pinion", TF("rotational", "translational", 0.02))
    graph.add("load", I("translational", 3.0))
    graph.add("drag", R("translational", 2.0))
    graph.chain("supply", "armature", "motor", "shaft", "pinion", "carriage", "load")
    graph.bond("armature", "winding")
    graph.bond("armature", "resistance")
    graph.bond("shaft", "rotor")
    graph.bond("carriage", "drag")
    return assemble(graph)


def divider() -> Assembly:
    """A voltage divider with a capacitor behind it: two resistances in an algebraic loop."""
    graph = BondGraph(inputs={})
    for name, kind in (("mesh", "1"), ("middle", "0"), ("branch", "1")):
        graph.junction(name, kind)
    graph.add("supply", Se("electrical", 12.0))
    graph.add("upper", R("electrical", 100.0))
    graph.add("lower", R("electrical", 220.0))
    graph.add("series", R("electrical", 50.0))
    graph.add("capacitor", C("electrical", 1e6))
    graph.signals["heat"] = Law(lambda e, f: e * f, ("upper.effort", "upper.flow")), "W"
    graph.chain("supply", "mesh", "middle", "branch", "capacitor")
    graph.bond("mesh", "upper")
    graph.bond("middle", "lower")
    graph.bond("branch", "series")
    return assemble(graph)


def pendulum() -> Assembly:
    """A point mass on a rod in Cartesian velocities: ratios that depend on the angle, one coordinate."""
    graph = BondGraph(inputs={"torque": "N*m"})
    graph.junction("angle", "1")
    graph.add("drive", Se("rotational", Law(lambda torque: torque, ("torque",))))
    graph.bond("drive", "angle")
    for axis, ratio in (("x", lambda q: 0.7 * ops.cos(q)), ("z", lambda q: -0.7 * ops.sin(q))):
        graph.junction(f"along_{axis}", "1")
        graph.add(f"to_{axis}", TF("rotational", "translational", Law(ratio, ("angle.displacement",))))
        graph.add(f"mass_{axis}", I("translational", 2.0))
        graph.chain("angle", f"to_{axis}", f"along_{axis}", f"mass_{axis}")
    graph.add("weight", Se("translational", -19.62))
    graph.bond("weight", "along_z")
    return assemble(graph)


def hydraulic() -> Assembly:
    """A pump, an orifice by a law of pressure, a line with inertia, an accumulator and a cylinder on a mass."""
    graph = BondGraph(inputs={"speed": "rad/s"})
    for name, kind in (("port", "0"), ("line", "1"), ("chamber", "0"), ("rod", "1")):
        graph.junction(name, kind)
    graph.add("pump", Sf("hydraulic", Law(lambda speed: 2e-6 * speed, ("speed",))))
    graph.add("leak", R("hydraulic", Law(lambda p: ops.where(p > 1e5, 1e-9 * (p - 1e5), 0.0), ("effort",))))
    graph.add("supply_hose", C("hydraulic", 2e12))
    graph.add("oil", I("hydraulic", 1e7))
    graph.add("laminar", R("hydraulic", 3e8))
    graph.add("compressibility", C("hydraulic", 5e12))
    graph.add("cylinder", TF("hydraulic", "translational", 500.0))
    graph.add("piston", I("translational", 60.0))
    graph.add("load", Se("translational", -1500.0))
    graph.chain("pump", "port", "line", "chamber", "cylinder", "rod", "piston")
    for tail, head in (
        ("port", "leak"), ("port", "supply_hose"), ("line", "oil"), ("line", "laminar"),
        ("chamber", "compressibility"), ("load", "rod"),
    ):  # fmt: skip
        graph.bond(tail, head)
    return assemble(graph)


def relay() -> Assembly:
    """An electromagnet: a coil and an armature that share the energy of the field in the gap."""
    graph = BondGraph(inputs={"voltage": "V"})
    graph.junction("coil", "1")
    graph.junction("armature", "1")
    graph.add("supply", Se("electrical", Law(lambda voltage: voltage, ("voltage",))))
    graph.add("resistance", R("electrical", 4.0))
    ports = (("electrical", "momentum"), ("translational", "displacement"))
    graph.add("field", IC(ports, lambda flux, gap: flux * flux * (0.01 + gap), (0.0, 0.02)))
    graph.add("mass", I("translational", 0.2))
    graph.add("spring", C("translational", 300.0))
    graph.chain("supply", "coil", "field")
    graph.chain("armature", "field")
    graph.bond("coil", "resistance")
    graph.bond("armature", "mass")
    graph.bond("armature", "spring")
    return assemble(graph)


def manipulator() -> Assembly:
    """A planar arm with two angles and a point mass, gravity along z: bonds that close loops."""
    graph = BondGraph(inputs={"torque_1": "N*m", "torque_2": "N*m"})
    for k in (1, 2):
        graph.junction(f"angle_{k}", "1")
        graph.add(f"drive_{k}", Se("rotational", Law(lambda torque: torque, (f"torque_{k}",))))
        graph.add(f"rotor_{k}", I("rotational", 0.02 * k))
        graph.bond(f"drive_{k}", f"angle_{k}")
        graph.bond(f"angle_{k}", f"rotor_{k}")
    for axis, function, sign in (("x", ops.cos, 1.0), ("z", ops.sin, -1.0)):
        graph.junction(axis, "0")
        graph.junction(f"along_{axis}", "1")
        graph.add(f"mass_{axis}", I("translational", 1.5))
        graph.chain(axis, f"along_{axis}", f"mass_{axis}")
        for k in (1, 2):
            law = Law(lambda q, of=function, s=sign: 0.4 * s * of(q), (f"angle_{k}.displacement",))
            graph.add(f"link_{k}_{axis}", TF("rotational", "translational", law))
            graph.chain(f"angle_{k}", f"link_{k}_{axis}", axis)
    graph.add("weight", Se("translational", -14.7))
    graph.bond("weight", "along_z")
    return assemble(graph)


def stage() -> BondGraph:
    """An elastic gear stage with friction, a component."""
    graph = BondGraph(ports={"input": "twist", "output": "shaft"})
    for name, kind in (("twist", "0"), ("mesh", "1"), ("wheel", "1"), ("shaft", "1")):
        graph.junction(name, kind)
    graph.add("stiffness", C("rotational", 2e3))
    graph.add("damping", R("rotational", 0.4))
    graph.add("ratio", TF("rotational", "rotational", 0.2))
    graph.add("inertia", I("rotational", 3e-5))
    graph.add("friction", R("rotational", Law(lambda f: 0.1 * ops.tanh(f / 0.1), ("flow",))))
    graph.chain("twist", "mesh", "stiffness")
    graph.chain("twist", "wheel", "ratio", "shaft", "friction")
    graph.bond("wheel", "inertia")
    graph.bond("mesh", "damping")
    return graph


def train() -> Assembly:
    """A motor on three gear stages: a long graph with components."""
    graph = BondGraph(inputs={"voltage": "V"})
    graph.junction("armature", "1")
    graph.junction("rotor_shaft", "1")
    graph.add("supply", Se("electrical", Law(lambda voltage: voltage, ("voltage",))))
    graph.add("winding", I("electrical", 2e-3))
    graph.add("resistance", R("electrical", 0.8))
    graph.add("motor", GY("electrical", "rotational", 0.08))
    graph.add("rotor", I("rotational", 4e-5))
    graph.add("load", I("rotational", 0.3))
    for k in (1, 2, 3):
        graph.include(f"stage_{k}", stage())
    graph.chain("supply", "armature", "motor", "rotor_shaft", "stage_1.input")
    graph.bond("stage_1.output", "stage_2.input")
    graph.bond("stage_2.output", "stage_3.input")
    graph.bond("stage_3.output", "load")
    graph.bond("armature", "winding")
    graph.bond("armature", "resistance")
    graph.bond("rotor_shaft", "rotor")
    return assemble(graph)


GRAPHS = {
    "relay": relay,
    "motor": motor,
    "divider": divider,
    "pendulum": pendulum,
    "hydraulic": hydraulic,
    "train": train,
    "manipulator": manipulator,
}
