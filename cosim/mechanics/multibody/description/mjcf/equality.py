"""Equality constraints of a compiled model: loops, joints that follow others, and constraints between joints.

MuJoCo lets them give way a little (solref, solimp); here they are rigid. Rows: "Computation: constraint model" of its
documentation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from cosim.mechanics.multibody.constraint_laws import ConstraintLaw, combination, gear
from cosim.mechanics.multibody.description.mjcf.actuators import actuated_joints
from cosim.mechanics.multibody.description.mjcf.compiled import CompiledModel, rotation_of
from cosim.mechanics.multibody.description.mjcf.tendons import weights_of
from cosim.mechanics.multibody.mechanism import Constraint, Joint, LoopJoint, Mimic, Pose

TERMS = 5  # of the polynomial of a joint or tendon constraint
KNOWN = {"EQ_FLEX": "flex", "EQ_FLEXVERT": "flexvert", "EQ_FLEXSTRAIN": "flexstrain", "EQ_DISTANCE": "distance"}


@dataclass
class Equalities:
    """What the active equality constraints of a model become."""

    compiled: CompiledModel
    loops: list[LoopJoint] = field(default_factory=list)
    constraints: list[Constraint] = field(default_factory=list)
    mimics: dict[str, Mimic] = field(default_factory=dict)  # by joint

    def __post_init__(self) -> None:
        compiled, model = self.compiled, self.compiled.model
        actuated = actuated_joints(compiled)
        active = (
            [] if compiled.disables("EQUALITY") or compiled.disables("CONSTRAINT") else np.flatnonzero(model.eq_active0)
        )
        for number in map(int, active):
            if compiled.is_a(model.eq_type[number], "mjtEq", "EQ_CONNECT", "EQ_WELD"):
                self._loop(number)
            elif compiled.is_a(model.eq_type[number], "mjtEq", "EQ_JOINT"):
                self._joints(number, actuated)
            elif compiled.is_a(model.eq_type[number], "mjtEq", "EQ_TENDON"):
                self._tendons(number)
            else:
                word = next(
                    (word for name, word in KNOWN.items() if compiled.is_a(model.eq_type[number], "mjtEq", name)), ""
                )
                compiled.warn(f"the constraint {word} is not taken", "equality", compiled.name("EQUALITY", number))
        taken = len(self.loops) + len(self.constraints) + len(self.mimics)
        if taken:
            what = "equality constraints are rigid here; MuJoCo lets them give way by solref and solimp"
            compiled.diagnostics.note(what, compiled.place("equality", compiled.name("EQUALITY", int(active[0]))))

    def _loop(self, number: int) -> None:
        """A spherical joint for `connect`, a fixed one for `weld`."""
        compiled, model = self.compiled, self.compiled.model
        data, ends = model.eq_data[number], (int(model.eq_obj1id[number]), int(model.eq_obj2id[number]))
        welds = compiled.is_a(model.eq_type[number], "mjtEq", "EQ_WELD")
        if compiled.is_a(model.eq_objtype[number], "mjtObj", "OBJ_SITE"):
            (parent, pose), (child, child_pose) = map(compiled.site, ends)
        else:
            parent, child = (compiled.name("BODY", end) for end in ends)
            if welds:  # relative pose of the second body's anchor in the first one
                pose, child_pose = (
                    Pose(rotation_of(data[6:10]), np.array(data[3:6])),
                    Pose(np.eye(3), np.array(data[:3])),
                )
            else:
                pose, child_pose = (Pose(np.eye(3), np.array(point)) for point in (data[:3], data[3:6]))
        if parent == child:
            return
        element = compiled.name("EQUALITY", number)
        place = compiled.place("equality", element)
        name = compiled.own_name(element, "loop")
        joint = Joint(name, "fixed" if welds else "spherical", parent, child, pose, place=place)
        self.loops.append(LoopJoint(joint, child_pose))

    def _joints(self, number: int, actuated: set[str]) -> None:
        """q₁ − r₁ = p(q₂ − r₂), with the references r."""
        compiled, model = self.compiled, self.compiled.model
        first, second = int(model.eq_obj1id[number]), int(model.eq_obj2id[number])
        coefficients = np.array(model.eq_data[number][:TERMS])
        joints = [joint for joint in (first, second) if joint >= 0]
        names = tuple(map(compiled.joint, joints))
        shifted = _shifted(coefficients, compiled.reference(first), compiled.reference(second) if second >= 0 else 0.0)
        linear = second >= 0 and not shifted[2:].any() and shifted[1] != 0.0
        if linear and self._may_follow(names[0], names[1], actuated):
            self.mimics[names[0]] = Mimic(names[1], float(shifted[1]), float(shifted[0]))
            return
        unit = compiled.units[names[0]]
        bent = combination([1.0], [1.0] * (second >= 0), shifted.tolist(), unit)
        self._constraint(number, gear(float(shifted[1]), float(shifted[0]), unit) if linear else bent, names)

    def _may_follow(self, joint: str, leader: str, actuated: set[str]) -> bool:
        """Whether a joint may do without a coordinate of its own: no actuator acts on it, and it does not lead."""
        chain = leader
        while chain in self.mimics:
            chain = self.mimics[chain].joint
        return joint not in self.mimics and joint not in actuated and chain != joint

    def _tendons(self, number: int) -> None:
        """L₁ − r₁ = p(L₂ − r₂) of lengths of fixed tendons."""
        compiled, model = self.compiled, self.compiled.model
        ends = [int(end) for end in (model.eq_obj1id[number], model.eq_obj2id[number]) if end >= 0]
        weights = [weights_of(compiled, end) for end in ends]
        if any(each is None for each in weights):
            what = "a constraint of a spatial tendon is not taken; use mechanism.constraints of type distance"
            return compiled.warn(what, "equality", compiled.name("EQUALITY", number))
        references = [*(float(model.tendon_length0[end]) for end in ends), 0.0]
        coefficients = np.array(model.eq_data[number][:TERMS])
        given: list[Mapping[str, float]] = [each for each in weights if each is not None]
        shared = set(given[0]) & set(given[-1]) if len(given) > 1 else set()
        shifted = _shifted(coefficients, references[0], references[1])
        if shared and shifted[2:].any():
            what = f"both tendons pass joint '{sorted(shared)[0]}', with a polynomial; this is not taken"
            return compiled.warn(what, "equality", compiled.name("EQUALITY", number))
        first, second = dict(given[0]), dict(given[1]) if len(given) > 1 else {}
        if shared:  # L₁ − c₁ L₂ = c₀
            first = {name: first.get(name, 0.0) - shifted[1] * second.get(name, 0.0) for name in {**first, **second}}
            second, shifted = {}, shifted[:1]
        names = (*first, *second)
        law = combination([*first.values()], [*second.values()], shifted.tolist(), compiled.units[names[0]])
        return self._constraint(number, law, names)

    def _constraint(self, number: int, law: ConstraintLaw, names: tuple[str, ...]) -> None:
        element = self.compiled.name("EQUALITY", number)
        name = self.compiled.own_name(element, "constraint")
        self.constraints.append(Constraint(name, law, joints=names, place=self.compiled.place("equality", element)))

    def followed(self, joints: list[Joint]) -> list[Joint]:
        """The joints with their mimics."""
        return [replace(joint, mimic=self.mimics.get(joint.name)) for joint in joints]


def _shifted(coefficients: np.ndarray, first: float, second: float) -> np.ndarray:
    """The coefficients of p(x − second) + first in x."""
    moved = np.polynomial.Polynomial(coefficients)(np.polynomial.Polynomial([-second, 1.0])).coef
    moved = np.pad(moved, (0, max(TERMS - moved.size, 0)))
    moved[0] += first
    return moved
