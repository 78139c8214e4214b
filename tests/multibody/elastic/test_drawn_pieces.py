"""The pieces as which elastic links are drawn: knots of nodes, the net between them, and how its pieces move."""

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from scipy.spatial.distance import cdist

from cosim.mechanics.multibody.elastic.link import (
    KNOTS,
    Displacement,
    DrawnPiece,
    fixed_point,
    knots_of,
    neighbours,
    net_of,
    secant,
    with_bars_to,
)
from cosim.mechanics.multibody.elastic_bodies import PointCurve
from tests.multibody.elastic_files.meshes import beam_mesh, brick_mesh


def still(position):
    """Knots of nodes that do not move."""
    none = np.zeros((len(position), 1, 3))
    return knots_of(np.asarray(position, dtype=float), none, none)


def lengths(pieces):
    return np.array([np.linalg.norm(piece.end.path.position - piece.start.path.position) for piece in pieces])


def grid(*axes):
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)


def test_a_line_of_nodes_is_a_chain_from_end_to_end():
    line = grid(np.linspace(0.0, 0.8, 41), [0.1], [0.0])
    pieces = net_of(still(line))
    assert len(pieces) == KNOTS - 1
    assert lengths(pieces).sum() == pytest.approx(0.8)
    few = net_of(still(line[::8]))
    assert lengths(few) == pytest.approx(5 * [0.16])


@pytest.mark.parametrize("mesh", [brick_mesh, beam_mesh])
def test_a_slender_body_is_a_chain_along_its_axis(mesh):
    position = mesh()[0]
    knots = still(position)
    assert np.abs(knots.position[:, 1:]).max() < 1e-12
    assert lengths(net_of(knots)).sum() == pytest.approx(1.0)


def test_a_plate_is_a_net_with_its_edges():
    plate = grid(np.linspace(0.0, 1.0, 11), np.linspace(-0.3, 0.3, 7), [-0.01, 0.01])
    knots = still(plate)
    assert len(knots.position) == 15  # 5 by 3
    assert len(net_of(knots)) == 22
    assert np.ptp(knots.position, axis=0) == pytest.approx([1.0, 0.6, 0.0], abs=0.06)


def test_a_block_is_its_twelve_edges():
    assert len(net_of(still(grid(*3 * [np.linspace(0.0, 1.0, 5)])))) == 12


@pytest.mark.parametrize("seed", range(5))
def test_no_piece_has_no_length(seed):
    rng = np.random.default_rng(seed)
    cloud = rng.normal(size=(int(rng.integers(2, 60)), 3)) * rng.uniform(0.01, 1.0, 3)
    knots = still(cloud)
    assert 1 < len(knots.position) <= KNOTS
    assert lengths(net_of(knots)).min() > 1e-3 * np.ptp(cloud, axis=0).max()


def test_a_single_node_is_joined_to_the_origin():
    (piece,) = net_of(still([[0.3, 0.0, 0.4]]))
    assert lengths([piece]) == pytest.approx([0.5])
    assert net_of(still([[0.0, 0.0, 0.0]])) == ()


@pytest.mark.parametrize("seed", range(3))
def test_a_net_connects_all_knots_with_few_pieces(seed):
    points = np.random.default_rng(seed).normal(size=(KNOTS, 3))
    pairs = neighbours(points)
    graph = np.zeros((KNOTS, KNOTS))
    graph[tuple(np.transpose(pairs))] = 1.0
    assert connected_components(graph)[0] == 1
    tree = minimum_spanning_tree(np.triu(cdist(points, points))).nonzero()
    assert set(zip(*map(list, tree), strict=True)) <= set(pairs)
    assert len(pairs) <= KNOTS**2 // 4


def test_knots_at_equal_distances_make_no_triangle():
    hexagons = np.array([[x + 0.5 * (y % 2), y * np.sqrt(0.75), 0.0] for x in range(4) for y in range(4)])
    joined = np.zeros((16, 16), dtype=int)
    for i, j in neighbours(hexagons):
        joined[i, j] = joined[j, i] = 1
    assert np.trace(joined @ joined @ joined) == 0
    assert connected_components(joined)[0] == 1


def point(position, linear, angular=(0.0, 0.0, 0.0)):
    return Displacement(PointCurve(np.array(position), np.array([linear]), np.zeros((1, 1, 3))), np.array([angular]))


def test_a_piece_moves_with_its_ends_and_twists_with_them():
    piece = DrawnPiece(point([0.1, 0.0, 0.0], [0.0, 0.2, -0.1]), point([0.1, 0.4, 0.3], [0.3, 0.1, 0.2]))
    motion = secant(piece)
    for eta in (1e-3, 1e-4):
        axes, origin = motion.place(np.array([eta]))
        for end, side in zip(piece, (-0.5, 0.5), strict=True):
            drawn = origin + axes @ (side * np.array([0.0, 0.4, 0.3]))
            exact, _ = end.path.place(np.array([eta]))
            # what a bar of constant length leaves out is along it
            gap = drawn - exact
            along = np.array([0.0, 0.8, 0.6])
            assert np.linalg.norm(gap - along * (gap @ along)) < 2.0 * eta**2
    turned = secant(DrawnPiece(point([0, 0, 0], [0, 0, 0], [0.4, 7, 9]), point([2.0, 0, 0], [0, 0, 0], [0.6, 7, 9])))
    assert turned.angular == pytest.approx(np.array([[0.5, 0.0, 0.0]]))


def test_bars_lead_to_what_is_attached_beside_the_pieces():
    pieces = net_of(still(grid(np.linspace(0.0, 1.0, 5), [0.0], [0.0])))
    on, beside = fixed_point(np.array([0.4, 0.0, 0.0]), 1), fixed_point(np.array([0.9, 0.2, 0.0]), 1)
    *same, bar = with_bars_to([on, beside], pieces)
    assert tuple(same) == pieces
    assert bar.start.path.position == pytest.approx([1.0, 0.0, 0.0])
    assert bar.end is beside
    assert with_bars_to([on], ()) == []
