"""Matrices of finite elements that are not those of a free body at the nodes that come with them."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from cosim.multibody.elastic.finite_elements import read_matrix
from tests.multibody.elastic_files.bodies import TIP, files_of
from tests.multibody.elastic_files.meshes import beam_mesh, brick_mesh
from tests.multibody.elastic_files.test_mistakes_in_files import said_of

BY_COMPONENT = np.argsort(np.arange(30) % 6, kind="stable")


def shuffled(position, mass, stiffness):
    return position[[0, 2, 1, 3, 4]], mass, stiffness


def in_millimetres(position, mass, stiffness):
    return 1e3 * position, mass, stiffness


def grounded(position, mass, stiffness):
    """With a spring of each translation of node 3 to the ground."""
    held = np.zeros(30)
    held[12:15] = stiffness.diagonal()[12]
    return position, mass, stiffness + sparse.diags(held)


def exchanged(position, mass, stiffness):
    return position, stiffness, mass


def by_component(position, mass, stiffness):
    return position, mass[BY_COMPONENT][:, BY_COMPONENT], stiffness[BY_COMPONENT][:, BY_COMPONENT]


def with_root_held(position, mass, stiffness):
    """The masses of the root taken out along x."""
    kept = np.ones(30)
    kept[0] = 0.0
    return position, sparse.diags(kept) @ mass @ sparse.diags(kept), stiffness


CHANGES = shuffled, in_millimetres, grounded, exchanged, by_component, with_root_held


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_matrices_of_another_body(change, tmp_path, said):
    folder = tmp_path / "files"
    made = files_of(beam_mesh(4), folder, modes=2)
    files_of(change(*beam_mesh(4)), folder, modes=2)
    said(said_of(made.link, folder))


@pytest.mark.parametrize(("mesh", "digits"), [(beam_mesh(4), 5), (brick_mesh(2), 7)])
def test_matrices_with_few_digits_fit(mesh, digits, tmp_path):
    position, mass, stiffness = mesh

    def rounded(matrix):
        upper = sparse.triu(matrix).tocsr()
        upper.data = np.array([float(f"{value:.{digits - 1}e}") for value in upper.data])
        return (upper + sparse.triu(upper, 1).T).tocsr()

    assert files_of((position, rounded(mass), rounded(stiffness)), tmp_path / "files", modes=2).link().mass > 4.0


def test_a_body_without_nodes_between_root_and_interface(tmp_path):
    """Its six modes are the static shapes; without the interface nothing is left."""
    made = files_of(beam_mesh(1), tmp_path / "files", modes=6)
    tip = made.link().displacement(TIP)
    assert np.linalg.matrix_rank(np.hstack([tip.path.linear, tip.angular])) == 6
    nothing = replace(files_of(beam_mesh(1), tmp_path / "files", interfaces={}), root=(1, 2))
    assert said_of(nothing.link, tmp_path) == "all nodes are in root: nothing can bend; take some out"


def test_matrices_that_do_not_fit_into_memory_and_indices_beyond_them(tmp_path, said):
    large, beyond = tmp_path / "K.mtx", tmp_path / "K.npz"
    large.write_text("%%MatrixMarket matrix array real general\n99999999 99999999\n1\n")
    np.savez(beyond, indices=[0, 99], indptr=[0] * 3 + [2], format="csr", shape=[3, 3], data=[1.0, 2.0])
    for path in (large, beyond):
        said(said_of(lambda path=path: read_matrix(path), tmp_path))


def test_nodes_with_a_byte_order_mark(tmp_path):
    """As spreadsheets write."""
    made = files_of(beam_mesh(2), tmp_path / "files", modes=2)
    path = tmp_path / "files" / "nodes.csv"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert len(made.link().modes) == 2
