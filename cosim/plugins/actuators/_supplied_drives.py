"""Drives of several joints on one DC link, as one bond graph: their inverters take what they need from it.

    source ─▶ link ─┬─▶ inverter ─▶ motor ─▶ gears ─▶ joint
                    ├─▶ inverter ─▶ motor ─▶ gears ─▶ joint
                    └─▶ chopper

An averaged inverter is a transformer from the link of the voltage u to the voltages u_k of the motor's windings: it
draws i = Σ u_k i_k / u, so no power is lost or won. The control of its currents knows u, and commands at most an
amplitude λ u of a phase (`CurrentControl.on_link`): λ = 1 of full bridges, 1/√3 of three phases, as by space-vector
modulation, and 1/2 of two legs to the middle of the link. Where more is wanted, by dead times or by voltages that were
held while the link sank, the modulation cuts it:

    u_k = u*_k min(1, u / u_needed(u*))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cosim.core import ops
from cosim.core.errors import SectionError
from cosim.core.types import Numeric
from cosim.mechanics.bondgraph import TF, BondGraph, Element, Law
from cosim.mechanics.bondgraph.components import _bridge, dc_link
from cosim.mechanics.bondgraph.components._current_control import LINK, TERMINALS
from cosim.mechanics.bondgraph.graph import GraphError
from cosim.plugins.actuators import drive
from cosim.plugins.actuators._drive_doubts import doubts_of
from cosim.plugins.actuators._graph_actuator import INPUTS, GraphActuator
from cosim.plugins.actuators._sampled_graph import DriveSampler, SampledGraph

SUPPLY = "supply"
LOWEST_SHARE = 0.01  # of the voltage of a link without load, below which its inverters fade out


@dataclass(frozen=True)
class SuppliedDrives:
    """A DC link, and the drives on it by joint."""

    link: dc_link.Params
    drives: Mapping[str, drive.Params]


def load_shared(params: SuppliedDrives, joints: Sequence[str]) -> GraphActuator:
    """Of drives that `check` has passed. Raises SectionError for a graph that cannot be."""
    graph = BondGraph()
    graph.include(SUPPLY, dc_link.link_of(params.link))
    recorded = {name.removeprefix("source."): f"{SUPPLY}.{name}" for name in dc_link.link_of(params.link).signals}
    moving, samplers = dict[str, list[float]](), dict[str, DriveSampler]()
    for number, joint in enumerate(joints):
        on = on_supply(params.drives[joint])
        own, ratios = _drive(on, joint, LOWEST_SHARE * params.link.source.params.nominal)
        if (sampler := drive.sampler_of(on)) is not None:
            samplers[joint] = sampler
        graph.include(_inside(joint), own)
        graph.chain(f"{_inside(joint)}.link", f"{SUPPLY}.bus")
        graph.bond(f"{_inside(joint)}.shaft", joint)
        row = [1.0 if k == number else 0.0 for k in range(len(joints))]
        moving |= {f"{_inside(joint)}.{name}": [ratio * one for one in row] for name, ratio in ratios.items()}
        recorded |= {f"{joint}.{name}": f"{_inside(joint)}.{signal}" for name, signal in drive.recorded_of(own).items()}
    try:
        named, inside = ({joint: f"{name(joint)}." for joint in joints} for name in (str, _inside))
        actuator = SampledGraph(params, graph, recorded, moving, samplers, named, inside)
    except GraphError as error:
        raise SectionError(error.what, ()) from None
    actuator.trips = tuple(limit._replace(state=f"{SUPPLY}.{limit.state}") for limit in params.link.trips)
    actuator.for_joint = {joint: drive.for_other_joints(params.drives[joint]) for joint in joints}
    doubts = {joint: doubts_of(params.drives[joint], None) for joint in joints}
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
    if params.control.switching is not None:
        what = "the ripple of an inverter is known on a constant voltage, not on a link that it loads itself"
        raise SectionError(f"{what}; take it or 'supply' out", ("control", "inverter", "switched"))
    if drive.bridge_of(params) is None:
        what = f"a '{params.motor.type}' does not name its BRIDGE, the inverter on the supply"
        raise SectionError(f"{what}; use another motor", ("motor", "type"))
    on = on_supply(params)
    drive.motor_of(on)
    drive.sampler_of(on)


def _inside(joint: str) -> str:
    """The name of a drive in the graph, whose joint is a source of flow under its own name."""
    return f"drive_{joint}"


def on_supply(params: drive.Params) -> drive.Params:
    """The drive with a control that knows its link."""
    return replace(params, control=params.control.on_link(_bridge_of(params).per_link))


def _bridge_of(params: drive.Params) -> _bridge.InverterBridge:
    bridge = drive.bridge_of(params)
    assert bridge is not None  # `check` has seen to it
    return bridge


def _drive(params: drive.Params, joint: str, lowest: float) -> tuple[BondGraph, dict[str, float]]:
    """(a drive with the ports `link` and `shaft`, its inertias as of `drive.train`); lowest: as of `on_link`."""
    inverter, bridge, alone = params.control.inverter, _bridge_of(params), drive.motor_of(params)
    _bridge.add_conduction(alone, bridge, inverter)
    motor = on_link(alone, bridge, lowest)
    _bridge.add_switching(motor, bridge, inverter, _bridge.meshes_of(alone), TERMINALS)
    graph, moving = drive.train(params, motor)
    graph.ports["link"] = "motor.link"
    graph.signals["supply_current"] = Law(lambda given: -given, ("motor.intake.flow",)), "A"
    if params.powers:
        taken = Law(lambda u, given: -u * given, (f"motor.{TERMINALS}.effort", "motor.intake.flow"))
        drive.add_powers(graph, taken)
    return with_inputs(graph, {name: f"{joint}.{name}" for name in (*INPUTS, *graph.inputs)}), moving


def on_link(motor: BondGraph, bridge: _bridge.InverterBridge, lowest: float) -> BondGraph:
    """The motor with an inverter on a link, port `link`, in place of each source of a voltage by a law: junctions of
    the same names. lowest: voltage of the link [V] below which the inverter fades out, so that it cannot draw the link
    below 0."""
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
        graph.add(
            f"bridge_of_{name}", TF("electrical", "electrical", _modulation(name, commanded, uses, bridge, lowest))
        )
        graph.chain(name, f"bridge_of_{name}", TERMINALS)
    return graph


def _modulation(
    name: str, commanded: Mapping[str, Law], uses: tuple[str, ...], bridge: _bridge.InverterBridge, lowest: float
) -> Law:
    """u_k / u of the winding behind this source."""
    places = {of: [uses.index(signal) for signal in law.uses] for of, law in commanded.items()}

    def ratio(voltage: Numeric, *signals: Numeric) -> Numeric:
        wanted = {of: law.fn(*(signals[k] for k in places[of])) for of, law in commanded.items()}
        needed = bridge.needed([*wanted.values()])
        return wanted[name] / ops.maximum(ops.maximum(voltage, needed), lowest)

    return Law(ratio, (LINK, *uses))


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
