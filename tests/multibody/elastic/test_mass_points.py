"""The mass of elastic bodies beside sums over many points that are really displaced, and over slices of a beam."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cosim import InputError
from cosim.core.errors import InputErrors, SourceLocation
from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.constraint_laws import knife_edge
from cosim.mechanics.multibody.description.elastic_links import with_nodes
from cosim.mechanics.multibody.elastic.beam import ModeCounts
from cosim.mechanics.multibody.elastic.mass_points import MassPoints
from cosim.mechanics.multibody.elastic_bodies import ElasticBody, PointCurve
from cosim.mechanics.multibody.mechanism import (
    Constraint,
    Frame,
    Inertial,
    Joint,
    Link,
    Mechanism,
    Pose,
    Spring,
)
from tests.kit.refusals import raised
from tests.multibody.elastic.beams import at, soft_beam, soft_link, turned

MODES, STEP = 3, 1e-4
UNITS = STEP * np.eye(MODES)


def symmetric(curve):
    return 0.5 * (curve + curve.swapaxes(-3, -2))


def random_points(count=12, seed=0):
    random = np.random.default_rng(seed)
    mass, position = random.uniform(0.5, 2.0, count), random.normal(size=(count, 3))
    linear, curve = random.normal(size=(count, MODES, 3)), random.normal(size=(count, MODES, MODES, 3))
    return MassPoints(mass, position, linear, symmetric(curve))


class Shaped(NamedTuple):
    """What the equations of an elastic body read of its motion."""

    omega: np.ndarray
    shape: np.ndarray
    rate: np.ndarray


def body_of(points):
    none = np.zeros(3)
    return ElasticBody(np.eye(3), none, *points.rigid_body, np.zeros(MODES), points.modal_mass())


def sums(points, eta):
    """(m c, J, Σ m r × b (m, 3), Σ m b (m, 3), Σ m b·b (m, m)) of all points, displaced."""
    mass = points.mass
    r = points.position + np.einsum("pui,u->pi", points.linear, eta)
    r = r + 0.5 * np.einsum("puvi,u,v->pi", points.curve, eta, eta)
    b = points.linear + np.einsum("puvi,v->pui", points.curve, eta)
    product = np.einsum("p,pi,pj->ij", mass, r, r)
    spins = np.einsum("p,pui->ui", mass, np.cross(r[:, None], b))
    momenta, masses = np.einsum("p,pui->ui", mass, b), np.einsum("p,pui,pvi->uv", mass, b, b)
    return mass @ r, np.trace(product) * np.eye(3) - product, spins, momenta, masses


def found_sums(points, eta):
    inertia = body_of(points).own_inertia(Shaped(np.zeros(3), eta, np.zeros(MODES)))
    c = np.array([inertia.b[2, 1], inertia.b[0, 2], inertia.b[1, 0]])
    return c, inertia.c, inertia.n, inertia.f, inertia.h


def test_a_few_points_stand_for_all():
    """Up to terms of third order in the coordinates, which keep the distance of points from the origin."""
    points = random_points().with_affine_curve()
    eta = np.array([0.5, -0.3, 0.4])
    errors = []
    for scale in (0.02, 0.01):
        pairs = zip(found_sums(points, scale * eta), sums(points, scale * eta), strict=True)
        errors.append([np.abs(found - expected).max() for found, expected in pairs])
    orders = np.log2(np.array(errors[0]) / errors[1])
    assert (orders > 2.9).all() and np.max(errors[1]) < 1e-4
    for found, expected in zip(found_sums(points, 0.0 * eta), sums(points, 0.0 * eta), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_bending_without_recession_is_exact():
    points = random_points()
    points = points._replace(curve=0.0 * points.curve)
    eta = np.array([0.5, -0.3, 0.4])
    for found, expected in zip(found_sums(points, eta), sums(points, eta), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_the_affine_recession_has_the_moments_of_the_recession():
    points = random_points()
    affine = points.with_affine_curve()
    for weight in (np.ones(len(points.mass)), *points.position.T):
        moments = [np.einsum("p,p,p...->...", points.mass, weight, each.curve) for each in (points, affine)]
        np.testing.assert_allclose(*moments, rtol=1e-10)
    assert np.abs(points.curve - affine.curve).max() > 0.1
    np.testing.assert_allclose(affine.with_affine_curve().curve, affine.curve, rtol=1e-10)


@pytest.mark.parametrize(("extent", "functions"), [([1, 1, 1], 4), ([1, 1, 0], 3), ([1, 0, 0], 2)])
def test_functions_of_flat_and_of_thin_bodies(extent, functions):
    points = random_points()
    points = points._replace(position=points.position * extent + [0.3, -0.2, 0.1])
    basis = points.affine
    assert basis.shape == (12, functions)
    np.testing.assert_allclose(np.einsum("pk,p,pl->kl", basis, points.mass, basis), np.eye(functions), atol=1e-12)


def test_the_path_of_a_point():
    random = np.random.default_rng(1)
    curve = symmetric(random.normal(size=(MODES, MODES, 3)))
    path = PointCurve(random.normal(size=3), random.normal(size=(MODES, 3)), curve)
    eta, rate = random.normal(size=(2, MODES))
    speeds = [(path.place(eta + unit)[0] - path.place(eta - unit)[0]) / (2.0 * STEP) for unit in UNITS]
    np.testing.assert_allclose(path.place(eta)[1], speeds, rtol=1e-6, atol=1e-6)
    ahead, here, behind = (path.place(eta + sign * STEP * rate)[0] for sign in (1.0, 0.0, -1.0))
    velocity, bias = path.rates(eta, rate)
    np.testing.assert_allclose(velocity, (ahead - behind) / (2.0 * STEP), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(bias, (ahead - 2.0 * here + behind) / STEP**2, rtol=1e-5, atol=1e-5)
    r, rho = path.place(0.01 * eta)[0], path.position
    d, c = 0.01 * eta @ path.linear, 0.5 * np.einsum("u,v,uvi->i", 0.01 * eta, 0.01 * eta, curve)
    assert r @ r == pytest.approx(rho @ rho + 2.0 * rho @ (d + c) + d @ d, abs=2.0 * abs(d @ c) + 1e-8)


def test_no_shape_has_a_negative_inertia():
    """Far beyond small displacements too."""
    body = body_of(random_points().with_affine_curve())
    random = np.random.default_rng(2)
    for size in (0.1, 1.0, 10.0):
        M = body.own_inertia(Shaped(np.zeros(3), size * random.normal(size=MODES), np.zeros(MODES)))
        whole = np.block([[M.a, M.b.T, M.f.T], [M.b, M.c, M.n.T], [M.f, M.n, M.h]])
        np.testing.assert_allclose(whole, whole.T, atol=1e-9)
        assert np.linalg.eigvalsh(whole)[0] > 0.0


def test_a_uniform_beam():
    link = soft_link(1.0, 1.2)
    assert link.mass == pytest.approx(1.2)
    np.testing.assert_allclose(link.moment, [0.6, 0.0, 0.0], atol=1e-15)
    np.testing.assert_allclose(link.inertia, np.diag([0.03, 0.41, 0.42]), rtol=1e-9, atol=1e-12)
    assert [name for name, _ in link.modes][3:] == ["twist_1", "stretch_1"]


class Slices(NamedTuple):
    mass: np.ndarray  # (p,)
    position: np.ndarray  # (p, 3)
    inertia: np.ndarray  # (p, 3, 3)
    linear: np.ndarray  # (p, m, 3)
    curve: np.ndarray  # (p, m, m, 3)
    angular: np.ndarray  # (p, m, 3)

    @staticmethod
    def of(beam):
        x, w = beam._mesh.gauss_points.ravel(), beam._mesh.gauss_weights.ravel()
        (linear, curve), angular = beam.displacements(x)
        about = np.stack([w * inertia(x) for inertia in beam.section.inertia], axis=-1)[:, None, :] * np.eye(3)
        position = np.stack([x, 0.0 * x, 0.0 * x], axis=-1)
        return Slices(w * beam.section.mass(x), position, about, linear, curve, angular)

    def displaced(self, eta):
        """(centres (p, 3), turns (p, 3, 3))"""
        shift = np.einsum("pui,u->pi", self.linear, eta) + 0.5 * np.einsum("puvi,u,v->pi", self.curve, eta, eta)
        return self.position + shift, Rotation.from_rotvec(np.einsum("pui,u->pi", self.angular, eta)).as_matrix()

    def energy(self, eta, rate, velocity, omega):
        """(kinetic energy, m c) on a frame that moves."""
        ahead, behind = (self.displaced(eta + sign * STEP * rate) for sign in (1.0, -1.0))
        points, turns = self.displaced(eta)
        linear = velocity + np.cross(omega, points) + (ahead[0] - behind[0]) / (2.0 * STEP)
        turning = Rotation.from_matrix(ahead[1] @ behind[1].swapaxes(1, 2)).as_rotvec() / (2.0 * STEP)
        angular = omega + turning
        own = turns @ self.inertia @ turns.swapaxes(1, 2)
        energy = 0.5 * np.einsum("p,pi,pi->", self.mass, linear, linear)
        return energy + 0.5 * np.einsum("pi,pij,pj->", angular, own, angular), self.mass @ points


def test_energies_to_second_order():
    """What is left out falls with the cube of the modal coordinates and rates."""
    beam = soft_beam(1.2, shearing=True)
    slices = Slices.of(beam)
    links = (Link("base"), Link("a", elastic=beam.link()))
    free = Joint("root", "free", "base", "a", Pose.identity())
    model = Model(Mechanism("beam", "base", links, (free,)), gravity=(0.3, -0.5, -9.0))
    random = np.random.default_rng(2)
    v, eta, rate = random.normal(size=6), *(random.normal(size=(2, 5)) * [0.2, 0.1, 0.2, 0.1, 0.1])
    errors = []
    for scale in (0.5, 0.25, 0.125):
        q = np.concatenate([model.neutral()[:7], scale * eta])
        kinetic = float(model.equations.kinetic_energy(q, np.concatenate([v, scale * rate])))
        potential = float(model.equations.gravity_energy(q))
        expected, moment = slices.energy(scale * eta, scale * rate, v[:3], v[3:])
        errors.append(abs(kinetic - expected))
        assert potential == pytest.approx(-model.gravity @ moment, abs=0.1 * scale**3)
    assert errors[0] > 1e-5
    assert 5.0 < errors[0] / errors[1] < 20.0 and 5.0 < errors[1] / errors[2] < 20.0


# --- attachments ---


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
