"""A tick of a rig as code for other machines beside the compiled loop, and how long the code takes to make."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.paired_timing import Budget, RepeatedCall, Samples
from benchmarks.peers import import_peer, relative_difference
from benchmarks.robots import sample_rig
from benchmarks.rows import BenchCase, Measurement, Target, beside
from cosim import load_rig
from cosim.apps.deploy.check import NativeCode
from cosim.apps.deploy.object_files import object_files
from cosim.apps.deploy.page.page import page_of
from cosim.apps.deploy.tick_code import TickCode, tick_code
from cosim.apps.deploy.wasm_rig import wasm_rig
from cosim.core.compile.compilation import compiled_here
from cosim.core.compile.targets import targets
from cosim.core.errors import RunError
from cosim.rig.rig import Rig

COMPARED = 1000  # ticks
LANES = 2
WASM_COST = 1.7  # of a tick, as a multiple of native code
BUILD_TIME = 3.0  # s, once the rig is traced


class WasmTicks:
    """The ticks of a rig in wasmtime, alone or in lanes; number: of the next one."""

    def __init__(self, rig: Rig, lanes: int) -> None:
        wasmtime = import_peer("wasmtime")
        module, facts = wasm_rig(rig, "rig", targets()["wasm"], LANES)
        self.store, self.size, self.number = wasmtime.Store(), lanes * facts["memory"], 0
        compiled = wasmtime.Module(self.store.engine, module.code)
        libm = [wasmtime.Func(self.store, item.type, getattr(np, item.name)) for item in compiled.imports]
        self.exports: Any = wasmtime.Instance(self.store, compiled, libm).exports(self.store)
        self.memory, self.at = self.exports["memory"], self.exports["__heap_base"].value(self.store)
        while self.memory.data_len(self.store) < self.at + 8 * self.size:
            self.memory.grow(self.store, 1)
        prefix = "lanes_" if lanes > 1 else ""
        self.exports[f"rig_{prefix}reset"](self.store, self.at)
        self._ticks = self.exports[f"rig_{prefix}ticks"]

    def run(self, count: int) -> None:
        """Raises RunError for a stop by the guard."""
        self.number = counted(self._ticks(self.store, self.at, self.number, count), count, self.number)

    def read(self) -> np.ndarray:
        return np.frombuffer(bytes(self.memory.read(self.store, self.at, self.at + 8 * self.size)))


class ObjectTicks:
    """The ticks of an object of this machine; number: of the next one."""

    def __init__(self, code: TickCode, content: bytes) -> None:
        self.memory, self.number = np.zeros(code.size), 0
        native, pointer = NativeCode(content, [f"{code.name}_{name}" for name in ("reset", "ticks")]), ctypes.c_void_p
        native.function(f"{code.name}_reset", None, pointer)(self.memory.ctypes.data)
        self._native = native
        self._ticks = native.function(f"{code.name}_ticks", ctypes.c_int32, pointer, ctypes.c_int64, ctypes.c_int32)

    def run(self, count: int) -> None:
        """Raises RunError for a stop by the guard."""
        self.number = counted(self._ticks(self.memory.ctypes.data, self.number, count), count, self.number)

    def read(self) -> np.ndarray:
        return self.memory


def counted(done: int, wanted: int, before: int) -> int:
    """The number of the next tick."""
    if done < wanted:
        raise RunError("the guard stopped the rig while it was timed", str(sample_rig()))
    return before + done


def beside_loop(make: Callable[[Rig], WasmTicks | ObjectTicks], budget: Budget) -> Measurement:
    """Ours beside the ticks of the loop, with the rows that they leave for the recording."""
    rig = load_rig(sample_rig(), interpret=False)
    ours, engine = make(rig), rig.engine()

    def loop(n: int) -> None:
        counted(len(engine.run(n)[0]), n, 0)

    def peer() -> tuple[RepeatedCall, float]:
        compared, expected = make(rig), rig.engine()
        compared.run(COMPARED)
        expected.run(COMPARED)
        pair = compared.read()[: expected.memory.size], expected.memory
        return loop, relative_difference(*map(np.nan_to_num, pair))

    return as_cost(beside(ours.run, peer, budget))


def as_cost(found: Measurement) -> Measurement:
    """With the ratio ours / other."""
    return Measurement(found.samples, found.agreement, found.note, growth=True)


def wasm_tick(budget: Budget) -> Measurement:
    return beside_loop(partial(WasmTicks, lanes=1), budget)


def object_tick(budget: Budget) -> Measurement:
    def make(rig: Rig) -> ObjectTicks:
        code = tick_code(rig.tick_model, "rig")
        return ObjectTicks(code, compiled_here(code.ir, targets()["host"]))

    return beside_loop(make, budget)


def wasm_lanes(budget: Budget) -> Measurement:
    """Ours: ticks of two runs side by side, per run. Other: ticks of one run."""
    rig = load_rig(sample_rig(), interpret=False)
    both, alone = WasmTicks(rig, LANES), WasmTicks(rig, 1)

    def half(n: int) -> None:
        both.run(-(-n // LANES))

    def peer() -> tuple[RepeatedCall, float]:
        compared = WasmTicks(rig, LANES), WasmTicks(rig, 1)
        for ticks in compared:
            ticks.run(COMPARED)
        memories = [np.nan_to_num(ticks.read()) for ticks in compared]
        return alone.run, relative_difference(memories[0][::LANES], memories[1])

    return beside(half, peer, budget)


def build(make: Callable[[Rig], object], budget: Budget) -> Measurement:
    """Seconds, of a rig whose ticks are traced."""
    taken = []
    for _ in range(budget.of(3)):
        rig = load_rig(sample_rig(), interpret=False)
        rig.engine()
        begun = time.perf_counter()
        make(rig)
        taken.append(time.perf_counter() - begun)
    return Measurement(Samples(np.array(taken)))


BUILDS: Sequence[tuple[str, Callable[[Rig], object]]] = (
    ("page", lambda rig: page_of(rig, "rig", targets()["wasm"])),
    ("wasm", lambda rig: wasm_rig(rig, "rig", targets()["wasm"], LANES)),
    ("x86_64", lambda rig: object_files(rig, "rig", targets()["x86_64"])),
    ("aarch64", lambda rig: object_files(rig, "rig", targets()["aarch64"])),
)

CASES = (
    BenchCase(
        "wasm tick ur5_sim",
        "UR5 with six drives: a tick as WebAssembly in wasmtime",
        wasm_tick,
        "the compiled loop of `cosim run`",
        target=Target("ratio", WASM_COST, at_most=True),
    ),
    BenchCase(
        "wasm lanes ur5_sim",
        "the same, two runs side by side, per run",
        wasm_lanes,
        "one run in the same module",
    ),
    BenchCase(
        "object tick ur5_sim",
        "the same as an object for this processor",
        object_tick,
        "the compiled loop of `cosim run`",
    ),
    *(
        BenchCase(
            f"build {name} ur5_sim",
            f"`cosim export code --target {name}` once the rig is traced",
            partial(build, make),
            unit="s",
            target=Target("ours", BUILD_TIME, at_most=True),
        )
        for name, make in BUILDS
    ),
)
