"""Drives that are solved together with the mechanism meet the rest of rigs: each beside the same drive whose rotor is a
part of the mechanism, which moves the same."""

from typing import Any

import numpy as np
import pytest

from cosim import Rig, Run
from cosim.apps.analysis.linearisation import linearise
from cosim.core.errors import InputErrors
from tests.bondgraph.test_rigid_graphs import rotational, torque
from tests.kit.messages import Said
from tests.kit.refusals import raised

RATIO = {"rotor in the mechanism": {"ratio": 0.2}, "coupled": {"law": "0.2 + 0 * t"}}


def drive(torque_law: str, **ratio: Any) -> dict[str, Any]:
    """A motor with a rotor of 0.01 kg m² and friction, which turns 5 times as fast as the joint."""
    elements = {
        "motor": torque(torque_law),
        "rotor": rotational("I", inertia=0.01),
        "drag": rotational("R", resistance=0.01),
        "gear": rotational("TF", **ratio),
    }
    bonds = ["motor -> shaft -> rotor", "shaft -> drag", "shaft -> gear -> joint"]
    return {"type": "bond_graph", "graph": {"elements": elements, "junctions": {"shaft": 1}, "bonds": bonds}}


LINK = {"mass": 1, "com": [0.2, 0, 0], "inertia": [0, 0.02, 0.02]}
ARM = [
    {"name": "upper", "joint": "shoulder", **LINK},
    {"name": "fore", "joint": "elbow", "origin": {"xyz": [0.4, 0, 0]}, **LINK},
]
FOUR_BAR = {
    "gravity": [0, -9.81, 0],
    "bodies": [
        {"name": "crank", "joint": "shoulder", **LINK},
        {"name": "coupler", "joint": "elbow", "origin": {"xyz": [0.2, 0, 0]}, **LINK},
        {"name": "rocker", "parent": "base", "origin": {"xyz": [0.5, 0, 0]}, **LINK},
    ],
    "loops": [
        {
            "name": "pin",
            "parent": "rocker",
            "child": "coupler",
            "origin": {"xyz": [0.4, 0, 0]},
            "child_origin": {"xyz": [0.5, 0, 0]},
        }
    ],
}
SHOULDER = {"initial": {"position": 0.3, "velocity": 1}}
PD = {"type": "pid", "kp": 20, "ki": 0, "kd": 1, "trajectory": {"type": "quintic", "goal": 1, "duration": 0.5}}
FEEDFORWARD = {
    "type": "feedforward_pd",
    "kp": 20,
    "kd": 2,
    "trajectory": {"type": "quintic", "goal": [1, -1], "duration": 0.4},
}
# what else the rig has: sections, and of the shoulder
MEETS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "an arm": ({}, {}),
    "a closed loop": (
        {
            "mechanism": FOUR_BAR,
            "joints": {"elbow": {"initial": {"guess": "-53 deg"}}, "rocker": {"initial": {"guess": "-90 deg"}}},
        },
        {"initial": {"position": 0, "velocity": 4}},
    ),
    "a mimic joint": (
        {
            "mechanism": {"bodies": [ARM[0], {**ARM[1], "mimic": {"joint": "shoulder", "multiplier": -0.5}}]},
            "joints": {},
        },
        {},
    ),
    "a latch": (
        {
            "events": [
                {"do": "latch", "of": "shoulder", "at": "0.2 s"},
                {"do": "unlatch", "of": "shoulder", "at": "0.3 s"},
            ]
        },
        {},
    ),
    "a latch of a neighbour": ({"events": [{"do": "latch", "of": "elbow", "at": "0.2 s"}]}, {}),
    "a stop": ({}, {"stops": {"upper": 0.5, "restitution": 0.4}}),
    "a stop of a neighbour": ({"joints": {"elbow": {"stops": {"lower": -0.3, "upper": 0.3, "restitution": 0.4}}}}, {}),
    "dry friction that sticks": (
        {"schedule": {"integrator": "rodas4"}},
        {"friction": {"coulomb": 2, "static": 3, "bristle_damping": 1}},
    ),
    "a neighbour whose velocity jumps": (
        {
            "joints": {
                "elbow": {"prescribed": {"type": "spline", "points": [0, 0.3], "times": [0.1, 0.3], "ends": "natural"}}
            }
        },
        {},
    ),
    "a moving base": (
        {
            "mechanism": {
                "bodies": ARM,
                "moving_base": {"x": {"type": "sine", "amplitude": "20 cm", "frequency": "2 Hz"}},
            }
        },
        {},
    ),
    "feedforward": ({"controllers": [FEEDFORWARD]}, {"initial": {"position": 0}}),
    "a controller": ({"controllers": [PD], "schedule": {"integrator": "rosenbrock"}}, {}),
}


