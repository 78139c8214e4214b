"""`cosim derive --tables`: augmented bodies of the textbook's solar array, and modal integrals of a slender beam."""

from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import eigh

from cosim.apps.derive.body_tables import augmented, integrals, table_lines
from cosim.apps.derive.matrix_patterns import coupled_dofs, mass_pattern, occurring, pattern_lines
from cosim.apps.derive.plant_model import read_model
from cosim.rig.rig import Rig
from tests.formulations.mechanisms import model_of
from tests.kit.samples import FOLDER


def test_the_solar_array_of_the_textbook():
    """Panels of 2 m whose centres are 1 m from both hinges: b_11 = -m_2/M s_12, b_22 = -m_1/M s_21, and K_i about the
    point on which the panel hangs."""
    model = read_model(FOLDER / "mechanisms" / "solar_array_fixed_augmented.yaml")
    m_1, m_2 = (body.mass for body in model.equations.tree.bodies)
    (found,) = augmented(model)
    assert found.hangs
    assert found.mass == pytest.approx(m_1 + m_2)
    assert found.b[0, 0] == pytest.approx([-m_2 / found.mass, 0.0, 0.0], abs=1e-15)
    assert found.b[1, 1] == pytest.approx([m_1 / found.mass, 0.0, 0.0], abs=1e-15)
    for k, behind in ((0, m_2), (1, 0.0)):
        own = model.equations.tree.bodies[k]
        assert found.inertia[k][2, 2] == pytest.approx(own.inertia[2, 2] + behind * 2.0**2)


@pytest.mark.parametrize("name", ["rotations", "floating", "planar", "planar floating"])
def test_vectors_and_inertias_of_random_trees(name):
    """Sum of m_j b_ij = 0, d_ij = b_i0 - b_ij, and K_i of point masses at d_ij, or b_ij about the barycentre."""
    model = model_of(name)
    tree = model.equations.tree
    (found,) = augmented(model)
    masses = np.array([body.mass for body in tree.bodies])
    for i in found.members:
        vectors = [found.b[i, j] for j in found.members]
        assert np.abs(masses @ vectors).max() < 1e-12
        for j in found.members:
            assert found.b0[i] - found.b[i, j] == pytest.approx(found.d.get((i, j), np.zeros(3)), abs=1e-12)
        turn = tree.frames[tree.joints[i].child][1].rotation
        body = tree.bodies[i]
        c = body.moment / body.mass
        central = turn.T @ (body.inertia - body.mass * (c @ c * np.eye(3) - np.outer(c, c))) @ turn
        about = [found.d.get((i, j), np.zeros(3)) if found.hangs else found.b[i, j] for j in found.members]
        points = sum(m * (r @ r * np.eye(3) - np.outer(r, r)) for m, r in zip(masses, about, strict=True))
        assert found.inertia[i] == pytest.approx(central + points, rel=1e-10, abs=1e-12)


def test_the_integrals_of_a_cantilever():
    """Of the first mode of Euler and Bernoulli, beta L = 1.875104: (int phi)^2 = 0.613076 m h6, and
    (int x phi)^2 = 4 / beta^4 m L^2 h6."""
    model = read_model(FOLDER / "elastic" / "cantilever.yaml")
    ((_, modes, found),) = integrals(model)
    (force,) = model.equations.constraints.elastic
    bending = [k for k, mode in enumerate(modes) if mode.startswith("bend_z")]
    h6 = found.h6[np.ix_(bending, bending)]
    _, shapes = eigh(force.stiffness[np.ix_(bending, bending)], h6)
    first, length = shapes[:, 0], 2.0 * found.moment[0] / found.mass
    along, turned = first @ found.shape[bending, 2], first @ found.h1[bending, 1]
    assert along**2 / found.mass == pytest.approx(0.613076, rel=2e-3)
    assert turned**2 / (found.mass * length**2) == pytest.approx(4.0 / 1.875104**4, rel=2e-3)


BEAM = {"length": 0.8, "section": {"shape": "rectangle", "width": "30 mm", "height": "4 mm"}, "density": 7850.0,
        "youngs_modulus": 2.1e11, "modes": {"bend_y": 2, "bend_z": 2, "twist": 1}}  # fmt: skip


