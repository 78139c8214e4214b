"""MJCF files: bodies, joints and inertias as MuJoCo's own compiler has them, with the optional package `mujoco`.

What a mechanism of this program does not have (contacts, tendons, equality constraints, actuators, …) is dropped, with
a note. Format: the MuJoCo XML reference, https://mujoco.readthedocs.io/en/stable/XMLreference.html.
"""

from __future__ import annotations

import importlib
import math
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from cosim.core.errors import InputError, InputErrors, SourceLocation, plural
from cosim.core.paths import UNTRACKED, NotAFile, check_file
from cosim.core.trust.data_only import MJCF, refuse_code
from cosim.mechanics.multibody.description.diagnostics import Diagnostics
from cosim.mechanics.multibody.description.robot_file import RobotFile
from cosim.mechanics.multibody.description.topology import build_mechanism
from cosim.mechanics.multibody.mechanism import Inertial, Joint, Link, Pose, Torsion

INSTALL = "pip install mujoco"
KINDS = ("free", "spherical", "prismatic", "revolute")  # by MuJoCo's number of the joint type
DISABLE_GRAVITY = 1 << 7  # mjDSBL_GRAVITY
_LINE = re.compile(r"line (\d+)")

# count of the compiled model -> what is dropped
NOT_READ = {
    "nu": "actuator",
    "neq": "equality constraint",
    "ntendon": "tendon",
    "ngravcomp": "gravity compensation",
    "nflex": "flexible object",
    "nmocap": "mocap motion",
    "nplugin": "plugin",
}


def read_mjcf(path: str | Path) -> RobotFile:
    """What the MJCF file at `path` states; armature is the rotor inertia of its joints.

    Raises InputErrors for a file that MuJoCo refuses, and where the package `mujoco` is missing.
    """
    file = str(path)
    refuse_code(Path(file).name, MJCF, SourceLocation(file))
    mujoco = _import(file)
    sys.audit(UNTRACKED, file)
    try:
        check_file(file)
        model = mujoco.MjModel.from_xml_path(file)
    except NotAFile as error:
        raise InputErrors([InputError(f"cannot be read: {error.strerror}", SourceLocation(file))]) from None
    except ValueError as error:
        text = " ".join(str(error).removeprefix("XML Error: ").removeprefix("Error: ").split())
        line = _LINE.search(text)
        place = SourceLocation(file, int(line[1]) if line else None)
        raise InputErrors([InputError(f"MuJoCo cannot compile the file: {text}", place)]) from None
    reader = _Reader(mujoco, model, file)
    for what in _dropped(model):
        reader.diagnostics.warn(what, SourceLocation(file))
    if np.any((np.asarray(model.geom_contype) != 0) | (np.asarray(model.geom_conaffinity) != 0)):
        reader.diagnostics.note("dropped: contacts", SourceLocation(file))
    for body in range(1, model.nbody):
        reader.add_body(body)
    name = model.names[: model.names.index(b"\0")].decode() or Path(file).stem
    mechanism = build_mechanism(name, reader.links, reader.joints, reader.diagnostics)
    return RobotFile(mechanism, gravity_of(model))


def gravity_of(model: Any) -> tuple[float, float, float]:
    """The gravity of the file [m/s²], 0 where a flag disables it."""
    disabled = model.opt.disableflags & DISABLE_GRAVITY
    x, y, z = (0.0, 0.0, 0.0) if disabled else model.opt.gravity.tolist()
    return x, y, z


def _import(file: str) -> ModuleType:
    try:
        return importlib.import_module("mujoco")
    except ImportError:
        what = f"MJCF needs the package mujoco, which is not installed; {INSTALL}"
        raise InputErrors([InputError(what, SourceLocation(file))]) from None


def _dropped(model: Any) -> Iterator[str]:
    """What the file has and the mechanism does not."""
    counts = {word: int(getattr(model, key, 0)) for key, word in NOT_READ.items()}
    dropped = [f"{n} {plural(n, word)}" for word, n in counts.items() if n]
    if model.opt.density or model.opt.viscosity:
        dropped.append("forces of the fluid")
    if any(np.any(getattr(model, key, 0.0)) for key in ("dof_dampingpoly", "jnt_stiffnesspoly")):
        dropped.append("nonlinear damping and stiffness")
    if dropped:
        yield f"dropped: {', '.join(dropped)}"


