"""Constraints, springs and force laws between the bodies of a tree: constraint rows and forces.

A constraint law is a function of frames in ground axes and of coordinates. Its rows for the sweeps follow by
exact differentiation: ḟ is linear in the velocities of bodies and joints with the coefficients G, and γ is the part
of f̈ that depends on velocities alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import combinations_with_replacement, permutations
from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.compile.trace import column
from cosim.core.errors import SourceLocation
from cosim.core.types import Array, Numeric
from cosim.core.units import UNITS, si_exponents
from cosim.mechanics.multibody.constrained_dynamics import GROUND, ConstraintRow
from cosim.mechanics.multibody.constraint_laws import FORCE, ConstraintLaw, ForceLaw, FrameState
from cosim.mechanics.multibody.differentiate import Derived, along
from cosim.mechanics.multibody.elastic.link import ElasticLink
from cosim.mechanics.multibody.joints import JointKind
from cosim.mechanics.multibody.kinematics import GROUND_PLACEMENT, Placement
from cosim.mechanics.multibody.mechanism import AppliedForce, Constraint, Pose, Spring
from cosim.mechanics.multibody.spatial import SpatialVector, symmetric_matrix
from cosim.mechanics.multibody.tree import Tree, exact


class ConstraintState(NamedTuple):
    """The rows of a constraint law in one state."""

    residual: Numeric  # (holonomic rows,) f
    rate: Numeric  # (rows,) ḟ, and a₀ + a·q̇ of the non-holonomic ones
    rows: list[ConstraintRow]  # with γ


class ConstraintWrenches(NamedTuple):
    """What a constraint does to the mechanism in one state."""

    frames: list[FrameState]
    wrenches: list[SpatialVector]  # on each frame, force [N] and moment about its origin [N m], in ground axes
    efforts: Numeric  # on the dofs of its joints, along their positive velocities

    @property
    def axes(self) -> Numeric:
        """(3, 3) of the parent: its first frame, the ground where it has one frame."""
        return self.frames[0].rotation if len(self.frames) > 1 else np.eye(3)

    def along_parent(self) -> list[SpatialVector]:
        """The wrenches along the axes of the parent."""
        axes = self.axes
        return [SpatialVector(axes.T @ w.linear, axes.T @ w.angular) for w in self.wrenches]


@dataclass(frozen=True, eq=False)
class _Attached:
    """What a law applies to: frames of bodies and coordinates of joints of a tree."""

    name: str
    frames: tuple[tuple[int, Pose], ...]  # body (or GROUND), frame in the body
    kinds: tuple[JointKind, ...]  # of the joints whose coordinates it depends on
    starts: tuple[tuple[int, int], ...]  # index of the first coordinate and of the first dof of each
    place: SourceLocation

    @cached_property
    def bodies(self) -> list[int]:
        """The moving bodies of its frames, each once."""
        return list(dict.fromkeys(body for body, _ in self.frames if body != GROUND))

    @cached_property
    def coordinates(self) -> list[int]:
        return [k for kind, (q, _) in zip(self.kinds, self.starts, strict=True) for k in range(q, q + kind.nq)]

    @cached_property
    def dofs(self) -> list[int]:
        return [dof for kind, (_, v) in zip(self.kinds, self.starts, strict=True) for dof in range(v, v + kind.nv)]

    def _frames(self, placed: Mapping[int, Placement] | Sequence[Placement]) -> list[FrameState]:
        return [_frame(GROUND_PLACEMENT if body == GROUND else placed[body], pose) for body, pose in self.frames]

    def _chosen(self, q: Numeric, v: Numeric) -> tuple[Numeric, Numeric]:
        """The coordinates and velocities of its joints, out of all joints of the tree."""
        return (q[self.coordinates], v[self.dofs]) if self.kinds else (np.zeros(0), np.zeros(0))


@dataclass(frozen=True, eq=False)
class BodyConstraint(_Attached):
    """A constraint law on the bodies of a tree."""

    law: ConstraintLaw
    links: tuple[str, ...] = ()  # of its frames
    weld_of: str = ""  # see `Constraint`

    @cached_property
    def holonomic(self) -> int:
        """Number of rows with a residual; they come first."""
        return sum(not row.residual_unit.endswith("/s") for row in self.law.rows)

    @property
    def is_scaled(self) -> bool:
        """Whether its author has chosen how its residual is scaled, so that λ depends on it."""
        return not (self.law.named_rows or self.law.components)

    @cached_property
    def _derived(self) -> Derived:
        shapes = [(3, 3), (3,), (3,), (3,)] * len(self.bodies)
        shapes += [(len(self.coordinates),), (len(self.dofs),), ()]
        return Derived("coupling", shapes, self._make)

    def _make(self, columns: list[Numeric], arrays: list[Numeric]) -> list[tuple[Numeric, tuple[int, ...]]]:
        import casadi

        n = len(self.bodies)
        placed = {body: Placement(*arrays[4 * k : 4 * k + 4]) for k, body in enumerate(self.bodies)}
        residual, rate, velocities, changes = self._traced(columns, arrays, n, self._frames(placed))
        directions = casadi.jacobian(rate, velocities)
        m, size = len(self.law.rows), 6 * n + len(self.dofs)
        remains = along(rate, changes)
        return [(residual, (self.holonomic,)), (rate, (m,)), (directions, (m, size)), (remains, (m,))]

    def _traced(
        self, columns: list[Numeric], arrays: list[Numeric], n: int, frames: Sequence[FrameState]
    ) -> tuple[Numeric, Numeric, Numeric, list[tuple[Numeric, Numeric]]]:
        """(residual, rate of all rows, the velocities, (x, ẋ) of all that moves) as columns; columns, arrays: rotation,
        position, angular and linear velocity of n bodies or frames, then q, v and t."""
        import casadi

        law, (q, v, t) = self.law, arrays[4 * n : 4 * n + 3]
        changes = [(columns[4 * n], column(self._rate(q, v))), (columns[4 * n + 2], casadi.DM(1.0))]
        for k in range(n):
            rotation, _, angular, _ = arrays[4 * k : 4 * k + 4]
            changes.append((columns[4 * k], column(ops.skew(angular) @ rotation)))
            changes.append((columns[4 * k + 1], columns[4 * k + 3]))
        residual = rate = casadi.SX(0, 1)
        if law.residual is not None:
            residual = column(ops.array(law.residual(frames, q, t)))
            rate = along(residual, changes)
        if law.rate is not None:
            rate = casadi.vertcat(rate, column(ops.array(law.rate(frames, q, v, t))))
        velocities = [columns[4 * k + i] for k in range(n) for i in (3, 2)] + [columns[4 * n + 1]]
        return residual, rate, casadi.vertcat(*velocities), changes

    @cached_property
    def _wrenches(self) -> Derived:
        shapes = [(3, 3), (3,), (3,), (3,)] * len(self.frames)
        shapes += [(len(self.coordinates),), (len(self.dofs),), (), (len(self.law.rows),)]
        return Derived("wrenches", shapes, self._make_wrenches)

    def _make_wrenches(self, columns: list[Numeric], arrays: list[Numeric]) -> list[tuple[Numeric, tuple[int, ...]]]:
        """Gᵀ λ: the derivative of the power λ·ḟ by the velocities of the frames and of the dofs."""
        import casadi

        n = len(self.frames)
        frames = [FrameState(*arrays[4 * k : 4 * k + 4]) for k in range(n)]
        _, rate, velocities, _ = self._traced(columns, arrays, n, frames)
        given = casadi.jacobian(casadi.dot(columns[-1], rate), velocities).T
        return [(given[: 6 * n], (6 * n,)), (given[6 * n :], (len(self.dofs),))]

    @cached_property
    def _sizes(self) -> Derived:
        shapes = [(3, 3), (3,), (3,), (3,)] * len(self.frames)
        shapes += [(len(self.coordinates),), (len(self.dofs),), ()]
        return Derived("sizes", shapes, self._make_sizes)

    def _make_sizes(self, columns: list[Numeric], arrays: list[Numeric]) -> list[tuple[Numeric, tuple[int, ...]]]:
        """Of each row the largest force (moment for a row in N*m) on a frame or dof per λ."""
        import casadi

        n = len(self.frames)
        frames = [FrameState(*arrays[4 * k : 4 * k + 4]) for k in range(n)]
        _, rate, velocities, _ = self._traced(columns, arrays, n, frames)
        directions, sizes = casadi.jacobian(rate, velocities), []
        dof_units = [unit for kind in self.kinds for _, unit in kind.dofs]
        for k, row in enumerate(self.law.rows):
            found = {}
            for unit, first in ("m", 0), ("rad", 3):
                parts = [directions[k, 6 * i + first : 6 * i + first + 3] for i in range(n)]
                parts += [directions[k, 6 * n + i] for i, own in enumerate(dof_units) if own == unit]
                found[unit] = [casadi.norm_2(casadi.densify(part)) for part in parts if part.nnz()]
            is_force = si_exponents(row.unit) == si_exponents(FORCE[0])
            own, others = ("m", "rad") if is_force else ("rad", "m")
            other = 1.0 / row.length if is_force else row.length
            exerted = found[own] or [other * size for size in found[others]] or [casadi.SX(1.0)]
            sizes.append(reduce(casadi.fmax, exerted) / UNITS[row.unit][1])
        return [(casadi.vertcat(*sizes), (len(sizes),))]

    def sizes(self, placed: Sequence[Placement], q: Numeric, v: Numeric, t: Numeric) -> Numeric:
        """Of each row [1, where the residual is a length or an angle] the largest force on a frame or dof per λ, of a
        row in N*m the largest moment; 1 where λ is the quantity of its name. Where a row exerts nothing in its unit,
        moments are forces times its `length`. λ times this does not depend on how the residual is scaled."""
        if not self.is_scaled:
            return np.ones(len(self.law.rows))
        given = [x for frame in self._frames(placed) for x in frame]
        return self._sizes(*given, *self._chosen(q, v), t)[0]

    def wrenches(
        self, placed: Sequence[Placement], q: Numeric, v: Numeric, multipliers: Numeric, t: Numeric
    ) -> ConstraintWrenches:
        """What the multipliers λ of its rows do; q, v of all joints of the tree."""
        frames = self._frames(placed)
        given = [x for frame in frames for x in frame]
        wrenches, efforts = self._wrenches(*given, *self._chosen(q, v), t, multipliers)
        on_frames = [SpatialVector(w[:3], w[3:]) for w in wrenches.reshape(len(frames), 6)]
        return ConstraintWrenches(frames, on_frames, efforts)

    def branch(self, placed: Sequence[Placement]) -> Numeric:
        """A number that is above 0 where it is closed on the intended branch."""
        return 1.0 if self.law.branch is None else self.law.branch(self._frames(placed))

    def _rate(self, q: Numeric, v: Numeric) -> Numeric:
        parts, nq, nv = [], 0, 0
        for kind in self.kinds:
            parts.append(kind.space.rate(q[nq : nq + kind.nq], v[nv : nv + kind.nv]))
            nq, nv = nq + kind.nq, nv + kind.nv
        return ops.concatenate(parts)

    def evaluate(
        self, placed: Sequence[Placement], q: Numeric, v: Numeric, gravity: Numeric, t: Numeric
    ) -> ConstraintState:
        """The rows in a state; q, v of all joints of the tree. Gravity acts through the acceleration −g of the ground,
        which γ compensates."""
        given = [x for body in self.bodies for x in placed[body]]
        residual, rate, directions, remains = self._derived(*given, *self._chosen(q, v), t)
        rows = []
        for k in range(len(self.law.rows)):
            wrenches, bias = {}, remains[k]
            for i, body in enumerate(self.bodies):
                force, moment = directions[k, 6 * i : 6 * i + 3], directions[k, 6 * i + 3 : 6 * i + 6]
                to_body = placed[body].rotation.T
                wrenches[body] = SpatialVector(to_body @ force, to_body @ moment)
                bias = bias + force @ gravity
            first = 6 * len(self.bodies)
            efforts = {dof: directions[k, first + i] for i, dof in enumerate(self.dofs)}
            rows.append(ConstraintRow(wrenches, {dof: g for dof, g in efforts.items() if not ops.is_zero(g)}, bias))
        return ConstraintState(residual, rate, rows)


def _frame(body: Placement, pose: Pose) -> FrameState:
    reach = body.rotation @ pose.position
    linear = body.linear + ops.cross(body.angular, reach)
    return FrameState(body.rotation @ pose.rotation, body.position + reach, body.angular, linear)


@dataclass(frozen=True, eq=False)
class BodyForce(_Attached):
    """A force law on the bodies of a tree."""

    law: ForceLaw

    def forces(
        self, placed: Sequence[Placement], q: Numeric, v: Numeric, t: Numeric
    ) -> tuple[list[tuple[int, SpatialVector]], Numeric, Numeric]:
        """(force and moment on its bodies, at their origins along their axes; efforts on `dofs`; power [W] on all).

        q, v: of all joints of the tree."""
        frames, (q, v), power = self._frames(placed), self._chosen(q, v), 0.0
        found: list[tuple[int, SpatialVector]] = []
        if self.law.wrenches is not None:
            wrenches = ops.array(self.law.wrenches(frames, q, v, t))
            for (body, _), frame, wrench in zip(self.frames, frames, wrenches, strict=True):
                force, moment = wrench[:3], wrench[3:] if len(wrench) == 6 else np.zeros(3)
                power = power + force @ frame.linear + moment @ frame.angular
                if body != GROUND:
                    here = placed[body]
                    moment = moment + ops.cross(frame.position - here.position, force)
                    found.append((body, SpatialVector(here.rotation.T @ force, here.rotation.T @ moment)))
        efforts: Numeric = np.zeros(len(self.dofs))
        if self.law.efforts is not None:
            efforts = ops.array(self.law.efforts(frames, q, v, t))
            power = power + efforts @ v
        return found, efforts, power


class SpringDamper(NamedTuple):
    """A spring with a damper between two points of bodies."""

    name: str
    ends: tuple[tuple[int, Numeric], tuple[int, Numeric]]  # body (or GROUND), point in the body
    stiffness: float
    damping: float
    length: float  # unloaded

    def state(self, placed: Sequence[Placement]) -> tuple[Numeric, Numeric, Numeric]:
        """(unit vector from the first end to the second, 0 where they coincide; distance; its rate)."""
        (first, v_first), (second, v_second) = (_point(placed, *end) for end in self.ends)
        separation = second - first
        distance = ops.sqrt(separation @ separation)
        direction = separation / ops.where(distance > 0.0, distance, 1.0)
        return direction, distance, direction @ (v_second - v_first)

    def tension(self, placed: Sequence[Placement]) -> Numeric:
        """The force that pulls its ends together [N]."""
        _, distance, rate = self.state(placed)
        return self.stiffness * (distance - self.length) + self.damping * rate

    def energy(self, placed: Sequence[Placement]) -> Numeric:
        """Energy stored in the spring [J]."""
        _, distance, _ = self.state(placed)
        return 0.5 * self.stiffness * (distance - self.length) * (distance - self.length)

    def loss(self, placed: Sequence[Placement]) -> Numeric:
        """Power dissipated by the damper [W]."""
        _, _, rate = self.state(placed)
        return self.damping * rate * rate

    def wrenches(self, placed: Sequence[Placement]) -> list[tuple[int, SpatialVector]]:
        """Force and moment on its bodies, at their origins along their axes."""
        direction, _, _ = self.state(placed)
        force = direction * self.tension(placed)
        found = []
        for (body, point), sign in zip(self.ends, (1.0, -1.0), strict=True):
            if body != GROUND:
                here = placed[body].rotation.T @ (force * sign)
                found.append((body, SpatialVector(here, ops.cross(point, here))))
        return found


def _point(placed: Sequence[Placement], body: int, point: Numeric) -> tuple[Numeric, Numeric]:
    """(position, velocity) of a point of a body."""
    if body == GROUND:
        return point, np.zeros(3)
    here = placed[body]
    reach = here.rotation @ point
    return here.position + reach, here.linear + ops.cross(here.angular, reach)


class ElasticForce(NamedTuple):
    """The elastic forces −(K + Σ s η η) η − N η̇ of a link; see `ElasticLink` and `_once`."""

    coordinates: list[int]  # of its modes, of all joints of the tree
    dofs: list[int]
    stiffness: Array  # K (m, m)
    damping: Array  # N (m, m)
    hardening: Array  # s (m, m, m, m)

    def efforts(self, q: Numeric, v: Numeric) -> Numeric:
        """On its dofs; q, v: of all joints of the tree."""
        eta = q[self.coordinates]
        return -self.damping @ v[self.dofs] - (self.stiffness + self._hardening(eta)) @ eta

    def energy(self, q: Numeric) -> Numeric:
        """Energy stored in the link [J]."""
        eta = q[self.coordinates]
        return 0.5 * (eta @ (self.stiffness + 0.5 * self._hardening(eta)) @ eta)

    def _hardening(self, eta: Numeric) -> Numeric:
        """Σ s_μκλν η_λ η_ν (m, m)"""

        def element(i: int, j: int) -> Numeric:
            used = np.argwhere(self.hardening[j, i])
            return ops.sum(self.hardening[j, i, x, y] * (eta[x] * eta[y]) for x, y in used)

        return symmetric_matrix(element, len(eta))

    def loss(self, v: Numeric) -> Numeric:
        """Power dissipated in the link [W]."""
        rate = v[self.dofs]
        return rate @ (self.damping @ rate)


def _once(h: Array) -> Array:
    """s with Σ s η η η = Σ h η η η, elements [i, j, …] of a symmetric matrix at i ≤ j. There are many; in this one a
    product of four coordinates has one place and the transposed one, which h has up to 24 times."""
    s = np.zeros_like(h)
    for a, b, c, d in combinations_with_replacement(range(len(h)), 4):
        share = 0.25 * len(set(permutations((a, b, c, d)))) * h[a, b, c, d]
        for i, j, x, y in ((a, c, b, d), (b, d, a, c)):
            s[i, j, x, y] += (2.0 if i == j else 1.0) * share
    return s


def elastic_forces(tree: Tree) -> tuple[ElasticForce, ...]:
    """Of the elastic links of a tree."""
    links = {link.name: link.elastic for link in tree.mechanism.links if isinstance(link.elastic, ElasticLink)}
    first = zip(_starts([k.nq for k in tree.kinds]), _starts([k.nv for k in tree.kinds]), strict=True)
    found = []
    for joint, kind, (q, v) in zip(tree.joints, tree.kinds, first, strict=True):
        if (link := links.get(joint.child)) is not None:
            places = list(range(q, q + kind.nq)), list(range(v, v + kind.nv))
            found.append(ElasticForce(*places, link.stiffness, link.damping, _once(link.hardening)))
    return tuple(found)


def body_constraints(tree: Tree, constraints: Sequence[Constraint]) -> tuple[BodyConstraint, ...]:
    """The constraints of a mechanism on the bodies of its tree."""
    return tuple(
        BodyConstraint(*_attached(tree, c), c.law, tuple(link for link, _ in c.frames), c.weld_of) for c in constraints
    )


def body_forces(tree: Tree, forces: Sequence[AppliedForce]) -> tuple[BodyForce, ...]:
    """The force laws of a mechanism on the bodies of its tree."""
    return tuple(BodyForce(*_attached(tree, force), force.law) for force in forces)


def _attached(
    tree: Tree, item: Constraint | AppliedForce
) -> tuple[str, tuple[tuple[int, Pose], ...], tuple[JointKind, ...], tuple[tuple[int, int], ...], SourceLocation]:
    """The fields of `_Attached`."""
    names = [joint.name for joint in tree.joints]
    starts = list(zip(_starts([k.nq for k in tree.kinds]), _starts([k.nv for k in tree.kinds]), strict=True))
    frames = tuple(on_body(tree, link, pose) for link, pose in item.frames)
    joints = [names.index(name) for name in item.joints]
    return item.name, frames, tuple(tree.kinds[k] for k in joints), tuple(starts[k] for k in joints), item.place


def spring_dampers(tree: Tree, springs: Sequence[Spring]) -> tuple[SpringDamper, ...]:
    """The springs of a mechanism on the bodies of its tree."""
    found = []
    for spring in springs:
        (a, at_a), (b, at_b) = (on_body(tree, link, Pose(np.eye(3), point)) for link, point in spring.ends)
        ends = (a, at_a.position), (b, at_b.position)
        found.append(SpringDamper(spring.name, ends, spring.stiffness, spring.damping, spring.length))
    return tuple(found)


def on_body(tree: Tree, link: str, pose: Pose) -> tuple[int, Pose]:
    """A frame of a link as a frame of the body that the link is part of."""
    body, place = tree.frames[link]
    return body, exact(place @ pose)


def _starts(sizes: Sequence[int]) -> list[int]:
    return [sum(sizes[:k]) for k in range(len(sizes))]
