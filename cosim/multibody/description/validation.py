"""What couples the links of a tree, checked: loops, constraints and springs name what exists, and names are unique."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from cosim.errors import InputError, SourceLocation, did_you_mean
from cosim.multibody.joints import kind_of
from cosim.multibody.mechanism import Constraint, Joint, Link, LoopJoint, Pose, Spring

Named = tuple[str, str, SourceLocation]  # what it is, its name, where it was written


def line_of(place: SourceLocation) -> str:
    return f" (line {place.line})" if place.line is not None else ""


def repeated_names(parts: Iterable[Named]) -> list[InputError]:
    """A mistake for every part whose name another one has before it; "" is a name that could not be read."""
    first: dict[str, Named] = {}
    errors = []
    for part in parts:
        earlier = first.setdefault(part[1], part)
        if not part[1] or earlier is part:
            continue
        (what, name, place), (other, _, there) = part, earlier
        taken = "exists already" if other == what else f"has the name of a {other}"
        errors.append(InputError(f"{what} '{name}' {taken}{line_of(there)}; names must be unique", place))
    return errors


def check_attachments(
    links: Sequence[Link],
    joints: Sequence[Joint],
    loops: Sequence[LoopJoint],
    constraints: Sequence[Constraint],
    springs: Sequence[Spring],
) -> list[InputError]:
    """Mistakes of what couples a tree: links and joints that do not exist or do not move, a link coupled with itself,
    a loop given twice."""
    known = dict.fromkeys(link.name for link in links)
    coupled: list[tuple[SourceLocation, tuple[str, ...]]] = []
    coupled += [(loop.joint.place, (loop.joint.parent, loop.joint.child)) for loop in loops]
    coupled += [(constraint.place, tuple(link for link, _ in constraint.frames)) for constraint in constraints]
    coupled += [(spring.place, tuple(link for link, _ in spring.ends)) for spring in springs]
    errors = []
    for place, ends in coupled:
        for link in dict.fromkeys(ends):
            if link not in known:
                errors.append(InputError(f"link '{link}' does not exist{did_you_mean(link, known)}", place))
        if len(ends) > 1 and len(set(ends)) == 1:
            errors.append(InputError(f"couples link '{ends[0]}' with itself; name two links", place))
    errors += _repeated_loops(joints, loops)
    moving = {joint.name: _stands(joint) for joint in joints}
    moving.update({loop.joint.name: _open(loop) for loop in loops})
    for constraint in constraints:
        errors += [InputError(what, constraint.place) for what in _bad_joints(constraint.joints, moving)]
    return errors


def _stands(joint: Joint) -> str:
    """Why a joint of the tree has no coordinate to name, empty if it has one."""
    if joint.kind == "fixed":
        return "which is fixed; name a joint that moves"
    return "" if kind_of(joint).dofs else "which has no coordinates; name another joint"


def _open(loop: LoopJoint) -> str:
    """Why the joint of a loop has no coordinate to name, empty if it has one."""
    if loop.joint.kind == "fixed" or loop.coordinates:
        return _stands(loop.joint)
    return "which closes a loop without coordinates; give it 'coordinates: true'"


def _bad_joints(names: Sequence[str], moving: Mapping[str, str]) -> Iterator[str]:
    for name, count in Counter(names).items():
        if name not in moving:
            yield f"names joint '{name}', which does not exist{did_you_mean(name, moving)}"
        elif moving[name]:
            yield f"names joint '{name}', {moving[name]}"
        elif count > 1:
            yield f"names joint '{name}' {count} times; name another one"


def _repeated_loops(joints: Sequence[Joint], loops: Sequence[LoopJoint]) -> list[InputError]:
    """Loops that do what a joint or a loop before them does already."""
    done: dict[tuple[str, str], list[LoopJoint]] = defaultdict(list)
    for joint in joints:
        done[joint.parent, joint.child].append(LoopJoint(joint, Pose.identity()))
    errors = []
    for loop in loops:
        same = done[loop.joint.parent, loop.joint.child]
        first = next((other.joint for other in same if _alike(loop, other)), None)
        if first is not None:
            what = f"does what joint '{first.name}'{line_of(first.place)} does already; keep one of them"
            errors.append(InputError(what, loop.joint.place))
        same.append(loop)
    return errors


def _alike(a: LoopJoint, b: LoopJoint) -> bool:
    """Whether two joints between the same links are of one kind at one place."""

    def place(loop: LoopJoint) -> np.ndarray:
        poses = loop.joint.pose, loop.child_pose
        return np.concatenate([loop.joint.axis, *(x.ravel() for pose in poses for x in (pose.rotation, pose.position))])

    return a.joint.kind == b.joint.kind and np.array_equal(place(a), place(b))
