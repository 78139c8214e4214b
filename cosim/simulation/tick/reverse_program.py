"""The ticks of a rig to be differentiated: which calls pass derivatives on, and the adjoints of these calls.

A derivative passes through a call where an input depends on what is varied, and an output has an influence on the
metrics. Both are found over the ticks to a fixed point, on the elements of the memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cosim.core.compile.adjoint import Differentiation, tape_sizes
from cosim.core.compile.routine import Routine
from cosim.core.compile.trace import RoutineBase
from cosim.core.errors import CompileError
from cosim.core.types import Array
from cosim.simulation.loop.reverse_loop import ReverseCall, ReverseProgram, ReverseTask
from cosim.simulation.loop.tick_ring import RoutineCall
from cosim.simulation.tick.accumulation import Accumulation
from cosim.simulation.tick.tick_model import TickModel


def reverse_program(model: TickModel, accumulation: Accumulation, varied: Array) -> ReverseProgram:
    """varied: bool (size,), the numbers of the memory at t = 0 whose derivatives are wanted.

    Raises CompileError for a call without derivative.
    """
    ticks = model.compiled_program
    row = slice(model.layout.size, model.layout.size + ticks.row)
    accumulators = slice(row.stop, row.stop + accumulation.layout.size)
    tasks = [ReverseTask(tuple(map(_plain, task.calls)), task.ticks, task.phase) for task in ticks.tasks]
    metrics = _metrics_call(model, accumulation, row, accumulators)
    program = ReverseProgram(
        tasks=tuple(tasks),
        metrics=metrics,
        step=ticks.step,
        time=ticks.time,
        fault=ticks.fault,
        judge=ticks.judge,
        early=ticks.early,
        row=row,
        accumulators=accumulators,
        faulty=accumulators.stop,
    )
    return _differentiated(program, varied)


def _plain(call: object) -> ReverseCall:
    assert isinstance(call, RoutineCall)  # there is no derivative of Python
    return ReverseCall(call.routine, call.inputs, call.outputs)


def _metrics_call(model: TickModel, accumulation: Accumulation, row: slice, accumulators: slice) -> ReverseCall:
    start = model.layout.place("bumpless_start")
    shapes = [(accumulation.layout.size,), start.shape, (row.stop - row.start,)]
    routine = Routine(accumulation.update, shapes, "accumulate")
    hidden = () if routine.symbolic_parameters is None else (model.layout.place("numbers").where,)
    return ReverseCall(routine, (accumulators, start.where, row, *hidden), (accumulators,))


def _differentiated(program: ReverseProgram, varied: Array) -> ReverseProgram:
    """The program with adjoints."""
    used = [_used_inputs(call.forward) for call in program.calls]
    changing = _varied(program, used, varied)
    useful = _useful(program, used)
    derive = Differentiation()

    def with_adjoint(call: ReverseCall, uses: Sequence[Array]) -> ReverseCall:
        wrt = tuple(k for k, where in enumerate(call.inputs) if (changing[where] & uses[k]).any())
        seeded = tuple(k for k, where in enumerate(call.outputs) if (changing[where] & useful[where]).any())
        made = replace(call, forward=derive.taped(call.forward), tape=tuple(tape_sizes(call.forward)))
        if not (wrt and seeded):
            return made
        try:
            return replace(made, adjoint=derive.adjoint(call.forward, wrt, seeded), wrt=wrt, seeded=seeded)
        except CompileError as error:
            raise CompileError(f"{call.forward.name}: {error.what}", error.place) from None

    remaining = iter(used)
    tasks = [
        replace(task, calls=tuple(with_adjoint(call, next(remaining)) for call in task.calls)) for task in program.tasks
    ]
    return replace(program, tasks=tuple(tasks), metrics=with_adjoint(program.metrics, next(remaining)))


def _used_inputs(routine: RoutineBase) -> list[Array]:
    """Of each input which elements the routine reads, bool."""
    sizes = [int(np.prod(shape, dtype=int)) for shape in routine.shapes]
    if not isinstance(routine, Routine):
        return [np.ones(size, dtype=bool) for size in sizes]
    used = [np.zeros(column.numel(), dtype=bool) for column in routine.trace.inputs]
    for kind, *where in routine.graph.nodes:
        if kind == "INPUT":
            used[where[0]][where[1]] = True
    return used


def _varied(program: ReverseProgram, used: Sequence[Sequence[Array]], first: Array) -> Array:
    """Which elements of the memory may depend on the varied ones."""
    found = np.zeros(program.size, dtype=bool)
    found[: len(first)] = first
    before = -1
    while (count := int(found.sum())) != before:
        before = count
        for call, uses in zip(program.calls, used, strict=True):
            if any((found[where] & uses[k]).any() for k, where in enumerate(call.inputs)):
                for where in call.outputs:
                    found[where] = True
        found[program.row] |= found[: program.row.stop - program.row.start]
    return found


def _useful(program: ReverseProgram, used: Sequence[Sequence[Array]]) -> Array:
    """Which elements of the memory may have an influence on the metrics."""
    found = np.zeros(program.size, dtype=bool)
    found[program.accumulators] = True
    before = -1
    while (count := int(found.sum())) != before:
        before = count
        for call, uses in reversed(list(zip(program.calls, used, strict=True))):
            if any(found[where].any() for where in call.outputs):
                for k, where in enumerate(call.inputs):
                    found[where] |= uses[k]
        found[: program.row.stop - program.row.start] |= found[program.row]
    return found
