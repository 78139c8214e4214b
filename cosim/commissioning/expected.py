"""What the model of a rig expects of a joint that is moved alone, while the other joints are off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from cosim.rig.build.wired_rig import WiredRig


class ExpectedJoint(NamedTuple):
    """inertia: (least, largest) that its drive moves [kg·m² or kg], with all others free and with all others at rest;
    gravity: effort that holds it [N·m or N]."""

    inertia: tuple[float, float]
    gravity: float


def expected(rig: WiredRig, positions: Mapping[str, float]) -> dict[str, ExpectedJoint]:
    """By joint, at these positions; joints without one are at their initial position."""
    model = rig.plant.model
    chart = np.array([positions.get(name, spec.initial_position) for name, spec in rig.spec.joints.items()])
    q = model.coordinates(chart)
    mass = np.atleast_2d(np.asarray(model.mass_matrix(q), dtype=float))
    gravity = np.atleast_1d(np.asarray(model.gravity_effort(q), dtype=float))
    free = 1.0 / np.diag(np.linalg.inv(mass))
    return {
        name: ExpectedJoint((float(free[k]), float(mass[k, k])), float(gravity[k]))
        for k, name in enumerate(rig.joints)
        if name in positions
    }
