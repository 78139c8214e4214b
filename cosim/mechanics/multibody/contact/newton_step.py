"""A step of the semismooth Newton method on problems of contacts (Alart and Curnier 1991).

Each contact is open, sticks or slides as the point shows, and is linear then:

    open    δ = −Λ
    sticks  W δ + ε w δ = −u
    slides  n: W δ + ε w δ = −u;  T: w (δ_T − μ d δ_n) − q P (w δ_T − (W δ)_T) = w (μ Λ_n d − Λ_T)

with d the direction of Λ_T − u_T / w, P = E − d dᵀ, q = μ Λ_n / |Λ_T − u_T / w| ≤ 1, w the mean mobility and ε a
proximal term, which makes redundant contacts solvable. Every row is Σ M W + D with M and D of the contact alone.
"""

from __future__ import annotations

from functools import cache

from cosim.core import ops
from cosim.core.compile.array_program import Place, Span
from cosim.core.compile.routine import Routine
from cosim.core.types import Numeric
from cosim.mechanics.multibody.contact.cone import can_move, length, mean_mobility
from cosim.mechanics.multibody.contact.contact_problem import ROWS, VECTOR, ContactProblem

PROXIMAL = 1e-9  # ε


def linear_law(
    impulse: Numeric, velocity: Numeric, friction: Numeric, a0: Numeric, a1: Numeric, a2: Numeric, proximal: Numeric
) -> tuple[Numeric, ...]:
    """(closed (), M (5,), D (9,), right side (3,), its derivative by μ (2,), δ (3,) where it is open) of a contact.
    M: of the tangential rows, then of the normal one."""
    diagonal = ops.array([a0[0], a1[1], a2[2]])
    w = mean_mobility(diagonal)
    pressed = impulse[2] - velocity[2] / w
    x, y = impulse[0] - velocity[0] / w, impulse[1] - velocity[1] / w
    size = length(x, y)
    radius = friction * ops.maximum(impulse[2], 0.0)
    closed, sticks = ops.logical_and(pressed > 0.0, can_move(diagonal)), size <= friction * ops.maximum(pressed, 0.0)
    d, q = (x / size, y / size), ops.minimum(radius / size, 1.0)
    across = [[q * ((1.0 if i == j else 0.0) - d[i] * d[j]) for j in range(2)] for i in range(2)]  # q P
    own = proximal * w
    M, D, right = [], [], []
    for i in range(2):
        for j in range(2):
            unit = 1.0 if i == j else 0.0
            M.append(ops.where(sticks, unit, across[i][j]))
            D.append(ops.where(sticks, unit * own, (unit - across[i][j]) * w))
        D.append(ops.where(sticks, 0.0, -friction * d[i] * w))
        right.append(ops.where(sticks, -velocity[i], (radius * d[i] - impulse[i]) * w))
    M.append(1.0)
    D += [0.0, 0.0, own]
    right.append(-velocity[2])
    flag = ops.where(closed, 1.0, 0.0)
    by_friction = [ops.where(sticks, 0.0, impulse[2] * w * component) for component in d]
    return flag, ops.array(M), ops.array(D), ops.array(right), ops.array(by_friction), -impulse * (1.0 - flag)


def factor_of(element: Numeric, pivot: Numeric, closed: Numeric) -> Numeric:
    """The multiple of the row of a pivot that makes an element 0; 0 where the pivot's contact is open."""
    return ops.where(closed > 0.0, element / pivot, 0.0)


def component(total: Numeric, pivot: Numeric) -> Numeric:
    """δ of a row, from Σ a δ − b over the others."""
    return -total / pivot


def pulled(closed: Numeric, M: Numeric, by_friction: Numeric, dual: Numeric) -> tuple[Numeric, Numeric]:
    """(derivatives by c (3,), by μ) of a contact with λ = dual."""
    by_c = [-(M[0] * dual[0] + M[2] * dual[1]), -(M[1] * dual[0] + M[3] * dual[1]), -M[4] * dual[2]]
    holds = closed > 0.0
    slipping = by_friction[0] * dual[0] + by_friction[1] * dual[1]
    return ops.array([ops.where(holds, value, 0.0) for value in by_c]), ops.where(holds, slipping, 0.0)


@cache
def _pulled() -> Routine:
    return Routine(pulled, [(), (5,), (2,), VECTOR], "contact_pulled")


@cache
def _linear_law() -> Routine:
    return Routine(linear_law, [VECTOR, VECTOR, (), VECTOR, VECTOR, VECTOR, ()], "contact_linear_law")


