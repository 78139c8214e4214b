"""Finite elements of a straight beam along x and of a frame, assembled here: elements with six dofs per node that do
not shear, with the inertia of their sections, and bricks with 27 nodes and three dofs per node.

Each is (positions (p, 3), mass, stiffness).
"""

from itertools import product
from typing import NamedTuple

import numpy as np
from scipy import sparse

LENGTH, WIDTH, HEIGHT = 1.0, 0.03, 0.05  # along x, y, z
DENSITY, YOUNG, POISSON = 2700.0, 7e10, 0.0
AREA, ABOUT_Y, ABOUT_Z = WIDTH * HEIGHT, WIDTH * HEIGHT**3 / 12, HEIGHT * WIDTH**3 / 12
TORSION, SHEAR = 2.8e-7, YOUNG / 2
BENDING = (1, 5, 1.0), (2, 4, -1.0)  # deflection, angle, and sign of the slope in it: of z it is negative about y


class Bar(NamedTuple):
    """length [m]; per length mass [kg/m] and inertia about y and z [kg m]; EA [N], GJ, EI about y and z [N m²]"""

    length: float = LENGTH
    mass: float = DENSITY * AREA
    inertia: tuple[float, float] = (DENSITY * ABOUT_Y, DENSITY * ABOUT_Z)
    stretching: float = YOUNG * AREA
    twisting: float = SHEAR * TORSION
    bending: tuple[float, float] = (YOUNG * ABOUT_Y, YOUNG * ABOUT_Z)


def beam_mesh(elements=16, bar=None):
    bar = bar or Bar()
    h = bar.length / elements
    position = np.zeros((elements + 1, 3))
    position[:, 0] = h * np.arange(elements + 1)
    mass, stiffness = np.zeros((12, 12)), np.zeros((12, 12))
    rod = np.array([[1, -1], [-1, 1]]) / h, h * np.array([[2, 1], [1, 2]]) / 6
    for dof, stiff, heavy in ((0, bar.stretching, bar.mass), (3, bar.twisting, sum(bar.inertia))):
        here = np.ix_([dof, dof + 6], [dof, dof + 6])
        stiffness[here] += stiff * rod[0]
        mass[here] += heavy * rod[1]
    for (deflection, angle, sign), EI, turning in zip(BENDING, bar.bending[::-1], bar.inertia[::-1], strict=True):
        a = h * sign  # the slope of z is the negative rotation about y
        K = np.array([[12, 6 * a, -12, 6 * a], [6 * a, 4 * h * h, -6 * a, 2 * h * h]])
        K = np.vstack([K, [-12, -6 * a, 12, -6 * a], [6 * a, 2 * h * h, -6 * a, 4 * h * h]]) / h**3
        M = np.array([[156, 22 * a, 54, -13 * a], [22 * a, 4 * h * h, 13 * a, -3 * h * h]])
        M = np.vstack([M, [54, 13 * a, 156, -22 * a], [-13 * a, -3 * h * h, -22 * a, 4 * h * h]]) * h / 420
        here = np.ix_([deflection, angle, deflection + 6, angle + 6], [deflection, angle, deflection + 6, angle + 6])
        stiffness[here] += EI * K
        rotary = np.array([[36, 3 * a, -36, 3 * a], [3 * a, 4 * h * h, -3 * a, -h * h]])
        rotary = np.vstack([rotary, [-36, -3 * a, 36, -3 * a], [3 * a, -h * h, -3 * a, 4 * h * h]]) / (30 * h)
        mass[here] += bar.mass * M + turning * rotary
    nodes = np.stack([np.arange(elements), np.arange(1, elements + 1)], axis=1)
    return position, *assembled(nodes, 6, len(position), mass, stiffness)


