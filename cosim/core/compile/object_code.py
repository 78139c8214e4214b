"""LLVM IR text to object code: pure functions without other parts of cosim, so that a process of its own starts fast.

As a program it reads a pickled list of texts and their target from its standard input and writes the pickled list of
their objects.
"""

from __future__ import annotations

import pickle
import sys
from functools import cache
from typing import Any, NamedTuple


class CodeTarget(NamedTuple):
    """A processor that code is made for, in LLVM's words; `features` with commas, in addition to the CPU's. lanes:
    doubles per vector register."""

    triple: str
    cpu: str
    features: str = ""
    lanes: int = 1
    relocation: str = "pic"
    code_model: str = "small"


@cache
def llvm() -> Any:
    import llvmlite.binding

    llvmlite.binding.initialize_all_targets()
    llvmlite.binding.initialize_all_asmprinters()
    return llvmlite.binding


@cache
def host() -> CodeTarget:
    """This machine."""
    features = llvm().get_host_cpu_features().flatten()
    lanes = next((n for n, name in ((8, "+avx512f"), (4, "+avx")) if name in features.split(",")), 2)
    return CodeTarget(llvm().get_process_triple(), llvm().get_host_cpu_name(), features, lanes)


def target_machine(target: CodeTarget | None = None) -> Any:
    """target: of code that other machines run; None for code of this process."""
    code, for_process = target or host(), target is None
    make = llvm().Target.from_triple(code.triple).create_target_machine
    return make(
        cpu=code.cpu,
        features=code.features,
        opt=1,
        reloc=code.relocation,
        codemodel=code.code_model,
        jit=for_process,
    )


def object_code(ir: str, target: CodeTarget | None = None) -> bytes:
    """target: see `target_machine`. Raises RuntimeError with LLVM's message for IR that is wrong."""
    machine, module = target_machine(target), llvm().parse_assembly(ir)
    module.triple, module.data_layout = (target or host()).triple, str(machine.target_data)
    # the graph has no repeated or constant operations: more passes cost time without effect
    builder = llvm().create_pass_builder(machine, llvm().create_pipeline_tuning_options(speed_level=0))
    builder.getModulePassManager().run(module, builder)
    # sin and cos are branches; values wait in registers, not before them: inverse dynamics of TALOS take half the time.
    # The pass compares every load with every store, also where nothing branches
    sinking = llvm().create_new_function_pass_manager()
    sinking.add_sinking_pass()
    for function in module.functions:
        if sum(1 for _ in function.blocks) > 1:
            sinking.run(function, builder)
    return machine.emit_object(module)


if __name__ == "__main__":
    texts, given = pickle.load(sys.stdin.buffer)
    pickle.dump([object_code(text, given and CodeTarget(*given)) for text in texts], sys.stdout.buffer)
