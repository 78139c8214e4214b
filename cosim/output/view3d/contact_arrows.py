"""The forces of contacts as messages: an orange arrow at each contact that touches, from the point where it acts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cosim.core.recordings.protobuf_wire import part, whole
from cosim.output.scene.scene import TOUCHING, Scene
from cosim.output.view3d.message_pattern import doubles
from cosim.output.view3d.view import ContactColumns, View

ARROWS, SPHERES = 7, 9  # fields of SceneEntity
ENTITY = "contacts"
SHAFT, HEAD, DOT = 0.01, 0.02, 0.025  # diameters of an arrow and of the dot at its point, over the extent
LONGEST = 2.0  # arrow, over the extent: of impacts
HEAD_PART = 0.25  # of the length of an arrow
SLIDE_COLOR = (192, 57, 43)  # colour of a contact that slides
OPEN, SLIDES = 0.5, 1.5  # states above which a contact touches and slides


class ForceArrow(NamedTuple):
    """The force of a contact that touches: from the point (3,) where it acts, along `vector` (3,) [m], see
    `Scene.force_length`."""

    point: np.ndarray
    vector: np.ndarray
    slides: bool

    @property
    def color(self) -> tuple[int, int, int]:
        return SLIDE_COLOR if self.slides else TOUCHING


def arrows_of(contacts: Sequence[ContactColumns], scene: Scene, row: np.ndarray) -> list[ForceArrow]:
    """Of the contacts that touch; row (n,): all signals."""
    found = []
    for contact in contacts:
        state, force, point = row[contact.state], row[list(contact.force)], row[list(contact.point)]
        size = float(np.linalg.norm(force))
        if state > OPEN and 0.0 < size < np.inf and np.isfinite(point).all():
            length = min(size * scene.force_length, LONGEST * scene.extent)
            found.append(ForceArrow(point, force * (length / size), bool(state > SLIDES)))
    return found


def contact_update(view: View, stamp_ns: int, row: np.ndarray) -> bytes:
    """A SceneUpdate with the entity of all contacts in one row of the signals (n,), in the frame of the ground."""
    seconds, nanos = divmod(stamp_ns, 10**9)
    scene, found = view.scene, []
    for arrow in arrows_of(view.contacts, scene, row):
        color = doubles(*(component / 255 for component in arrow.color), 1.0)
        length = float(np.linalg.norm(arrow.vector))
        measures = (1.0 - HEAD_PART) * length, SHAFT * scene.extent, HEAD_PART * length, HEAD * scene.extent
        sizes = b"".join(bytes([field << 3 | 1]) + np.float64(x).tobytes() for field, x in enumerate(measures, 2))
        found.append((ARROWS, _pose(arrow.point, _from_x(arrow.vector / length)) + sizes + part(6, color)))
        dot = doubles(*[DOT * scene.extent] * 3)
        found.append((SPHERES, _pose(arrow.point, (0.0, 0.0, 0.0, 1.0)) + part(2, dot) + part(3, color)))
    lengths = f"{1e3 * scene.force_length:g} mm/N, at most {LONGEST * scene.extent:.3g} m"
    scale = part(1, "length of arrows") + part(2, lengths)
    head = part(1, whole(1, seconds) + whole(2, nanos)) + part(2, scene.bodies[0].name) + part(3, ENTITY)
    primitives = (part(field, data) for field, data in sorted(found, key=lambda one: one[0]))
    entity = head + part(6, scale) + b"".join(primitives)
    return part(2, entity)


def _pose(point: np.ndarray, xyzw: tuple[float, ...]) -> bytes:
    return part(1, part(1, doubles(*map(float, point))) + part(2, doubles(*xyzw)))


def _from_x(direction: np.ndarray) -> tuple[float, ...]:
    """The quaternion x, y, z, w that turns the x axis into a direction (3,), along which arrows of Foxglove point."""
    x, y, z = map(float, direction)
    if x < -1.0 + 1e-12:
        return 0.0, 0.0, 1.0, 0.0
    quaternion = np.array([0.0, -z, y, 1.0 + x])
    return tuple(map(float, quaternion / np.linalg.norm(quaternion)))
