"""The peers of mechanisms with loops: Pinocchio's constrained dynamics, and MuJoCo's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from benchmarks import paired_timing
from benchmarks.linkages import Linkage
from benchmarks.paired_timing import Budget, RepeatedCall
from benchmarks.peers import import_peer, pinocchio_tree, relative_difference
from cosim.mechanics.multibody.mechanism import LoopJoint, Mechanism


class PinocchioMethod(NamedTuple):
    """A function of Pinocchio with its proximal settings: μ regularises rows that depend on each other, more
    iterations take the error out that this makes."""

    function: str
    mu: float
    iterations: int

    def __str__(self) -> str:
        return f"{self.function} (μ = {self.mu:g}, {self.iterations} it.)"


# for each μ the fewest iterations that can be exact; `lcaba` needs μ > 0
METHODS = (
    PinocchioMethod("constraintDynamics", 0.0, 1),
    PinocchioMethod("constraintDynamics", 1e-12, 1),
    PinocchioMethod("constraintDynamics", 1e-8, 2),
    PinocchioMethod("lcaba", 1e-8, 1),
    PinocchioMethod("lcaba", 1e-6, 2),
    PinocchioMethod("lcaba", 1e-5, 3),
    PinocchioMethod("lcaba", 1e-4, 5),
)
MAX_DIFFERENCE = 1e-8  # relative, of a method that is exact enough to be timed


class PeerMethod(NamedTuple):
    """A method, the relative difference of its result from ours, and its repeated call."""

    method: PinocchioMethod
    difference: float
    block: RepeatedCall


class ClosedPinocchio:
    """A linkage in Pinocchio, its dofs in the order of ours. A pin of a planar linkage is a contact of three
    rows, the fewest there are, of which one depends on the others; a weld has six."""

    def __init__(self, linkage: Linkage) -> None:
        """Raises MissingPeer."""
        self.pin, self.linkage = import_peer("pinocchio"), linkage
        self.model, places = pinocchio_tree(self.pin, linkage.model.mechanism)
        self.model.gravity.linear = linkage.model.gravity
        self.contacts = self.pin.StdVec_RigidConstraintModel()
        for loop in linkage.model.mechanism.loops:
            self.contacts.append(self._contact(loop, places))

    def _contact(self, loop: LoopJoint, places: dict[str, tuple[int, Any]]) -> Any:
        kind = {"fixed": self.pin.ContactType.CONTACT_6D, "revolute": self.pin.ContactType.CONTACT_3D}
        # the child first: `lcaba` reads beyond its memory where the first of the two is the ground
        ends = (loop.joint.child, loop.child_pose), (loop.joint.parent, loop.joint.pose)
        frames: list[Any] = []
        for link, pose in ends:
            number, place = places[link]
            frames += [number, place * self.pin.SE3(pose.rotation, pose.position)]
        return self.pin.RigidConstraintModel(kind[loop.joint.kind], self.model, *frames, self.pin.LOCAL)

    def rival(self, method: PinocchioMethod, ours: np.ndarray) -> PeerMethod:
        """One method, ready to be timed."""
        model, data, contacts, state = self.model, self.model.createData(), self.contacts, self.linkage.state
        known = self.pin.StdVec_RigidConstraintData([contact.createData() for contact in contacts])
        if method.function == "lcaba":
            self.pin.computeJointMinimalOrdering(model, data, contacts)
        else:
            self.pin.initConstraintDynamics(model, data, contacts, known)
        # a tolerance that is never reached: all iterations are done
        settings = self.pin.ProximalSettings(1e-300, method.mu, method.iterations)
        function, (q, v, tau) = getattr(self.pin, method.function), state
        difference = relative_difference(function(model, data, q, v, tau, contacts, known, settings), ours)

        def block(n: int) -> None:
            call = function
            for _ in range(n):
                call(model, data, q, v, tau, contacts, known, settings)

        return PeerMethod(method, difference, block)

    def fastest(self, ours: np.ndarray, budget: Budget) -> tuple[PeerMethod, float]:
        """(the fastest of the exact methods, or of all if none is exact; the smallest difference of all methods)."""
        rivals = [self.rival(method, ours) for method in METHODS]
        exact = [rival for rival in rivals if rival.difference < MAX_DIFFERENCE] or rivals
        chosen = min(exact, key=lambda rival: paired_timing.shortest_time(rival.block, budget))
        return chosen, float(np.nanmin([rival.difference for rival in rivals]))


# --- MuJoCo --------------------------------------------------------------------------------------------------------


def mujoco_linkage(linkage: Linkage) -> tuple[Any, Any]:
    """(model, data) of a planar linkage in its state; its pins are soft `connect` constraints.

    Raises MissingPeer.
    """
    mujoco = import_peer("mujoco")
    model = mujoco.MjModel.from_xml_string(_xml(linkage.model.mechanism, linkage.model.gravity))
    data = mujoco.MjData(model)
    order = [model.joint(name).dofadr[0] for name in linkage.model.dof_names]
    data.qpos[order], data.qvel[order], data.qfrc_applied[order] = linkage.state
    return model, data


def _xml(mechanism: Mechanism, gravity: np.ndarray) -> str:
    ends = [(loop.joint.parent, loop.joint.pose, "a", k) for k, loop in enumerate(mechanism.loops)]
    ends += [(loop.joint.child, loop.child_pose, "b", k) for k, loop in enumerate(mechanism.loops)]
    sites: dict[str, str] = {}
    for link, pose, side, k in ends:
        sites[link] = sites.get(link, "") + f'<site name="{side}{k}" pos="{_text(pose.position)}"/>'
    ties = "".join(f'<connect site1="a{k}" site2="b{k}"/>' for k in range(len(mechanism.loops)))
    world = sites.get(mechanism.root, "") + _bodies(mechanism, mechanism.root, sites)
    option = f'<option gravity="{_text(gravity)}"/><compiler balanceinertia="true" angle="radian"/>'
    return f"<mujoco>{option}<worldbody>{world}</worldbody><equality>{ties}</equality></mujoco>"


def _bodies(mechanism: Mechanism, parent: str, sites: dict[str, str]) -> str:
    """All that hangs on a link, as MuJoCo writes it."""
    inertials = {link.name: link.inertial for link in mechanism.links}
    parts = []
    for joint in mechanism.joints:
        own = inertials[joint.child]
        if joint.parent != parent or own is None:
            continue
        # slender rods have no inertia along them, which MuJoCo does not take
        inertia = np.maximum(np.diag(own.inertia), 1e-9 * own.mass)
        parts.append(
            f'<body name="{joint.child}" pos="{_text(joint.pose.position)}"><joint name="{joint.name}" axis="0 0 1"/>'
            f'<inertial pos="{_text(own.com)}" mass="{own.mass!r}" diaginertia="{_text(inertia)}"/>'
            f"{sites.get(joint.child, '')}{_bodies(mechanism, joint.child, sites)}</body>"
        )
    return "".join(parts)


def _text(numbers: Iterable[float]) -> str:
    return " ".join(repr(float(x)) for x in numbers)
