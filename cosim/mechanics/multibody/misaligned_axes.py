"""The axes of a loop that are not quite parallel, at a right angle or through one point, named for people; see
`alignment`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from cosim.core.errors import listed
from cosim.core.types import Array
from cosim.mechanics.multibody.alignment import TOLERANCE
from cosim.mechanics.multibody.constrained_dynamics import GROUND, lowest_common_body
from cosim.mechanics.multibody.constraint_rows import BodyConstraint
from cosim.mechanics.multibody.joints import entry_of
from cosim.mechanics.multibody.mechanism import Joint, Pose
from cosim.mechanics.multibody.model import Model
from cosim.mechanics.multibody.part_names import whole_of

ROUNDING = 1e-14  # rad, of the angle between two axes
LENGTH_ROUNDING = 1e-12  # of the distance between two axes, relative to the loop
NOT_PARALLEL = 0.05  # sine of the angle between axes that may meet in a point


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
        if (miss := _worst_pair(model, constraint, q, inexact)) is not None:
            a, b = miss.joints
            what = f"the axes of '{a}' and '{b}' are {miss.text}, and {what}"
        it = "it follows" if len(inexact) == 1 else "they follow"
        yield constraint, f"{what}; its {names} count as redundant, as {it} from the other rows within {TOLERANCE:g}"


class _Axis(NamedTuple):
    """An axis of a joint in ground axes."""

    joint: str
    moves: str  # `turns` or `slides`
    direction: Array  # (3,)
    point: Array  # (3,) m, on it


class _Miss(NamedTuple):
    """How far two axes are from where they should be: by `size` of what is tolerated."""

    size: float
    joints: tuple[str, str]
    text: str  # such as `1e-05 rad from parallel`


def _worst_pair(model: Model, constraint: BodyConstraint, q: Array, inexact: Sequence[int]) -> _Miss | None:
    """The two axes of the loop that are farthest from parallel, from a right angle or from a common point, but within
    the tolerance. None if there are none."""
    axes = _axes(model, constraint, q)
    found = [miss for pair in pairwise(axes) if (miss := _angle(*pair)) is not None]
    if not (turning := [axis for axis in axes if axis.moves == "turns"]):
        return max(found, default=None)
    constraints = model.equations.constraints
    units = [row.residual_unit for member in constraints.members for row in member.law.rows]
    span = max(float(np.linalg.norm(a.point - b.point)) for a in axes for b in axes)
    largest = max([constraints.inexact[r] for r in inexact if units[r] == "m"], default=TOLERANCE * span)
    # the cut joint stands at both ends; its own two axes are parallel
    every = [_distance(a, b, largest) for k, a in enumerate(turning) for b in turning[k + 1 :] if a.joint != b.joint]
    meet_in_a_point = len(every) > 1 and all(miss is not None for miss in every)
    on_links = [_distance(a, b, largest) for a, b in pairwise(axes) if a.moves == b.moves == "turns"]
    misses = every if meet_in_a_point else on_links
    found += [miss for miss in misses if miss is not None and miss.size * largest > LENGTH_ROUNDING * (span or largest)]
    return max(found, default=None)


def _angle(a: _Axis, b: _Axis) -> _Miss | None:
    """From parallel or from a right angle, of two axes on one link."""
    off = float(np.arctan2(np.linalg.norm(np.cross(a.direction, b.direction)), abs(a.direction @ b.direction)))
    relation = "parallel" if a.moves == b.moves else "a right angle"
    angle = off if a.moves == b.moves else 0.5 * np.pi - off
    if not ROUNDING < angle <= TOLERANCE:
        return None
    return _Miss(angle / TOLERANCE, (a.joint, b.joint), f"{angle:.2g} rad from {relation}")


def _distance(a: _Axis, b: _Axis, largest: float) -> _Miss | None:
    """From meeting in a point, of two axes that are not parallel; largest: what is tolerated [m]."""
    normal = np.cross(a.direction, b.direction)
    if np.linalg.norm(normal) < NOT_PARALLEL:
        return None
    distance = float(abs((b.point - a.point) @ normal) / np.linalg.norm(normal))
    if not distance <= largest:
        return None
    return _Miss(distance / largest, (a.joint, b.joint), f"{distance:.2g} m apart")


def _axes(model: Model, constraint: BodyConstraint, q: Array) -> list[_Axis]:
    """Along a loop, from the joint that is cut back to it."""
    tree = model.equations.tree
    cut = next((loop.joint for loop in model.mechanism.loops if loop.joint.name == constraint.name), None)
    if len(constraint.frames) != 2:
        return []
    body_a, body_b = (body for body, _ in constraint.frames)
    top = lowest_common_body(tree.parents, [body_a, body_b])

    def axis(joint: Joint, body: int, frame: Pose) -> _Axis:
        place = (
            np.column_stack([frame.rotation, frame.position])
            if body == GROUND
            else np.asarray(model.equations.frame_pose(q, body, frame))[:3]
        )
        return _Axis(whole_of(joint.name), entry_of(joint).in_plane, place[:, 2], place[:, 3])

    def up(body: int) -> list[_Axis]:
        path = []
        while body != top:
            path.append(axis(tree.joints[body], body, Pose.identity()))
            body = tree.parents[body]
        return path

    ends = [axis(cut, body, frame) for body, frame in constraint.frames] if cut else []
    path = [*ends[:1], *up(body_a), *reversed(up(body_b)), *ends[1:]]
    return [each for each in path if each.moves]
