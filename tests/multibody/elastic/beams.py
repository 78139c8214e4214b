"""Beams of the tests, and mechanisms of them; states with small modal coordinates."""

from functools import cache

import numpy as np
from scipy.spatial.transform import Rotation

from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.elastic.beam import Beam, BeamSection, ModeCounts, constant
from cosim.mechanics.multibody.mechanism import (
    Frame,
    Inertial,
    Joint,
    Link,
    LoopJoint,
    Mechanism,
    Pose,
    Spring,
)

ALL_KINDS = ModeCounts(2, 1, 1, 1)
MODAL = ("bend", "twist", "stretch")


def section(mass=1.2, inertia=(0.03, 0.01, 0.02), EA=2e3, GJ=300.0, EI=(500.0, 400.0), shear=1e3):
    """Of a uniform beam that is soft enough to show every coupling; EI about y and z."""
    bending = constant(EI[0]), constant(EI[1])
    about = constant(inertia[0]), constant(inertia[1]), constant(inertia[2])
    return BeamSection(constant(mass), about, constant(EA), constant(GJ), bending, (constant(shear), constant(shear)))


@cache
def soft_beam(length=1.0, mass=1.2, modes=ALL_KINDS, **settings):
    return Beam(length, section(mass), modes, damping_ratio=0.02, **settings)


@cache
def soft_link(length=1.0, mass=1.2, modes=ALL_KINDS, **settings):
    return soft_beam(length, mass, modes, **settings).link()


def turned(seed):
    return Rotation.random(random_state=seed).as_matrix()


def at(x, y=0.0, z=0.0, rotation=None):
    return Pose(np.eye(3) if rotation is None else rotation, np.array([x, y, z], dtype=float))


def unit(*v):
    return np.array(v) / np.linalg.norm(v)


def rigid(name, mass):
    return Link(name, Inertial(mass, np.array([0.1, 0.2, 0.0]), np.diag([0.02, 0.03, 0.04])))


def chain(modes=ALL_KINDS):
    """Two elastic links in series with attachments beside their axes, a slider on the tip, a body half way."""
    sheared, lighter = soft_link(1.2, modes=modes, shearing=True), soft_link(0.8, 0.7, modes)
    carried = Inertial(0.2, np.array([0.1, 0.0, 0.1]), 0.01 * np.eye(3))
    links = (
        Link("base"),
        Link("a", elastic=sheared, elastic_frame=at(0.1, 0.05, 0.0, turned(6))),
        Link("b", carried, elastic=lighter),
        rigid("c", 0.5),
        rigid("d", 0.3),
    )
    tip = at(0.1, 0.05, 0.0, turned(6)) @ at(1.2, 0.05, -0.03, turned(2))
    middle = at(0.1, 0.05, 0.0, turned(6)) @ at(0.6, 0.0, 0.1, turned(4))
    joints = (
        Joint("j1", "universal", "base", "a", at(0.1, 0.2, 0.3, turned(1)), unit(1, 0, 0), second_axis=unit(0, 1, 0)),
        Joint("j2", "revolute", "a", "b", tip, unit(1, 2, 3)),
        Joint("j3", "prismatic", "b", "c", at(0.8, 0, 0, turned(3)), unit(1, -1, 0.3)),
        Joint("j4", "fixed", "a", "d", middle),
    )
    return Mechanism("chain", "base", links, joints, frames=(Frame("tip", "b", at(0.7, 0.1, 0.2, turned(5))),))


def floating_loop(modes=ALL_KINDS):
    """A hub that floats, an elastic link and a pinned one that close a loop over a rigid body, in the neutral position
    too, and a spring to the middle of the first."""
    first = turned(1)
    links = (
        Link("base"),
        Link("hub", Inertial(2.0, np.array([0.1, 0.0, 0.1]), 0.1 * np.eye(3))),
        Link("a", elastic=soft_link(modes=modes)),
        Link("b", elastic=soft_link(1.0, 0.7, modes, ends=("pinned", "pinned"))),
        rigid("c", 0.5),
    )
    joints = (
        Joint("root", "free", "base", "hub", Pose.identity()),
        Joint("ja", "revolute", "hub", "a", at(0, 0, 0, first)),
        Joint("jb", "spherical", "a", "b", at(1.0)),
        Joint("jc", "spherical", "hub", "c", at(0.5, 0.5)),
    )
    loops = (LoopJoint(Joint("close", "spherical", "b", "c", at(1.0)), at(*(2.0 * first[:, 0] - [0.5, 0.5, 0.0]))),)
    ends = ("a", np.array([0.5, 0.0, 0.0])), ("base", np.array([0.0, 0.0, 1.0]))
    springs = (Spring("stay", ends, 100.0, 2.0, 0.3),)
    return Mechanism("loop", "base", links, joints, loops=loops, springs=springs)


def spacecraft(damped=False):
    """A rigid hub that floats, with two panels, one of which turns on the hub."""
    panel = soft_link(2.0, 0.5, ModeCounts(1, 2, 1, 0))
    if not damped:
        panel = panel.__class__(**{**vars(panel), "damping": 0.0 * panel.damping})
    links = (
        Link("space"),
        Link("hub", Inertial(5.0, np.array([0.02, 0.01, 0.0]), np.diag([0.8, 1.0, 1.2]))),
        Link("left", elastic=panel),
        Link("right", elastic=panel),
    )
    about_z = Rotation.from_rotvec([0, 0, np.pi]).as_matrix()
    joints = (
        Joint("hub", "free", "space", "hub", Pose.identity()),
        Joint("left", "revolute", "hub", "left", at(0.5), unit(1, 0, 0)),
        Joint("right", "fixed", "hub", "right", at(-0.5, 0, 0, about_z)),
    )
    return Mechanism("spacecraft", "space", links, joints)


@cache
def model_of(build, *modes, **settings):
    return Model(build(*modes), gravity=(1.0, 2.0, -9.0), **settings)


def is_mode(name):
    return any(f".{kind}" in name for kind in MODAL)


def random_state(model, seed=0, modal=0.05):
    """(q, v, τ); the modal coordinates and rates are small."""
    random = np.random.default_rng(seed)
    sizes = np.array([modal if is_mode(name) else 1.0 for name in model.dof_names])
    q = moved_by(model, model.neutral(), random.normal(size=model.nv) * sizes)
    return q, 3.0 * random.normal(size=model.nv) * sizes, random.normal(size=model.nv)


def moved_by(model, q, step):
    return np.asarray(model.equations.integrate(q, step), dtype=float)


def slopes(model, function, q, step=1e-6):
    """The derivatives of a function of q along the velocities of the dofs: (nv, …), by central differences."""
    ahead, behind = ([function(moved_by(model, q, s * unit)) for unit in np.eye(model.nv)] for s in (step, -step))
    return (np.array(ahead, dtype=float) - np.array(behind, dtype=float)) / (2.0 * step)


def energy(model, q, v):
    """Kinetic, potential, and stored in springs and elastic links [J]."""
    equations = model.equations
    return float(equations.mechanical_energy(q, v))