@cache
def _factor_of() -> Routine:
    return Routine(factor_of, [(), (), ()], "contact_factor")


@cache
def _component() -> Routine:
    return Routine(component, [(), ()], "contact_component")


class NewtonStep:
    """Steps on one problem, with their own memory: the matrix with the right side as its last column.

    Elimination without pivots, the rows of normals first, whose block is positive definite. Rows of contacts that are
    open in all lanes are left out.
    """

    def __init__(self, problem: ContactProblem, proximal: float = PROXIMAL) -> None:
        machine, k, n = problem.machine, problem.contacts, problem.size
        self.problem, self.width, self._proximal = problem, n + 1, proximal
        self._rows, self._closed, self._change = machine.space(n * (n + 1)), machine.space(k), machine.space(n + 1)
        self._M, self._D, self._right = machine.space(5), machine.space(ROWS * ROWS), machine.space(ROWS)
        self._by_friction = machine.space(2)
        self._scalar, self._one, self._given = machine.space(1), machine.space(1), machine.space(1)

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
            machine.call(_pulled(), given, [problem.of_contact(by_c, j), by_friction.at(j)])

    def _row(self, index: Place) -> Span:
        return self._rows.at(self.width * index, self.width)

    def _law(self, contact: Place, impulses: Span, u: Span, leaving: Span) -> None:
        """M, D, right side and the other parts of the linear law of a contact."""
        problem = self.problem
        given = [problem.of_contact(v, contact) for v in (impulses, u)]
        given += [problem.friction.at(contact), *problem.own_blocks(contact), self._given]
        found = [self._closed.at(contact), self._M, self._D, self._right, self._by_friction, leaving]
        problem.machine.call(_linear_law(), given, found)

    def _linearise(self, impulses: Span, u: Span) -> None:
        """The rows, and −1 for their last column among the unknowns."""
        problem, machine, n = self.problem, self.problem.machine, self.problem.size
        machine.fill(self._one, 1.0)
        machine.fill(self._given, self._proximal)
        machine.fill(self._rows, 0.0)
        machine.fill(self._change.at(n), -1.0)
        for j in machine.loop(problem.contacts):
            self._law(j, impulses, u, problem.of_contact(self._change, j))
            for _ in machine.when(self._closed.at(j)):
                t1, t2, normal = (problem.row(ROWS * j + a) for a in range(ROWS))
                tangential = [[(self._M.at(2 * a), t1), (self._M.at(2 * a + 1), t2)] for a in range(2)]
                for a, terms in enumerate([*tangential, [(self._M.at(4), normal)]]):
                    row = self._row(ROWS * j + a)
                    machine.add(row.at(0, n), terms)
                    machine.add(row.at(ROWS * j, ROWS), [(self._one, self._D.at(ROWS * a, ROWS))])
                    machine.copy(row.at(n), self._right.at(a))

    def _eliminate(self) -> None:
        machine, k = self.problem.machine, self.problem.contacts
        for j in machine.loop(k):
            for _ in machine.when(self._closed.at(j)):
                for i in machine.loop(k, j + 1):
                    self._clear(i, [2], j, 2)
                for i in machine.loop(k):
                    self._clear(i, [0, 1], j, 2)
        for j in machine.loop(k):
            for _ in machine.when(self._closed.at(j)):
                for a in range(2):
                    self._clear(j, [1][a:], j, a)
                    for i in machine.loop(k, j + 1):
                        self._clear(i, [0, 1], j, a)

    def _clear(self, contact: Place, rows: list[int], of: Place, a: int) -> None:
        """Make the elements of these rows of a contact 0 in the column of the row `a` of the contact `of`."""
        machine, column = self.problem.machine, ROWS * of + a
        pivot = self._row(column)
        for _ in machine.when(self._closed.at(contact)):
            for b in rows:
                row = self._row(ROWS * contact + b)
                given = [row.at(column), pivot.at(column), self._closed.at(of)]
                machine.call(_factor_of(), given, [self._scalar])
                machine.add(row, [(self._scalar, pivot)], minus=True)

    def _substitute(self) -> None:
        """δ of the rows in the order against the elimination's."""
        machine, k = self.problem.machine, self.problem.contacts
        for rows in ([1, 0], [2]):
            for j in machine.loop(k):
                contact = k - 1 + (-1) * j
                for _ in machine.when(self._closed.at(contact)):
                    for a in rows:
                        index = ROWS * contact + a
                        row, found = self._row(index), self._scalar
                        machine.dot(found, row, self._change)
                        machine.call(_component(), [found, row.at(index)], [found])
                        machine.choose(self._closed.at(contact), self._change.at(index), found)
