"""Chains of n revolute bodies whose operations are counted, and their equations by `sympy.physics.mechanics`."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.rows_chain import mechanism
from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.mechanism import Inertial, Joint, Link, Mechanism, Pose

GRAVITY = 9.81  # m/s², along −z


@cache
def general_chain(n: int) -> Model:
    """n bodies with full inertia matrices, their joints by four Denavit–Hartenberg parameters each that are not 0: the
    mechanism that published counts are for."""
    inertia = np.array([[0.2, 0.01, -0.02], [0.01, 0.3, 0.03], [-0.02, 0.03, 0.25]])
    body = Inertial(1.3, np.array([0.1, -0.2, 0.15]), inertia)
    s, c, length, offset = np.sin(0.7), np.cos(0.7), 0.4, 0.3
    twist = np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])
    return _chain(n, body, Pose(twist, np.array([length, -s * offset, c * offset])), (0.0, 0.0, -GRAVITY))


@cache
def planar_chain(n: int) -> Model:
    """n bodies that rotate about parallel axes, with gravity in their plane."""
    body = Inertial(1.3, np.array([0.1, -0.2, 0.0]), np.diag([0.1, 0.2, 0.25]))
    return _chain(n, body, Pose(np.eye(3), np.array([0.4, 0.0, 0.0])), (0.0, -GRAVITY, 0.0))


def _chain(n: int, body: Inertial, place: Pose, gravity: tuple[float, float, float]) -> Model:
    """n equal bodies with the same place in their parents, but for the first one."""
    names = ["ground", *(f"body{k}" for k in range(n))]
    joints = [
        Joint(f"joint{k}", "revolute", parent, child, place if k else Pose.identity())
        for k, (parent, child) in enumerate(pairwise(names))
    ]
    links = [Link(name, body if k else None) for k, name in enumerate(names)]
    return Model(Mechanism(f"chain of {n}", "ground", tuple(links), tuple(joints)), gravity)


@cache
def simple_chain(n: int) -> Model:
    """The chain of the rows `chain`, with axes y and z alternately and diagonal inertia matrices."""
    return Model(mechanism(n), (0.0, 0.0, -GRAVITY))


def sympy_equations(n: int, method: str) -> tuple[Any, Any, list[Any]]:
    """(A, B, symbols of q, v, τ) of A q̈ = B of `simple_chain(n)`, by sympy's KanesMethod or LagrangesMethod."""
    import sympy
    from sympy.physics import mechanics

    q, u, tau = mechanics.dynamicsymbols(f"q:{n}"), mechanics.dynamicsymbols(f"u:{n}"), sympy.symbols(f"tau:{n}")
    t = sympy.Symbol("t")  # the time of dynamicsymbols
    rates = u if method == "KanesMethod" else [x.diff(t) for x in q]
    ground, origin = mechanics.ReferenceFrame("N"), mechanics.Point("O")
    origin.set_vel(ground, 0)
    frame, joint, bodies, loads = ground, origin, [], []
    for k, (link, joint_k) in enumerate(zip(simple_chain(n).mechanism.links[1:], simple_chain(n).joints, strict=True)):
        axis = frame.z if joint_k.axis[2] else frame.y
        inner = mechanics.ReferenceFrame(f"B{k}")
        inner.orient_axis(frame, axis, q[k])
        inner.set_ang_vel(frame, rates[k] * axis)
        if k:
            joint = _fixed_point(f"P{k}", joint, joint_k.pose.position[0], frame, ground)
        inertial = link.inertial
        assert inertial is not None
        com = _fixed_point(f"C{k}", joint, inertial.com[0], inner, ground)
        moments = mechanics.inertia(inner, *np.diag(inertial.inertia).tolist())
        body = mechanics.RigidBody(f"body{k}", com, inner, inertial.mass, (moments, com))
        body.potential_energy = inertial.mass * GRAVITY * com.pos_from(origin).dot(ground.z)
        loads += [(com, -inertial.mass * GRAVITY * ground.z), (inner, tau[k] * axis), (frame, -tau[k] * axis)]
        bodies.append(body)
        frame = inner
    torques = [load for load in loads if isinstance(load[0], mechanics.ReferenceFrame) and load[0] != ground]
    if method == "KanesMethod":
        kinematics = [x.diff(t) - y for x, y in zip(q, u, strict=True)]
        kane = mechanics.KanesMethod(ground, q, u, kinematics)
        forces = [load for load in loads if isinstance(load[0], mechanics.Point)] + torques
        kane.kanes_equations(bodies, forces)
        A, B = kane.mass_matrix, kane.forcing
    else:
        lagrange = mechanics.LagrangesMethod(mechanics.Lagrangian(ground, *bodies), q, forcelist=torques, frame=ground)
        lagrange.form_lagranges_equations()
        A, B = lagrange.mass_matrix, lagrange.forcing
    # plain symbols: derivatives first, which contain the coordinates
    plain = [*sympy.symbols(f"q:{n}"), *sympy.symbols(f"u:{n}"), *tau]
    renamed = dict(zip(rates, plain[n : 2 * n], strict=True))
    A, B = (sympy.Matrix(matrix).xreplace(renamed).xreplace(dict(zip(q, plain[:n], strict=True))) for matrix in (A, B))
    return A, B, plain


def _fixed_point(name: str, base: Any, distance: float, frame: Any, ground: Any) -> Any:
    """A point at a distance along x of a frame from another one that is fixed in the frame."""
    point = base.locatenew(name, distance * frame.x)
    point.v2pt_theory(base, ground, frame)
    return point
