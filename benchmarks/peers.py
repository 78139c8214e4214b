"""The programs that this one is compared with (optional), and the files of their robots."""

from __future__ import annotations

import sysconfig
import xml.etree.ElementTree as ET
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.paired_timing import RepeatedCall
from cosim.core.errors import CosimError
from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.description.topology import depth_first
from cosim.mechanics.multibody.mechanism import Joint, Mechanism


class MissingPeer(CosimError):
    """A peer that a row compares with is not installed. install: how to get it."""

    def __init__(self, name: str, install: str = "pip install 'cosim[test]'") -> None:
        super().__init__(f"{name} is not installed: {install}")


def import_peer(name: str) -> Any:
    """A peer's Python module. Raises MissingPeer."""
    try:
        return import_module(name)
    except ImportError:
        raise MissingPeer(name) from None


def robot_file(name: str) -> Path:
    """A URDF file of example-robot-data, by its path in there. Raises MissingPeer."""
    path = Path(sysconfig.get_path("purelib"), "cmeel.prefix/share/example-robot-data/robots", name)
    if not path.is_file():
        raise MissingPeer("example-robot-data")
    return path


def relative_difference(found: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference over the largest expected value."""
    return float(np.abs(found - expected).max() / np.abs(expected).max())


class Pinocchio:
    """A robot in Pinocchio. `spread` is P in q_full = P q: its order of joints, and joints of its own for
    those that mimic (its `aba` takes no mimic joints), from the coordinates of `model`.

    For joints whose position is one number, without offsets of mimics.
    """

    def __init__(self, pin: Any, tree: Any, model: Model) -> None:
        self.pin, self.model, self.data = pin, tree, tree.createData()
        self.spread = np.zeros((tree.nv, model.nv))
        mimics = {joint.name: joint.mimic for joint in model.mechanism.joints if joint.mimic}
        for name in list(tree.names)[1:]:
            mimic = mimics.get(name)
            leader, factor = (mimic.joint, mimic.multiplier) if mimic else (name, 1.0)
            self.spread[tree.joints[tree.getJointId(name)].idx_v, model.joint_names.index(leader)] = factor

    @classmethod
    def from_urdf(cls, text: str, model: Model) -> Pinocchio:
        """Raises MissingPeer."""
        pin = import_peer("pinocchio")
        return cls(pin, pin.buildModelFromXML(text), model)

    @classmethod
    def from_mechanism(cls, mechanism: Mechanism, model: Model) -> Pinocchio:
        """Raises MissingPeer."""
        pin = import_peer("pinocchio")
        return cls(pin, pinocchio_tree(pin, mechanism)[0], model)

    def full(self, *vectors: np.ndarray) -> list[np.ndarray]:
        """Vectors of the model's coordinates in Pinocchio's coordinates."""
        return [self.spread @ vector for vector in vectors]

    def block(self, function: str, *vectors: np.ndarray) -> RepeatedCall:
        """n calls of `aba` or `rnea` on three vectors of the model's coordinates."""
        f, model, data, (a, b, c) = getattr(self.pin, function), self.model, self.data, self.full(*vectors)

        def block(n: int) -> None:
            call = f
            for _ in range(n):
                call(model, data, a, b, c)

        return block

    def inverse(self, q: np.ndarray, v: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        return self.spread.T @ self.pin.rnea(self.model, self.data, *self.full(q, v, qdd))

    def forward(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
        if self.spread.shape[0] == self.spread.shape[1]:
            return self.spread.T @ self.pin.aba(self.model, self.data, *self.full(q, v, tau))
        mass = self.spread.T @ self.pin.crba(self.model, self.data, self.spread @ q) @ self.spread
        return np.linalg.solve(mass, tau - self.inverse(q, v, np.zeros_like(v)))


def pinocchio_tree(pin: Any, mechanism: Mechanism) -> tuple[Any, dict[str, tuple[int, Any]]]:
    """(the tree in Pinocchio, its dofs in the order of `Model`; joint and placement of every link).

    For joints that are fixed, turn, or float freely.
    """
    tree, links = pin.Model(), {mechanism.root: (0, pin.SE3.Identity())}
    inertials = {link.name: link.inertial for link in mechanism.links}
    for joint in depth_first(mechanism):
        number, base = links[joint.parent]
        place = base * pin.SE3(joint.pose.rotation, joint.pose.position)
        if joint.kind != "fixed":
            number = tree.addJoint(number, _joint(pin, joint), place, joint.name)
            place = pin.SE3.Identity()
        links[joint.child] = number, place
        if body := inertials[joint.child]:
            tree.appendBodyToJoint(number, pin.Inertia(body.mass, body.com, body.inertia), place)
    return tree, links


def _joint(pin: Any, joint: Joint) -> Any:
    """The fastest joint model of Pinocchio for a joint."""
    if joint.kind == "free":
        return pin.JointModelFreeFlyer()
    assert joint.kind in ("revolute", "continuous")
    along = np.flatnonzero(joint.axis == 1.0)
    if len(along):
        return (pin.JointModelRX, pin.JointModelRY, pin.JointModelRZ)[along[0]]()
    return pin.JointModelRevoluteUnaligned(joint.axis)


def mujoco_arm(path: Path, step: float, integrator: str) -> tuple[Any, Any]:
    """(model, data) of a URDF file in MuJoCo: its integrator (`rk4`, `euler`, `implicitfast`) with `step` [s], without
    contacts and limits.

    Raises MissingPeer.
    """
    mujoco = import_peer("mujoco")
    text = ET.parse(path).getroot()
    ET.SubElement(ET.SubElement(text, "mujoco"), "compiler", balanceinertia="false", fusestatic="true")
    model = mujoco.MjModel.from_xml_string(ET.tostring(text, encoding="unicode"))
    model.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator.upper()}")
    model.opt.timestep = step
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    return model, mujoco.MjData(model)
