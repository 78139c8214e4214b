"""Inverse kinematics of real robots: round trips, singular poses, limits, postures, poses out of reach, wrong input."""

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cosim import load_rig
from cosim.core.errors import InputError
from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.description.urdf import parse_urdf
from cosim.mechanics.multibody.rotations import rotation_by, rotation_vector
from tests.kit.messages import Said
from tests.kit.refusals import raised
from tests.kit.samples import FOLDER
from tests.oracle.conftest import ROBOTS

UR5 = FOLDER / "robots" / "ur5.urdf"
ARMS = {
    "ur5": (UR5, "tool0"),
    "ur10": (ROBOTS / "ur_description/urdf/ur10_robot.urdf", "tool0"),
    "panda": (ROBOTS / "panda_description/urdf/panda.urdf", "panda_hand_tcp"),
    "xarm7": (ROBOTS / "xarm_description/urdf/xarm7.urdf", "link_eef"),
    "so101": (ROBOTS / "so_arm_description/urdf/so101.urdf", "gripper_frame_link"),
}
PLANAR = parse_urdf(
    '<robot name="planar"><link name="base"/>'
    + "".join(
        f'<link name="l{k}"><inertial><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/>'
        f'</inertial></link><joint name="j{k}" type="revolute"><parent link="{"base" if k == 0 else f"l{k - 1}"}"/>'
        f'<child link="l{k}"/><origin xyz="{0 if k == 0 else 1} 0 0"/><axis xyz="0 0 1"/>'
        '<limit lower="-2" upper="2" effort="100" velocity="10"/></joint>'
        for k in range(2)
    )
    + '<link name="tip"/><joint name="end" type="fixed"><parent link="l1"/><child link="tip"/><origin xyz="1 0 0"/>'
    "</joint></robot>"
)


@cache
def arm(name: str) -> tuple[Model, str]:
    path, frame = ARMS[name]
    return Model.from_urdf(path), frame


@cache
def planar() -> Model:
    return Model(PLANAR)


@pytest.mark.parametrize("name", ARMS)
def test_poses_of_random_configurations_are_reached_within_the_limits(name: str) -> None:
    model, frame = arm(name)
    rng, limits = np.random.default_rng(7), model.limits
    for _ in range(15):
        pose = model.frame_pose(model.random_configuration(rng), frame)
        found = model.inverse_kinematics(frame, pose)
        assert found.reached, str(found)
        np.testing.assert_allclose(model.frame_pose(found.q, frame), pose, rtol=0, atol=3e-9)
        assert (found.q >= limits.lower).all() and (found.q <= limits.upper).all()
        assert max(found.position_error, found.orientation_error) <= 1e-9


@pytest.mark.parametrize("name", ARMS)
def test_a_near_start_leads_to_the_near_solution(name: str) -> None:
    """And from itself to itself."""
    model, frame = arm(name)
    rng = np.random.default_rng(3)
    for _ in range(8):
        q = 0.8 * model.random_configuration(rng)
        found = model.inverse_kinematics(frame, model.frame_pose(q, frame), q + 0.01 * rng.normal(size=model.nq))
        assert found.reached
        if np.linalg.svd(model.frame_jacobian(q, frame), compute_uv=False).min() > 0.05:
            assert np.abs(found.q - q).max() < 0.3
    found = model.inverse_kinematics(frame, model.frame_pose(q, frame), q)
    np.testing.assert_allclose(found.q, q, atol=1e-12)
    assert found.iterations == 0


@pytest.mark.parametrize(
    "q",
    [
        (0.3, -1.0, 0.0, 0.4, 0.8, 0.1),  # elbow stretched
        (0.3, -1.0, 1.2, 0.4, 0.0, 0.1),  # wrist axes parallel
        (0.3, -1.0, 1e-4, 0.4, 1e-4, 0.1),  # close to both
        (0.0, -math.pi / 2, 0.0, -math.pi / 2, 0.0, 0.0),  # upright
    ],
)
def test_poses_at_and_near_singularities_are_reached(q: tuple[float, ...]) -> None:
    model, frame = arm("ur5")
    pose, rng = model.frame_pose(np.array(q), frame), np.random.default_rng(0)
    for start in (None, np.array(q) + 0.2 * rng.normal(size=6)):
        found = model.inverse_kinematics(frame, pose, start, tolerance=1e-8)
        assert found.reached, str(found)
        np.testing.assert_allclose(model.frame_pose(found.q, frame), pose, rtol=0, atol=1e-7)


def test_a_position_alone_leaves_the_orientation_free() -> None:
    model, frame = arm("ur5")
    found = model.inverse_kinematics(frame, (0.4, 0.2, 0.5))
    assert found.reached and found.orientation_error == 0.0
    np.testing.assert_allclose(model.frame_pose(found.q, frame)[:3, 3], (0.4, 0.2, 0.5), atol=1e-9)


