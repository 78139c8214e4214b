"""A rig as a module of WebAssembly, and what a program needs to know of it."""

from __future__ import annotations

from typing import Any

from cosim.apps.deploy.description import description_of
from cosim.apps.deploy.lane_code import LANE_FUNCTIONS
from cosim.apps.deploy.tick_code import FUNCTIONS, tick_code
from cosim.apps.deploy.wasm_module import WasmModule, module_of
from cosim.core.compile.compilation import compiled_here
from cosim.core.compile.object_code import CodeTarget
from cosim.core.compile.stack_array import stack_need
from cosim.rig.wiring.wired_rig import WiredRig


def wasm_rig(rig: WiredRig, name: str, machine: CodeTarget, lanes: int = 1) -> tuple[WasmModule, dict[str, Any]]:
    """(module, description) of a rig that `exportable.check_rig` accepts; name: with which its functions begin; lanes:
    see `tick_code`."""
    code = tick_code(rig.tick_model, name, lanes=lanes)
    functions = [f"{name}_{function}" for function in (*FUNCTIONS, *(LANE_FUNCTIONS if lanes > 1 else ()))]
    module = module_of(compiled_here(code.ir, machine), functions, stack_need(code.ir))
    return module, description_of(rig, code, machine, functions) | {"lanes": lanes, "imports": list(module.imports)}
