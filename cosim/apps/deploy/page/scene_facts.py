"""The scene of a rig as a page draws it: solids on bodies, without files of meshes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cosim.output.scene.scene import ROLE_COLORS, Scene, Shape

DIGITS = 5  # of lengths and quaternions
SMALLEST = 0.06  # largest edge of a body over the extent of the mechanism, so that a point mass is seen


def scene_facts(scene: Scene) -> dict[str, Any]:
    """Body 0 is the ground; body k ≥ 1 is row k − 1 of the poses of the module."""
    return {
        "bodies": [{"name": body.name, "shapes": _shapes(body.shapes, scene.extent)} for body in scene.bodies],
        "springs": [[[body, _rounded(point)] for body, point in (one.start, one.end)] for one in scene.springs],
        "extent": _rounded([scene.extent])[0],
        "floor": _rounded([scene.floor])[0],
    }


def _shapes(shapes: Sequence[Shape], extent: float) -> list[dict[str, Any]]:
    drawn = _drawn(shapes)
    largest = max((edge for shape in drawn for edge in shape.size), default=0.0)
    enlarged = SMALLEST * extent / largest if 0.0 < largest < SMALLEST * extent else 1.0
    return [_shape(shape, enlarged) for shape in drawn]


def _drawn(shapes: Sequence[Shape]) -> Sequence[Shape]:
    """The box of the inertia only where a body has nothing else."""
    own = [shape for shape in shapes if shape.role != "inertia"]
    return own or shapes


def _shape(shape: Shape, enlarged: float) -> dict[str, Any]:
    color = [part / 255.0 for part in ROLE_COLORS[shape.role]] + [1.0] if shape.color is None else shape.color
    return {
        "kind": shape.kind,
        "position": _rounded(shape.pose.position),
        "wxyz": _rounded(shape.pose.wxyz),
        "size": _rounded([enlarged * edge for edge in shape.size]),
        "color": [round(part, 3) for part in color],
    }


def _rounded(values: Sequence[float]) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in values]
