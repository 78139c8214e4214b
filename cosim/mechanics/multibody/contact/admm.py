"""Passes of the alternating direction method of multipliers with De Saxcé's term, for problems of contacts.

x solves the linear rows, y is in the cones and z the velocity that holds them together (Carpentier, Le Lidec and
Montaut 2024). Contacts are scaled by the roots of their mean mobilities, which keeps their cones. It is slow and
certain: redundant contacts that hardly slide, at which Newton's method goes round in circles, cost it passes only.
"""

from __future__ import annotations

from functools import cache

from cosim.core import ops
from cosim.core.compile.array_program import Span
from cosim.core.compile.dense import add_product, invert
from cosim.core.compile.routine import Routine
from cosim.core.types import Numeric
from cosim.mechanics.multibody.contact.cone import TINY, can_move, mean_mobility, projected, with_slip
from cosim.mechanics.multibody.contact.contact_problem import ROWS, VECTOR, ContactProblem

PROXIMAL = 1e-8  # η
PASSES = 20  # with one penalty
LEAST_PENALTY, GREATEST_PENALTY = 1e-6, 1e6
UNEVEN = 2.0  # ratio of the residuals from which the penalty changes


def scale_of(a0: Numeric, a1: Numeric, a2: Numeric) -> Numeric:
    """Of a contact: Λ = scale · x; 0 for one that cannot move, which gets no impulse."""
    diagonal = ops.array([a0[0], a1[1], a2[2]])
    return ops.where(can_move(diagonal), 1.0 / ops.sqrt(mean_mobility(diagonal)), 0.0)


def right_side(
    x: Numeric, y: Numeric, z: Numeric, c: Numeric, friction: Numeric, scale: Numeric, penalty: Numeric
) -> Numeric:
    """(3,) of the linear rows of x; without De Saxcé's term z would be a velocity of the convex relaxation."""
    slip = with_slip(z, friction)[2] - z[2]
    return PROXIMAL * x + penalty * y + z - c * scale - ops.array([0.0, 0.0, slip])


def next_pair(
    x: Numeric, y: Numeric, z: Numeric, friction: Numeric, penalty: Numeric, apart: Numeric
) -> tuple[Numeric, Numeric, Numeric]:
    """(y, z, [primal, dual] residual so far) of a contact."""
    new = projected(x - z * (1.0 / penalty), friction)
    primal, dual = apart
    for k in range(ROWS):
        primal, dual = ops.maximum(primal, ops.abs(x[k] - new[k])), ops.maximum(dual, ops.abs(new[k] - y[k]))
    return new, z - (x - new) * penalty, ops.array([primal, dual])


def next_penalty(penalty: Numeric, apart: Numeric) -> Numeric:
    """The penalty with which both residuals fall alike."""
    ratio = ops.clip(ops.sqrt(apart[0] / ops.maximum(apart[1], 1e-30)), 0.1, 10.0)
    uneven = ops.logical_or(ratio > UNEVEN, ratio < 1.0 / UNEVEN)
    return ops.clip(penalty * ops.where(uneven, ratio, 1.0), LEAST_PENALTY, GREATEST_PENALTY)


@cache
def _scale_of() -> Routine:
    return Routine(scale_of, [VECTOR, VECTOR, VECTOR], "contact_scale")


@cache
def _right_side() -> Routine:
    return Routine(right_side, [VECTOR, VECTOR, VECTOR, VECTOR, (), (), ()], "contact_right_side")


@cache
def _next_pair() -> Routine:
    return Routine(next_pair, [VECTOR, VECTOR, VECTOR, (), (), (2,)], "contact_next_pair")


@cache
def _next_penalty() -> Routine:
    return Routine(next_penalty, [(), (2,)], "contact_penalty")


@cache
def _product() -> Routine:
    return Routine(lambda x, y: x * y, [(), ()], "contact_product")


@cache
def _diagonal() -> Routine:
    return Routine(lambda x, penalty: x + (penalty + PROXIMAL), [(), ()], "contact_diagonal")


def scaled_start(impulse: Numeric, velocity: Numeric, scale: Numeric) -> tuple[Numeric, Numeric]:
    """(x, z)"""
    return impulse * ops.where(scale > 0.0, 1.0 / ops.maximum(scale, TINY), 0.0), velocity * scale


@cache
def _start() -> Routine:
    return Routine(scaled_start, [VECTOR, VECTOR, ()], "contact_scaled")


@cache
def _scaled() -> Routine:
    return Routine(lambda x, scale: x * scale, [VECTOR, ()], "contact_unscaled")


class AlternatingPasses:
    """Passes on one problem, with their own memory."""

    def __init__(self, problem: ContactProblem) -> None:
        machine, k, n = problem.machine, problem.contacts, problem.size
        self.problem, self.scale, self.penalty = problem, machine.space(k), machine.space(1)
        self.x, self.y, self.z = (machine.space(n) for _ in range(3))
        self._matrix, self._right, self._factor = machine.space(n * n), machine.space(n), machine.space(1)
        self._apart = machine.space(2)

    def begin(self, impulses: Span, u: Span) -> None:
        """From impulses and their velocities."""
        problem, machine = self.problem, self.problem.machine
        machine.fill(self.penalty, 1.0)
        for j in machine.loop(problem.contacts):
            machine.call(_scale_of(), problem.own_blocks(j), [self.scale.at(j)])
            given = [problem.of_contact(impulses, j), problem.of_contact(u, j), self.scale.at(j)]
            machine.call(_start(), given, [problem.of_contact(v, j) for v in (self.x, self.z)])
        machine.copy(self.y, self.x)

    def factorise(self) -> None:
        """(scaled W + (penalty + η) E)⁻¹."""
        problem, machine, n = self.problem, self.problem.machine, self.problem.size
        machine.fill(self._matrix, 0.0)
        for j in machine.loop(problem.contacts):
            for i in machine.loop(problem.contacts):
                machine.call(_product(), [self.scale.at(j), self.scale.at(i)], [self._factor])
                for a in range(ROWS):
                    place = self._matrix.at(n * (ROWS * j + a) + ROWS * i, ROWS)
                    machine.add(place, [(self._factor, problem.block(ROWS * j + a, i))])
        for i in machine.loop(n):
            place = self._matrix.at(n * i + i)
            machine.call(_diagonal(), [place, self.penalty], [place])
        invert(machine, self._matrix, n)

    def do(self) -> None:
        """One pass."""
        problem, machine = self.problem, self.problem.machine
        for j in machine.loop(problem.contacts):
            given = [problem.of_contact(v, j) for v in (self.x, self.y, self.z, problem.c)]
            given += [problem.friction.at(j), self.scale.at(j), self.penalty]
            machine.call(_right_side(), given, [problem.of_contact(self._right, j)])
        machine.fill(self.x, 0.0)
        add_product(machine, self.x, self._matrix, self._right)
        machine.fill(self._apart, 0.0)
        for j in machine.loop(problem.contacts):
            x, y, z = (problem.of_contact(v, j) for v in (self.x, self.y, self.z))
            given = [x, y, z, problem.friction.at(j), self.penalty, self._apart]
            machine.call(_next_pair(), given, [y, z, self._apart])

    def result(self, impulses: Span) -> None:
        """The impulses, which are in their cones."""
        problem, machine = self.problem, self.problem.machine
        for j in machine.loop(problem.contacts):
            given = [problem.of_contact(self.y, j), self.scale.at(j)]
            machine.call(_scaled(), given, [problem.of_contact(impulses, j)])

    def adapt(self) -> None:
        self.problem.machine.call(_next_penalty(), [self.penalty, self._apart], [self.penalty])
