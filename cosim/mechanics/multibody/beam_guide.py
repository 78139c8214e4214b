"""An elastic beam slides through a guide: the guide stays on the deformed axis, at a material coordinate that changes.

How long the overhang beyond the guide is changes with time (Vu-Quoc and Li, Dynamics of sliding geometrically-exact
beams, 1995: the sliding spaghetti problem). The guide has no friction: it exerts what is across the deformed axis.
"""

from __future__ import annotations

from collections.abc import Sequence

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.multibody.constraint_laws import (
    FORCE,
    MOMENT,
    WRENCH,
    ConstraintLaw,
    FrameState,
    ReactionSpec,
    relative_pose,
)
from cosim.mechanics.multibody.elastic.axis import ElasticAxis

RELEASED = 1.0  # m and rad, added to the residual beyond the ends: no closing of the loop makes up for it
BEYOND = "is beyond the ends of its beam; move the guide, lengthen the beam or change the initial positions"


def beam_guide(axis: ElasticAxis, along: bool) -> ConstraintLaw:
    """The first frame is the frame of the beam, the second one the guide, q are the modes of the beam. along: the guide
    is long, and its x axis stays along the beam.

    The residual is the way from the axis to the guide along y and z of the beam, then across them the angle. Beyond the
    ends of the beam nothing holds it: the residual is 1 more, and a run ends there."""

    def residual(frames: Sequence[FrameState], q: Numeric, t: Numeric) -> Numeric:
        turn, r = relative_pose(frames[0], frames[1])
        s = axis.material_coordinate(r[0], q)
        here = axis.at(s, q)
        found = [r[1] - here.position[1], r[2] - here.position[2]]
        if along:
            x, tangent = turn[:, 0], here.tangent
            found += [x[k] * tangent[0] - tangent[k] * x[0] for k in (2, 1)]
        inside = ops.logical_and(s >= 0.0, s <= axis.length)
        return ops.array(found) + ops.where(inside, 0.0, RELEASED)

    def within(frames: Sequence[FrameState]) -> Numeric:
        """Above 0 between the ends."""
        _, r = relative_pose(frames[0], frames[1])
        return r[0] * (axis.length - r[0])

    rows = [ReactionSpec("force_y", *FORCE), ReactionSpec("force_z", *FORCE)]
    rows += [ReactionSpec("moment_y", *MOMENT), ReactionSpec("moment_z", *MOMENT)] * along
    components = [WRENCH[name] for name in ("fx", "fy", "fz", *(("mx", "my", "mz") if along else ()))]
    parts = tuple(components)
    return ConstraintLaw(tuple(rows), residual, branch=within, components=parts, other_branch=BEYOND)
