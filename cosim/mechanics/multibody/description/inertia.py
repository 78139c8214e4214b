"""Inertia matrices: construction from six numbers, and the check that they are physically possible."""

from __future__ import annotations

import numpy as np

# Relative to the largest eigenvalue: a negative one below SOLVER is an error of its computation, one below ROUNDING
# comes from the digits in the file, a larger one is an error.
SOLVER = 1e-12
ROUNDING = 1e-6
TRIANGLE = 1e-3
NEGLIGIBLE_RADIUS = 1e-6  # m; an inertia below the mass times this radius squared counts as zero
IMPOSSIBLE = "the inertia is physically impossible"  # begins a note


def inertia_matrix(ixx: float, iyy: float, izz: float, ixy: float, ixz: float, iyz: float) -> np.ndarray:
    """The symmetric (3, 3) matrix of these elements."""
    return np.array([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]])


def check_inertia(mass: float, inertia: np.ndarray) -> tuple[str | None, str | None]:
    """(error, note) about the inertia (3, 3) [kg m²] about the centre of mass of a body.

    Error: an eigenvalue is negative. Zero eigenvalues are allowed, for points and thin rods. Note: the principal
    moments violate A + B >= C, which holds for every body since A + B - C = 2 ∫ z² dm, or an eigenvalue is
    negative within rounding.
    """
    smallest, middle, largest = np.linalg.eigvalsh(inertia).tolist()
    scale = max(abs(smallest), abs(largest))
    if scale <= mass * NEGLIGIBLE_RADIUS**2:
        return None, None
    if smallest < -ROUNDING * scale:
        return (
            f"the inertia is not positive definite (smallest eigenvalue {smallest:.3g} kg*m^2);"
            " check the signs and the order of its elements"
        ), None
    if smallest < -SOLVER * scale:
        return None, f"the inertia has the eigenvalue {smallest:.3g} kg*m^2, taken as rounding"
    if smallest + middle < largest * (1.0 - TRIANGLE):
        return None, (
            f"{IMPOSSIBLE}: of its principal moments {smallest:.3g},"
            f" {middle:.3g}, {largest:.3g} kg*m^2 the largest exceeds the sum of the others"
        )
    return None, None
