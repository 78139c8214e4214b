"""Elastic links from matrices of finite elements, against the beam that they mesh and the whole mesh."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.sparse import save_npz

from cosim.core.trust.private_cache import private_cache
from cosim.mechanics.multibody.elastic import finite_elements
from cosim.mechanics.multibody.elastic.consistent_mass import NodalMass, rigid_motions
from cosim.mechanics.multibody.elastic.geometric_stiffness import GeometricStiffness
from cosim.mechanics.multibody.elastic.modal_link import gram
from cosim.mechanics.multibody.mechanism import Inertial
from tests.multibody.elastic import test_elastic_motion as benchmark
from tests.multibody.elastic_files.bodies import TIP, arm, beam, files_of, frequencies, nodes_at, swing
from tests.multibody.elastic_files.meshes import LENGTH, Bar, beam_mesh, brick_mesh, frame_mesh, tension_mesh
from tests.multibody.elastic_files.test_mistakes_in_files import said_of

MESHES = {"beams": beam_mesh, "bricks": brick_mesh}
SHEAR_OF = {"beams": 1e5, "bricks": 1.0}  # stiffness relative to the section's


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


# --- geometric stiffness ---

BLADE = Bar(
    benchmark.LENGTH, benchmark.LINE, (6e-4, 6e-4), benchmark.EA, 1e4, (100.0 * benchmark.EI, benchmark.EI)
)  # stiff across the plane in which it turns


def stiffened(folder, bar, elements=16, force=True, **options):
    """The bar with its geometric stiffness under weight along it, spin across it and a force at its tip."""
    folder.mkdir(exist_ok=True)
    forces = {
        "weight": lambda x: bar.mass * (bar.length - x),
        "spin": lambda x: bar.mass * (bar.length**2 - x**2) / 2.0,
        "force": np.ones_like,
    }
    for name, along in forces.items():
        save_npz(folder / f"{name}.npz", tension_mesh(elements, bar.length, along))
    weight, spin, at_tip = (folder / f"{name}.npz" for name in forces)
    loads = GeometricStiffness({"x": weight}, {"y": spin, "z": spin}, {"tip": {"x": at_tip}} if force else {})
    mesh = beam_mesh(elements, bar)
    tip = {"tip": nodes_at(mesh[0], bar.length)}
    return files_of(mesh, folder, interfaces=tip, stiffening=loads, **options)


def moments(link):
    """∫g, ∫x g and g at the tip, along x, of modes that bend along y."""
    modal = link.modal
    tip = link.displacement(np.array([link.moment[0] / link.mass * 2.0, 0.0, 0.0])).path
    y = np.abs(tip.linear[:, 1]) > 0.5
    parts = np.einsum("k,kuv->uv", modal.fraction, modal.curve[..., 0]), tip.curve[..., 0]
    signs = np.sign(tip.linear[y, 1])
    x = np.einsum("k,kuv->uv", modal.position[:, 0], modal.curve[..., 0])
    return [part[np.ix_(y, y)] * np.outer(signs, signs) for part in (*parts, x)]


def test_second_order_displacements_are_those_of_the_beam(tmp_path):
    found = moments(stiffened(tmp_path / "files", Bar(), modes=4).link())
    theory = moments(replace(beam((2, 2, 0, 0), 1e5), stiffening=True).link())
    for have, want in zip(found, theory, strict=True):
        assert have.shape == (2, 2) and have == pytest.approx(want, rel=1e-3)
    assert theory[1][0, 0] == pytest.approx(-1.162 / LENGTH, abs=1e-3)


def test_the_spin_up_of_the_benchmark(tmp_path):
    """The published deflections, to 0.3 %: curvature that is not small has no matrix."""
    tip = benchmark.spun_up(stiffened(tmp_path / "files", BLADE, modes=4).link(), 16.0)
    expected = {2.5: -0.1513, 5.0: -0.4688, 10.0: -0.3627, 12.5: -0.1126}
    assert [tip(t) for t in expected] == pytest.approx(list(expected.values()), abs=1e-3)
    assert tip(7.5) == pytest.approx(-0.559, abs=2e-3)


def test_without_geometric_stiffness_it_diverges(tmp_path):
    body = replace(stiffened(tmp_path / "files", BLADE, modes=4), stiffening=GeometricStiffness())
    assert benchmark.spun_up(body.link(), 10.0)(10.0) < -20.0


def buckling(link, load):
    """The lowest eigenvalue of the stiffness less the one of a load that presses the tip along x [N]."""
    tip = link.displacement(TIP).path
    return np.linalg.eigvalsh(link.stiffness + load * tip.curve[..., 0])[0]


def test_a_column_buckles_under_the_load_of_euler(tmp_path):
    """π² EI / 4 L², with EI of the weaker direction."""
    bar = Bar()
    link = stiffened(tmp_path / "files", bar, modes=6).link()
    critical = np.pi**2 * min(bar.bending) / (4.0 * LENGTH**2)
    assert buckling(link, 0.995 * critical) > 0.0 > buckling(link, 1.005 * critical)


def test_a_change_of_a_load_is_not_taken_from_the_cache(tmp_path, cache):
    first = stiffened(tmp_path / "files", Bar(), 4, modes=2)
    curve = first.link().modal.curve
    save_npz(tmp_path / "files" / "spin.npz", 2.0 * tension_mesh(4, LENGTH, np.ones_like))
    again = replace(first).link().modal.curve
    assert np.abs(again - curve).max() > 0.1 * np.abs(curve).max()
    without = stiffened(tmp_path / "files", Bar(), 4, force=False, modes=2).link()
    assert not without.displacement(TIP).path.curve.any()


def test_loads_that_are_wrong(tmp_path, said):
    folder = tmp_path / "files"
    body = stiffened(folder, Bar(), 2, modes=2)
    said(said_of(replace(body, stiffening=GeometricStiffness(force={"top": {}})).link, folder))
    skew = tension_mesh(2, LENGTH, np.ones_like).tolil()
    skew[7, 11] += 2.0 * skew.tocsr().max()
    for matrix in (tension_mesh(3, LENGTH, np.ones_like), skew.tocsr()):
        save_npz(folder / "spin.npz", matrix)
        said(said_of(replace(body).link, folder), r"(?<=by )0\.\d+")
