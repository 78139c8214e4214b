"""Collision shapes of a compiled model: its geoms that may touch others."""

from __future__ import annotations

import numpy as np

from cosim.core.errors import SourceLocation
from cosim.mechanics.multibody.contact.shapes import ContactShape, HalfSpace, TerrainShape
from cosim.mechanics.multibody.description.collisions import CollisionShape, SurfaceFriction, finite, primitive
from cosim.mechanics.multibody.description.mjcf.compiled import CompiledModel, rotation_of
from cosim.mechanics.multibody.mechanism import Pose

# MuJoCo's type of a geom -> what it is, in words
KINDS = {
    "PLANE": "plane",
    "HFIELD": "height field",
    "SPHERE": "sphere",
    "CAPSULE": "capsule",
    "ELLIPSOID": "ellipsoid",
    "CYLINDER": "cylinder",
    "BOX": "box",
    "MESH": "mesh",
    "SDF": "signed distance field",
}
USUAL_SOLVER = {"geom_solref": (0.02, 1.0), "geom_solimp": (0.9, 0.95, 0.001, 0.5, 2.0)}
FRICTIONLESS, SPINNING, ROLLING = 1, 4, 6  # condim of a geom: without friction, from which on it has these


def collisions_of(compiled: CompiledModel) -> tuple[CollisionShape, ...]:
    """The geoms that may touch others, in the order of the model. Bodies that stand are links of their own."""
    model = compiled.model
    able = (geom for geom in range(model.ngeom) if model.geom_contype[geom] or model.geom_conaffinity[geom])
    return tuple(finite(_shape(compiled, geom)) for geom in able)


def _shape(compiled: CompiledModel, geom: int) -> CollisionShape:
    model, body = compiled.model, int(compiled.model.geom_bodyid[geom])
    kind = next(
        (word for name, word in KINDS.items() if compiled.is_a(model.geom_type[geom], "mjtGeom", f"GEOM_{name}")), ""
    )
    x, y, z = np.array(model.geom_size[geom], dtype=float).tolist()
    sizes = {"sphere": [x], "capsule": [x, 2 * y], "cylinder": [x, 2 * y], "box": [2 * x, 2 * y, 2 * z]}
    pose = Pose(rotation_of(model.geom_quat[geom]), np.array(model.geom_pos[geom], dtype=float))
    shape: ContactShape | None = None
    lost: tuple[str, ...] = ()
    if kind in sizes:
        try:
            shape = primitive(kind, sizes[kind])
        except ValueError as error:  # MuJoCo takes what is no number
            lost = (str(error),)
    elif body == 0 and kind == "plane":
        shape = HalfSpace()
    elif body == 0 and kind == "height field":
        shape = _terrain(compiled, geom)
    link, place = compiled.name("BODY", body), _place(compiled, geom)
    return CollisionShape(link, kind, pose, shape, _friction(compiled, geom), lost, _remarks(compiled, geom), place)


def _terrain(compiled: CompiledModel, geom: int) -> TerrainShape:
    """Rows of a height field are along y."""
    model, number = compiled.model, int(compiled.model.geom_dataid[geom])
    rows, columns, first = (int(getattr(model, f"hfield_{key}")[number]) for key in ("nrow", "ncol", "adr"))
    half_x, half_y, top, _ = np.array(model.hfield_size[number], dtype=float).tolist()
    data = np.array(model.hfield_data[first : first + rows * columns], dtype=float).reshape(rows, columns)
    return TerrainShape(np.linspace(-half_x, half_x, columns), np.linspace(-half_y, half_y, rows), top * data.T)


def _friction(compiled: CompiledModel, geom: int) -> SurfaceFriction:
    condim = int(compiled.model.geom_condim[geom])
    sliding, torsional, rolling = np.array(compiled.model.geom_friction[geom], dtype=float).tolist()
    if condim == FRICTIONLESS:
        sliding = 0.0
    return SurfaceFriction(sliding, sliding, torsional * (condim >= SPINNING), rolling * (condim >= ROLLING))


def _remarks(compiled: CompiledModel, geom: int) -> tuple[str, ...]:
    """Numbers of MuJoCo's soft contacts."""
    given = [name.removeprefix("geom_") for name, usual in USUAL_SOLVER.items() if not _is(compiled, name, geom, usual)]
    given += [name for name in ("margin", "gap") if compiled.number(f"geom_{name}", geom)]
    what = "contacts have the stiffness of the rig"
    return (f"{' and '.join(given)} of geoms {'is' if len(given) == 1 else 'are'} not taken: {what}",) if given else ()


def _is(compiled: CompiledModel, name: str, geom: int, usual: tuple[float, ...]) -> bool:
    return bool(np.allclose(compiled.array(name, geom)[: len(usual)], usual))


def _place(compiled: CompiledModel, geom: int) -> SourceLocation:
    """Of the geom, or of its body where it has no name."""
    name = compiled.mujoco.mj_id2name(compiled.model, compiled.mujoco.mjtObj.mjOBJ_GEOM, geom)
    body = compiled.name("BODY", compiled.model.geom_bodyid[geom])
    return compiled.place("geom", name) if name else compiled.place("body", body)
