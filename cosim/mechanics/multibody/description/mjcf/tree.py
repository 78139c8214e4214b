"""The bodies and joints of a compiled model."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from cosim.core.errors import SourceLocation
from cosim.mechanics.multibody.description.mjcf.actuators import (
    damping_on,
    effort_limit,
    inertia_on,
)
from cosim.mechanics.multibody.description.mjcf.compiled import CompiledModel, rotation_of
from cosim.mechanics.multibody.mechanism import AppliedForce, Inertial, Joint, Link, Pose, Torsion
from cosim.mechanics.multibody.spring_laws import LengthLaw, along_joints


@dataclass
class MjcfTree:
    """The links and joints of a compiled model so far, and the laws of their nonlinear springs and dampers."""

    compiled: CompiledModel
    links: list[Link] = field(default_factory=list)
    joints: list[Joint] = field(default_factory=list)
    forces: list[AppliedForce] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.links.append(Link(self.compiled.name("BODY", 0), place=SourceLocation(self.compiled.file)))
        for body in range(1, self.compiled.model.nbody):
            self._add_body(body)

    def _add_body(self, body: int) -> None:
        """A body and its joints, which follow one another at massless links: MuJoCo moves a body about the anchors of
        its joints in their order."""
        model, name = self.compiled.model, self.compiled.name("BODY", body)
        parent = self.compiled.name("BODY", model.body_parentid[body])
        place = self.compiled.place("body", name)
        before = Pose(rotation_of(model.body_quat[body]), np.array(model.body_pos[body]))
        first, count = model.body_jntadr[body], model.body_jntnum[body]
        for number in range(first, first + count):
            joint, anchor = self._joint(number, parent, before)
            parent, before = joint.child, Pose(np.eye(3), -anchor)
            if number == first + count - 1 and not anchor.any():
                self.joints.append(replace(joint, child=name))
                break
            self.links.append(Link(joint.child, place=place))
            self.joints.append(joint)
        else:
            self.joints.append(Joint(f"{name}_mount", "fixed", parent, name, before, place=place))
        axes = rotation_of(model.body_iquat[body])
        inertia = axes @ np.diag(model.body_inertia[body]) @ axes.T
        mass = float(model.body_mass[body])
        inertial = Inertial(mass, np.array(model.body_ipos[body]), inertia) if mass or inertia.any() else None
        self.links.append(Link(name, inertial, place))

    def _joint(self, number: int, parent: str, before: Pose) -> tuple[Joint, np.ndarray]:
        """(the joint, its anchor in the body (3,)). before: the frame of the body in the parent, without this joint."""
        compiled, model = self.compiled, self.compiled.model
        name, kind, single = compiled.joint(number), compiled.kind(number), compiled.is_single(number)
        anchor = np.zeros(3) if kind in ("free", "prismatic") else np.array(model.jnt_pos[number])
        axis, dof = np.array(model.jnt_axis[number]), model.jnt_dofadr[number]
        start = compiled.reference(number) if single else 0.0
        if kind == "free":  # its coordinates are those in the world
            pose = Pose.identity()
        elif kind == "prismatic":
            pose = before @ Pose(np.eye(3), -start * axis)
        else:
            pose = before @ Pose(rotation_about(axis, -start) if single else np.eye(3), anchor)
        lower, upper = -math.inf, math.inf
        if single and model.jnt_limited[number] and not compiled.disables("LIMIT"):
            lower, upper = model.jnt_range[number]
        stiffness, damping = self._spring(number), self._damper(number)
        along = {"armature": model.dof_armature[dof], "friction loss": model.dof_frictionloss[dof]}
        found = [key for key, value in along.items() if value]
        if kind == "free" and found:
            verb, them = ("acts", "it") if len(found) == 1 else ("act", "them")
            what = f"its {' and '.join(found)} {verb} along the axes of the world there"
            compiled.warn(f"{what}, and along those of the body here; take {them} out", "joint", name)
        return Joint(
            name,
            kind,
            parent,
            f"{name}_link",
            pose,
            axis=axis if single else np.array([0.0, 0.0, 1.0]),
            lower=float(lower),
            upper=float(upper),
            max_effort=effort_limit(compiled, number) if single else math.inf,
            damping=damping,
            friction=0.0 if compiled.disables("FRICTIONLOSS") else float(model.dof_frictionloss[dof]),
            stiffness=stiffness if single else 0.0,
            rest=float(model.qpos_spring[model.jnt_qposadr[number]]) if single else 0.0,
            torsion=self._torsion(number, stiffness) if kind == "spherical" else None,
            rotor_inertia=float(model.dof_armature[dof]) + inertia_on(compiled, number),
            place=compiled.place("joint", name),
        ), anchor

    def _spring(self, number: int) -> float:
        """The stiffness of the spring of a joint, 0 of one that became a force law of its own."""
        compiled, name = self.compiled, self.compiled.joint(number)
        if compiled.disables("SPRING"):
            return 0.0
        linear, higher = compiled.number("jnt_stiffness", number), compiled.array("jnt_stiffnesspoly", number)
        if linear and compiled.number("jnt_springyield", number):
            compiled.warn("its spring yields, which is not simulated: it is taken as elastic", "joint", name)
        if compiled.kind(number) == "free" and (linear or higher.any()):
            what = "the spring of a free joint is not taken; use mechanism.springs and mechanism.torsion_springs"
            compiled.warn(what, "joint", name)
        if not higher.any():
            return linear
        if not compiled.is_single(number):
            compiled.warn("its stiffness grows with the deflection; only the linear part is taken", "joint", name)
            return linear
        rest = float(compiled.model.qpos_spring[compiled.model.jnt_qposadr[number]])
        self._law(number, "spring", LengthLaw(rest, rest, stiffness=(linear, *higher.tolist())))
        return 0.0

    def _damper(self, number: int) -> float:
        """The damping of a joint, 0 of one that became a force law of its own."""
        compiled, dof = self.compiled, self.compiled.model.jnt_dofadr[number]
        if compiled.disables("DAMPER"):
            return 0.0
        own = np.append(compiled.number("dof_damping", dof), compiled.array("dof_dampingpoly", dof))
        linear, *higher = (own + damping_on(compiled, number, own.size)).tolist()
        if not any(higher):
            return linear
        if not compiled.is_single(number):
            what = "its damping grows with the velocity; only the linear part is taken"
            compiled.warn(what, "joint", compiled.joint(number))
            return linear
        self._law(number, "damper", LengthLaw(0.0, 0.0, damping=(linear, *higher)))
        return 0.0

    def _law(self, number: int, what: str, law: LengthLaw) -> None:
        joint = self.compiled.joint(number)
        name, place = self.compiled.own_name(f"{joint}_{what}", what), self.compiled.place("joint", joint)
        self.forces.append(AppliedForce(name, along_joints([1.0], law), joints=(joint,), place=place))

    def _torsion(self, number: int, stiffness: float) -> Torsion | None:
        """The spring of a ball joint."""
        at = self.compiled.model.jnt_qposadr[number]
        w, *vector = self.compiled.model.qpos_spring[at : at + 4].tolist()
        return Torsion(stiffness, np.array([*vector, w])) if stiffness else None


def rotation_about(axis: np.ndarray, angle: float) -> np.ndarray:
    """(3, 3): the rotation by an angle [rad] about a unit axis (3,)."""
    return rotation_of(np.concatenate([[math.cos(angle / 2)], math.sin(angle / 2) * axis]))
