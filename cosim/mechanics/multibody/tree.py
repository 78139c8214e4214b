"""From a mechanism to the tree of moving bodies for the sweeps.

Links joined by fixed joints become one body, unless the wrench in the joint is recorded. Each body's frame sits at its
joint with z along the joint's axis, so that one entry of the joint table serves every direction and constants become
exact zeros and ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

import numpy as np

from cosim.core import ops
from cosim.core.errors import InputError, InputErrors
from cosim.core.types import Array
from cosim.mechanics.multibody.bodies import AnyBody, Body
from cosim.mechanics.multibody.description.topology import depth_first
from cosim.mechanics.multibody.dynamics import articulated_resistance
from cosim.mechanics.multibody.elastic.link import ElasticLink
from cosim.mechanics.multibody.elastic_bodies import ElasticBody
from cosim.mechanics.multibody.elastic_joints import MODES
from cosim.mechanics.multibody.joint_kind import JointKind
from cosim.mechanics.multibody.joints import ROUNDING, joint_axes, kind_of
from cosim.mechanics.multibody.mechanism import CoupledRotor, Inertial, Joint, Mechanism, Pose
from cosim.mechanics.multibody.part_names import given_names, whole_of
from cosim.mechanics.multibody.sweeps import Unrolled


@dataclass(frozen=True)
class Tree:
    """Moving bodies in depth-first order: joint `joints[k]` connects body k to `parents[k]` (−1: the ground)."""

    mechanism: Mechanism
    joints: tuple[Joint, ...]
    parents: tuple[int, ...]
    kinds: tuple[JointKind, ...]
    bodies: tuple[AnyBody, ...]
    frames: dict[str, tuple[int, Pose]]  # link or named frame -> (body, its pose in the body's frame)
    rotors: tuple[CoupledRotor, ...] = ()  # that turn with several joints

    @property
    def body_links(self) -> tuple[str, ...]:
        """The links that bodies are named after, the ground first."""
        return self.mechanism.root, *(joint.child for joint in self.joints)

    @property
    def given_frames(self) -> dict[str, tuple[int, Pose]]:
        """The `frames` that a user can name."""
        return {name: self.frames[name] for name in given_names(self.frames)}

    @property
    def sweeps(self) -> Unrolled:
        return Unrolled(self.parents, self.kinds, self.bodies)

    def with_rotors(self, rotors: Sequence[np.ndarray]) -> Tree:
        """The same tree with further reflected rotor inertias, one array (nv_k,) per body."""
        bodies = tuple(b._replace(rotor=b.rotor + r) for b, r in zip(self.bodies, rotors, strict=True))
        return replace(self, bodies=bodies)

    @cached_property
    def rotor_directions(self) -> Array:
        """(dofs, rotors): by how much each of `rotors` turns per dof [rad/rad or rad/m]."""
        first = dict(zip((joint.name for joint in self.joints), _starts(kind.nv for kind in self.kinds), strict=True))
        found = np.zeros((sum(kind.nv for kind in self.kinds), len(self.rotors)))
        for k, rotor in enumerate(self.rotors):
            for joint, ratio in rotor.turns:
                found[first[joint], k] += ratio
        return found


def build_tree(mechanism: Mechanism) -> Tree:
    """Merge links joined by fixed joints, except by those whose reactions are recorded; rotate axes to z."""
    frames: dict[str, tuple[int, Pose]] = {mechanism.root: (-1, Pose.identity())}
    joints: list[Joint] = []
    parents: list[int] = []
    mounts: list[Pose] = []
    for joint in depth_first(mechanism):
        parent, pose = frames[joint.parent]
        mount = pose @ joint.pose
        if joint.kind == "fixed" and joint.name not in mechanism.reactions:
            frames[joint.child] = (parent, exact(mount))
            continue
        aligned = Pose(joint_axes(joint), np.zeros(3))
        frames[joint.child] = (len(joints), exact(aligned.inverse()))
        joints.append(joint)
        parents.append(parent)
        mounts.append(exact(mount @ aligned))
    inertials: list[list[Inertial]] = [[] for _ in joints]
    for link in mechanism.links:
        k, pose = frames[link.name]
        if k >= 0 and link.inertial is not None:
            inertials[k].append(_moved(link.inertial, pose))
    for frame in mechanism.frames:
        body, pose = frames[frame.link]
        frames[frame.name] = body, exact(pose @ frame.pose)
    kinds = tuple(map(kind_of, joints))
    rotors = [np.full(kind.nv, joint.rotor_inertia) for joint, kind in zip(joints, kinds, strict=True)]
    bodies: list[AnyBody] = list(map(_body, mounts, inertials, rotors))
    for link in mechanism.links:
        if isinstance(link.elastic, ElasticLink):
            k = frames[link.name][0]
            bodies[k] = _elastic_body(mounts[k], link.elastic)
    return Tree(mechanism, tuple(joints), tuple(parents), kinds, tuple(bodies), frames, mechanism.rotors)


def _starts(sizes: Iterable[int]) -> list[int]:
    """The index of the first element of each part."""
    return list(accumulate(sizes, initial=0))[:-1]


def _body(mount: Pose, parts: list[Inertial], rotor: np.ndarray) -> Body:
    mass = sum((p.mass for p in parts), 0.0)
    moment = sum((p.mass * p.com for p in parts), np.zeros(3))
    inertia = sum(
        (p.inertia + p.mass * (p.com @ p.com * np.eye(3) - p.com[:, None] * p.com[None, :]) for p in parts),
        np.zeros((3, 3)),
    )
    if not ops.is_symbolic(inertia):
        scale = np.abs(inertia).max(initial=0.0) * ROUNDING
        inertia = np.where(np.abs(inertia) <= scale, 0.0, inertia)
    return Body(mount.rotation, mount.position, mass, moment, inertia, rotor)


def _elastic_body(mount: Pose, link: ElasticLink) -> ElasticBody:
    rotors = np.zeros(len(link.modes))
    return ElasticBody(mount.rotation, mount.position, link.mass, link.moment, link.inertia, rotors, link.modal)


def _moved(inertial: Inertial, pose: Pose) -> Inertial:
    """An inertial of a link's frame, in the frame in which the link has `pose`."""
    r = pose.rotation
    return Inertial(inertial.mass, pose.position + r @ inertial.com, r @ inertial.inertia @ r.T)


