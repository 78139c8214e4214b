"""What is attached to elastic links, and places at which nothing can be."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cosim import InputError
from cosim.errors import InputErrors, SourceLocation
from cosim.multibody import Model
from cosim.multibody.constraint_laws import knife_edge
from cosim.multibody.description.elastic_links import with_nodes
from cosim.multibody.elastic.beam import ModeCounts
from cosim.multibody.mechanism import Constraint, Frame, Inertial, Joint, Link, Mechanism, Pose, Spring
from tests.kit.refusals import raised
from tests.multibody.elastic.beams import at, soft_beam, soft_link, turned


def beam_with(*joints, links=(), elastic=None, **items):
    hub = Joint("hub", "revolute", "base", "beam", Pose.identity())
    first = Link("base"), Link("beam", elastic=elastic or soft_link())
    return Mechanism("m", "base", (*first, *links), (hub, *joints), **items)


def test_a_frame_is_where_the_section_is():
    """Displaced by u and the turn of the section, and turned with it."""
    point, axes = np.array([0.7, 0.1, -0.05]), turned(3)
    model = Model(beam_with(frames=(Frame("seen", "beam", Pose(axes, point)),)))
    eta = np.array([0.02, -0.01, 0.015, 0.03, 0.004])
    q = np.concatenate([[0.0], eta])
    pose = model.frame_pose(q, "seen")
    ((phi,), (curve,)), (psi,) = soft_beam().displacements(np.array([0.7]))
    offset, theta = np.array([0.0, 0.1, -0.05]), eta @ psi
    turn = Rotation.from_rotvec(theta).as_matrix()
    u = eta @ phi + 0.5 * np.einsum("mni,m,n->i", curve, eta, eta)
    expected = np.array([0.7, 0.0, 0.0]) + u + turn @ offset
    small = np.abs(theta).max() ** 3
    np.testing.assert_allclose(pose[:3, 3], expected, atol=small)
    np.testing.assert_allclose(pose[:3, :3], turn @ axes, atol=small)
    assert np.abs(u).max() > 0.01


def test_one_node_serves_all_that_is_at_a_place():
    load = Link("load", Inertial(1.0, np.zeros(3), np.eye(3)))
    weld = Joint("weld", "fixed", "beam", "load", at(1.0, rotation=turned(2)))
    spring = Spring("stay", (("beam", np.array([1.0, 0.0, 0.0])), ("base", np.ones(3))), 10.0)
    found = with_nodes(beam_with(weld, links=(load,), springs=(spring,), frames=(Frame("tip", "beam", at(1.0)),)))
    assert [joint.kind for joint in found.joints] == ["modes", "node", "revolute", "fixed"]
    node = found.joints[1].child
    assert found.joints[-1].parent == found.frames[0].link == found.springs[0].ends[0][0] == node
    assert all(link.elastic is None for link in found.links if link.name == "beam")


def test_what_is_on_the_root_stays_on_the_frame():
    found = with_nodes(beam_with(frames=(Frame("root", "beam", at(0.0)), Frame("beside", "beam", at(0.0, 0.1)))))
    assert [frame.link for frame in found.frames] == ["beam", "beam"]
    assert [joint.kind for joint in found.joints] == ["modes", "revolute"]


def test_a_mechanism_of_rigid_links_is_left_alone():
    mechanism = Mechanism("m", "base", (Link("base"),), ())
    assert with_nodes(mechanism) is mechanism


def test_attachments_beyond_the_ends(said):
    here = [SourceLocation("rig.yaml", line) for line in (3, 5, 7, 9)]
    weld = Joint("weld", "fixed", "beam", "load", at(1.2), place=here[0])
    spring = Spring("stay", (("base", np.ones(3)), ("beam", np.array([-0.1, 0.0, 0.0]))), 10.0, place=here[1])
    frame = Frame("tip", "beam", at(1.5), place=here[2])
    edge = Constraint("edge", knife_edge(), (("base", Pose.identity()), ("beam", at(2.0))), place=here[3])
    mechanism = beam_with(weld, links=(Link("load"),), springs=(spring,), frames=(frame,), constraints=(edge,))
    lines = [str(error) for error in raised(InputErrors, Model, mechanism).errors]
    assert all(line.startswith("rig.yaml:") for line in lines)
    said(lines)


def test_rounding_is_not_beyond_the_ends():
    tip = soft_beam().displacement(np.array([1.0 + 1e-12, 0.0, 0.0]))
    assert np.abs(tip.path.linear[0]) == pytest.approx([0.0, 1.0, 0.0])
    with pytest.raises(InputError, match=r"x = 1\.01 m is beyond the beam, which ends at 1 m"):
        soft_beam().displacement(np.array([1.01, 0.0, 0.0]))


def test_a_frame_in_the_link_and_a_mass_on_its_root():
    """An elastic link in another place of its link, with a rigid part: the same motion as parts welded together."""
    mount, extra = at(0.1, 0.2, 0.3, turned(4)), Inertial(0.7, np.array([0.0, 0.1, 0.0]), 0.01 * np.eye(3))
    modes = ModeCounts(bend_y=1, bend_z=1)
    whole = Link("beam", extra, elastic=soft_link(modes=modes), elastic_frame=mount)
    hub = Joint("hub", "revolute", "base", "beam", Pose.identity())
    tip = Frame("tip", "beam", mount @ at(1.0))
    one = Model(Mechanism("m", "base", (Link("base"), whole), (hub,), frames=(tip,)))
    body, rod = Link("beam", extra), Link("rod", elastic=soft_link(modes=modes))
    weld = Joint("weld", "fixed", "beam", "rod", mount)
    parts = (Link("base"), body, rod)
    other = Model(Mechanism("m", "base", parts, (hub, weld), frames=(replace(tip, link="rod", pose=at(1.0)),)))
    q, v = np.array([0.3, 0.02, -0.01]), np.array([2.0, 0.5, 0.3])
    assert one.dof_names == ("hub", "beam.bend_y_1", "beam.bend_z_1")
    np.testing.assert_allclose(
        one.equations.forward_dynamics(q, v, np.ones(3)), other.equations.forward_dynamics(q, v, np.ones(3)), rtol=1e-10
    )
    np.testing.assert_allclose(one.frame_pose(q, "tip"), other.frame_pose(q, "tip"), atol=1e-14)
