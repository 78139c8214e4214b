"""Areas and moments of cross sections by their dimensions.

Shear factors κ follow Cowper (The shear coefficient in Timoshenko's beam theory, 1966), torsion constants Saint-Venant,
of thin walls Bredt.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cosim.core.types import Array
from cosim.mechanics.multibody.elastic.beam import AlongBeam, BeamSection


class CrossSection(NamedTuple):
    """The constants of cross sections along a beam, an element for each of them."""

    area: Array  # m²
    about_y: Array  # second moments [m⁴]
    about_z: Array
    torsion: Array  # m⁴
    shear_y: Array  # κ for forces along y and z
    shear_z: Array


class Material(NamedTuple):
    density: float  # kg/m³
    youngs_modulus: float  # Pa
    poisson_ratio: float

    @property
    def shear_modulus(self) -> float:
        return self.youngs_modulus / (2.0 * (1.0 + self.poisson_ratio))


def rectangle(nu: float, width: Array, height: Array) -> CrossSection:
    """width along y, height along z"""
    long, short = np.maximum(width, height), np.minimum(width, height)
    slim = short / long
    torsion = long * short**3 * (1.0 / 3.0 - 0.21 * slim * (1.0 - slim**4 / 12.0))
    shear = 10.0 * (1.0 + nu) / (12.0 + 11.0 * nu) + 0.0 * slim
    return CrossSection(width * height, width * height**3 / 12.0, height * width**3 / 12.0, torsion, shear, shear)


def circle(nu: float, diameter: Array) -> CrossSection:
    moment = np.pi * diameter**4 / 64.0
    shear = 6.0 * (1.0 + nu) / (7.0 + 6.0 * nu) + 0.0 * diameter
    return CrossSection(np.pi * diameter**2 / 4.0, moment, moment, 2.0 * moment, shear, shear)


def tube(nu: float, diameter: Array, wall: Array) -> CrossSection:
    """diameter: outer"""
    outer, inner = circle(nu, diameter), circle(nu, diameter - 2.0 * wall)
    area, moment = outer.area - inner.area, outer.about_y - inner.about_y
    hollow = (1.0 - 2.0 * wall / diameter) ** 2
    shear = 6.0 * (1.0 + nu) * (1.0 + hollow) ** 2
    shear = shear / ((7.0 + 6.0 * nu) * (1.0 + hollow) ** 2 + (20.0 + 12.0 * nu) * hollow)
    return CrossSection(area, moment, moment, 2.0 * moment, shear, shear)


def box(nu: float, width: Array, height: Array, wall: Array) -> CrossSection:
    """Outer dimensions; shear is carried by the walls along it."""
    outer = rectangle(nu, width, height)
    inner = rectangle(nu, width - 2.0 * wall, height - 2.0 * wall)
    area = outer.area - inner.area
    w, h = width - wall, height - wall
    torsion = 2.0 * wall * w**2 * h**2 / (w + h)
    shear = 2.0 * wall * w / area, 2.0 * wall * h / area
    return CrossSection(area, outer.about_y - inner.about_y, outer.about_z - inner.about_z, torsion, *shear)


# shape -> its moments from Poisson's ratio and its dimensions
SHAPES: dict[str, Callable[..., CrossSection]] = {"rectangle": rectangle, "circle": circle, "tube": tube, "box": box}
DIMENSIONS = {
    "rectangle": ("width", "height"),
    "circle": ("diameter",),
    "tube": ("diameter", "wall"),
    "box": ("width", "height", "wall"),
}


def section_of(
    shape: str, root: dict[str, float], tip: dict[str, float], length: float, material: Material
) -> BeamSection:
    """The section of a beam whose dimensions [m] change linearly from its root to its tip."""

    def part(name: str, *factors: float) -> AlongBeam:
        def at(x: Array) -> Array:
            dimensions = {key: value + (tip[key] - value) * np.asarray(x) / length for key, value in root.items()}
            found = SHAPES[shape](material.poisson_ratio, **dimensions)._asdict()
            found["polar"] = found["about_y"] + found["about_z"]
            found["sheared_y"], found["sheared_z"] = (found["area"] * found[f"shear_{axis}"] for axis in "yz")
            return found[name] * np.prod(factors)

        return at

    density, E, G = material.density, material.youngs_modulus, material.shear_modulus
    return BeamSection(
        part("area", density),
        (part("polar", density), part("about_y", density), part("about_z", density)),
        part("area", E),
        part("torsion", G),
        (part("about_y", E), part("about_z", E)),
        (part("sheared_y", G), part("sheared_z", G)),
    )
