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
from cosim.mechanics.multibody.contact.cone import length, mean_mobility
from cosim.mechanics.multibody.contact.contact_problem import ROWS, VECTOR, ContactProblem

PROXIMAL = 1e-9  # ε


def linear_law(
    impulse: Numeric, velocity: Numeric, friction: Numeric, a0: Numeric, a1: Numeric, a2: Numeric, proximal: Numeric
) -> tuple[Numeric, ...]:
    """(closed (), M (5,), D (9,), right side (3,), δ (3,) where it is open) of a contact. M: of the tangential rows,
    then of the normal one."""
    w = mean_mobility(ops.array([a0[0], a1[1], a2[2]]))
    pressed = impulse[2] - velocity[2] / w
    x, y = impulse[0] - velocity[0] / w, impulse[1] - velocity[1] / w
    size = length(x, y)
    radius = friction * ops.maximum(impulse[2], 0.0)
    closed, sticks = pressed > 0.0, size <= friction * ops.maximum(pressed, 0.0)
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
    return flag, ops.array(M), ops.array(D), ops.array(right), -impulse * (1.0 - flag)


def factor_of(element: Numeric, pivot: Numeric, closed: Numeric) -> Numeric:
    """The multiple of the row of a pivot that makes an element 0; 0 where the pivot's contact is open."""
    return ops.where(closed > 0.0, element / pivot, 0.0)


def component(total: Numeric, pivot: Numeric) -> Numeric:
    """δ of a row, from Σ a δ − b over the others."""
    return -total / pivot


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
        self._M, self._D = machine.space(5), machine.space(ROWS * ROWS)
        self._scalar, self._one, self._given = machine.space(1), machine.space(1), machine.space(1)

    def take(self, target: Span, impulses: Span, u: Span) -> None:
        """target = Λ + δ; NaN where the matrix is singular."""
        machine = self.problem.machine
        machine.fill(self._one, 1.0)
        machine.fill(self._given, self._proximal)
        self._linearise(impulses, u)
        self._eliminate()
        self._substitute()
        machine.copy(target, impulses)
        machine.add(target, [(self._one, self._change.at(0, self.problem.size))])

    def _row(self, index: Place) -> Span:
        return self._rows.at(self.width * index, self.width)

    def _linearise(self, impulses: Span, u: Span) -> None:
        """The rows, and −1 for their last column among the unknowns."""
        problem, machine, n = self.problem, self.problem.machine, self.problem.size
        right = machine.space(ROWS)
        machine.fill(self._rows, 0.0)
        machine.fill(self._change.at(n), -1.0)
        for j in machine.loop(problem.contacts):
            given = [problem.of_contact(v, j) for v in (impulses, u)]
            given += [problem.friction.at(j), *problem.own_blocks(j), self._given]
            found = [self._closed.at(j), self._M, self._D, right, problem.of_contact(self._change, j)]
            machine.call(_linear_law(), given, found)
            for _ in machine.when(self._closed.at(j)):
                t1, t2, normal = (problem.row(ROWS * j + a) for a in range(ROWS))
                tangential = [[(self._M.at(2 * a), t1), (self._M.at(2 * a + 1), t2)] for a in range(2)]
                for a, terms in enumerate([*tangential, [(self._M.at(4), normal)]]):
                    row = self._row(ROWS * j + a)
                    machine.add(row.at(0, n), terms)
                    machine.add(row.at(ROWS * j, ROWS), [(self._one, self._D.at(ROWS * a, ROWS))])
                    machine.copy(row.at(n), right.at(a))

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
