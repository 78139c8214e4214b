"""Elastic links in the scene: their deflected shape."""

from pathlib import Path

import numpy as np
import pytest

from cosim import load_rig
from cosim.output.scene.scene import Scene
from cosim.rig.rig import Rig
from cosim.rig.scene import scene_of_rig, view_of
from tests.kit.rigs import signal_units
from tests.output.scene.test_scene import matrix_of

BEAM = """
mechanism:
  bodies: [{{name: arm, joint: hub, axis: [0, 1, 0]}}]
  elastic:
    - link: arm
      origin: {{xyz: [0.05, 0, 0.02], rpy: [0, 0, 30 deg]}}
      beam: &beam
        length: 0.8 m
        section: {{shape: tube, diameter: 20 mm, wall: 1 mm}}
        density: 2700 kg/m^3
        youngs_modulus: 70 GPa
        modes: {{bend_y: 2, bend_z: 2, twist: 1}}
  frames: [{frames}]
joints: {{hub: {{prescribed: {{type: sine, amplitude: 10 deg, frequency: 0.5 Hz}}}}}}
schedule: {{step: 0.2 ms, duration: 0.1 s}}
"""
PIECES = 8


def pieces_of(scene: Scene, poses: np.ndarray, link: str) -> np.ndarray:
    """(k, 2, 3): start and end of the pieces of an elastic link, from poses (n, 3, 4) of the bodies."""
    found = []
    for k, shape in scene.shapes:
        if shape.role == "link" and shape.link == link and k:
            own, pose = matrix_of(shape.pose), poses[k - 1]
            half = 0.5 * shape.size[2] * own[:, 2]
            found.append([pose[:, :3] @ (own[:, 3] + s * half) + pose[:, 3] for s in (-1.0, 1.0)])
    return np.array(found)


@pytest.fixture
def arm(tmp_path: Path) -> Rig:
    turn = np.array([np.cos(np.pi / 6), np.sin(np.pi / 6), 0.0])
    places = [np.array([0.05, 0.0, 0.02]) + 0.8 * k / PIECES * turn for k in range(PIECES + 1)]
    frames = [
        f"{{name: at_{k}, link: arm, origin: {{xyz: {place.tolist()}, rpy: [0, 0, 30 deg]}}}}"
        for k, place in enumerate(places)
    ]
    (tmp_path / "arm.yaml").write_text(BEAM.format(frames=", ".join(frames)))
    return load_rig(tmp_path / "arm.yaml")


def gaps_of(rig: Rig, q: np.ndarray) -> np.ndarray:
    """(PIECES, 2) from the ends of the pieces to the points of the model between which they are drawn."""
    model = rig.plant.model
    ends = pieces_of(scene_of_rig(rig), model.drawn.body_poses(q), "arm")
    points = np.array([model.frame_pose(q, f"at_{k}")[:3, 3] for k in range(PIECES + 1)])
    return np.linalg.norm(ends - np.stack([points[:-1], points[1:]], axis=1), axis=2)


def test_pieces_are_between_points_of_the_model_but_for_the_second_order(arm: Rig) -> None:
    rng = np.random.default_rng(2)
    assert gaps_of(arm, arm.plant.model.neutral()).max() < 1e-12
    for _ in range(5):
        q = rng.uniform(-0.05, 0.05, arm.plant.model.nq)
        half = gaps_of(arm, q / 2).max()
        assert gaps_of(arm, q).max() > 3.5 * half
        assert half < 1e-3


def test_a_cantilever_is_drawn_with_its_deflection() -> None:
    rig = load_rig("rigs/elastic/cantilever.yaml")
    model, scene = rig.plant.model, scene_of_rig(rig)
    q, rest = np.zeros(model.nq), np.zeros(model.nv)
    for _ in range(5):  # to rest, by Newton's method
        slope = np.array([model.inverse_dynamics(q + h, rest, rest) for h in 1e-6 * np.eye(model.nv)])
        effort = model.inverse_dynamics(q, rest, rest)
        q = q - np.linalg.solve((slope - effort).T / 1e-6, effort)
    ends = pieces_of(scene, model.drawn.body_poses(q), "ruler")
    np.testing.assert_allclose(ends[0, 0], 0.0, atol=1e-4)
    deflection = 7850.0 * 0.03 * 0.002 * 9.81 * 0.5**4 / (8.0 * 210e9 * 0.03 * 0.002**3 / 12.0)
    assert ends[-1, 1, 2] == pytest.approx(-deflection, rel=0.01)


def test_without_elastic_links_the_model_is_drawn_itself() -> None:
    model = load_rig("rigs/two_link.yaml").plant.model
    assert model.drawn is model


def test_the_mechanism_itself_gets_no_further_bodies(arm: Rig) -> None:
    model = arm.plant.model
    bodies = len(model.equations.tree.bodies)
    drawn = model.drawn
    assert (drawn.coordinate_names, drawn.drawn) == (model.coordinate_names, drawn)
    assert len(model.equations.tree.bodies) == bodies == 2 + PIECES
    assert len(drawn.equations.tree.bodies) >= bodies


def test_a_view_of_a_run_follows_the_deflection(arm: Rig) -> None:
    model = arm.plant.model
    names = [f"{name}/position" for name in model.coordinate_names]
    view = view_of(arm, names, 30.0)
    assert view is not None
    q = np.random.default_rng(0).uniform(-0.03, 0.03, (3, model.nq))
    poses = view.link_poses(np.zeros(3), q)
    assert poses.shape == (3, len(view.scene.bodies) - 1, 3, 4)
    np.testing.assert_allclose(
        pieces_of(view.scene, poses[1], "arm"),
        pieces_of(scene_of_rig(arm), model.drawn.body_poses(q[1]), "arm"),
        atol=1e-12,
    )


def test_deflections_are_lengths() -> None:
    rig = load_rig("rigs/elastic/cantilever.yaml")
    assert {signal_units(rig)[f"tip.{axis}/deflection"] for axis in "xyz"} == {"m"}
