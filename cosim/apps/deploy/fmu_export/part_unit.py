"""A part of a rig as a unit: a block with its own integrator, on a memory of time, state, inputs with their
derivatives (3, nu), and parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from cosim.apps.deploy.c_functions import definitions, function
from cosim.apps.deploy.exportable import check_machine_code, check_part, place_of_part
from cosim.apps.deploy.fmu_export.model_description import UnitOutline
from cosim.apps.deploy.fmu_export.tunable_part import TunablePart
from cosim.apps.deploy.fmu_export.unit import FMU, UnitContent, array, data_text, number, text
from cosim.apps.deploy.fmu_export.variables import UnitVariable, parameter_variable, time_variable
from cosim.core.compile.routine import Routine
from cosim.core.compile.trace import SymbolicParameters
from cosim.core.errors import InputError, did_you_mean
from cosim.core.types import Numeric
from cosim.rig.wiring.wired_rig import WiredRig
from cosim.simulation.coupling.block_part import MAX_STEPS, BlockPart

OPTION = "--part"
HALVES = np.array([[1.0], [1.0], [0.5]])  # coefficients of polynomials from derivatives


def unit_of_part(rig: WiredRig, name: str, version: int) -> UnitContent:
    """Of the part of this name. version: an array is one variable of FMI 3, and one per element of FMI 2. Raises
    InputError for a part that there is not, and for one whose steps are not machine code."""
    part = _part(rig, name)
    tunable, first = TunablePart(part), 1 + part.size + 3 * part.input_layout.size
    parameters = map(parameter_variable, tunable.numbers("", first))
    variables = time_variable(), *_outputs(part, version), *_inputs(part, version), *parameters
    _check_names(rig, name, variables)
    values = tunable.values
    symbols = SymbolicParameters(values.size)  # referenced while the code is made
    code = _code(tunable.parametrised(symbols.symbols))
    memory = np.concatenate([np.zeros(first), values])
    return UnitContent("part", _outline(rig, name, part), variables, code, _data(part, variables, memory, first))


def _part(rig: WiredRig, name: str) -> BlockPart:
    coupling = rig.tick_model.coupling
    if coupling is None:
        raise InputError("the rig has no parts; leave the option out to export the rig", OPTION)
    if name not in coupling.parts:
        raise InputError(f"there is no part '{name}'{did_you_mean(name, coupling.parts)}", OPTION)
    check_machine_code(rig, FMU)
    check_part(rig, name, FMU)
    part = coupling.parts[name]
    assert isinstance(part, BlockPart)
    return part


def _check_names(rig: WiredRig, name: str, variables: Sequence[UnitVariable]) -> None:
    """Raises InputError for two variables of the same name."""
    known: dict[str, str] = {}
    for variable in variables:
        if variable.name in known:
            kinds = f"{known[variable.name]} and the {variable.causality}"
            what = (
                f"the {kinds} '{variable.name}' of part '{name}' would be one variable of its FMU; rename one of them"
            )
            raise InputError(what, place_of_part(rig, name))
        known[variable.name] = variable.causality


def _outline(rig: WiredRig, name: str, part: BlockPart) -> UnitOutline:
    about, schedule = (type(part.block).__doc__ or "").strip().split("\n")[0], rig.spec.schedule
    return UnitOutline(
        name,
        about,
        schedule.step_ns * 1e-9,
        schedule.duration_ns * 1e-9,
        f"Steps are whole multiples of {part.step:g} s, its period."
        if part.sampled
        else f"Steps may have any length; its integrator divides them into steps of at most {part.step:g} s.",
        part.step if part.sampled else None,
        follows_inputs=True,
    )


def _inputs(part: BlockPart, version: int) -> Iterator[UnitVariable]:
    for name, signal in part.inputs.items():
        place = 1 + part.size + part.input_layout.place(name).where.start
        for label, k, length in _pieces(name, signal.shape, version):
            yield UnitVariable(label, "input", signal.unit, "MEMORY", place + k, about=signal.meaning, length=length)


def _outputs(part: BlockPart, version: int) -> Iterator[UnitVariable]:
    for name, signal in part.outputs.items():
        place = part.output_layout.place(name).where.start
        needed = tuple(
            label
            for each, input in part.inputs.items()
            if (each, name) in part.feedthrough
            for label, _, _ in _pieces(each, input.shape, version)
        )
        for label, k, length in _pieces(name, signal.shape, version):
            yield UnitVariable(
                label,
                "output",
                signal.unit,
                "SIGNAL",
                place + k,
                about=signal.meaning,
                depends_on=needed,
                length=length,
            )


def _pieces(name: str, shape: tuple[int, ...], version: int) -> list[tuple[str, int, int | None]]:
    """(name, first element, length of an array) of the variables of a signal; elements count from 1, as in signals of a
    run."""
    if not shape or version == 3:
        return [(name, 0, prod(shape) if shape else None)]
    return [(f"{name}_{k + 1}", k, None) for k in range(prod(shape))]


def _data(part: BlockPart, variables: Sequence[UnitVariable], memory: np.ndarray, first: int) -> str:
    """The definitions of what `part.h` declares. first: place of the parameters."""
    names = [
        path[0] if not shape else f"{path[0]}_{k + 1}"
        for path, (_, shape) in part.output_layout.places.items()
        for k in range(prod(shape))
    ]
    sizes = {"row_size": part.size, "part_size": part.size, "signal_count": len(names), "parameters_place": first}
    return data_text(
        "part.h",
        variables,
        memory,
        (1 + part.size, part.input_layout.size),
        sizes,
        f"const double unit_period = {number(part.step if part.sampled else 0.0)};",
        f"const double unit_longest_step = {number(MAX_STEPS * part.step)};",
        "const int unit_follows = 1;",
        array("char *const unit_output_names", map(text, names)),
    )


def _code(part: BlockPart) -> str:
    """The LLVM IR of what `part.h` declares."""
    t, x, u = (), (part.size,), (part.input_layout.size,)
    derivatives = (3, part.input_layout.size)

    def advance(t: Numeric, h: Numeric, x: Numeric, derivatives: Numeric) -> Numeric:
        return part.advance(t, h, x, derivatives * HALVES)[0]

    start = Routine(part.at_start, [t, u], "start")
    step = Routine(advance, [t, (), x, derivatives], "advance")
    outputs = Routine(part.output_values, [t, x, u], "outputs")
    return "\n".join(
        [
            definitions([start, step, outputs]),
            function("cosim_start", start, ("t", "inputs"), ("state", "outputs")),
            function("cosim_advance", step, ("t", "h", "state", "inputs"), ("next",)),
            function("cosim_outputs", outputs, ("t", "state", "inputs"), ("outputs",)),
        ]
    )
