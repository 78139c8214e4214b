"""Small bond graphs of several tests."""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from cosim import Rig
from cosim.core import ops
from cosim.core.errors import InputError
from cosim.mechanics.bondgraph import GY, TF, BondGraph, C, Element, I, Law, R, Se
from tests.kit.messages import Said
from tests.kit.refusals import raised

LENGTHS, MASSES = (0.5, 0.4), (2.0, 1.5)
FIRST_MASS = 0.3  # m from the first joint
E, M, T = "electrical", "rotational", "translational"


def given(name: str) -> Law:
    """The value of an input."""
    return Law(lambda value: value, (name,))


def graph_of(*chains: str, inputs: Mapping[str, str] = MappingProxyType({}), **parts: Any) -> BondGraph:
    """chains: `a -> b -> c`. parts: elements, components (graphs) and junctions by their kind, `0` or `1`."""
    graph = BondGraph(inputs=dict(inputs))
    for name, part in parts.items():
        if isinstance(part, BondGraph):
            graph.include(name, part)
        elif isinstance(part, Element):
            graph.add(name, part)
        else:
            graph.junction(name, part)
    for chain in chains:
        graph.chain(*chain.split(" -> "))
    return graph


def motor(resistance: float = 0.5, inductance: float = 1e-3, constant: float = 0.1, inertia: float = 1e-3) -> BondGraph:
    """A DC motor on a voltage, with viscous friction; the shaft is a port."""
    graph = graph_of(
        *("supply -> armature -> winding", "armature -> motor -> rotor -> inertia"),
        *("armature -> resistance", "rotor -> friction"),
        inputs={"voltage": "V"},
        armature="1",
        rotor="1",
        supply=Se(E, given("voltage")),
        winding=I(E, inductance),
        resistance=R(E, resistance),
        motor=GY(E, M, constant),
        inertia=I(M, inertia),
        friction=R(M, 1e-4),
    )
    graph.ports["shaft"] = "rotor"
    return graph


def geared_motor(ratio: float = 0.1, load: float = 2.0) -> BondGraph:
    """The motor with an inertia behind a rigid gear."""
    graph = motor()
    graph.add("gear", TF(M, M, ratio))
    graph.junction("shaft", "1")
    graph.add("load", I(M, load))
    graph.chain("rotor", "gear", "shaft", "load")
    return graph


def manipulator() -> BondGraph:
    """Two point masses in a horizontal plane on two joints with relative angles."""
    graph = BondGraph(inputs={"torque_1": "N*m", "torque_2": "N*m"})
    angles = ("joint_1.displacement", "joint_2.displacement")
    for k in (1, 2):
        graph.junction(f"joint_{k}", "1", M)
        graph.add(f"drive_{k}", Se(M, given(f"torque_{k}")))
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
        graph.add(f"mass_{name}", I(T, mass))
        graph.chain(f"sum_{name}", name, f"mass_{name}")
        for k, partial in by_joint.items():
            graph.add(f"{name}_by_{k}", TF(M, T, Law(partial, angles)))
            graph.chain(f"joint_{k}", f"{name}_by_{k}", f"sum_{name}")
    return graph


def ladder(count: int) -> BondGraph:
    """A shaft of `count` inertias and springs: 4 elements each."""
    graph = graph_of(inputs={"torque": "N*m"}, drive=Se(M, given("torque")))
    last = "drive"
    for k in range(count):
        graph.junction(f"speed_{k}", "1")
        graph.junction(f"torque_{k}", "0")
        graph.add(f"inertia_{k}", I(M, 1.0 + k))
        graph.add(f"spring_{k}", C(M, 100.0 + k))
        graph.chain(last, f"speed_{k}", f"inertia_{k}")
        graph.chain(f"speed_{k}", f"torque_{k}", f"spring_{k}")
        last = f"torque_{k}"
    graph.add("end", R(M, 1.0))
    graph.bond(last, "end")
    return graph


def refused_in_file(rig_of: Callable[..., Rig], text: str, said: Said) -> None:
    """The rig of a text is refused, in a line with its place there."""
    line = str(raised(InputError, rig_of, text)).splitlines()[0]
    assert re.search(r"rig\.yaml:\d+ joints\.\w+\.actuator\.", line)
    said(line)
