"""The plane of a mechanism is found from its joints, whatever plane it is."""

import numpy as np
import pytest

from cosim.apps.derive.mechanism_picture.command import pictured
from cosim.apps.derive.mechanism_picture.stage import plane_normal
from cosim.mechanics.multibody.mechanism import Inertial, Joint, Link, Mechanism, Pose
from cosim.mechanics.multibody.model import Model

DOWN = (0.0, 0.0, -9.81)


def chain(*joints, gravity=DOWN):
    """(view, sketch, poses) of bodies of 1 m; joints: (kind, axis) of the axes in the frames of the bodies."""
    links, found, parent = [Link("base")], [], "base"
    for k, (kind, axis) in enumerate(joints, 1):
        axis = np.array(axis, dtype=float) / np.linalg.norm(axis)
        across = np.cross(axis, [0.3, -0.5, 0.9])
        pose = Pose(np.eye(3), across / np.linalg.norm(across) * (k > 1))
        found.append(Joint(f"j{k}", kind, parent, f"b{k}", pose, axis))
        parent = f"b{k}"
        links.append(Link(parent, Inertial(1.0, 0.5 * across, 0.01 * np.eye(3))))
    model = Model(Mechanism("chain", "base", tuple(links), tuple(found)), gravity)
    sketch, view, poses = pictured(model, [(np.full(model.nq, 0.3), 0.0)])
    return view, sketch, poses


@pytest.mark.parametrize(
    ("normal", "right", "up"),
    [
        ([0, 0, 1], [1, 0, 0], [0, 1, 0]),  # horizontal
        ([0, 1, 0], [1, 0, 0], [0, 0, 1]),
        ([0, -1, 0], [1, 0, 0], [0, 0, 1]),
        ([1, 0, 0], [0, 1, 0], [0, 0, 1]),
        ([1, 2, 0], np.array([2, -1, 0]) / np.sqrt(5), [0, 0, 1]),
    ],
)
def test_a_planar_mechanism_is_seen_at_right_angles_to_its_plane(normal, right, up):
    view, _, _ = chain(("revolute", normal), ("continuous", normal))
    assert view.planar
    assert view.axes == pytest.approx(np.array([right, up, np.cross(right, up)]), abs=1e-12)


def test_gravity_points_down_in_a_plane_of_any_direction():
    normal = np.array([1.0, 1.0, 1.0]) / np.sqrt(3)
    view, _, poses = chain(("revolute", normal), ("revolute", normal), ("revolute", normal))
    assert view.planar
    assert view.axes @ view.axes.T == pytest.approx(np.eye(3))
    assert np.abs(view.axes[2] @ normal) == pytest.approx(1.0)
    assert view.axes[0] @ DOWN == pytest.approx(0.0, abs=1e-12)
    assert view.axes[1] @ DOWN < 0.0
    # nothing is foreshortened
    places = [poses[0][k][:, 3] for k in (1, 2, 3)]
    seen = view.flat(np.array(places))
    for a, b in ((0, 1), (1, 2), (0, 2)):
        assert np.linalg.norm(seen[a] - seen[b]) == pytest.approx(np.linalg.norm(places[a] - places[b]))


def test_bodies_that_reach_out_of_their_plane_are_seen_in_space():
    assert chain(("revolute", [0, 0, 1]), ("revolute", [0, 0, 1]))[0].planar
    tall = Mechanism(
        "tall",
        "base",
        (Link("base"), Link("mast", Inertial(1.0, np.array([0.1, 0, 0.8]), np.zeros((3, 3))))),
        (Joint("slew", "revolute", "base", "mast", Pose.identity()),),
    )
    assert not pictured(Model(tall), [(np.zeros(1), 0.0)])[1].planar


def test_up_follows_gravity_in_the_plane_of_x_and_y():
    view, _, _ = chain(("revolute", [0, 0, 1]), gravity=(-9.81, 0, 0))
    assert view.axes[1] == pytest.approx([1, 0, 0])


@pytest.mark.parametrize(
    ("joints", "planar"),
    [
        ([("revolute", [0, 1, 0]), ("prismatic", [1, 0, 0])], True),
        ([("prismatic", [1, 0, 0]), ("prismatic", [1, 0, 1])], True),
        ([("prismatic", [1, 1, 0])], True),
        ([("planar", [0, 1, 0]), ("revolute", [0, 1, 0])], True),
        ([("revolute", [0, 1, 0]), ("prismatic", [0, 1, 0])], False),
        ([("revolute", [0, 0, 1]), ("revolute", [0, 1, 0])], False),
        ([("revolute", [0, 0, 1]), ("revolute", [0, 1e-3, 1])], False),
        ([("prismatic", [1, 0, 0]), ("prismatic", [0, 1, 0]), ("prismatic", [0, 0, 1])], False),
        ([("spherical", [0, 0, 1])], False),
    ],
)
def test_which_mechanisms_are_planar(joints, planar):
    _, sketch, poses = chain(*joints)
    assert (plane_normal(sketch.joints, poses[0]) is not None) is planar


def test_a_spatial_mechanism_is_seen_from_above_with_the_vertical_upright():
    view, _, _ = chain(("revolute", [0, 0, 1]), ("revolute", [0, 1, 0]))
    assert view.axes @ view.axes.T == pytest.approx(np.eye(3))
    assert view.flat(np.array([0.0, 0.0, 1.0]))[0] == pytest.approx(0.0, abs=1e-12)
    assert view.axes[2][2] > 0.0
