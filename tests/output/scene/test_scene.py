"""A mechanism as shapes."""

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cosim import load_rig
from cosim.mechanics.multibody.mechanism import Inertial
from cosim.mechanics.multibody.model import Model
from cosim.output.scene.build import inertia_box, scene_of
from cosim.output.scene.scene import Scene, ScenePose, Shape, quaternions
from cosim.output.scene.sdf_visuals import read_sdf_visuals
from cosim.output.scene.visuals import read_visuals
from cosim.rig.scene import scene_of_rig
from tests.kit.messages import Said
from tests.oracle.conftest import ROBOTS

UR5 = "rigs/robots/ur5.urdf"
BOX = """<robot name="box"><material name="steel"><color rgba="0.1 0.2 0.3 1"/></material>
<link name="base"/><link name="arm"><inertial><mass value="2"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
<visual><origin xyz="0 0 1"/><geometry>{}</geometry><material name="steel"/></visual></link>
<joint name="turn" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/></joint></robot>"""


def rotations(count: int) -> np.ndarray:
    return Rotation.random(count, random_state=1).as_matrix()


def matrix_of(place: ScenePose) -> np.ndarray:
    w, *xyz = place.wxyz
    return np.column_stack([Rotation.from_quat([*xyz, w]).as_matrix(), place.position])


def shapes_of(scene: Scene, role: str) -> dict[str, Shape]:
    return {shape.link: shape for _, shape in scene.shapes if shape.role == role}


def test_quaternions_are_those_of_scipy_up_to_their_sign() -> None:
    half_turns = Rotation.from_rotvec(np.pi * np.eye(3)).as_matrix()
    given = np.concatenate([rotations(50), half_turns, np.eye(3)[None]])
    w, xyz = np.split(quaternions(given), [1], axis=-1)
    back = Rotation.from_quat(np.concatenate([xyz, w], axis=-1)).as_matrix()
    np.testing.assert_allclose(back, given, atol=1e-12)


def test_poses_of_bodies_are_those_of_their_frames() -> None:
    model = Model.from_urdf(UR5)
    q = np.linspace(-1.0, 1.0, model.nq)
    scene = scene_of(model, q)
    aligned = model.equations.tree.frames
    for body, pose in zip(scene.bodies[1:], model.body_poses(q), strict=True):
        own = aligned[body.name][1]
        frame = model.frame_pose(q, body.name)
        np.testing.assert_allclose(pose[:, :3] @ own.rotation, frame[:3, :3], atol=1e-12)
        np.testing.assert_allclose(pose[:, :3] @ own.position + pose[:, 3], frame[:3, 3], atol=1e-12)
        np.testing.assert_allclose(matrix_of(body.pose), pose, atol=1e-12)


def test_a_batch_of_positions_gives_a_batch_of_poses() -> None:
    model = Model.from_urdf(UR5)
    q = np.random.default_rng(0).uniform(-2, 2, (7, model.nq))
    assert model.body_poses(q).shape == (7, 6, 3, 4)
    np.testing.assert_array_equal(model.body_poses(q)[3], model.body_poses(q[3]))


def test_the_box_of_an_inertia_has_this_inertia() -> None:
    axes = rotations(1)[0]
    edges, mass = np.array([0.1, 0.4, 0.9]), 3.0
    moments = mass / 12.0 * ((edges**2).sum() - edges**2)
    (shape,) = inertia_box("arm", Inertial(mass, np.array([1.0, 2.0, 3.0]), axes @ np.diag(moments) @ axes.T))
    turned = matrix_of(shape.pose)[:, :3]
    of_box = mass / 12.0 * ((np.array(shape.size) ** 2).sum() * np.eye(3) - np.diag(np.array(shape.size) ** 2))
    np.testing.assert_allclose(turned @ of_box @ turned.T, axes @ np.diag(moments) @ axes.T, rtol=1e-9)
    assert shape.pose.position == (1.0, 2.0, 3.0)


