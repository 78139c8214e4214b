"""The table of the targets that code is made for: this machine and others."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache

from cosim.core.compile.object_code import CodeTarget, host

# bulk memory, whole numbers from any float: in all browsers since 2021, WebAssembly 2.0
_WASM = "+bulk-memory,+sign-ext,+mutable-globals,+nontrapping-fptoint,+simd128"
HOST, PTX = "host", "ptx"


@cache
def targets() -> dict[str, CodeTarget]:
    """By name; a processor family is a CPU whose instructions nearly all members in use have."""
    return {
        HOST: host(),
        "x86_64": CodeTarget("x86_64-unknown-linux-gnu", "x86-64-v3", lanes=4),
        "aarch64": CodeTarget("aarch64-unknown-linux-gnu", "cortex-a53", lanes=2),
        "riscv64": CodeTarget("riscv64-unknown-linux-gnu", "generic-rv64", "+m,+a,+f,+d,+c", code_model="medium"),
        "wasm": CodeTarget("wasm32-unknown-unknown", "generic", _WASM, lanes=2, relocation="static"),
        PTX: CodeTarget("nvptx64-nvidia-cuda", "sm_75"),  # GPUs since 2018, by drivers since CUDA 10
    }


_MACHINE = """
import sys
import llvmlite.binding as llvm
llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
machine = llvm.Target.from_triple(sys.argv[1]).create_target_machine(cpu=sys.argv[2])
"""
_EMIT = """
machine.emit_assembly(llvm.parse_assembly("define void @nothing() { ret void }"))
"""


@cache
def processors(triple: str) -> tuple[str, ...]:
    """The names of the processors that LLVM knows: it prints them only, and takes any name without an error."""
    listed = _llvm(_MACHINE, triple, "help").stderr.partition("Available features")[0]
    names = re.findall(r"^\s+(\S+)\s+- Select", listed, re.MULTILINE)
    return tuple(name for name in names if not _too_old(name))


@cache
def compiles(triple: str, cpu: str) -> bool:
    """Whether LLVM makes code for this processor: for one of another word length it ends the program."""
    return _llvm(_MACHINE + _EMIT, triple, cpu).returncode == 0


def _llvm(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=False)


def _too_old(cpu: str) -> bool:
    """Whether a GPU is older than the one in the table."""
    capability, oldest = (re.fullmatch(r"sm_(\d+)\D?", name) for name in (cpu, targets()[PTX].cpu))
    return capability is not None and oldest is not None and int(capability[1]) < int(oldest[1])
