"""A plane frame of beam elements, whose mass matrix does not treat x, y and z alike."""

import numpy as np
import pytest
from scipy.linalg import eigh

from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.mechanism import Joint, Link, Mechanism
from tests.multibody.elastic_files.bodies import ROOT, files_of, frequencies
from tests.multibody.elastic_files.meshes import Bar, frame_mesh
from tests.multibody.elastic_files.test_finite_elements import THIN

MODES, VIBRATIONS = 8, 18


def reduced_link(mesh, folder):
    return files_of(mesh, folder / "files", interfaces={"tip": (18,)}, modes=MODES, vibrations=VIBRATIONS).link()


def craig_bampton(mesh):
    """rad/s, (reduced with the last node as the interface, of all dofs)"""
    _, mass, stiffness = mesh
    M, K = mass.toarray(), stiffness.toarray()
    inside, tip = np.arange(6, len(M) - 6), np.arange(len(M) - 6, len(M))
    within = K[np.ix_(inside, inside)]
    shapes = eigh(within, M[np.ix_(inside, inside)])[1][:, :VIBRATIONS]
    motions = np.zeros((len(M), VIBRATIONS + 6))
    motions[inside, :VIBRATIONS] = shapes
    motions[inside, VIBRATIONS:] = -np.linalg.solve(within, K[np.ix_(inside, tip)])
    motions[tip, VIBRATIONS:] = np.eye(6)
    squares = eigh(motions.T @ K @ motions, motions.T @ M @ motions, eigvals_only=True)
    exact = eigh(K[6:, 6:], M[6:, 6:], eigvals_only=True)
    return np.sqrt(squares[:MODES]), np.sqrt(exact[:MODES])


BARS = pytest.mark.parametrize("bar", [Bar(0.1), THIN], ids=["thick", "thin"])


@BARS
def test_frequencies_are_those_of_the_reduction_and_none_is_below_the_exact_one(bar, tmp_path):
    mesh = frame_mesh(bar=bar)
    link = reduced_link(mesh, tmp_path)
    reduced, exact = craig_bampton(mesh)
    assert frequencies(link) == pytest.approx(reduced, rel=1e-6)
    assert np.all(frequencies(link) > exact * (1.0 - 1e-8))
    assert exact == pytest.approx(reduced, rel=2e-3)


@BARS
def test_the_mass_matrix_is_exact_undeformed_and_positive_in_any_shape(bar, tmp_path):
    """The mass matrix of a free link, in rigid motions and modes."""
    mesh = frame_mesh(bar=bar)
    links = Link("ground"), Link("frame", elastic=reduced_link(mesh, tmp_path))
    joint = Joint("free", "free", "ground", "frame", ROOT)
    model = Model(Mechanism("frame", "ground", links, (joint,)), gravity=(0.0, 0.0, 0.0))
    q, rng = model.neutral(), np.random.default_rng(3)
    for size in (0.01, 0.1, 0.5):
        for _ in range(7):
            q[-MODES:] = size * rng.standard_normal(MODES)
            mass = model.mass_matrix(q)
            scale = np.sqrt(np.diag(mass))
            assert np.linalg.eigvalsh(mass / np.outer(scale, scale))[0] > 1e-6
