"""Checks of loops, constraints and springs: the links and joints they name exist, and names are unique."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from cosim.core.errors import InputError, SourceLocation, did_you_mean, shortened
from cosim.mechanics.multibody.elastic.link import ElasticLink
from cosim.mechanics.multibody.joints import kind_of
from cosim.mechanics.multibody.mechanism import AppliedForce, Constraint, Frame, Joint, Link, LoopJoint, Pose, Spring

NamedItem = tuple[str, str, SourceLocation]  # (kind, name, source location)


def line_of(place: SourceLocation) -> str:
    return f" (line {place.line})" if place.line is not None else ""


def repeated_names(parts: Iterable[NamedItem]) -> list[InputError]:
    """An error for every item whose name an earlier one has; "" stands for a name that could not be read."""
    first: dict[str, NamedItem] = {}
    errors = []
    for part in parts:
        earlier = first.setdefault(part[1], part)
        if not part[1] or earlier is part:
            continue
        (what, name, place), (other, _, there) = part, earlier
        taken = "exists already" if other == what else f"has the name of a {other}"
        errors.append(InputError(f"{what} '{name}' {taken}{line_of(there)}; names must be unique", place))
    return errors


def unprintable_names(parts: Iterable[NamedItem]) -> list[InputError]:
    """An error for every item whose name is not one line of printable characters, as in signals, tables and files."""
    what = "the name of a {} must be one line of printable characters, is '{}'; rename it"
    return [InputError(what.format(kind, shortened(name)), at) for kind, name, at in parts if not name.isprintable()]


def check_attachments(
    links: Sequence[Link],
    joints: Sequence[Joint],
    loops: Sequence[LoopJoint],
    constraints: Sequence[Constraint],
    springs: Sequence[Spring],
    frames: Sequence[Frame],
    forces: Sequence[AppliedForce],
) -> list[InputError]:
    """Errors of loops, constraints, springs, frames and forces: links and joints that do not exist or do not move, a
    link connected with itself, a loop defined twice, a frame with the name of a link."""
    known = dict.fromkeys(link.name for link in links)
    attached: list[tuple[SourceLocation, tuple[str, ...]]] = []
    attached += [(loop.joint.place, (loop.joint.parent, loop.joint.child)) for loop in loops]
    attached += [(constraint.place, tuple(link for link, _ in constraint.frames)) for constraint in constraints]
    attached += [(spring.place, tuple(link for link, _ in spring.ends)) for spring in springs]
    attached += [(frame.place, (frame.link,)) for frame in frames]
    attached += [(force.place, tuple(link for link, _ in force.frames)) for force in forces]
    errors = [
        InputError(f"frame '{frame.name}' has the name of a link; give it another name", frame.place)
        for frame in frames
        if frame.name in known and all(frame.name != joint.name for joint in joints)  # else it has an error already
    ]
    for place, ends in attached:
        for link in dict.fromkeys(ends):
            if link not in known:
                errors.append(InputError(f"link '{link}' does not exist{did_you_mean(link, known)}", place))
        if len(ends) > 1 and len(set(ends)) == 1:
            errors.append(InputError(f"couples link '{ends[0]}' with itself; name two links", place))
    errors += _repeated_loops(joints, loops)
    known_joints = {joint.name: _tree_joint_error(joint) for joint in joints}
    known_joints.update({loop.joint.name: _loop_joint_error(loop) for loop in loops})
    elastic = [(link.name, link.elastic) for link in links if isinstance(link.elastic, ElasticLink)]
    modes = [f"{name}.{mode}" for name, body in elastic for mode, _ in body.modes]
    known_joints.update(dict.fromkeys(modes, "which is a mode of an elastic link; name a joint"))
    for item in (*constraints, *forces):
        errors += [InputError(what, item.place) for what in _joint_errors(item.joints, known_joints)]
    return errors


def _tree_joint_error(joint: Joint) -> str:
    """Why a joint of the tree cannot be named in a constraint, "" if it can."""
    if joint.kind == "fixed":
        return "which is fixed; name a joint that moves"
    return "" if kind_of(joint).dofs else "which has no coordinates; name another joint"


def _loop_joint_error(loop: LoopJoint) -> str:
    """Why the joint of a loop cannot be named in a constraint, "" if it can."""
    if loop.joint.kind == "fixed" or loop.coordinates:
        return _tree_joint_error(loop.joint)
    return "which closes a loop without coordinates; give it 'coordinates: true'"


def _joint_errors(names: Sequence[str], known_joints: Mapping[str, str]) -> Iterator[str]:
    for name, count in Counter(names).items():
        if name not in known_joints:
            yield f"names joint '{name}', which does not exist{did_you_mean(name, known_joints)}"
        elif known_joints[name]:
            yield f"names joint '{name}', {known_joints[name]}"
        elif count > 1:
            yield f"names joint '{name}' {count} times; name another one"


def _repeated_loops(joints: Sequence[Joint], loops: Sequence[LoopJoint]) -> list[InputError]:
    """Errors for loops that duplicate a joint or an earlier loop."""
    done: dict[tuple[str, str], list[LoopJoint]] = defaultdict(list)
    for joint in joints:
        done[joint.parent, joint.child].append(LoopJoint(joint, Pose.identity()))
    errors = []
    for loop in loops:
        same = done[loop.joint.parent, loop.joint.child]
        first = next((other.joint for other in same if _same_joint(loop, other)), None)
        if first is not None:
            what = f"duplicates joint '{first.name}'{line_of(first.place)}; keep one of them"
            errors.append(InputError(what, loop.joint.place))
        same.append(loop)
    return errors


def _same_joint(a: LoopJoint, b: LoopJoint) -> bool:
    """Whether two joints between the same links have the same kind, axis and frames."""

    def place(loop: LoopJoint) -> np.ndarray:
        poses = loop.joint.pose, loop.child_pose
        return np.concatenate([loop.joint.axis, *(x.ravel() for pose in poses for x in (pose.rotation, pose.position))])

    return a.joint.kind == b.joint.kind and np.array_equal(place(a), place(b))