@dataclass
class _Reader:
    """The links and joints of a compiled model so far."""

    mujoco: ModuleType
    model: Any
    file: str
    links: list[Link] = field(default_factory=list)
    joints: list[Joint] = field(default_factory=list)
    diagnostics: Diagnostics = field(default_factory=Diagnostics)

    def __post_init__(self) -> None:
        self.links.append(Link(self.name("BODY", 0), place=SourceLocation(self.file)))

    def name(self, kind: str, number: int) -> str:
        found = self.mujoco.mj_id2name(self.model, getattr(self.mujoco.mjtObj, f"mjOBJ_{kind}"), number)
        return found or f"{kind.lower()}_{number}"

    def add_body(self, body: int) -> None:
        """A body and its joints, which follow one another at massless links: MuJoCo moves a body about the anchors of
        its joints in their order."""
        model, name = self.model, self.name("BODY", body)
        parent = self.name("BODY", model.body_parentid[body])
        place = SourceLocation(self.file, key=f"body '{name}'")
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
        model, name = self.model, self.name("JOINT", number)
        kind = KINDS[model.jnt_type[number]]
        anchor = np.zeros(3) if kind in ("free", "prismatic") else np.array(model.jnt_pos[number])
        axis, dof = np.array(model.jnt_axis[number]), model.jnt_dofadr[number]
        single = kind in ("prismatic", "revolute")
        start = float(model.qpos0[model.jnt_qposadr[number]]) if single else 0.0
        if kind == "free":  # its coordinates are those in the world
            pose = Pose.identity()
        elif kind == "prismatic":
            pose = before @ Pose(np.eye(3), -start * axis)
        else:
            pose = before @ Pose(rotation_about(axis, -start) if single else np.eye(3), anchor)
        stiffness = float(np.ravel(model.jnt_stiffness)[number]) if single else 0.0
        torsion = self._torsion(number) if kind == "spherical" else None
        if kind == "free" and np.ravel(model.jnt_stiffness)[number]:
            self.diagnostics.note(f"dropped: the spring of joint '{name}'", SourceLocation(self.file))
        lower, upper = model.jnt_range[number] if single and model.jnt_limited[number] else (-math.inf, math.inf)
        return Joint(
            name,
            kind,
            parent,
            f"{name}_link",
            pose,
            axis=axis if single else np.array([0.0, 0.0, 1.0]),
            lower=float(lower),
            upper=float(upper),
            max_effort=self._effort(number) if single else math.inf,
            damping=float(np.ravel(model.dof_damping)[dof]),
            friction=float(model.dof_frictionloss[dof]),
            stiffness=stiffness,
            rest=float(model.qpos_spring[model.jnt_qposadr[number]]) if single else 0.0,
            torsion=torsion,
            rotor_inertia=float(model.dof_armature[dof]),
            place=SourceLocation(self.file, key=f"joint '{name}'"),
        ), anchor

    def _torsion(self, number: int) -> Torsion | None:
        """The spring of a ball joint."""
        stiffness, at = float(np.ravel(self.model.jnt_stiffness)[number]), self.model.jnt_qposadr[number]
        w, *vector = self.model.qpos_spring[at : at + 4].tolist()
        return Torsion(stiffness, np.array([*vector, w])) if stiffness else None

    def _effort(self, number: int) -> float:
        """The limit of the effort of all actuators of a joint, infinite where there is none."""
        model = self.model
        if model.jnt_actfrclimited[number]:
            return float(np.abs(model.jnt_actfrcrange[number]).max())
        limits = [
            float(np.abs(model.actuator_forcerange[k]).max() * abs(model.actuator_gear[k][0]))
            for k in range(model.nu)
            if model.actuator_trntype[k] == self.mujoco.mjtTrn.mjTRN_JOINT
            and model.actuator_trnid[k][0] == number
            and model.actuator_forcelimited[k]
        ]
        return sum(limits) if limits else math.inf


def rotation_of(quaternion: np.ndarray) -> np.ndarray:
    """(3, 3) of a unit quaternion w, x, y, z (4,)."""
    w, x, y, z = quaternion
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def rotation_about(axis: np.ndarray, angle: float) -> np.ndarray:
    """(3, 3): the rotation by an angle [rad] about a unit axis (3,)."""
    return rotation_of(np.concatenate([[math.cos(angle / 2)], math.sin(angle / 2) * axis]))
