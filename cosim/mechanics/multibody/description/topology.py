"""The topology of a mechanism: checks that it is one tree and that what loops, constraints and springs name exists,
joint order, resolution of mimics.

Shared by all readers of mechanisms. All algorithms are iterative: chains may have thousands of links.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np

from cosim.core.errors import InputError, SourceLocation, did_you_mean, escaped, shortened
from cosim.mechanics.multibody.description.diagnostics import Diagnostics
from cosim.mechanics.multibody.description.doubts import doubtful_angles
from cosim.mechanics.multibody.description.follower_limits import narrowed_leaders
from cosim.mechanics.multibody.description.plausible_units import doubtful_units
from cosim.mechanics.multibody.elastic.link import ElasticLink
from cosim.mechanics.multibody.joints import kind_of
from cosim.mechanics.multibody.mechanism import (
    AppliedForce,
    Constraint,
    Contact,
    CoupledRotor,
    Frame,
    Joint,
    Link,
    LoopJoint,
    Mechanism,
    Mimic,
    Pose,
    Spring,
    TorsionSpring,
)


def build_mechanism(
    name: str,
    links: Sequence[Link],
    joints: Sequence[Joint],
    diagnostics: Diagnostics,
    loops: Sequence[LoopJoint] = (),
    constraints: Sequence[Constraint] = (),
    springs: Sequence[Spring] = (),
    frames: Sequence[Frame] = (),
    forces: Sequence[AppliedForce] = (),
    torsion_springs: Sequence[TorsionSpring] = (),
    rotors: Sequence[CoupledRotor] = (),
    contacts: Sequence[Contact] = (),
) -> Mechanism:
    """The mechanism of these parts, in their order, with mimics of mimics resolved; limits of followers narrow
    their leaders, see `narrowed_leaders`.

    Raises InputErrors with the errors of `diagnostics` and of the topology, in the order of their lines.
    """
    twice = _later_links(links)  # a body of both has one error
    named: list[NamedItem] = [("joint", j.name, j.place) for j in joints if (j.name, j.place) not in twice]
    named += [("loop", loop.joint.name, loop.joint.place) for loop in loops]
    named += [("constraint", constraint.name, constraint.place) for constraint in constraints]
    named += [("spring", spring.name, spring.place) for spring in springs]
    named += [("torsion spring", spring.name, spring.place) for spring in torsion_springs]
    named += [("frame", frame.name, frame.place) for frame in frames]
    named += [("force", force.name, force.place) for force in forces]
    named += [("rotor", rotor.name, rotor.place) for rotor in rotors]
    # those of one entry begin alike
    named += dict.fromkeys(("contact", each.name.partition("/")[0], each.place) for each in contacts)
    root, tree_errors = check_tree(links, joints)
    resolved, mimic_errors = resolve_mimics(joints)
    diagnostics.errors += tree_errors + repeated_names(named) + mimic_errors
    diagnostics.errors += unprintable_names([*(("link", link.name, link.place) for link in links), *named])
    diagnostics.errors += check_attachments(
        links, joints, loops, constraints, (*springs, *torsion_springs, *contacts), frames, forces, rotors
    )
    diagnostics.raise_errors()
    resolved = narrowed_leaders(resolved, diagnostics)
    couplings = tuple(loops), tuple(constraints), tuple(springs), tuple(frames), tuple(forces)
    found = Mechanism(escaped(name), root, tuple(links), resolved, tuple(diagnostics.notes), *couplings)
    doubts = tuple(doubtful_units(links, joints))
    warned = tuple(dict.fromkeys([*diagnostics.warnings, *doubtful_angles(diagnostics.angles), *doubts]))
    of_springs, of_rotors = tuple(torsion_springs), tuple(rotors)
    return dataclasses.replace(
        found, torsion_springs=of_springs, warnings=warned, doubts=doubts, rotors=of_rotors, contacts=tuple(contacts)
    )


def _later_links(links: Sequence[Link]) -> set[tuple[str, SourceLocation]]:
    """(name, place) of every link whose name an earlier one has."""
    names: set[str] = set()
    found = set()
    for link in links:
        if link.name in names:
            found.add((link.name, link.place))
        names.add(link.name)
    return found


def check_tree(links: Sequence[Link], joints: Sequence[Joint]) -> tuple[str, list[InputError]]:
    """(name of the root, errors): links defined twice, unknown links, loops, more than one root.

    The name "" stands for one that could not be read; it is not reported again. Roots and loops are
    checked only if every joint connects two known links, so that one error does not cause others.
    """
    known: dict[str, Link] = {}
    for link in links:
        known.setdefault(link.name, link)
    repeated = {name for name, count in Counter(link.name for link in links).items() if count > 1}
    errors = repeated_names([("link", link.name, link.place) for link in links])
    joint_above: dict[str, Joint] = {}
    connected = True
    for joint in joints:
        for role, end in (("parent", joint.parent), ("child", joint.child)):
            if end not in known:
                connected = False
                if end:
                    what = f"{role} link '{end}' does not exist{did_you_mean(end, known)}"
                    errors.append(InputError(what, joint.place))
        first = joint_above.setdefault(joint.child, joint)
        if joint.child in known and joint.child not in repeated and joint.name != first.name:
            connected = False
            if joint.parent == first.parent:
                what = (
                    f"joints '{first.name}'{line_of(first.place)} and '{joint.name}' both connect link"
                    f" '{joint.parent}' with link '{joint.child}'; keep one of them"
                )
            else:
                what = (
                    f"link '{joint.child}' is the child of joints '{first.name}'{line_of(first.place)} and"
                    f" '{joint.name}': a tree is needed; cut the loop at one of them"
                )
            errors.append(InputError(what, joint.place))
    roots = [link for link in known.values() if link.name not in joint_above]
    if connected:
        errors += _loops_and_roots(roots, joint_above)
    return roots[0].name if roots else "", errors


def _loops_and_roots(roots: Sequence[Link], joint_above: Mapping[str, Joint]) -> list[InputError]:
    errors = []
    for loop in _loops({child: joint.parent for child, joint in joint_above.items()}):
        what = f"links {_chain(loop)} form a loop: a tree is needed; cut the loop at one of its joints"
        place = min((joint_above[name].place for name in loop), key=lambda place: place.line or 0)
        errors.append(InputError(what, place))
    if len(roots) > 1:
        names = ", ".join(f"'{link.name}'" for link in roots)
        what = f"links {names} have no parent: one root is needed; connect them with joints"
        errors.append(InputError(what, roots[1].place))
    return errors


def _chain(loop: Sequence[str]) -> str:
    return " -> ".join(f"'{name}'" for name in [*loop, loop[0]])


def _loops(up: Mapping[str, str]) -> Iterator[list[str]]:
    """Every cycle of name -> up[name], once, in reverse direction: from parent to child."""
    done: set[str] = set()
    for start in up:
        path: dict[str, None] = {}
        name = start
        while name in up and name not in done and name not in path:
            path[name] = None
            name = up[name]
        if name in path:
            walk = list(path)
            yield walk[walk.index(name) :][::-1]
        done.update(path)


def resolve_mimics(joints: Sequence[Joint]) -> tuple[tuple[Joint, ...], list[InputError]]:
    """(joints, errors): the joints with each mimic's leader replaced by an independent joint.

    With q_a = m_a q_b + o_a and q_b = m_b q_c + o_b follows q_a = m_a m_b q_c + (m_a o_b + o_a).
    """
    by_name = {joint.name: joint for joint in joints}
    errors = []
    for joint in joints:
        if joint.mimic is not None and (what := _leader_error(joint.name, joint.mimic.joint, by_name)):
            errors.append(InputError(what, joint.place))
    leaders = {joint.name: joint.mimic.joint for joint in joints if joint.mimic}
    for loop in _loops({name: leader for name, leader in leaders.items() if leader != name}):
        what = f"joints {_chain(loop)} mimic each other in a loop; make one of them independent"
        errors.append(InputError(what, by_name[loop[0]].place))
    if errors:
        return tuple(joints), errors
    return tuple(_with_independent_leader(joint, by_name) for joint in joints), []


def _leader_error(name: str, leader: str, by_name: Mapping[str, Joint]) -> str | None:
    if leader not in by_name:
        others = [other for other in by_name if other not in ("", name)]
        return f"mimics joint '{leader}', which does not exist{did_you_mean(leader, others)}"
    if leader == name:
        return "mimics itself; name another joint"
    if by_name[leader].kind == "fixed":
        return f"mimics joint '{leader}', which is fixed; name a joint that moves"
    for joint in (name, leader):
        count = len(kind_of(by_name[joint]).dofs)
        if count != 1:
            return f"mimics joint '{leader}', but joint '{joint}' has {count} coordinates; both must have one"
    return None


def _with_independent_leader(joint: Joint, by_name: Mapping[str, Joint]) -> Joint:
    mimic = joint.mimic
    while mimic is not None and (further := by_name[mimic.joint].mimic) is not None:
        mimic = Mimic(
            further.joint,
            mimic.multiplier * further.multiplier,
            mimic.multiplier * further.offset + mimic.offset,
        )
    return joint if mimic is joint.mimic else dataclasses.replace(joint, mimic=mimic)


def depth_first(mechanism: Mechanism) -> list[Joint]:
    """All joints, each after the joint of its parent, depth first, siblings in file order."""
    below: dict[str, list[Joint]] = defaultdict(list)
    for joint in reversed(mechanism.joints):
        below[joint.parent].append(joint)
    order: list[Joint] = []
    stack = below[mechanism.root][:]
    while stack:
        joint = stack.pop()
        order.append(joint)
        stack += below[joint.child]
    return order


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
    springs: Sequence[Spring | TorsionSpring | Contact],
    frames: Sequence[Frame],
    forces: Sequence[AppliedForce],
    rotors: Sequence[CoupledRotor],
) -> list[InputError]:
    """Errors of loops, constraints, springs and contacts, frames, forces and rotors: links and joints that do not exist
    or do not move, a link connected with itself, a loop defined twice, a frame or a rotor with the name of a link."""
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
    return errors + _rotor_errors(rotors, known, joints, loops, known_joints)


def _rotor_errors(
    rotors: Sequence[CoupledRotor],
    links: Collection[str],
    joints: Sequence[Joint],
    loops: Sequence[LoopJoint],
    known_joints: Mapping[str, str],
) -> list[InputError]:
    """Of rotors with the name of a link, and of those that turn with what has not one coordinate."""
    several = {
        joint.name: f"which has {count} coordinates; name joints that have one"
        for joint in (*joints, *(loop.joint for loop in loops))
        if not known_joints.get(joint.name) and (count := len(kind_of(joint).dofs)) != 1
    }
    errors = [
        InputError(f"rotor '{rotor.name}' has the name of a link; give it another name", rotor.place)
        for rotor in rotors
        if rotor.name in links and rotor.name not in known_joints  # else it has an error already
    ]
    for rotor in rotors:
        names = [name for name, _ in rotor.turns]
        errors += [InputError(what, rotor.place) for what in _joint_errors(names, {**known_joints, **several})]
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
