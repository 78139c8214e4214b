"""A rig as a unit: its whole tick, with places for what the importer gives.

`cosim_tick` is the compiled loop's tick, without its ring and its clock, `cosim_observe` its signals; `rig.h` declares
both for C. What a signal depends on at the same time is followed through the operations of a tick and of the signals,
so that an importer sees no loop where there is none: the velocity of a joint does not depend on the effort on it, its
acceleration does. A set of inputs is a whole number, a bit per input; loops and other routines without a graph pass
every bit from all of their inputs to all of their outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import chain
from operator import or_

from cosim.apps.deploy.c_functions import definitions, function
from cosim.apps.deploy.description import FAULTS as WHOLE_FAULTS
from cosim.apps.deploy.description import PART_FAULTS, DeployedNumber, interface_of
from cosim.apps.deploy.exportable import check_rig
from cosim.apps.deploy.fmu_export.inputs import parametrised
from cosim.apps.deploy.fmu_export.model_description import UnitOutline
from cosim.apps.deploy.fmu_export.unit import FMU, UnitContent, array, data_text, number, text
from cosim.apps.deploy.fmu_export.variables import UnitVariable, variables_of
from cosim.apps.deploy.tick_code import observe_routine
from cosim.control.limits import LIMITS, NOT_FINITE, STALE
from cosim.core.compile.operations import LEAVES
from cosim.core.compile.routine import Routine
from cosim.core.compile.split import dependencies_first
from cosim.core.compile.trace import RoutineBase
from cosim.rig.wiring.wired_rig import WiredRig
from cosim.simulation.loop.loop_text import TickFunction
from cosim.simulation.loop.tick_ring import RoutineCall
from cosim.simulation.plant.event_stepper import PlantFault
from cosim.simulation.tick.tick_model import TickModel

# why the whole mechanism cannot continue, by what its fault exceeds NOT_FINITE
FAULTS = {**WHOLE_FAULTS, **{len(PlantFault) + fault: text for fault, text in PART_FAULTS.items()}}
Masks = list[int]  # of the elements of an array


def unit_of_rig(rig: WiredRig, inputs: Sequence[str]) -> UnitContent:
    """inputs: see `inputs.parametrised`. Raises InputError for a rig whose ticks are not machine code."""
    check_rig(rig, FMU)
    rig, given, of_parts, references = parametrised(rig, inputs)
    observe = observe_routine(rig.tick_model)
    dependencies = inputs_of_signals(rig.tick_model, observe, given)
    variables = variables_of(interface_of(rig, given, of_parts), dependencies)
    code, data = rig_code(rig.tick_model, observe), rig_data(rig.tick_model, variables, references)
    return UnitContent("rig", _outline(rig), variables, code, data)


def _outline(rig: WiredRig) -> UnitOutline:
    spec, step = rig.spec, rig.tick_model.step
    return UnitOutline(
        spec.name,
        spec.description,
        step,
        spec.schedule.duration_ns * 1e-9,
        f"Steps are whole multiples of {step:g} s, the tick of the rig. A stop by the guard ends the simulation with an"
        " error and its reason.",
        step,
    )


def rig_code(model: TickModel, observe: Routine) -> str:
    """The LLVM IR of both functions; observe: `observe_routine`."""
    program = model.compiled_program
    texts = [
        definitions([*program.routines, observe]),
        TickFunction(program).text("cosim_tick"),
        function("cosim_observe", observe, ("start", "row"), ("signals",)),
    ]
    return "\n".join(texts)


def rig_data(model: TickModel, variables: Sequence[UnitVariable], moving: int) -> str:
    """The definitions of what `rig.h` declares. moving: how many references the importer gives."""
    place, faults = model.layout.place, joint_faults(model)
    sizes = {
        "row_size": model.row.size,
        "early_size": model.program.early,
        "signal_count": len(model.signals.names),
        "time_place": model.program.time,
        "start_place": place("bumpless_start").where.start,
        "numbers_place": place("numbers").where.start,
        "fault_place": model.program.fault,
        "guard_fault_place": place("guard_fault").where.start,
        "stop_reason_place": place("controlled_stop", "reason").where.start,
        "first_guard_fault_place": place("controlled_stop", "first_guard_fault").where.start,
        "joint_count": model.nv,
        "joint_fault_count": len(faults),
        "fault_count": len(faults) + len(FAULTS),
    }
    return data_text(
        "rig.h",
        variables,
        model.memory(),
        (sizes["numbers_place"], moving),
        sizes,
        f"const double unit_step = {number(model.step)};",
        "const int unit_follows = 0;",
        array("char *const unit_joint_faults", (text(reason) for row in faults for reason in row)),
        array("char *const unit_faults", (text(FAULTS[fault]) for fault in sorted(FAULTS))),
    )


def joint_faults(model: TickModel) -> list[list[str]]:
    """By fault code from 0 to NOT_FINITE, for each joint, why it stops the rig."""
    dofs, units = model.plant.model.dof_names, model.plant.model.dof_units
    reasons = [["a stop was requested"] * len(dofs)]
    for row in LIMITS:
        bounds = [[float(model.guard.bounds[key][k]) for key in row.bound_keys] for k in range(len(dofs))]
        shown = [row.show(values, unit) for values, unit in zip(bounds, units, strict=True)]
        reasons.append(
            [f"joint '{dof}' is beyond its {row.key} limit of {limit}" for dof, limit in zip(dofs, shown, strict=True)]
        )
    assert len(reasons) == STALE and STALE + 1 == NOT_FINITE
    reasons.append([f"joint '{dof}' has sent no feedback" for dof in dofs])
    return [*reasons, [f"joint '{dof}' has a motion or a command that is not finite" for dof in dofs]]


def inputs_of_signals(model: TickModel, observe: Routine, inputs: Sequence[DeployedNumber]) -> list[tuple[int, ...]]:
    """Of each signal the numbers of the inputs that it depends on. observe: the routine of the signals."""
    memory: Masks = [0] * model.layout.size
    for k, variable in enumerate(inputs):
        memory[variable.place] |= 1 << k
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
        for k in dependencies_first(graph.nodes, node, found):
            kind, *parts = graph.nodes[k]
            if kind == "INPUT":
                found[k] = given[parts[0]][parts[1]]
            elif kind == "RESULT":
                found[k] = results[parts[0]][parts[1]][parts[2]]
            else:
                found[k] = 0 if kind in LEAVES else reduce(or_, (found[part] for part in parts), 0)
        return found[node]

    for call, expressions in zip(routine.trace.calls, graph.arguments, strict=True):
        masks = [[of(node) for node in nodes] for nodes in expressions]
        made = _through(call.routine, masks[: len(call.arguments)])
        if call.condition is not None:
            *otherwise, (holds,) = masks[len(call.arguments) :]
            made = [[a | b | holds for a, b in zip(*both, strict=True)] for both in zip(made, otherwise, strict=True)]
        results.append(made)
    return [[of(node) for node in nodes] for nodes in graph.outputs]
