"""A problem of contacts as parts of a program over arrays, and a Gauss–Seidel sweep over it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from cosim.core import ops
from cosim.core.compile.array_program import ArrayMachine, Place, Span
from cosim.core.compile.routine import Routine
from cosim.core.types import Numeric
from cosim.mechanics.multibody.contact.cone import TINY, length, miss
from cosim.mechanics.multibody.contact.one_contact import one_contact

ROWS = 3  # t1, t2, n of a contact
VECTOR = (ROWS,)


@dataclass(frozen=True)
class ContactProblem:
    """u = W Λ + c with friction μ: spans W (3k, 3k), c (3k,), friction (k,)."""

    machine: ArrayMachine
    W: Span
    c: Span
    friction: Span

    @property
    def contacts(self) -> int:
        return self.friction.length

    @property
    def size(self) -> int:
        return self.c.length

    def row(self, index: Place) -> Span:
        """A row of W."""
        return self.W.at(self.size * index, self.size)

    def of_contact(self, vector: Span, contact: Place) -> Span:
        """(3,): the rows of one contact."""
        return vector.at(ROWS * contact, ROWS)

    def block(self, row: Place, contact: Place) -> Span:
        """(3,): the elements of a row of W in the columns of one contact."""
        return self.W.at(self.size * row + ROWS * contact, ROWS)

    def own_blocks(self, contact: Place) -> list[Span]:
        """The rows of the block of one contact on the diagonal of W."""
        return [self.block(ROWS * contact + k, contact) for k in range(ROWS)]

    def velocities(self, u: Span, impulses: Span) -> None:
        """u = W Λ + c."""
        machine, carries = self.machine, self.machine.space(1)
        machine.copy(u, self.c)
        for j in machine.loop(self.contacts):
            own = self.of_contact(impulses, j)
            machine.call(_carries(), [own], [carries])
            for _ in machine.when(carries):
                self._add_response(u, j, own)

    def _add_response(self, u: Span, contact: Place, change: Span) -> None:
        """Add what a change of the impulse of one contact does; W is symmetric."""
        rows = [self.row(ROWS * contact + k) for k in range(ROWS)]
        self.machine.add(u, [(change.at(k), row) for k, row in enumerate(rows)])

    def measure(self, worst: Span, impulses: Span, u: Span) -> None:
        """worst = the largest miss of a contact [m/s]; one without impulse that opens has none."""
        machine, closed = self.machine, self.machine.space(1)
        machine.fill(worst, 0.0)
        for j in machine.loop(self.contacts):
            own, velocity = self.of_contact(impulses, j), self.of_contact(u, j)
            machine.call(_is_closed(), [own, velocity], [closed])
            for _ in machine.when(closed):
                given = [own, velocity, self.friction.at(j), *self.own_blocks(j), worst]
                machine.call(_worst(), given, [worst])

    def sweep(self, impulses: Span, u: Span) -> None:
        """The exact solution of each contact in turn, with the others as they are; u follows, but for rounding of what
        came between. A contact without impulse that opens costs a comparison."""
        machine = self.machine
        closed, solved, change = machine.space(1), machine.space(ROWS), machine.space(ROWS)
        for j in machine.loop(self.contacts):
            own, velocity = self.of_contact(impulses, j), self.of_contact(u, j)
            machine.call(_is_closed(), [own, velocity], [closed])
            for _ in machine.when(closed):
                given = [*self.own_blocks(j), own, velocity, self.friction.at(j), closed]
                machine.call(_solved(), given, [solved, change])
                machine.copy(own, solved)
                self._add_response(u, j, change)


def carries(impulse: Numeric) -> Numeric:
    """1 for a contact with an impulse, else 0."""
    return ops.where(ops.abs(impulse[0]) + ops.abs(impulse[1]) + ops.abs(impulse[2]) == 0.0, 0.0, 1.0)


def is_closed(impulse: Numeric, velocity: Numeric) -> Numeric:
    """1 for a contact that has an impulse or comes closer, else 0."""
    opens = velocity[0] + velocity[1] < float("inf")  # a missing number must not pass
    opens = ops.logical_and(ops.logical_and(velocity[2] >= 0.0, velocity[2] < float("inf")), opens)
    return ops.where(opens, carries(impulse), 1.0)


def solved(
    a0: Numeric, a1: Numeric, a2: Numeric, impulse: Numeric, velocity: Numeric, friction: Numeric, closed: Numeric
) -> tuple[Numeric, Numeric]:
    """(its impulse with the others as they are, the change); unchanged where it is not closed."""
    rows = [a0, a1, a2]
    others = ops.array([velocity[k] - rows[k] @ impulse for k in range(ROWS)])
    across = length(impulse[0], impulse[1])
    guess = ops.where(across > 1e-100, length(velocity[0], velocity[1]) / ops.maximum(across, TINY), 0.0)
    found = one_contact(rows, others, friction, guess)
    new = ops.where(closed > 0.0, found, impulse)
    return new, new - impulse


def worst_of(
    impulse: Numeric, velocity: Numeric, friction: Numeric, a0: Numeric, a1: Numeric, a2: Numeric, worst: Numeric
) -> Numeric:
    """The larger one of a contact's miss and the worst so far."""
    return ops.maximum(worst, miss(impulse, velocity, friction, ops.array([a0[0], a1[1], a2[2]])))


@cache
def _carries() -> Routine:
    return Routine(carries, [VECTOR], "contact_carries")


@cache
def _is_closed() -> Routine:
    return Routine(is_closed, [VECTOR, VECTOR], "contact_is_closed")


@cache
def _solved() -> Routine:
    return Routine(solved, [VECTOR, VECTOR, VECTOR, VECTOR, VECTOR, (), ()], "contact_solved")


@cache
def _worst() -> Routine:
    return Routine(worst_of, [VECTOR, VECTOR, (), VECTOR, VECTOR, VECTOR, ()], "contact_miss")
