"""Lines and arcs of a frame: the frame on its path, its speed, the derivatives of the joints, errors in one line."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation, Slerp

from cosim.core.compile import ArrayPort, compile
from cosim.core.types import TrajectoryContext
from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.description.urdf import parse_urdf
from cosim.plugins.trajectories import arc, line
from cosim.plugins.trajectories._fastest import PathTrajectory
from tests.kit.messages import Said
from tests.kit.refusals import raised, refusal
from tests.oracle.conftest import ROBOTS

UR5 = Path(__file__).parents[2] / "rigs" / "robots" / "ur5.urdf"
START = {
    "ur5": np.radians([0.0, -80.0, 100.0, -110.0, -90.0, 0.0]),
    "panda": np.array([0.0, -0.4, 0.0, -2.0, 0.0, 1.6, 0.8, 0.01, 0.01]),
}
FRAME = {"ur5": "tool0", "panda": "panda_hand_tcp"}
KEYS = ("position", "velocity", "acceleration")


@cache
def arm(name: str) -> Model:
    return Model.from_urdf(UR5 if name == "ur5" else ROBOTS / "panda_description/urdf/panda.urdf")


def planned(module: ModuleType, name: str = "ur5", joints: int | None = None, **keys: Any) -> PathTrajectory:
    model = arm(name)
    start, index = START[name][: model.nv], np.arange(joints or (7 if name == "panda" else 6))
    context = TrajectoryContext(index, model, start, model.limits.at(index))
    params = module.Params(**{"frame": FRAME[name], **keys})
    return module.load(params, tuple(np.array(model.dof_names)[index]), Path(), start[index], context)


def motion(trajectory: PathTrajectory, count: int = 997) -> dict[str, np.ndarray]:
    def sampled(t: Any) -> Any:
        return tuple(trajectory.sample(t)[key] for key in KEYS)

    t = np.linspace(0.0, trajectory.end, count)
    return dict(zip(KEYS, compile(sampled, [ArrayPort("t", ())])(t), strict=True)) | {"t": t}


def poses(name: str, positions: np.ndarray) -> np.ndarray:
    model = arm(name)
    whole = np.tile(START[name][: model.nv], (len(positions), 1))
    whole[:, : positions.shape[1]] = positions
    return model.frame_pose(whole, FRAME[name])


def start_of(name: str) -> np.ndarray:
    return arm(name).frame_pose(START[name][: arm(name).nv], FRAME[name])


@pytest.mark.parametrize("name", ["ur5", "panda"])
def test_the_frame_is_on_the_line_at_every_time_and_keeps_its_orientation(name: str) -> None:
    way = np.array([0.05, 0.2, -0.1])
    found = motion(planned(line, name, displacement=tuple(way), duration=1.0))
    begin, along = start_of(name), poses(name, found["position"])
    fraction = (along[:, :3, 3] - begin[:3, 3]) @ way / (way @ way)
    np.testing.assert_allclose(along[:, :3, 3], begin[:3, 3] + fraction[:, None] * way, rtol=0, atol=2e-8)
    np.testing.assert_allclose(along[:, :3, :3], np.tile(begin[:3, :3], (len(along), 1, 1)), rtol=0, atol=2e-8)
    s = found["t"]
    np.testing.assert_allclose(fraction, s**3 * (10.0 + s * (6.0 * s - 15.0)), atol=1e-7)


def test_points_are_added_where_a_path_comes_close_to_the_end_of_the_reach() -> None:
    trajectory = planned(line, displacement=(0.0, 0.8, -0.05), duration=1.0)
    assert len(trajectory.path.row_at.begins) > 102  # 50 pieces are not enough
    found = motion(trajectory, 1997)
    along, begin = poses("ur5", found["position"])[:, :3, 3], start_of("ur5")[:3, 3]
    np.testing.assert_allclose(along[:, 0], begin[0], rtol=0, atol=3e-8)
    np.testing.assert_allclose(along[:, 2] - begin[2], -0.0625 * (along[:, 1] - begin[1]), rtol=0, atol=3e-8)


def test_the_orientation_turns_by_slerp() -> None:
    rpy = (3.0, 0.2, 0.7)
    found = motion(planned(line, displacement=(0.0, 0.1, 0.0), rpy=rpy, duration=1.0))
    begin, along = start_of("ur5"), poses("ur5", found["position"])
    fraction = (along[:, 1, 3] - begin[1, 3]) / 0.1
    ends = Rotation.concatenate([Rotation.from_matrix(begin[:3, :3]), Rotation.from_euler("xyz", rpy)])
    reference = Slerp([0.0, 1.0], ends)(np.clip(fraction, 0.0, 1.0))
    np.testing.assert_allclose((reference.inv() * Rotation.from_matrix(along[:, :3, :3])).magnitude(), 0.0, atol=1e-6)
    assert ends[1].magnitude() != ends[0].magnitude()


def test_a_trapezoid_bounds_the_speed_of_the_frame() -> None:
    trajectory = planned(line, displacement=(0.0, 0.3, -0.1), max_velocity=0.4, max_acceleration=2.0)
    length = math.hypot(0.3, 0.1)
    assert trajectory.end == pytest.approx(length / 0.4 + 0.4 / 2.0)
    found = motion(trajectory, 4001)
    speed = np.linalg.norm(np.gradient(poses("ur5", found["position"])[:, :3, 3], found["t"], axis=0), axis=1)
    assert speed.max() == pytest.approx(0.4, rel=1e-4)
    assert np.abs(np.gradient(speed, found["t"])).max() == pytest.approx(2.0, rel=1e-2)


def test_a_goal_is_a_displacement_from_the_start() -> None:
    way = np.array([0.0, 0.2, -0.1])
    by_goal = planned(line, goal=tuple(start_of("ur5")[:3, 3] + way), duration=1.0)
    by_way = planned(line, displacement=tuple(way), duration=1.0)
    np.testing.assert_allclose(by_goal.sample(0.63)["position"], by_way.sample(0.63)["position"], atol=1e-12)


@pytest.mark.parametrize("orientation", ["keep", "turn", "free"])
@pytest.mark.parametrize("name", ["ur5", "panda"])
def test_the_frame_is_on_the_circle(name: str, orientation: Any) -> None:
    begin = start_of(name)
    center, radius = begin[:3, 3] - [0.08, 0.0, 0.02], 0.08
    keys: dict[str, Any] = {"center": tuple(center), "axis": (0.0, 0.0, 2.0), "angle": 0.5 * math.pi}
    found = motion(planned(arc, name, orientation=orientation, duration=2.0, **keys))
    along = poses(name, found["position"])
    s = found["t"] / 2.0
    angle = 0.5 * math.pi * s**3 * (10.0 + s * (6.0 * s - 15.0))
    expected = center + np.stack([radius * np.cos(angle), radius * np.sin(angle), np.full(len(s), 0.02)], axis=1)
    np.testing.assert_allclose(along[:, :3, 3], expected, rtol=0, atol=2e-8)
    turned = Rotation.from_rotvec(np.outer(angle, (0, 0, 1))) if orientation == "turn" else Rotation.identity()
    if orientation != "free":
        expected = (turned * Rotation.from_matrix(begin[:3, :3])).as_matrix()
        np.testing.assert_allclose(along[:, :3, :3], np.broadcast_to(expected, (len(s), 3, 3)), rtol=0, atol=2e-8)


@pytest.mark.parametrize("name", ["ur5", "panda"])
@pytest.mark.parametrize("module", [line, arc])
def test_velocities_and_accelerations_are_the_derivatives(name: str, module: ModuleType) -> None:
    center = tuple(start_of(name)[:3, 3] - [0.1, 0.0, 0.0])
    keys: dict[str, Any] = {"displacement": (0.05, 0.2, -0.1), "rpy": (3.0, 0.2, 0.7)}
    if module is arc:
        keys = {"center": center, "axis": (0.1, 0.0, 1.0), "angle": math.pi}
    trajectory, h = planned(module, name, duration=1.0, **keys), 1e-4
    for t in np.linspace(0.01, 0.99, 37):
        before, now, after = (trajectory.sample(t + shift) for shift in (-h, 0.0, h))
        for value, rate in (("position", "velocity"), ("velocity", "acceleration")):
            slope = (after[value] - before[value]) / (2.0 * h)
            np.testing.assert_allclose(now[rate], slope, atol=3e-6 * max(1.0, np.abs(slope).max()))


def test_a_redundant_arm_moves_with_the_least_velocities() -> None:
    model, found = arm("panda"), motion(planned(line, "panda", displacement=(0.05, 0.2, -0.1), duration=1.0), 41)
    for q, v in zip(found["position"][1:-1], found["velocity"][1:-1], strict=True):
        whole = START["panda"][: model.nv].copy()
        whole[:7] = q
        J = model.frame_jacobian(whole, FRAME["panda"])[:, :7]
        np.testing.assert_allclose(np.linalg.pinv(J) @ (J @ v), v, atol=1e-6)


def test_joints_of_others_stay() -> None:
    trajectory = planned(line, joints=3, displacement=(0.0, 0.05, 0.02), orientation="free", duration=1.0)
    found = motion(trajectory)
    along = poses("ur5", found["position"])
    np.testing.assert_allclose(along[-1, :3, 3], start_of("ur5")[:3, 3] + [0.0, 0.05, 0.02], atol=1e-8)


def test_an_arm_of_two_joints_follows_lines_in_its_plane() -> None:
    text = "".join(
        f'<link name="l{k}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
        f'</inertial></link><joint name="j{k}" type="continuous"><parent link="{"base" if k == 0 else f"l{k - 1}"}"/>'
        f'<child link="l{k}"/><origin xyz="{k} 0 0"/><axis xyz="0 0 1"/></joint>'
        for k in range(2)
    )
    tip = '<link name="tip"/><joint name="end" type="fixed"><parent link="l1"/><child link="tip"/><origin xyz="1 0 0"/>'
    model = Model(parse_urdf(f'<robot name="planar"><link name="base"/>{text}{tip}</joint></robot>'))
    start = np.array([0.3, 1.0])
    context = TrajectoryContext(np.arange(2), model, start, model.limits)
    params = line.Params(frame="tip", displacement=(-0.5, 0.4, 0.0), orientation="free", duration=1.0)
    trajectory = line.load(params, ("j0", "j1"), Path(), start, context)
    middle, begin = model.frame_pose(trajectory.sample(0.5)["position"], "tip"), model.frame_pose(start, "tip")
    np.testing.assert_allclose(middle[:3, 3], begin[:3, 3] + [-0.25, 0.2, 0.0], atol=1e-8)
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        (
            {"displacement": (0.0, 0.0, 0.3), "orientation": "free"},
            "2 joints move 'tip' in 2 of 3 directions, and the line takes another one; turn it into theirs, or give the"
            " controller more joints",
        ),
        (
            {"displacement": (-0.2, 0.1, 0.0)},
            "2 joints cannot hold the orientation of 'tip' along the line: they move it in 2 of 6 directions;"
            " use orientation: free",
        ),
        (  # in the plane, but too far
            {"displacement": (2.0, 1.0, 0.0), "orientation": "free"},
            "the line leaves the reach of 'tip' at 11.5 %; at 12 % it misses the line by 0.0104 m; shorten it",
        ),
    )
    for keys, message in cases:
        words = refusal(line.load, line.Params(frame="tip", duration=1.0, **keys), ("j0", "j1"), Path(), start, context)
        assert words == message


@pytest.mark.parametrize(
    "keys",
    [
        {"displacement": (0.0, 1.5, -0.1)},
        {"displacement": (0.0, 1.5, -0.1), "orientation": "free"},
        {"displacement": (0.0, 0.0, 0.0)},
        {},
        {"rpy": (3.0, 0.2, 0.7), "max_velocity": 0.5, "max_acceleration": 1.0, "duration": None},
        {"frame": "tool", "displacement": (0.1, 0, 0)},
    ],
    ids=str,
)
def test_lines_that_cannot_be_followed_are_refused(keys: dict[str, Any], said: Said) -> None:
    said(refusal(planned, line, **{"duration": 1.0, **keys}))


@pytest.mark.parametrize(
    "keys",
    [
        {"center": (0.0, 0.0, 0.0), "angle": 4.0 * math.pi, "orientation": "turn"},
        {"center": (-0.53704491, -0.10915, 0.0)},
    ],
    ids=str,
)
def test_arcs_that_cannot_be_followed_are_refused(keys: dict[str, Any], said: Said) -> None:
    said(refusal(planned, arc, **{"duration": 1.0, "axis": (0.0, 0.0, 1.0), "angle": 1.0, **keys}))


UNCLEAR = "the speed is unclear; give a duration, max_velocity and max_acceleration, or time_optimal: true"


@pytest.mark.parametrize(
    ("module", "keys"),
    [
        (line, {"frame": "tool0"}),
        (line, {"frame": "tool0", "max_velocity": 1.0}),
        (line, {"frame": "tool0", "max_velocity": 1.0, "duration": 1.0}),
        (line, {"frame": "tool0", "duration": 1.0, "goal": (0, 0, 0), "displacement": (0, 0, 1)}),
        (line, {"frame": "tool0", "duration": 1.0, "rpy": (0, 0, 0), "orientation": "free"}),
        (arc, {"frame": "tool0", "duration": 1.0, "center": (0, 0, 0), "axis": (0, 0, 0), "angle": 1.0}),
        (arc, {"frame": "tool0", "duration": 1.0, "center": (0, 0, 0), "axis": (0, 0, 1), "angle": 0.0}),
    ],
    ids=lambda given: given.__name__.rpartition(".")[2] if isinstance(given, ModuleType) else str(given),
)
def test_wrong_parameters_are_refused(module: ModuleType, keys: dict[str, Any], said: Said) -> None:
    said(raised(ValueError, module.Params, **keys))


RIG = f"""
    mechanism:
      urdf: {UR5}
      frames: [{{name: tip, link: tool0}}]
    joints:
      all: {{actuator: {{type: ideal}}}}
      shoulder_lift_joint: {{initial: {{position: -80 deg}}}}
      elbow_joint: {{initial: {{position: 100 deg}}}}
      wrist_1_joint: {{initial: {{position: -110 deg}}}}
      wrist_2_joint: {{initial: {{position: -90 deg}}}}
    controllers:
      - type: computed_torque
        bandwidth: 15 Hz
        trajectory: {{type: line, frame: tool0, displacement: [0, 20 cm, LENGTH], duration: 0.8 s}}
    schedule: {{step: 1 ms, duration: 1 s}}
