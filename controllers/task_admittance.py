"""Admittance control in task space: what pushes against a frame moves its setpoint like a mass on a spring.

M ẅ + D ẇ + K w = F_ext in ground axes. F_ext is the force at the frame that has the external effort of the joints,
see `_external_effort`: J̄ᵀ τ_ext with the inverse J̄ = M⁻¹ Jᵀ Λ that is consistent with the inertia (Khatib 1987). The
setpoint of the joints moves by J⁺ ẇ; w is measured by where it takes the frame. A stiff loop in the drive follows the
setpoint, with the effort that it requires and −τ_ext. The orientation is kept unless it has an inertia.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cosim.core import ops
from cosim.core.types import (
    COMMAND,
    REFERENCE,
    ControllerContext,
    Numeric,
    PerJoint,
    State,
    joint_signals,
    param,
    params,
)
from cosim.plugins.controllers._external_effort import ExternalEffort, next_rate
from cosim.plugins.controllers._required_effort import RequiredEffort
from cosim.plugins.controllers._task_space import TaskFrame

SINGULAR = 1e-6  # what is added to Jᵀ J, relative to its trace, so that its inverse is finite at singularities
Vector = tuple[float, float, float]


@params
class Params:
    frame: str = param(doc="a link of the mechanism")
    mass: Vector = param(unit="kg", above=0, doc="M along x, y, z of the ground")
    damping: Vector = param(unit="N*s/m", min=0, doc="D along x, y, z")
    stiffness: Vector = param(unit="N/m", min=0, doc="K along x, y, z; 0: the frame stays where it is pushed to")
    kp: PerJoint = param(unit="joint stiffness", min=0, doc="of the loop that follows the setpoint")
    kd: PerJoint = param(unit="joint damping", min=0, doc="of the same")
    rotational_inertia: float | None = param(unit="kg*m^2", above=0, default=None, doc="default: no rotation")
    rotational_damping: float = param(unit="N*m*s/rad", min=0, default=0.0, doc="of the orientation")
    rotational_stiffness: float = param(unit="N*m/rad", min=0, default=0.0, doc="of the orientation")
    bandwidth: float = param(unit="Hz", above=0, default=30.0, doc="of the external effort")
    friction: bool = param(default=True, doc="compensate the joints' friction at the velocity of the setpoint")


class TaskAdmittance:
    def __init__(self, params: Params, context: ControllerContext) -> None:
        n = len(context.joints)
        self.params, self._period, self._n = params, context.period, n
        self._task = TaskFrame(params.frame, context)
        self._external = ExternalEffort(params.bandwidth, context)
        self._required = RequiredEffort(context)
        own = {**self._external.inputs, **self._required.inputs, **self._task.inputs}
        self.inputs = {**joint_signals(REFERENCE, n), **own}
        self.outputs = joint_signals(COMMAND, n)

    def initial(self) -> State:
        rest = ops.zeros(self._n)
        return {"external": self._external.initial(), "offset": rest, "joint_rate": rest, "rate": ops.zeros(6)}

    def update(self, t: Numeric, p: Params, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        external_state, external = self._external(t, x["external"], u)
        setpoint = u["reference_position"] + x["offset"]
        moved, J, mass = self._task.between(t, u, u["reference_position"], setpoint)
        force = J @ _solved(J, mass, external)
        rate = next_rate(moved, x["rate"], force, *self._law(p), self._period)
        if p.rotational_inertia is None:
            rate = ops.concatenate([rate[:3], np.zeros(3)])
        joint_rate = _solved(J, np.eye(self._n), J.T @ rate)
        acceleration = u["reference_acceleration"] + (joint_rate - x["joint_rate"]) / self._period
        velocity = u["reference_velocity"] + joint_rate
        offset = x["offset"] + self._period * joint_rate
        effort = self._required(t, u, acceleration, velocity if p.friction else None) - external
        state = {"external": external_state, "offset": offset, "joint_rate": joint_rate, "rate": rate}
        return state, {
            "position": u["reference_position"] + offset,
            "velocity": velocity,
            "effort": effort + u["reference_effort"],
            "kp": ops.array(p.kp),
            "kd": ops.array(p.kd),
        }

    @staticmethod
    def _law(p: Params) -> tuple[Numeric, Numeric, Numeric]:
        """Mass, damping and stiffness, (6,) each."""
        inertia = 1.0 if p.rotational_inertia is None else p.rotational_inertia
        pairs = (p.mass, inertia), (p.damping, p.rotational_damping), (p.stiffness, p.rotational_stiffness)
        mass, damping, stiffness = (ops.concatenate([ops.array(a), ops.array([b, b, b])]) for a, b in pairs)
        return mass, damping, stiffness


def _solved(jacobian: Numeric, weight: Numeric, right: Numeric) -> Numeric:
    """(Jᵀ J + μ W)⁻¹ right, (n,), with a μ that is small. J (Jᵀ J + μ M)⁻¹ is (J M⁻¹ Jᵀ + μ)⁻¹ J M⁻¹ = J̄ᵀ."""
    square, n = jacobian.T @ jacobian, len(right)
    trace_of_square, trace_of_weight = (ops.sum(matrix[k, k] for k in range(n)) for matrix in (square, weight))
    return ops.solve(square + SINGULAR * trace_of_square / trace_of_weight * weight, right)


def load(params: Params, context: ControllerContext) -> TaskAdmittance:
    return TaskAdmittance(params, context)
