"""A rig as an object file for the processor of a controller, with its header and its description."""

from __future__ import annotations

from collections.abc import Mapping

from cosim.apps.deploy.description import as_text, description_of
from cosim.apps.deploy.exportable import FileKind, check_rig
from cosim.apps.deploy.header import header
from cosim.apps.deploy.prototypes import prototypes
from cosim.apps.deploy.tick_code import TickCode, tick_code
from cosim.core.compile.compilation import compiled_here
from cosim.core.compile.freestanding import with_signed_zeros
from cosim.core.compile.object_code import CodeTarget
from cosim.core.compile.stack_array import stack_need
from cosim.core.errors import InputError
from cosim.rig.wiring.wired_rig import WiredRig

# targets of the table that are processors with a C library
PROCESSORS = ("x86_64", "aarch64", "riscv64")
KIND = FileKind("an object file", "cosim export code", motors=True)


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
