"""An object against a recording of the engine: the same ticks, every signal compared."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from cosim.apps.deploy.object_files import object_code_of
from cosim.apps.deploy.playing import Played, played
from cosim.apps.deploy.tick_code import TickCode
from cosim.core.errors import InputError, RunError
from cosim.execution.execution_mode import PlannedChange
from cosim.rig.rerun import RecordedRig
from cosim.rig.run.changes import planned_of
from cosim.rig.wiring.wired_rig import WiredRig

# of a value, or of 1 where it is smaller: what the mathematics of other C libraries may differ by
TOLERANCE = 1e-10


class CheckedRecording(NamedTuple):
    """largest: difference of a value that is not equal to the bit, with its signal and its tick; 0 where all are."""

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