"""


def test_the_tool_of_a_rig_follows_the_line(rig_of: Any) -> None:
    run = rig_of(RIG.replace("LENGTH", "-10 cm")).run()
    for axis, way in (("x", 0.0), ("y", 0.2), ("z", -0.1)):
        path = run[f"tip.{axis}/position"]
        assert path[-1] - path[0] == pytest.approx(way, abs=2e-4)
    sideways = run["tip.y/position"] - run["tip.y/position"][0]
    np.testing.assert_allclose(run["tip.z/position"] - run["tip.z/position"][0], -0.5 * sideways, atol=5e-4)


@pytest.mark.parametrize("keys", ["delay: -1", "duration: 0", "max_velocity: 0", "max_acceleration: -1"])
@pytest.mark.parametrize("kind", ["line", "arc, center: [0, 0, 0], axis: [0, 0, 1], angle: 1"])
def test_times_and_speeds_out_of_bounds_are_refused(rig_of: Any, kind: str, keys: str, said: Said) -> None:
    text = RIG.replace("type: line", f"type: {kind}").replace(", displacement: [0, 20 cm, LENGTH], duration: 0.8 s", "")
    text = text.replace("frame: tool0}}", "frame: tool0}").replace("frame: tool0}", f"frame: tool0, {keys}}}")
    said(refusal(rig_of, text))


def test_a_rig_names_the_place_of_a_line_out_of_reach(rig_of: Any, said: Said) -> None:
    said(refusal(rig_of, RIG.replace("LENGTH", "-3 m")))


CLOSED = """
    mechanism:
      bodies:
        - {name: crank, joint: j1, axis: [0, 1, 0], mass: 1 kg, inertia: [1, 1, 1]}
      constraints:
        - {name: leash, type: distance, between: [base, crank], points: [[0, 0, 1], [0.5, 0, 0]], length: 1.118 m}
    joints: {j1: {actuator: {type: ideal}}}
    controllers: [{type: passthrough, kp: 1, kd: 1, trajectory: {TRAJECTORY}}]
    schedule: {duration: 0.1 s}
"""


@pytest.mark.parametrize(
    ("trajectory", "what"),
    [
        ("type: line, frame: crank, displacement: [0.1, 0, 0], duration: 1 s", "paths of a frame take"),
        ("type: time_optimal, points: [[0.1]], max_acceleration: 1", "time_optimal takes"),
    ],
)
def test_closed_loops_are_refused(rig_of: Any, trajectory: str, what: str) -> None:
    assert refusal(rig_of, CLOSED.replace("TRAJECTORY", trajectory)).endswith(
        f"controllers[0].trajectory: {what} mechanisms without closed loops and without parts that depend on time; give"
        " the joints another trajectory"
    )
