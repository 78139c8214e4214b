"""What a rig takes over of a USD file, and what of it is lost.

Format: UsdPhysics, https://openusd.org/release/api/usd_physics_page_front.html. The ground is the world of the stage,
with its axes; coordinates count from where the frames of a joint coincide, and the pose of the file is the start.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cosim.core.errors import SourceLocation
from cosim.mechanics.multibody.coordinates import quaternion_of
from cosim.mechanics.multibody.description.diagnostics import NO_CONTACTS
from cosim.mechanics.multibody.description.inertia import inertia_findings, merged_inertials
from cosim.mechanics.multibody.description.plausible_units import note_of_point_masses
from cosim.mechanics.multibody.description.robot_file import NamedState, RobotFile
from cosim.mechanics.multibody.description.spanning_tree import SpanningTree, needs_coordinates, spanning_tree
from cosim.mechanics.multibody.description.topology import build_mechanism
from cosim.mechanics.multibody.description.usd.collisions import collisions_of
from cosim.mechanics.multibody.description.usd.joints import UsdJoints
from cosim.mechanics.multibody.description.usd.masses import inertial_of
from cosim.mechanics.multibody.description.usd.stage import UsdStage
from cosim.mechanics.multibody.mechanism import GROUND_LINK, Joint, Link, LoopJoint, Pose

AT_REST = 1e-6  # rad or m: a coordinate that counts as 0, of frames in single precision


def read_usd(path: str | Path) -> RobotFile:
    """What the USD file at `path` states.

    Raises InputErrors for errors in the file, and where the package `usd-core` is missing.
    """
    stage = UsdStage.of(path)
    physics = stage.usd.UsdPhysics
    bodies = [prim for prim in stage.prims if prim.HasAPI(physics.RigidBodyAPI) and _moves(stage, prim)]
    written = [prim for prim in stage.prims if prim.IsA(physics.Joint)]
    links, names = stage.named(bodies), stage.named(written)
    joints = UsdJoints(stage, links, names)
    for prim in written:
        joints.add(prim)
    shapes = _shapes(stage, links)
    found = _links(stage, bodies, links, shapes)
    stage.diagnostics.raise_errors()
    taken = {*links.values(), *names.values(), GROUND_LINK}

    def own_name(wanted: str) -> str:
        while wanted in taken:
            wanted += "_"
        taken.add(wanted)
        return wanted

    tree = spanning_tree(found, joints.joints, joints.last, own_name)
    _warn_of_contacts(stage, shapes, tree)
    merged = merged_inertials(found, tree.joints)
    stage.diagnostics.notes += note_of_point_masses(found, tree.joints)
    for prim, link in zip(bodies, found, strict=True):
        error, note = (None, None) if link.inertial is None else inertia_findings(link.inertial, merged.get(link.name))
        if error:
            stage.error(prim, error)
        if note:
            stage.diagnostics.note(note, stage.place(prim))
    loops = [
        replace(loop, coordinates=loop.joint.kind != "fixed" and needs_coordinates(loop.joint)) for loop in tree.loops
    ]
    ground = Link(GROUND_LINK, place=SourceLocation(stage.file))
    mechanism = build_mechanism(stage.title, [ground, *found, *tree.links], tree.joints, stage.diagnostics, loops)
    poses = {links[str(prim.GetPath())]: stage.pose(prim)[0] for prim in bodies}
    start = _start(stage, tree, joints.joints, poses)
    place = SourceLocation(stage.file, key="physics:gravityMagnitude")
    collisions = collisions_of(stage, links, poses, shapes)
    actuators = tuple(joints.actuators)
    return RobotFile(mechanism, stage.gravity(), actuators, start, gravity_place=place, collisions=collisions)


def _moves(stage: UsdStage, prim: Any) -> bool:
    if stage.value(prim, "physics:kinematicEnabled"):
        stage.warn(prim, "a kinematic body has a given motion there, and stands still here; give it a moving base")
        return False
    return stage.value(prim, "physics:rigidBodyEnabled") is not False


def _shapes(stage: UsdStage, links: dict[str, str]) -> dict[str, list[Any]]:
    """Path of a body -> its shapes that collide; "" for what stands."""
    shapes: dict[str, list[Any]] = {path: [] for path in ("", *links)}
    for prim in stage.prims:
        if prim.HasAPI(stage.usd.UsdPhysics.CollisionAPI):
            owner = prim
            while owner and str(owner.GetPath()) not in links:
                owner = owner.GetParent()
            shapes[str(owner.GetPath()) if owner else ""].append(prim)
    return shapes


def _warn_of_contacts(stage: UsdStage, shapes: dict[str, list[Any]], tree: SpanningTree) -> None:
    """As of MJCF and SDF: a warning where a free robot falls through what stands, else a note where bodies could
    touch."""
    standing = shapes[""]
    touching = [found[0] for path, found in shapes.items() if path and found]
    if standing and tree.bases and touching:
        what = f"the robot falls through '{standing[0].GetName()}'; hold its base or add mechanism.contacts"
        stage.warn(standing[0], f"{NO_CONTACTS}: {what}")
    elif len(touching) + bool(standing) > 1:
        what = f"{NO_CONTACTS}: bodies move through one another"
        stage.diagnostics.note(what, stage.place(touching[0]))


def _links(stage: UsdStage, bodies: Sequence[Any], links: dict[str, str], shapes: dict[str, list[Any]]) -> list[Link]:
    found = []
    for prim in bodies:
        path = str(prim.GetPath())
        found.append(Link(links[path], inertial_of(stage, prim, shapes[path]), stage.place(prim)))
        if any(stage.vector(prim, f"physics:{key}", (0.0,) * 3).any() for key in ("velocity", "angularVelocity")):
            stage.warn(prim, "its velocity at the start is not taken; give joints.<joint>.initial")
    return found


def _start(
    stage: UsdStage, tree: SpanningTree, joints: Sequence[LoopJoint], poses: dict[str, Pose]
) -> NamedState | None:
    """The coordinates in the pose of the file."""
    poses = {GROUND_LINK: Pose.identity(), **poses}
    positions: dict[str, tuple[float, ...]] = {}
    for name, link in tree.bases.items():
        positions[name] = (*poses[link].position.tolist(), *_quaternion(poses[link].rotation))
    parents = {joint.name: joint.parent for joint in tree.joints}
    for each in joints:
        joint = each.joint
        if joint.kind == "fixed" or joint.name not in parents:
            continue
        on_parent, on_child = poses[joint.parent] @ joint.pose, poses[joint.child] @ each.child_pose
        between = on_parent.inverse() @ on_child
        if joint.kind == "spherical" and parents[joint.name] != joint.parent:
            between = between.inverse()
        found = _coordinates(joint, between)
        if found is None:
            what = f"joint '{joint.name}' is open in the pose of the file; it begins at 0"
            stage.diagnostics.note(what, joint.place)
        elif np.abs(np.subtract(found, _zero(joint))).max() > AT_REST:
            positions[joint.name] = found
    return NamedState("start", positions, place=SourceLocation(stage.file)) if positions else None


def _zero(joint: Joint) -> tuple[float, ...]:
    return (0.0, 0.0, 0.0, 1.0) if joint.kind == "spherical" else (0.0,)


def _coordinates(joint: Joint, between: Pose) -> tuple[float, ...] | None:
    """Of a joint with one coordinate or a ball; None for others. between: its frame on the child in the one on the
    parent."""
    if joint.kind == "prismatic":
        return (float(joint.axis @ between.position),)
    if joint.kind == "spherical":
        return _quaternion(between.rotation)
    if joint.kind == "revolute":
        skew = between.rotation - between.rotation.T
        sine = 0.5 * float(joint.axis @ np.array([skew[2, 1], skew[0, 2], skew[1, 0]]))
        return (math.atan2(sine, 0.5 * (float(np.trace(between.rotation)) - 1.0)),)
    return None


def _quaternion(rotation: np.ndarray) -> tuple[float, ...]:
    found = np.array(quaternion_of(rotation), dtype=float)
    return tuple((found / np.linalg.norm(found)).tolist())
