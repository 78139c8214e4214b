"""A scene as one message with its shapes, fixed to the frames of their bodies."""

from __future__ import annotations

from collections.abc import Iterator

from cosim.output.protobuf_wire import part, whole
from cosim.output.scene.scene import ROLE_COLORS, Scene, SceneBody, ScenePose, Shape, ShapeKind
from cosim.output.view3d.meshes import Mesh, MeshReader
from cosim.output.view3d.message_pattern import doubles

# shape -> field of SceneEntity
FIELDS: dict[ShapeKind, int] = {"box": 8, "ellipsoid": 9, "cylinder": 10, "mesh": 12}
COLOR_FIELDS: dict[ShapeKind, int] = {"box": 3, "ellipsoid": 3, "cylinder": 5, "mesh": 3}
CYLINDER = b"\x19" + doubles(1.0)[1:] + b"\x21" + doubles(1.0)[1:]  # as wide at the bottom and at the top as its size


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
