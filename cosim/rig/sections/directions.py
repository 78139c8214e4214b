"""Numbers of a mechanism that differ with the direction, and orientations, as a rig writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np

from cosim.core.types import Numeric
from cosim.mechanics.multibody.coordinates import quaternion_of
from cosim.mechanics.multibody.description.inertia import inertia_matrix
from cosim.mechanics.multibody.mechanism import pose_of
from cosim.rig.reading.schema import READERS, KeyPath, Reading, number
from cosim.rig.reading.yaml_source import YamlValue
from cosim.rig.sections.geometry import ORIGIN

UNIT_TOLERANCE = 1e-3  # of the length of a quaternion
ROUNDING = 1e-12  # of an eigenvalue, of the largest one


class Directions(tuple):
    """One number for all directions; three along x, y, z; or six of a symmetric matrix: xx, yy, zz, xy, xz, yz."""


def _directions(
    reading: Reading, hint: object, value: YamlValue, meta: Mapping[str, Any], path: KeyPath
) -> Directions | None:
    """Records numbers that are not positive semidefinite."""
    items = value if isinstance(value, list) else [value]
    if len(items) not in (1, 3, 6):
        return reading.fail(path, f"expected one number, 3 or 6, got {len(items)}")
    values = list[float]()
    for k, item in enumerate(items):
        at, bounds = (*path, k) if isinstance(value, list) else path, {"min": meta.get("min")} if k < 3 else {}
        if (found := number(item, meta.get("unit", "1"), at, reading, bounds)) is not None:
            values.append(found)
    if len(values) < len(items):
        return None
    if len(values) == 6:
        least, _, most = np.linalg.eigvalsh(inertia_matrix(*values))
        if least < -ROUNDING * most:
            return reading.fail(path, f"gives {least:.4g} in some direction; a spring or damper gives 0 or more in all")
    return Directions(values)


READERS[Directions] = _directions


def directional(given: Directions) -> Numeric:
    """One number for all directions, or a symmetric matrix (3, 3)."""
    if len(given) == 1:
        return given[0]
    return inertia_matrix(*given, *ORIGIN[len(given) - 3 :])


def _orientation(numbers: tuple[float, ...]) -> tuple[float, ...]:
    """The quaternion qx, qy, qz, qw of roll, pitch, yaw, or of one whose length is about 1."""
    if len(numbers) == 3:
        turned = quaternion_of(pose_of(ORIGIN, numbers).rotation)
        return tuple((turned / np.linalg.norm(turned)).tolist())
    if len(numbers) != 4:
        raise ValueError(f"expected 3 numbers (roll, pitch, yaw) or 4 (qx, qy, qz, qw), got {len(numbers)}")
    return of_unit_length(numbers)


def of_unit_length(numbers: tuple[float, ...]) -> tuple[float, ...]:
    """The quaternion of length 1. Raises ValueError where its length is not about 1."""
    length = float(np.linalg.norm(numbers))
    if abs(length - 1.0) > UNIT_TOLERANCE:
        raise ValueError(f"the quaternion has the length {length:.6g}; give one of length 1")
    return tuple(x / length for x in numbers)


Orientation = Annotated[tuple[float, ...], _orientation]
NOT_TURNED = (0.0, 0.0, 0.0, 1.0)
