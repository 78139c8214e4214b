"""The programs this one is compared with, none of which it needs, and where their robots lie."""

from __future__ import annotations

import sysconfig
import xml.etree.ElementTree as ET
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from cosim.bench.timing import Block
from cosim.errors import CosimError
from cosim.multibody import Model
from cosim.multibody.description import Mechanism


class MissingPeer(CosimError):
    """A peer that a row compares with is not installed."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is not installed: pip install 'cosim[test]'")


def module(name: str) -> Any:
    """A peer's Python module. Raises MissingPeer."""
    try:
        return import_module(name)
    except ImportError:
        raise MissingPeer(name) from None


def robot(name: str) -> Path:
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
        pin = module("pinocchio")
        return cls(pin, pin.buildModelFromXML(text), model)

    @classmethod
    def from_mechanism(cls, mechanism: Mechanism, model: Model) -> Pinocchio:
        """From joints that turn about x, y or z, each after its parent, on links with inertia.

        Raises MissingPeer.
        """
        pin = module("pinocchio")
        kinds = pin.JointModelRX, pin.JointModelRY, pin.JointModelRZ
        tree, links = pin.Model(), {mechanism.root: 0}
        inertials = {link.name: link.inertial for link in mechanism.links}
        for joint in mechanism.joints:
            place = pin.SE3(joint.pose.rotation, joint.pose.position)
            body = inertials[joint.child]
            assert body is not None and joint.kind == "revolute"
            turn = kinds[list(joint.axis).index(1.0)]()
            number = tree.addJoint(links[joint.parent], turn, place, joint.name)
            tree.appendBodyToJoint(number, pin.Inertia(body.mass, body.com, body.inertia), pin.SE3.Identity())
            links[joint.child] = number
        return cls(pin, tree, model)

    def full(self, *vectors: np.ndarray) -> list[np.ndarray]:
        """Vectors in the model's coordinates, in Pinocchio's."""
        return [self.spread @ vector for vector in vectors]

    def block(self, function: str, *vectors: np.ndarray) -> Block:
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


def mujoco_arm(path: Path, step: float) -> tuple[Any, Any]:
    """(model, data) of a URDF file in MuJoCo: RK4 with `step` [s], nothing to touch, no limits.

    Raises MissingPeer.
    """
    mujoco = module("mujoco")
    text = ET.parse(path).getroot()
    ET.SubElement(ET.SubElement(text, "mujoco"), "compiler", balanceinertia="false", fusestatic="true")
    model = mujoco.MjModel.from_xml_string(ET.tostring(text, encoding="unicode"))
    model.opt.integrator, model.opt.timestep = mujoco.mjtIntegrator.mjINT_RK4, step
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    return model, mujoco.MjData(model)
