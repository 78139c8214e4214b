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
    """What code is made for, in LLVM's words; `features` with commas, on top of those of the CPU."""

    triple: str
    cpu: str
    features: str = ""


@cache
def llvm() -> Any:
    import llvmlite.binding

    llvmlite.binding.initialize_native_target()
    llvmlite.binding.initialize_native_asmprinter()
    return llvmlite.binding


@cache
def host() -> CodeTarget:
    """This machine."""
    binding = llvm()
    return CodeTarget(
        binding.get_process_triple(), binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()
    )


def target_machine(target: CodeTarget | None = None) -> Any:
    """target: of code that other machines run; None for code of this process."""
    triple, cpu, features = target or host()
    make, for_process = llvm().Target.from_triple(triple).create_target_machine, target is None
    return make(cpu=cpu, features=features, opt=1, reloc="pic", codemodel="small", jit=for_process)


def object_code(ir: str, target: CodeTarget | None = None) -> bytes:
    """target: see `target_machine`. Raises RuntimeError with LLVM's message for IR that is wrong."""
    machine, module = target_machine(target), llvm().parse_assembly(ir)
    module.triple = (target or host()).triple
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
