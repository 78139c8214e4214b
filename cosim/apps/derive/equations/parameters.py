"""Masses, lengths, inertias and losses of a mechanism as symbols."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from cosim.apps.derive.equations.languages import Identifiers
from cosim.core import ops
from cosim.core.compile.trace import symbols
from cosim.core.types import Numeric
from cosim.core.units import quantity_unit
from cosim.mechanics.multibody.bodies import AnyBody
from cosim.mechanics.multibody.constrained_dynamics import GROUND
from cosim.mechanics.multibody.constraint_rows import BodyConstraint, BodyForce, SpringDamper
from cosim.mechanics.multibody.elastic_bodies import ElasticBody
from cosim.mechanics.multibody.equations import MechanismEquations
from cosim.mechanics.multibody.inertial_parameters import ELEMENTS
from cosim.mechanics.multibody.joint_springs import joint_springs
from cosim.mechanics.multibody.joints import JointKind
from cosim.mechanics.multibody.mechanism import CoupledRotor, Joint, Pose, Torsion
from cosim.mechanics.multibody.part_names import shown_name
from cosim.mechanics.multibody.torsion_springs import TorsionSpringDamper, ball_springs
from cosim.mechanics.multibody.tree import Tree

DIGITS = 14  # of a parameter, which hide the rounding of an inertia that was moved
# of damping, friction, stiffness, position and rotor of a dof
QUANTITIES = tuple(f"joint {what}" for what in ("damping", "effort", "stiffness", "position", "inertia"))
NEGLIGIBLE = 1e-14  # of a vector's largest element: rounding


@dataclass(frozen=True)
class SymbolicParameter:
    """A number of the mechanism that formulas have as a symbol."""

    name: str
    value: float
    unit: str
    about: str
    symbol: Numeric  # of casadi


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

    Directions of axes, ratios of rotors, constants of laws and of elastic links stay numbers."""
    numbers = _Numbers(e.tree)
    gravity = numbers.gravity(e.gravity)
    bodies = tuple(map(numbers.body, range(len(e.tree.bodies))))
    joints = tuple(map(numbers.joint, e.tree.joints, e.tree.kinds))
    rotors, frames = tuple(map(numbers.rotor, e.tree.rotors)), e.tree.frames | numbers.frames()
    tree = replace(e.tree, bodies=bodies, joints=joints, frames=frames, rotors=rotors)
    constraints = replace(
        e.constraints,
        springs=tuple(map(numbers.spring, e.constraints.springs)),
        members=tuple(map(numbers.attached, e.constraints.members)),
        laws=tuple(map(numbers.attached, e.constraints.laws)),
        joint_springs=joint_springs(tree),
        ball_springs=ball_springs(tree),
    )
    return MechanismEquations(tree, gravity, constraints), numbers.table.found


Attached = TypeVar("Attached", BodyConstraint, BodyForce)


