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
from cosim.mechanics.multibody.contact.gaps import PointOfContact
from cosim.mechanics.multibody.contact.shapes import ContactLaw, ContactShape
from cosim.mechanics.multibody.kinematics import GROUND_PLACEMENT, Placement
from cosim.mechanics.multibody.mechanism import Contact, Pose
from cosim.mechanics.multibody.spatial import SpatialVector
from cosim.mechanics.multibody.tree import Tree

ROWS = 3  # of a point: t1, t2, n
MOST_ALONE = 2  # points of a pair of bodies that have rows of their own


class BodyContact(NamedTuple):
    """Two shapes on bodies of a tree that may touch."""

    name: str
    bodies: tuple[int, int]  # or GROUND
    frames: tuple[Pose, Pose]  # in the bodies
    shapes: tuple[ContactShape, ContactShape]
    law: ContactLaw
    place: SourceLocation
    virtual: bool = False

    @property
    def points(self) -> int:
        return gaps.points_of(*self.shapes)


class SpreadRows(NamedTuple):
    """Rows of the sweeps, and `spread` (3 k, rows): the rows of the k points by these."""

    rows: list[ConstraintRow]
    spread: Numeric


def body_contacts(tree: Tree, contacts: Sequence[Contact]) -> ContactSet:
    """The contacts of a mechanism on the bodies of its tree."""
    found = []
    for contact in contacts:
        (a, at_a), (b, at_b) = (on_body(tree, link, pose) for link, pose in contact.ends)
        own = contact.name, (a, b), (at_a, at_b), contact.shapes, contact.law, contact.place, contact.virtual
        found.append(BodyContact(*own))
    return ContactSet(tuple(found))


@dataclass(frozen=True)
class ContactSet:
    """The contacts of a tree. k: the number of their points, in the order of contacts."""

    members: tuple[BodyContact, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.members)

    @cached_property
    def of_points(self) -> list[BodyContact]:
        """(k,) the contact of each point."""
        return [contact for contact in self.members for _ in range(contact.points)]

    @cached_property
    def _pairs(self) -> dict[tuple[int, int], list[int]]:
        """Pair of bodies -> its points."""
        found: dict[tuple[int, int], list[int]] = {}
        for j, contact in enumerate(self.of_points):
            found.setdefault(contact.bodies, []).append(j)
        return found

    def points(self, placed: Sequence[Placement]) -> list[PointOfContact]:
        """(k,)"""
        found = []
        for contact in self.members:
            frames = [
                _frame(_of(placed, body), pose) for body, pose in zip(contact.bodies, contact.frames, strict=True)
            ]
            found += gaps.points(contact.shapes[0], frames[0], contact.shapes[1], frames[1])
        return found

    def rates(self, placed: Sequence[Placement], points: Sequence[PointOfContact]) -> Numeric:
        """(3 k,) velocity of the first shape against the second at each point, along its axes [m/s]."""
        found = []
        for contact, point in zip(self.of_points, points, strict=True):
            a, b = (_velocity(_of(placed, body), point.position) for body in contact.bodies)
            found.append(point.axes @ (a - b))
        return ops.concatenate(found)

    def wrenches(
        self, placed: Sequence[Placement], points: Sequence[PointOfContact], forces: Numeric
    ) -> list[tuple[int, SpatialVector]]:
        """What forces (3 k,) of the points along their axes do: force and moment on bodies, each at the origin of the
        body along its axes."""
        found = []
        for j, (contact, point) in enumerate(zip(self.of_points, points, strict=True)):
            force = point.axes.T @ forces[ROWS * j : ROWS * j + ROWS]
            for body, sign in zip(contact.bodies, (1.0, -1.0), strict=True):
                if body != GROUND:
                    found.append((body, _wrench(placed[body], force * sign, point.position)))
        return found

    def rows(self, placed: Sequence[Placement], points: Sequence[PointOfContact]) -> SpreadRows:
        """The rows of all points, by few rows of the sweeps. Their γ is 0."""
        rows: list[ConstraintRow] = []
        elements: list[dict[int, Numeric]] = [{} for _ in range(ROWS * len(points))]
        for bodies, own in self._pairs.items():
            first = len(rows)
            if len(own) <= MOST_ALONE:
                for j in own:
                    for i, axis in enumerate(points[j].axes):
                        elements[ROWS * j + i] = {len(rows): 1.0}
                        rows.append(_row(placed, bodies, axis, points[j].position))
                continue
            about = _of(placed, next(body for body in bodies if body != GROUND)).position
            rows += [_row(placed, bodies, axis, about) for axis in np.eye(3)]
            rows += [_turning_row(placed, bodies, axis) for axis in np.eye(3)]
            for j in own:
                for i, axis in enumerate(points[j].axes):
                    wrench = [*axis, *ops.cross(points[j].position - about, axis)]
                    elements[ROWS * j + i] = dict(enumerate(wrench, first))
        spread = [[row.get(r, 0.0) for r in range(len(rows))] for row in elements]
        return SpreadRows(rows, ops.array(spread).reshape(len(spread), len(rows)))


NO_CONTACTS = ContactSet()


def _of(placed: Sequence[Placement], body: int) -> Placement:
    return GROUND_PLACEMENT if body == GROUND else placed[body]


def _frame(here: Placement, pose: Pose) -> tuple[Numeric, Numeric]:
    return here.rotation @ pose.rotation, here.position + here.rotation @ pose.position


def _velocity(here: Placement, point: Numeric) -> Numeric:
    return here.linear + ops.cross(here.angular, point - here.position)


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
