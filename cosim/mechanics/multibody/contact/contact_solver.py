"""The impulses of contacts with friction: u = W Λ + c with the exact law of Signorini and Coulomb, not relaxed.

Passes of three methods, each where it is strong: a Gauss–Seidel sweep with the exact solution of each contact, which is
all that a warm start at rest needs; a semismooth Newton step from there, taken only where it is nearer to the law; and
where that goes round in circles, passes of ADMM, from whose result it begins again. Sweeps alone are not offered: on
redundant contacts and great ratios of masses they stall without a sign.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property

from cosim.core import ops
from cosim.core.compile.array_program import ArrayMachine, ArrayProgram, Span
from cosim.core.compile.routine import Routine
from cosim.core.types import Numeric, param, params
from cosim.mechanics.multibody.contact import admm
from cosim.mechanics.multibody.contact.admm import AlternatingPasses
from cosim.mechanics.multibody.contact.cone import DISKS
from cosim.mechanics.multibody.contact.contact_adjoint import ContactAdjoint
from cosim.mechanics.multibody.contact.contact_problem import ContactProblem, transposed
from cosim.mechanics.multibody.contact.newton_step import NewtonStep

NEWTON_PASSES = 6  # before ADMM takes over
NEWTON_PASSES_AFTER = 2  # from each result of ADMM
# of a rig that does not give them
TOLERANCE = 1e-10  # [m/s]
MOST_PASSES = 500
# residuals in tolerances, above which …
UNCONVERGED = 1e2  # … a step counts as not solved
UNSOLVED = 1e4  # … a plant must not go on for long
# of the solver that goes on where derivatives are taken
FINISHING_PASSES, ROUNDING = 2, 1e-16
NEARER = 1.0 - 1e-9  # of the best residual: impulses on what cannot move change it by rounding


@params
class SolverBounds:
    """When the solver of the contacts ends: `tolerance` of its residual [m/s], and the greatest number of passes."""

    tolerance: float = param(unit="m/s", min=1e-12, max=1e-4, default=TOLERANCE)
    passes: int = param(min=1, max=10_000, default=MOST_PASSES)

    @property
    def unconverged(self) -> float:
        """A residual above which a step counts as not solved [m/s]."""
        return UNCONVERGED * self.tolerance

    @property
    def unsolved(self) -> float:
        """A residual above which a plant must not go on for long [m/s]."""
        return UNSOLVED * self.tolerance


def judged(
    going: Numeric, worst: Numeric, residual: Numeric, passes: Numeric, done: Numeric, tolerance: Numeric
) -> tuple[Numeric, ...]:
    """(whether a point is the best so far, the best's residual, passes, whether to go on) after `done` passes."""
    better = ops.logical_and(going > 0.0, worst < NEARER * residual)
    residual, passes = ops.where(better, worst, residual), passes + going * done
    unsolved = ops.logical_not(residual <= tolerance)
    goes_on = ops.where(ops.logical_and(going > 0.0, unsolved), 1.0, 0.0)
    return ops.where(better, 1.0, 0.0), residual, passes, goes_on


def tried(going: Numeric, left: Numeric) -> tuple[Numeric, Numeric]:
    """(whether another pass is to be tried, how many are left)."""
    return ops.where(left > 1.0, going, 0.0), left - 1.0


@cache
def _tried() -> Routine:
    return Routine(tried, [(), ()], "contact_tried")


@cache
def _judged() -> Routine:
    return Routine(judged, [()] * 6, "contact_judged")


@cache
def _both() -> Routine:
    return Routine(lambda flag, x, y: ops.where(ops.logical_and(flag > 0.0, x < y), 1.0, 0.0), [()] * 3, "contact_both")


@cache
def _at_most() -> Routine:
    return Routine(lambda x, y: ops.where(x <= y, 1.0, 0.0), [()] * 2, "contact_at_most")


class ContactSolver(ArrayProgram):
    """Λ, passes, residual, converged = ContactSolver(k)(W, c, friction, before), a routine like `Routine`.

    W (n, n) [1/kg]: positive semidefinite, and symmetric unless otherwise said, with n = k rows; c (n,) [m/s];
    friction: μ ≥ 0, (k,) for contacts of 3 rows, else (k, disks) with its coefficients of sliding, spinning and rolling
    [–, m, m]; before (n,) [N s]: Λ of the step before, the warm start and all that is kept between steps. Rows of a
    contact: t1, t2, n; with 4 rows then spin; with 6 then roll1, roll2, see `cone`.

    Λ (n,) [N s] is the best point found; residual () [m/s]: the largest component of its natural map
    (`cone.natural_map`), infinite where a number is missing; converged (): 1 if it is within the tolerance, else 0;
    passes (): sweeps and passes of ADMM, at most `most_passes`. The length of the code does not depend on k. Blocks of
    W in the columns of contacts that are open are not read.
    """

    def __init__(
        self,
        contacts: int,
        most_passes: int = MOST_PASSES,
        tolerance: float = TOLERANCE,
        rows: int = 3,
        name: str = "contact_solver",
        symmetric: bool = True,
    ) -> None:
        """tolerance [m/s]; rows: of a contact, 3, 4 or 6; symmetric: whether W is. Raises ValueError for other rows, no
        contact, no pass, or a tolerance that is not positive."""
        if rows not in DISKS:
            raise ValueError(f"a contact has {', '.join(map(str, DISKS))} rows, got {rows}")
        if contacts < 1 or most_passes < 1 or not tolerance > 0.0:
            what = f"{contacts} contacts, {most_passes} passes, tolerance {tolerance} m/s"
            raise ValueError(f"a solver needs at least one contact and one pass and a positive tolerance, got {what}")
        self.contacts, self.most_passes, self.tolerance, self.rows = contacts, most_passes, tolerance, rows
        self.symmetric = symmetric
        n, disks = rows * contacts, len(DISKS[rows])
        shapes = [(n, n), (n,), (contacts,) if disks == 1 else (contacts, disks), (n,)]
        super().__init__(self._solve, shapes, [(n,), (), (), ()], name)

    @cached_property
    def own_adjoint(self) -> ContactAdjoint:  # type: ignore[override]
        return ContactAdjoint(
            self.rows,
            self,
            ContactSolver(self.contacts, FINISHING_PASSES, ROUNDING, self.rows, f"{self.name}_finisher"),
        )

    def _solve(self, machine: ArrayMachine, inputs: Sequence[Span], outputs: Sequence[Span]) -> None:
        W, c, friction, before = inputs
        impulses, passes, residual, converged = outputs
        by_columns = W if self.symmetric else transposed(machine, W, c.length)
        problem = ContactProblem(machine, self.rows, W, c, friction, by_columns)
        search = _ImpulseSearch(problem, self.tolerance, impulses, passes, residual)
        rounds = (self.most_passes - NEWTON_PASSES + NEWTON_PASSES_AFTER) // (NEWTON_PASSES_AFTER + admm.PASSES)
        search.begin(before, NEWTON_PASSES if rounds > 0 else self.most_passes)
        for _ in machine.repeat(search.going, max(rounds, 1)):
            search.newton_passes(NEWTON_PASSES if rounds > 0 else self.most_passes)
            if rounds > 0:  # with fewer passes ADMM would end before it is of use
                for _ in machine.when(search.going):
                    search.admm_passes()
        machine.call(_at_most(), [residual, search.tolerance], [converged])


class _ImpulseSearch:
    """A point Λ and its u, which move, and the best point so far."""

    def __init__(
        self,
        problem: ContactProblem,
        tolerance: float,
        best: Span,
        passes: Span,
        residual: Span,
    ) -> None:
        machine, n = problem.machine, problem.size
        self.problem, self.machine, self.best, self.passes, self.residual = problem, machine, best, passes, residual
        self.point, self.u, self.trial, self.trial_u = (machine.space(n) for _ in range(4))
        self.worst, self.trial_worst, self.going, self.needed = (machine.space(1) for _ in range(4))
        self.tolerance, self.one, self.several, self.first = (machine.space(1) for _ in range(4))
        self.trying, self.allowed, self.left = (machine.space(1) for _ in range(3))
        for span, value in ((self.tolerance, tolerance), (self.one, 1.0), (self.several, float(admm.PASSES))):
            machine.fill(span, value)
        self.newton = NewtonStep(problem)

    @cached_property
    def admm(self) -> AlternatingPasses:
        """Only where it is used: its matrix is as large as W."""
        return AlternatingPasses(self.problem)

    def begin(self, before: Span, newton_passes: int) -> None:
        machine = self.machine
        machine.copy(self.best, before)
        machine.copy(self.point, before)
        machine.fill(self.passes, 0.0)
        machine.fill(self.residual, float("inf"))
        machine.fill(self.going, 1.0)
        machine.fill(self.first, 1.0)
        machine.fill(self.allowed, float(newton_passes))
        self.problem.velocities(self.u, self.point)

    def newton_passes(self, max_count: int) -> None:
        """Sweeps, each with a step of Newton's method where it is not enough; at most as many as are allowed here."""
        machine, problem = self.machine, self.problem
        machine.copy(self.trying, self.going)
        machine.copy(self.left, self.allowed)
        machine.fill(self.allowed, float(NEWTON_PASSES_AFTER))
        for _ in machine.repeat(self.trying, max_count):
            problem.sweep(self.point, self.u)
            problem.velocities(self.u, self.point)
            problem.measure(self.worst, self.point, self.u)
            machine.call(_both(), [self.going, self.tolerance, self.worst], [self.needed])
            for _ in machine.when(self.needed):
                self.newton.take(self.trial, self.point, self.u)
                problem.velocities(self.trial_u, self.trial)
                problem.measure(self.trial_worst, self.trial, self.trial_u)
                machine.call(_both(), [self.needed, self.trial_worst, self.worst], [self.needed])
                for at, nearer in (
                    (self.point, self.trial), (self.u, self.trial_u), (self.worst, self.trial_worst)
                ):  # fmt: skip
                    machine.choose(self.needed, at, nearer)
            self._judge(self.one)
            machine.call(_tried(), [self.going, self.left], [self.trying, self.left])

    def admm_passes(self) -> None:
        """Passes of ADMM, which begin at the first point and go on from their own; the point moves to their result."""
        machine, problem = self.machine, self.problem
        for _ in machine.when(self.first):
            self.admm.begin(self.point, self.u)
            machine.fill(self.first, 0.0)
        self.admm.factorise()
        for _ in machine.loop(admm.PASSES):
            self.admm.do()
        self.admm.adapt()
        self.admm.result(self.point)
        problem.velocities(self.u, self.point)
        problem.measure(self.worst, self.point, self.u)
        self._judge(self.several)

    def _judge(self, done: Span) -> None:
        given = [self.going, self.worst, self.residual, self.passes, done, self.tolerance]
        better = self.needed
        self.machine.call(_judged(), given, [better, self.residual, self.passes, self.going])
        self.machine.choose(better, self.best, self.point)
