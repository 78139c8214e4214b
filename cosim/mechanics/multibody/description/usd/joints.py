"""Joints of UsdPhysics, with their limits, and their drives as servos of a rig."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from cosim.mechanics.multibody.description.joint_ranges import in_order
from cosim.mechanics.multibody.description.robot_file import FileActuator
from cosim.mechanics.multibody.description.usd.stage import UsdStage
from cosim.mechanics.multibody.mechanism import GROUND_LINK, Joint, LoopJoint, Pose

KINDS = {
    "PhysicsRevoluteJoint": "revolute",
    "PhysicsPrismaticJoint": "prismatic",
    "PhysicsSphericalJoint": "spherical",
    "PhysicsFixedJoint": "fixed",
}
SINGLE = ("revolute", "prismatic")  # kinds with one coordinate
GENERIC = "PhysicsJoint"
AXES = {"X": np.eye(3)[0], "Y": np.eye(3)[1], "Z": np.eye(3)[2]}
SLIDES, TURNS = ("transX", "transY", "transZ"), ("rotX", "rotY", "rotZ")
DEGREE = math.radians(1.0)
VENDORS = ("physx", "mjc:", "newton:")  # what engines add to joints: limits, friction, springs, mimics
ARMATURES = ("physxJoint:armature", "newton:armature", "mjc:armature")
MOST_SPEED = "physxJoint:maxJointVelocity"  # degree/s or m/s
TAKEN = {*ARMATURES, MOST_SPEED}


@dataclass
class UsdJoints:
    """The joints of a stage. bodies: path of a rigid body -> its link."""

    stage: UsdStage
    bodies: dict[str, str]
    names: dict[str, str]
    joints: list[LoopJoint] = field(default_factory=list)
    actuators: list[FileActuator] = field(default_factory=list)
    last: set[str] = field(default_factory=set)  # joints at which loops are cut

    def add(self, prim: Any) -> None:
        stage = self.stage
        if stage.value(prim, "physics:jointEnabled") is False:
            return
        kind, axis, limits, drive = self._kind(prim)
        if not kind:
            return
        ends = [self._end(prim, side) for side in ("0", "1")]
        (parent, pose), (child, child_pose) = ends
        if parent == child:
            stage.error(prim, f"the joint connects '{parent}' with itself; name two bodies")
            return
        name = self.names[str(prim.GetPath())]
        unit = self._units(kind)
        rotor = sum(stage.number(prim, key, 0.0) for key in ARMATURES) * unit.inertia
        lower, upper = in_order(*limits, partial(stage.warn, prim))
        speed = stage.number(prim, MOST_SPEED, math.inf)
        joint = Joint(
            name,
            kind,
            parent,
            child,
            pose,
            axis=axis,
            lower=lower * unit.length,
            upper=upper * unit.length,
            max_velocity=speed * unit.length if kind in SINGLE else math.inf,
            max_effort=self._most(prim, drive) * unit.effort,
            rotor_inertia=rotor if kind in SINGLE else 0.0,
            place=stage.place(prim),
        )
        self.joints.append(LoopJoint(joint, child_pose))
        if stage.value(prim, "physics:excludeFromArticulation"):
            self.last.add(name)
        if math.isfinite(stage.number(prim, "physics:breakForce", math.inf)):
            stage.warn(prim, "the joint does not break here (breakForce)")
        self._warn_of_vendors(prim)
        if drive:
            self._drive(prim, joint, drive, unit)

    # --- kinds ---

    def _kind(self, prim: Any) -> tuple[str, np.ndarray, tuple[float, float], str]:
        """(kind, axis, limits in units of the stage, name of its drive); no kind for one that is none here."""
        stage, type = self.stage, str(prim.GetTypeName())
        none = "", AXES["Z"], (-math.inf, math.inf), ""
        if type in KINDS:
            kind = KINDS[type]
            axis = AXES[str(stage.value(prim, "physics:axis") or "X")]
            if kind not in SINGLE:
                if kind == "spherical":
                    cone = [stage.number(prim, f"physics:coneAngle{k}Limit", -1.0) for k in (0, 1)]
                    if max(cone) >= 0.0:
                        stage.warn(prim, "the cone that limits a spherical joint is not taken")
                return kind, AXES["Z"], (-math.inf, math.inf), ""
            lower, upper = self._bounds(prim, "physics:{}Limit", ("lower", "upper"))
            return kind, axis, (lower, upper), "angular" if kind == "revolute" else "linear"
        if type == GENERIC:
            return self._generic(prim)
        if type == "PhysicsDistanceJoint":
            stage.warn(prim, "a distance joint is not taken; use mechanism.constraints or mechanism.springs")
        else:
            stage.error(prim, f"a joint of type {type} is not supported (supported: {', '.join([*KINDS, GENERIC])})")
        return none

    def _generic(self, prim: Any) -> tuple[str, np.ndarray, tuple[float, float], str]:
        """A joint whose kind follows from what it locks."""
        free = [dof for dof in (*SLIDES, *TURNS) if not self._locks(prim, dof)]
        unlimited = -math.inf, math.inf
        if len(free) == len(SLIDES) + len(TURNS):
            return "", AXES["Z"], unlimited, ""
        if not free:
            return "fixed", AXES["Z"], unlimited, ""
        if len(free) == 1:
            low, high = self._bounds(prim, f"limit:{free[0]}:physics:{{}}", ("low", "high"))
            return "prismatic" if free[0] in SLIDES else "revolute", AXES[free[0][-1]], (low, high), free[0]
        if free == list(TURNS):
            return "spherical", AXES["Z"], unlimited, ""
        if len(free) == 2 and free[0][-1] == free[1][-1]:
            return "cylindrical", AXES[free[0][-1]], unlimited, ""
        slides, turns = ([dof[-1] for dof in free if dof in kind] for kind in (SLIDES, TURNS))
        if len(slides) == 2 and len(turns) == 1 and turns[0] not in slides:
            return "planar", AXES[turns[0]], unlimited, ""
        self.stage.error(prim, f"a joint that leaves {', '.join(free)} free is not supported; lock some of them")
        return "", AXES["Z"], unlimited, ""

    def _bounds(self, prim: Any, form: str, ends: tuple[str, str]) -> tuple[float, float]:
        """The limits in attributes of these names, infinite without one."""
        least, most = ends
        lower = self.stage.number(prim, form.format(least), -math.inf)
        return lower, self.stage.number(prim, form.format(most), math.inf)

    def _locks(self, prim: Any, dof: str) -> bool:
        low, high = (self.stage.value(prim, f"limit:{dof}:physics:{end}") for end in ("low", "high"))
        return low is not None and high is not None and low > high

    # --- frames ---

    def _end(self, prim: Any, side: str) -> tuple[str, Pose]:
        """(link, frame of the joint in it)."""
        stage = self.stage
        target = stage.target(prim, f"physics:body{side}")
        at, scale = stage.pose(target)
        position = stage.vector(prim, f"physics:localPos{side}", (0.0, 0.0, 0.0)) * scale * stage.metre
        frame = Pose(stage.turn(prim, f"physics:localRot{side}"), position)
        body = target
        while body and str(body.GetPath()) not in self.bodies:
            body = body.GetParent()
        if not body or str(body.GetPath()) not in self.bodies:
            return GROUND_LINK, at @ frame
        if body == target:
            return self.bodies[str(body.GetPath())], frame
        return self.bodies[str(body.GetPath())], stage.pose(body)[0].inverse() @ at @ frame

    # --- what drives it ---

    @dataclass(frozen=True)
    class _Units:
        length: float  # rad or m per unit of its coordinate
        effort: float  # N m or N per unit
        inertia: float  # kg m² or kg per unit

    def _units(self, kind: str) -> _Units:
        metre, kilogram = self.stage.metre, self.stage.kilogram
        if kind == "prismatic":
            return self._Units(metre, kilogram * metre, kilogram)
        return self._Units(DEGREE, kilogram * metre**2, kilogram * metre**2)

    def _drive(self, prim: Any, joint: Joint, drive: str, unit: _Units) -> None:
        """effort = k (q_t − q) + d (v_t − v), of a servo whose control is the commanded position."""
        stage, key = self.stage, f"drive:{drive}:physics:"
        if not prim.HasAPI(stage.usd.UsdPhysics.DriveAPI, drive):
            return
        gains = (stage.number(prim, key + word, 0.0) for word in ("stiffness", "damping"))
        stiffness, damping = (gain * unit.effort / unit.length for gain in gains)
        speed = stage.number(prim, key + "targetVelocity", 0.0) * unit.length
        most = joint.max_effort
        name, place = f"{joint.name}_drive", stage.place(prim)
        if not self._is_force(prim, drive):
            lost = "its gains are accelerations, not forces"
            self.actuators.append(FileActuator(name, {joint.name: 1.0}, place=place, lost=lost))
            return
        if not stiffness and not damping:
            return
        keys: dict[str, float | str] = {"mode": "position", "gain": stiffness, "bias_position": -stiffness}
        if not stiffness:
            keys = {"mode": "velocity", "gain": damping}
        if damping:
            keys["bias_velocity"] = -damping
        if stiffness and damping * speed:
            keys["bias"] = damping * speed
        if math.isfinite(most):
            keys |= {"min_effort": -most, "max_effort": most}
        self.actuators.append(FileActuator(name, {joint.name: 1.0}, "affine_servo", keys, place))

    def _is_force(self, prim: Any, drive: str) -> bool:
        """Whether the gains of a drive are forces per deflection, not accelerations."""
        return str(self.stage.value(prim, f"drive:{drive}:physics:type") or "force") == "force"

    def _most(self, prim: Any, drive: str) -> float:
        """The largest effort of the drive of a joint in units of the stage, infinite without one."""
        if not drive or not prim.HasAPI(self.stage.usd.UsdPhysics.DriveAPI, drive) or not self._is_force(prim, drive):
            return math.inf
        return self.stage.number(prim, f"drive:{drive}:physics:maxForce", math.inf)

    def _warn_of_vendors(self, prim: Any) -> None:
        found = [
            attribute.GetName()
            for attribute in prim.GetAuthoredAttributes()
            if attribute.GetName().startswith(VENDORS) and attribute.GetName() not in TAKEN and attribute.Get()
        ]
        if found:
            verb, them = ("is", "it") if len(found) == 1 else ("are", "them")
            self.stage.warn(prim, f"{', '.join(found)} {verb} not taken; give {them} in the rig")