def test_the_integrals_of_a_floating_beam():
    """In the undeformed state they are elements of its mass matrix; h4 and h5 fit h6."""
    mechanism = {"bodies": [{"name": "beam", "type": "free"}], "elastic": [{"link": "beam", "beam": BEAM}]}
    model = Rig.from_dict({"mechanism": mechanism, "schedule": {"duration": "1 ms"}}).plant.model
    ((_, modes, found),) = integrals(model)
    M = model.mass_matrix(model.neutral())
    assert len(modes) == 5 and M.shape == (11, 11)
    close = {"rel": 1e-9, "abs": 1e-12}
    assert M[:3, 6:] == pytest.approx(found.shape.T, **close)
    assert M[3:6, 6:] == pytest.approx(found.h1.T, **close)
    assert M[6:, 6:] == pytest.approx(found.h6, **close)
    assert M[0, 0] == pytest.approx(found.mass)
    assert found.h2 == pytest.approx(found.h3 + np.swapaxes(found.h3, 1, 2))
    assert np.trace(found.h5, axis1=2, axis2=3) == pytest.approx(2.0 * found.h6, **close)
    for matrices, crossed in ((found.h5, found.h4), (found.h3, found.h1)):  # of -b c^T + c b^T
        skew = matrices - np.swapaxes(matrices, -1, -2)
        assert np.stack([skew[..., 2, 1], skew[..., 0, 2], skew[..., 1, 0]], axis=-1) == pytest.approx(crossed, **close)


@pytest.mark.parametrize(
    ("sample", "size", "bodies_first", "in_order"),
    [("double_pendulum_cartesian", "6 coordinates, 4 multipliers", 1, 0),
     ("slider_crank_cartesian", "9 coordinates, 8 multipliers", 3, 4),
     ("triple_pendulum", "9 coordinates, 6 multipliers", 2, 0)],
)  # fmt: skip
def test_the_order_of_elimination_fills_no_block_of_a_tree(sample, size, bodies_first, in_order):
    """Sizes of the textbook; bodies first, two joints of one body fill a block. Of a loop the closing row fills."""
    lines = pattern_lines(read_model(FOLDER / "mechanisms" / f"{sample}.yaml"))
    assert lines[0].startswith(f"Cartesian equations: {size}")
    between, end = (k for k, line in enumerate(lines) if not line)
    for part, filled in ((lines[2:between], bodies_first), (lines[between + 2 : end], in_order)):
        assert sum(row.split().count("+") for row in part) == 2 * filled


@pytest.mark.parametrize(
    "sample",
    ["mechanisms/four_bars", "mechanisms/solar_linkage", "mechanisms/flyball_governor", "elastic/slider_crank"],
)
def test_the_mass_matrix_has_the_sparsity_of_the_branches(sample):
    """Elements that are not 0 are of dofs one of which carries the other, and factors L^T L from the last dof on fill
    no other."""
    model = read_model(FOLDER / f"{sample}.yaml")
    coupled, found = coupled_dofs(model), occurring(model)
    assert not (found & ~coupled).any() and not coupled.all()
    rest = model.mass_matrix(model.random_configuration(np.random.default_rng(5)))
    assert np.abs(rest[~coupled]).max() == 0.0
    for k in reversed(range(model.nv)):
        row = rest[k, :k] / rest[k, k]
        rest[:k, :k] = rest[:k, :k] - np.outer(row, rest[k, :k])
        assert np.abs(rest[:k, :k][~coupled[:k, :k]]).max(initial=0.0) < 1e-12
    assert sum(row.count("x") for row in mass_pattern(model).elements) == np.count_nonzero(found)


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
def test_the_patterns_are_drawn(command, suffix):
    out = command.prints("derive", FOLDER / "mechanisms" / "four_bars.yaml", f"p.{suffix}", "--tables")
    assert out.splitlines()[-1] == f"wrote    patterns p.{suffix}"
    assert Path(f"p.{suffix}").stat().st_size > 3000
    if suffix == "svg":  # 12 x 12 blocks twice, 5 x 5 elements, each a rectangle
        assert Path("p.svg").read_text(encoding="utf-8").count("patch_") >= 2 * 144 + 25


def test_the_picture_of_an_elastic_mechanism_lacks_the_cartesian_matrix(command, said):
    said(command.prints("derive", FOLDER / "elastic" / "slider_crank.yaml", "p.svg", "--tables").splitlines()[-2:])


def test_what_is_printed(said):
    said(table_lines(read_model(FOLDER / "mechanisms" / "solar_array_fixed_augmented.yaml")))
    said(table_lines(read_model(FOLDER / "elastic" / "single_link_tip.yaml")))
