"""Values that no element and no component can have: refused in one line, in Python and in a file."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from cosim import load_rig
from cosim.bondgraph import GY, IC, TF, BondGraph, C, Element, I, Law, R, Se, Sf, assemble
from cosim.bondgraph.graph import GraphError
from cosim.errors import InputError
from tests.kit.samples import FOLDER

E, M = "electrical", "rotational"

ELEMENTS: dict[str, tuple[Element, str]] = {
    "an inertia of 0": (I(M, 0.0), "elements.item.inertia: must be above 0 kg*m^2, is 0 kg*m^2"),
    "a negative inertia": (I(E, -1e-3), "elements.item.inertia: must be above 0 H, is -0.001 H"),
    "a stiffness of 0": (C(M, 0.0), "elements.item.stiffness: must be above 0 N*m/rad, is 0 N*m/rad"),
    "a negative stiffness": (C(M, -5.0), "elements.item.stiffness: must be above 0 N*m/rad, is -5 N*m/rad"),
    "a negative resistance": (R(E, -0.5), "elements.item.resistance: must be at least 0 ohm, is -0.5 ohm"),
    "a resistance that is no number": (R(E, math.nan), "elements.item.resistance: must be finite, is nan"),
    "an infinite effort": (Se(E, math.inf), "elements.item.effort: must be finite, is inf"),
    "an infinite flow": (Sf(E, -math.inf), "elements.item.flow: must be finite, is -inf"),
    "an infinite ratio": (TF(M, M, math.inf), "elements.item.ratio: must be finite, is inf"),
    "a ratio of 0": (
        TF(M, M, 0.0),
        "elements.item.ratio: a transformer whose ratio is 0 transmits nothing; give another one",
    ),
    "a constant of 0": (
        GY(E, M, 0.0),
        "elements.item.constant: a gyrator whose constant is 0 transmits nothing; give another one",
    ),
    "a ratio of 0 by a law": (
        TF(M, M, Law(lambda: 0.0)),
        "elements.item.ratio: a transformer whose ratio is 0 transmits nothing; give another one",
    ),
    "an initial state that is no number": (C(M, 1.0, math.nan), "elements.item.initial: must be finite, is nan"),
    "an initial state of a field": (
        IC(((E, "displacement"), (M, "displacement")), lambda q, x: q * q * x, (0.0, math.inf)),
        "elements.item.initial: must be finite, is [ 0. inf]",
    ),
}


@pytest.mark.parametrize("case", ELEMENTS)
def test_an_element_is_refused_when_it_is_added(case: str) -> None:
    element, message = ELEMENTS[case]
    with pytest.raises(GraphError) as raised:
        BondGraph().add("item", element)
    assert str(raised.value) == message
    graph = BondGraph()
    graph.elements["item"] = element
    with pytest.raises(GraphError) as raised:
        graph.checked()
    assert str(raised.value) == message


def test_values_at_the_bounds_are_taken() -> None:
    graph = BondGraph()
    for name, element in {"r": R(E, 0.0), "g": TF(M, M, -2.0), "m": GY(E, M, -0.1), "s": Se(E, -3.0)}.items():
        graph.add(name, element)
    assert [element.value for element in graph.elements.values()] == [0.0, -2.0, -0.1, -3.0]


RIG = """
mechanism:
  bodies:
    - {{name: load, joint: hinge, axis: [0, 0, 1], mass: 10 kg, inertia: [1, 1, 1]}}
joints:
  hinge:
    actuator:
      type: bond_graph
      graph:
        junctions: {{near: 1, far: 1, free: 0}}
        elements:
          supply: {{type: Se, domain: rotational, law: {law}}}
          item: {element}
        components:
          gear: {component}
        bonds: [supply -> near -> item, near -> gear.input, {more}]
        signals: {own}
      signals: {{{signal}: supply.effort}}
