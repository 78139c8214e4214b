"""The derivative of the impulses of contacts: while each stays open, sticks or slides, they follow linear equations,
the ones of a step of Newton's method at the solution (implicit function theorem)."""

from __future__ import annotations

from collections.abc import Sequence

from cosim.core.compile.array_program import ArrayMachine, ArrayProgram, Span
from cosim.core.compile.trace import RoutineBase
from cosim.mechanics.multibody.contact.contact_problem import ContactProblem
from cosim.mechanics.multibody.contact.newton_step import NewtonStep

PROXIMAL = 1e-12  # of the mean mobility


class ContactAdjoint(ArrayProgram):
    """(W, c, friction, before, seed (n,)) -> the derivatives of seed · Λ with respect to the first four, at the Λ of a
    solver. Where W is singular Λ is not unique, and only what does not depend on the choice has a derivative.

    rows: of a contact. finisher: a solver that begins at Λ and goes on until what is missing is rounding, because it
    counts times the curvature of the law, which is great where a contact hardly slides.
    """

    def __init__(self, rows: int, solver: RoutineBase, finisher: RoutineBase) -> None:
        self.rows, self.solver, self.finisher = rows, solver, finisher
        super().__init__(
            self._derive, [*solver.shapes, solver.output_shapes[0]], solver.shapes, f"{solver.name}_adjoint"
        )

    def _derive(self, machine: ArrayMachine, inputs: Sequence[Span], outputs: Sequence[Span]) -> None:
        W, c, friction, before, seed = inputs
        by_W, by_c, by_friction, by_before = outputs
        n = c.length
        impulses, u = machine.space(n), machine.space(n)
        said = [machine.space(size) for size in self.solver.output_sizes[1:]]
        machine.call(self.solver, [W, c, friction, before], [impulses, *said])
        machine.call(self.finisher, [W, c, friction, impulses], [impulses, *said])
        problem = ContactProblem(machine, self.rows, W, c, friction, W)
        problem.velocities(u, impulses)
        NewtonStep(problem, PROXIMAL).pull_back(by_c, by_friction, impulses, u, seed)
        machine.fill(by_before, 0.0)
        machine.fill(by_W, 0.0)
        for i in machine.loop(n):
            machine.add(by_W.at(n * i, n), [(by_c.at(i), impulses)])
