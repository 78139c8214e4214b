"""Meshes of visuals as triangles. Triangles need no convention for the axis that is up, unlike files of meshes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cosim.core.paths import check_file
from cosim.core.recordings.protobuf_wire import part
from cosim.output.scene.scene import ScenePose, Shape, rotated

MOST_BYTES = 8_000_000  # of the triangles of a scene, before compression
_POINT = np.dtype([("head", "u1", 2), ("xyz", [("tag", "u1"), ("value", "<f8")], 3)])


class Mesh(NamedTuple):
    """A mesh as triangles, encoded for messages. points, indices: the fields 2 and 5 of a TriangleListPrimitive, empty
    where there is no room for them; box, size: pose in the body and edges [m] of the box around it."""

    points: bytes
    indices: bytes
    box: ScenePose
    size: tuple[float, float, float]


class MeshReader:
    """Reads the meshes of one scene, each once."""

    def __init__(self, room: int = MOST_BYTES) -> None:
        """room: for all triangles [B]."""
        self._room = room
        self._known: dict[Shape, Mesh | None] = {}

    def read(self, shape: Shape) -> Mesh | None:
        """None for a mesh that cannot be read, or where trimesh is not installed."""
        if shape not in self._known:
            self._known[shape] = self._read(shape)
        return self._known[shape]

    def _read(self, shape: Shape) -> Mesh | None:
        try:
            import trimesh

            check_file(shape.file)
            loaded: Any = trimesh.load(shape.file)
            mesh = loaded.to_mesh() if hasattr(loaded, "to_mesh") else loaded
            vertices, faces = np.asarray(mesh.vertices, float) * shape.size, np.asarray(mesh.faces, "<u4")
            low, high = vertices.min(axis=0), vertices.max(axis=0)
        except Exception:  # a reader of meshes raises anything
            return None
        x, y, z = map(float, high - low)
        box = ScenePose(_within(shape.pose, 0.5 * (low + high)), shape.pose.wxyz)
        points, indices = b"", b""
        if len(vertices) * _POINT.itemsize + faces.nbytes <= self._room:
            points, indices = _points(vertices), part(5, faces.tobytes())
            self._room -= len(points) + len(indices)
        return Mesh(points, indices, box, (x, y, z))


def _points(vertices: np.ndarray) -> bytes:
    """Field 2, once for each vertex: a Point3."""
    found = np.zeros(len(vertices), _POINT)
    found["head"] = [2 << 3 | 2, _POINT.itemsize - 2]
    found["xyz"]["tag"] = [field << 3 | 1 for field in (1, 2, 3)]
    found["xyz"]["value"] = vertices
    return found.tobytes()


def _within(pose: ScenePose, point: np.ndarray) -> tuple[float, float, float]:
    x, y, z = map(float, np.array(pose.position) + rotated(pose.wxyz, point))
    return x, y, z
