"""Passes of the alternating direction method of multipliers with De Saxcé's term, for problems of contacts.

x solves the linear rows, y is in the cones and z the velocity that holds them together (Carpentier, Le Lidec and
Montaut 2024). Contacts are scaled by the roots of their mean mobilities, which keeps their cones. It is slow and
certain: redundant contacts that hardly slide, at which Newton's method goes round in circles, cost it passes only.
"""

from __future__ import annotations

from functools import cache

from cosim.core import ops
from cosim.core.compile.array_program import Place, Span
from cosim.core.compile.dense import add_product, invert
from cosim.core.compile.routine import Routine
from cosim.core.types import Numeric
from cosim.mechanics.multibody.contact.cone import DISKS, NORMAL, TINY, can_move, mobilities, projected, with_slip
from cosim.mechanics.multibody.contact.contact_problem import ContactProblem, diagonal_of

PROXIMAL = 1e-8  # η
PASSES = 20  # with one penalty
LEAST_PENALTY, GREATEST_PENALTY = 1e-6, 1e6
UNEVEN = 2.0  # ratio of the residuals from which the penalty changes


def scale_of(*block: Numeric) -> Numeric:
    """(rows,) of a contact: Λ = scale · x; 0 for one that cannot move, which gets no impulse. block: its rows of W."""
    diagonal = diagonal_of(list(block))
    moves = can_move(diagonal)
    return ops.array([ops.where(moves, 1.0 / ops.sqrt(w), 0.0) for w in mobilities(diagonal)])


def scaled_problem(
    impulse: Numeric, velocity: Numeric, c: Numeric, friction: Numeric, scale: Numeric
) -> tuple[Numeric, Numeric, Numeric, Numeric]:
    """(x, z, c, μ of each disk) of a contact between scaled impulses and velocities."""
    divisor = ops.maximum(scale, TINY)
    ratios = [scale[NORMAL] / divisor[disk[0]] for disk in DISKS[len(scale)]]
    return ops.where(scale > 0.0, impulse / divisor, 0.0), velocity * scale, c * scale, friction * ops.array(ratios)


def right_side(x: Numeric, y: Numeric, z: Numeric, c: Numeric, friction: Numeric, penalty: Numeric) -> Numeric:
    """Of the linear rows of x; without De Saxcé's term z would be a velocity of the convex relaxation."""
    return PROXIMAL * x + penalty * y + 2.0 * z - c - with_slip(z, friction)


def next_pair(
    x: Numeric, y: Numeric, z: Numeric, friction: Numeric, penalty: Numeric, apart: Numeric
) -> tuple[Numeric, Numeric, Numeric]:
    """(y, z, [primal, dual] residual so far) of a contact."""
    new = projected(x - z * (1.0 / penalty), friction)
    primal, dual = apart
    for k in range(len(x)):
        primal, dual = ops.maximum(primal, ops.abs(x[k] - new[k])), ops.maximum(dual, ops.abs(new[k] - y[k]))
    return new, z - (x - new) * penalty, ops.array([primal, dual])


def next_penalty(penalty: Numeric, apart: Numeric) -> Numeric:
    """The penalty with which both residuals fall alike."""
    ratio = ops.clip(ops.sqrt(apart[0] / ops.maximum(apart[1], 1e-30)), 0.1, 10.0)
    uneven = ops.logical_or(ratio > UNEVEN, ratio < 1.0 / UNEVEN)
    return ops.clip(penalty * ops.where(uneven, ratio, 1.0), LEAST_PENALTY, GREATEST_PENALTY)


@cache
def _scale_of(rows: int) -> Routine:
    return Routine(scale_of, [(rows,)] * rows, "contact_scale")


@cache
def _right_side(rows: int) -> Routine:
    return Routine(right_side, [(rows,)] * 4 + [(len(DISKS[rows]),), ()], "contact_right_side")


@cache
def _next_pair(rows: int) -> Routine:
    return Routine(next_pair, [(rows,)] * 3 + [(len(DISKS[rows]),), (), (2,)], "contact_next_pair")


@cache
def _next_penalty() -> Routine:
    return Routine(next_penalty, [(), (2,)], "contact_penalty")


