"""Dense linear algebra as parts of programs over arrays; matrices lie in spans row by row. No pivots are chosen."""

from __future__ import annotations

from functools import cache

from cosim.core.compile.array_program import ArrayMachine, Place, Span
from cosim.core.compile.routine import Routine


@cache
def reciprocal() -> Routine:
    return Routine(lambda x: 1.0 / x, [()], "reciprocal")


def add_product(machine: ArrayMachine, target: Span, by_columns: Span, vector: Span, together: int = 1) -> None:
    """target += matrix @ vector, of a matrix whose columns are the rows here. together: rows that are added in one go;
    it divides their number."""
    n = vector.length
    for i in machine.loop(n // together):
        rows = [together * i + a for a in range(together)]
        machine.add(target, [(vector.at(row), by_columns.at(n * row, n)) for row in rows])


def invert(machine: ArrayMachine, matrix: Span, n: int) -> None:
    """matrix (n, n), which is positive definite, becomes its inverse (Gauss and Jordan)."""
    factor, one = machine.space(1), machine.space(1)
    machine.fill(one, 1.0)

    def clear(row: Place, pivot: Place) -> None:
        """Subtract the multiple of the row of the pivot that makes the element of its column 0."""
        element = matrix.at(n * row + pivot)
        machine.copy(factor, element)
        machine.fill(element, 0.0)
        machine.add(matrix.at(n * row, n), [(factor, matrix.at(n * pivot, n))], minus=True)

    scaled = machine.space(n)
    for pivot in machine.loop(n):
        own = matrix.at(n * pivot, n)
        machine.call(reciprocal(), [own.at(pivot)], [factor])
        machine.copy(own.at(pivot), one)
        machine.fill(scaled, 0.0)
        machine.add(scaled, [(factor, own)])
        machine.copy(own, scaled)
        for row in machine.loop(pivot):
            clear(row, pivot)
        for row in machine.loop(n, pivot + 1):
            clear(row, pivot)
