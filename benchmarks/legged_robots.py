"""Robots with legs that stand or drop on spheres under PD drives: as rig files, and in MuJoCo from the same URDF file.

Meshes, dry friction, damping and limits of the joints and couplings of grippers are left out on both sides.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers import import_peer, robot_file
from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.description.urdf import parse_urdf
from cosim.mechanics.multibody.mechanism import with_floating_base

FRICTION = 0.7
BASE = "root_joint"
LEFT_OUT = {"visual", "collision", "transmission", "gazebo", "material", "mimic", "dynamics"}
LIGHT = {"boundmass": "1e-9", "boundinertia": "1e-12", "balanceinertia": "true", "fusestatic": "false"}

Sphere = tuple[str, tuple[float, float, float], float]  # link, centre in it [m], radius [m]


@dataclass(frozen=True)
class LeggedRobot:
    """A robot of example-robot-data. kp [N m/rad], kd [N m s/rad]: of all joints; posture: group in `srdf`, or the
    positions of joints [rad]; the rest is at 0."""

    name: str
    urdf: str
    feet: tuple[Sphere, ...]
    kp: float
    kd: float
    posture: Mapping[str, float] | str
    srdf: str = ""

    @cached_property
    def text(self) -> str:
        """Its URDF file with what both programs simulate. Raises MissingPeer."""
        tree = ET.fromstring(robot_file(self.urdf).read_text())
        for parent in list(tree.iter()):
            for child in list(parent):
                if child.tag in LEFT_OUT:
                    parent.remove(child)
        return ET.tostring(tree, encoding="unicode")

    @cached_property
    def model(self) -> Model:
        return Model(with_floating_base(parse_urdf(self.text)))

    @cached_property
    def joints(self) -> dict[str, float]:
        """Joint with a drive -> its position in the posture."""
        posture = self.posture if isinstance(self.posture, Mapping) else dict(self._group(self.posture))
        return {name: posture.get(name, 0.0) for name in self.model.joint_names if name != BASE}

    def _group(self, name: str) -> Iterator[tuple[str, float]]:
        for group in ET.fromstring(robot_file(self.srdf).read_bytes()).iter("group_state"):
            if group.get("name") == name:
                for joint in group.iter("joint"):
                    if len(value := joint.get("value", "").split()) == 1:
                        yield joint.get("name", ""), float(value[0])

    @cached_property
    def mass(self) -> float:
        return sum(link.mass for link in self.model.mechanism.links)

    def base_height(self, clearance: float) -> float:
        """Of the base in the posture, upright, whose lowest sphere is at this height [m]."""
        q = self.model.neutral()
        for name, value in self.joints.items():
            q[self.model.coordinate_names.index(name)] = value
        lowest = min(
            (self.model.frame_pose(q, link) @ np.array([*centre, 1.0]))[2] - radius
            for link, centre, radius in self.feet
        )
        return float(clearance - lowest)

    # --- the programs ---

    def rig(
        self, folder: Path, clearance: float, step: float = 1e-3, duration: float = 1.0, stiffness: str = ""
    ) -> Path:
        """A rig file in the folder: the robot released at rest in its posture; clearance [m], step, duration [s];
        stiffness: as in `mechanism.contacts`, empty for the default."""
        (urdf := folder / f"{self.name}.urdf").write_text(self.text)
        law = f", stiffness: {stiffness}" if stiffness else ""
        servo = f"{{type: affine_servo, gain: {self.kp}, bias_position: {-self.kp}, bias_velocity: {-self.kd}}}"
        contacts = "".join(
            f"    - {{name: foot_{k}, link: {link}, sphere: {radius}, at: {list(centre)}, with: ground{law}}}\n"
            for k, (link, centre, radius) in enumerate(self.feet)
        )
        initial = "".join(f"  {name}: {{initial: {{position: {value}}}}}\n" for name, value in self.joints.items())
        base = [0.0, 0.0, self.base_height(clearance), 0.0, 0.0, 0.0, 1.0]
        # the drives have the gains
        controller = f"{{type: passthrough, kp: 1, kd: 1, joints: [{', '.join(self.joints)}]}}"
        text = f"""\
