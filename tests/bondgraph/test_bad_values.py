"""Values that no element and no component can have: refused in one line, in Python and in a file."""

import math
from collections.abc import Callable

import pytest

from cosim import Rig
from cosim.core.errors import InputError
from cosim.mechanics.bondgraph import GY, IC, TF, BondGraph, C, Element, I, Law, R, Se, Sf
from cosim.mechanics.bondgraph.components import dc_machine, friction, gear_stage, harmonic_drive
from cosim.mechanics.bondgraph.components._current_control import CurrentControl, Inverter, Overload
from cosim.mechanics.bondgraph.graph import GraphError
from tests.bondgraph.graphs import E, M, graph_of, refused_in_file
from tests.kit.messages import Said
from tests.kit.refusals import raised

ELEMENTS: dict[str, Element] = {
    "an inertia of 0": I(M, 0.0),
    "a negative inertia": I(E, -1e-3),
    "a stiffness of 0": C(M, 0.0),
    "a negative stiffness": C(M, -5.0),
    "a negative resistance": R(E, -0.5),
    "a resistance that is no number": R(E, math.nan),
    "an infinite effort": Se(E, math.inf),
    "an infinite flow": Sf(E, -math.inf),
    "an infinite ratio": TF(M, M, math.inf),
    "a ratio of 0": TF(M, M, 0.0),
    "a constant of 0": GY(E, M, 0.0),
    "a ratio of 0 by a law": TF(M, M, Law(lambda: 0.0)),
    "an initial state that is no number": C(M, 1.0, math.nan),
    "an initial state of a field": IC(
        ((E, "displacement"), (M, "displacement")), lambda q, x: q * q * x, (0.0, math.inf)
    ),
}


@pytest.mark.parametrize("case", ELEMENTS)
def test_an_element_is_refused_when_it_is_added(case: str, said: Said) -> None:
    refused = raised(GraphError, BondGraph().add, "item", ELEMENTS[case])
    said(refused)
    error = raised(GraphError, BondGraph({"item": ELEMENTS[case]}).checked)
    assert str(error) == str(refused)


def test_values_at_the_bounds_are_taken() -> None:
    graph = graph_of(r=R(E, 0.0), g=TF(M, M, -2.0), m=GY(E, M, -0.1), s=Se(E, -3.0))
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
TO_JOINT = "gear.output -> joint"
CLOSED = "gear.output -> far -> joint, near -> free -> far"
# what differs from the right rig
IN_A_FILE: dict[str, dict[str, str]] = {
    "an inertia of 0": {"element": "{type: I, domain: rotational, inertia: 0 kg*m^2}"},
    "a negative stiffness": {"element": "{type: C, domain: rotational, stiffness: -3 N*m/rad}"},
    "a negative resistance": {"element": "{type: R, domain: rotational, resistance: -1}"},
    "no number": {"element": "{type: R, domain: rotational, resistance: .nan}"},
    "a ratio of 0": {"element": "{type: TF, domain: rotational, ratio: 0}"},
    "a law that is 0": {"element": "{type: TF, domain: rotational, law: 0}"},
    "a law that divides by 0": {"law": "request / (2 - 2)"},
    "a law that is not finite": {"law": "request * log(-1)"},
    "a law that is too large": {"law": "10^400 * t"},
    "a junction without bonds": {"more": "gear.output -> far -> joint"},
    "a signal with the name of an output": {"more": CLOSED, "signal": "loss"},
    "a signal that is a number": {"more": CLOSED, "signal": "torque: 3, other"},
    "a signal of an unknown unit": {"own": "{half: {law: 0.5 * t, unit: rad/sec}}"},
    "gears that cannot move": {"more": "gear.output -> far -> joint, near -> free -> gear2.input, gear2.output -> far"},
    "a gear of ratio 0": {"component": "{type: gear_stage, ratio: 0}"},
    "a negative inertia of a component": {"component": "{type: gear_stage, ratio: 10, inertia: -1e-4}"},
    "a backlash wider than a turn": {"component": "{type: gear_stage, ratio: 10, stiffness: 100, backlash: 400 deg}"},
    "an efficiency above 1": {"component": "{type: gear_stage, ratio: 10, efficiency: 1.2}"},
    "an efficiency of 0": {"component": "{type: gear_stage, ratio: 10, efficiency: 0}"},
    "an efficiency above 1 in a table": {
        "component": "{type: gear_stage, ratio: 10, speeds: [1, 2], efficiencies: [0.7, 1.2]}"
    },
    "a friction that pushes": {"component": "{type: gear_stage, ratio: 10, coulomb: -2 N*m}"},
    "a ratio of a strain wave gear": {"component": "{type: harmonic_drive, ratio: 1, stiffness: 100}"},
    "a ring smaller than its sun": {"component": "{type: planetary, ring_ratio: 0.5}"},
    "an inductance of 0": {"component": "{type: dc_machine, resistance: 1, inductance: 0, torque_constant: 0.1}"},
    "no poles": {
        "component": "{type: pmsm, pole_pairs: 0, resistance: 1, inductance_d: 0.1, inductance_q: 0.1, flux: 0.1}"
    },
}


