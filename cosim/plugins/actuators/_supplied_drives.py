"""Drives of several joints on one DC link, as one bond graph: their inverters take what they need from it.

    source ─▶ link ─┬─▶ inverter ─▶ motor ─▶ gears ─▶ joint
                    ├─▶ inverter ─▶ motor ─▶ gears ─▶ joint
                    └─▶ chopper

An averaged inverter is a transformer from the link of the voltage u to the voltages u_k of the motor's windings: it
draws i = Σ u_k i_k / u, so no power is lost or won. It gives at most what the link has,

    u_k = u*_k min(1, λ u / |u*|)

of the commanded voltages u*, with λ = 1 for full bridges and 1/√2 for three phases, whose voltages in the graph are
√(3/2) times their amplitude: u / √3, as by space-vector modulation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cosim.core import ops
from cosim.core.errors import SectionError
from cosim.core.types import Numeric
from cosim.mechanics.bondgraph import TF, BondGraph, Element, Law
from cosim.mechanics.bondgraph.components import _bridge, dc_link
from cosim.mechanics.bondgraph.graph import GraphError
from cosim.plugins.actuators import drive
from cosim.plugins.actuators._drive_doubts import doubts_of
from cosim.plugins.actuators._graph_actuator import INPUTS, GraphActuator

SUPPLY, TERMINALS = "supply", "terminals"
LOWEST_VOLTAGE = 1e-9  # V, of a link that gives none


@dataclass(frozen=True)
class SuppliedDrives:
    """A DC link, and the drives on it by joint."""

    link: dc_link.Params
    drives: Mapping[str, drive.Params]


def load_shared(params: SuppliedDrives, joints: Sequence[str]) -> GraphActuator:
    """Of drives that `check` has passed. Raises SectionError for a graph that cannot be."""
    graph = BondGraph()
    graph.include(SUPPLY, dc_link.build(params.link))
    recorded = {name.removeprefix("source."): f"{SUPPLY}.{name}" for name in dc_link.build(params.link).signals}
    moving = {}
    for number, joint in enumerate(joints):
        own, ratios = _drive(params.drives[joint], joint)
        graph.include(_inside(joint), own)
        graph.chain(f"{_inside(joint)}.link", f"{SUPPLY}.bus")
        graph.bond(f"{_inside(joint)}.shaft", joint)
        row = [1.0 if k == number else 0.0 for k in range(len(joints))]
        moving |= {f"{_inside(joint)}.{name}": [ratio * one for one in row] for name, ratio in ratios.items()}
        recorded |= {f"{joint}.{name}": f"{_inside(joint)}.{signal}" for name, signal in drive.recorded_of(own).items()}
    try:
        actuator = GraphActuator(params, graph, recorded, moving, {joint: f"{joint}." for joint in joints})
    except GraphError as error:
        raise SectionError(error.what, ()) from None
    doubts = {joint: doubts_of(params.drives[joint]) for joint in joints}
    actuator.doubts = tuple(f"joint '{joint}': {line}" for joint, lines in doubts.items() for line in lines)
    actuator.temperatures = {
        f"{joint}.{name}": limit
        for joint in joints
        for name, limit in drive.temperatures_of(params.drives[joint]).items()
    }
    return actuator


def check(params: drive.Params) -> None:
    """Raises InputError for a drive that cannot be on a supply."""
    drive.check(params)
    for key in ("loops", "open_loop"):
        if getattr(params, key) is not None:
            raise SectionError(f"a drive on a supply has continuous loops; take '{key}' or 'supply' out", (key,))
    if params.control.switching is not None:
        raise SectionError("an inverter on a supply is averaged; take it out", ("control", "inverter", "switched"))
    bridge = drive.bridge_of(params)
    if bridge is None or bridge.link_fraction is None:
        raise SectionError(f"a '{params.motor.type}' cannot be on a supply; use another motor", ("motor", "type"))


def _inside(joint: str) -> str:
    """The name of a drive in the graph, whose joint is a source of flow under its own name."""
    return f"drive_{joint}"


def _drive(params: drive.Params, joint: str) -> tuple[BondGraph, dict[str, float]]:
    """(a drive with the ports `link` and `shaft`, its inertias as of `drive.train`)"""
    alone, inverter, bridge = drive.controlled(params), params.control.inverter, drive.bridge_of(params)
    assert bridge is not None and bridge.link_fraction is not None  # `check` has seen to it
    _bridge.add_conduction(alone, bridge, inverter)
    motor = on_link(alone, bridge.link_fraction)
    _bridge.add_switching(motor, bridge, inverter, _bridge.meshes_of(alone), TERMINALS)
    graph, moving = drive.train(params, motor)
    graph.ports["link"] = "motor.link"
    graph.signals["supply_current"] = Law(lambda given: -given, ("motor.intake.flow",)), "A"
    if params.powers:
        taken = Law(lambda u, given: -u * given, (f"motor.{TERMINALS}.effort", "motor.intake.flow"))
        drive.add_powers(graph, taken)
    return with_inputs(graph, {name: f"{joint}.{name}" for name in INPUTS}), moving


def on_link(motor: BondGraph, fraction: float) -> BondGraph:
    """The motor with an inverter on a link, port `link`, in place of each source of a voltage by a law: junctions of
    the same names. fraction: λ."""
    commanded = _bridge.windings_of(motor)
    uses = tuple(dict.fromkeys(name for law in commanded.values() for name in law.uses))
    graph = replace(motor, elements=dict(motor.elements), bonds=list(motor.bonds), ports=dict(motor.ports))
    graph.junction(TERMINALS, "0")
    graph.junction("intake", "1")
    graph.chain(TERMINALS, "intake")
    graph.ports["link"] = "intake"
    for name in commanded:
        del graph.elements[name]
        graph.junction(name, "0")
        graph.add(f"bridge_of_{name}", TF("electrical", "electrical", _modulation(name, commanded, uses, fraction)))
        graph.chain(name, f"bridge_of_{name}", TERMINALS)
    return graph


def _modulation(name: str, commanded: Mapping[str, Law], uses: tuple[str, ...], fraction: float) -> Law:
    """u_k / u of the winding behind this source."""
    places = {of: [uses.index(signal) for signal in law.uses] for of, law in commanded.items()}

    def ratio(voltage: Numeric, *signals: Numeric) -> Numeric:
        wanted = {of: law.fn(*(signals[k] for k in places[of])) for of, law in commanded.items()}
        size = ops.abs(wanted[name]) if len(wanted) == 1 else ops.sqrt(ops.sum(u * u for u in wanted.values()) + 1e-24)
        return wanted[name] / ops.maximum(ops.maximum(voltage, size / fraction), LOWEST_VOLTAGE)

    return Law(ratio, (f"{TERMINALS}.effort", *uses))


def with_inputs(graph: BondGraph, names: Mapping[str, str]) -> BondGraph:
    """The graph with other names of inputs; names: old -> new."""

    def law(given: Law) -> Law:
        return Law(given.fn, tuple(names.get(signal, signal) for signal in given.uses))

    def renamed(element: Element) -> Element:
        laws = {
            key: law(value) for key in ("value", "energy", "inverse") if isinstance(value := getattr(element, key), Law)
        }
        return replace(element, **laws) if laws and element.kind != "IC" else element

    return replace(
        graph,
        elements={name: renamed(element) for name, element in graph.elements.items()},
        inputs={names.get(name, name): unit for name, unit in graph.inputs.items()},
        signals={name: (law(given), unit) for name, (given, unit) in graph.signals.items()},
    )
