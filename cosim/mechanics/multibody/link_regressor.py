"""The regressor of the inverse dynamics: how efforts depend on the inertial parameters of a link.

τ is linear in mass m, first moment m c and inertia about the link's origin (Atkeson, An and Hollerbach, Estimation of
inertial parameters of manipulator loads and links, IJRR 5(3), 1986): its derivative with respect to them is exact and
does not depend on their values. Their order is as in `inertial_parameters`, in the axes of the link.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from cosim.core import ops
from cosim.core.compile.jacobian import Jacobian
from cosim.core.types import Numeric
from cosim.mechanics.multibody.bodies import Body
from cosim.mechanics.multibody.equations import MechanismEquations
from cosim.mechanics.multibody.inertial_parameters import PER_BODY
from cosim.mechanics.multibody.mechanism import Pose


class LinkRegressor:
    """Of the equations of a mechanism; q (nq,), v, qdd (nv,)."""

    def __init__(self, equations: MechanismEquations, nq: int, nv: int) -> None:
        self.equations, self._nq, self._nv = equations, nq, nv
        self._jacobians: dict[tuple[int, bytes], Jacobian] = {}

    def link_regressor(self, q: Numeric, v: Numeric, qdd: Numeric, body: int, pose: Pose, *t: Numeric) -> Numeric:
        """(nv, 10): ∂τ/∂π of a link with this pose in the body."""
        key = body, np.concatenate([pose.rotation.ravel(), pose.position]).tobytes()
        if key not in self._jacobians:
            shapes = [
                (PER_BODY,),
                (self._nq,),
                (self._nv,),
                (self._nv,),
                *([()] if self.equations.timed else []),
            ]
            self._jacobians[key] = Jacobian(partial(self._effort, body, pose), shapes, "link_regressor")
        return self._jacobians[key](np.zeros(PER_BODY), q, v, qdd, *t)

    def _effort(self, body: int, pose: Pose, parameters: Numeric, *arguments: Numeric) -> Numeric:
        """τ (nv,) with these parameters added to the body's."""
        tree = self.equations.tree
        bodies = (*tree.bodies[:body], _loaded(tree.bodies[body], parameters, pose), *tree.bodies[body + 1 :])
        loaded = MechanismEquations(replace(tree, bodies=bodies), self.equations.gravity, self.equations.constraints)
        return loaded.inverse_dynamics(*arguments)


def _loaded(body: Body, parameters: Numeric, pose: Pose) -> Body:
    """The body with what a link of these parameters (10,) adds to it."""
    mass, moment = parameters[0], parameters[1:4]
    xx, yy, zz, xy, xz, yz = parameters[4:]
    inertia = ops.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    r, p, turned = pose.rotation, pose.position, pose.rotation @ moment
    # Σ m (r·r 1 − r rᵀ) with r = p + R c
    mixed, outer = 2.0 * ops.dot(p, turned) + mass * ops.dot(p, p), p[:, None] * turned[None, :]
    about_origin = r @ inertia @ r.T + mixed * np.eye(3) - outer - outer.T - mass * (p[:, None] * p[None, :])
    return body._replace(
        mass=body.mass + mass, moment=body.moment + turned + mass * p, inertia=body.inertia + about_origin
    )
