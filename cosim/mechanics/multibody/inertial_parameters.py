"""The inertial parameters of the moving bodies, in which the inverse dynamics is linear.

Of each body ten numbers: m, m c (3) [kg m], and the inertia about the origin Ixx, Iyy, Izz, Ixy, Ixz, Iyz [kg m²], in
the frame of the link that its joint moves. Links that are fixed to it are parts of the body.

An elastic body has the numbers of its undeformed shape. They are constants: other numbers would need other modes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cosim.core import ops
from cosim.core.types import Array, Numeric
from cosim.mechanics.multibody.elastic_bodies import ElasticBody
from cosim.mechanics.multibody.tree import Tree

PER_BODY = 10
# of an inertia matrix, in the order of their names
ELEMENTS = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))


def inertial_parameters(tree: Tree) -> Array:
    """(n, 10) of the bodies of a tree, in the order of their joints."""
    rows = []
    for joint, body in zip(tree.joints, tree.bodies, strict=True):
        turn = tree.frames[joint.child][1].rotation
        inertia = turn.T @ body.inertia @ turn
        rows.append([body.mass, *(turn.T @ body.moment), *(inertia[at] for at in ELEMENTS)])
    return np.array(rows, dtype=float).reshape(len(tree.bodies), PER_BODY)


def with_inertial_parameters(tree: Tree, parameters: Numeric) -> Tree:
    """The tree with these parameters (10 n,), numbers or symbols; they have no effect on elastic bodies."""
    bodies = []
    for k, (joint, body) in enumerate(zip(tree.joints, tree.bodies, strict=True)):
        if isinstance(body, ElasticBody):
            bodies.append(body)
            continue
        mass, x, y, z, xx, yy, zz, xy, xz, yz = (parameters[PER_BODY * k + i] for i in range(PER_BODY))
        turn = tree.frames[joint.child][1].rotation
        inertia = ops.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        moment = turn @ ops.array([x, y, z])
        bodies.append(body._replace(mass=mass, moment=moment, inertia=turn @ inertia @ turn.T))
    return replace(tree, bodies=tuple(bodies))
