"""Inertia matrices: from six numbers, and what makes one impossible."""

from __future__ import annotations

import numpy as np

# Relative to the largest eigenvalue: below SOLVER a negative one comes from computing it, below ROUNDING from
# the digits of the file, above that the matrix is wrong.
SOLVER = 1e-12
ROUNDING = 1e-6
TRIANGLE = 1e-3
NEGLIGIBLE_RADIUS = 1e-6  # m; an inertia below that of the mass at this radius is a zero that was computed


def inertia_matrix(ixx: float, iyy: float, izz: float, ixy: float, ixz: float, iyz: float) -> np.ndarray:
    """The symmetric (3, 3) matrix of these elements."""
    return np.array([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]])


def check_inertia(name: str, mass: float, inertia: np.ndarray) -> tuple[str | None, str | None]:
    """(mistake, note) about the inertia (3, 3) [kg m²] about the centre of mass of the link called `name`.

    A mistake: an eigenvalue is negative. Zero eigenvalues stand, for points and thin rods. A note: the
    principal moments break A + B >= C, which holds for every body since A + B - C = 2 ∫ z² dm, or an
    eigenvalue is negative by the rounding of the file's digits.
    """
    smallest, middle, largest = np.linalg.eigvalsh(inertia).tolist()
    scale = max(abs(smallest), abs(largest))
    if scale <= mass * NEGLIGIBLE_RADIUS**2:
        return None, None
    if smallest < -ROUNDING * scale:
        return (
            f"inertia of link '{name}' is not positive definite (smallest eigenvalue {smallest:.3g} kg*m^2);"
            " check the signs and the order of its elements"
        ), None
    if smallest < -SOLVER * scale:
        return None, f"inertia of link '{name}' has the eigenvalue {smallest:.3g} kg*m^2, taken as rounding"
    if smallest + middle < largest * (1.0 - TRIANGLE):
        return None, (
            f"no body has the inertia of link '{name}': of its principal moments {smallest:.3g},"
            f" {middle:.3g}, {largest:.3g} kg*m^2 the largest exceeds the sum of the others"
        )
    return None, None
