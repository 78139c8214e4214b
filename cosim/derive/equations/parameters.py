"""Masses, lengths, inertias and losses of a mechanism as symbols."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, count

import numpy as np

from cosim import ops
from cosim.compile.trace import symbols
from cosim.multibody.bodies import AnyBody
from cosim.multibody.elastic_bodies import ElasticBody
from cosim.multibody.equations import MechanismEquations
from cosim.multibody.inertial_parameters import ELEMENTS
from cosim.multibody.joints import JointKind
from cosim.multibody.mechanism import Pose
from cosim.multibody.tree import Tree
from cosim.types import Numeric

DIGITS = 14  # of a parameter, which hide the rounding of an inertia that was moved
# of damping, friction, stiffness, position and rotor of a dof, by the unit of its position
JOINT_UNITS = {
    "rad": ("N*m*s/rad", "N*m", "N*m/rad", "rad", "kg*m^2"),
    "m": ("N*s/m", "N", "N/m", "m", "kg"),
}
NEGLIGIBLE = 1e-14  # of a vector's largest element: rounding


@dataclass(frozen=True)
class SymbolicParameter:
    """A number of the mechanism that formulas have as a symbol."""

    name: str
    value: float
    unit: str
    about: str
    symbol: Numeric  # of casadi


class Identifiers:
    """Names that are identifiers in C, Python and MATLAB, each once."""

    def __init__(self, taken: Sequence[str] = ()) -> None:
        self._taken = set(taken)

    def new(self, text: str) -> str:
        name = re.sub(r"\W", "_", text, flags=re.ASCII).strip("_") or "x"
        name = f"x{name}" if name[0].isdigit() else name
        numbered = (f"{name}_{k}" for k in count(2))
        found = next(n for n in chain([name], numbered) if n not in self._taken)
        self._taken.add(found)
        return found


class _Table:
    """The parameters in the order of their first use."""

    def __init__(self) -> None:
        self.found: list[SymbolicParameter] = []
        self._names = Identifiers()

    def __call__(self, name: str, value: float, unit: str, about: str) -> Numeric:
        """The symbol of a number, or 0."""
        if value == 0.0:
            return 0.0
        name = self._names.new(name)
        column, symbol = symbols(name, ())
        self.found.append(SymbolicParameter(name, float(f"{value:.{DIGITS}g}"), unit, about, column))
        return symbol

    def vector(self, name: str, values: np.ndarray, unit: str, about: str) -> Numeric:
        """(3,); of one direction alone without x, y, z in its name."""
        values = np.where(np.abs(values) <= NEGLIGIBLE * np.abs(values).max(), 0.0, values)
        alone = np.count_nonzero(values) == 1
        named = ((name if alone else f"{name}_{axis}", axis) for axis in "xyz")
        return ops.array([self(n, x, unit, f"{about}, {axis}") for (n, axis), x in zip(named, values, strict=True)])


def with_symbols(e: MechanismEquations) -> tuple[MechanismEquations, list[SymbolicParameter]]:
    """The same equations with symbols in place of all numbers that are not 0, and the table of these.

    Directions of axes, constants of laws and of elastic links stay numbers."""
    table, tree = _Table(), e.tree
    gravity = _gravity(e.gravity, table)
    turns = [tree.frames[joint.child][1].rotation for joint in tree.joints]
    bodies = [_body(tree, k, turns, table) for k in range(len(tree.bodies))]
    joints = []
    for joint, kind in zip(tree.joints, tree.kinds, strict=True):
        moving = joint.name
        damping, effort, stiffness, position, _ = units_of(kind)
        unloaded, about = joint.rest if joint.stiffness else 0.0, f"where the spring in {moving} is unloaded"
        numbers = {
            "damping": table(f"b_{moving}", joint.damping, damping, f"viscous friction of {moving}"),
            "friction": table(f"d_{moving}", joint.friction, effort, f"Coulomb friction of {moving}"),
            "stiffness": table(f"k_{moving}", joint.stiffness, stiffness, f"spring in {moving}"),
            "rest": table(f"r_{moving}", unloaded, position, about),
        }
        joints.append(replace(joint, **numbers))
    frames = dict(tree.frames)
    for frame in tree.mechanism.frames:
        body, pose = frames[frame.name]
        frames[frame.name] = body, Pose(pose.rotation, _along_link(tree, body, turns, pose.position, table, frame.name))
    springs = tuple(
        spring._replace(
            stiffness=table(f"k_{spring.name}", spring.stiffness, "N/m", f"stiffness of {spring.name}"),
            damping=table(f"b_{spring.name}", spring.damping, "N*s/m", f"damping of {spring.name}"),
            length=table(f"l_{spring.name}", spring.length, "m", f"unloaded length of {spring.name}"),
        )
        for spring in e.constraints.springs
    )
    changed = replace(tree, joints=tuple(joints), bodies=tuple(bodies), frames=frames)
    constraints = replace(e.constraints, springs=springs)
    return MechanismEquations(changed, gravity, constraints), table.found


def units_of(kind: JointKind) -> tuple[str, ...]:
    """Of the numbers of a joint; of one with both kinds of dofs those of its first."""
    return JOINT_UNITS[kind.dofs[0][1] if kind.dofs else "rad"]


def _gravity(gravity: np.ndarray, table: _Table) -> Numeric:
    """Along one axis it is g or −g with g above 0."""
    if np.count_nonzero(gravity) != 1:
        return table.vector("g", gravity, "m/s^2", "gravity")
    size = table("g", float(np.abs(gravity).max()), "m/s^2", "gravity")
    return ops.array([0.0 if x == 0.0 else size if x > 0.0 else -size for x in gravity])


def _body(tree: Tree, k: int, turns: Sequence[np.ndarray], table: _Table) -> AnyBody:
    """Positions and inertias are named along the axes of the link; see `inertial_parameters`."""
    body, joint, turn = tree.bodies[k], tree.joints[k], turns[k]
    name = joint.child
    position = _along_link(tree, tree.parents[k], turns, body.position, table, joint.name)
    unit = units_of(tree.kinds[k])[-1]
    rotor = ops.array([table(f"J_{joint.name}", r, unit, f"rotor on {joint.name}") for r in body.rotor])
    if not body.mass or isinstance(body, ElasticBody):
        return body._replace(position=position, rotor=rotor)
    com = turn.T @ body.moment / body.mass
    inertia = turn.T @ body.inertia @ turn - body.mass * (com @ com * np.eye(3) - np.outer(com, com))
    size = np.abs(turn.T @ body.inertia @ turn).max()
    inertia = np.where(np.abs(inertia) <= NEGLIGIBLE * size, 0.0, inertia)
    m = table(f"m_{name}", body.mass, "kg", f"mass of {name}")
    c = table.vector(f"c_{name}", com, "m", f"centre of mass of {name}")
    own = np.zeros((3, 3)).tolist()
    for i, j in ELEMENTS:
        about = f"inertia of {name} about its centre of mass, {'xyz'[i]}{'xyz'[j]}"
        own[i][j] = own[j][i] = table(f"I_{name}_{'xyz'[i]}{'xyz'[j]}", inertia[i, j], "kg*m^2", about)
    square = c @ c
    at_origin = ops.array(
        [[own[i][j] + m * ((square if i == j else 0.0) - c[i] * c[j]) for j in range(3)] for i in range(3)]
    )
    return body._replace(
        position=position, mass=m, moment=turn @ (c * m), inertia=turn @ at_origin @ turn.T, rotor=rotor
    )


def _along_link(
    tree: Tree, body: int, turns: Sequence[np.ndarray], position: np.ndarray, table: _Table, name: str
) -> Numeric:
    """A position in a body's frame, named along the axes of its link."""
    turn = turns[body] if body >= 0 else np.eye(3)
    link = tree.joints[body].child if body >= 0 else tree.mechanism.root
    return turn @ table.vector(f"l_{name}", turn.T @ position, "m", f"position of {name} in {link}")
