"""Elastic links are drawn as short bars that follow their bending."""

from __future__ import annotations

import numpy as np
import pytest

from cosim import load_rig
from cosim.output.scene.build import scene_of
from cosim.output.view3d.view import mounts_of
from tests.kit.samples import FOLDER


@pytest.fixture(scope="module")
def arm():
    return load_rig(FOLDER / "elastic/two_link_arm.yaml").plant.model


def test_segments(arm):
    scene = scene_of(arm, arm.neutral())
    names = [body.name for body in scene.bodies]
    assert names[-16:] == [f"{link}@segment_{k}" for link in ("upper_arm", "forearm") for k in range(1, 9)]
    assert len(names) == len(set(names)) == 1 + len(arm.body_poses(arm.neutral()))
    carriers = {names[body.parent] for body in scene.bodies[-16:]}
    assert carriers == {"upper_arm@modes", "forearm@modes"}
    for body in scene.bodies[-16:]:
        (bar,) = body.shapes
        assert bar.kind == "cylinder" and bar.role == "link"
        assert bar.size[2] == pytest.approx(0.1 if body.name.startswith("upper") else 0.7 / 8)
    assert len(mounts_of(arm, scene)) == len(names)


def test_segments_follow_the_beam(arm):
    """Their ends meet, from the root to the tip, when the links are bent."""
    q = arm.neutral()
    bend = np.array([name in ("upper_arm.bend_y_1", "forearm.bend_z_1") for name in arm.dof_names])
    q[bend] = 0.03
    q[arm.dof_index("elbow")] = 0.5
    poses = arm.body_poses(q)[-16:]
    half = np.repeat([0.05, 0.7 / 16], 8)
    starts = poses[:, :, 3] - half[:, None] * poses[:, :, 0]
    ends = poses[:, :, 3] + half[:, None] * poses[:, :, 0]
    joints = np.linalg.norm(np.delete(starts[1:] - ends[:-1], 7, axis=0), axis=1)
    assert joints.max() < 2e-4
    assert starts[0] == pytest.approx(arm.frame_pose(q, "upper_arm")[:3, 3], abs=2e-4)
    assert ends[7] == pytest.approx(arm.frame_pose(q, "elbow_motor")[:3, 3], abs=2e-4)
    assert ends[15] == pytest.approx(arm.frame_pose(q, "payload")[:3, 3], abs=2e-4)
    assert abs(ends[7][1]) == pytest.approx(0.03, abs=2e-3)


def test_springs_end_at_the_bent_link(tmp_path):
    (tmp_path / "rig.yaml").write_text(STAYED)
    plant = load_rig(tmp_path / "rig.yaml").plant
    (spring,) = scene_of(plant.model, plant.model.neutral()).springs
    names = [joint.child for joint in plant.model.equations.tree.joints]
    assert names[spring.start[0] - 1] == "mast@1"


STAYED = """\
name: stayed
mechanism:
  bodies:
    - {name: mast, type: fixed}
  elastic:
    - link: mast
      beam:
        length: 1 m
        section: {shape: tube, diameter: 25 mm, wall: 1 mm}
        density: 2700 kg/m^3
        youngs_modulus: 70 GPa
        poisson_ratio: 0.33
        modes: {bend_y: 1}
  springs:
    - {name: stay, between: [mast, base], points: [[1 m, 0, 0], [0, 1 m, 0]], stiffness: 100 N/m}
schedule: {step: 1 ms, duration: 1 s}
"""
