"""Bodies with numbers in the base frame: kinematics by products of exponentials, dynamics by energies."""

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cosim.mechanics.multibody.model import Model
from cosim.rig.sections.rig_spec import read_rig

RIGS = Path(__file__).parents[2] / "rigs"

TREE = """\
name: tree
mechanism:
  bodies:
    - {name: a, frame: base, axis: [0.3, -0.2, 0.9], origin: {xyz: [0.1, 0.2, 0.3], rpy: [0.3, 0.2, -1]}, mass: 2 kg,
       com: [0.3, 0.1, 0.5], inertia: [0.02, 0.03, 0.025, 0.001, -0.002, 0.003]}
    - {name: b, frame: base, type: prismatic, axis: [1, 0.5, 0], origin: {xyz: [0.4, 0.2, 0.5], rpy: [0, 0.4, 0]},
       mass: 1 kg, com: [0.6, 0.3, 0.4], inertia: [0.01, 0.02, 0.02]}
    - {name: c, frame: base, parent: a, axis: [0, 1, 0], origin: {xyz: [0.2, -0.3, 0.6]}, mass: 1.5 kg,
       com: [0.2, -0.4, 0.9], inertia: [0.02, 0.02, 0.01]}
  frames:
    - {name: tip, link: c, origin: {xyz: [0.05, 0, 0.2]}}
"""
TENSOR = [0.02, 0.03, 0.025, 0.001, -0.002, 0.003]
# joint: parent's joint, axis, point, mass, centre of mass, inertia about it, all in the base at position 0
BODIES = {
    "a": (None, "revolute", [0.3, -0.2, 0.9], [0.1, 0.2, 0.3], 2.0, [0.3, 0.1, 0.5], TENSOR),
    "b": ("a", "prismatic", [1, 0.5, 0], [0.4, 0.2, 0.5], 1.0, [0.6, 0.3, 0.4], [0.01, 0.02, 0.02, 0, 0, 0]),
    "c": ("a", "revolute", [0, 1, 0], [0.2, -0.3, 0.6], 1.5, [0.2, -0.4, 0.9], [0.02, 0.02, 0.01, 0, 0, 0]),
}  # fmt: skip


def model_of(text, tmp_path):
    file = tmp_path / "tree.yaml"
    file.write_text(text)
    spec = read_rig(file).mechanism
    return Model(spec.description, spec.gravity)


def moved(kind, axis, point, q):
    """The motion of the base that a joint makes of position 0: (rotation, translation)."""
    axis = np.array(axis, dtype=float) / np.linalg.norm(axis)
    if kind == "prismatic":
        return np.eye(3), axis * q
    turn = Rotation.from_rotvec(axis * q).as_matrix()
    return turn, np.array(point) - turn @ np.array(point)


def motions(q):
    """Of each body, by products of exponentials (Brockett 1984)."""
    found = {}
    for name, q_k in zip(BODIES, q, strict=True):
        parent, kind, axis, point, *_ = BODIES[name]
        turn, shift = moved(kind, axis, point, q_k)
        above, by = found.get(parent, (np.eye(3), np.zeros(3)))
        found[name] = above @ turn, by + above @ shift
    return found


def kinetic_energy(q, v):
    """From positions a little before and after."""
    step, energy = 1e-6, 0.0
    before, after, now = motions(q - step * v), motions(q + step * v), motions(q)
    for name, (_, _, _, _, mass, com, inertia) in BODIES.items():
        (r0, p0), (r1, p1), (r, _) = before[name], after[name], now[name]
        velocity = (r1 @ com + p1 - r0 @ com - p0) / (2 * step)
        omega = Rotation.from_matrix(r1 @ r0.T).as_rotvec() / (2 * step)
        xx, yy, zz, xy, xz, yz = inertia
        own = r.T @ omega
        tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        energy += 0.5 * mass * velocity @ velocity + 0.5 * own @ tensor @ own
    return energy


@pytest.fixture(name="model")
def _model(tmp_path):
    return model_of(TREE, tmp_path)


def test_at_position_0_frames_are_as_given(model):
    q = np.zeros(3)
    assert model.frame_pose(q, "c")[:3, 3] == pytest.approx([0.2, -0.3, 0.6], abs=1e-15)
    assert model.frame_pose(q, "c")[:3, :3] == pytest.approx(np.eye(3), abs=1e-15)
    assert model.frame_pose(q, "b")[:3, :3] == pytest.approx(Rotation.from_euler("y", 0.4).as_matrix(), abs=1e-15)


def test_poses_are_products_of_exponentials(model):
    rng = np.random.default_rng(3)
    for _ in range(5):
        q = rng.uniform(-2, 2, 3)
        turn, shift = motions(q)["c"]
        assert model.frame_pose(q, "tip")[:3, 3] == pytest.approx(turn @ [0.25, -0.3, 0.8] + shift, abs=1e-14)
        turn, shift = motions(q)["b"]
        assert model.frame_pose(q, "b")[:3, 3] == pytest.approx(turn @ [0.4, 0.2, 0.5] + shift, abs=1e-14)


