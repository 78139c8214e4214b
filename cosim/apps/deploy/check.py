"""An object against a recording of the engine: the same ticks, in this process or an emulator of another processor."""

from __future__ import annotations

import ctypes
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cosim.apps.deploy.object_files import object_code_of
from cosim.apps.deploy.tick_code import TickCode
from cosim.core.compile.jit import linked
from cosim.core.compile.object_code import CodeTarget, host
from cosim.core.errors import InputError, RunError
from cosim.execution.execution_mode import PlannedChange
from cosim.rig.rerun import RecordedRig
from cosim.rig.run.changes import planned_of
from cosim.rig.wiring.wired_rig import WiredRig

# of a value, or of 1 where it is smaller: what the mathematics of other C libraries may differ by
TOLERANCE = 1e-10
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


class CheckedRecording(NamedTuple):
    """How closely an object repeats the ticks of a recording. largest: difference of a value that is not equal to the
    bit, with its signal and its tick; 0 where all are."""

    ticks: int
    signals: int
    largest: float
    signal: str = ""
    tick: int = 0

    def __str__(self) -> str:
        what = f"{self.ticks:,} ticks of {self.signals} signals"
        if not self.largest:
            return f"{what}, equal to the bit"
        return f"{what}, largest difference {self.largest:.3g} ('{self.signal}' at tick {self.tick})"


def check_same(rig: WiredRig, name: str, known: RecordedRig, path: Path) -> None:
    """Raises InputError unless a recording is of the same code, whatever its parameters are. name: with which the
    functions begin; path: of the recording."""
    if rig.hardware:
        raise InputError(
            "the rig has real motors, whose motion no code repeats; check it with --set drivers=[]", "--check"
        )
    fix = "build the rig that was recorded, or record this one"
    if known.run.rig.name != rig.spec.name:
        raise InputError(f"is of the rig '{known.run.rig.name}', not of '{rig.spec.name}'; {fix}", str(path))
    codes = [_without_memory(object_code_of(each, name)) for each in (rig, known.rig)]
    parameters = rig.tick_model.layout.place("parameters").where
    memories = [np.delete(each.tick_model.memory(), parameters) for each in (rig, known.rig)]
    if codes[0] != codes[1] or not np.array_equal(*memories, equal_nan=True):
        raise InputError(f"was recorded with another state of the rig '{rig.spec.name}'; {fix}", str(path))


def compared(rig: WiredRig, name: str, content: bytes, target: str, known: RecordedRig, path: Path) -> CheckedRecording:
    """An object of the rig run as a recording was: with its parameters and their changes. name: with which its
    functions begin; content: of the object; known, path: a recording that `check_same` accepts.

    Raises RunError for a signal that differs by more than the tolerance.
    """
    code = object_code_of(rig, name)
    changes = [*_first_parameters(rig, known), *planned_of(rig, known.run.changes)]
    names = rig.tick_model.signals.names
    item = Played(code.name, content, code.size, len(names), known.ticks, changes)
    (values,) = played([item], target)
    chosen = [signal for signal in known.run.signals if signal in names]
    expected = np.column_stack([*known.run.chosen(chosen).values()])
    built = values[:, [names.index(signal) for signal in chosen]]
    return _comparison(chosen, expected, built, rig.tick_model.step, path)


def _without_memory(code: TickCode) -> list[str]:
    return [line for line in code.ir.splitlines() if not line.startswith(f"@{code.name}.initial")]


def _first_parameters(rig: WiredRig, known: RecordedRig) -> list[PlannedChange]:
    """The parameters of the recording, where they differ from the built ones."""
    before, after = (each.tick_model.parameters for each in (rig, known.rig))
    places = np.flatnonzero(before != after)
    first = rig.tick_model.layout.place("parameters").where.start
    return [PlannedChange(0, first + places, after[places])] if len(places) else []


def _comparison(names: list[str], expected: np.ndarray, found: np.ndarray, step: float, path: Path) -> CheckedRecording:
    common = min(len(expected), len(found))
    a, b = expected[:common], found[:common]
    same = (a.view(np.int64) == b.view(np.int64)) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        difference = np.where(same, 0.0, np.abs(a - b))
        far = ~same & ~(difference <= TOLERANCE * np.maximum(1.0, np.abs(a)))
    if far.any():
        tick = int(far.any(axis=1).argmax())
        column = int(far[tick].argmax())
        pair = f"{float(a[tick, column])!r}, built {float(b[tick, column])!r}"
        what = f"'{names[column]}' differs first, at tick {tick} (t = {tick * step:.6g} s): recorded {pair}"
        raise RunError(f"{what}; look for other versions of the compiler or of the C library's mathematics", str(path))
    if len(found) < len(expected):
        raise RunError(f"the guard stops the built rig at tick {len(found) - 1}, and not the recorded one", str(path))
    if same.all():
        return CheckedRecording(len(expected), len(names), 0.0)
    tick, column = np.unravel_index(int(difference.argmax()), difference.shape)
    return CheckedRecording(len(expected), len(names), float(difference[tick, column]), names[column], int(tick))


class NativeCode:
    """The functions of an object, which may call the C library; it has to live as long as they are called."""

    def __init__(self, content: bytes, names: Sequence[str]) -> None:
        self._addresses = linked([content], names)

    def function(self, name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
        """result, arguments: types of ctypes."""
        return ctypes.CFUNCTYPE(result, *arguments)(self._addresses[name])


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
