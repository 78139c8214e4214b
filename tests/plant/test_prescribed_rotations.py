"""Prescribed spherical joints: their torque, their impulses, and what they meet: loops, latches, moving bases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from scipy.spatial.transform import Rotation

from cosim import Rig
from cosim.core.errors import InputErrors
from cosim.mechanics.integrators.methods import INTEGRATORS
from tests.kit.refusals import raised
from tests.kit.rigs import rig_in

ORIENTATIONS = [["10 deg", "40 deg", 0], [0, 0.6, 0, 0.8], [0, 0, "90 deg"]]
TIMES = [0.1503, 0.3701, 0.8]
UPPER = {
    "name": "upper",
    "type": "spherical",
    "mass": 2,
    "com": [0.1, 0.05, 0],
    "inertia": [0.02, 0.03, 0.015, 0.001, 0, 0],
}
FORE = {"name": "fore", "axis": [0, 1, 0], "mass": 1, "com": [0.1, 0, 0.02], "inertia": [0.001, 0.01, 0.01]}
FORE |= {"origin": {"xyz": [0.3, 0, 0]}}
KINDS = ("slerp", "squad", "rest")


def given(kind: str = "squad") -> dict[str, Any]:
    return {"orientations": ORIENTATIONS, "times": TIMES, "interpolation": kind}


def arm(kind: str = "squad", **more: Any) -> dict[str, Any]:
    """An upper arm whose shoulder is prescribed, and a forearm that swings."""
    upper, fore = UPPER | more.pop("upper", {}), FORE | more.pop("fore", {})
    joints = {"upper": {"prescribed": given(kind)}, **more.pop("joints", {})}
    schedule = {"step": "1 ms", "duration": "1 s"} | more.pop("schedule", {})
    mechanism = {"bodies": [upper, fore, *more.pop("bodies", [])], **more.pop("mechanism", {})}
    return {"mechanism": mechanism, "joints": joints, "schedule": schedule, **more}


def loaded(folder: Path, rig: dict[str, Any], interpret: bool = False) -> Rig:
    return rig_in(folder, yaml.safe_dump(rig), interpret=interpret)


def residual(run: Any) -> float:
    return run.summary["energy"]["residual_relative"]


# --- the torque ---


def test_the_torque_is_that_of_a_hinge_about_the_same_axis(tmp_path):
    axis = np.array([1.0, -2.0, 2.0]) / 3.0
    goal = 1.2 * axis
    ball = arm(
        joints={
            "upper": {
                "prescribed": {
                    "orientations": [Rotation.from_rotvec(goal).as_quat().tolist()],
                    "times": [0.5],
                    "interpolation": "rest",
                }
            }
        }
    )
    hinge = {"type": "quintic", "goal": 1.2, "duration": 0.5}
    hinged = arm(upper={"type": "revolute", "axis": axis.tolist()}, joints={"upper": {"prescribed": hinge}})
    first, second = (loaded(tmp_path, rig).run() for rig in (ball, hinged))
    along = sum(axis[k] * first[f"upper.r{x}/effort"] for k, x in enumerate("xyz"))
    assert along == pytest.approx(second["upper/effort"], abs=1e-9)
    assert first["fore/position"] == pytest.approx(second["fore/position"], abs=1e-10)
    spin = sum(axis[k] * first[f"upper.r{x}/velocity"] for k, x in enumerate("xyz"))
    assert spin == pytest.approx(second["upper/velocity"], abs=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_the_torque_is_that_of_three_hinges_with_the_same_motion(tmp_path, kind):
    """By virtual power, τ of the hinges is Sᵀ τ of the ball with ω = S q̇."""
    turned = loaded(tmp_path, arm(kind)).plant
    light = {"mass": 1e-14, "inertia": [1e-14] * 3}
    names = ("yaw", "pitch", "roll")
    hinges = [{"name": n, "axis": a, **light} for n, a in zip(names, np.eye(3)[::-1].tolist(), strict=True)]
    hinges[2] = UPPER | {"name": "roll", "type": "revolute", "axis": [1, 0, 0]}
    hinged = loaded(
        tmp_path, {"mechanism": {"bodies": [*hinges, FORE]}, "schedule": {"step": "1 ms", "duration": "1 s"}}
    )
    model, ball = hinged.plant.full_model, turned.full_model
    rotation = turned.rotations["upper"]
    for t in (0.05, 0.2, 0.31, 0.6, 0.77):
        quaternion, omega, alpha = rotation.sample(t)
        yaw, pitch, roll = Rotation.from_quat(quaternion).as_euler("ZYX")
        fore = 0.3, -1.1, 2.0
        sr, cr, sp, cp = np.sin(roll), np.cos(roll), np.sin(pitch), np.cos(pitch)
        S = np.array([[-sp, 0.0, 1.0], [cp * sr, cr, 0.0], [cp * cr, -sr, 0.0]])
        rates = np.linalg.solve(S, omega)
        _, dp, dr = rates
        change = np.array(
            [
                [-cp * dp, 0.0, 0.0],
                [-sp * dp * sr + cp * cr * dr, -sr * dr, 0.0],
                [-sp * dp * cr - cp * sr * dr, -cr * dr, 0.0],
            ]
        )
        bends = np.linalg.solve(S, alpha - change @ rates)
        columns = (np.array([*part, x]) for part, x in zip(((yaw, pitch, roll), rates, bends), fore, strict=True))
        expected = model.inverse_dynamics(*columns)
        q = np.array([*quaternion, fore[0]])
        found = ball.inverse_dynamics(q, np.array([*omega, fore[1]]), np.array([*alpha, fore[2]]))
        assert np.array([*(S.T @ found[:3]), found[3]]) == pytest.approx(expected, abs=1e-10)


# --- runs ---


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("integrator", sorted(INTEGRATORS))
def test_the_energy_balance_closes_with_every_integrator(tmp_path, integrator, kind):
    """With slerp the impulses at the orientations are work of the motion."""
    fast = {"semi_implicit_euler": 2e-3, "multirate": 1e-4, "rosenbrock": 1e-4, "moreau": 1e-4}
    run = loaded(tmp_path, arm(kind, schedule={"integrator": integrator})).run()
    assert residual(run) < fast.get(integrator, 1e-8)
    end = Rotation.from_quat([run[f"upper.q{x}/position"][-1] for x in "xyzw"])
    assert (end.inv() * Rotation.from_euler("z", 90, degrees=True)).magnitude() < 1e-12


def test_the_error_is_of_the_order_of_the_integrator_across_the_breaks(tmp_path):
    ends = [
        loaded(tmp_path, arm("slerp", schedule={"step": f"{step} ms"})).run()["fore/position"][-1]
        for step in (4, 2, 0.25)
    ]
    assert np.log2(abs(ends[0] - ends[2]) / abs(ends[1] - ends[2])) > 3.5


def test_interpreted_and_compiled_runs_agree(tmp_path):
    rig = arm("slerp", schedule={"duration": "0.2 s"}, upper={"stiffness": [1, 2, 3], "damping": 0.2})
    compiled = loaded(tmp_path, rig).run()
    interpreted = loaded(tmp_path, rig, interpret=True).run()
    for signal in ("fore/position", "upper.rx/effort", "upper/spring_moment"):
        assert compiled[signal] == pytest.approx(interpreted[signal], abs=1e-10)


BASE = {"x": {"type": "sine", "amplitude": "5 cm", "frequency": "2 Hz", "ramp": "0.3 s"}, "orientation": given("squad")}
MEETS: dict[str, dict[str, Any]] = {
    "a latch": {
        "joints": {"fore": {"latched": True}},
        "events": [{"name": "open", "at": "0.3 s", "do": "unlatch", "of": "fore"}],
    },
    "a stop": {"joints": {"fore": {"stops": {"upper": 0.3}}}},
    "a brake": {"events": [{"name": "close", "at": "0.2 s", "do": "brake", "of": "fore", "effort": 5.0}]},
    "a spring": {"upper": {"stiffness": [3, 4, 5], "damping": 0.3}},
    "a torsion spring": {
        "mechanism": {
            "torsion_springs": [{"name": "twist", "between": ["base", "fore"], "stiffness": 2, "damping": 0.1}]
        }
    },
    "a moving base": {"mechanism": {"moving_base": BASE}},
    "friction": {"upper": {"friction": 0.5}},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MEETS)
def test_what_it_meets(tmp_path, name, kind):
    run = loaded(
        tmp_path,
        arm(kind, **{key: dict(value) if isinstance(value, dict) else value for key, value in MEETS[name].items()}),
    ).run()
    assert run.summary["outcome"] == "finished"
    assert residual(run) < 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_a_loop_that_it_drives(tmp_path, kind):
    """A crank on a spherical joint that swings about y, a coupler between balls and a rocker on a hinge."""
    small = {"orientations": [[0, "20 deg", 0], [0, "-20 deg", 0]], "times": [0.3017, 0.7], "interpolation": kind}
    bodies = [
        {"name": "crank", "type": "spherical", "mass": 1, "com": [0.1, 0, 0], "inertia": [0.001, 0.01, 0.01]},
        {"name": "coupler", "type": "universal", "axis": [0, 1, 0], "origin": {"xyz": [0.2, 0, 0]}, "mass": 1,
         "com": [0.25, 0, 0], "inertia": [0.001, 0.02, 0.02]},
        {"name": "rocker", "parent": "base", "axis": [0, 1, 0], "origin": {"xyz": [0.7, 0, -0.4]}, "mass": 1,
         "com": [0, 0, 0.2], "inertia": [0.01, 0.01, 0.001]},
    ]  # fmt: skip
    pin = {"name": "pin", "type": "spherical", "parent": "coupler", "child": "rocker", "origin": {"xyz": [0.5, 0, 0]}}
    pin |= {"child_origin": {"xyz": [0, 0, 0.4]}}
    rig = {
        "mechanism": {"bodies": bodies, "loops": [pin]},
        "joints": {"crank": {"prescribed": small}},
        "schedule": {"step": "1 ms", "duration": "0.8 s"},
    }
    run = loaded(tmp_path, rig).run()
    assert residual(run) < 1e-6
    assert max(np.abs(run[f"pin/force_{x}"]).max() for x in "xyz") > 1.0
    assert max(value for key, value in run.summary["constraints"]["pin"].items() if key.endswith("_max")) < 1e-8


# --- the same from a file ---


def test_a_file_of_quaternions_is_the_motion_of_its_rows(tmp_path):
    """Columns in any order, others beside them, quaternions of either sign; its motion begins where the joint is."""
    angles = Rotation.from_euler("xyz", [[0, 0, 0], np.deg2rad([10, 40, 0])]).as_quat()
    turns = [*angles, np.array([0, 0.6, 0, 0.8]), Rotation.from_euler("z", 90, degrees=True).as_quat()]
    rows = [
        f"{-qw:.17g},{t},{-qx:.17g},x,{-qy:.17g},{-qz:.17g}"
        for t, (qx, qy, qz, qw) in zip([0.0, *TIMES], turns, strict=True)
    ]
    (tmp_path / "turns.csv").write_text("\n".join(["qw, t, qx, note, qy, qz", *rows, ""]))
    written = loaded(tmp_path, arm()).run()
    of_file = {"file": str(tmp_path / "turns.csv"), "interpolation": "squad"}
    read = loaded(tmp_path, arm(joints={"upper": {"prescribed": of_file}})).run()
    for signal in ("upper.rx/effort", "upper.ry/velocity", "fore/position"):
        np.testing.assert_allclose(read[signal], written[signal], atol=1e-9 * np.ptp(written[signal]))


FILES = {
    "a missing column": "t,qx,qy,qz\n0,0,0,0\n1,0,0,1\n",
    "times that go back": "t,qx,qy,qz,qw\n0,0,0,0,1\n0.5,0,0,0.6,0.8\n0.5,0,0,1,0\n",
    "a length of 2": "t,qx,qy,qz,qw\n0,0,0,0,1\n0.5,0,0,0,2\n",
    "no number": "t,qx,qy,qz,qw\n0,0,0,0,1\n0.5,0,0,a,1\n",
    "one row": "t,qx,qy,qz,qw\n0,0,0,0,1\n",
    "a time before 0": "t,qx,qy,qz,qw\n-1,0,0,0,1\n0.5,0,0,0.6,0.8\n",
}


@pytest.mark.parametrize("name", FILES)
def test_what_is_wrong_in_a_file_is_named_with_its_line(name, tmp_path, said):
    (tmp_path / "turns.csv").write_text(FILES[name])
    of_file = {"file": str(tmp_path / "turns.csv")}
    caught = raised(InputErrors, loaded, tmp_path, arm(joints={"upper": {"prescribed": of_file}}))
    said(str(caught).replace(str(tmp_path), "<folder>"))
