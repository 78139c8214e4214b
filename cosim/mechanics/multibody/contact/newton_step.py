"""A step of the semismooth Newton method on problems of contacts (Alart and Curnier 1991).

Each contact is open or closed, and each disk D of friction of a closed one sticks or moves, as the point shows; it is
linear then:

    open    δ = −Λ
    closed  n: W δ + ε w δ = −u
    sticks  D: W δ + ε w δ = −u
    moves   D: w (δ_D − μ d δ_n) − q P (w δ_D − (W δ)_D) = w (μ Λ_n d − Λ_D)

with d the direction of Λ_D − u_D / w, P = E − d dᵀ, q = μ Λ_n / |Λ_D − u_D / w| ≤ 1, w the mobility of the row and ε a
proximal term, which makes redundant contacts solvable. Every row is Σ M W + D with M and D of the contact alone.
"""

from __future__ import annotations

from functools import cache

from cosim.core import ops
from cosim.core.compile.array_program import Place, Span
from cosim.core.compile.routine import Routine
from cosim.core.types import Numeric
from cosim.mechanics.multibody.contact.cone import DISKS, NORMAL, can_move, length, mobilities
from cosim.mechanics.multibody.contact.contact_problem import ContactProblem, diagonal_of, shapes_of

PROXIMAL = 1e-9  # ε


def linear_law(*given: Numeric) -> tuple[Numeric, ...]:
    """(closed (), M (rows, rows), D (rows, rows), right side (rows,), its derivative by μ of the row's disk (rows,), δ
    (rows,) where it is open) of a contact. given: the rows of its block of W, its impulse, velocity and friction, ε."""
    *block, impulse, velocity, friction, proximal = given
    rows, diagonal = len(impulse), diagonal_of(block)
    w = mobilities(diagonal)
    pressed = impulse[NORMAL] - velocity[NORMAL] / w[NORMAL]
    closed = ops.logical_and(pressed > 0.0, can_move(diagonal))
    M, D = ([[0.0] * rows for _ in range(rows)] for _ in range(2))
    right, by_friction = [0.0] * rows, [0.0] * rows
    M[NORMAL][NORMAL], D[NORMAL][NORMAL], right[NORMAL] = 1.0, proximal * w[NORMAL], -velocity[NORMAL]
    for disk, mu in zip(DISKS[rows], friction, strict=True):
        own = w[disk[0]]
        beyond = [impulse[k] - velocity[k] / own for k in disk]
        size = length(*beyond)
        radius = mu * ops.maximum(impulse[NORMAL], 0.0)
        sticks = size <= mu * ops.maximum(pressed, 0.0)
        d, q = dict(zip(disk, (x / size for x in beyond), strict=True)), ops.minimum(radius / size, 1.0)
        for i in disk:
            for j in disk:
                unit = 1.0 if i == j else 0.0
                across = q * (unit - d[i] * d[j])  # q P
                M[i][j] = ops.where(sticks, unit, across)
                D[i][j] = ops.where(sticks, unit * proximal * own, (unit - across) * own)
            D[i][NORMAL] = ops.where(sticks, 0.0, -mu * d[i] * own)
            right[i] = ops.where(sticks, -velocity[i], (radius * d[i] - impulse[i]) * own)
            by_friction[i] = ops.where(sticks, 0.0, impulse[NORMAL] * own * d[i])
    flag = ops.where(closed, 1.0, 0.0)
    found = [ops.array(part) for part in (M, D, right, by_friction)]
    return flag, *found, -impulse * (1.0 - flag)


def factor_of(element: Numeric, pivot: Numeric, closed: Numeric) -> Numeric:
    """The multiple of the row of a pivot that makes an element 0; 0 where the pivot's contact is open."""
    return ops.where(closed > 0.0, element / pivot, 0.0)


def component(total: Numeric, pivot: Numeric) -> Numeric:
    """δ of a row, from Σ a δ − b over the others."""
    return -total / pivot


