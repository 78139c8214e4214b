"""What the sweeps know of a joint; `joints` has the table of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cosim.core import ops
from cosim.core.compile.pytree import Pytree
from cosim.core.types import Array, Numeric
from cosim.mechanics.multibody.bodies import AnyBody, AnyMotion, BodyMotion, to_body
from cosim.mechanics.multibody.coordinates import Space
from cosim.mechanics.multibody.spatial import Hinge, SpatialVector

Names = tuple[tuple[str, str], ...]  # (name, "m" or "rad" or "1") of each
WIDEST = {"rad": np.pi, "m": 1.0, "1": 0.0}


@dataclass(frozen=True, eq=False)
class JointKind:
    """A type of joint as functions of its coordinates: its kinematics, and its constraints where it closes a loop."""

    space: Space
    dofs: Names  # of the velocities
    place: Callable[[Numeric, Numeric], tuple[Numeric, Numeric]]
    hinge: Callable[[Numeric, Numeric, Numeric], Hinge]
    reactions: str = ""  # of the closure rows: f (force) or m (moment) with its axis
    closure: Callable[[Numeric, Numeric], Numeric] | None = None
    branch: Callable[[Numeric, Numeric], Numeric] | None = None
    timed: bool = False
    # components of the wrench that it transmits as a loop joint, where its rows combine them
    combined: str = ""

    @property
    def components(self) -> list[str]:
        """Of the wrench that it transmits as a loop joint, along the axes of its frame on the parent."""
        return (self.combined or self.reactions).split()

    @property
    def nq(self) -> int:
        return self.space.nq

    @property
    def nv(self) -> int:
        return self.space.nv

    def in_general_position(self, rng: np.random.Generator) -> Array:
        """Coordinates (nq,) that are no special ones."""
        return self.space.integrate(self.space.neutral, rng.uniform(0.3, 1.2, self.nv))

    @property
    def widest(self) -> Array:
        """(nq,) of random coordinates where the joint has no limits; quaternions are made in another way."""
        return np.array([WIDEST[unit] for _, unit in self.coordinates])

    def motion(self, body: AnyBody, above: Pytree, q: Numeric, v: Numeric, t: Numeric) -> AnyMotion:
        """The kinematics of the joint; `above` is what the parent's motion has `below`, its angular velocity."""
        turn, slide = self.place(q, t)
        hinge, drift, bias = self.hinge(q, v, t)
        slip = drift.linear + ops.sum(s.linear * v[i] for i, s in enumerate(hinge))
        spin = drift.angular + ops.sum(s.angular * v[i] for i, s in enumerate(hinge))
        motion = BodyMotion(turn, body.position + body.rotation @ slide, hinge, slip, drift, above, bias)
        from_parent = to_body(body, motion, above)
        centripetal = ops.cross(above, ops.cross(above, motion.position))
        linear = to_body(body, motion, centripetal) + 2.0 * ops.cross(from_parent, slip) + bias.linear
        angular = ops.cross(from_parent, spin) + bias.angular
        return motion._replace(omega=from_parent + spin, bias=SpatialVector(linear, angular))

    @property
    def is_single(self) -> bool:
        """Whether it has one dof, which has the name of the joint."""
        return self.nv == 1

    def named(self, joint: str, parts: Names) -> list[str]:
        """Names in the mechanism of the dofs or coordinates of a joint of this kind."""
        return [joint] if self.is_single else [f"{joint}.{part}" for part, _ in parts]

    @property
    def coordinates(self) -> Names:
        """Names of the positions; a rotation has a quaternion."""
        straight = self.nq - 4 if self.nq != self.nv else self.nq
        turned = tuple((name, "1") for name in ("qx", "qy", "qz", "qw"))
        return self.dofs[:straight] + (turned if self.nq != self.nv else ())
