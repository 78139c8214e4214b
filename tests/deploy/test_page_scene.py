"""The scene of a page: solids only, no files, nothing too small to be seen."""

from __future__ import annotations

import numpy as np
import pytest

from cosim import load_rig
from cosim.apps.deploy.page.page import SMALLEST_BODY, scene_facts
from cosim.output.scene.scene import Scene, SceneBody, ScenePose, Shape
from cosim.rig.scene import scene_of_page, scene_of_rig
from tests.kit.given import beside
from tests.kit.samples import FOLDER

GIVEN = beside(__file__)

ORIGIN = ScenePose((0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0))
ROBOT = GIVEN["robot"]
TETRAHEDRON = GIVEN["tetrahedron"]


def test_a_link_that_a_mesh_shows_is_a_bar_and_others_stay_as_the_robot_file_has_them(tmp_path) -> None:
    (tmp_path / "lower.stl").write_text(TETRAHEDRON)
    (tmp_path / "arm.urdf").write_text(ROBOT)
    (tmp_path / "arm.yaml").write_text("name: arm\nmechanism: {urdf: arm.urdf}\nschedule: {duration: 1 s}\n")
    rig = load_rig(tmp_path / "arm.yaml")
    assert {shape.kind for _, shape in scene_of_rig(rig).shapes} >= {"mesh", "box"}
    scene = scene_of_page(rig)
    upper, lower = scene.bodies[1:]
    assert [(shape.kind, shape.role, shape.size) for shape in upper.shapes if shape.role == "visual"] == [
        ("box", "visual", (0.1, 0.2, 0.3))
    ]
    assert {shape.kind for shape in lower.shapes} == {"cylinder", "box"}
    assert {shape.role for shape in lower.shapes} == {"joint", "link", "inertia"}


def test_bars_lead_from_the_fixed_base_to_the_joints_on_it(tmp_path) -> None:
    based = ROBOT.replace(
        '<link name="base"/>',
        '<link name="world"/><link name="base"><visual><geometry><mesh filename="base.stl"/></geometry></visual></link>'
        '<joint name="stand" type="fixed"><parent link="world"/><child link="base"/><origin xyz="0 0 0.4"/></joint>',
    ).replace('<child link="upper"/>', '<child link="upper"/><origin xyz="0.3 0 0"/>')
    (tmp_path / "arm.urdf").write_text(based)
    for name in ("lower", "base"):
        (tmp_path / f"{name}.stl").write_text(TETRAHEDRON)
    (tmp_path / "arm.yaml").write_text("name: arm\nmechanism: {urdf: arm.urdf}\nschedule: {duration: 1 s}\n")
    (bar,) = scene_of_page(load_rig(tmp_path / "arm.yaml")).bodies[0].shapes
    assert (bar.kind, bar.role) == ("cylinder", "link")
    assert bar.size[2] == pytest.approx(0.3)
    assert bar.pose.position == pytest.approx((0.15, 0.0, 0.4))
    (tmp_path / "arm.urdf").write_text(ROBOT)
    assert scene_of_page(load_rig(tmp_path / "arm.yaml")).bodies[0].shapes == ()  # a frame without a mass


def body(*shapes: Shape) -> Scene:
    bodies = tuple(SceneBody(name, 0, ORIGIN, own) for name, own in (("base", ()), ("link", shapes)))
    return Scene("arm", bodies, (), ("q",), 2.0, 0.0, False, False)


def test_the_box_of_an_inertia_is_shown_only_where_a_body_has_nothing_else() -> None:
    box = Shape("box", "inertia", "link", ORIGIN, (1.0, 0.5, 0.5))
    bar = Shape("cylinder", "link", "link", ORIGIN, (0.1, 0.1, 1.0))
    kinds = [
        [shape["kind"] for shape in scene_facts(body(*own))["bodies"][1]["shapes"]] for own in ((box, bar), (box,))
    ]
    assert kinds == [["cylinder"], ["box"]]


def test_a_point_mass_is_enlarged_and_keeps_its_form() -> None:
    found = scene_facts(body(Shape("box", "drive", "link", ORIGIN, (1e-4, 1e-4, 2e-4))))["bodies"][1]["shapes"][0]
    assert found["size"] == pytest.approx([SMALLEST_BODY, SMALLEST_BODY, 2.0 * SMALLEST_BODY])
    assert found["color"] == [0.169, 0.424, 0.69, 1.0]


def test_the_forces_of_contacts_are_drawn_from_their_signals() -> None:
    rig = load_rig(FOLDER / "contacts" / "quadruped_stand.yaml")
    scene, signals = scene_of_page(rig), list(rig.tick_model.signals.declared)
    facts = scene_facts(scene, signals)
    forces = facts["forces"]
    named = [
        {key: signals[of] if isinstance(of, int) else [signals[k] for k in of] for key, of in contact.items()}
        for contact in forces["contacts"]
    ]
    assert named[0] == {
        "state": "lf/state",
        "force": [f"lf/force_{axis}" for axis in "xyz"],
        "point": [f"lf/point_{axis}" for axis in "xyz"],
    }
    assert len(named) == 4 and forces["length"] == scene.force_length > 0.0
    plates = [shape for shape in facts["bodies"][0]["shapes"] if shape["floor"]]
    assert len(plates) == 1 and not any(shape["floor"] for body in facts["bodies"][1:] for shape in body["shapes"])
    assert scene_facts(body())["forces"]["contacts"] == []


def test_a_bar_leads_to_what_touches() -> None:
    scene = scene_of_page(load_rig(FOLDER / "contacts" / "quadruped_stand.yaml"))
    shank = next(body for body in scene.bodies if body.name == "lf_shank")
    foot = next(shape for shape in shank.shapes if shape.role == "contact")
    assert np.linalg.norm(foot.pose.position) == pytest.approx(0.2)
    assert any(shape.role == "link" and shape.size[2] == pytest.approx(0.2) for shape in shank.shapes)


def test_an_elastic_link_has_a_pose_for_each_of_its_pieces() -> None:
    from cosim.apps.deploy.tick_code import poses_routine

    rig = load_rig(FOLDER / "elastic" / "cantilever.yaml")
    model = rig.tick_model
    poses = np.asarray(poses_routine(model).fn(0.0, model.plant.layout.pack(model.initial()["plant"])))
    scene = scene_of_page(rig)
    assert poses.shape == (len(scene.bodies) - 1, 3, 4)
    assert len(poses) > rig.plant.model.nv
    expected = np.array([body.pose.position for body in scene.bodies[1:]])
    np.testing.assert_allclose(poses[:, :, 3], expected, atol=1e-12)
