"""A rig as an object file for the processor of a controller, with its description and its header in C.

The header has sizes, places in the memory, signals, parameters, faults and prototypes.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from cosim.apps.deploy.description import (
    DeployedNumber,
    DeployedSignal,
    as_text,
    description_of,
    fault_codes,
    interface_of,
)
from cosim.apps.deploy.exportable import FileKind, check_rig
from cosim.apps.deploy.identifiers import CName, check_names, identifier, macro
from cosim.apps.deploy.tick_code import TickCode, tick_code
from cosim.core.compile.compilation import compiled_here
from cosim.core.compile.freestanding import with_signed_zeros
from cosim.core.compile.object_code import CodeTarget
from cosim.core.compile.stack_array import stack_need
from cosim.core.errors import InputError, SourceLocation
from cosim.rig.wiring.wired_rig import WiredRig
from cosim.simulation.tick.tick_model import TickModel

# targets of the table that are processors with a C library
PROCESSORS = ("x86_64", "aarch64", "riscv64")
KIND = FileKind("an object file", "cosim export code", motors=True)
WIDTH = 100  # of comments
_JOINTS = "joints: elements of what is an array of joints"
_MEMORY, _KNOWN = ("double *", "memory"), ("const double *", "memory")
_TICK = ("int64_t ", "tick")
# result, arguments and purpose of the tasks of every rig
_TASKS = {
    "read": ("void", (_MEMORY, _TICK), "begin this tick with what is measured"),
    "guard": ("int32_t", (_MEMORY,), "0, or why the motors must be off until `arm`"),
    "write": ("void", (_MEMORY,), "the command for the motors; without effort if not armed or after a fault"),
    "step": ("void", (_MEMORY,), "the model until the next tick; call it after the command was sent"),
}


def object_code_of(rig: WiredRig, name: str) -> TickCode:
    """The code of ticks and stages. Raises InputError for a rig that is not machine code alone."""
    check_rig(rig, KIND)
    if rig.plant.real and rig.plant.model.constraint_rows:
        what = "real motors in closed loops start from a search for a state in which the loops close"
        raise InputError(f"{what}, which {KIND.name} does not hold; take the drivers out", rig.place(("drivers",)))
    return tick_code(rig.tick_model, name, rig.spec.schedule.blend)


def object_files(rig: WiredRig, name: str, machine: CodeTarget) -> Mapping[str, bytes]:
    """Suffix -> content. Raises InputErrors and CompileError."""
    code = object_code_of(rig, name)
    text, functions = header(rig, code), prototypes(rig.tick_model, name)
    facts = description_of(rig, code, machine, [function.name for function in functions])
    facts |= {
        "prototypes": [function.declaration for function in functions],
        "stack": stack_need(code.ir),  # bytes of arrays; saved registers come on top
        "tasks": [
            {"name": task.name, "ticks": task.ticks, "phase": task.phase} for task in rig.tick_model.tasks if task.calls
        ],
    }
    return {
        ".o": compiled_here(with_signed_zeros(code.ir), machine),
        ".h": text.encode(),
        ".json": as_text(facts).encode(),
    }


class Macro(NamedTuple):
    """A constant of the header of a rig. what: in the words of the rig, place: there, for the message where its name is
    taken."""

    name: str
    value: str
    about: str
    what: str
    place: SourceLocation | None = None

    @property
    def line(self) -> str:
        comment = f" /* {_comment(self.about)} */" if self.about else ""
        return f"#define {self.name} {self.value}{comment}"


def header(rig: WiredRig, code: TickCode) -> str:
    """The text of `NAME.h` of code with stages, C99 and C++.

    Raises InputErrors for names of the rig that are the same identifier in C, or a keyword.
    """
    groups, functions = _macros(rig, code), prototypes(rig.tick_model, code.name)
    _check_names(rig, groups, functions)
    guard, title = f"COSIM_{macro(code.name)}_H", f"Rig '{rig.spec.name}': {rig.spec.description}"
    lines = [*_paragraph(title), *_paragraph("Link with -lm. Numbers are in SI; places are elements of the memory.")]
    lines += [f"#ifndef {guard}", f"#define {guard}", "", "#include <stdint.h>"]
    for heading, macros in groups.items():
        lines += ["", *_paragraph(heading), *(each.line for each in macros)]
    lines += ["", "#ifdef __cplusplus", 'extern "C" {', "#endif"]
    for function in functions:
        lines += ["", *_paragraph(function.about), function.declaration]
    return "\n".join([*lines, "", "#ifdef __cplusplus", "}", "#endif", "", "#endif", ""])


def _check_names(rig: WiredRig, groups: Mapping[str, Sequence[Macro]], functions: Sequence[Prototype]) -> None:
    """Raises InputErrors; where controllers or joints have the same name in C, of these alone."""
    check_names(CName(each.name, each.what, rig.place(each.key)) for each in functions)
    names = {
        heading: [CName(each.name, each.what, each.place or str(rig.spec.path)) for each in macros]
        for heading, macros in groups.items()
    }
    check_names(names[_JOINTS])
    check_names(chain.from_iterable(names.values()))


def _macros(rig: WiredRig, code: TickCode) -> Mapping[str, Sequence[Macro]]:
    """By their heading."""
    prefix, model, interface = macro(code.name), rig.tick_model, interface_of(rig)
    return {
        "sizes": _sizes(prefix, model, code),
        _JOINTS: _joints(rig, prefix),
        "places in the memory, and their sizes": _places(rig, prefix),
        "parameters: places in the memory": [_parameter(rig, prefix, each) for each in interface.parameters],
        "signals: elements of what `signals` gives": _signals(rig, prefix, interface.signals),
        "controllers: due when tick % TICKS == PHASE": _periods(rig, prefix),
        "faults, of each joint at the place GUARD_FAULT; the largest one at FAULT": [
            Macro(
                f"{prefix}_FAULT_{macro(each.key)}",
                str(each.code) if each.code > 0 else f"({each.code})",
                each.about,
                f"fault '{each.key}'",
            )
            for each in fault_codes()
        ],
    }


def _sizes(prefix: str, model: TickModel, code: TickCode) -> list[Macro]:
    sizes = {
        "MEMORY": (code.size, "doubles that pass from tick to tick"),
        "SIGNALS": (len(model.signals.names), "doubles that `signals` gives"),
        "JOINTS": (model.nv, ""),
        "BODIES": (code.bodies, ""),
        "STEP": (repr(model.step), "s from tick to tick"),
    }
    return [Macro(f"{prefix}_{key}", str(value), about, f"size '{key}'") for key, (value, about) in sizes.items()]


def _joints(rig: WiredRig, prefix: str) -> list[Macro]:
    model = rig.plant.model
    return [
        Macro(
            f"{prefix}_JOINT_{macro(name)}", str(k), f"{name}, {unit}", f"joint '{name}'", rig.place(("joints", name))
        )
        for k, (name, unit) in enumerate(zip(model.dof_names, model.dof_units, strict=True))
    ]


def _places(rig: WiredRig, prefix: str) -> list[Macro]:
    places = {".".join(path): region for path, region in rig.tick_model.layout.places.items()}
    return [
        Macro(f"{prefix}_AT_{macro(name)}", str(where.start), " x ".join(map(str, shape)), f"place '{name}'")
        for name, (where, shape) in places.items()
        if where.start < where.stop
    ]


def _signals(rig: WiredRig, prefix: str, signals: Sequence[DeployedSignal]) -> list[Macro]:
    owners = _controllers(rig)
    found = []
    for k, (name, unit, about) in enumerate(signals):
        owner = name.partition("/")[0]
        place = owners.get(owner) or rig.place(("joints", owner))
        facts = f"{name}, {unit}: {about}" if about else f"{name}, {unit}"
        found.append(Macro(f"{prefix}_SIGNAL_{macro(name)}", str(k), facts, f"signal '{name}'", place))
    return found


def _parameter(rig: WiredRig, prefix: str, parameter: DeployedNumber) -> Macro:
    limits = {"at least": parameter.least, "at most": parameter.greatest}
    bounds = [f"{word} {bound:g}" for word, bound in limits.items() if math.isfinite(bound)]
    facts = ", ".join([parameter.name, parameter.unit, *bounds, f"{parameter.value!r} in the rig"])
    return Macro(
        f"{prefix}_PARAMETER_{macro(parameter.name)}",
        str(parameter.place),
        f"{facts}: {parameter.about}" if parameter.about else facts,
        f"parameter '{parameter.name}'",
        _controllers(rig).get(parameter.name.partition(".")[0]),
    )


def _periods(rig: WiredRig, prefix: str) -> list[Macro]:
    places = _controllers(rig)
    return [
        Macro(
            f"{prefix}_CONTROLLER_{macro(loop.name)}_{key}",
            str(value),
            "",
            f"controller '{loop.name}'",
            places[loop.name],
        )
        for loop in rig.tick_model.loops
        for key, value in (("TICKS", loop.ticks), ("PHASE", loop.phase))
    ]


def _controllers(rig: WiredRig) -> dict[str, SourceLocation | None]:
    """The places of their names."""
    return {loop.name: rig.place(("controllers", k, "name")) for k, loop in enumerate(rig.tick_model.loops)}


def _paragraph(text: str) -> Iterable[str]:
    return (f"/* {_comment(line)} */" for line in textwrap.wrap(text, WIDTH))


def _comment(text: str) -> str:
    """Without the marks that begin or end a comment."""
    return re.sub(r"/(?=\*)|\*(?=/)", r"\g<0> ", text)


class Prototype(NamedTuple):
    """A function that the header of a rig declares. arguments: type and name of each; what: in the words of the rig,
    key: the way to it there."""

    name: str
    result: str
    arguments: tuple[tuple[str, str], ...]
    about: str
    what: str = "a function of every rig"
    key: tuple[str | int, ...] = ()

    @property
    def declaration(self) -> str:
        return f"{self.result} {self.name}({', '.join(f'{kind}{name}' for kind, name in self.arguments)});"


def prototypes(model: TickModel, name: str) -> Sequence[Prototype]:
    """Of code with stages; code of a rig with real motors has no whole ticks."""
    real = bool(model.plant.real)
    start = "the memory before `arm`" if real else "the memory at t = 0, armed"
    whole = Prototype(
        f"{name}_ticks",
        "int32_t",
        (_MEMORY, ("int64_t ", "first"), ("int32_t ", "count")),
        "so many ticks from number `first` on; how many are complete: fewer if the guard stopped the next one",
    )
    return [
        Prototype(f"{name}_reset", "void", (_MEMORY,), start),
        *([] if real else [whole]),
        Prototype(f"{name}_signals", "void", (_KNOWN, ("double *", "signals")), "all signals of the last tick"),
        Prototype(
            f"{name}_poses", "void", (_KNOWN, ("double *", "poses")), "(bodies, 3, 4) axes and origin of each body"
        ),
        *_stages(model, name),
    ]


def _stages(model: TickModel, name: str) -> Iterator[Prototype]:
    """In running order."""
    about = "start with this tick from what is measured: 0, or why not"
    yield Prototype(f"{name}_arm", "int32_t", (_MEMORY, _TICK), about)
    numbers = {loop.name: number for number, loop in enumerate(model.loops)}
    for task in model.tasks:
        if task.loop is not None:
            due = "" if task.ticks == 1 else f"; does nothing unless tick % {task.ticks} == {task.phase}"
            what, key = f"controller '{task.name}'", ("controllers", numbers[task.name], "name")
            function = f"{name}_controller_{identifier(task.name)}"
            yield Prototype(function, "void", (_MEMORY, _TICK), f"{what}{due}", what, key)
        elif task.calls:
            yield Prototype(f"{name}_{task.name}", *_TASKS[task.name])
