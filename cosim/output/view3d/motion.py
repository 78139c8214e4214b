"""A mechanism as messages: its shapes fixed to the frames of their bodies, transforms of links, states of joints, and
forces of contacts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from cosim.core.recordings.protobuf_wire import part, whole
from cosim.output.scene.scene import ROLE_COLORS, Scene, SceneBody, ScenePose, Shape, ShapeKind, quaternions
from cosim.output.view3d.contact_arrows import contact_update
from cosim.output.view3d.meshes import Mesh, MeshReader
from cosim.output.view3d.message_pattern import MessagePattern, constant, doubles, joined, number, time, within
from cosim.output.view3d.view import View

# topic -> message of Foxglove
TOPICS = {
    "/tf": "FrameTransforms",
    "/tf_static": "FrameTransforms",
    "/scene": "SceneUpdate",
    "/joint_states": "JointStates",
}

# shape -> field of SceneEntity
FIELDS: dict[ShapeKind, int] = {"box": 8, "ellipsoid": 9, "cylinder": 10, "mesh": 12}
COLOR_FIELDS: dict[ShapeKind, int] = {"box": 3, "ellipsoid": 3, "cylinder": 5, "mesh": 3}
CYLINDER = b"\x19" + doubles(1.0)[1:] + b"\x21" + doubles(1.0)[1:]  # as wide at the bottom and at the top as its size


class ViewMessage(NamedTuple):
    """An encoded message of the 3D view on its topic. t_ns: in the run."""

    topic: str
    t_ns: int
    data: bytes


class Motion:
    """The messages of one run, in order: `standing` first, and again where a viewer may begin; then `moving`."""

    def __init__(self, view: View) -> None:
        self._view, self._period_ns, self._interval = view, 1e9 / view.rate, -1
        self._meshes = MeshReader()
        ground, *bodies = (body.name for body in view.scene.bodies)
        self._transforms = joined(*(_transform(ground, body) for body in bodies))
        self._static = joined(*(_transform(link.parent, link.name) for link in view.links))
        self._states = joined(time(1), *(_state(joint.name, joint.columns) for joint in view.joints))
        columns = [column for joint in view.joints for column in joint.columns if column is not None]
        self._state_columns = np.array(columns, dtype=np.intp)

    def standing(self, stamp_ns: int, t_ns: int) -> Iterator[ViewMessage]:
        """What does not change: the shapes, and links at fixed places of their bodies. stamp_ns: since 1970."""
        yield ViewMessage("/scene", t_ns, scene_update(self._view.scene, stamp_ns, self._meshes))
        if self._view.links:
            numbers = [_numbers(link.pose) for link in self._view.links]
            (data,) = self._static.filled(np.array([stamp_ns]), np.array(numbers).reshape(1, -1))
            yield ViewMessage("/tf_static", t_ns, data)

    def moving(self, stamps_ns: np.ndarray, t_ns: np.ndarray, rows: np.ndarray) -> Iterator[ViewMessage]:
        """Of the ticks that are due: the first at or after each multiple of the period. stamps_ns: (k,) since 1970;
        t_ns: (k,) in the run; rows: (k, …) all signals."""
        due, self._interval = due_ticks(t_ns, self._period_ns, self._interval)
        if not len(due):
            return
        stamps, times, chosen = stamps_ns[due], t_ns[due], rows[due]
        poses = self._view.link_poses(times, chosen)
        wxyz = quaternions(poses[..., :3])
        numbers = np.concatenate([poses[..., 3], np.roll(wxyz, -1, axis=-1)], axis=-1)
        transforms = self._transforms.filled(stamps, numbers)
        states = self._states.filled(stamps, chosen[:, self._state_columns])
        for t, transform, state in zip(times.tolist(), transforms, states, strict=True):
            yield ViewMessage("/tf", t, transform)
            yield ViewMessage("/joint_states", t, state)
        if self._view.contacts:
            for t, stamp, row in zip(times.tolist(), stamps.tolist(), chosen, strict=True):
                yield ViewMessage("/scene", t, contact_update(self._view, stamp, row))


def due_ticks(t_ns: np.ndarray, period_ns: float, interval: int) -> tuple[np.ndarray, int]:
    """(which ticks are the first at or after a multiple of the period, number of the last interval), of those after the
    interval of this number."""
    if not len(t_ns):
        return np.empty(0, dtype=np.intp), interval
    intervals = (t_ns // period_ns).astype(np.int64)
    return np.flatnonzero(np.diff(intervals, prepend=interval)), int(intervals[-1])


def _transform(parent: str, child: str) -> MessagePattern:
    """A FrameTransform of FrameTransforms."""
    names = constant(part(2, parent) + part(3, child))
    translation, rotation = map(number, (1, 2, 3)), map(number, (1, 2, 3, 4))
    return within(1, time(1), names, within(4, *translation), within(5, *rotation))


def _state(name: str, columns: tuple[int | None, int | None, int | None]) -> MessagePattern:
    """A JointState of JointStates."""
    present = [number(field) for field, column in zip((2, 3, 5), columns, strict=True) if column is not None]
    return within(2, constant(part(1, name)), *present)


def _numbers(pose: ScenePose) -> tuple[float, ...]:
    w, x, y, z = pose.wxyz
    return *pose.position, x, y, z, w


def scene_update(scene: Scene, stamp_ns: int, reader: MeshReader) -> bytes:
    """A SceneUpdate. Meshes are triangles as far as there is room for them, else boxes around them. A body whose shapes
    cannot be read is the box with its inertia."""
    return b"".join(part(2, _entity(body, stamp_ns, reader)) for body in scene.bodies if body.shapes)


def _entity(body: SceneBody, stamp_ns: int, reader: MeshReader) -> bytes:
    seconds, nanos = divmod(stamp_ns, 10**9)
    head = part(1, whole(1, seconds) + whole(2, nanos)) + part(2, body.name) + part(3, body.name) + whole(5, 1)
    shown = list(_primitives([shape for shape in body.shapes if shape.role != "inertia"], reader))
    if not shown:
        shown = list(_primitives(body.shapes, reader))
    # fields in the order of their numbers
    return head + b"".join(part(field, data) for field, data in sorted(shown, key=lambda each: each[0]))


def _primitives(shapes: tuple[Shape, ...] | list[Shape], reader: MeshReader) -> Iterator[tuple[int, bytes]]:
    """(field of SceneEntity, primitive)."""
    for shape in shapes:
        if shape.kind != "mesh":
            extra = CYLINDER if shape.kind == "cylinder" else b""
            yield FIELDS[shape.kind], _pose(shape.pose) + part(2, doubles(*shape.size)) + extra + _color(shape)
        elif (mesh := reader.read(shape)) is not None:
            yield from _mesh(shape, mesh)


def _mesh(shape: Shape, mesh: Mesh) -> Iterator[tuple[int, bytes]]:
    if mesh.points:
        yield FIELDS["mesh"], _pose(shape.pose) + mesh.points + _color(shape) + mesh.indices
    else:
        box = shape._replace(kind="box", size=mesh.size, pose=mesh.box)
        yield FIELDS["box"], _pose(box.pose) + part(2, doubles(*box.size)) + _color(box)


def _pose(pose: ScenePose) -> bytes:
    w, x, y, z = pose.wxyz
    return part(1, part(1, doubles(*pose.position)) + part(2, doubles(x, y, z, w)))


def _color(shape: Shape) -> bytes:
    color = shape.color or (*(component / 255 for component in ROLE_COLORS[shape.role]), 1.0)
    return part(COLOR_FIELDS[shape.kind], doubles(*color))
