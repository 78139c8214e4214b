"""Mass, centre of mass and inertia of a rigid body of USD, which may follow from its collision shapes.

Rules: "Rigid Body Physics in USD", section Mass Properties: the mass of a body wins over its density, a body over its
shapes, a density over the one of a material, of which the default is 1000 kg/m³.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from cosim.mechanics.multibody.description import solids
from cosim.mechanics.multibody.description.inertia import moved, summed
from cosim.mechanics.multibody.description.solids import SolidShape
from cosim.mechanics.multibody.description.usd.stage import UsdStage
from cosim.mechanics.multibody.mechanism import Inertial, Pose

DENSITY = 1000.0  # kg/m³
SHAPES = ("Cube", "Sphere", "Cylinder", "Capsule", "Cone")
ROUND = 1e-6  # relative difference of scales that count as equal
# turns z into the axis of a cylinder
TO_AXIS = {
    "X": np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]]),
    "Y": np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]]),
    "Z": np.eye(3),
}


def inertial_of(stage: UsdStage, body: Any, shapes: list[Any]) -> Inertial | None:
    """shapes: the prims of the body that collide."""
    pose, scale = stage.pose(body)
    mass = stage.number(body, "physics:mass", 0.0) * stage.kilogram
    moments = stage.vector(body, "physics:diagonalInertia", (0.0, 0.0, 0.0)) * stage.kilogram * stage.metre**2
    com = stage.vector(body, "physics:centerOfMass", (-np.inf,) * 3) * scale * stage.metre
    given = moments.any()
    whole = None
    if mass == 0.0 or not given:
        whole = _of_shapes(stage, body, pose, shapes)
        if whole is None:
            return None
    if mass == 0.0 and whole is not None:
        mass = whole.mass
    if not np.isfinite(com).all():
        com = np.zeros(3) if whole is None else whole.com
    if given:
        axes = stage.turn(body, "physics:principalAxes")
        return Inertial(mass, com, axes @ np.diag(moments) @ axes.T)
    assert whole is not None
    return replace(whole, mass=mass, com=com, inertia=whole.inertia * (mass / whole.mass))


def _of_shapes(stage: UsdStage, body: Any, pose: Pose, shapes: list[Any]) -> Inertial | None:
    """The inertial of the shapes, in the frame of the body; None after an error."""
    if not shapes:
        stage.error(body, "it has no mass with inertia and no collision shape; give physics:mass and diagonalInertia")
        return None
    density = stage.number(body, "physics:density", 0.0) * stage.kilogram / stage.metre**3
    parts = [part for shape in shapes if (part := _of_shape(stage, shape, pose, density)) is not None]
    return summed(parts) if len(parts) == len(shapes) else None


def _of_shape(stage: UsdStage, shape: Any, pose: Pose, density: float) -> Inertial | None:
    kind = str(shape.GetTypeName())
    at, scale = stage.pose(shape)
    if kind not in SHAPES:
        known = ", ".join(SHAPES)
        stage.error(shape, f"the inertia of a {kind} is not computed, only of {known}; give its body mass and inertia")
        return None
    solid, turn = _solid(stage, shape, kind, scale * stage.metre)
    if solid is None:
        return None
    mass = stage.number(shape, "physics:mass", 0.0) * stage.kilogram
    own = stage.number(shape, "physics:density", 0.0) * stage.kilogram / stage.metre**3
    mass = mass or solid.volume * (density or own or _of_material(stage, shape) or DENSITY)
    return moved(solid.inertial(mass), pose.inverse() @ at @ Pose(turn, np.zeros(3)))


def _solid(stage: UsdStage, shape: Any, kind: str, scale: np.ndarray) -> tuple[SolidShape | None, np.ndarray]:
    """(the solid, the rotation of its z axis)."""
    if kind == "Cube":
        return solids.box(*(stage.number(shape, "size", 2.0) * scale).tolist()), np.eye(3)
    if np.ptp(scale) > ROUND * scale.max():
        stage.error(
            shape, f"the inertia of a {kind} with different scales is not computed; give its body mass and inertia"
        )
        return None, np.eye(3)
    size = float(scale[0])
    radius = stage.number(shape, "radius", 1.0) * size
    if kind == "Sphere":
        return solids.sphere(radius), np.eye(3)
    height = stage.number(shape, "height", 2.0) * size
    of = {"Cylinder": solids.cylinder, "Capsule": solids.capsule, "Cone": solids.cone}
    return of[kind](radius, height), TO_AXIS[str(stage.value(shape, "axis") or "Z")]


def _of_material(stage: UsdStage, shape: Any) -> float:
    """The density of the physics material that is bound [kg/m³], 0 where there is none."""
    found, _ = stage.usd.UsdShade.MaterialBindingAPI(shape).ComputeBoundMaterial("physics")
    if not found:
        return 0.0
    return stage.number(found.GetPrim(), "physics:density", 0.0) * stage.kilogram / stage.metre**3
