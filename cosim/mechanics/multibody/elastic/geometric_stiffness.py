"""Second-order displacements of a body of finite elements, from its geometric stiffness under unit loads.

A load f does the work ∫ f·½ g η η on second-order displacements g, and the prestress that it causes resists the modes
with the geometric stiffness K_g = −∫ f·g. So K_g under weight and under centrifugal forces gives the moments of g over
the mass, which are all of it that the kinetic energy has, and K_g under a force at an interface gives g there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cosim.core.types import Array
from cosim.mechanics.multibody.elastic_bodies import ModalMass

AXES = "x", "y", "z"
Files = Mapping[str, Path]  # by axis


@dataclass(frozen=True)
class GeometricStiffness:
    """Files of geometric stiffness matrices (n, n) of the body with its root held, by the axis x, y or z of a load.

    acceleration: weight at 1 m/s² along the axis; spin: centrifugal forces at 1 rad/s about the axis through the
    origin; force: of 1 N along the axis at the center of an interface, by its name. A load may be left out: then g is
    the smallest one that fits the others."""

    acceleration: Files = field(default_factory=dict)
    spin: Files = field(default_factory=dict)
    force: Mapping[str, Files] = field(default_factory=dict)

    @property
    def files(self) -> list[tuple[str, Path]]:
        """(load, file) of each, in an order of their own"""
        loads = {"acceleration": self.acceleration, "spin": self.spin}
        loads |= {f"force at {name}": files for name, files in self.force.items()}
        return sorted((f"{load} {axis}", path) for load, files in loads.items() for axis, path in files.items())

    def by_load(self, of_modes: Callable[[Path], Array]) -> ModalLoads:
        """The matrices (m, m) that of_modes makes of the files."""

        def each(files: Files) -> dict[str, Array]:
            return {axis: of_modes(path) for axis, path in files.items()}

        force = {name: each(files) for name, files in self.force.items()}
        return ModalLoads(each(self.acceleration), each(self.spin), force)


class ModalLoads(NamedTuple):
    """K_g (m, m) of modes by the axis of a load, see `GeometricStiffness`."""

    acceleration: Mapping[str, Array]
    spin: Mapping[str, Array]
    force: Mapping[str, Mapping[str, Array]]


def with_moments(modal: ModalMass, acceleration: Mapping[str, Array], spin: Mapping[str, Array]) -> ModalMass:
    """The body with the smallest affine g that has these geometric stiffnesses K_g (m, m) of its modes, by axis."""
    rows, pulls = [], []
    for axis, stiffness in acceleration.items():
        row = np.zeros_like(modal.position)
        row[:, AXES.index(axis)] = modal.fraction
        rows.append(row.ravel())
        pulls.append(stiffness)
    for axis, stiffness in spin.items():
        row = np.array(modal.position)
        row[:, AXES.index(axis)] = 0.0
        rows.append(row.ravel())
        pulls.append(stiffness)
    if not rows:
        return modal
    curve = -np.tensordot(np.linalg.pinv(np.array(rows)), np.array(pulls), 1)
    return modal._replace(curve=curve.reshape(*modal.position.shape, *pulls[0].shape).transpose(0, 2, 3, 1))


def at_node(force: Mapping[str, Array], modes: int) -> Array:
    """g (m, m, 3) of an interface, of K_g (m, m) under a force of 1 N along each axis."""
    curve = np.zeros((modes, modes, 3))
    for axis, stiffness in force.items():
        curve[..., AXES.index(axis)] = -stiffness
    return curve