def test_an_arm_without_visuals_has_bars_drives_and_inertias() -> None:
    scene = scene_of_rig(load_rig("rigs/ur5_sim.yaml"))
    assert scene.coordinates[0] == "shoulder_pan_joint" and not scene.closed
    drives = shapes_of(scene, "drive")
    assert list(drives) == [body.name for body in scene.bodies[1:]]
    assert all(shape.kind == "cylinder" for shape in drives.values())
    assert set(shapes_of(scene, "inertia")) == set(drives)
    bars = [(k, shape) for k, shape in scene.shapes if shape.role == "link"]
    upper_arm = next(shape for k, shape in bars if scene.bodies[k].name == "upper_arm_link")
    assert upper_arm.size[2] == pytest.approx(0.425, rel=0.02)


def test_bars_of_both_bodies_lead_to_a_joint_that_closes_a_loop() -> None:
    scene = scene_of_rig(load_rig("rigs/mechanisms/four_bar.yaml"))
    assert scene.closed
    ends = []
    for k, shape in scene.shapes:
        if shape.role == "link":
            pose, own = matrix_of(scene.bodies[k].pose), matrix_of(shape.pose)
            middle = pose[:, :3] @ own[:, 3] + pose[:, 3]
            half = pose[:, :3] @ own[:, 2] * shape.size[2] / 2
            ends += [tuple(np.round(middle + half, 9)), tuple(np.round(middle - half, 9))]
    assert len(ends) == 2 * len(set(ends)) - 2  # an open end at each pivot on the ground only


def test_springs_lead_from_body_to_body() -> None:
    scene = scene_of_rig(load_rig("rigs/mechanisms/car_axis.yaml"))
    assert scene.springs
    assert all(0 <= k < len(scene.bodies) for spring in scene.springs for k in (spring.start[0], spring.end[0]))


@pytest.mark.parametrize(
    ("geometry", "kind", "size"),
    [
        ('<box size="1 2 3"/>', "box", (1.0, 2.0, 3.0)),
        ('<sphere radius="0.5"/>', "ellipsoid", (1.0, 1.0, 1.0)),
        ('<cylinder radius="0.5" length="4"/>', "cylinder", (1.0, 1.0, 4.0)),
        ('<mesh filename="arm.stl" scale="2 2 2"/>', "mesh", (2.0, 2.0, 2.0)),
    ],
)
def test_visuals_of_a_robot_file_replace_the_bars(
    geometry: str, kind: str, size: tuple[float, ...], tmp_path: Path
) -> None:
    (tmp_path / "arm.stl").touch()
    (tmp_path / "box.urdf").write_text(BOX.format(geometry))
    visuals, notes = read_visuals(tmp_path / "box.urdf", {}, [])
    assert notes == []
    model = Model.from_urdf(tmp_path / "box.urdf")
    scene = scene_of(model, np.zeros(1), visuals=visuals)
    shape = shapes_of(scene, "visual")["arm"]
    assert (shape.kind, shape.size, shape.color) == (kind, size, (0.1, 0.2, 0.3, 1.0))
    assert {shape.role for _, shape in scene.shapes} == {"visual", "inertia"}
    in_ground = matrix_of(scene.bodies[1].pose)[:, :3] @ shape.pose.position
    np.testing.assert_allclose(in_ground, [0.0, 0.0, 1.0], atol=1e-12)


@pytest.mark.parametrize(
    "geometry", ['<mesh filename="arm.stl"/>', '<mesh filename="arm.step"/>', "<cone/>", '<box size="1 2"/>', ""]
)
def test_a_visual_that_cannot_be_shown_is_a_note(geometry: str, tmp_path: Path, said: Said) -> None:
    (tmp_path / "box.urdf").write_text(BOX.format(geometry))
    visuals, notes = read_visuals(tmp_path / "box.urdf", {}, [])
    assert visuals == {"arm": []} or visuals == {}
    said(notes)