@cache
def _scaled_row(rows: int) -> Routine:
    """A column of W in the rows of a contact, by the scale of the column and those of the contact."""
    return Routine(lambda row, own, scale: row * (own * scale), [(rows,), (), (rows,)], "contact_scaled_row")


@cache
def _diagonal() -> Routine:
    return Routine(lambda x, penalty: x + (penalty + PROXIMAL), [(), ()], "contact_diagonal")


@cache
def _scaled_problem(rows: int) -> Routine:
    return Routine(scaled_problem, [(rows,)] * 3 + [(len(DISKS[rows]),), (rows,)], "contact_scaled_problem")


@cache
def _unscaled(rows: int) -> Routine:
    return Routine(lambda x, scale: x * scale, [(rows,)] * 2, "contact_unscaled")


class AlternatingPasses:
    """Passes on one problem, with their own memory."""

    def __init__(self, problem: ContactProblem) -> None:
        machine, n = problem.machine, problem.size
        self.problem, self.scale, self.penalty = problem, machine.space(n), machine.space(1)
        self.x, self.y, self.z, self.c = (machine.space(n) for _ in range(4))
        self.friction = machine.space(problem.friction.length)
        self._matrix, self._right = machine.space(n * n), machine.space(n)
        self._apart = machine.space(2)

    def _friction_of(self, contact: Place) -> Span:
        disks = len(self.problem.disks)
        return self.friction.at(disks * contact, disks)

    def begin(self, impulses: Span, u: Span) -> None:
        """From impulses and their velocities."""
        problem, machine = self.problem, self.problem.machine
        machine.fill(self.penalty, 1.0)
        for j in machine.loop(problem.contacts):
            impulse, velocity, c, scale, x, z, scaled_c = (
                problem.of_contact(v, j) for v in (impulses, u, problem.c, self.scale, self.x, self.z, self.c)
            )
            machine.call(_scale_of(problem.rows), problem.own_blocks(j), [scale])
            given = [impulse, velocity, c, problem.friction_of(j), scale]
            machine.call(_scaled_problem(problem.rows), given, [x, z, scaled_c, self._friction_of(j)])
        machine.copy(self.y, self.x)

    def factorise(self) -> None:
        """(scaled W + (penalty + η) E)⁻¹, transposed."""
        problem, machine, n = self.problem, self.problem.machine, self.problem.size
        for i in machine.loop(n):
            for j in machine.loop(problem.contacts):
                given = [problem.block_of_column(i, j), self.scale.at(i), problem.of_contact(self.scale, j)]
                place = self._matrix.at(n * i + problem.rows * j, problem.rows)
                machine.call(_scaled_row(problem.rows), given, [place])
        for i in machine.loop(n):
            place = self._matrix.at(n * i + i)
            machine.call(_diagonal(), [place, self.penalty], [place])
        invert(machine, self._matrix, n)

    def do(self) -> None:
        """One pass."""
        problem, machine = self.problem, self.problem.machine
        for j in machine.loop(problem.contacts):
            given = [problem.of_contact(v, j) for v in (self.x, self.y, self.z, self.c)]
            given += [self._friction_of(j), self.penalty]
            machine.call(_right_side(problem.rows), given, [problem.of_contact(self._right, j)])
        machine.fill(self.x, 0.0)
        add_product(machine, self.x, self._matrix, self._right, problem.rows)
        machine.fill(self._apart, 0.0)
        for j in machine.loop(problem.contacts):
            x, y, z = (problem.of_contact(v, j) for v in (self.x, self.y, self.z))
            given = [x, y, z, self._friction_of(j), self.penalty, self._apart]
            machine.call(_next_pair(problem.rows), given, [y, z, self._apart])

    def result(self, impulses: Span) -> None:
        """The impulses, which are in their cones."""
        problem, machine = self.problem, self.problem.machine
        for j in machine.loop(problem.contacts):
            given = [problem.of_contact(self.y, j), problem.of_contact(self.scale, j)]
            machine.call(_unscaled(problem.rows), given, [problem.of_contact(impulses, j)])

    def adapt(self) -> None:
        self.problem.machine.call(_next_penalty(), [self.penalty, self._apart], [self.penalty])
