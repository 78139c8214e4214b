"""Loops, mimics and gearboxes of an SDF model: which loops have coordinates, and what becomes a constraint."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from cosim.mechanics.multibody.constraint_laws import gear
from cosim.mechanics.multibody.description.sdf.joints import Gearbox, SdfJoints
from cosim.mechanics.multibody.description.spanning_tree import needs_coordinates
from cosim.mechanics.multibody.joints import unit_of
from cosim.mechanics.multibody.mechanism import Constraint, Joint, LoopJoint

PARALLEL = 1e-9  # of the axes of a gearbox and of its joints


def couplings(
    tree: Sequence[Joint], loops: Sequence[LoopJoint], joints: SdfJoints
) -> tuple[list[Joint], list[LoopJoint], list[Constraint]]:
    """(joints of the tree, loops, constraints): a mimic of or by the joint of a loop is a constraint."""
    closing = {loop.joint.name: loop.joint for loop in loops}
    of_tree: list[Joint] = []
    constraints: list[Constraint] = []
    for joint in (*tree, *closing.values()):
        mimic = joint.mimic
        if mimic is not None and (joint.name in closing or mimic.joint in closing):
            law = gear(mimic.multiplier, mimic.offset, unit_of(joint.kind) or "rad")
            name = f"{joint.name}_mimic"
            constraints.append(Constraint(name, law, joints=(joint.name, mimic.joint), place=joint.place))
            joint = replace(joint, mimic=None)
        if joint.name not in closing:
            of_tree.append(joint)
    constraints += _gears(joints)
    needed = {name for constraint in constraints for name in constraint.joints}
    found = [
        replace(
            loop,
            joint=replace(loop.joint, mimic=None),
            coordinates=loop.joint.kind != "fixed" and (loop.joint.name in needed or needs_coordinates(loop.joint)),
        )
        for loop in loops
    ]
    return of_tree, found, constraints


def _gears(joints: SdfJoints) -> Iterator[Constraint]:
    for box in joints.gearboxes:
        first, second = (_hinge(box, link, axis, joints) for link, axis in (box.first, box.second))
        if first is None or second is None:
            link = box.first[0] if first is None else box.second[0]
            what = f"no revolute joint connects '{box.base}' and '{link}' about its axis, so its gears are not taken"
            joints.values.diagnostics.warn(f"{what}; use mechanism.constraints", box.place)
            continue
        ratio = -box.ratio * first[1] * second[1]
        yield Constraint(box.name, gear(ratio), joints=(second[0], first[0]), place=box.place)


def _hinge(box: Gearbox, link: str, axis: np.ndarray, joints: SdfJoints) -> tuple[str, float] | None:
    """(the joint between the reference and a link about an axis, its sign along that axis)."""
    for each in joints.joints:
        joint = each.joint
        if joint.name not in joints.axes or {joint.parent, joint.child} != {box.base, link}:
            continue
        along = float(joints.axes[joint.name] @ axis)
        if abs(abs(along) - 1.0) <= PARALLEL:
            return joint.name, math.copysign(1.0, along) * (1.0 if joint.parent == box.base else -1.0)
    return None
