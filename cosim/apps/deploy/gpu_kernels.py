"""The functions of `tick_code` as kernels of a GPU, a thread per run.

The memories of all runs, and what the functions return, are interleaved as in `timing.interleaved`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cosim.apps.deploy.description import as_text, description_of
from cosim.apps.deploy.exportable import FileKind, check_rig
from cosim.apps.deploy.tick_code import FUNCTIONS, TickCode, tick_code
from cosim.core.compile import mathlib
from cosim.core.compile.object_code import CodeTarget
from cosim.core.compile.ptx import THREADS, Kernel, ptx
from cosim.rig.wiring.wired_rig import WiredRig
from cosim.simulation.loop.gpu_loop import STRIDED_COPY, InterleavedText

KIND = FileKind("a kernel of a GPU", "cosim export code")
EXPERIMENTAL = "experimental: no GPU has run code of cosim so far"
# function -> arrays besides the memories, numbers besides how many runs there are
_ARGUMENTS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "reset": ((), ()),
    "ticks": (("done",), ("first", "count")),
    "signals": (("signals",), ()),
    "poses": (("poses",), ()),
}


def ptx_files(rig: WiredRig, name: str, machine: CodeTarget) -> Mapping[str, bytes]:
    """Suffix -> content. Raises InputError and CompileError."""
    check_rig(rig, KIND)
    code = tick_code(rig.tick_model, f"{name}.one")  # a kernel has the name of the function
    kernels = [_kernel(name, function) for function in FUNCTIONS]
    text = "\n".join([code.ir, STRIDED_COPY, *map(lambda kernel: _body(kernel, code), kernels)])
    facts = description_of(rig, replace(code, name=name), machine, [kernel.name for kernel in kernels])
    facts |= {
        "prototypes": [_prototype(kernel) for kernel in kernels],
        "interleaved": "element i of run k is at [i * runs + k]",
        "threads": THREADS,
        "note": EXPERIMENTAL,
    }
    return {".ptx": ptx(text, kernels, machine).encode(), ".json": as_text(facts).encode()}


def _kernel(name: str, function: str) -> Kernel:
    arrays, numbers = _ARGUMENTS[function]
    return Kernel(f"{name}_{function}", ("memory", *arrays), ("runs", *numbers))


def _prototype(kernel: Kernel) -> str:
    kinds = {"done": "int64_t"}
    arrays = [f"{kinds.get(name, 'double')} *{name}" for name in kernel.arrays]
    return f"void {kernel.name}({', '.join([*arrays, *(f'int64_t {name}' for name in kernel.numbers)])})"


def _body(kernel: Kernel, code: TickCode) -> str:
    """IR of the body of a kernel: the function of one run, on its own memory."""
    function, text, size = kernel.name.rpartition("_")[2], InterleavedText(), code.size
    called, results = f"@{code.name}_{function}", {"signals": len(code.model.signals.names), "poses": 12 * code.bodies}
    text(kernel.head, "entry:")
    text.own("own", size)
    if function == "reset":
        text(f"  call void {called}(ptr %own)")
        text.put("%own", "%memory", size)
    elif function == "ticks":  # a run with a fault stays as it is
        done = text.place("%done", "%run", "i64")
        fault = text.value(f"load double, ptr {text.element('%memory', code.model.program.fault)}, align 8")
        text(f"  store i64 0, ptr {done}, align 8", f"  %stopped = fcmp une double {fault}, {mathlib.constant(0.0)}")
        text("  br i1 %stopped, label %end, label %go", "go:")
        text.take("%memory", "%own", size)
        text("  %count.32 = trunc i64 %count to i32")
        text(f"  %complete = call i32 {called}(ptr %own, i64 %first, i32 %count.32)")
        text("  %complete.64 = sext i32 %complete to i64", f"  store i64 %complete.64, ptr {done}, align 8")
        text.put("%own", "%memory", size)
        text("  br label %end", "end:")
    else:
        text.own("result", results[function])
        text.take("%memory", "%own", size)
        text(f"  call void {called}(ptr %own, ptr %result)")
        text.put("%result", f"%{function}", results[function])
    text("  ret void", "}")
    return text.ir
