"""An elastic link from the mass and stiffness matrices of a finite-element program.

They must describe a body that nothing holds, at the nodes that come with them. A stiffness matrix leaves the six rigid
motions R of a body without force, K R = 0, and its mass matrix has the same mass in all directions, Rᵀ M R. Neither is
so with nodes in another order, coordinates in other units or a part held.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.io import mmread

from cosim.core.compile.jit import cached, store
from cosim.core.errors import HANDFUL, InputError
from cosim.core.tables import open_table
from cosim.core.types import Array
from cosim.core.units import UNITS
from cosim.mechanics.multibody.elastic.arrays import read_content
from cosim.mechanics.multibody.elastic.consistent_mass import NodalMass, rigid_motions
from cosim.mechanics.multibody.elastic.craig_bampton import MOTIONS, reduce
from cosim.mechanics.multibody.elastic.geometric_stiffness import GeometricStiffness, ModalLoads, at_node, with_moments
from cosim.mechanics.multibody.elastic.link import ElasticLink, Knots, Remedies, knots_of, net_of
from cosim.mechanics.multibody.elastic.modal_link import Nodes, check_mass, check_symmetric, modal_link
from cosim.mechanics.multibody.elastic_bodies import ModalMass

ROOT, NONE = "root", GeometricStiffness()
VERSION = 4  # of what is cached
REMEDIES = Remedies(*["name the interface in held, with more than 6 modes for each that is there"] * 2)
FLAT = 1e-9  # nodes of an interface within this, relative to their extent, are on one line


FREE = 1e-3  # force of a rigid motion, relative to the sum of the sizes of its parts, that is rounding in a file
ISOTROPIC = 1e-3  # relative difference of the masses along x, y and z
NOTHING = 1e-9  # mass relative to the sum of the diagonal
MOTION_NAMES = "shift along x", "shift along y", "shift along z", "turn about x", "turn about y", "turn about z"


class ReducedBody(NamedTuple):
    """Modes whose largest displacement is 1 m, or whose largest rotation is 1 rad where nodes do not move; places at
    which something can be attached; knots of a drawing."""

    mass: Array  # ()
    moment: Array  # (3,)
    inertia: Array  # (3, 3)
    stiffness: Array  # (m, m)
    rotational: Array  # (m,) whether a mode is measured by its rotation
    position: Array  # (k, 3)
    linear: Array  # (k, m, 3)
    angular: Array  # (k, m, 3)
    curve: Array  # (k, m, m, 3)
    knot_position: Array  # the fields of Knots
    knot_linear: Array
    knot_angular: Array
    fraction: Array  # the fields of ModalMass
    points: Array
    point_linear: Array
    point_curve: Array
    rest_mass: Array
    rest_spin: Array
    rest_inertia: Array


@dataclass(frozen=True)
class FiniteElements:
    """Finite elements of a link, from files. mass, stiffness: `.mtx` (Matrix Market) or `.npz` (scipy.sparse.save_npz)
    with the matrices (n, n) in SI units; nodes: a `.csv` file with the columns node, x, y, z [m]. n is 3 or 6 times the
    number of nodes; the dofs follow the order of that file, for each node x, y, z and where there are 6 the rotations
    about them.

    root: numbers of the nodes that are held; interfaces: by name, numbers of nodes that move as one rigid body;
    modes: number that the link has; vibrations: of the body with its interfaces held, from which they are made;
    held: interfaces that a closed loop holds: the modes have all their motions; stiffening: by loads, none without;
    total_mass [kg], total_inertia (3, 3) about the origin: compared with the matrix.
    """

    mass: Path
    stiffness: Path
    nodes: Path
    root: tuple[int, ...]
    interfaces: Mapping[str, Sequence[int]] = field(default_factory=dict)
    modes: int = 6
    vibrations: int | None = None  # default: twice as many as modes, at least 10 more
    damping_ratio: float = 0.0
    held: tuple[str, ...] = ()
    stiffening: GeometricStiffness = NONE
    total_mass: float | None = None
    total_inertia: Array | None = None

    def link(self) -> ElasticLink:
        """The reduced body, from the cache folder if it was reduced before. Raises InputError for files that cannot be
        read or do not fit together."""
        self._check_held()
        for name in self.stiffening.force:
            if name not in self.interfaces:
                raise InputError(f"stiffening.force: there is no interface '{name}'; name it in interfaces")
        reduced = _from_cache(self._key) or self._reduced()
        body = float(reduced.mass), reduced.moment, reduced.inertia
        self._check(lambda: check_mass(body, self.total_mass, self.total_inertia, "total_"), self.mass)
        modes = tuple((f"mode_{k + 1}", "rad" if turns else "m") for k, turns in enumerate(reduced.rotational))
        nodes = Nodes(*reduced[5:7], reduced.curve, reduced.angular, "an interface")
        pieces = partial(net_of, Knots(*reduced[9:12]))
        modal, ratio = ModalMass(*reduced[12:]), self.damping_ratio
        return modal_link(body, modes, modal, reduced.stiffness, ratio, nodes, REMEDIES, pieces)

    @cached_property
    def _key(self) -> str:
        """Name of the file in the cache folder."""
        options = repr((VERSION, self.root, sorted((k, tuple(v)) for k, v in self.interfaces.items()), self.modes))
        options += repr((self.vibrations, sorted(self.held), [load for load, _ in self.stiffening.files]))
        digest = hashlib.sha256(options.encode())
        for path in (self.mass, self.stiffness, self.nodes, *(path for _, path in self.stiffening.files)):
            digest.update(hashlib.sha256(path.suffix.encode() + read_content(path)).digest())
        return f"{digest.hexdigest()}.modes"

    def _reduced(self) -> ReducedBody:
        numbers, position = read_nodes(self.nodes)
        mass, stiffness = read_matrix(self.mass), read_matrix(self.stiffness)
        for path, matrix in ((self.mass, mass), (self.stiffness, stiffness)):
            if matrix.shape[0] not in (3 * len(position), 6 * len(position)) or matrix.shape[0] != mass.shape[0]:
                what = f"the matrix has {matrix.shape[0]} rows; {len(position)} nodes of 3 or 6 dofs need"
                raise InputError(f"{what} {3 * len(position)} or {6 * len(position)}, in both matrices", str(path))
            self._check(lambda p=path, m=matrix: check_symmetric("mass" if p == self.mass else "stiffness", m), path)
        diagonal = mass.diagonal()
        for k in np.flatnonzero(diagonal < 0.0):
            raise InputError(f"the mass {diagonal[k]:g} of row {k + 1} is negative; correct it", str(self.mass))
        per_node = mass.shape[0] // len(position)
        root = self._indices("root", self.root, numbers)
        sets = {name: self._indices(f"interface '{name}'", given, numbers) for name, given in self.interfaces.items()}
        self._check_sets(
            {"root": root, **{f"interface '{k}'": v for k, v in sets.items()}}, position, per_node, numbers
        )
        self._check(lambda: check_isotropic(mass, position), self.mass)
        self._check(lambda: check_free(stiffness, position, list(numbers)), self.stiffness)
        shapes, squares = reduce(mass, stiffness, position, root, sets, self.modes, self.vibrations, self.held)
        shapes, scales, rotational = _measured(shapes, position, per_node)
        curves = self._curves(shapes)
        body, stiff = NodalMass(mass, position), np.diag(squares / scales**2)
        reduced = _body_of(body, shapes, stiff, rotational, {ROOT: root} | sets, curves)
        content = io.BytesIO()
        np.savez(content, **reduced._asdict())
        store(self._key, content.getvalue())
        return reduced

    def _curves(self, shapes: Array) -> ModalLoads:
        """The geometric stiffness of modes (n, m) under each load."""

        def of_modes(path: Path) -> Array:
            matrix = read_matrix(path)
            if matrix.shape[0] != len(shapes):
                what = f"the matrix has {matrix.shape[0]} rows; mass and stiffness have {len(shapes)}"
                raise InputError(f"{what}, and it must have as many", str(path))
            self._check(lambda: check_symmetric("geometric stiffness", matrix), path)
            return shapes.T @ (matrix @ shapes)

        return self.stiffening.by_load(of_modes)

    def _indices(self, what: str, given: Sequence[int], numbers: dict[int, int]) -> list[int]:
        if not given:
            raise InputError(f"{what} has no nodes; name them by their numbers in {self.nodes.name}")
        missing = [number for number in given if number not in numbers]
        if missing:
            few = ", ".join(map(str, missing[:HANDFUL]))
            raise InputError(f"{what}: node {few} does not exist; nodes are in the column node", str(self.nodes))
        return [numbers[number] for number in dict.fromkeys(given)]

    def _check_sets(self, sets: dict[str, list[int]], position: Array, per_node: int, numbers: dict[int, int]) -> None:
        owner: dict[int, str] = {}
        names = {index: number for number, index in numbers.items()}
        for what, nodes in sets.items():
            for k in nodes:
                if owner.setdefault(k, what) != what:
                    raise InputError(f"node {names[k]} is in {owner[k]} and in {what}; keep it in one of both")
            arms = position[nodes] - position[nodes].mean(axis=0)
            sizes = np.linalg.svd(arms, compute_uv=False)
            if per_node == 3 and (len(sizes) < 2 or sizes[1] <= FLAT * sizes[0]):
                raise InputError(f"the nodes of {what} are on one line, about which it would turn; add one beside it")

    def _check_held(self) -> None:
        for name in self.held:
            if name not in self.interfaces:
                raise InputError(f"held: there is no interface '{name}'; name it in interfaces")
        directions = MOTIONS * len(set(self.held))
        if self.modes <= directions > 0:
            what = f"{self.modes} modes are too few for {directions} held motions of interfaces"
            raise InputError(f"{what}, which leave it none to bend; give {directions + 1} modes or more")

    @staticmethod
    def _check(check: Any, path: Path) -> None:
        try:
            check()
        except InputError as error:
            raise InputError(error.what, str(path)) from None


def _measured(shapes: Array, position: Array, per_node: int) -> tuple[Array, Array, Array]:
    """(modes of size 1 (n, m), what they were divided by (m,), whether they are measured by their rotation (m,))"""
    nodal = shapes.reshape(len(position), per_node, -1)
    moved, turned = (np.abs(nodal[:, part]).max(axis=(0, 1), initial=0.0) for part in (slice(3), slice(3, None)))
    extent = np.ptp(position, axis=0).max()
    rotational = moved < 1e-6 * extent * turned
    largest = np.where(rotational, turned, moved)
    return shapes / largest, largest, rotational


def _body_of(
    mass: NodalMass,
    shapes: Array,
    stiffness: Array,
    rotational: Array,
    sets: Mapping[str, list[int]],
    stiffening: ModalLoads,
) -> ReducedBody:
    """The body, its places: centers and nodes of the root and the interfaces, and then nodes that turn; its knots."""
    per_node, m = len(shapes) // len(mass.position), shapes.shape[1]
    nodal = shapes.reshape(len(mass.position), per_node, -1)
    moved, turned = (nodal[:, part].swapaxes(1, 2) for part in (slice(3), slice(3, None)))
    places, linear, angular, curve = [], [], [], []
    for name, nodes in sets.items():
        center = mass.position[nodes].mean(axis=0)
        rigid = np.linalg.pinv(rigid_motions(mass.position[nodes] - center, per_node))
        motion = (rigid @ nodal[nodes].reshape(len(nodes) * per_node, -1)).T  # (m, 6)
        for place in (center, *mass.position[nodes]):  # they move as one rigid body
            places.append(place)
            linear.append(motion[:, :3] + np.cross(motion[:, 3:], place - center))
            angular.append(motion[:, 3:])
            curve.append(at_node(stiffening.force.get(name, {}), m))
    if per_node == 6:
        places.extend(mass.position)
        linear.extend(moved)
        angular.extend(turned)
        curve.extend(np.zeros((len(nodal), m, m, 3)))
    knots = knots_of(mass.position, moved, turned if per_node == 6 else np.zeros_like(moved))
    modal = with_moments(mass.modal_mass(shapes), stiffening.acceleration, stiffening.spin)
    total, moment, inertia = mass.rigid_body
    attachable = np.array(places), np.array(linear), np.array(angular), np.array(curve)
    return ReducedBody(np.array(total), moment, inertia, stiffness, rotational, *attachable, *knots, *modal)


def _from_cache(name: str) -> ReducedBody | None:
    content = cached(name)
    if content is None:
        return None
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        return ReducedBody(**file)


def read_matrix(path: Path) -> Any:
    """A sparse square matrix, csr. Raises InputError for a file that cannot be read, or not of finite numbers."""
    read_content(path)
    readers = {".mtx": mmread, ".npz": sparse.load_npz}
    if path.suffix not in readers:
        raise InputError(f"matrices '{path.suffix}' are not read; write an .mtx or .npz file", str(path))
    try:
        found: Any = readers[path.suffix](path)
        if path.suffix == ".npz" and found.format in ("csr", "csc", "bsr"):
            found.check_format()  # indices beyond its shape would be read from other memory
        matrix: Any = sparse.csr_matrix(found)
    except MemoryError:
        raise InputError("the matrix does not fit into memory; write a smaller mesh", str(path)) from None
    except (OSError, ValueError, KeyError, EOFError, OverflowError, zipfile.BadZipFile, TypeError):
        kind = {".mtx": "Matrix Market file", ".npz": "archive of scipy.sparse.save_npz"}[path.suffix]
        raise InputError(f"the file is no {kind}; write it again", str(path)) from None
    if matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"the matrix has the shape {matrix.shape}; it must be square", str(path))
    if matrix.dtype.kind not in "iuf" or not np.isfinite(matrix.data).all():
        raise InputError("the matrix has numbers that are not real and finite; correct them", str(path))
    return matrix.astype(float)


def read_nodes(path: Path) -> tuple[dict[int, int], Array]:
    """(number of a node -> its index, positions (p, 3) [m]) of a table with the columns node, x, y and z, in m or the
    unit behind their names. Raises InputError for what is wrong in the file."""
    table = open_table(path)
    columns = [table.index(name) for name in ("node", "x", "y", "z")]
    rows = table.numbers(columns)
    factors = [UNITS[table.units.get(table.names[k], "m")] for k in columns[1:]]
    if wrong := [table.names[k] for k, (dimension, _) in zip(columns[1:], factors, strict=True) if dimension != "m"]:
        raise InputError(f"column '{wrong[0]}' is no length; give coordinates in m or mm", table.place(table.header))
    numbers: dict[int, int] = {}
    for row, number in enumerate(rows.values[:, 0]):
        place = table.place(table.line_of(rows, row))
        if number != round(number):
            raise InputError(f"{number:g} is no number of a node; correct it", place)
        if int(number) in numbers:
            raise InputError(f"node {number:.0f} is there twice; take one out", place)
        numbers[int(number)] = row
    return numbers, rows.values[:, 1:] * [factor for _, factor in factors]


def check_free(stiffness: Any, position: Array, numbers: list[int]) -> None:
    """Raises InputError for a stiffness (n, n), sparse, resisting a rigid motion of nodes (p, 3) of these numbers."""
    per_node = stiffness.shape[0] // len(position)
    rigid = rigid_motions(position - position.mean(axis=0), per_node)
    forces, sizes = np.abs(stiffness @ rigid), abs(stiffness) @ np.abs(rigid)
    relative = forces / np.maximum(sizes, np.finfo(float).tiny)
    row, motion = np.unravel_index(relative.argmax(), relative.shape)
    if relative[row, motion] > FREE:
        where = f"of the whole body, at node {numbers[row // per_node]}"
        what = f"the stiffness matrix resists a {MOTION_NAMES[motion]} {where}"
        fix = "export it with nothing held, and the nodes in its order, in m, in the axes of its dofs"
        raise InputError(f"{what}; {fix}")


def check_isotropic(mass: Any, position: Array) -> None:
    """Raises InputError for a mass matrix (n, n), sparse, without mass, or with another one in each direction."""
    per_node = mass.shape[0] // len(position)
    shifts = rigid_motions(position, per_node)[:, :3]
    masses = np.diag(shifts.T @ (mass @ shifts))
    if masses.min() <= NOTHING * mass.diagonal().sum():
        raise InputError("the mass matrix has no mass; is it the stiffness matrix? exchange the files")
    if np.ptp(masses) > ISOTROPIC * masses.mean():
        along = ", ".join(f"{m:.4g} kg along {axis}" for m, axis in zip(masses, "xyz", strict=True))
        raise InputError(f"the mass matrix has {along}; export it with nothing held, and the dofs node after node")