class _Numbers:
    """The parts of a mechanism with symbols in place of their numbers, which `table` collects."""

    def __init__(self, tree: Tree) -> None:
        self.table = _Table()
        self._tree = tree
        self._turns = [tree.frames[joint.child][1].rotation for joint in tree.joints]
        self._identifier = Identifiers().of  # of a link, joint, frame, …

    def gravity(self, gravity: np.ndarray) -> Numeric:
        """Along one axis it is g or −g with g above 0."""
        if np.count_nonzero(gravity) != 1:
            return self.table.vector("g", gravity, "m/s^2", "gravity")
        size = self.table("g", float(np.abs(gravity).max()), "m/s^2", "gravity")
        return ops.array([0.0 if x == 0.0 else size if x > 0.0 else -size for x in gravity])

    def body(self, k: int) -> AnyBody:
        """Positions and inertias are named along the axes of the link; see `inertial_parameters`."""
        tree, table = self._tree, self.table
        body, joint, turn = tree.bodies[k], tree.joints[k], self._turns[k]
        link, unit = joint.child, units_of(tree.kinds[k])[-1]
        name, moving = self._identifier(link), self._identifier(joint.name)
        position = self._along_link(tree.parents[k], body.position, joint.name)
        rotor = ops.array([table(f"J_{moving}", r, unit, f"rotor on {shown_name(joint.name)}") for r in body.rotor])
        if not body.mass or isinstance(body, ElasticBody):
            return body._replace(position=position, rotor=rotor)
        com = turn.T @ body.moment / body.mass
        inertia = turn.T @ body.inertia @ turn - body.mass * (com @ com * np.eye(3) - np.outer(com, com))
        size = np.abs(turn.T @ body.inertia @ turn).max()
        inertia = np.where(np.abs(inertia) <= NEGLIGIBLE * size, 0.0, inertia)
        m = table(f"m_{name}", body.mass, "kg", f"mass of {shown_name(link)}")
        c = table.vector(f"c_{name}", com, "m", f"centre of mass of {shown_name(link)}")
        own = np.zeros((3, 3)).tolist()
        for i, j in ELEMENTS:
            about = f"inertia of {shown_name(link)} about its centre of mass, {'xyz'[i]}{'xyz'[j]}"
            own[i][j] = own[j][i] = table(f"I_{name}_{'xyz'[i]}{'xyz'[j]}", inertia[i, j], "kg*m^2", about)
        square = c @ c
        at_origin = ops.array(
            [[own[i][j] + m * ((square if i == j else 0.0) - c[i] * c[j]) for j in range(3)] for i in range(3)]
        )
        return body._replace(
            position=position, mass=m, moment=turn @ (c * m), inertia=turn @ at_origin @ turn.T, rotor=rotor
        )

    def joint(self, joint: Joint, kind: JointKind) -> Joint:
        table, name, about = self.table, self._identifier(joint.name), joint.name
        damping, effort, stiffness, position, _ = units_of(kind)
        unloaded = joint.rest if joint.stiffness else 0.0
        return replace(
            joint,
            damping=table(f"b_{name}", joint.damping, damping, f"viscous friction of {about}"),
            friction=table(f"d_{name}", joint.friction, effort, f"Coulomb friction of {about}"),
            stiffness=table(f"k_{name}", joint.stiffness, stiffness, f"spring in {about}"),
            rest=table(f"r_{name}", unloaded, position, f"where the spring in {about} is unloaded"),
            torsion=None if joint.torsion is None else self.torsion(joint.torsion, name, f"spring in {about}"),
        )

    def rotor(self, rotor: CoupledRotor) -> CoupledRotor:
        table, name, about = self.table, self._identifier(rotor.name), rotor.name
        return replace(
            rotor,
            inertia=table(f"J_{name}", rotor.inertia, "kg*m^2", f"rotor {about}"),
            damping=table(f"b_{name}", rotor.damping, "N*m*s/rad", f"viscous friction of {about}"),
            friction=table(f"d_{name}", rotor.friction, "N*m", f"Coulomb friction of {about}"),
        )

    def frames(self) -> dict[str, tuple[int, Pose]]:
        """Those with a name of their own."""
        places = {frame.name: self._tree.frames[frame.name] for frame in self._tree.mechanism.frames}
        return {
            name: (body, Pose(pose.rotation, self._along_link(body, pose.position, name)))
            for name, (body, pose) in places.items()
        }

    def torsion(self, torsion: Torsion, name: str, about: str) -> Torsion:
        """Its rest stays numbers."""
        return replace(torsion, stiffness=self._for_directions(f"k_{name}", torsion.stiffness, "N*m/rad", about))

    def _for_directions(self, name: str, value: Numeric, unit: str, about: str) -> Numeric:
        """A symmetric (3, 3) matrix, or one number for all directions."""
        if np.ndim(value) == 0:
            return self.table(name, value, unit, about)
        found = np.zeros((3, 3)).tolist()
        for i, j in ELEMENTS:
            axes = f"{'xyz'[i]}{'xyz'[j]}"
            found[i][j] = found[j][i] = self.table(f"{name}_{axes}", value[i, j], unit, f"{about}, {axes}")
        return ops.array(found)

    def spring(self, spring: SpringDamper | TorsionSpringDamper) -> SpringDamper | TorsionSpringDamper:
        table, name, about = self.table, self._identifier(spring.name), spring.name
        if isinstance(spring, TorsionSpringDamper):
            damping = self._for_directions(f"b_{name}", spring.damping, "N*m*s/rad", f"damping of {about}")
            return spring._replace(torsion=self.torsion(spring.torsion, name, f"stiffness of {about}"), damping=damping)
        return spring._replace(
            ends=tuple((body, self._attachment(body, point, about)) for body, point in spring.ends),
            stiffness=table(f"k_{name}", spring.stiffness, "N/m", f"stiffness of {about}"),
            damping=table(f"b_{name}", spring.damping, "N*s/m", f"damping of {about}"),
            length=table(f"l_{name}", spring.length, "m", f"unloaded length of {about}"),
        )

    def attached(self, item: Attached) -> Attached:
        """A loop, constraint or force law."""
        frames = [
            (body, Pose(pose.rotation, self._attachment(body, pose.position, item.name))) for body, pose in item.frames
        ]
        return replace(item, frames=tuple(frames))

    def _attachment(self, body: int, point: np.ndarray, what: str) -> Numeric:
        """Where something is attached to a body; it has a name for each of them."""
        return self._along_link(body, point, what, f"_{self._identifier(self._link(body))}")

    def _along_link(self, body: int, position: np.ndarray, what: str, suffix: str = "") -> Numeric:
        """A position in a body's frame, named along the axes of its link."""
        turn = np.eye(3) if body == GROUND else self._turns[body]
        name, link = f"l_{self._identifier(what)}{suffix}", shown_name(self._link(body))
        about = f"position of {shown_name(what)} in {link}"
        return turn @ self.table.vector(name, turn.T @ position, "m", about)

    def _link(self, body: int) -> str:
        return self._tree.mechanism.root if body == GROUND else self._tree.joints[body].child


def units_of(kind: JointKind) -> tuple[str, ...]:
    """Of the numbers of a joint; with both kinds of dofs, by its first."""
    position = kind.dofs[0][1] if kind.dofs else "rad"
    return tuple(quantity_unit(quantity, position) for quantity in QUANTITIES)
