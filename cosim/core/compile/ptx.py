"""LLVM IR to PTX, the assembly of NVIDIA's GPUs, which their driver assembles for the GPU at hand."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cosim.core.compile.object_code import CodeTarget, llvm, target_machine
from cosim.core.compile.operations import LIBM, OF_TWO
from cosim.core.compile.stack_array import stack_need
from cosim.core.compile.targets import PTX, targets
from cosim.core.errors import CompileError

THREADS = 128  # of a block, at most
LOCAL_BYTES = 512 << 10  # that CUDA gives a thread, at most
LIBDEVICE = "nvvm/libdevice/libdevice.10.bc"
INSTALL = "pip install 'cosim[cuda]'"


@dataclass(frozen=True)
class Kernel:
    """A function that a GPU runs in many threads: pointers to arrays, then whole numbers of 64 bits, the first of which
    is the number of threads that have work. Its body is `void @<name>.run(arrays, numbers, number of the thread)`."""

    name: str
    arrays: Sequence[str]
    numbers: Sequence[str]

    @property
    def body(self) -> str:
        """The name of the body."""
        return f"{self.name}.run"

    @property
    def head(self) -> str:
        """The first line of the body."""
        return f"define internal void @{self.body}({self._parameters('ptr noalias')}, i64 %run) nounwind {{"

    def _parameters(self, pointer: str) -> str:
        return ", ".join([*(f"{pointer} %{name}" for name in self.arrays), *(f"i64 %{name}" for name in self.numbers)])

    @property
    def entry(self) -> str:
        """IR of the kernel."""
        return f"""
define ptx_kernel void @{self.name}({self._parameters("ptr")}) "nvvm.maxntid"="{THREADS}" {{
entry:
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %size = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block.wide = zext i32 %block to i64
  %size.wide = zext i32 %size to i64
  %thread.wide = zext i32 %thread to i64
  %before = mul i64 %block.wide, %size.wide
  %run = add i64 %before, %thread.wide
  %has.work = icmp slt i64 %run, %{self.numbers[0]}
  br i1 %has.work, label %work, label %end
work:
  call void @{self.body}({self._parameters("ptr")}, i64 %run)
  br label %end
end:
  ret void
}}
"""


_SPECIAL = "".join(f"declare i32 @llvm.nvvm.read.ptx.sreg.{name}.x()\n" for name in ("ctaid", "ntid", "tid"))
_MATHEMATICS = sorted({*LIBM.values(), "sin", "cos"})


def ptx(ir: str, kernels: Sequence[Kernel], target: CodeTarget | None = None) -> str:
    """The PTX of kernels whose bodies are in the IR, which is `freestanding`; target: by default the oldest GPUs.

    Raises CompileError for code that needs more memory than a thread has, and without `libdevice` where it is needed.
    """
    if (needed := stack_need(ir)) > LOCAL_BYTES:
        what = f"the ticks need {needed / 1024:,.0f} kB of memory in each run, a thread of a GPU has"
        raise CompileError(f"{what} {LOCAL_BYTES >> 10} kB; simplify the mechanism, or compute on the CPU")
    text = "\n".join([_SPECIAL, ir, *(kernel.entry for kernel in kernels)])
    machine = target_machine(target or targets()[PTX])
    module = _parsed(llvm().parse_assembly, text, machine)
    if called := [name for name in _MATHEMATICS if f"call double @{name}(" in text]:
        module.link_in(_parsed(llvm().parse_assembly, "".join(map(_by_libdevice, called)), machine))
        module.link_in(_parsed(llvm().parse_bitcode, libdevice().read_bytes(), machine))
    _keep_only([kernel.name for kernel in kernels], module, machine)
    return machine.emit_assembly(module)


def _parsed(parse: Any, source: str | bytes, machine: Any) -> Any:
    module = parse(source)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    return module


def _by_libdevice(name: str) -> str:
    """IR of a function of the C library."""
    given = ", ".join(f"double %{x}" for x in ("ab" if name in OF_TWO else "a"))
    return f"""
declare double @__nv_{name}({given})
define double @{name}({given}) noinline nounwind {{
  %r = call double @__nv_{name}({given})
  ret double %r
}}
"""


def _keep_only(names: Sequence[str], module: Any, machine: Any) -> None:
    """Remove what the functions of these names do not use."""
    for function in module.functions:
        if not function.is_declaration and function.name not in names:
            function.linkage = "internal"
    builder = llvm().create_pass_builder(machine, llvm().create_pipeline_tuning_options(speed_level=0))
    passes = builder.getModulePassManager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, builder)


@cache
def libdevice() -> Path:
    """NVIDIA's mathematics for GPUs, as bitcode: of a package, else of a toolkit. Raises CompileError without it."""
    package = importlib.util.find_spec("nvidia")
    folders = (package and package.submodule_search_locations) or ()
    toolkits = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if name in os.environ] + ["/usr/local/cuda"]
    files = [file for folder in folders for file in Path(folder).glob(f"*/{LIBDEVICE}")]
    for file in [*files, *(Path(toolkit) / LIBDEVICE for toolkit in toolkits)]:
        if file.is_file():
            return file
    raise CompileError(f"the mathematics of GPUs is missing (libdevice.10.bc); install it with {INSTALL}")
