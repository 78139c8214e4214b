"""The structure of a mechanism as a directed graph: bodies are vertices, joints are edges (Wittenburg).

Numbering is regular: body 0 is the root (the ground or the moving base), every other body has a larger
number than its parent, and every subtree has consecutive numbers. Joint a of the tree has the child a; the n* cut
joints of the loops follow as n + 1 … n + n*. Fixed joints are edges like all others.

Signs: joint a leaves its parent i⁺(a) and enters its child i⁻(a). S_ia = +1 where a leaves body i, −1 where it
enters it. T_ai = ±1 where a lies on the path between body 0 and body i, +1 if it points to body 0; joints of the
tree point away from it, so T_ai = −1. With these T S = S T = E, and Tᵀ S₀ᵀ = −1: every path leaves body 0 once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from cosim.mechanics.multibody.description.topology import depth_first
from cosim.mechanics.multibody.joints import entry_of, kind_of
from cosim.mechanics.multibody.mechanism import Joint, Mechanism


class Edge(NamedTuple):
    """A joint as a directed edge between two bodies."""

    number: int  # a, from 1
    joint: Joint
    start: int  # i⁺(a), the body that it leaves
    end: int  # i⁻(a), the body that it enters


class FundamentalLoop(NamedTuple):
    """A closed path along the tree and one cut joint, in the direction of that joint.

    It starts and ends at its body nearest to body 0: edge `edges[k]` leads from `bodies[k]` to the next one (from
    the last back to the first), along its own direction where `signs[k]` is +1, against it where −1.
    """

    cut: Edge
    bodies: tuple[int, ...]
    edges: tuple[Edge, ...]
    signs: tuple[int, ...]


@dataclass(frozen=True)
class Structure:
    """The graph; n = `size` is the number of bodies without body 0, and of joints of the tree. Matrices hold integers;
    rows and columns of joints and bodies 1 … n are in this order."""

    bodies: tuple[str, ...]  # names of bodies 0 … n
    edges: tuple[Edge, ...]  # in the order of their numbers

    @property
    def size(self) -> int:
        return len(self.bodies) - 1

    @property
    def tree(self) -> tuple[Edge, ...]:
        return self.edges[: self.size]

    @property
    def cuts(self) -> tuple[Edge, ...]:
        return self.edges[self.size :]

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """Number of joints between body 0 and each of the bodies 0 … n."""
        depths = [0]
        for edge in self.tree:
            depths.append(depths[edge.start] + 1)
        return tuple(depths)

    @cached_property
    def incidence(self) -> np.ndarray:
        """All of S (n + 1, n + n*): S₀ above S, S₀* above S* to the right of them."""
        matrix = np.zeros((len(self.bodies), len(self.edges)), int)
        for column, edge in enumerate(self.edges):
            matrix[edge.start, column] += 1
            matrix[edge.end, column] -= 1
        return matrix

    @property
    def S0(self) -> np.ndarray:
        """Row of body 0 (n,)."""
        return self.incidence[0, : self.size]

    @property
    def S(self) -> np.ndarray:
        """Bodies × joints of the tree (n, n)."""
        return self.incidence[1:, : self.size]

    @property
    def S_cut(self) -> np.ndarray:
        """S*, bodies × cut joints (n, n*)."""
        return self.incidence[1:, self.size :]

    @cached_property
    def T(self) -> np.ndarray:
        """Path matrix, joints of the tree × bodies (n, n): the path of a body is its parent's and its own joint."""
        paths = np.zeros((self.size, len(self.bodies)), int)
        for row, edge in enumerate(self.tree):
            paths[:, edge.end] = paths[:, edge.start]
            paths[row, edge.end] = -1
        return paths[:, 1:]

    @cached_property
    def loops(self) -> tuple[FundamentalLoop, ...]:
        """One per cut joint, independent of each other; their number is edges − bodies, without body 0."""
        return tuple(self._loop(cut) for cut in self.cuts)

    def _loop(self, cut: Edge) -> FundamentalLoop:
        down: list[Edge] = []  # from the meeting body to the start of the cut joint, last edge first
        up: list[Edge] = []  # from the end of the cut joint to the meeting body
        start, end = cut.start, cut.end
        while start != end:  # the larger number cannot be above the other: numbering is regular
            if start > end:
                down.append(self.edges[start - 1])
                start = down[-1].start
            else:
                up.append(self.edges[end - 1])
                end = up[-1].start
        edges = (*reversed(down), cut, *up)
        bodies = (start, *(edge.end for edge in reversed(down)), *(edge.end for edge in up))
        return FundamentalLoop(cut, bodies, edges, (1,) * (len(down) + 1) + (-1,) * len(up))

    @property
    def loop_matrix(self) -> np.ndarray:
        """Edges × loops (n + n*, n*): the signs of the paths. It is −T S* above E, and incidence · loop_matrix = 0."""
        matrix = np.zeros((len(self.edges), len(self.cuts)), int)
        for column, loop in enumerate(self.loops):
            for edge, sign in zip(loop.edges, loop.signs, strict=True):
                matrix[edge.number - 1, column] = sign
        return matrix


