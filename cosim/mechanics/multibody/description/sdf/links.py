"""Links of SDF: their inertia, which may follow from their collision shapes, and what acts on them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cosim.mechanics.multibody.description import solids
from cosim.mechanics.multibody.description.diagnostics import NO_CONTACTS
from cosim.mechanics.multibody.description.inertia import inertia_matrix, moved, summed
from cosim.mechanics.multibody.description.sdf.values import SdfValues, children
from cosim.mechanics.multibody.description.solids import SolidShape
from cosim.mechanics.multibody.description.xmltree import XmlElement
from cosim.mechanics.multibody.mechanism import Inertial

MOMENTS = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
DENSITY = 1000.0  # kg/m³, of water, where the file has none


def inertial_of(link: XmlElement, values: SdfValues) -> Inertial | None:
    """In the frame of the link; None where mass and inertia are zero."""
    element = values.child(link, "inertial")
    if element is None:
        values.note(link, "a link without <inertial> has 1 kg and moments of inertia of 1 kg*m^2 in SDF")
        return Inertial(1.0, np.zeros(3), np.eye(3))
    if values.truth(element, element.attributes.get("auto", "false")):
        return _from_shapes(link, element, values)
    pose, _ = values.pose(element)
    mass = values.not_negative(element, "mass", 1.0)
    moments = values.child(element, "inertia")
    if moments is None:
        values.note(element, "<inertial> without <inertia> has moments of inertia of 1 kg*m^2 in SDF")
    given = [values.number(moments, key, 1.0 if key[1] == key[2] else 0.0) for key in MOMENTS]
    added = values.child(element, "fluid_added_mass")
    if added is not None and any(values.number(added, child.tag, 0.0) for child in added.children):
        values.warn(added, "the added mass of a fluid is not taken; use mechanism.forces")
    if mass == 0.0 and not any(given):
        return None
    if mass == 0.0:
        values.note(element, "an inertia without mass; used as given")
    return Inertial(mass, pose.position, pose.rotation @ inertia_matrix(*given) @ pose.rotation.T)


def warn_of_link(link: XmlElement, values: SdfValues) -> None:
    """Warnings of what acts on a link there and not here."""
    if values.flag(link, "kinematic"):
        values.warn(
            link, "a kinematic link has a given motion there, and moves by its forces here; give it a moving base"
        )
    if values.flag(link, "self_collide"):
        values.warn(link, f"{NO_CONTACTS}: the link moves through others of its model (self_collide)")
    decay = values.child(link, "velocity_decay")
    if decay is not None and any(values.number(decay, key, 0.0) for key in ("linear", "angular")):
        values.warn(decay, "the decay of its velocity is not taken; use mechanism.forces")


# --- inertia of shapes ---


def _from_shapes(link: XmlElement, element: XmlElement, values: SdfValues) -> Inertial | None:
    """The inertia of the collision shapes by their densities, scaled to the mass where the file gives one."""
    density = values.number(element, "density", DENSITY)
    parts = [part for shape in children(link, "collision") if (part := _shape(shape, density, values)) is not None]
    if not parts:
        if not children(link, "collision"):
            values.error(element, 'inertial with auto="true" needs a <collision>; add one, or write mass and inertia')
        return None
    whole = summed(parts)
    mass = values.number(element, "mass", whole.mass)
    return replace(whole, mass=mass, inertia=whole.inertia * (mass / whole.mass))


def _shape(collision: XmlElement, density: float, values: SdfValues) -> Inertial | None:
    """The inertia of a collision shape, in the frame of its link; None after an error."""
    pose, relative_to = values.pose(collision)
    if relative_to:
        values.error(
            collision, "its pose is relative to another frame, from which no inertia is computed; place it in its link"
        )
    density = values.number(collision, "density", density)
    geometry = values.child(collision, "geometry")
    shape = next(iter(geometry.children), None) if geometry is not None else None
    if shape is None or shape.tag not in SHAPES:
        what = "nothing" if shape is None else f"<{shape.tag}>"
        known = ", ".join(SHAPES)
        fix = "write mass and inertia"
        values.error(shape or collision, f"the inertia of {what} is not computed, only of {known}; {fix}")
        return None
    solid = _solid(shape, values)
    mass = solid.volume * density
    if not mass > 0.0:
        values.error(shape, "a shape needs sizes and a density above 0")
        return None
    return moved(solid.inertial(mass), pose)


def _solid(shape: XmlElement, values: SdfValues) -> SolidShape:
    """The shape, with the sizes of SDF where it gives none."""
    if shape.tag in ("box", "ellipsoid"):
        return (solids.box if shape.tag == "box" else solids.ellipsoid)(*_three(shape, SHAPES[shape.tag], values))
    radius = values.number(shape, "radius", 0.5 if shape.tag == "capsule" else 1.0)
    if shape.tag == "sphere":
        return solids.sphere(radius)
    of = {"cylinder": solids.cylinder, "capsule": solids.capsule, "cone": solids.cone}
    return of[shape.tag](radius, values.number(shape, "length", 1.0))


# shape -> the element of its sizes along x, y and z
SHAPES = {"box": "size", "sphere": "", "cylinder": "", "capsule": "", "ellipsoid": "radii", "cone": ""}


def _three(shape: XmlElement, tag: str, values: SdfValues) -> tuple[float, float, float]:
    element = values.child(shape, tag)
    x, y, z = (values.numbers(element, element.text, 3) if element is not None else None) or (1.0, 1.0, 1.0)
    return x, y, z
