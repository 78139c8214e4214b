"""The scene of a rig as a page draws it: solids on bodies, without files of meshes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cosim.output.scene.scene import ROLE_COLORS, Scene, Shape

DIGITS = 5  # of lengths and quaternions


def scene_facts(scene: Scene) -> dict[str, Any]:
    """Body 0 is the ground; body k ≥ 1 is row k − 1 of the poses of the module."""
    return {
        "bodies": [{"name": body.name, "shapes": [_shape(one) for one in _drawn(body.shapes)]} for body in scene.bodies],
        "springs": [[[body, _rounded(point)] for body, point in (one.start, one.end)] for one in scene.springs],
        "extent": _rounded([scene.extent])[0],
        "floor": _rounded([scene.floor])[0],
    }


def _drawn(shapes: Sequence[Shape]) -> Sequence[Shape]:
    """The box of the inertia only where a body has nothing else."""
    own = [shape for shape in shapes if shape.role != "inertia"]
    return own or shapes


def _shape(shape: Shape) -> dict[str, Any]:
    color = [part / 255.0 for part in ROLE_COLORS[shape.role]] + [1.0] if shape.color is None else shape.color
    return {
        "kind": shape.kind,
        "position": _rounded(shape.pose.position),
        "wxyz": _rounded(shape.pose.wxyz),
        "size": _rounded(shape.size),
        "color": [round(part, 3) for part in color],
    }


def _rounded(values: Sequence[float]) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in values]