def structure_of(mechanism: Mechanism) -> Structure:
    """The graph of a mechanism that `topology` has checked: one tree, and loops between its links."""
    tree = depth_first(mechanism)
    bodies = mechanism.root, *(joint.child for joint in tree)
    number = {name: k for k, name in enumerate(bodies)}
    joints = *tree, *(loop.joint for loop in mechanism.loops)
    edges = (Edge(a, joint, number[joint.parent], number[joint.child]) for a, joint in enumerate(joints, 1))
    return Structure(bodies, tuple(edges))


# --- mobility ---

# rad: below it axes count as parallel, see `alignment`; three of them may each be 1e-3 off, as in drawings
PARALLEL = 3e-3


class Mobility(NamedTuple):
    """The mobility of a mechanism by the criterion of Grübler and Kutzbach. An estimate: it assumes that all closure
    rows are independent and that the configuration is not singular."""

    tree: int  # freedoms of the joints of the tree
    closure_rows: tuple[
        int, ...
    ]  # rows of each loop: 6 (3 where it moves in a plane) less the freedoms of its cut joint
    constraints: int  # rows of the constraints

    @property
    def estimate(self) -> int:
        return self.tree - sum(self.closure_rows) - self.constraints


def freedoms(joint: Joint) -> int:
    """Degrees of freedom of a joint by itself; a mimic has none."""
    return 0 if joint.mimic is not None else kind_of(joint).nv


def mobility(mechanism: Mechanism, structure: Structure) -> Mobility:
    turns = _rotations(mechanism, structure)
    closure_rows = ((3 if _is_planar(loop, turns) else 6) - freedoms(loop.cut.joint) for loop in structure.loops)
    rows = sum(len(constraint.law.rows) for constraint in mechanism.constraints)
    return Mobility(sum(freedoms(edge.joint) for edge in structure.tree), tuple(closure_rows), rows)


def _rotations(mechanism: Mechanism, structure: Structure) -> list[np.ndarray]:
    """The axes (3, 3) of the joint's frame of every edge, along the axes of body 0, at coordinates 0."""
    bodies = [np.eye(3)]
    for edge in structure.tree:
        bodies.append(bodies[edge.start] @ edge.joint.pose.rotation)
    return bodies[1:] + [bodies[cut.start] @ cut.joint.pose.rotation for cut in structure.cuts]


def _is_planar(loop: FundamentalLoop, rotations: list[np.ndarray]) -> bool:
    """Whether all joints rotate about one direction and translate orthogonally to it, so that the loop stays planar."""
    moving = [edge for edge in loop.edges if edge.joint.kind != "fixed"]
    does = {entry_of(edge.joint).in_plane for edge in moving}
    if "" in does or "turns" not in does:
        return False
    rotation_axes, translation_axes = (
        [rotations[edge.number - 1] @ edge.joint.axis for edge in moving if entry_of(edge.joint).in_plane == what]
        for what in ("turns", "slides")
    )
    normal = rotation_axes[0]
    parallel = all(np.linalg.norm(np.cross(normal, axis)) < PARALLEL for axis in rotation_axes)
    return parallel and all(abs(normal @ axis) < PARALLEL for axis in translation_axes)