def pulled(closed: Numeric, M: Numeric, by_friction: Numeric, dual: Numeric) -> tuple[Numeric, Numeric]:
    """(derivatives by c (rows,), by μ of each disk) of a contact with λ = dual."""
    rows, holds = len(dual), closed > 0.0
    by_c = [-ops.sum(M[i, k] * dual[i] for i in range(rows)) for k in range(rows)]
    by_mu = [ops.sum(by_friction[i] * dual[i] for i in disk) for disk in DISKS[rows]]
    return tuple(ops.array([ops.where(holds, value, 0.0) for value in part]) for part in (by_c, by_mu))  # type: ignore[return-value]


@cache
def _pulled(rows: int) -> Routine:
    return Routine(pulled, [(), (rows, rows), (rows,), (rows,)], "contact_pulled")


@cache
def _linear_law(rows: int) -> Routine:
    return Routine(linear_law, [*shapes_of(rows), ()], "contact_linear_law")


@cache
def _factor_of() -> Routine:
    return Routine(factor_of, [(), (), ()], "contact_factor")


@cache
def _component() -> Routine:
    return Routine(component, [(), ()], "contact_component")


class NewtonStep:
    """Steps on one problem, with their own memory: the matrix with the right side as its last column.

    Elimination without pivots, the rows of normals first, whose block is positive definite. Rows of contacts that are
    open in all SIMD lanes are left out.
    """

    def __init__(self, problem: ContactProblem, proximal: float = PROXIMAL) -> None:
        machine, k, n = problem.machine, problem.contacts, problem.size
        self.problem, self.width, self._proximal = problem, n + 1, proximal
        self._rows, self._closed, self._change = machine.space(n * (n + 1)), machine.space(k), machine.space(n + 1)
        rows = problem.rows
        self._M, self._D, self._right, self._by_friction = (
            machine.space(size) for size in (rows * rows, rows * rows, rows, rows)
        )
        # which rows of W a row is made of, and the rows in the order of their elimination
        self._made_of = {NORMAL: (NORMAL,)} | {row: disk for disk in problem.disks for row in disk}
        self._across = [(0, NORMAL), (NORMAL + 1, rows)][: 1 + (rows > 3)]  # ranges of the rows beside the normal
        self._scalar, self._one, self._given = (machine.space(1) for _ in range(3))

    def take(self, target: Span, impulses: Span, u: Span) -> None:
        """target = Λ + δ; NaN where the matrix is singular."""
        machine = self.problem.machine
        self._linearise(impulses, u)
        self._eliminate()
        self._substitute()
        machine.copy(target, impulses)
        machine.add(target, [(self._one, self._change.at(0, self.problem.size))])

    def pull_back(self, by_c: Span, by_friction: Span, impulses: Span, u: Span, seed: Span) -> None:
        """The derivatives of seed · Λ with respect to c and μ at a solution: with Jᵀ λ = seed, −Mᵀ λ and Λ_n w d · λ_T,
        for the matrix J of the step; what opens has none."""
        problem, machine, n = self.problem, self.problem.machine, self.problem.size
        machine.fill(self._rows, 0.0)  # those of open contacts become columns
        self._linearise(impulses, u)
        for i in machine.loop(n):
            for j in machine.loop(i):
                one, other = self._row(i).at(j), self._row(j).at(i)
                machine.copy(self._scalar, one)
                machine.copy(one, other)
                machine.copy(other, self._scalar)
            machine.copy(self._row(i).at(n), seed.at(i))
        machine.fill(self._change.at(0, n), 0.0)
        self._eliminate()
        self._substitute()
        for j in machine.loop(problem.contacts):
            self._law(j, impulses, u, self._right)
            given = [self._closed.at(j), self._M, self._by_friction, problem.of_contact(self._change, j)]
            disks = len(problem.disks)
            machine.call(_pulled(problem.rows), given, [problem.of_contact(by_c, j), by_friction.at(disks * j, disks)])

    def _row(self, index: Place) -> Span:
        return self._rows.at(self.width * index, self.width)

    def _law(self, contact: Place, impulses: Span, u: Span, leaving: Span) -> None:
        """M, D, right side and the other parts of the linear law of a contact."""
        problem = self.problem
        given = [*problem.own_blocks(contact), *(problem.of_contact(v, contact) for v in (impulses, u))]
        given += [problem.friction_of(contact), self._given]
        found = [self._closed.at(contact), self._M, self._D, self._right, self._by_friction, leaving]
        problem.machine.call(_linear_law(problem.rows), given, found)

    def _linearise(self, impulses: Span, u: Span) -> None:
        """The rows, and −1 for their last column among the unknowns."""
        problem, machine, n, rows = self.problem, self.problem.machine, self.problem.size, self.problem.rows
        machine.fill(self._one, 1.0)
        machine.fill(self._given, self._proximal)
        machine.fill(self._change.at(n), -1.0)
        for j in machine.loop(problem.contacts):
            self._law(j, impulses, u, problem.of_contact(self._change, j))
            for _ in machine.when(self._closed.at(j)):
                for a, of in self._made_of.items():
                    row = self._row(rows * j + a)
                    machine.fill(row, 0.0)
                    machine.add(row.at(0, n), [(self._M.at(rows * a + b), problem.row(rows * j + b)) for b in of])
                    machine.add(row.at(rows * j, rows), [(self._one, self._D.at(rows * a, rows))])
                    machine.copy(row.at(n), self._right.at(a))

    def _eliminate(self) -> None:
        machine, k = self.problem.machine, self.problem.contacts
        for j in machine.loop(k):
            for _ in machine.when(self._closed.at(j)):
                for i in machine.loop(k, j + 1):
                    self._clear(i, (NORMAL, NORMAL + 1), j, NORMAL)
                for i in machine.loop(k):
                    self._clear_across(i, j, NORMAL)
        for j in machine.loop(k):
            for _ in machine.when(self._closed.at(j)):
                for number, (first, beyond) in enumerate(self._across):
                    for a in machine.loop(beyond, first):
                        self._clear(j, (a + 1, beyond), j, a)
                        for later in self._across[number + 1 :]:
                            self._clear(j, later, j, a)
                        for i in machine.loop(k, j + 1):
                            self._clear_across(i, j, a)

    def _clear_across(self, contact: Place, of: Place, a: Place) -> None:
        for rows in self._across:
            self._clear(contact, rows, of, a)

    def _clear(self, contact: Place, rows: tuple[Place, Place], of: Place, a: Place) -> None:
        """Make the elements of these rows of a contact 0 in the column of the row `a` of the contact `of`. rows: the
        first, and the one beyond the last."""
        machine, each = self.problem.machine, self.problem.rows
        column = each * of + a
        pivot = self._row(column)
        for _ in machine.when(self._closed.at(contact)):
            for b in machine.loop(rows[1], rows[0]):
                row = self._row(each * contact + b)
                given = [row.at(column), pivot.at(column), self._closed.at(of)]
                machine.call(_factor_of(), given, [self._scalar])
                machine.add(row, [(self._scalar, pivot)], minus=True)

    def _substitute(self) -> None:
        """δ of the rows in the order against the elimination's."""
        machine, k = self.problem.machine, self.problem.contacts
        for ranges in (self._across[::-1], [(NORMAL, NORMAL + 1)]):
            for j in machine.loop(k):
                contact = k - 1 + (-1) * j
                for _ in machine.when(self._closed.at(contact)):
                    for first, beyond in ranges:
                        for b in machine.loop(beyond, first):
                            index = self.problem.rows * contact + (first + beyond - 1 + (-1) * b)
                            row, found = self._row(index), self._scalar
                            machine.dot(found, row, self._change)
                            machine.call(_component(), [found, row.at(index)], [found])
                            machine.choose(self._closed.at(contact), self._change.at(index), found)
