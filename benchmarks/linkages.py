"""Mechanisms with closed loops that several rows share, each in a consistent state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from benchmarks.peers import robot_file
from benchmarks.robots import TALOS, UR5
from cosim.mechanics.multibody import Model, assembly
from cosim.mechanics.multibody.description.urdf import parse_urdf
from cosim.mechanics.multibody.mechanism import (
    Inertial,
    Joint,
    Link,
    LoopJoint,
    Mechanism,
    Pose,
    with_floating_base,
)

GROUND = "ground"
PLANAR_GRAVITY, NO_GRAVITY = (0.0, -9.81, 0.0), (0.0, 0.0, 0.0)  # gravity of planar linkages, m/s²

PlanarPoint = tuple[float, float]
Bar = tuple[str, str, PlanarPoint, Inertial]  # link and joint, parent, where the joint is in the parent
Pin = tuple[str, PlanarPoint, str, PlanarPoint]  # two links and a point in each


@dataclass(frozen=True)
class Linkage:
    """A mechanism in a consistent state: q and v satisfy its constraints; τ is arbitrary."""

    model: Model
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray

    @property
    def state(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.q, self.v, self.tau


def planar(name: str, bars: Sequence[Bar], pins: Sequence[Pin]) -> Mechanism:
    """Bars that turn about z, and pins that close loops."""
    links = Link(GROUND), *(Link(bar, inertial) for bar, _, _, inertial in bars)
    joints = tuple(Joint(bar, "revolute", parent, bar, at(point)) for bar, parent, point, _ in bars)
    loops = tuple(
        LoopJoint(Joint(f"pin{k}", "revolute", parent, child, at(there)), at(here))
        for k, (parent, there, child, here) in enumerate(pins)
    )
    return Mechanism(name, GROUND, links, joints, loops=loops)


def at(point: PlanarPoint) -> Pose:
    return Pose(np.eye(3), np.array([*point, 0.0]))


def lamina(mass: float, com: PlanarPoint, inertia: float) -> Inertial:
    """A body in the plane; inertia: about its centre of mass, normal to the plane [kg m²]."""
    return Inertial(mass, np.array([*com, 0.0]), np.diag([0.5 * inertia, 0.5 * inertia, inertia]))


def rod(length: float) -> Inertial:
    """A slender rod of 1 kg/m along x."""
    return Inertial(length, np.array([0.5 * length, 0.0, 0.0]), np.diag([0.0, 1.0, 1.0]) * length**3 / 12.0)


def assemble(model: Model, guess: np.ndarray) -> Linkage:
    """Loops closed near the guess, speeds as near to random ones as the constraints allow."""
    uniform, kept = np.random.default_rng(0).uniform, np.zeros(model.nv, dtype=bool)
    q = assembly.close_loops(model, guess, kept)
    v = assembly.consistent_velocities(model, q, uniform(-1, 1, model.nv), kept)
    return Linkage(model, q, v, uniform(-10, 10, model.nv))


@cache
def four_bar() -> Linkage:
    """Crank, coupler and rocker on a frame, of lengths that let the crank turn round."""
    bars = (
        ("crank", GROUND, (0.0, 0.0), rod(0.2)),
        ("coupler", "crank", (0.2, 0.0), rod(0.5)),
        ("rocker", GROUND, (0.6, 0.0), rod(0.4)),
    )
    mechanism = planar("four-bar", bars, [("rocker", (0.4, 0.0), "coupler", (0.5, 0.0))])
    return assemble(Model(mechanism, PLANAR_GRAVITY), np.array([0.5, 0.5, 2.0]))


@cache
def andrews() -> Linkage:
    """Andrews' squeezing mechanism, seven bodies whose three loops meet in one pin, without its spring (Hairer and
    Wanner, Solving Ordinary Differential Equations II)."""
    a, b = (-0.06934, -0.00227), (-0.03635, 0.03273)
    bars = (
        ("K1", GROUND, (0.0, 0.0), lamina(0.04325, (0.00092, 0.0), 2.194e-6)),
        ("K2", "K1", (0.007, 0.0), lamina(0.00365, (-0.0115, 0.0), 4.410e-7)),
        ("K3", GROUND, b, lamina(0.02373, (0.01043, -0.01874), 5.255e-6)),
        ("K5", GROUND, a, lamina(0.07050, (0.02308, 0.00916), 1.169e-5)),
        ("K4", "K5", (0.04, 0.0), lamina(0.00706, (0.0, -0.00579), 5.667e-7)),
        ("K7", GROUND, a, lamina(0.05498, (-0.00449, -0.01228), 1.912e-5)),
        ("K6", "K7", (0.0, -0.04), lamina(0.00706, (0.00579, 0.0), 5.667e-7)),
    )
    meeting = ("K3", (0.0, -0.035)), ("K4", (0.0, -0.02)), ("K6", (0.02, 0.0))
    mechanism = planar("Andrews' mechanism", bars, [("K2", (-0.028, 0.0), *end) for end in meeting])
    start = [-0.0617138900142764, 0.0, 0.455279819163070, 0.487364979543843, 0.222668390165886]
    return assemble(Model(mechanism, NO_GRAVITY), np.array([*start, 1.23054744454982, -0.222668390165886]))


# --- many loops --------------------------------------------------------------------------------------------------

TILT, TURN = 0.7, -1.0  # rad, rad/s: of the uprights, while the bars across stay level


def side_by_side(n: int) -> Mechanism:
    """n four-bars in a row, each sharing an upright with the next: n + 1 uprights, n bars across, all of 1 m."""
    bars: list[Bar] = []
    for k in range(n + 1):
        bars.append((f"up{k}", GROUND, (float(k), 0.0), rod(1.0)))
        if k < n:
            bars.append((f"across{k}", f"up{k}", (1.0, 0.0), rod(1.0)))
    pins = [(f"up{k + 1}", (1.0, 0.0), f"across{k}", (1.0, 0.0)) for k in range(n)]
    return planar(f"{n} four-bars side by side", bars, pins)


def ladder(n: int) -> Mechanism:
    """n four-bars, each standing on the bar across of the one before: two uprights and a bar across, all of 1 m."""
    bars: list[Bar] = []
    base = GROUND
    for k in range(n):
        bars += [
            (f"up{k}", base, (0.0, 0.0), rod(1.0)),
            (f"across{k}", f"up{k}", (1.0, 0.0), rod(1.0)),
            (f"up{k}'", base, (1.0, 0.0), rod(1.0)),
        ]
        base = f"across{k}"
    pins = [(f"up{k}'", (1.0, 0.0), f"across{k}", (1.0, 0.0)) for k in range(n)]
    return planar(f"{n} four-bars on top of each other", bars, pins)


def parallelograms(mechanism: Mechanism, elimination: str = "auto") -> Linkage:
    """Parallelograms with their bars across level: closed as they stand, however many there are."""
    model = Model(mechanism, PLANAR_GRAVITY, elimination=elimination)
    sign = np.where([name.startswith("up") for name in model.dof_names], 1.0, -1.0)
    return Linkage(model, TILT * sign, TURN * sign, np.random.default_rng(0).uniform(-10, 10, model.nv))


# --- robots ------------------------------------------------------------------------------------------------------


def weld_loops(mechanism: Mechanism, ends: Sequence[tuple[str, str]]) -> Linkage:
    """A tree in a random posture, with pairs of links (parent, child) joined as they are there."""
    tree = Model(mechanism)
    q = tree.random_configuration(np.random.default_rng(0))
    loops = []
    for k, (parent, child) in enumerate(ends):
        above, below = (tree.frame_pose(q, link) for link in (parent, child))
        pose = np.linalg.inv(above) @ below
        joint = Joint(f"weld{k}", "fixed", parent, child, Pose(pose[:3, :3], pose[:3, 3]))
        loops.append(LoopJoint(joint, Pose.identity()))
    return assemble(Model(replace(mechanism, loops=tuple(loops))), q)


@cache
def two_arms() -> Linkage:
    """Two UR5 on one ground that hold a bar between their hands. Raises MissingPeer."""
    links, joints = [Link(GROUND)], []
    arm = parse_urdf(robot_file(UR5).read_text())
    for side, place in (("left", (0.0, -0.4)), ("right", (0.0, 0.4))):
        joints.append(Joint(f"{side} mount", "fixed", GROUND, f"{side} {arm.root}", at(place)))
        links += [replace(link, name=f"{side} {link.name}") for link in arm.links]
        for joint in arm.joints:
            names = {key: f"{side} {getattr(joint, key)}" for key in ("name", "parent", "child")}
            joints.append(replace(joint, **names))
    links.append(Link("bar", rod(1.0)))
    joints.append(Joint("grip", "fixed", "left ee_link", "bar", Pose.identity()))
    return weld_loops(Mechanism("two arms", GROUND, tuple(links), tuple(joints)), [("bar", "right ee_link")])


@cache
def standing() -> Linkage:
    """TALOS on a floating base with both feet held by the ground. Raises MissingPeer."""
    mechanism = with_floating_base(parse_urdf(robot_file(TALOS).read_text()))
    return weld_loops(mechanism, [(mechanism.root, f"leg_{side}_6_link") for side in ("left", "right")])