def test_a_pose_out_of_reach_says_what_is_left() -> None:
    """The planar arm of two links of 1 m stretches towards a point 3 m away: 1 m is left."""
    found = planar().inverse_kinematics("tip", (0.0, 3.0, 0.0))
    assert not found.reached
    assert found.position_error == pytest.approx(1.0, abs=1e-6)
    np.testing.assert_allclose(found.q, (math.pi / 2, 0.0), atol=1e-3)
    assert str(found) == "'tip' does not reach the pose: it stays 1 m and 0 deg away"


def test_a_limit_that_is_in_the_way_is_named() -> None:
    """The point is to the left of the base, the joints turn by 2 rad: the nearest is j0 = 2, the elbow straight."""
    found = planar().inverse_kinematics("tip", (-2.0, 0.0, 0.0))
    reach = 2.0 * np.array([math.cos(2.0), math.sin(2.0)])
    assert not found.reached
    assert found.position_error < np.linalg.norm(reach - [-2.0, 0.0])  # bending the elbow comes nearer
    assert "'j0' at the limit" in str(found) and found.at_limits == ("j0",)
    assert abs(found.q[0]) == 2.0


def test_a_redundant_arm_takes_the_posture_nearest_to_what_is_asked() -> None:
    model, frame = arm("panda")
    dofs, rng = np.arange(7), np.random.default_rng(5)
    middle = 0.5 * (model.limits.lower + model.limits.upper)
    for _ in range(5):
        q = 0.5 * (model.random_configuration(rng) + middle)
        pose = model.frame_pose(q, frame)
        plain = model.inverse_kinematics(frame, pose, q, dofs=dofs)
        central = model.inverse_kinematics(frame, pose, q, posture="middle", dofs=dofs)
        assert plain.reached and central.reached
        np.testing.assert_allclose(plain.q, q, atol=1e-5)
        assert np.linalg.norm((central.q - middle)[:7]) <= np.linalg.norm((q - middle)[:7]) + 1e-9
        # no way along the null space leads nearer, but for limits
        J = model.frame_jacobian(central.q, frame)[:, :7]
        pull = (middle - central.q)[:7]
        along = pull - np.linalg.pinv(J, rcond=1e-6) @ (J @ pull)
        free = (central.q > model.limits.lower) & (central.q < model.limits.upper)
        assert not free[:7].all() or np.abs(along).max() < 1e-2
        given = model.inverse_kinematics(frame, pose, q, posture=central.q, dofs=dofs)
        assert given.reached and np.abs(given.q - central.q).max() < 1e-3


def test_dofs_that_are_not_named_stay() -> None:
    model, frame = arm("ur5")
    q = np.array([0.1, -1.0, 1.0, 0.2, 0.3, 0.4])
    found = model.inverse_kinematics(frame, model.frame_pose(q, frame)[:3, 3] + (0.02, 0.0, 0.01), q, dofs=(0, 1, 2))
    assert found.reached
    np.testing.assert_array_equal(found.q[3:], q[3:])


@pytest.mark.parametrize("name", ARMS)
def test_the_rate_of_the_jacobian_is_its_derivative_along_the_motion(name: str) -> None:
    model, frame = arm(name)
    rng, h = np.random.default_rng(2), 1e-6
    q, v = model.random_configuration(rng), rng.normal(size=model.nv)
    difference = model.frame_jacobian(model.integrate(q, h * v), frame)
    difference -= model.frame_jacobian(model.integrate(q, -h * v), frame)
    np.testing.assert_allclose(model.frame_jacobian_rate(q, v, frame), difference / (2.0 * h), atol=1e-8)


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-4, 1.0, 3.0, math.pi - 1e-9, math.pi])
def test_rotation_vectors_at_all_angles(angle: float) -> None:
    rng = np.random.default_rng(4)
    for axis in (*rng.normal(size=(5, 3)), *np.eye(3)):
        vector = angle * axis / np.linalg.norm(axis)
        rotation = Rotation.from_rotvec(vector).as_matrix()
        np.testing.assert_allclose(rotation_by(vector), rotation, rtol=0, atol=1e-15)
        found = rotation_vector(rotation)
        opposite = -vector if angle == math.pi else vector
        assert min(np.abs(found - vector).max(), np.abs(found - opposite).max()) < 1e-12 + 1e-15 * angle


WRONG: dict[str, dict[str, Any]] = {
    "a matrix of three rows": {"pose": np.eye(3)},
    "a position that is no number": {"pose": (math.nan, 0, 0)},
    "a scaled frame": {"pose": np.diag([1.0, 1.0, 2.0, 1.0])},
    "too many coordinates": {"q0": np.zeros(3)},
    "an unknown posture": {"posture": "centre"},
    "a posture of too many coordinates": {"posture": np.zeros(3)},
    "an unknown link": {"frame": "tipp"},
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments_are_refused(case: str, said: Said) -> None:
    given = {"frame": "tip", "pose": np.eye(4), **WRONG[case]}
    said(raised(InputError if "frame" in WRONG[case] else ValueError, planar().inverse_kinematics, **given))


def test_closed_loops_are_refused(said: Said) -> None:
    model = load_rig(FOLDER / "mechanisms" / "andrews.yaml").plant.model
    said(raised(InputError, model.inverse_kinematics, "K1", np.eye(4)))
