"""Reverse differentiation of routines: from the derivatives with respect to their outputs to those with respect to
their inputs, (∂out/∂in)ᵀ times a seed.

A routine and the routines that it calls keep code of their own. `taped` is the same routine with further outputs, its
tape: the results of all calls made in it. With them, `adjoint` repeats no call: each routine is evaluated once forwards
and once backwards, in code of about three times its operations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from cosim.core import ops
from cosim.core.compile.routine import Routine
from cosim.core.compile.trace import RecordedCall, RoutineBase, Trace, column, inlined
from cosim.core.compile.while_loop import WhileLoop

# after a loop that has converged, until what is missing is rounding: it counts times the curvature of the equations
MORE_ITERATIONS = 2


class Differentiation:
    """The taped form and the adjoints of routines, each derived once."""

    def __init__(self) -> None:
        self._taped: dict[str, RoutineBase] = {}
        self._expanded: dict[str, Routine] = {}
        self._adjoints: dict[tuple[str, tuple[int, ...], tuple[int, ...]], Routine] = {}

    def taped(self, routine: RoutineBase) -> RoutineBase:
        """The routine with its tape as further outputs, one vector for each of `tape_sizes`."""
        if not tape_sizes(routine):
            return routine
        assert isinstance(routine, Routine)
        if routine.symbol not in self._taped:
            given = routine.trace
            made = Trace(f"{given.name}_taped", given.inputs, list(given.outputs))
            made.symbolic_parameters = given.symbolic_parameters
            for call in given.calls:
                called, entries = self.taped(call.routine), _columns("tape", tape_sizes(call.routine))
                otherwise = call.otherwise
                if call.condition is not None:
                    otherwise = (*otherwise, *(column([0.0] * entry.numel()) for entry in entries))
                made.calls.append(
                    RecordedCall(called, call.arguments, (*call.results, *entries), call.condition, otherwise)
                )
                made.outputs += [*call.results, *entries]
            made.output_shapes = [(output.numel(),) for output in made.outputs]
            self._taped[routine.symbol] = Routine.of_trace(made, routine.fn)
        return self._taped[routine.symbol]

    def adjoint(self, routine: RoutineBase, wrt: Sequence[int], seeded: Sequence[int]) -> Routine:
        """(inputs, tape, seeds of the outputs `seeded`) -> derivatives with respect to the inputs `wrt`, vectors.

        Symbolic parameters are the last one of the inputs. Raises CompileError for a routine that has no expression.
        """
        key = routine.symbol, tuple(wrt), tuple(seeded)
        if key not in self._adjoints:
            if routine.own_adjoint is not None:
                self._adjoints[key] = _known(routine, routine.own_adjoint, *key[1:])
            elif routine.stand_in is not None:
                self._adjoints[key] = self._derive_stand_in(routine, routine.stand_in(), *key[1:])
            elif isinstance(routine, WhileLoop) and routine.converges:
                self._adjoints[key] = self._derive_converged(routine, *key[1:])
            else:
                own = routine if isinstance(routine, Routine) else self._expand(routine)
                self._adjoints[key] = self._derive(own, *key[1:])
        return self._adjoints[key]

    def _derive_stand_in(
        self, routine: RoutineBase, other: RoutineBase, wrt: tuple[int, ...], seeded: tuple[int, ...]
    ) -> Routine:
        """The adjoint of another routine of the same arguments and results, which is evaluated for it."""
        hidden = [] if routine.symbolic_parameters is None else [routine.symbolic_parameters.column.numel()]
        inputs = _columns("x", [*(math.prod(shape) for shape in routine.shapes), *hidden])
        seeds = _columns("seed", [routine.output_sizes[k] for k in seeded])
        made = Trace(f"{routine.name}_adjoint", [*inputs, *seeds])
        taped = self.taped(other)
        found, derivatives = _columns("y", taped.output_sizes), _columns("found", [inputs[k].numel() for k in wrt])
        tape = found[len(other.output_sizes) :]
        made.calls.append(RecordedCall(taped, tuple(inputs), tuple(found)))
        adjoint = self.adjoint(other, wrt, seeded)
        made.calls.append(RecordedCall(adjoint, (*inputs, *tape, *seeds), tuple(derivatives)))
        made.outputs, made.output_shapes = derivatives, [(output.numel(),) for output in derivatives]
        return Routine.of_trace(made, routine.fn)

    def _derive_converged(self, loop: WhileLoop, wrt: tuple[int, ...], seeded: tuple[int, ...]) -> Routine:
        """The adjoint of one more iteration at the result of the loop, which is computed again: where an exact Newton
        method has converged, its result does not depend on where it began (implicit function theorem)."""
        hidden = [] if loop.symbolic_parameters is None else [loop.symbolic_parameters.column.numel()]
        inputs = _columns("x", [*(math.prod(shape) for shape in loop.shapes), *hidden])
        seeds = _columns("seed", [loop.output_sizes[k] for k in seeded])
        made = Trace(f"{loop.name}_adjoint", [*inputs, *seeds])
        through = tuple(k for k in wrt if k)  # all but the first guess
        derivatives = {k: column([0.0] * inputs[k].numel()) for k in wrt}
        if 0 in seeded and through:
            results = _columns("result", loop.output_sizes)
            made.calls.append(RecordedCall(loop, tuple(inputs), tuple(results)))
            for _ in range(MORE_ITERATIONS):
                before, results = results, _columns("closer", loop.body.output_sizes)
                made.calls.append(RecordedCall(loop.body, (before[0], *inputs[1:]), tuple(results)))
            taped, arguments = self.taped(loop.body), (results[0], *inputs[1:])
            again = _columns("again", taped.output_sizes)
            made.calls.append(RecordedCall(taped, arguments, tuple(again)))
            tape, found = again[len(loop.body.output_sizes) :], _columns("found", [inputs[k].numel() for k in through])
            adjoint = self.adjoint(loop.body, through, (0,))
            made.calls.append(RecordedCall(adjoint, (*arguments, *tape, seeds[seeded.index(0)]), tuple(found)))
            derivatives |= dict(zip(through, found, strict=True))
        made.outputs = list(derivatives.values())
        made.output_shapes = [(output.numel(),) for output in made.outputs]
        return Routine.of_trace(made, loop.fn)

    def _expand(self, routine: RoutineBase) -> Routine:
        """A routine whose code is a loop, as an expression."""
        if routine.symbol not in self._expanded:
            with inlined():
                self._expanded[routine.symbol] = Routine(routine.fn, routine.shapes, routine.name)
        return self._expanded[routine.symbol]

    def _derive(self, routine: Routine, wrt: tuple[int, ...], seeded: tuple[int, ...]) -> Routine:
        given = routine.trace
        tapes = [_columns("tape", tape_sizes(call.routine)) for call in given.calls]
        seeds = _columns("seed", [given.outputs[k].numel() for k in seeded])
        made = Trace(f"{given.name}_adjoint", list(given.inputs))
        for call, tape in zip(given.calls, tapes, strict=True):
            made.inputs += [*call.results, *tape]
        made.inputs += seeds
        sweep = _Sweep([given.inputs[k] for k in wrt], given.calls)
        sweep.pull([given.outputs[k] for k in seeded], seeds)
        for number in reversed(range(len(given.calls))):
            call, results = given.calls[number], sweep.of_results(number)
            if not any(result.nnz() for result in results):
                continue
            taken = results
            if call.condition is not None:  # where the call is not made, its results are `otherwise`
                taken = [column(ops.where(call.condition, 0.0, _dense(result))) for result in results]
                sweep.pull(call.otherwise, taken)
            derivatives = self._pull_through(call, tapes[number], results, sweep, made)
            sweep.pull([call.arguments[k] for k, _ in derivatives], [value for _, value in derivatives])
        made.outputs = [_dense(value) for value in sweep.of_inputs()]
        made.output_shapes = [(output.numel(),) for output in made.outputs]
        return Routine.of_trace(made, routine.fn)

    def _pull_through(
        self, call: RecordedCall, tape: Sequence[Any], results: Sequence[Any], sweep: _Sweep, made: Trace
    ) -> list[tuple[int, Any]]:
        """(argument, derivative with respect to it), by a call of the adjoint of the called routine."""
        wrt = [k for k, argument in enumerate(call.arguments) if sweep.depends(argument)]
        seeded = [k for k, result in enumerate(results) if result.nnz()]
        if not wrt:
            return []
        routine = self.adjoint(call.routine, wrt, seeded)
        arguments = (*call.arguments, *tape, *(_dense(results[k]) for k in seeded))
        derivatives = _columns(routine.name, [call.arguments[k].numel() for k in wrt])
        zeros = () if call.condition is None else tuple(column([0.0] * d.numel()) for d in derivatives)
        made.calls.append(RecordedCall(routine, arguments, tuple(derivatives), call.condition, zeros))
        return list(zip(wrt, derivatives, strict=True))


class _Sweep:
    """The derivatives with respect to inputs and results of calls, summed while the calls are passed backwards."""

    def __init__(self, inputs: Sequence[Any], calls: Sequence[RecordedCall]) -> None:
        import casadi

        self._inputs, self._results, self._active = len(inputs), dict[int, range](), list(inputs)
        for number, call in enumerate(calls):
            arguments = () if call.routine.piecewise_constant else call.arguments
            if any(map(self.depends, (*arguments, *call.otherwise))):
                first = len(self._active)
                self._active += call.results
                self._results[number] = range(first, len(self._active))
        self._column = casadi.vertcat(*self._active)
        self._total = casadi.SX(self._column.numel(), 1)

    def depends(self, expression: Any) -> bool:
        import casadi

        return bool(self._active) and casadi.depends_on(casadi.SX(expression), casadi.vertcat(*self._active))

    def pull(self, expressions: Sequence[Any], seeds: Sequence[Any]) -> None:
        """Add the derivatives of Σ seed · expression."""
        import casadi

        if expressions and self._active:
            expression, seed = (casadi.vertcat(*map(_dense, columns)) for columns in (expressions, seeds))
            self._total += casadi.sparsify(casadi.jtimes(expression, self._column, seed, True))

    def of_inputs(self) -> list[Any]:
        return self._parts(range(self._inputs))

    def of_results(self, number: int) -> list[Any]:
        """Of a call; none where its arguments depend on no input."""
        return self._parts(self._results.get(number, range(0)))

    def _parts(self, which: range) -> list[Any]:
        ends = [0]
        for active in self._active:
            ends.append(ends[-1] + active.numel())
        return [self._total[ends[k] : ends[k + 1]] for k in which]


def _known(routine: RoutineBase, own: RoutineBase, wrt: tuple[int, ...], seeded: tuple[int, ...]) -> Routine:
    """The adjoint of a routine that knows it."""
    inputs = _columns("x", [math.prod(shape) for shape in routine.shapes])
    seeds = _columns("seed", [routine.output_sizes[k] for k in seeded])
    made = Trace(f"{routine.name}_adjoint", [*inputs, *seeds])
    found = [column([0.0] * x.numel()) for x in inputs]
    if 0 in seeded:
        found = _columns("found", own.output_sizes)
        made.calls.append(RecordedCall(own, (*inputs, seeds[seeded.index(0)]), tuple(found)))
    made.outputs = [found[k] for k in wrt]
    made.output_shapes = [(output.numel(),) for output in made.outputs]
    return Routine.of_trace(made, routine.fn)


def tape_sizes(routine: RoutineBase) -> list[int]:
    """The lengths of the vectors on the tape of a routine."""
    if not isinstance(routine, Routine) or routine.stand_in is not None:
        return []
    sizes: list[int] = []
    for call in routine.trace.calls:
        sizes += [*call.routine.output_sizes, *tape_sizes(call.routine)]
    return sizes


def _columns(name: str, sizes: Sequence[int]) -> list[Any]:
    import casadi

    return [casadi.SX.sym(f"{name}_{k}", size) for k, size in enumerate(sizes)]


def _dense(expression: Any) -> Any:
    import casadi

    return casadi.densify(casadi.SX(expression))
