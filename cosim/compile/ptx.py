"""LLVM IR to PTX, the assembly of NVIDIA's GPUs, which their driver assembles for the GPU at hand."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cosim.compile.object_code import llvm
from cosim.compile.operations import LIBM, OF_TWO
from cosim.errors import CompileError

TRIPLE = "nvptx64-nvidia-cuda"
OLDEST = 7, 5  # compute capability
VERSION = "ptx70"  # of PTX: drivers since CUDA 11.0
THREADS = 128  # of a block, at most
LOCAL_BYTES = 512 << 10  # that a thread may have
INSTALL = "pip install 'cosim[cuda]'"


@dataclass(frozen=True)
class Kernel:
    """A function that a GPU runs in many threads: pointers to arrays, then whole numbers of 64 bits, the first of which
    is the number of threads that have work. Its body is `void @<name>.run(arrays, numbers, number of the thread)`."""

    name: str
    arrays: Sequence[str]
    numbers: Sequence[str]

    @property
    def head(self) -> str:
        """The first line of the body."""
        return f"define internal void @{self.name}.run({self.parameters('ptr noalias')}, i64 %run) nounwind {{"

    def parameters(self, pointer: str = "ptr") -> str:
        return ", ".join([*(f"{pointer} %{name}" for name in self.arrays), *(f"i64 %{name}" for name in self.numbers)])

    @property
    def entry(self) -> str:
        """IR of the kernel: the body for the number of the thread."""
        first = self.numbers[0]
        return f"""
define ptx_kernel void @{self.name}({self.parameters()}) "nvvm.maxntid"="{THREADS}" {{
entry:
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %size = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block.wide = zext i32 %block to i64
  %size.wide = zext i32 %size to i64
  %thread.wide = zext i32 %thread to i64
  %before = mul i64 %block.wide, %size.wide
  %run = add i64 %before, %thread.wide
  %has = icmp slt i64 %run, %{first}
  br i1 %has, label %work, label %end
work:
  call void @{self.name}.run({self.parameters()}, i64 %run)
  br label %end
end:
  ret void
}}
"""


_SPECIAL = "".join(f"declare i32 @llvm.nvvm.read.ptx.sreg.{name}.x()\n" for name in ("ctaid", "ntid", "tid"))


def ptx(ir: str, kernels: Sequence[Kernel], cpu: str = "sm_%d%d" % OLDEST) -> str:
    """The PTX of kernels whose bodies are in the IR. Raises CompileError for IR that no GPU can run."""
    binding = targets()
    machine = binding.Target.from_triple(TRIPLE).create_target_machine(cpu=cpu, features=f"+{VERSION}", opt=2)
    whole = "\n".join([_SPECIAL, ir, *(kernel.entry for kernel in kernels)])
    module = _parsed(binding.parse_assembly, whole, machine)
    called = [name for name in _MATHEMATICS if re.search(rf"call double @{name}\(", whole)]
    if called:
        module.link_in(_parsed(binding.parse_assembly, "".join(map(_by_libdevice, called)), machine))
        module.link_in(_parsed(binding.parse_bitcode, libdevice().read_bytes(), machine))
    names = {kernel.name for kernel in kernels}
    for function in module.functions:
        if not function.is_declaration and function.name not in names:
            function.linkage = "internal"
    builder = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(speed_level=0))
    passes = builder.getModulePassManager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, builder)
    return machine.emit_assembly(module)


_MATHEMATICS = sorted({*LIBM.values(), "sin", "cos"})


def _parsed(parse: Any, source: str | bytes, machine: Any) -> Any:
    module = parse(source)
    module.triple, module.data_layout = TRIPLE, str(machine.target_data)
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


@cache
def targets() -> Any:
    """LLVM with all its targets."""
    binding = llvm()
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    return binding


@cache
def libdevice() -> Path:
    """NVIDIA's mathematics for GPUs as bitcode: of a package, else of a toolkit. Raises CompileError without it."""
    found = importlib.util.find_spec("nvidia")
    folders = [Path(each) / "*" for each in (found and found.submodule_search_locations) or ()]
    folders += [Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if name in os.environ]
    for folder in [*folders, Path("/usr/local/cuda")]:
        for file in sorted(Path(folder.anchor).glob(str((folder / "nvvm/libdevice/libdevice.10.bc").relative_to(folder.anchor)))):
            return file
    raise CompileError(f"the mathematics of GPUs is missing (libdevice.10.bc); run {INSTALL}")
