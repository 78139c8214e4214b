"""Collision shapes of USD: prims with CollisionAPI, with the friction of their physics material."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cosim.mechanics.multibody.contact.shapes import ContactShape, HalfSpace
from cosim.mechanics.multibody.description.collisions import CollisionShape, SurfaceFriction, finite, primitive
from cosim.mechanics.multibody.description.usd.masses import ROUND, TO_AXIS
from cosim.mechanics.multibody.description.usd.stage import UsdStage
from cosim.mechanics.multibody.mechanism import GROUND_LINK, Pose

KINDS = {"Cube": "box", "Sphere": "sphere", "Cylinder": "cylinder", "Capsule": "capsule", "Plane": "plane"}


def collisions_of(
    stage: UsdStage, links: Mapping[str, str], poses: Mapping[str, Pose], shapes: Mapping[str, Sequence[Any]]
) -> tuple[CollisionShape, ...]:
    """links: path of a body -> its link; poses: link -> its pose on the stage; shapes: path of a body, "" for what
    stands -> its prims."""
    return tuple(
        finite(_shape(stage, prim, links.get(path, GROUND_LINK), poses.get(links.get(path, ""), Pose.identity())))
        for path, prims in shapes.items()
        for prim in prims
    )


def _shape(stage: UsdStage, prim: Any, link: str, body: Pose) -> CollisionShape:
    type_name = str(prim.GetTypeName())
    kind = KINDS.get(type_name, type_name.lower() or "shape without geometry")
    errors = stage.diagnostics.errors
    before = len(errors)
    at, scale = stage.pose(prim)
    if len(errors) > before:  # no error of the file, of which most rigs need no shapes
        lost = (errors[-1].what,)
        del errors[before:]
        return CollisionShape(link, kind, Pose.identity(), None, None, lost, place=stage.place(prim))
    turn = TO_AXIS[str(stage.value(prim, "axis") or "Z")] if kind not in ("box", "sphere") else np.eye(3)
    shape, lost = _sized(stage, prim, kind, scale * stage.metre, link)
    pose = body.inverse() @ at @ Pose(turn, np.zeros(3))
    return CollisionShape(link, kind, pose, shape, _friction(stage, prim), lost, place=stage.place(prim))


def _sized(
    stage: UsdStage, prim: Any, kind: str, scale: np.ndarray, link: str
) -> tuple[ContactShape | None, tuple[str, ...]]:
    """(the shape, what is lost)."""
    if kind == "plane":
        return (HalfSpace() if link == GROUND_LINK else None), ()
    if kind == "box":
        sizes = (stage.number(prim, "size", 2.0) * scale).tolist()
    elif np.ptp(scale) > ROUND * scale.max():
        return None, ("it has different scales",) if kind in KINDS.values() else ()
    else:
        radius, height = stage.number(prim, "radius", 1.0) * scale[0], stage.number(prim, "height", 2.0) * scale[0]
        sizes = [radius] if kind == "sphere" else [radius, height]
    try:
        return primitive(kind, sizes), ()
    except ValueError as error:
        return None, (str(error),)


def _friction(stage: UsdStage, prim: Any) -> SurfaceFriction | None:
    """Of the physics material that is bound."""
    found, _ = stage.usd.UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial("physics")
    if not found:
        return None
    static, sliding = (stage.number(found.GetPrim(), f"physics:{key}Friction", 0.0) for key in ("static", "dynamic"))
    return SurfaceFriction(max(static, sliding, 0.0), max(sliding, 0.0))