def test_energies(model):
    rng = np.random.default_rng(4)
    for _ in range(5):
        q, v = rng.uniform(-2, 2, 3), rng.uniform(-2, 2, 3)
        assert model.kinetic_energy(q, v) == pytest.approx(kinetic_energy(q, v), rel=1e-8)
        pairs = zip(motions(q).values(), BODIES.values(), strict=True)
        heights = [mass * (r @ com + p)[2] for (r, p), (_, _, _, _, mass, com, _) in pairs]
        assert model.potential_energy(q) == pytest.approx(9.81 * sum(heights), rel=1e-13)


def test_both_kinds_of_bodies_mixed_are_the_same_mechanism(tmp_path):
    """The body c from its own frame in the parent's: the model computes the same."""
    model, q, v, a = model_of(TREE, tmp_path), *np.random.default_rng(5).uniform(-1, 1, (3, 3))
    joint = next(joint for joint in model.mechanism.joints if joint.name == "c")
    link = next(link for link in model.mechanism.links if link.name == "c")
    roll, pitch, yaw = Rotation.from_matrix(joint.pose.rotation).as_euler("xyz")
    inertial = link.inertial
    assert inertial is not None
    i = inertial.inertia
    own = (
        f"    - {{name: c, parent: a, axis: {joint.axis.tolist()}, origin: {{xyz: {joint.pose.position.tolist()}, "
        f"rpy: {[float(roll), float(pitch), float(yaw)]}}}, mass: 1.5 kg, com: {inertial.com.tolist()}, "
        f"inertia: {[i[0, 0], i[1, 1], i[2, 2], i[0, 1], i[0, 2], i[1, 2]]}}}\n"
    ).replace("np.float64", "").replace("(", "").replace(")", "")  # fmt: skip
    start, end = TREE.index("    - {name: c,"), TREE.index("  frames:")
    mixed = model_of(TREE[:start] + own + TREE[end:], tmp_path)
    assert mixed.inverse_dynamics(q, v, a) == pytest.approx(model.inverse_dynamics(q, v, a), rel=1e-12)


def test_a_second_axis_and_a_moving_base(tmp_path):
    text = """\
name: tree
mechanism:
  moving_base: {x: {type: sine, amplitude: 20 cm, frequency: 0.5 Hz}}
  bodies:
    - {name: a, frame: base, type: universal, axis: [0, 0, 1], second_axis: [1, 0, 0],
       origin: {xyz: [0, 0, 1], rpy: [0, 0, 1]}, mass: 1 kg, com: [0, 0, 2], inertia: [0.1, 0.1, 0.1]}
    - {name: b, frame: base, type: fixed, origin: {xyz: [0, 0, 3]}, mass: 1 kg, com: [0, 0, 3],
       inertia: [0.1, 0.1, 0.1]}
"""
    model = model_of(text, tmp_path)
    assert model.frame_pose([0.0, 0.0], "b", 0.0)[:3] == pytest.approx(
        np.eye(4)[:3] + np.outer([0, 0, 3], [0, 0, 0, 1])
    )
    turned = model.frame_pose([0.0, 0.5], "b", 0.0)[:3, 3]
    assert turned == pytest.approx([0, -2 * np.sin(0.5), 1 + 2 * np.cos(0.5)], abs=1e-15)
    assert model.frame_pose([0.0, 0.0], "b", 0.5)[0, 3] == pytest.approx(0.2, abs=1e-12)


def test_the_measuring_arm():
    """130 mm from the last axis, and by products of exponentials from the numbers of the file."""
    spec = read_rig(RIGS / "mechanisms" / "measuring_arm.yaml").mechanism
    model = Model(spec.description, spec.gravity)
    axes = [[0, 0, 1], [0, -1, 0], [1, 0, 0], [0, -1, 0], [1, 0, 0], [0, -1, 0]]
    points = [[0, 0, 0], [0, 0, 0.3], [0.5, 0, 0.3], [0.55, 0, 0.3], [0.95, 0, 0.3], [1, 0, 0.3]]
    for q in np.random.default_rng(6).uniform(-2, 2, (5, 6)):
        turn, shift = np.eye(3), np.zeros(3)
        for axis, point, q_k in zip(axes, points, q, strict=True):
            r, p = moved("revolute", axis, point, q_k)
            turn, shift = turn @ r, shift + turn @ p
        probe = model.frame_pose(q, "probe")[:3, 3]
        assert probe == pytest.approx(turn @ [1, 0, 0.17] + shift, abs=1e-15)
        assert np.linalg.norm(probe - model.frame_pose(q, "head")[:3, 3]) == pytest.approx(0.13, rel=1e-14)
