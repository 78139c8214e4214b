"""Elastic links from matrices of finite elements, against the beam that they mesh and the whole mesh."""

import numpy as np
import pytest
from scipy.linalg import eigh

from cosim.multibody.elastic import finite_elements
from cosim.multibody.elastic.consistent_mass import NodalMass, rigid_motions
from cosim.multibody.elastic.modal_link import gram
from cosim.multibody.mechanism import Inertial
from cosim.trust.private_cache import private_cache
from tests.multibody.elastic_files.bodies import TIP, arm, beam, files_of, frequencies, nodes_at, swing
from tests.multibody.elastic_files.meshes import LENGTH, Bar, beam_mesh, brick_mesh, frame_mesh

MESHES = {"beams": beam_mesh, "bricks": brick_mesh}
SHEAR_OF = {"beams": 1e5, "bricks": 1.0}  # stiffness relative to that of the section


@pytest.mark.parametrize(("mesh", "within"), [("beams", 1e-5), ("bricks", 2.5e-3)])
def test_the_lowest_frequencies_are_those_of_the_beam(mesh, within, tmp_path):
    """The quadratic bricks are long, and stiffer than the beam."""
    link = files_of(MESHES[mesh](), tmp_path / "files", modes=4).link()
    theory = beam((2, 2, 0, 0), SHEAR_OF[mesh]).link()
    assert frequencies(link)[:2] == pytest.approx(np.sort(frequencies(theory))[:2], rel=within)
    assert frequencies(link) == pytest.approx(np.sort(frequencies(theory)), rel=8 * within)


@pytest.mark.parametrize("mesh", MESHES)
def test_the_rigid_body_is_that_of_the_beam(mesh, tmp_path):
    link = files_of(MESHES[mesh](), tmp_path / "files", modes=1).link()
    theory = beam((1, 0, 0, 0)).link()
    assert link.mass == pytest.approx(theory.mass, rel=1e-12)
    assert link.moment == pytest.approx(theory.moment, abs=1e-12)
    assert link.inertia == pytest.approx(theory.inertia, abs=1e-12)


@pytest.mark.parametrize(("mesh", "within"), [("beams", 1e-3), ("bricks", 1e-3)])
def test_the_integrals_are_those_of_the_beam(mesh, within, tmp_path):
    """Of the first two modes, by their modal masses: ∫φ, ∫ρφᵀ and the inertia of what they leave."""
    link = files_of(MESHES[mesh](), tmp_path / "files", modes=2).link()
    found, theory = integrals(link), integrals(beam((1, 1, 0, 0), SHEAR_OF[mesh]).link())
    for have, want in zip(found, theory, strict=True):
        assert have == pytest.approx(want, abs=within * 2.0)


def integrals(link):
    """Of modes with modal mass 1 and positive ∫φ."""
    modal, scale = link.modal, 1.0 / np.sqrt(np.diag(gram(link.modal)))
    momentum = np.einsum("k,kui->ui", modal.fraction, modal.linear)
    scale = scale * np.sign(momentum.sum(axis=1))
    product = np.einsum("ki,kuj,u->uij", modal.position, modal.linear, scale)
    return momentum * scale[:, None], product, modal.rest_inertia * np.multiply.outer(scale, scale)[..., None, None]


def test_solid_elements_have_exact_integrals(tmp_path):
    """∫φ φᵀ by components, with the mass matrix of one direction."""
    position, mass, stiffness = brick_mesh(2)
    link = files_of((position, mass, stiffness), tmp_path / "files", modes=3).link()
    shapes = np.random.default_rng(1).standard_normal((len(position), 3, 4))  # any displacements
    modal = NodalMass(mass, position).modal_mass(shapes.reshape(-1, 4))
    scalar = mass[::3, ::3].toarray()
    outer = np.einsum("piu,pq,qjv->uvij", shapes, scalar, shapes)
    got = np.einsum("kui,kvj->uvij", modal.linear, modal.linear)
    rest = outer - got
    assert modal.rest_mass == pytest.approx(np.einsum("uvii->uv", rest), abs=1e-8)
    wanted = 2.0 * np.einsum("uvii,jk->uvjk", rest, np.eye(3)) - rest - rest.swapaxes(2, 3)
    assert modal.rest_inertia == pytest.approx(wanted, abs=1e-6 * np.abs(wanted).max())
    product = np.einsum("pi,pq,qju->uij", position, scalar, shapes)
    assert np.einsum("ki,kuj->uij", modal.position, modal.linear) == pytest.approx(product, abs=1e-10)
    assert link.modal.fraction.size == 4


# of steel, without inertia of its sections in bending: the mass matrix of many programs
THIN = Bar(0.1, 3.14, (0.0, 7.065e-4), 8.4e7, 4860.0, (6300.0, 12600.0))
ANY = {
    "beams": beam_mesh(3),
    "bricks": brick_mesh(3),
    "frame": frame_mesh(bar=Bar(0.1)),
    "thin frame": frame_mesh(bar=THIN),
}


