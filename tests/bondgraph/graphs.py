"""Small bond graphs of several tests."""

from __future__ import annotations

from cosim import ops
from cosim.bondgraph import GY, TF, BondGraph, C, I, Law, R, Se

LENGTHS, MASSES = (0.5, 0.4), (2.0, 1.5)
FIRST_MASS = 0.3  # m from the first joint


def given(name: str) -> Law:
    """The value of an input."""
    return Law(lambda value: value, (name,))


def motor(resistance: float = 0.5, inductance: float = 1e-3, constant: float = 0.1, inertia: float = 1e-3) -> BondGraph:
    """A DC motor on a voltage, with viscous friction; the shaft is a port."""
    graph = BondGraph(inputs={"voltage": "V"}, ports={"shaft": "rotor"})
    graph.junction("armature", "1")
    graph.junction("rotor", "1")
    graph.add("supply", Se("electrical", given("voltage")))
    graph.add("winding", I("electrical", inductance))
    graph.add("resistance", R("electrical", resistance))
    graph.add("motor", GY("electrical", "rotational", constant))
    graph.add("inertia", I("rotational", inertia))
    graph.add("friction", R("rotational", 1e-4))
    graph.chain("supply", "armature", "winding")
    graph.chain("armature", "motor", "rotor", "inertia")
    graph.bond("armature", "resistance")
    graph.bond("rotor", "friction")
    return graph


def geared_motor(ratio: float = 0.1, load: float = 2.0) -> BondGraph:
    """The motor with an inertia behind a rigid gear."""
    graph = motor()
    graph.add("gear", TF("rotational", "rotational", ratio))
    graph.junction("shaft", "1")
    graph.add("load", I("rotational", load))
    graph.chain("rotor", "gear", "shaft", "load")
    return graph


def manipulator() -> BondGraph:
    """Two point masses in a horizontal plane on two joints with relative angles."""
    graph = BondGraph(inputs={"torque_1": "N*m", "torque_2": "N*m"})
    angles = ("joint_1.displacement", "joint_2.displacement")
    for k in (1, 2):
        graph.junction(f"joint_{k}", "1", "rotational")
        graph.add(f"drive_{k}", Se("rotational", given(f"torque_{k}")))
        graph.bond(f"drive_{k}", f"joint_{k}")
    (l1, l2), s, c = LENGTHS, ops.sin, ops.cos
    velocities = {
        "x1": (MASSES[0], {1: lambda a, b: -FIRST_MASS * s(a)}),
        "y1": (MASSES[0], {1: lambda a, b: FIRST_MASS * c(a)}),
        "x2": (MASSES[1], {1: lambda a, b: -l1 * s(a) - l2 * s(a + b), 2: lambda a, b: -l2 * s(a + b)}),
        "y2": (MASSES[1], {1: lambda a, b: l1 * c(a) + l2 * c(a + b), 2: lambda a, b: l2 * c(a + b)}),
    }
    for name, (mass, by_joint) in velocities.items():
        graph.junction(name, "1")
        graph.junction(f"sum_{name}", "0")
        graph.add(f"mass_{name}", I("translational", mass))
        graph.chain(f"sum_{name}", name, f"mass_{name}")
        for k, partial in by_joint.items():
            graph.add(f"{name}_by_{k}", TF("rotational", "translational", Law(partial, angles)))
            graph.chain(f"joint_{k}", f"{name}_by_{k}", f"sum_{name}")
    return graph


def ladder(count: int) -> BondGraph:
    """A shaft of `count` inertias and springs: 4 elements each."""
    graph = BondGraph(inputs={"torque": "N*m"})
    graph.add("drive", Se("rotational", given("torque")))
    last = "drive"
    for k in range(count):
        graph.junction(f"speed_{k}", "1")
        graph.junction(f"torque_{k}", "0")
        graph.add(f"inertia_{k}", I("rotational", 1.0 + k))
        graph.add(f"spring_{k}", C("rotational", 100.0 + k))
        graph.chain(last, f"speed_{k}", f"inertia_{k}")
        graph.chain(f"speed_{k}", f"torque_{k}", f"spring_{k}")
        last = f"torque_{k}"
    graph.add("end", R("rotational", 1.0))
    graph.bond(last, "end")
    return graph
