"""The effort that takes the controlled joints along their reference and leaves them their natural inertia.

effort = M(q) q̈_ref + C(q, q̇) q̇_ref + g(q) (Paden and Panja, Globally asymptotically stable PD+ controller for robot
manipulators, 1988). The Coriolis effects of the measured velocity itself are not cancelled: they do no work, and what
pushes against the joints meets a passive system. C is bilinear in both velocities and symmetric in them, so four times
C(q, q̇) q̇_ref is the difference of the efforts at q̇ + q̇_ref and q̇ − q̇_ref.
"""

from __future__ import annotations

from collections.abc import Mapping

from cosim.core import ops
from cosim.core.types import ControllerContext, Numeric, Signals, joint_signals
from cosim.plugins.controllers._required_effort import RequiredEffort


class TrackingEffort:
    """A function of the inputs `inputs` of a controller."""

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