@pytest.mark.parametrize("mesh", ANY)
def test_mass_and_momenta_of_any_displacements_are_exact(mesh):
    """∫φ φᵀ, ∫φ and ∫ρ × φ."""
    position, mass, _ = ANY[mesh]
    shapes = np.random.default_rng(2).standard_normal((mass.shape[0], 3))
    modal = NodalMass(mass, position).modal_mass(shapes)
    exact = rigid_motions(position, mass.shape[0] // len(position)).T @ (mass @ shapes)
    assert np.einsum("k,kui->iu", modal.fraction, modal.linear) == pytest.approx(exact[:3], abs=1e-12)
    turning = np.cross(modal.position[:, None], modal.linear).sum(axis=0).T
    assert turning == pytest.approx(exact[3:], abs=1e-12)
    assert gram(modal) == pytest.approx(shapes.T @ (mass @ shapes), rel=1e-8, abs=1e-12)
    assert np.linalg.eigvalsh(modal.rest_mass)[0] > -1e-15


@pytest.mark.parametrize(("mesh", "within"), [("beams", 2e-6), ("bricks", 2e-4)])
def test_an_arm_moves_as_with_the_beam(mesh, within, tmp_path):
    """Its tip moves by 80 mm and swings by millimetres; m."""
    link = files_of(MESHES[mesh](), tmp_path / "files", modes=4).link()
    found, theory = swing(link), swing(beam((2, 2, 0, 0), SHEAR_OF[mesh]).link())
    assert np.abs(found - theory).max() < within
    assert np.abs(found - swing(beam((1, 0, 0, 0)).link())).max() > 1e-3


@pytest.mark.parametrize("mesh", MESHES)
def test_frequencies_with_a_body_at_an_interface_are_those_of_the_whole_mesh(mesh, tmp_path):
    body = Inertial(1.0, np.zeros(3), np.diag([2e-3, 1e-3, 3e-3]))
    whole = MESHES[mesh](4)
    link = files_of(whole, tmp_path / "files", modes=10, vibrations=4).link()
    model = arm(link, "fixed", body)
    coupled = np.sqrt(eigh(link.stiffness, model.mass_matrix(np.zeros(model.nq)), eigvals_only=True))
    assert coupled[:4] == pytest.approx(whole_frequencies(whole, body)[:4], rel=1e-4)


def whole_frequencies(mesh, body):
    """rad/s of all dofs, the root held and the tip rigid with a body."""
    position, mass, stiffness = mesh
    per_node = mass.shape[0] // len(position)
    root, tip = (np.array(nodes_at(position, x)) - 1 for x in (0.0, LENGTH))
    inside = np.ones((len(position), per_node), bool)
    inside[root] = inside[tip] = False
    rigid = np.zeros((len(position), per_node, 6))
    rigid[tip] = rigid_motions(position[tip] - TIP, per_node).reshape(len(tip), per_node, 6)
    motions = np.column_stack([np.eye(mass.shape[0])[:, inside.ravel()], rigid.reshape(-1, 6)])
    M, K = motions.T @ (mass @ motions), motions.T @ (stiffness @ motions)
    M[-6:, -6:] += np.diag([body.mass] * 3 + list(np.diag(body.inertia)))
    return np.sqrt(eigh(K, M, eigvals_only=True))


def test_both_kinds_of_files_give_the_same_link(tmp_path):
    first, second = (files_of(beam_mesh(), tmp_path / s[1:], s, modes=4).link() for s in (".npz", ".mtx"))
    assert np.diag(first.stiffness) == pytest.approx(np.diag(second.stiffness), rel=1e-9)
    assert first.displacement(TIP).path.linear == pytest.approx(second.displacement(TIP).path.linear, abs=1e-9)


def test_a_mode_of_twist_is_measured_by_its_angle(tmp_path):
    link = files_of(beam_mesh(), tmp_path / "files", modes=7).link()
    assert [unit for _, unit in link.modes] == ["m"] * 6 + ["rad"]
    assert np.abs(link.displacement(TIP).angular[6]) == pytest.approx([1.0, 0.0, 0.0])


def test_damping_is_a_ratio_of_every_vibration(tmp_path):
    link = files_of(beam_mesh(), tmp_path / "files", modes=3, damping_ratio=0.02).link()
    masses = np.diag(gram(link.modal))
    assert np.diag(link.damping) == pytest.approx(0.04 * np.sqrt(np.diag(link.stiffness) * masses), rel=1e-6)


def test_the_nodes_of_an_interface_move_as_one_body(tmp_path):
    link = files_of(brick_mesh(), tmp_path / "files", modes=3).link()
    center, corner = link.displacement(TIP), link.displacement(TIP + np.array([0.0, 0.015, 0.025]))
    assert corner.angular == pytest.approx(center.angular)
    moved = center.path.linear + np.cross(center.angular, [0.0, 0.015, 0.025])
    assert corner.path.linear == pytest.approx(moved, abs=1e-12)
    assert link.displacement(np.zeros(3)).is_none


def test_a_reduction_is_kept_in_the_cache_until_a_file_or_an_option_changes(tmp_path, cache, monkeypatch):
    files = files_of(beam_mesh(4), tmp_path / "files", modes=3)
    first = files.link()
    assert len(list(cache.glob("*.modes"))) == 1
    with monkeypatch.context() as patch:
        patch.setattr(finite_elements, "reduce", None)  # is not called again
        again = files_of(beam_mesh(4), tmp_path / "files", modes=3).link()
        assert np.array_equal(again.stiffness, first.stiffness)
        assert np.array_equal(again.modal.linear, first.modal.linear)
    files_of(beam_mesh(4), tmp_path / "files", modes=2).link()
    position, mass, stiffness = beam_mesh(4)
    stiffer = files_of((position, mass, 2.0 * stiffness), tmp_path / "files", modes=3).link()
    assert np.diag(stiffer.stiffness) == pytest.approx(2.0 * np.diag(first.stiffness), rel=1e-6)
    assert len(list(cache.glob("*.modes"))) == 3
    assert private_cache() == cache