schedule: {{step: 1 ms, duration: 10 ms}}
"""
GEAR = "{type: gear_stage, ratio: 10}"
ITEM = "{type: I, domain: rotational, inertia: 0.1}"
ACTUATOR = "joints.hinge.actuator"
TO_JOINT = "gear.output -> joint"
CLOSED = "gear.output -> far -> joint, near -> free -> far"
# what differs from the right rig, line, key and message
IN_A_FILE: dict[str, tuple[dict[str, str], str]] = {
    "an inertia of 0": (
        {"element": "{type: I, domain: rotational, inertia: 0 kg*m^2}"},
        "13 {graph}.elements.item.inertia: must be above 0 kg*m^2, is 0 kg*m^2",
    ),
    "a negative stiffness": (
        {"element": "{type: C, domain: rotational, stiffness: -3 N*m/rad}"},
        "13 {graph}.elements.item.stiffness: must be above 0 N*m/rad, is -3 N*m/rad",
    ),
    "a negative resistance": (
        {"element": "{type: R, domain: rotational, resistance: -1}"},
        "13 {graph}.elements.item.resistance: must be at least 0 N*m*s/rad, is -1 N*m*s/rad",
    ),
    "no number": (
        {"element": "{type: R, domain: rotational, resistance: .nan}"},
        "13 {graph}.elements.item.resistance: must be a finite number, is nan",
    ),
    "a ratio of 0": (
        {"element": "{type: TF, domain: rotational, ratio: 0}"},
        "13 {graph}.elements.item.ratio: a transformer whose ratio is 0 transmits nothing; give another one",
    ),
    "a law that is 0": (
        {"element": "{type: TF, domain: rotational, law: 0}"},
        "13 {graph}.elements.item.ratio: a transformer whose ratio is 0 transmits nothing; give another one",
    ),
    "a law that divides by 0": (
        {"law": "request / (2 - 2)"},
        "12 {graph}.elements.supply.law: 'request / (2 - 2)' divides by 0",
    ),
    "a law that is not finite": (
        {"law": "request * log(-1)"},
        "12 {graph}.elements.supply.law: 'log(-1)' is not finite",
    ),
    "a law that is too large": ({"law": "10^400 * t"}, "12 {graph}.elements.supply.law: '10 ** 400' is not finite"),
    "a junction without bonds": (
        {"more": "gear.output -> far -> joint"},
        "10 {graph}.junctions.free: a junction joins two bonds or more, not 0; add bonds, or take it out",
    ),
    "a signal with the name of an output": (
        {"more": CLOSED, "signal": "loss"},
        "18 {actuator}.signals.loss: there is an output of this name already; give the signal another one",
    ),
    "a signal that is a number": (
        {"more": CLOSED, "signal": "torque: 3, other"},
        "18 {actuator}.signals.torque: expected the name of a signal, such as winding.flow",
    ),
    "a signal of an unknown unit": (
        {"own": "{half: {law: 0.5 * t, unit: rad/sec}}"},
        "17 {graph}.signals.half.unit: there is no unit 'rad/sec'; did you mean 'rad/s'?",
    ),
    "gears that cannot move": (
        {"more": "gear.output -> far -> joint, near -> free -> gear2.input, gear2.output -> far"},
        "15 {graph}.components.gear.ratio: causal conflict: 'gear.ratio' and 'gear2.ratio' close a rigid loop; take one"
        " out, or make one elastic with a compliance",
    ),
    "a gear of ratio 0": (
        {"component": "{type: gear_stage, ratio: 0}"},
        "15 {graph}.components.gear: a ratio of 0 transmits nothing; give turns of the input per turn of the output",
    ),
    "a negative inertia of a component": (
        {"component": "{type: gear_stage, ratio: 10, inertia: -1e-4}"},
        "15 {graph}.components.gear.inertia: must be at least 0 kg*m^2, is -0.0001 kg*m^2",
    ),
    "a backlash wider than a turn": (
        {"component": "{type: gear_stage, ratio: 10, stiffness: 100, backlash: 400 deg}"},
        "15 {graph}.components.gear.backlash: must be at most 6.28318530718 rad, is 6.98131700798 rad",
    ),
    "an efficiency above 1": (
        {"component": "{type: gear_stage, ratio: 10, efficiency: 1.2}"},
        "15 {graph}.components.gear.efficiency: must be at most 1, is 1.2",
    ),
    "an efficiency of 0": (
        {"component": "{type: gear_stage, ratio: 10, efficiency: 0}"},
        "15 {graph}.components.gear.efficiency: must be above 0, is 0",
    ),
    "an efficiency above 1 in a table": (
        {"component": "{type: gear_stage, ratio: 10, speeds: [1, 2], efficiencies: [0.7, 1.2]}"},
        "15 {graph}.components.gear.efficiencies[1]: must be at most 1, is 1.2",
    ),
    "a friction that pushes": (
        {"component": "{type: gear_stage, ratio: 10, coulomb: -2 N*m}"},
        "15 {graph}.components.gear.coulomb: must be at least 0 N*m, is -2 N*m",
    ),
    "a ratio of a strain wave gear": (
        {"component": "{type: harmonic_drive, ratio: 1, stiffness: 100}"},
        "15 {graph}.components.gear.ratio: must be above 1, is 1",
    ),
    "a ring smaller than its sun": (
        {"component": "{type: planetary, ring_ratio: 0.5}"},
        "15 {graph}.components.gear.ring_ratio: must be above 1, is 0.5",
    ),
    "an inductance of 0": (
        {"component": "{type: dc_machine, resistance: 1, inductance: 0, torque_constant: 0.1}"},
        "15 {graph}.components.gear.inductance: must be above 0 H, is 0 H",
    ),
    "no poles": (
        {"component": "{type: pmsm, pole_pairs: 0, resistance: 1, inductance_d: 0.1, inductance_q: 0.1, flux: 0.1}"},
        "15 {graph}.components.gear.pole_pairs: must be at least 1, is 0",
    ),
}


@pytest.mark.parametrize("case", IN_A_FILE)
def test_a_wrong_value_in_a_file_is_one_line(case: str, tmp_path: Path) -> None:
    changed, message = IN_A_FILE[case]
    right = {"law": "request", "element": ITEM, "component": GEAR, "more": TO_JOINT, "signal": "torque", "own": "{}"}
    text = RIG.format(**{**right, **changed})
    if "gear2" in text:
        text = text.replace("        bonds:", "          gear2: {type: gear_stage, ratio: 5}\n        bonds:")
    file = tmp_path / "rig.yaml"
    file.write_text(text)
    with pytest.raises(InputError) as raised:
        load_rig(file)
    line = str(raised.value).splitlines()[0]
    assert line == f"{file}:{message.format(actuator=ACTUATOR, graph=f'{ACTUATOR}.graph')}"


ENERGIES = {
    "supply.enery": "there is no signal 'supply.enery'; did you mean 'supply.energy'?",
    "gear.energy": "'gear' neither stores nor dissipates energy; record that of a storage, a resistance or a source",
    "rotor.energy": "'rotor' neither stores nor dissipates energy; record that of a storage, a resistance or a source",
}


@pytest.mark.parametrize("signal", ENERGIES)
def test_a_recorded_signal_that_there_is_not_is_one_line(signal: str) -> None:
    setting = f"joints.drum.actuator.signals={{heat: {signal}}}"
    with pytest.raises(InputError) as raised:
        load_rig(FOLDER / "drives" / "electromechanical.yaml", [setting])
    assert str(raised.value).splitlines() == [f"--set {setting}: {ENERGIES[signal]}"]


def test_heat_has_no_energy_of_its_own() -> None:
    graph = BondGraph()
    for name, element in {"warm": Se("thermal", 5.0), "sink": R("thermal", 1.0)}.items():
        graph.add(name, element)
    graph.bond("warm", "sink")
    with pytest.raises(GraphError) as raised:
        assemble(graph, [("sink.energy", "warm")])
    assert raised.value.what == "effort times flow of 'sink' is no power; record its displacement or its flow"
