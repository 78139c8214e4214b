"""The effort that given accelerations of the controlled joints require in the whole mechanism.

Hybrid dynamics (Featherstone, Rigid Body Dynamics Algorithms, §9.1): the controlled joints get the given accelerations,
prescribed ones their motion, locked ones rest, and all others move under their measured effort, 0 of a passive joint.
So two controllers share an arm, each with the efforts of the other. Closed loops and floating bases are
part of the equations.
"""

from __future__ import annotations

from collections.abc import Mapping

from cosim.core import ops
from cosim.core.types import ALL, Array, ControllerContext, Numeric, Signals, joint_signals

CREEP_SPEED = 0.01  # rad/s or m/s, below which dry friction is smoothed


def drive_friction(viscous: Numeric, coulomb: Numeric, velocity: Numeric) -> Numeric:
    """Friction (n,) of drives at these velocities of their joints, which the mechanism does not have."""
    return ops.array(viscous) * velocity + ops.array(coulomb) * ops.smooth_sign(velocity, CREEP_SPEED)


class RequiredEffort:
    """A function of the inputs `inputs` of a controller."""

    def __init__(self, context: ControllerContext, index: Array | None = None) -> None:
        """index: (n,) of the joints whose accelerations are given, by default the controller's."""
        self.inputs: Signals = joint_signals(ALL, context.model.nv)
        self._equations = context.model.equations
        self._index = context.index if index is None else index
        self._known = context.prescribed.copy()
        self._known[self._index] = True

    def __call__(
        self,
        t: Numeric,
        u: Mapping[str, Numeric],
        acceleration: Numeric,
        friction_velocity: Numeric,
        position: Numeric = None,
        velocity: Numeric = None,
    ) -> Numeric:
        """Effort (n,) of the controlled joints for their `acceleration` (n,).

        u: the inputs; friction_velocity: (n,) at which the friction of the controlled joints is compensated, None: it
        is not; position, velocity: (n,) of the controlled joints, by default as measured. A locked joint
        stays where it is measured.
        """
        equations, index, locked = self._equations, self._index, u["all_locked"] > 0.5
        chart = u["all_position"] if position is None else ops.set_at(u["all_position"], index, position)
        v = u["all_velocity"] if velocity is None else ops.set_at(u["all_velocity"], index, velocity)
        a = ops.set_at(u["all_acceleration"], index, acceleration)
        chart = ops.where(locked, u["all_position"], chart)
        v, a = ops.where(locked, 0.0, v), ops.where(locked, 0.0, a)
        known = ops.logical_or(self._known, locked)
        q = equations.coordinates(chart)
        applied = u["all_effort"] - equations.friction_effort(v)
        _, effort = equations.hybrid_dynamics(q, v, a, applied, known, t)
        if friction_velocity is not None:
            effort = effort + equations.friction_effort(ops.set_at(v, index, friction_velocity))
        return effort[index]


class TrackingEffort:
    """The effort that takes the controlled joints along their reference and leaves them their natural inertia, a
    function of the inputs `inputs` of a controller.

    effort = M(q) q̈_ref + C(q, q̇) q̇_ref + g(q) (Paden and Panja, Globally asymptotically stable PD+ controller for
    robot manipulators, 1988). The Coriolis effects of the measured velocity itself are not cancelled: they do no work,
    and what pushes against the joints meets a passive system. C is bilinear in both velocities and symmetric in them,
    so four times C(q, q̇) q̇_ref is the difference of the efforts at q̇ + q̇_ref and q̇ − q̇_ref.
    """

    def __init__(self, context: ControllerContext) -> None:
        self._required = RequiredEffort(context)
        self._rest = ops.zeros(len(context.joints))
        own = ("velocity", "reference_velocity", "reference_acceleration", "reference_effort")
        self.inputs: Signals = {**joint_signals(own, len(context.joints)), **self._required.inputs}

    def __call__(self, t: Numeric, u: Mapping[str, Numeric], friction: bool) -> Numeric:
        """Effort (n,) of the controlled joints, with the effort of the reference; friction: compensate that at the
        velocity of the reference."""
        measured, wanted, rest = u["velocity"], u["reference_velocity"], self._rest
        at_velocity = wanted if friction else None
        effort = self._required(t, u, u["reference_acceleration"], at_velocity, velocity=rest)
        sum_of, difference = (self._required(t, u, rest, None, velocity=measured + s * wanted) for s in (1.0, -1.0))
        return effort + 0.25 * (sum_of - difference) + u["reference_effort"]
