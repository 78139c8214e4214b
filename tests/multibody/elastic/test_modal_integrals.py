"""Modal integrals beside sums over rigid pieces that are really displaced and turned, and beside those of the paper."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cosim.multibody import Model
from cosim.multibody.elastic.integrals import Pieces, modal_integrals, rigid_integrals
from cosim.multibody.mechanism import Joint, Link, Mechanism, Pose
from tests.multibody.elastic.beams import soft_beam, soft_link

MODES, STEP = 3, 1e-4
UNITS = STEP * np.eye(MODES)


def random_pieces(heavy_sections=True, seed=0):
    random = np.random.default_rng(seed)
    count = 6
    curve = random.normal(size=(count, MODES, MODES, 3))
    moments = random.uniform(0.2, 0.3, (count, 3)) * heavy_sections
    turns = Rotation.random(count, random_state=seed).as_matrix()
    return Pieces(
        random.uniform(0.5, 2.0, count),
        random.normal(size=(count, 3)),
        np.einsum("pij,pj,pkj->pik", turns, moments, turns),
        random.normal(size=(count, MODES, 3)),
        curve + curve.swapaxes(1, 2),
        random.normal(size=(count, MODES, 3)),
    )


PIECES = {"points": random_pieces(False), "pieces with inertia": random_pieces()}


def displaced(pieces, eta):
    """(points (p, 3), turns (p, 3, 3)) of the pieces."""
    shift = np.einsum("pui,u->pi", pieces.linear, eta) + 0.5 * np.einsum("puvi,u,v->pi", pieces.curve, eta, eta)
    return pieces.position + shift, Rotation.from_rotvec(np.einsum("pui,u->pi", pieces.angular, eta)).as_matrix()


def moment(pieces, eta):
    return pieces.mass @ displaced(pieces, eta)[0]


def inertia(pieces, eta):
    points, turns = displaced(pieces, eta)
    about = np.einsum("pi,pi->p", points, points)[:, None, None] * np.eye(3) - points[:, :, None] * points[:, None, :]
    return np.einsum("p,pij->ij", pieces.mass, about) + (turns @ pieces.inertia @ turns.swapaxes(1, 2)).sum(axis=0)


def rates(pieces, eta):
    """(velocities (m, p, 3), angular velocities (m, p, 3)) of the pieces per unit of each modal rate."""
    linear, angular = [], []
    for unit in UNITS:
        (ahead, turned), (behind, turned_back) = displaced(pieces, eta + unit), displaced(pieces, eta - unit)
        linear.append((ahead - behind) / (2.0 * STEP))
        angular.append(Rotation.from_matrix(turned @ turned_back.swapaxes(1, 2)).as_rotvec() / (2.0 * STEP))
    return np.array(linear), np.array(angular)


def spins(pieces, eta):
    """Angular momentum about the origin (m, 3) per unit of each modal rate."""
    (points, turns), (linear, angular) = displaced(pieces, eta), rates(pieces, eta)
    inertias = turns @ pieces.inertia @ turns.swapaxes(1, 2)
    own = np.einsum("pij,upj->ui", inertias, angular)
    return np.einsum("p,upi->ui", pieces.mass, np.cross(points, linear)) + own


def first(function):
    return np.array([(function(u) - function(-u)) / (2.0 * STEP) for u in UNITS])


def second(function):
    return np.array(
        [
            [(function(u + v) - function(u - v) - function(v - u) + function(-u - v)) / (4.0 * STEP**2) for v in UNITS]
            for u in UNITS
        ]
    )


@pytest.mark.parametrize("name", PIECES)
def test_pieces_that_are_displaced(name):
    pieces = PIECES[name]
    found, rigid = modal_integrals(pieces), rigid_integrals(pieces)
    still = np.zeros(MODES)

    def close(value, expected):
        np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-5)

    assert rigid.mass == pytest.approx(pieces.mass.sum())
    np.testing.assert_allclose(rigid.moment, moment(pieces, still), rtol=1e-12)
    np.testing.assert_allclose(rigid.inertia, inertia(pieces, still), rtol=1e-12)
    close(found.moment, first(lambda eta: moment(pieces, eta)))
    close(found.moment_curve, second(lambda eta: moment(pieces, eta)))
    close(found.inertia_slope, first(lambda eta: inertia(pieces, eta)))
    close(found.inertia_curve, second(lambda eta: inertia(pieces, eta)))
    close(found.spin, spins(pieces, still))
    close(found.spin_slope.swapaxes(0, 1), first(lambda eta: spins(pieces, eta)))
    linear, angular = rates(pieces, still)
    own = np.einsum("upi,pij,vpj->uv", angular, pieces.inertia, angular)
    close(found.mass, np.einsum("p,upi,vpi->uv", pieces.mass, linear, linear) + own)


def test_the_integrals_of_jin_and_bauer():
    """h1 to h6 of point masses without g."""
    pieces = PIECES["points"]._replace(curve=0.0 * PIECES["points"].curve)
    found = modal_integrals(pieces)
    w, rho, phi = pieces.mass, pieces.position, pieces.linear
    unit = np.eye(3)
    h1 = np.einsum("p,pui->ui", w, np.cross(rho[:, None], phi))
    along = np.einsum("p,pi,pui->u", w, rho, phi)
    h3 = along[:, None, None] * unit - np.einsum("p,pi,puj->uij", w, rho, phi)
    h4 = np.einsum("p,puvi->uvi", w, np.cross(phi[:, :, None], phi[:, None]))
    h6 = np.einsum("p,pui,pvj->uvij", w, phi, phi)
    h5 = np.einsum("uvii->uv", h6)[..., None, None] * unit - h6
    np.testing.assert_allclose(found.spin, h1, rtol=1e-12)
    np.testing.assert_allclose(found.inertia_slope, h3 + h3.swapaxes(1, 2), rtol=1e-12)
    np.testing.assert_allclose(found.spin_slope, -h4, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.inertia_curve, h5 + h5.swapaxes(2, 3), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.mass, np.einsum("uvii->uv", h6), rtol=1e-12)


def test_a_body_without_modes():
    pieces = PIECES["points"]
    linear, curve, angular = pieces.linear[:, :0], pieces.curve[:, :0, :0], pieces.angular[:, :0]
    none = modal_integrals(pieces._replace(linear=linear, curve=curve, angular=angular))
    assert none.mass.shape == (0, 0) and none.inertia_curve.shape == (0, 0, 3, 3) and none.spin.shape == (0, 3)


def test_a_uniform_beam():
    link = soft_link(1.0, 1.2)
    assert link.mass == pytest.approx(1.2)
    np.testing.assert_allclose(link.moment, [0.6, 0.0, 0.0], atol=1e-15)
    np.testing.assert_allclose(link.inertia, np.diag([0.03, 0.4, 0.4]), atol=1e-14)
    kinds = [name for name, _ in link.modes]
    assert kinds[3] == "twist_1"
    np.testing.assert_allclose(link.integrals.spin[3], [2.0 / np.pi * 0.03, 0.0, 0.0], rtol=1e-6)  # ∫ sin
    np.testing.assert_allclose(link.integrals.mass[4, 4], 0.6, rtol=1e-6)  # ∫ sin²


# --- energies ---


def slices(beam):
    """The pieces of a beam."""
    x, w = beam._mesh.gauss_points.ravel(), beam._mesh.gauss_weights.ravel()
    phi, curve, psi = beam.displacements(x)
    about = np.stack([w * inertia(x) for inertia in beam.section.inertia], axis=-1)[:, None, :] * np.eye(3)
    return Pieces(w * beam.section.mass(x), np.stack([x, 0.0 * x, 0.0 * x], axis=-1), about, phi, curve, psi)


def energies_of_slices(pieces, eta, eta_rate, velocity, omega):
    """(kinetic energy, m c) of slices that are really displaced, on a frame that moves."""
    ahead, behind = (displaced(pieces, eta + sign * STEP * eta_rate) for sign in (1.0, -1.0))
    points, turns = displaced(pieces, eta)
    linear = velocity + np.cross(omega, points) + (ahead[0] - behind[0]) / (2.0 * STEP)
    turned = Rotation.from_matrix(ahead[1] @ behind[1].swapaxes(1, 2)).as_rotvec() / (2.0 * STEP)
    angular = omega + turned
    own = turns @ pieces.inertia @ turns.swapaxes(1, 2)
    energy = 0.5 * np.einsum("p,pi,pi->", pieces.mass, linear, linear)
    return energy + 0.5 * np.einsum("pi,pij,pj->", angular, own, angular), pieces.mass @ points


def test_energies_to_second_order():
    """What is left out falls with the cube of the modal coordinates and rates."""
    beam = soft_beam(1.2, shearing=True)
    pieces = slices(beam)
    links = (Link("base"), Link("a", elastic=beam.link()))
    free = Joint("root", "free", "base", "a", Pose.identity())
    model = Model(Mechanism("beam", "base", links, (free,)), gravity=(0.3, -0.5, -9.0))
    random = np.random.default_rng(2)
    v, eta, rate = random.normal(size=6), *(random.normal(size=(2, 5)) * [0.2, 0.1, 0.2, 0.1, 0.1])
    errors = []
    for scale in (1.0, 0.5, 0.25):
        q = np.concatenate([model.neutral()[:7], scale * eta])
        kinetic = float(model.kinetic_energy(q, np.concatenate([v, scale * rate])))
        potential = float(model.potential_energy(q))
        expected, moment = energies_of_slices(pieces, scale * eta, scale * rate, v[:3], v[3:])
        errors.append(abs(kinetic - expected))
        assert potential == pytest.approx(-model.gravity @ moment, rel=1e-9)
        assert abs(kinetic - expected) < 0.02 * scale**3
    assert errors[0] > 1e-3 and 6.5 < errors[0] / errors[1] < 10.0 and 6.5 < errors[1] / errors[2] < 10.0
