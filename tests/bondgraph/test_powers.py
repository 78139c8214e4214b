"""Powers of drives by part: their sum is the balance of energy of the run, and each follows its law."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cosim import Rig
from cosim.core.errors import InputErrors
from cosim.mechanics.bondgraph.components._bridge import THREE_PHASES
from cosim.mechanics.bondgraph.components._current_control import PHASES, Inverter
from tests.kit.messages import Said
from tests.kit.refusals import raised

BODY = {"name": "load", "joint": "axis", "axis": [0, 0, 1], "mass": 1, "inertia": [1, 1, 0.2], "com": [0.1, 0, 0]}
DC = {"type": "dc_machine", "resistance": 0.8, "inductance": 3e-3, "torque_constant": 0.6, "inertia": 4e-3}
PMSM = {
    "type": "pmsm", "pole_pairs": 4, "resistance": 0.5, "inductance_d": 2e-3, "inductance_q": 3e-3, "flux": 0.1,
    "inertia": 4e-3, "viscous": 1e-3,
}  # fmt: skip
STEPPER = {
    "type": "stepper", "teeth": 10, "resistance": 0.8, "inductance": 3e-3, "torque_constant": 0.6, "inertia": 4e-3,
    "coulomb": 0.02, "load_friction": 0.02,
}  # fmt: skip
IRON = {"hysteresis": 0.05, "eddy": 2e-3}
CONTROL = {"bandwidth": 200, "current_limit": 20}
INVERTER = {
    "dead_time": "1 us", "switching_frequency": "16 kHz", "supply_voltage": 300, "on_voltage": 0.9,
    "on_resistance": "20 mohm", "switching_time": "0.1 us",
}  # fmt: skip
LOSSY = [{"ratio": 5, "stiffness": 4000, "damping": 1, "inertia": 1e-3, "load_friction": 0.05}]
STICTION = {"coulomb": 2, "static": 3, "viscous": 0.5, "bristle_stiffness": 3000, "bristle_damping": 5}
ELASTIC_MOTOR = {
    "type": "dc_motor", "resistance": 0.8, "inductance": 3e-3, "torque_constant": 0.6, "rotor_inertia": 4e-3,
    "ratio": 5, "efficiency": 0.8, "coulomb": 1, "viscous": 0.3,
}  # fmt: skip
DRIVES: dict[str, dict[str, Any]] = {
    "dc_motor": ELASTIC_MOTOR,
    "dc_motor, elastic": {**ELASTIC_MOTOR, "stiffness": 5000, "damping": 5},
    "rigid gear": {"type": "drive", "motor": {**DC, "iron": IRON}, "control": CONTROL, "gears": [{"ratio": 5}]},
    "rigid gear under load": {
        "type": "drive", "motor": DC, "control": CONTROL, "gears": [{"ratio": 5, "load_friction": 0.1}],
    },
    "elastic gear and stiction": {
        "type": "drive", "motor": {**PMSM, "iron": IRON}, "control": {**CONTROL, "inverter": INVERTER}, "gears": LOSSY,
        "friction": STICTION,
    },
    "strain wave gear": {
        "type": "drive", "motor": PMSM, "control": CONTROL,
        "gears": [
            {"type": "harmonic_drive", "ratio": 30, "stiffness": 8000, "hysteresis": 4, "hysteresis_stiffness": 5000},
        ],
    },
    "stepper": {"type": "drive", "motor": {**STEPPER, "iron": IRON}, "control": CONTROL, "gears": [{"ratio": 5}]},
    "sampled loops": {
        "type": "drive", "motor": PMSM, "control": {**CONTROL, "inverter": INVERTER}, "gears": [{"ratio": 5}],
        "loops": {"mode": "effort", "current": {"rate": "8 kHz"}},
    },
}  # fmt: skip


def run_of(actuator: Any, **schedule: Any) -> Any:
    controller = {
        "name": "motion", "type": "feedforward_pd", "kp": 200, "kd": 20,
        "trajectory": {"type": "sine", "amplitude": 0.8, "frequency": 2.5},
    }  # fmt: skip
    step = {"step": "1 ms", "duration": "0.5 s", "integrator": "rodas4", "substeps": 8}
    joints = {"axis": {"actuator": actuator}}
    return Rig.from_dict(
        {"mechanism": {"bodies": [BODY]}, "joints": joints, "controllers": [controller], "schedule": step | schedule}
    ).run()


@pytest.mark.parametrize("integrator", ["rk4", "rodas4"])
@pytest.mark.parametrize("name", DRIVES)
def test_the_parts_of_a_drive_sum_to_the_balance_of_energy(name: str, integrator: str) -> None:
    substeps = 64 if integrator == "rk4" else 8
    run = run_of({**DRIVES[name], "powers": True}, integrator=integrator, substeps=substeps)
    energy, parts = run.summary["energy"], dict(run.summary["powers"]["axis"])
    electrical, returned = parts.pop("electrical"), parts.pop("returned")
    assert sum(parts.values()) == pytest.approx(energy["dissipated"], rel=1e-9)
    assert electrical == pytest.approx(energy["work_in"], rel=1e-9)
    assert returned > 0.0 and parts["copper"] > 0.1


def test_powers_change_no_motion() -> None:
    without, with_powers = (run_of({**DRIVES["elastic gear and stiction"], "powers": on}) for on in (False, True))
    assert with_powers["axis/position"] == pytest.approx(without["axis/position"], abs=1e-10)


def test_copper_and_iron_losses_have_their_closed_forms() -> None:
    """Copper R i² of a machine; without load, the iron takes M_h + k ω."""
    motor = {**DC, "iron": {"hysteresis": 0.05, "eddy": 2e-3, "creep_speed": 1e-3}}
    drive = {"type": "drive", "motor": motor, "control": CONTROL, "powers": True}
    joints = {"axis": {"actuator": drive, "initial": {"velocity": 30.0}}}
    bodies = [{**BODY, "com": [0, 0, 0]}]
    rig = {"mechanism": {"gravity": [0, 0, 0], "bodies": bodies}, "joints": joints}
    run = Rig.from_dict({**rig, "schedule": {"step": "1 ms", "duration": "0.5 s", "integrator": "rk4"}}).run()
    w = run["axis/velocity"]
    assert run["axis/iron_loss"] == pytest.approx(0.05 * w + 2e-3 * w * w, rel=1e-6)
    assert run["axis/copper_loss"] == pytest.approx(0.8 * run["axis/current"] ** 2, abs=1e-12)
    # without current ω̇ J = −(M_h + k ω)
    J = 0.2 + 4e-3
    expected = (30.0 + 25.0) * np.exp(-2e-3 * run.t / J) - 25.0
    assert w == pytest.approx(expected, rel=2e-6)


def test_the_losses_of_three_phases_are_the_means_of_their_half_bridges() -> None:
    """Σ (V |i| + R i² + f t U |i|) of three sinusoidal currents, averaged over a turn."""
    inverter = Inverter(0.0, 16e3, 300.0, 1e-6, 0.9, 0.02, 1e-7)
    angle = np.linspace(0.0, 2.0 * np.pi, 3001)[:-1]
    i = np.array([7.0 * np.sin(angle - phase) for phase in PHASES])
    expected = np.mean(np.sum(0.9 * np.abs(i) + 0.02 * i * i + 16e3 * 1e-7 * 300.0 * np.abs(i), axis=0))
    d, q = np.sqrt(1.5) * 7.0 * np.array([np.cos(0.4), np.sin(0.4)])  # in the graph
    drops = [float(THREE_PHASES.conduction(inverter, k, d, q)) for k in (0, 1)]
    found = drops[0] * d + drops[1] * q + 300.0 * float(THREE_PHASES.switched(inverter, d, q))
    assert found == pytest.approx(expected, rel=1e-6)


GRAPH = {
    "elements": {
        "torque": {"type": "Se", "domain": "rotational", "law": "2*sin(9*t)"},
        "bearing": {"type": "R", "domain": "rotational", "resistance": 0.3, "part": "friction"},
        "brake": {"type": "R", "domain": "rotational", "law": "0.1*tanh(9*flow)", "part": "other"},
    },
    "junctions": {"shaft": 1},
    "bonds": ["torque -> shaft -> joint", "shaft -> bearing", "shaft -> brake"],
}


def test_elements_of_a_graph_say_their_part() -> None:
    run = run_of({"type": "bond_graph", "graph": GRAPH}, integrator="rk4")
    parts, energy = run.summary["powers"]["axis"], run.summary["energy"]
    assert list(parts) == ["friction", "other"]
    assert sum(parts.values()) == pytest.approx(energy["dissipated"], rel=1e-9)
    assert run["axis/friction_loss"] == pytest.approx(0.3 * run["axis/velocity"] ** 2)


def test_an_unknown_part_of_a_graph_is_refused(said: Said) -> None:
    elements = {**GRAPH["elements"], "bearing": {**GRAPH["elements"]["bearing"], "part": "bearings"}}
    said(raised(InputErrors, run_of, {"type": "bond_graph", "graph": {**GRAPH, "elements": elements}}))
