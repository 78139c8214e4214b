"""What the model of a rig expects of a joint that is moved alone, while the other joints are off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from cosim.rig.wiring.wired_rig import WiredRig

SMALL = 1e-4  # rad or m, of a difference


class ExpectedJoint(NamedTuple):
    """inertia: (least, largest) that its drive moves [kg·m² or kg], with all others free and with all others at rest;
    gravity: effort that holds it [N·m or N]; stiffness: its change with the joint's own position, per rad or m."""

    inertia: tuple[float, float]
    gravity: float
    stiffness: float = 0.0


def expected(rig: WiredRig, positions: Mapping[str, float]) -> dict[str, ExpectedJoint]:
    """By joint, at these positions; joints without one are at their initial position."""
    model = rig.plant.model
    chart = np.array([positions.get(name, spec.initial_position) for name, spec in rig.spec.joints.items()])
    q = model.coordinates(chart)
    mass = np.atleast_2d(np.asarray(model.mass_matrix(q), dtype=float))
    gravity = np.atleast_1d(np.asarray(model.gravity_effort(q), dtype=float))
    columns = [np.ravel(model.gravity_effort(model.coordinates(chart + row))) for row in SMALL * np.eye(len(chart))]
    stiffness = [float(column[k] - gravity[k]) / SMALL for k, column in enumerate(columns)]
    free = 1.0 / np.diag(np.linalg.inv(mass))
    rows = zip(rig.joints, free, np.diag(mass), gravity, stiffness, strict=True)
    return {
        name: ExpectedJoint((float(least), float(largest)), float(effort), slope)
        for name, least, largest, effort, slope in rows
        if name in positions
    }