def frame_mesh(along=12, up=5, bar=None):
    """Elements of `beam_mesh`, each as long as the bar, in a row along x and then in one along z."""
    count, bar = along + up, bar or Bar(0.1)
    _, mass, stiffness = beam_mesh(1, bar)
    upright = np.kron(np.eye(4), [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])
    axes = np.repeat([0, 2], [along, up])
    position = np.concatenate([np.zeros((1, 3)), np.cumsum(bar.length * np.eye(3)[axes], axis=0)])
    nodes = np.stack([np.arange(count), np.arange(1, count + 1)], axis=1)
    element = [part.toarray() for part in (mass, stiffness)]
    lying = assembled(nodes[:along], 6, count + 1, *element)
    standing = assembled(nodes[along:], 6, count + 1, *(upright.T @ part @ upright for part in element))
    return position, *(one + other for one, other in zip(lying, standing, strict=True))


def tension_mesh(elements, length, force):
    """The geometric stiffness of `beam_mesh` under an axial force of x [N]."""
    h, (at, weights) = length / elements, np.polynomial.legendre.leggauss(4)
    s, size = (at + 1.0) / 2.0, 6 * (elements + 1)
    slopes = np.stack([6 * (s * s - s) / h, 1 - 4 * s + 3 * s * s, 6 * (s - s * s) / h, 3 * s * s - 2 * s], axis=-1)
    total = np.zeros((size, size))
    for e in range(elements):
        own = np.einsum("k,ki,kj->ij", h / 2.0 * weights * force(h * (e + s)), slopes, slopes)
        for deflection, angle, sign in BENDING:
            dofs = 6 * e + np.array([deflection, angle, deflection + 6, angle + 6])
            total[np.ix_(dofs, dofs)] += own * np.outer([1.0, sign] * 2, [1.0, sign] * 2)
    return sparse.csr_matrix(total)


def brick_mesh(elements=8):
    """A row of bricks with quadratic shape functions along each side, the beam's axis through the middle."""
    size = np.array([LENGTH / elements, WIDTH, HEIGHT])
    counts = 2 * elements + 1, 3, 3
    grid = np.array(list(product(*map(range, counts))))
    position = grid * size / 2 - [0.0, WIDTH / 2, HEIGHT / 2]
    index = np.arange(len(grid)).reshape(counts)
    nodes = np.array([index[2 * e : 2 * e + 3].ravel() for e in range(elements)])
    at, weights = np.polynomial.legendre.leggauss(3)
    along = np.stack([at * (at - 1) / 2, 1 - at**2, at * (at + 1) / 2]), np.stack([at - 0.5, -2 * at, at + 0.5])
    scale, elastic = size.prod() / 8, YOUNG * np.diag([1, 1, 1, 0.5, 0.5, 0.5])  # Poisson's ratio is 0
    mass, stiffness = np.zeros((81, 81)), np.zeros((81, 81))
    for g in product(range(3), repeat=3):
        w = scale * weights[list(g)].prod()
        shape = np.einsum("i,j,k->ijk", *(along[0][:, k] for k in g)).ravel()
        slopes = [
            np.einsum("i,j,k->ijk", *(along[int(axis == d)][:, k] for axis, k in enumerate(g))).ravel() * 2 / size[d]
            for d in range(3)
        ]
        mass += w * DENSITY * np.kron(np.outer(shape, shape), np.eye(3))
        strain = np.zeros((6, 27, 3))
        for row, pair in enumerate(((0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1))):
            strain[row, :, pair[0]] = slopes[pair[1]]
            strain[row, :, pair[1]] = slopes[pair[0]]
        strain = strain.reshape(6, 81)
        stiffness += w * strain.T @ elastic @ strain
    return position, *assembled(nodes, 3, len(position), mass, stiffness)


def assembled(nodes, per_node, count, mass, stiffness):
    dofs = (per_node * nodes[:, :, None] + np.arange(per_node)).reshape(len(nodes), -1)
    rows, columns = np.repeat(dofs, dofs.shape[1], axis=1).ravel(), np.tile(dofs, dofs.shape[1]).ravel()
    size = per_node * count
    return tuple(
        sparse.csr_matrix((np.tile(matrix.ravel(), len(nodes)), (rows, columns)), (size, size))
        for matrix in (mass, stiffness)
    )