def exact(pose: Pose) -> Pose:
    """The pose with values within rounding of 0 and ±1 made exact."""
    rotation = pose.rotation.copy()
    for value in (-1.0, 0.0, 1.0):
        rotation[np.abs(rotation - value) < ROUNDING] = value
    return Pose(rotation, np.where(np.abs(pose.position) < 1e-16, 0.0, pose.position))


NO_INERTIA = 1e-14  # of the largest inertia there could be, up to which there is none


def dofs_without_inertia(tree: Tree) -> list[Array]:
    """Per body which of its degrees of freedom, bool (nv_k,), meet no inertia: U = Sᵀ M S against an effort while the
    joints of descendants are free, in one configuration in general position. None if numbers are symbols."""
    free = [np.zeros(kind.nv, dtype=bool) for kind in tree.kinds]
    if any(ops.is_symbolic(number) for b in tree.bodies for number in (b.mass, b.moment, b.inertia, b.rotor)):
        return free
    if all(b.mass > 0 and np.linalg.eigvalsh(b.inertia)[0] > 0 for b in tree.bodies):
        return free
    q, nv = in_general_position(tree), sum(kind.nv for kind in tree.kinds)
    resistances = articulated_resistance(tree.sweeps, q, nv)
    scale = max((float(r[:, 0].max(initial=0.0)) for r in resistances), default=0.0)
    return [r[:, 0] <= NO_INERTIA * np.minimum(scale, r[:, 1]) for r in resistances]


def in_general_position(tree: Tree) -> Array:
    """Coordinates (nq,) at which nothing is orthogonal or parallel by chance."""
    rng = np.random.default_rng(0)
    return np.concatenate([kind.in_general_position(rng) for kind in tree.kinds])


def check_inertia_of_motion(tree: Tree) -> None:
    """Check that the effort of every joint meets inertia, see `dofs_without_inertia`.

    Raises InputErrors for links that can move without inertia."""
    without = zip(tree.joints, dofs_without_inertia(tree), strict=True)
    errors = [no_inertia_error(tree, joint) for joint, dofs in without if dofs.any()]
    if errors:
        raise InputErrors(errors)


def no_inertia_error(tree: Tree, joint: Joint) -> InputError:
    """Of a joint of the tree whose link can move without inertia."""
    what = f"link '{whole_of(joint.child)}' can move but has no inertia against the motion"
    fix = f"give it or its descendants mass, or make joint '{whole_of(joint.name)}' fixed"
    if joint.child + MODES in {other.child for other in tree.joints}:
        fix = f"{fix}; or take out a mode that moves it as this joint does"
    return InputError(f"{what}; {fix}", joint.place)