@pytest.mark.parametrize(
    ("geometry", "kind", "size"),
    [
        ("<box><size>1 2 3</size></box>", "box", (1.0, 2.0, 3.0)),
        ("<sphere><radius>2</radius></sphere>", "ellipsoid", (4.0, 4.0, 4.0)),
        ("<ellipsoid><radii>1 2 3</radii></ellipsoid>", "ellipsoid", (2.0, 4.0, 6.0)),
        ("<cylinder><radius>2</radius><length>3</length></cylinder>", "cylinder", (4.0, 4.0, 3.0)),
        ("<mesh><uri>arm.stl</uri><scale>1 1 2</scale></mesh>", "mesh", (1.0, 1.0, 2.0)),
        ("<mesh><uri>../arm.stl</uri></mesh>", "", ()),
        ("<mesh><uri>arm.step</uri></mesh>", "", ()),
        ("<plane/>", "", ()),
        ("<box><size>1 2</size></box>", "", ()),
    ],
)
def test_visuals_of_an_sdf_file(geometry: str, kind: str, size: tuple[float, ...], tmp_path: Path, said: Said) -> None:
    for name in ("arm.stl", "arm.step"):
        (tmp_path / name).touch()
    color = "<material><diffuse>0.1 0.2 0.3</diffuse></material>"
    visual = f"<visual name='v'><pose>0 0 1 0 0 0</pose><geometry>{geometry}</geometry>{color}</visual>"
    path = tmp_path / "box.sdf"
    path.write_text(f"<sdf version='1.9'><model name='m'><link name='arm'>{visual}</link></model></sdf>")
    visuals, notes = read_sdf_visuals(path, None, [])
    said(notes)
    shown = [(each.kind, each.size, each.color, each.pose.position.tolist()) for each in visuals.get("arm", [])]
    assert shown == [(kind, size, (0.1, 0.2, 0.3, 1.0), [0.0, 0.0, 1.0])] * bool(kind)


def test_meshes_of_a_robot_of_ros_packages_are_found() -> None:
    path = ROBOTS / "ur_description" / "urdf" / "ur5_robot.urdf"
    visuals, notes = read_visuals(path, {}, [])
    assert notes == []
    files = [Path(visual.file) for own in visuals.values() for visual in own if visual.kind == "mesh"]
    assert len(files) >= 7 and all(file.is_file() for file in files)


HILLS = """\
mechanism:
  ground: {friction: 0.6, xyz: [0.3, -0.2, 0.1], rpy: [0, 0.1, 0.4], terrain: {file: hills.csv, spacing: 5 cm}}
  bodies: [{name: ball, parent: base, type: free, mass: 3 kg, inertia: [0.02, 0.02, 0.02]}]
  contacts: [{name: c, link: ball, sphere: 0.1, with: ground, stiffness: 1e5}]
joints: {ball: {initial: {position: [0.2, 0, 0.6, 0, 0, 0, 1]}}}
schedule: {step: 1 ms}
"""


@pytest.mark.parametrize("spread", [1.0, 10.0])
def test_a_terrain_is_plates_about_the_mechanism(spread: float, tmp_path: Path) -> None:
    """The middle of each plate is on the terrain, as near as its cell is flat; far parts are left out."""

    def height(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return 0.12 * np.sin(1.2 * x + 0.5) * np.cos(1.1 * y)

    count = round(30 * spread)
    at = 0.05 * np.arange(-count, count + 1)
    np.savetxt(tmp_path / "hills.csv", height(at[:, None], at[None, :]), delimiter=",")
    (tmp_path / "hills.yaml").write_text(HILLS)
    rig = load_rig(tmp_path / "hills.yaml")
    scene = scene_of_rig(rig)
    plates = [shape for shape in scene.bodies[0].shapes if shape.role == "contact"]
    assert len(plates) == 400 and not scene.notes
    turned = Rotation.from_euler("xyz", [0, 0.1, 0.4]).as_matrix()
    for plate in plates:
        axes = Rotation.from_quat(np.roll(plate.pose.wxyz, -1)).as_matrix()
        top = np.array(plate.pose.position) + 0.5 * plate.size[2] * axes[:, 2]
        x, y, z = turned.T @ (top - [0.3, -0.2, 0.1])
        assert abs(z - height(x, y)) < 6e-3  # a cell of 0.25 m at most, bent by 0.2 per m
        slope_x, slope_y = ((height(x + dx, y + dy) - height(x - dx, y - dy)) / 2e-4 for dx, dy in np.eye(2) * 1e-4)
        normal = np.array([-slope_x, -slope_y, 1.0])
        assert (turned.T @ axes[:, 2]) @ normal / np.linalg.norm(normal) > np.cos(0.03)
    reach = max(np.linalg.norm(np.array(plate.pose.position[:2]) - [0.2, 0.0]) for plate in plates)
    assert reach < 3.0 * 1.5 * scene.extent + 0.3
