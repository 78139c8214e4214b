"""Contacts in 3D and in plots: the shapes that may touch, the arrows of their forces, panels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cosim import load_rig
from cosim.output.plot.mechanism_panels import contact_panels, contacts_of, panels_of
from cosim.output.view3d.contact_arrows import LONGEST, contact_update
from cosim.output.view3d.drawing import read_drawing
from cosim.rig.rig import Rig
from cosim.rig.run.run import Run
from cosim.rig.scene import drawing_text_of, scene_of_rig, view_of
from tests.kit.foxglove import message_class

RIG = """
name: shapes
mechanism:
  ground: {friction: 0.5}
  bodies:
    - {name: cube, parent: base, type: free, mass: 2, com: [0, 0, 0], inertia: [0.02, 0.02, 0.02]}
    - {name: bar, parent: base, type: free, mass: 1, com: [0, 0, 0], inertia: [0.02, 0.02, 0.002]}
  contacts:
    - {name: box, link: cube, box: [0.2, 0.2, 0.2], with: ground}
    - {name: capsule, link: bar, capsule: {radius: 0.05, length: 0.4}, with: ground}
    - {name: both, link: bar, sphere: 0.06, with: {link: cube, sphere: 0.05}, friction: 0.1}
joints:
  cube: {initial: {position: [0, 0, 0.1, 0, 0, 0, 1], velocity: [1, 0, 0, 0, 0, 0]}}
  bar: {initial: {position: [1, 0, 0.5, 0, 0, 0, 1]}}
schedule: {step: 1 ms, duration: 0.4}
"""


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Rig:
    path: Path = tmp_path_factory.mktemp("shapes") / "rig.yaml"
    path.write_text(RIG)
    return load_rig(path)


@pytest.fixture(scope="module")
def run(rig: Rig) -> Run:
    return rig.run()


def test_shapes_that_may_touch_are_solids_of_their_bodies(rig: Rig) -> None:
    scene = scene_of_rig(rig)
    found = [(scene.bodies[body].name, shape.kind) for body, shape in scene.shapes if shape.role == "contact"]
    assert sorted(found) == sorted(
        [
            (scene.bodies[0].name, "box"),  # the ground, once
            *[("cube", "box"), ("cube", "ellipsoid")],
            *[("bar", "cylinder"), *[("bar", "ellipsoid")] * 3],
        ]
    )
    assert read_drawing(drawing_text_of(rig), "").scene.force_length == scene.force_length
    weight = 3 * 9.81 * scene.force_length
    assert 0.4 * scene.extent <= weight <= scene.extent


def test_an_arrow_is_the_force_at_its_point(rig: Rig, run: Run) -> None:
    view = view_of(rig, run.signals, 30.0)
    assert view is not None and [contact.name for contact in view.contacts] == ["box", "capsule", "both"]
    tick = 50  # the cube slides, the bar falls
    (entity,) = message_class("SceneUpdate").FromString(contact_update(view, 10**9, run.values[tick])).entities
    assert entity.id == "contacts" and f"{1e3 * view.scene.force_length:g} mm/N" in entity.metadata[0].value
    (arrow,) = entity.arrows
    pose = arrow.pose
    turn = Rotation.from_quat([getattr(pose.orientation, axis) for axis in "xyzw"])
    vector = turn.apply([arrow.shaft_length + arrow.head_length, 0.0, 0.0]) / view.scene.force_length
    assert vector == pytest.approx([run[f"box/force_{axis}"][tick] for axis in "xyz"], rel=1e-9, abs=1e-9)
    at = [getattr(pose.position, axis) for axis in "xyz"]
    assert at == [run[f"box/point_{axis}"][tick] for axis in "xyz"]
    slides = arrow.color
    (entity,) = message_class("SceneUpdate").FromString(contact_update(view, 10**9, run.values[-1])).entities
    assert len(entity.arrows) == len(entity.spheres) == 2 and entity.arrows[0].color != slides
    impact = int(np.argmax(run["capsule/normal_force"]))
    (entity,) = message_class("SceneUpdate").FromString(contact_update(view, 10**9, run.values[impact])).entities
    longest = max(one.shaft_length + one.head_length for one in entity.arrows)
    assert longest == pytest.approx(LONGEST * view.scene.extent)


def test_panels_show_forces_gaps_and_states(run: Run) -> None:
    signals = {name: run[name] for name in run.signals}
    assert contacts_of(signals) == ["box", "capsule", "both"]
    force, gap, states = contact_panels(signals)
    assert [curve.name for curve in force.curves] == [curve.name for curve in gap.curves] == list(states.rows)
    for row, curve in enumerate(states.curves):
        state = run[f"{curve.name}/state"]
        heights = np.asarray(curve.values[:]) + row
        assert (heights[state == 0] == 0).all() and (np.diff([heights[state == k].max() for k in {*state}]) > 0).all()
    # contacts slip too, and are no constraints
    assert [panel.title for panel in panels_of(signals, dict(run.rig.units))] == ["energy; potential: its change"]
