"""A problem of contacts as parts of a program over arrays, and a Gauss–Seidel sweep over it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from cosim.core import ops
from cosim.core.compile.array_program import ArrayMachine, Place, Span
from cosim.core.compile.routine import Routine
from cosim.core.compile.trace import Shape
from cosim.core.types import Numeric
from cosim.mechanics.multibody.contact.cone import DISKS, NORMAL, TINY, length, miss
from cosim.mechanics.multibody.contact.one_contact import one_contact, one_disk


def transposed(machine: ArrayMachine, W: Span, size: int) -> Span:
    """A new array with the columns of W (size, size) in its rows."""
    found = machine.space(size * size)
    for i in machine.loop(size):
        for j in machine.loop(size):
            machine.copy(found.at(size * j + i), W.at(size * i + j))
    return found


@dataclass(frozen=True)
class ContactProblem:
    """u = W Λ + c with friction μ: spans W (k rows, k rows), c (k rows,), friction (k disks,). by_columns: W
    transposed, itself where it is symmetric."""

    machine: ArrayMachine
    rows: int  # of a contact
    W: Span
    c: Span
    friction: Span
    by_columns: Span

    @property
    def contacts(self) -> int:
        return self.c.length // self.rows

    @property
    def size(self) -> int:
        return self.c.length

    @property
    def disks(self) -> tuple[tuple[int, ...], ...]:
        return DISKS[self.rows]

    def row(self, index: Place) -> Span:
        """A row of W."""
        return self.W.at(self.size * index, self.size)

    def column(self, index: Place) -> Span:
        """A column of W."""
        return self.by_columns.at(self.size * index, self.size)

    def of_contact(self, vector: Span, contact: Place) -> Span:
        """The rows of one contact."""
        return vector.at(self.rows * contact, self.rows)

    def friction_of(self, contact: Place) -> Span:
        return self.friction.at(len(self.disks) * contact, len(self.disks))

    def block(self, row: Place, contact: Place) -> Span:
        """The elements of a row of W in the columns of one contact."""
        return self.W.at(self.size * row + self.rows * contact, self.rows)

    def block_of_column(self, column: Place, contact: Place) -> Span:
        """The elements of a column of W in the rows of one contact."""
        return self.by_columns.at(self.size * column + self.rows * contact, self.rows)

    def own_blocks(self, contact: Place) -> list[Span]:
        """The rows of the block of one contact on the diagonal of W."""
        return [self.block(self.rows * contact + k, contact) for k in range(self.rows)]

    def velocities(self, u: Span, impulses: Span) -> None:
        """u = W Λ + c."""
        machine, carries = self.machine, self.machine.space(1)
        machine.copy(u, self.c)
        for j in machine.loop(self.contacts):
            own = self.of_contact(impulses, j)
            machine.call(_carries(self.rows), [own], [carries])
            for _ in machine.when(carries):
                self._add_response(u, j, own)

    def _add_response(self, u: Span, contact: Place, change: Span) -> None:
        """Add what a change of the impulse of one contact does."""
        columns = [self.column(self.rows * contact + k) for k in range(self.rows)]
        self.machine.add(u, [(change.at(k), column) for k, column in enumerate(columns)])

    def measure(self, worst: Span, impulses: Span, u: Span) -> None:
        """worst = the largest miss of a contact; one without impulse that opens has none."""
        machine, closed = self.machine, self.machine.space(1)
        machine.fill(worst, 0.0)
        for j in machine.loop(self.contacts):
            own, velocity = self.of_contact(impulses, j), self.of_contact(u, j)
            machine.call(_is_closed(self.rows), [own, velocity], [closed])
            for _ in machine.when(closed):
                given = [*self.own_blocks(j), own, velocity, self.friction_of(j), worst]
                machine.call(_worst(self.rows), given, [worst])

    def sweep(self, impulses: Span, u: Span) -> None:
        """The exact solution of each contact in turn, with the others as they are; u follows, but for rounding of what
        came between. A contact without impulse that opens costs a comparison."""
        machine = self.machine
        closed, found, change = machine.space(1), machine.space(self.rows), machine.space(self.rows)
        for j in machine.loop(self.contacts):
            own, velocity = self.of_contact(impulses, j), self.of_contact(u, j)
            machine.call(_is_closed(self.rows), [own, velocity], [closed])
            for _ in machine.when(closed):
                given = [*self.own_blocks(j), own, velocity, self.friction_of(j), closed]
                machine.call(_solved(self.rows), given, [found, change])
                machine.copy(own, found)
                self._add_response(u, j, change)


def carries(impulse: Numeric) -> Numeric:
    """1 for a contact with an impulse, else 0."""
    return ops.where(ops.sum(ops.abs(impulse[k]) for k in range(len(impulse))) == 0.0, 0.0, 1.0)


def is_closed(impulse: Numeric, velocity: Numeric) -> Numeric:
    """1 for a contact that has an impulse or comes closer, else 0; 1 where a number is missing."""
    present = ops.sum(ops.abs(velocity[k]) for k in range(len(velocity))) < float("inf")
    opens = ops.logical_and(velocity[NORMAL] >= 0.0, present)
    return ops.where(opens, carries(impulse), 1.0)


def solved(*given: Numeric) -> tuple[Numeric, Numeric]:
    """(the impulse of a contact with the others as they are, the change); unchanged where it is not closed. given: the
    rows of its block of W, its impulse, velocity and friction, and whether it is closed.

    Sliding is exact together with the normal, then each other disk by itself with the normal impulse found."""
    *block, impulse, velocity, friction, closed = given
    rows, new = len(impulse), [impulse[k] for k in range(len(impulse))]
    first, *others = DISKS[rows]
    apart = [((*first, NORMAL), 0), *((disk, number) for number, disk in enumerate(others, 1))]
    for part, number in apart:
        now = [velocity[k] + ops.sum(block[k][i] * (new[i] - impulse[i]) for i in range(rows)) for k in part]
        matrix = [[block[k][i] for i in part] for k in part]
        without = [
            u - ops.sum(row[i] * new[part[i]] for i in range(len(part))) for u, row in zip(now, matrix, strict=True)
        ]
        disk = DISKS[rows][number]
        across = length(*(new[k] for k in disk))
        speed = length(*(u for k, u in zip(part, now, strict=True) if k in disk))
        guess = ops.where(across > 1e-100, speed / ops.maximum(across, TINY), 0.0)
        if number == 0:
            found = one_contact(matrix, without, friction[0], guess)
        else:
            found = one_disk(matrix, without, friction[number] * new[NORMAL], guess)
        for place, k in enumerate(part):
            new[k] = found[place]
    result = ops.where(closed > 0.0, ops.array(new), impulse)
    return result, result - impulse


def worst_of(*given: Numeric) -> Numeric:
    """The larger one of a contact's miss and the worst so far. given: as of `solved`, then the worst."""
    *block, impulse, velocity, friction, worst = given
    return ops.maximum(worst, miss(impulse, velocity, friction, diagonal_of(block)))


def diagonal_of(block: list[Numeric]) -> Numeric:
    return ops.array([row[k] for k, row in enumerate(block)])


def shapes_of(rows: int) -> list[Shape]:
    """Of the block of W, impulse, velocity and friction of a contact."""
    return [(rows,)] * (rows + 2) + [(len(DISKS[rows]),)]


@cache
def _carries(rows: int) -> Routine:
    return Routine(carries, [(rows,)], "contact_carries")


@cache
def _is_closed(rows: int) -> Routine:
    return Routine(is_closed, [(rows,), (rows,)], "contact_is_closed")


@cache
def _solved(rows: int) -> Routine:
    return Routine(solved, [*shapes_of(rows), ()], "contact_solved")


@cache
def _worst(rows: int) -> Routine:
    return Routine(worst_of, [*shapes_of(rows), ()], "contact_miss")