def rig_of(name: str, form: str, **others: Any) -> Rig:
    sections, shoulder = MEETS[name]
    law = "request / 5" if "controllers" in sections else "0.6*sin(9*t)"
    joints = sections.get("joints", {"elbow": {}})
    data = {
        "mechanism": {"gravity": [0, -9.81, 0], "bodies": ARM},
        **sections,
        "joints": {"shoulder": {**SHOULDER, **shoulder, "actuator": drive(law, **RATIO[form])}, **joints},
        "schedule": {"step": "1 ms", "duration": "0.5 s", "integrator": "rk4"} | sections.get("schedule", {}),
    }
    if "controllers" in sections:
        data["joints"]["elbow"] = {"actuator": drive(law, **RATIO[form])}
    return Rig.from_dict(data, **others)


def same(run: Run, other: Run, tolerance: float = 1e-9) -> None:
    assert len(run.t) == len(other.t)
    for name in set(run.signals) & set(other.signals) - {"energy/kinetic"}:
        scale = max(1.0, float(np.nanmax(np.abs(run[name]), initial=0.0)))
        np.testing.assert_allclose(run[name], other[name], rtol=0.0, atol=tolerance * scale, err_msg=name)


@pytest.mark.parametrize("name", MEETS)
def test_a_coupled_drive_moves_as_one_whose_rotor_is_in_the_mechanism(name: str) -> None:
    plain, coupled = (rig_of(name, form).run() for form in RATIO)
    same(plain, coupled)


@pytest.mark.parametrize("name", MEETS)
def test_a_coupled_drive_is_interpreted_as_it_is_compiled(name: str) -> None:
    compiled, interpreted = (rig_of(name, "coupled", interpret=interpret).run("20 ms") for interpret in (False, True))
    same(compiled, interpreted, 1e-10)


def test_a_coupled_drive_is_linearised_as_one_whose_rotor_is_in_the_mechanism() -> None:
    plain, coupled = (linearise(rig_of("a controller", form)) for form in RATIO)
    np.testing.assert_allclose(
        np.sort_complex(np.linalg.eigvals(plain.A)), np.sort_complex(np.linalg.eigvals(coupled.A)), rtol=1e-7
    )


def test_feedforward_knows_the_inertia_of_a_coupled_drive() -> None:
    """Without it the error is 0.23 rad, as the motors need most of their torque for themselves; what is left is the
    error of one whose rotor is in the mechanism: friction of the motor."""
    plain, coupled = (rig_of("feedforward", form).run().summary["joints"]["shoulder"]["error_max"] for form in RATIO)
    assert plain is not None and coupled is not None and coupled == pytest.approx(plain, rel=1e-9)
    assert coupled < 0.05


def test_gradients_of_a_coupled_drive() -> None:
    names = ["pid.kp", "mechanism.fore.mass"]
    plain, coupled = (rig_of("a controller", form).gradient("error_rms", names) for form in RATIO)
    for name in names:
        np.testing.assert_allclose(plain[name], coupled[name], rtol=1e-6)


def test_friction_of_the_load_of_a_coupled_drive_is_refused(said: Said) -> None:
    joint = {
        "actuator": drive("sin(t)", **RATIO["coupled"]),
        "friction": {"model": "stribeck", "coulomb": 0.1, "load_friction": 0.2},
    }
    said(raised(InputErrors, Rig.from_dict, {"mechanism": {"bodies": ARM}, "joints": {"shoulder": joint}}))
