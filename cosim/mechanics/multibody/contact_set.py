"""The contacts of a tree in one state: gaps and rates of their points, and rows for the sweeps.

Of a pair of bodies with many points the rows are the six unit wrenches along the axes of the ground, which are spread
to the points: what an impulse of one point does to another one follows from the inertia that the six meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.errors import SourceLocation
from cosim.core.types import Numeric
from cosim.mechanics.multibody.constrained_dynamics import GROUND, ConstraintRow
from cosim.mechanics.multibody.constraint_rows import on_body
from cosim.mechanics.multibody.contact import gaps
from cosim.mechanics.multibody.contact.cone import NORMAL
from cosim.mechanics.multibody.contact.gaps import Frame, PointOfContact
from cosim.mechanics.multibody.contact.near_contacts import NearContacts
from cosim.mechanics.multibody.contact.shapes import ContactLaw, ContactShape
from cosim.mechanics.multibody.kinematics import GROUND_PLACEMENT, Placement
from cosim.mechanics.multibody.mechanism import Contact, ContactBound, Pose
from cosim.mechanics.multibody.spatial import SpatialVector
from cosim.mechanics.multibody.tree import Tree

MOST_ALONE = 2  # points of a pair of bodies that have rows of their own


class BodyContact(NamedTuple):
    """Two shapes on bodies of a tree that may touch."""

    name: str
    bodies: tuple[int, int]  # or GROUND
    frames: tuple[Pose, Pose]  # in the bodies
    shapes: tuple[ContactShape, ContactShape]
    law: ContactLaw
    place: SourceLocation
    limits: tuple[ContactBound, ...] = ()
    virtual: bool = False

    @property
    def points(self) -> int:
        return gaps.points_of(*self.shapes)

    def placed(self, placed: Sequence[Placement]) -> list[Frame]:
        """The frames of both shapes in ground axes."""
        return [_frame(_of(placed, body), pose) for body, pose in zip(self.bodies, self.frames, strict=True)]


class SpreadRows(NamedTuple):
    """Rows of the sweeps, and `spread` (all rows of the points, rows): the rows of the points by these; of_points:
    which of them each point has."""

    rows: list[ConstraintRow]
    spread: Numeric
    of_points: list[list[int]]


def body_contacts(tree: Tree, contacts: Sequence[Contact]) -> ContactSet:
    """The contacts of a mechanism on the bodies of its tree."""
    found = []
    for contact in contacts:
        (a, at_a), (b, at_b) = (on_body(tree, link, pose) for link, pose in contact.ends)
        of_it = contact.shapes, contact.law, contact.place, contact.limits, contact.virtual
        found.append(BodyContact(contact.name, (a, b), (at_a, at_b), *of_it))
    return ContactSet(tuple(found))


@dataclass(frozen=True)
class ContactSet:
    """The contacts of a tree. k: the number of their points, in the order of contacts. Each point has the rows t1, t2
    and n; where a contact resists spinning a moment about n too, and where one resists rolling moments about t1 and t2.
    """

    members: tuple[BodyContact, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.members)

    @cached_property
    def of_points(self) -> list[BodyContact]:
        """(k,) the contact of each point."""
        return [contact for contact in self.members for _ in range(contact.points)]

    @cached_property
    def by_contact(self) -> list[tuple[BodyContact, range]]:
        """Each contact with the numbers of its points."""
        found, first = [], 0
        for contact in self.members:
            found.append((contact, range(first, first := first + contact.points)))
        return found

    @cached_property
    def rows_of_point(self) -> int:
        """The number of rows of every point, see `cone.DISKS`."""
        laws = [contact.law for contact in self.members]
        if any(not ops.is_zero(law.rolling) for law in laws):
            return 6
        return 4 if any(not ops.is_zero(law.torsional) for law in laws) else 3

    @property
    def size(self) -> int:
        """The number of rows of all points."""
        return self.rows_of_point * len(self.of_points)

    def at(self, j: int) -> slice:
        """The rows of point j."""
        return slice(self.rows_of_point * j, self.rows_of_point * (j + 1))

    def normals(self, values: Numeric) -> Numeric:
        """(k,) of the rows n, out of all rows."""
        return values[NORMAL :: self.rows_of_point]

    def _axes(self, point: PointOfContact) -> Numeric:
        """(rows, 3) the axis of every row of a point."""
        return ops.array([*point.axes, point.axes[NORMAL], *point.axes[:NORMAL]][: self.rows_of_point])

    @cached_property
    def _pairs(self) -> dict[tuple[int, int], list[int]]:
        """Pair of bodies -> its points."""
        found: dict[tuple[int, int], list[int]] = {}
        for j, contact in enumerate(self.of_points):
            found.setdefault(contact.bodies, []).append(j)
        return found

    def points(self, placed: Sequence[Placement], near: NearContacts | None = None) -> list[PointOfContact]:
        """(k,); near: those of the others are far away."""
        found = []
        for k, contact in enumerate(self.members):
            first, second = contact.shapes

            def of_frames(*parts: Numeric, first=first, second=second) -> list[PointOfContact]:
                return gaps.points(first, (parts[0], parts[1]), second, (parts[2], parts[3]))

            frames = [part for frame in contact.placed(placed) for part in frame]
            if near is None or near.flags[k] is None:
                found += of_frames(*frames)
            else:
                found += near.points(k, of_frames, frames, contact.points)
        return found

    @cached_property
    def has_dear(self) -> bool:
        """Whether it is worth while to know which contacts are near."""
        return not all(gaps.is_cheap(*contact.shapes) for contact in self.members)

    def distances(self, placed: Sequence[Placement], h: Numeric) -> list[Numeric]:
        """(m,) no more than what is left of the gap of any point of each contact after a time h with these velocities
        [m], at the cost of a few operations: of balls around the shapes, at the greatest speed of their surfaces."""
        found = []
        for contact in self.members:
            sides = list(zip(contact.shapes, contact.placed(placed), strict=True))
            reach = gaps.reach(*sides[0], *sides[1])
            ball, (_, middle) = sides[1] if gaps.is_unbounded(sides[0][0]) else sides[0]
            one, two = (_of(placed, body) for body in contact.bodies)
            # a point of contact is off the surface along the normal, along which turning does not move it
            speed = _length(_velocity(one, middle) - _velocity(two, middle))
            turning = _length(one.angular - two.angular)
            found.append(reach - h * (speed + gaps.radius_around(ball) * turning))
        return found

    def rates(self, placed: Sequence[Placement], points: Sequence[PointOfContact]) -> Numeric:
        """(size,) motion of the first shape against the second at each point along its rows [m/s, rad/s]."""
        found = []
        for contact, point in zip(self.of_points, points, strict=True):
            first, second = (_of(placed, body) for body in contact.bodies)
            along = point.axes @ (_velocity(first, point.position) - _velocity(second, point.position))
            turning = self._axes(point)[3:] @ (first.angular - second.angular)
            found.append(ops.concatenate([along, turning]) if self.rows_of_point > 3 else along)
        return ops.concatenate(found)

    def wrenches(
        self, placed: Sequence[Placement], points: Sequence[PointOfContact], forces: Numeric
    ) -> list[tuple[int, SpatialVector]]:
        """What forces and moments (size,) of the points do: force and moment on bodies, each at the origin of the body
        along its axes."""
        found = []
        for j, (contact, point) in enumerate(zip(self.of_points, points, strict=True)):
            force, moment = self.along_ground(point, forces[self.at(j)])
            for body, sign in zip(contact.bodies, (1.0, -1.0), strict=True):
                if body != GROUND:
                    wrench = _wrench(placed[body], force * sign, point.position)
                    turning = SpatialVector(np.zeros(3), placed[body].rotation.T @ (moment * sign))
                    found.append((body, wrench + turning if self.rows_of_point > 3 else wrench))
        return found

    def of_ground_wrenches(self, placed: Sequence[Placement], wrenches: Numeric) -> list[tuple[int, SpatialVector]]:
        """As `wrenches`, of the force on the first shape of each contact and its moment about the origin of the ground,
        in ground axes (m, 6)."""
        found = []
        for contact, wrench in zip(self.members, wrenches, strict=True):
            for body, sign in zip(contact.bodies, (1.0, -1.0), strict=True):
                if body != GROUND:
                    force, moment = wrench[:3] * sign, wrench[3:] * sign
                    turned, position = placed[body].rotation.T, placed[body].position
                    found.append((body, SpatialVector(turned @ force, turned @ (moment - ops.cross(position, force)))))
        return found

    def along_ground(self, point: PointOfContact, own: Numeric) -> tuple[Numeric, Numeric]:
        """(force, moment) on the first shape in ground axes, of the rows of a point."""
        axes = self._axes(point)
        return axes[:3].T @ own[:3], axes[3:].T @ own[3:] if self.rows_of_point > 3 else np.zeros(3)

    def rows(self, placed: Sequence[Placement], points: Sequence[PointOfContact]) -> SpreadRows:
        """The rows of all points, by few rows of the sweeps. Their γ is 0."""
        rows: list[ConstraintRow] = []
        elements: list[dict[int, Numeric]] = [{} for _ in range(self.size)]
        for bodies, own in self._pairs.items():
            first = len(rows)
            if len(own) <= MOST_ALONE and self.rows_of_point == 3:
                for j in own:
                    for i, axis in enumerate(points[j].axes):
                        elements[3 * j + i] = {len(rows): 1.0}
                        rows.append(_row(placed, bodies, axis, points[j].position))
                continue
            about = _of(placed, next(body for body in bodies if body != GROUND)).position
            rows += [_row(placed, bodies, axis, about) for axis in np.eye(3)]
            rows += [_turning_row(placed, bodies, axis) for axis in np.eye(3)]
            for j in own:
                for i, axis in enumerate(self._axes(points[j])):
                    arm = ops.cross(points[j].position - about, axis)
                    wrench = [*axis, *arm] if i < 3 else [0.0, 0.0, 0.0, *axis]
                    elements[self.at(j).start + i] = dict(enumerate(wrench, first))
        spread = [[row.get(r, 0.0) for r in range(len(rows))] for row in elements]
        of_points = [sorted({r for row in elements[self.at(j)] for r in row}) for j in range(len(self.of_points))]
        return SpreadRows(rows, ops.array(spread).reshape(len(spread), len(rows)), of_points)

    def responses(self, rows: SpreadRows, inertia: Numeric, near: NearContacts | None) -> Numeric:
        """(size, size) what impulses of all rows do to each other, by the inertia that the rows of the sweeps meet."""
        if near is None:
            whole = rows.spread @ inertia @ rows.spread.T
            return ops.where(np.tri(self.size, dtype=bool), whole, whole.T)  # as symmetric as it is, by half the work
        found: list[list[Numeric]] = [[0.0] * self.size for _ in range(self.size)]
        parts = []
        for _, own in self.by_contact:
            columns = sorted({r for j in own for r in rows.of_points[j]})
            first, last = self.at(own[0]).start, self.at(own[-1]).stop
            parts.append((first, columns, rows.spread[first:last][:, columns]))
        for i, (at, columns, one) in enumerate(parts):
            for j, (start, others, other) in enumerate(parts[i:], i):
                met = inertia[columns][:, others]
                if all(ops.is_zero(element) for element in met.ravel()):
                    continue
                block = near.block(i, j, one, met, other)
                for k in range(len(one)):
                    for m in range(len(other)):
                        found[at + k][start + m] = found[start + m][at + k] = block[k, m]
        return ops.array(found)


NO_CONTACTS = ContactSet()


def _of(placed: Sequence[Placement], body: int) -> Placement:
    return GROUND_PLACEMENT if body == GROUND else placed[body]


def _frame(here: Placement, pose: Pose) -> tuple[Numeric, Numeric]:
    return here.rotation @ pose.rotation, here.position + here.rotation @ pose.position


def _velocity(here: Placement, point: Numeric) -> Numeric:
    return here.linear + ops.cross(here.angular, point - here.position)


def _length(vector: Numeric) -> Numeric:
    return ops.sqrt(vector @ vector)


def _wrench(here: Placement, force: Numeric, point: Numeric) -> SpatialVector:
    """A force at a point, both in ground axes, at the origin of a body along its axes."""
    return SpatialVector(here.rotation.T @ force, here.rotation.T @ ops.cross(point - here.position, force))


def _row(placed: Sequence[Placement], bodies: tuple[int, int], axis: Numeric, point: Numeric) -> ConstraintRow:
    """A force of 1 along an axis at a point on the first body, and its reaction on the second."""
    signs = zip(bodies, (1.0, -1.0), strict=True)
    return ConstraintRow({b: _wrench(placed[b], axis * sign, point) for b, sign in signs if b != GROUND}, {}, 0.0)


def _turning_row(placed: Sequence[Placement], bodies: tuple[int, int], axis: Numeric) -> ConstraintRow:
    """A moment of 1 about an axis, likewise."""
    signs = zip(bodies, (1.0, -1.0), strict=True)
    moments = {b: SpatialVector(np.zeros(3), placed[b].rotation.T @ (axis * sign)) for b, sign in signs if b != GROUND}
    return ConstraintRow(moments, {}, 0.0)
