"""A frame of the mechanism as controllers in task space see it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.errors import InputError
from cosim.core.types import ControllerContext, Numeric, Signals, joint_signals

LEAST_MOBILITY = 1e-9  # 1/kg or 1/(kg m²) of a direction in which the frame cannot move


class TaskState(NamedTuple):
    """In ground axes, the linear part first: where the frame is from its reference, and the rate of that."""

    error: Numeric  # (6,) reference minus measured, [m] and the sine of the angle along its axis
    rate: Numeric  # (6,)
    jacobian: Numeric  # (6, n) of the controlled joints
    mobility: Numeric  # (6,) acceleration along each direction by a force of 1 along it alone, of the joints at rest


class TaskFrame:
    """A link whose reference is where the reference of the joints takes it."""

    def __init__(self, frame: str, context: ControllerContext) -> None:
        """Raises InputError for an unknown link and for closed loops."""
        model = context.model
        if model.constraint_rows:
            raise InputError("task space takes mechanisms without closed loops; use an impedance in joint space")
        self.frame, self._model, self._index = frame, model, context.index
        times = (0.0,) if model.timed else ()
        model.frame_pose(model.coordinates(np.zeros(model.nv)), frame, *times)
        feedback = joint_signals(("all_position", "all_velocity"), model.nv)
        reference = joint_signals(("reference_position", "reference_velocity"), len(context.joints))
        self.inputs: Signals = {**feedback, **reference}

    def state(self, t: Numeric, u: Mapping[str, Numeric]) -> TaskState:
        """Joints of others count as following: where they are, the reference is too."""
        model, index = self._model, self._index
        times = (t,) if model.timed else ()
        q = model.coordinates(u["all_position"])
        reference_q = model.coordinates(ops.set_at(u["all_position"], index, u["reference_position"]))
        reference_v = ops.set_at(u["all_velocity"], index, u["reference_velocity"])
        pose, wanted = (model.frame_pose(at, self.frame, *times) for at in (q, reference_q))
        J, J_reference = (model.frame_jacobian(at, self.frame, *times) for at in (q, reference_q))
        rate = J_reference @ reference_v - J @ u["all_velocity"]
        own = J[:, index]
        moved = ops.solve(self._mass(q, *times), np.transpose(own))
        mobility = ops.array([own[k] @ moved[:, k] for k in range(6)])
        return TaskState(displacement(pose, wanted), rate, own, ops.maximum(mobility, LEAST_MOBILITY))

    def between(
        self, t: Numeric, u: Mapping[str, Numeric], start: Numeric, end: Numeric
    ) -> tuple[Numeric, Numeric, Numeric]:
        """(displacement (6,) of the frame from positions `start` (n,) to `end` (n,) of the controlled joints, its
        Jacobian (6, n) at the end, their mass matrix (n, n) as measured)."""
        model, measured = self._model, u["all_position"]
        times = (t,) if model.timed else ()
        first, last = (model.coordinates(ops.set_at(measured, self._index, place)) for place in (start, end))
        poses = (model.frame_pose(q, self.frame, *times) for q in (first, last))
        jacobian = model.frame_jacobian(last, self.frame, *times)[:, self._index]
        return displacement(*poses), jacobian, self._mass(model.coordinates(measured), *times)

    def _mass(self, q: Numeric, *times: Numeric) -> Numeric:
        """(n, n) of the controlled joints."""
        return self._model.mass_matrix(q, *times)[np.ix_(self._index, self._index)]


def displacement(start: Numeric, end: Numeric) -> Numeric:
    """(6,) from a pose (4, 4) to another: the way, and the sine of the angle along its axis."""
    turn = 0.5 * ops.sum(ops.cross(start[:3, k], end[:3, k]) for k in range(3))
    return ops.concatenate([end[:3, 3] - start[:3, 3], turn])
