"""LLVM IR text to object code: pure functions without other parts of cosim, so that a process of its own starts fast.

As a program it reads a pickled list of texts from its standard input and writes the pickled list of their objects.
"""

from __future__ import annotations

import pickle
import sys
from functools import cache
from typing import Any


@cache
def llvm() -> Any:
    import llvmlite.binding

    llvmlite.binding.initialize_native_target()
    llvmlite.binding.initialize_native_asmprinter()
    return llvmlite.binding


@cache
def host() -> tuple[str, str, str]:
    """(triple, CPU, features) of this machine."""
    binding = llvm()
    return binding.get_process_triple(), binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()


def target_machine() -> Any:
    triple, cpu, features = host()
    target = llvm().Target.from_triple(triple)
    return target.create_target_machine(cpu=cpu, features=features, opt=1, reloc="pic", codemodel="small", jit=True)


def object_code(ir: str) -> bytes:
    """Raises RuntimeError with LLVM's message for IR that is wrong."""
    machine, module = target_machine(), llvm().parse_assembly(ir)
    module.triple = host()[0]
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
    pickle.dump([object_code(text) for text in pickle.load(sys.stdin.buffer)], sys.stdout.buffer)
