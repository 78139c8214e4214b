"""Mechanisms from USD files accelerate as from the MJCF files from which another program wrote them, and as the same
mechanism in other units."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from cosim import load_rig
from cosim.core.errors import InputErrors
from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.description.usd.reader import read_usd
from tests.kit.refusals import raised
from tests.kit.usd_files import FOLDER

pytest.importorskip("pxr", reason="the package usd-core is not installed")
CONVERTED = sorted(path.stem for path in FOLDER.glob("*.xml"))
STEP = 1e-4  # s
SINGLE = 3e-6  # of positions and quaternions in single precision


@pytest.mark.parametrize("name", CONVERTED)
def test_accelerations_of_converted_files(name):
    one, other = Model.from_mjcf(FOLDER / f"{name}.xml"), Model.from_usd(FOLDER / f"{name}.usda")
    assert one.nv == other.nv
    of_other = {joint.replace("float", "root_joint"): k for k, joint in enumerate(other.dof_names)}
    order = [of_other[dof.replace("float", "root_joint")] for dof in one.dof_names]
    places = {dof: k for k, dof in enumerate(other.coordinate_names)}
    there = [places[dof.replace("float", "root_joint")] for dof in one.coordinate_names]
    for seed in range(3):
        random = np.random.default_rng(seed)
        q = np.asarray(one.random_configuration(random))
        v, tau = random.normal(size=(2, one.nv))
        mapped = np.zeros(other.nq)
        mapped[there] = q
        speeds, efforts = np.zeros((2, other.nv))
        speeds[order], efforts[order] = v, tau
        expected = np.asarray(one.equations.forward_dynamics(q, v, tau))
        found = np.asarray(other.equations.forward_dynamics(mapped, speeds, efforts))[order]
        assert np.abs(found - expected).max() < SINGLE * np.abs(expected).max()


HEADER = '#usda 1.0\n(\n  metersPerUnit = {metre}\n  kilogramsPerUnit = {kilogram}\n  upAxis = "{up}"\n)\n'
BODY = """
def Xform "{name}" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"]) {{
  double3 xformOp:translate = ({x}, 0, 0)
  uniform token[] xformOpOrder = ["xformOp:translate"]
  float physics:mass = {mass}
  point3f physics:centerOfMass = ({com}, 0, 0)
  float3 physics:diagonalInertia = ({inertia}, {inertia}, {inertia})
}}
"""
JOINT = """
def {type} "{name}" ({api}) {{
  rel physics:body0 = {parent}
  rel physics:body1 = </{child}>
  point3f physics:localPos0 = ({at}, 0, 0)
  token physics:axis = "{axis}"
  {more}
}}
"""


def arm(metre=1.0, kilogram=1.0, up="Z", more=""):
    """Two bodies on two joints with limits and drives, in these units; angles in degrees."""
    joint = {"parent": "</a>", "axis": "Y", "at": 0.5 / metre}
    drives = (
        "float drive:{0}:physics:stiffness = {1}\nfloat drive:{0}:physics:damping = {2}\n"
        "float drive:{0}:physics:maxForce = {3}"
    )
    torque, force = kilogram * metre**2, kilogram * metre
    turn = drives.format("angular", 90 * math.radians(1.0) / torque, 9 * math.radians(1.0) / torque, 5 / torque)
    slide = drives.format("linear", 200 * metre / force, 20 * metre / force, 50 / force)
    return "".join(
        [
            HEADER.format(metre=metre, kilogram=kilogram, up=up),
            BODY.format(name="a", x=0.0, mass=2.0 / kilogram, com=0.25 / metre, inertia=0.1 / torque),
            BODY.format(name="b", x=0.5 / metre, mass=1.0 / kilogram, com=0.1 / metre, inertia=0.05 / torque),
            JOINT.format(
                type="PhysicsRevoluteJoint",
                name="turn",
                api='prepend apiSchemas = ["PhysicsDriveAPI:angular"]',
                **{**joint, "parent": "None", "at": 0.0},
                child="a",
                more="float physics:lowerLimit = -90\nfloat physics:upperLimit = 45\n" + turn,
            ),
            JOINT.format(
                type="PhysicsPrismaticJoint",
                name="slide",
                api='prepend apiSchemas = ["PhysicsDriveAPI:linear"]',
                **joint,
                child="b",
                more=f"float physics:upperLimit = {0.3 / metre}\n" + slide,
            ),
            more,
        ]
    )


def written(folder, text):
    path = folder / "robot.usda"
    path.write_text(text)
    return path


@pytest.mark.parametrize(("metre", "kilogram"), [(1.0, 1.0), (0.01, 1.0), (0.001, 0.001)])
@pytest.mark.parametrize("up", ["Z", "Y"])
def test_units_of_the_stage(metre, kilogram, up, tmp_path):
    robot = read_usd(written(tmp_path, arm(metre, kilogram, up)))
    turn, slide = (next(j for j in robot.mechanism.joints if j.name == name) for name in ("turn", "slide"))
    assert (turn.lower, turn.upper) == pytest.approx((-math.pi / 2, math.pi / 4))
    assert (slide.lower, slide.upper) == (-math.inf, pytest.approx(0.3))
    assert robot.gravity == pytest.approx((0.0, 0.0, -9.81) if up == "Z" else (0.0, -9.81, 0.0))
    assert (turn.max_effort, slide.max_effort) == (pytest.approx(5.0), pytest.approx(50.0))
    of_turn, of_slide = robot.actuators
    expected = {"gain": 90.0, "bias_position": -90.0, "bias_velocity": -9.0, "min_effort": -5.0, "max_effort": 5.0}
    assert of_turn.keys == {"mode": "position", **{k: pytest.approx(x, rel=1e-6) for k, x in expected.items()}}
    expected = {"gain": 200.0, "bias_position": -200.0, "bias_velocity": -20.0, "min_effort": -50.0, "max_effort": 50.0}
    assert of_slide.keys == {"mode": "position", **{k: pytest.approx(x, rel=1e-6) for k, x in expected.items()}}
    model = Model(robot.mechanism, (0.0, 0.0, -9.81))
    # about y at the origin: both bodies by the parallel axis theorem
    d = 0.5 + 0.1
    inertia = 0.1 + 2.0 * 0.25**2 + 0.05 + 1.0 * d * d
    M = np.asarray(model.equations.mass_matrix(np.array([0.3, 0.0])))
    assert pytest.approx(np.array([[inertia, 0.0], [0.0, 1.0]]), abs=1e-6) == M


def test_a_body_that_two_joints_reach_closes_a_loop(tmp_path):
    weld = JOINT.format(
        type="PhysicsFixedJoint", name="weld", api="", parent="None", axis="X", at=0.5, child="b",
        more="uniform bool physics:excludeFromArticulation = true",
    )  # fmt: skip
    robot = read_usd(written(tmp_path, arm(more=weld)))
    (loop,) = robot.mechanism.loops
    assert (loop.joint.name, loop.joint.kind, loop.joint.child) == ("weld", "fixed", "b")


SHAPE = 'def Cube "{}" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {{}}\n'
BETWEEN = "point3f physics:centerOfMass"  # in each body of the arm
LOST = {
    "nothing": arm(),
    "limits changed over": arm().replace("lowerLimit = -90", "lowerLimit = 90"),
    "an attribute of an engine": arm().replace(
        "float physics:lowerLimit", "float physxJoint:jointFriction = 0.1\nfloat physics:lowerLimit"
    ),
    "a mimic of an engine": arm().replace(
        "float physics:lowerLimit", "float physxMimicJoint:rotX:gearing = 2\nfloat physics:lowerLimit"
    ),
    "a floor below a free body": arm(more=SHAPE.format("floor"))
    .replace(BETWEEN, SHAPE.format("box") + BETWEEN)
    .replace("rel physics:body0 = None", "bool physics:jointEnabled = 0"),
    "gains of accelerations": arm().replace(
        "float physics:lowerLimit",
        'uniform token drive:angular:physics:type = "acceleration"\nfloat physics:lowerLimit',
    ),
}


@pytest.mark.parametrize("name", LOST)
def test_what_is_lost_is_warned_of(name, tmp_path, said):
    robot = read_usd(written(tmp_path, LOST[name]))
    said([*robot.mechanism.warnings, *(f"{each.place}: {each.lost}" for each in robot.actuators if each.lost)])


def test_bodies_that_could_touch_are_noted(tmp_path):
    """Those of an arm that stands; not a single one."""
    text = arm().replace(BETWEEN, SHAPE.format("box") + BETWEEN)
    (note,) = read_usd(written(tmp_path, text)).mechanism.notes
    assert note.endswith("contacts of the file are not taken: bodies move through one another")
    assert read_usd(written(tmp_path, arm())).mechanism.notes == ()


def test_the_speed_that_an_engine_allows_is_a_limit(tmp_path):
    text = arm().replace(
        "float physics:lowerLimit", "float physxJoint:maxJointVelocity = 180\nfloat physics:lowerLimit"
    )
    turn, slide = (joint for joint in read_usd(written(tmp_path, text)).mechanism.joints if joint.kind != "fixed")
    assert (turn.max_velocity, slide.max_velocity) == (pytest.approx(math.pi), math.inf)


def test_a_rig_has_the_drives_of_the_file(tmp_path):
    """m ẍ = k (x_r − x) − d ẋ on the slide, across its weight, with the quintic x_r."""
    written(tmp_path, arm())
    (tmp_path / "rig.yaml").write_text(
        "mechanism: {usd: robot.usda, actuators: file}\n"
        "joints: {turn: {latched: true}, slide: {limits: {velocity: 3}}}\n"
        f"schedule: {{step: {STEP * 1e3} ms, duration: 0.5 s}}\ncontrollers:\n"
        "  - {type: passthrough, kp: 1, joints: [slide], trajectory: {type: quintic, goal: 0.2, duration: 0.5}}\n"
    )
    rig = load_rig(tmp_path / "rig.yaml")
    limits = rig.spec.joints["slide"].limits
    assert (limits["effort"], limits["velocity"]) == (pytest.approx(50.0), 3.0)

    def slope(t, x):
        s = t / 0.5
        reference = 0.2 * (10 * s**3 - 15 * s**4 + 6 * s**5)
        return [x[1], 200.0 * (reference - x[0]) - 20.0 * x[1]]

    run = rig.run()
    expected = solve_ivp(slope, (0.0, 0.5), [0.0, 0.0], t_eval=run.t, rtol=1e-10, atol=1e-12).y[0]
    assert np.abs(run["slide/position"] - expected).max() < STEP * 0.8  # m: the command is a step old, at most 0.75 m/s


MISTAKES = {
    "syntax": "#usda 1.0\ndef Xform",
    "no mass": '#usda 1.0\ndef Xform "a" (prepend apiSchemas = ["PhysicsRigidBodyAPI"]) {}',
    "one body": arm(
        more=JOINT.format(type="PhysicsFixedJoint", name="x", api="", parent="</a>", axis="X", at=0, child="a", more="")
    ),
    "a missing layer": "#usda 1.0\n(\n  subLayers = [@none.usda@]\n)\n",
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_refused_at_its_prim(name, tmp_path, said):
    said(str(raised(InputErrors, read_usd, written(tmp_path, MISTAKES[name]))))


def test_other_files_than_usd(tmp_path):
    assert "no such file" in str(raised(InputErrors, read_usd, Path(tmp_path) / "none.usda"))
