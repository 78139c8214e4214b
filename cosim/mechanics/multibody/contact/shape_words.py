"""How shapes are called in words."""

from __future__ import annotations

from cosim.mechanics.multibody.contact.shapes import (
    BallShape,
    BoxShape,
    CapsuleShape,
    ContactShape,
    CylinderShape,
    HalfSpace,
    HullShape,
    TerrainShape,
)

WORDS: dict[type, str] = {
    BallShape: "sphere",
    CapsuleShape: "capsule",
    BoxShape: "box",
    CylinderShape: "cylinder",
    HullShape: "mesh",
    HalfSpace: "plane",
    TerrainShape: "terrain",
}


def in_words(shape: ContactShape) -> str:
    """`sphere`, `box`, …; a sphere of radius 0 is a point."""
    return "point" if shape == BallShape(0.0) else WORDS[type(shape)]
