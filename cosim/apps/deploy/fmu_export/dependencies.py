"""Which signals of a rig depend on which inputs at the same time, so that an importer sees no loop where
there is none: the velocity of a joint does not depend on the effort on it, its acceleration does.

A dependency is followed through the operations of a tick and of the signals. A set of inputs is a whole number, a bit
per input; loops and other routines without a graph pass every bit from all of their inputs to all of their outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import chain
from operator import or_

from cosim.apps.deploy.fmu_export.variables import UnitVariable
from cosim.core.compile.operations import LEAVES
from cosim.core.compile.routine import Routine
from cosim.core.compile.split import dependencies_first
from cosim.core.compile.trace import RoutineBase
from cosim.simulation.loop.tick_ring import RoutineCall
from cosim.simulation.tick.tick_model import TickModel

Masks = list[int]  # of the elements of an array


def inputs_of_signals(model: TickModel, observe: Routine, inputs: Sequence[UnitVariable]) -> list[tuple[int, ...]]:
    """Of each signal the numbers of the inputs that it depends on. observe: the routine of the signals."""
    memory: Masks = [0] * model.layout.size
    for number, variable in enumerate(inputs):
        memory[variable.place] |= 1 << number
    program = model.compiled_program
    row = memory[: program.early]
    for task in program.tasks:
        for call in task.calls:
            assert isinstance(call, RoutineCall)
            results = _through(call.routine, [memory[where] for where in call.inputs])
            for where, masks in zip(call.outputs, results, strict=True):
                kept = memory[where] if task.ticks > 1 else [0] * len(masks)  # of ticks without this task
                memory[where] = [a | b for a, b in zip(masks, kept, strict=True)]
    row += memory[program.early : program.row]
    numbers = [] if observe.symbolic_parameters is None else [memory[model.layout.place("numbers").where]]
    (signals,) = _through(observe, [memory[model.layout.place("bumpless_start").where], row, *numbers])
    return [tuple(k for k in range(len(inputs)) if mask >> k & 1) for mask in signals]


def _through(routine: RoutineBase, given: Sequence[Masks]) -> list[Masks]:
    """The masks of a routine's outputs from its inputs' masks."""
    if not any(map(any, given)):
        return [[0] * size for size in routine.output_sizes]
    if not isinstance(routine, Routine):
        every = reduce(or_, chain(*given), 0)
        return [[every] * size for size in routine.output_sizes]
    graph = routine.graph
    found: dict[int, int] = {}
    results: list[list[Masks]] = []

    def of(node: int) -> int:
        for number in dependencies_first(graph.nodes, node, found):
            kind, *parts = graph.nodes[number]
            if kind == "INPUT":
                found[number] = given[parts[0]][parts[1]]
            elif kind == "RESULT":
                found[number] = results[parts[0]][parts[1]][parts[2]]
            else:
                found[number] = 0 if kind in LEAVES else reduce(or_, (found[part] for part in parts), 0)
        return found[node]

    for call, expressions in zip(routine.trace.calls, graph.arguments, strict=True):
        masks = [[of(node) for node in nodes] for nodes in expressions]
        made = _through(call.routine, masks[: len(call.arguments)])
        if call.condition is not None:
            *otherwise, (holds,) = masks[len(call.arguments) :]
            made = [[a | b | holds for a, b in zip(*both, strict=True)] for both in zip(made, otherwise, strict=True)]
        results.append(made)
    return [[of(node) for node in nodes] for nodes in graph.outputs]
