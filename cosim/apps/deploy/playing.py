"""The ticks of objects, run in this process or, for another processor, in an emulator of it."""

from __future__ import annotations

import ctypes
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cosim.apps.deploy.native_code import NativeCode
from cosim.core.compile.object_code import CodeTarget, host
from cosim.core.errors import InputError, RunError
from cosim.execution.execution_mode import PlannedChange

SOURCE = Path(__file__).parent / "c" / "play.c"
FLAGS = ("-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-static")
# target -> C compiler, emulator, and the packages of Debian that have them
TOOLS = {
    "x86_64": ("x86_64-linux-gnu-gcc", "qemu-x86_64", "gcc-x86-64-linux-gnu and qemu-user"),
    "aarch64": ("aarch64-linux-gnu-gcc", "qemu-aarch64", "gcc-aarch64-linux-gnu and qemu-user"),
    "riscv64": ("riscv64-linux-gnu-gcc", "qemu-riscv64", "gcc-riscv64-linux-gnu and qemu-user"),
}
# what code for the CPU of the table needs of this one
NEEDED = {
    **{"x86-64": (), "x86-64-v2": ("sse4.2",), "x86-64-v3": ("avx2", "fma"), "x86-64-v4": ("avx512f",)},
    **dict.fromkeys(("cortex-a53", "generic-rv64"), ()),
}


class Played(NamedTuple):
    """The ticks of an object that are to be run: name, with which its functions begin; memory, signals: their sizes;
    changes: of the memory."""

    name: str
    code: bytes
    memory: int
    signals: int
    ticks: int
    changes: Sequence[PlannedChange] = ()


def is_native(target: str) -> bool:
    return target == platform.machine()


def check_target(target: str) -> None:
    """Raises InputError for one that is no processor."""
    if target not in TOOLS:
        raise InputError(f"code for {target} is not run here; use one of {', '.join(TOOLS)}", "--check")


def check_tools(target: str, machine: CodeTarget) -> None:
    """Raises InputError where the ticks of this target cannot be run here."""
    if is_native(target):
        features = host().features.split(",")
        missing = [name for name in NEEDED.get(machine.cpu, ()) if f"+{name}" not in features]
        if missing or machine.cpu not in (*NEEDED, host().cpu):
            what = f"this machine is a {host().cpu}, which may not run code for {machine.cpu}"
            raise InputError(f"{what}; check it without --cpu", "--check")
        return
    compiler, emulator, packages = TOOLS[target]
    for program in (compiler, emulator):
        if shutil.which(program) is None:
            what = f"there is no {program}, with which code for {target} runs here"
            raise InputError(f"{what}; install {packages}", "--check")


def played(items: Sequence[Played], target: str) -> list[np.ndarray]:
    """Of each the signals (ticks, k), with the tick in which its guard stopped it as the last one.

    Raises RunError for a program that fails.
    """
    return [_played_here(item) for item in items] if is_native(target) else _emulated(items, target)


def _played_here(item: Played) -> np.ndarray:
    code = NativeCode(item.code, [f"{item.name}_{each}" for each in ("reset", "ticks", "signals")])
    pointer = ctypes.c_void_p
    reset = code.function(f"{item.name}_reset", None, pointer)
    ticks = code.function(f"{item.name}_ticks", ctypes.c_int32, pointer, ctypes.c_int64, ctypes.c_int32)
    signals = code.function(f"{item.name}_signals", None, pointer, pointer)
    memory, rows = np.zeros(item.memory), np.zeros((item.ticks, item.signals))
    reset(memory.ctypes.data)
    changes = list(item.changes)
    for tick in range(item.ticks):
        while changes and changes[0].tick <= tick:
            _, places, values = changes.pop(0)
            memory[places] = values
        done = ticks(memory.ctypes.data, tick, 1)
        signals(memory.ctypes.data, rows[tick].ctypes.data)
        if not done:
            return rows[: tick + 1]
    return rows


def _emulated(items: Sequence[Played], target: str) -> list[np.ndarray]:
    compiler, emulator, _ = TOOLS[target]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program, given, found = (folder / each for each in ("play", "in", "out"))
        objects = [folder / f"{k}.o" for k in range(len(items))]
        for file, item in zip(objects, items, strict=True):
            file.write_bytes(item.code)
        rigs = " ".join(f"X({item.name}, {item.memory}, {item.signals})" for item in items)
        _run([compiler, *FLAGS, f"-DRIGS={rigs}", SOURCE, *objects, "-lm", "-o", program])
        given.write_bytes(b"".join(map(_given, items)))
        _run([emulator, program, given, found])
        return _read(found.read_bytes(), items)


def _run(words: Sequence[str | Path]) -> None:
    """Raises RunError with the first line of what a program complains about."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, errors="replace")
    if done.returncode != 0:
        first = next(iter(done.stderr.splitlines()), f"exit code {done.returncode}")
        raise RunError(f"{Path(words[0]).name} failed: {first}", "--check")


def _given(item: Played) -> bytes:
    change = np.dtype([("tick", "<i8"), ("place", "<i8"), ("value", "<f8")])
    rows = [(tick, *pair) for tick, *arrays in item.changes for pair in zip(*arrays, strict=True)]
    return np.array([item.ticks, len(rows)], "<i8").tobytes() + np.array(rows, change).tobytes()


def _read(content: bytes, items: Sequence[Played]) -> list[np.ndarray]:
    found, at = [], 0
    for item in items:
        (ticks,) = np.frombuffer(content, "<i8", 1, at)
        values = np.frombuffer(content, "<f8", int(ticks) * item.signals, at + 8)
        found.append(values.reshape(-1, item.signals))
        at += 8 + values.nbytes
    return found