name: {self.name}
mechanism:
  urdf: {urdf.name}
  floating_base: true
  ground: {{friction: {FRICTION}}}
  contacts:
{contacts}joints:
  all: {{actuator: {servo}, limits: {{lower: -100, upper: 100, velocity: 1e4, effort: 1e6}}}}
  {BASE}: {{initial: {{position: {base}}}}}
{initial}controllers: [{controller}]
schedule: {{step: {step * 1e6:.12g} us, duration: {duration}}}
"""
        (path := folder / f"{self.name}.yaml").write_text(text)
        return path

    def mujoco(
        self, step: float, integrator: str = "EULER", cone: str = "PYRAMIDAL", hard: bool = False
    ) -> tuple[Any, Any]:
        """(model, data) of MuJoCo at its defaults; hard: contacts as hard as its time step [s] allows. Raises
        MissingPeer."""
        mujoco = import_peer("mujoco")
        spec = mujoco.MjSpec.from_string(self._with_free_base())
        friction = [FRICTION, 0.0, 0.0]
        ground = spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1], friction=friction)
        geoms = [ground]
        for link, centre, radius in self.feet:
            shape = {"type": mujoco.mjtGeom.mjGEOM_SPHERE, "size": [radius, 0, 0], "pos": centre}
            geoms.append(spec.body(link).add_geom(friction=friction, mass=0, condim=3, **shape))
        for joint in spec.joints:
            if joint.type != mujoco.mjtJoint.mjJNT_FREE:
                joint.limited = False
                servo = spec.add_actuator(name=joint.name, target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
                servo.gainprm[0], servo.biastype = self.kp, mujoco.mjtBias.mjBIAS_AFFINE
                servo.biasprm[:3] = [0.0, -self.kp, -self.kd]
                servo.ctrllimited = servo.forcelimited = False
        spec.option.timestep = step
        spec.option.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator}")
        spec.option.cone = getattr(mujoco.mjtCone, f"mjCONE_{cone}")
        if hard:
            spec.option.impratio = 100.0
            for geom in geoms:
                geom.solref[:] = [2.0 * step, 1.0]
        model = spec.compile()
        return model, mujoco.MjData(model)

    def _with_free_base(self) -> str:
        tree = ET.fromstring(self.text)
        joint = ET.SubElement(tree, "joint", name=BASE, type="floating")
        ET.SubElement(joint, "parent", link="world")
        ET.SubElement(joint, "child", link=parse_urdf(self.text).root)
        ET.SubElement(tree, "link", name="world")
        ET.SubElement(ET.SubElement(tree, "mujoco"), "compiler", LIGHT)
        return ET.tostring(tree, encoding="unicode")

    def place(self, model: Any, data: Any, clearance: float) -> None:
        """The start of the rig in MuJoCo."""
        mujoco = import_peer("mujoco")
        mujoco.mj_resetData(model, data)
        data.qpos[:7] = [0.0, 0.0, self.base_height(clearance), 1.0, 0.0, 0.0, 0.0]
        for name, value in self.joints.items():
            data.qpos[model.jnt_qposadr[model.joint(name).id]] = value
            data.ctrl[model.actuator(name).id] = value
        mujoco.mj_forward(model, data)


SOLO_POSTURE = {
    f"{leg}_{joint}": angle if leg[0] == "F" else -angle
    for leg in ("FL", "FR", "HL", "HR")
    for joint, angle in (("HFE", 0.8), ("KFE", -1.6))
}

SOLO = LeggedRobot(
    "solo12",
    "solo_description/robots/solo12.urdf",
    tuple((f"{leg}_FOOT", (0.0, 0.0, 0.0), 0.016) for leg in ("FL", "FR", "HL", "HR")),
    10.0,
    0.3,
    SOLO_POSTURE,
)
ANYMAL = LeggedRobot(
    "anymal",
    "anymal_b_simple_description/robots/anymal.urdf",
    tuple((f"{leg}_FOOT", (0.0, 0.0, 0.0), 0.02) for leg in ("LF", "RF", "LH", "RH")),
    300.0,
    8.0,
    "standing",
    "anymal_b_simple_description/srdf/anymal.srdf",
)
TALOS = LeggedRobot(
    "talos",
    "talos_data/robots/talos_reduced.urdf",
    tuple(
        (f"leg_{side}_6_link", (x, y, -0.102), 0.005)
        for side in ("left", "right")
        for x in (-0.1, 0.1)
        for y in (-0.06, 0.06)
    ),
    4000.0,
    80.0,
    "half_sitting",
    "talos_data/srdf/talos.srdf",
)
