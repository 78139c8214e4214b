"""Force laws: forces on frames of bodies and efforts on joints as functions of positions, velocities and time.

A law is what springs, dampers and drives are not: a nonlinear spring, aerodynamic drag, a magnet, a penalty contact.
Its forces are applied forces in the equations of motion. Nothing is differentiated, so they need not be smooth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from cosim.core.types import Numeric
from cosim.mechanics.multibody.constraint_laws import FrameState

ForceFunction = Callable[[Sequence[FrameState], Numeric, Numeric, Numeric], Numeric]


class ForceLaw(NamedTuple):
    """Functions of (frames, q, v, t): frames with their velocities, all in ground axes; q, v: of the joints of the law.

    wrenches: for each of the k frames the force [N] that acts at its origin, or force and moment [N m], in ground axes:
    (k, 3) or (k, 6). efforts: on the dofs of the joints, along +v [N m or N], as long as v. `timed` laws depend on t.
    """

    wrenches: ForceFunction | None = None
    efforts: ForceFunction | None = None
    timed: bool = False