@pytest.mark.parametrize("case", IN_A_FILE)
def test_a_wrong_value_in_a_file_is_one_line(case: str, rig_of: Callable[..., Rig], said: Said) -> None:
    right = {"law": "request", "element": ITEM, "component": GEAR, "more": TO_JOINT, "signal": "torque", "own": "{}"}
    text = RIG.format(**{**right, **IN_A_FILE[case]})
    if "gear2" in text:
        text = text.replace("        bonds:", "          gear2: {type: gear_stage, ratio: 5}\n        bonds:")
    refused_in_file(rig_of, text, said)


@pytest.mark.parametrize("signal", ["supply.enery", "gear.energy", "rotor.energy"])
def test_a_recorded_signal_that_there_is_not_is_one_line(signal: str, sample: Callable[..., Rig], said: Said) -> None:
    setting = f"joints.drum.actuator.signals={{heat: {signal}}}"
    error = raised(InputError, sample, "drives/electromechanical", setting)
    assert str(error).startswith(f"--set {setting}: ")
    said(error)


OVERLOAD = Overload(2.0, 0.5)
PARAMETERS: dict[str, Callable[[], object]] = {
    "a machine without excitation": lambda: dc_machine.Params(0.5, 1e-3),
    "half a field winding": lambda: dc_machine.Params(0.5, 1e-3, excitation=0.1),
    "half a hysteresis": lambda: harmonic_drive.Params(50.0, 2e4, hysteresis=10.0),
    "less friction at rest": lambda: friction.Params(2.0, static=1.0),
    "backlash in a rigid mesh": lambda: gear_stage.Params(10.0, backlash=0.01),
    "a stage without a ratio": lambda: gear_stage.Params(0.0),
    "a stage that locks itself": lambda: gear_stage.Params(10.0, load_friction=1.0),
    "two frictions": lambda: gear_stage.Params(10.0, load_friction=0.1, efficiency=0.9),
    "one direction": lambda: gear_stage.Params(10.0, back_efficiency=0.9),
    "a table without speeds": lambda: gear_stage.Params(10.0, efficiencies=(0.8, 0.9)),
    "speeds that fall": lambda: gear_stage.Params(10.0, efficiencies=(0.8, 0.9), speeds=(2.0, 1.0)),
    "a lock that nothing holds": lambda: gear_stage.Params(10.0, efficiency=0.4),
    "stiction of a rigid mesh": lambda: gear_stage.Params(10.0, breakaway=1e-3),
    "damping of no bristles": lambda: gear_stage.Params(10.0, stiffness=1e4, damping=1.0, bristle_time=1e-3),
    "an overload without a peak": lambda: CurrentControl(overload=OVERLOAD),
    "an overload above its peak": lambda: CurrentControl(current_limit=1.5, overload=OVERLOAD),
    "a dead time of the whole period": lambda: Inverter(3e-5, 20e3, 48.0),
}


@pytest.mark.parametrize("case", PARAMETERS)
def test_parameters_that_do_not_fit_together(case: str, said: Said) -> None:
    said(raised(ValueError, PARAMETERS[case]))
