"""The holonomic constraint rows of a mechanism on numbers, for `assembly`: traced once, evaluated many times."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from cosim.core.compile.held_calls import HeldCalls
from cosim.core.compile.trace import column, inlined, symbols
from cosim.core.types import Numeric
from cosim.mechanics.multibody.configuration_space import ConfigurationSpace


class Closure:
    """f (m,) of the m holonomic rows, which vanishes where loops are closed, and its derivatives along the nv dofs."""

    def __init__(
        self,
        space: ConfigurationSpace,
        rows: Sequence[int],
        evaluate: Callable[[Numeric, Numeric], tuple[Numeric, list[Numeric]]],
    ) -> None:
        """rows: number of rows of each constraint. evaluate: (q, t) -> (f, of each constraint a number that is above 0
        on its intended branch)."""
        import casadi

        self.owners = np.repeat(np.arange(len(rows)), rows)
        (self._q, q), (self._t, t) = symbols("q", (space.nq,)), symbols("t", ())
        self._held = HeldCalls()
        with inlined(self._held.calls):
            residual, branches = evaluate(q, t)
        self._residual, self._branches = column(residual), column(branches)
        self._by_dof = _by_dof(space, q)
        self._jacobian = casadi.mtimes(casadi.jacobian(self._residual, self._q), self._by_dof)

    @cached_property
    def pattern(self) -> np.ndarray:
        """Of each row and dof, whether the row depends on the dof (m, nv)."""
        import casadi

        return casadi.DM(self._jacobian.sparsity(), 1.0).full() != 0.0

    @cached_property
    def whole(self) -> ClosurePart:
        """All rows along all dofs."""
        m, nv = self._jacobian.shape
        return self.part(np.arange(m), np.arange(nv))

    def part(self, rows: np.ndarray, dofs: np.ndarray, bounded: Mapping[int, float] | None = None) -> ClosurePart:
        """These rows along these dofs; bounded: further rows, whose |f| stays below a number on the intended branch."""
        import casadi

        own = [int(k) for k in np.unique(self.owners[rows])]
        rows, dofs = rows.tolist(), dofs.tolist()
        residual, jacobian = self._residual[rows], self._jacobian[rows, dofs]
        room = [largest - casadi.fabs(self._residual[r]) for r, largest in (bounded or {}).items()]
        branches = casadi.vertcat(self._branches[own], *room)
        return ClosurePart(self._q, self._t, residual, jacobian, self._by_dof[:, dofs], branches, self._held)


class ClosurePart:
    """Some rows f (m,) along some dofs (n,)."""

    def __init__(
        self,
        q: Numeric,
        t: Numeric,
        residual: Numeric,
        jacobian: Numeric,
        by_dof: Numeric,
        branches: Numeric,
        held: HeldCalls,
    ):
        """Columns q, t and expressions of them; by_dof: ∂q̇/∂v of the dofs; held: calls in the expressions."""
        self._held = held
        self._q, self._t, self._residual, self._jacobian, self._by_dof = q, t, residual, jacobian, by_dof
        self._branches = branches
        self.rows = residual.numel()

    def __call__(self, q: np.ndarray, t: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """(f (m,), G (m, n)); q: (nq,) of the whole mechanism."""
        f, G = self._first(q, t)
        return f[:, 0], G

    def curvature(self, q: np.ndarray, multipliers: np.ndarray, t: float = 0.0) -> np.ndarray:
        """The second derivative (n, n) of λ·f, symmetric."""
        (bend,) = self._second(q, t, multipliers)
        return 0.5 * (bend + bend.T)

    def intended(self, q: np.ndarray, t: float = 0.0) -> np.ndarray:
        """Of each constraint of the rows, then of each bounded row, whether it is on its intended branch; bool."""
        (branches,) = self._third(q, t)
        return branches[:, 0] > 0.0

    @cached_property
    def _first(self) -> Evaluator:
        return Evaluator([self._q, self._t], [self._residual, self._jacobian], self._held)

    @cached_property
    def _second(self) -> Evaluator:
        import casadi

        multipliers = casadi.SX.sym("multipliers", self.rows)
        slope = casadi.mtimes(self._jacobian.T, multipliers)
        bend = casadi.mtimes(casadi.jacobian(slope, self._q), self._by_dof)
        return Evaluator([self._q, self._t, multipliers], [bend], self._held)

    @cached_property
    def _third(self) -> Evaluator:
        return Evaluator([self._q, self._t], [self._branches], self._held)


class Evaluator:
    """Expressions on numbers, without the conversions of casadi's calls."""

    def __init__(self, inputs: Sequence[Numeric], outputs: Sequence[Numeric], held: HeldCalls) -> None:
        """held: calls in the outputs, which depend on the first two inputs."""
        import casadi

        self._columns, self._held = list(inputs[:2]), held
        inputs = [*inputs, *held.columns]
        outputs = [casadi.densify(casadi.SX(output)) for output in outputs]
        buffer: Any  # casadi declares other arguments
        buffer, self._run = casadi.Function("closure", list(inputs), outputs).buffer()
        self._inputs = [np.zeros(column.numel()) for column in inputs]
        self._outputs = [np.zeros(output.shape, order="F") for output in outputs]
        for k, array in enumerate(self._inputs):
            buffer.set_arg(k, array.data)
        for k, array in enumerate(self._outputs):
            buffer.set_res(k, array.ravel(order="K").data)

        self._buffer = buffer

    def __call__(self, *values: np.ndarray | float) -> list[np.ndarray]:
        """The outputs as matrices, which are new."""
        held = self._held.values(self._columns, values[:2]) if self._held.calls else []
        numbers = [np.asarray(value.elements(), dtype=float) for value in held]
        for array, value in zip(self._inputs, (*values, *numbers), strict=True):
            array[:] = value
        self._run()
        return [output.copy() for output in self._outputs]


def _by_dof(space: ConfigurationSpace, q: Numeric) -> Numeric:
    """∂q̇/∂v (nq, nv); its zeros are left out: they would hide which rows share no dof."""
    import casadi

    blocks, start = [], 0
    for kind in space.kinds:
        of_joint = q[start : start + kind.nq]
        units = [column(kind.space.rate(of_joint, unit)) for unit in np.eye(kind.nv)]
        blocks.append(casadi.sparsify(casadi.SX(casadi.horzcat(*units))) if units else casadi.SX(kind.nq, 0))
        start += kind.nq
    return casadi.diagcat(*blocks)
