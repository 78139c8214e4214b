"""The axes of a loop that are not quite parallel or at a right angle, named for people; see `alignment`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from cosim.core.errors import listed
from cosim.core.types import Array
from cosim.mechanics.multibody.alignment import TOLERANCE
from cosim.mechanics.multibody.constrained_dynamics import GROUND, lowest_common_body
from cosim.mechanics.multibody.constraint_rows import BodyConstraint
from cosim.mechanics.multibody.joints import entry_of
from cosim.mechanics.multibody.mechanism import Pose
from cosim.mechanics.multibody.model import Model
from cosim.mechanics.multibody.part_names import whole_of

ROUNDING = 1e-14  # rad, of the angle between two axes


def describe_inexact(model: Model, q: Array) -> Iterator[tuple[BodyConstraint, str]]:
    """(constraint, what to say) of each constraint with inexact rows; q: (nq,) with closed loops."""
    constraints = model.equations.constraints
    if not constraints.inexact:
        return
    residual = dict(
        zip(np.flatnonzero(constraints.holonomic).tolist(), model.equations.closure.whole(q)[0], strict=True)
    )
    first = 0
    for constraint in constraints.members:
        rows = range(first, first := first + len(constraint.law.rows))
        inexact = [r for r in rows if r in constraints.inexact]
        if not inexact:
            continue
        specs = {r: constraint.law.rows[r - rows.start] for r in inexact}
        worst = max(inexact, key=lambda r: abs(residual[r]) / constraints.inexact[r])
        names = listed([specs[r].name for r in inexact])
        what = f"'{constraint.name}' closes to {abs(residual[worst]):.2g} {specs[worst].residual_unit} only"
        if (pair := _worst_pair(model, constraint, q)) is not None:
            angle, (a, b), relation = pair
            what = f"the axes of '{a}' and '{b}' are {angle:.2g} rad from {relation}, and {what}"
        it = "it follows" if len(inexact) == 1 else "they follow"
        yield constraint, f"{what}; its {names} count as redundant, as {it} from the other rows within {TOLERANCE:g}"


def _worst_pair(model: Model, constraint: BodyConstraint, q: Array) -> tuple[float, tuple[str, str], str] | None:
    """(angle, names, relation) of the two axes on one link of the loop that are farthest from parallel or from a right
    angle, but within the tolerance. None if there are none."""
    found = []
    for (a, moves_a, axis_a), (b, moves_b, axis_b) in pairwise(_axes(model, constraint, q)):
        off = float(np.arctan2(np.linalg.norm(np.cross(axis_a, axis_b)), abs(axis_a @ axis_b)))
        relation = "parallel" if moves_a == moves_b else "a right angle"
        angle = off if moves_a == moves_b else 0.5 * np.pi - off
        if ROUNDING < angle <= TOLERANCE:
            found.append((angle, (a, b), relation))
    return max(found, default=None)


def _axes(model: Model, constraint: BodyConstraint, q: Array) -> list[tuple[str, str, Array]]:
    """(joint, `turns` or `slides`, axis in ground axes) along a loop, from the joint that is cut back to it."""
    tree = model.equations.tree
    cut = next((loop.joint for loop in model.mechanism.loops if loop.joint.name == constraint.name), None)
    if len(constraint.frames) != 2:
        return []
    body_a, body_b = (body for body, _ in constraint.frames)
    top = lowest_common_body(tree.parents, [body_a, body_b])

    def pose(body: int, frame: Pose) -> Array:
        return frame.rotation if body == GROUND else np.asarray(model.equations.frame_pose(q, body, frame))[:3, :3]

    def up(body: int) -> list[tuple[str, str, Array]]:
        path = []
        while body != top:
            joint = tree.joints[body]
            path.append((whole_of(joint.name), entry_of(joint).in_plane, pose(body, Pose.identity())[:, 2]))
            body = tree.parents[body]
        return path

    ends = [(cut.name, entry_of(cut).in_plane, pose(b, f)[:, 2]) for b, f in constraint.frames] if cut else []
    path = [*ends[:1], *up(body_a), *reversed(up(body_b)), *ends[1:]]
    return [axis for axis in path if axis[1]]
