"""Iterative learning control: the feedforward of the next repetition from the feedback of the last one.

u' = Q (u + gain · feedback)

u are the efforts of a feedforward table, feedback what the controllers commanded for the error, and Q a low pass
without phase lag. An error that repeats itself shrinks by |Q (1 − gain T)| in each repetition, T the complementary
sensitivity of the loop (Kawato, Furukawa and Suzuki 1987; Bristow, Tharayil and Alleyne, A survey of iterative learning
control, 2006): below the bandwidth of the loop it vanishes; beyond it learning would amplify, which Q prevents.
"""

from __future__ import annotations

import copy
import dataclasses
import math
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cosim.apps.learning.recorded_rig import check_run, error_of, feedback_effort, feedforward_in, learning_loops
from cosim.core.errors import InputError, SectionError
from cosim.core.types import Array
from cosim.rig.rig import Rig
from cosim.rig.run.export import quoted
from cosim.rig.run.run import Run, StoppedRun
from cosim.rig.sections.rig_spec import read_rig

FILTER_ORDER = 2  # of the Butterworth low pass, which runs forwards and backwards
ROWS_PER_PERIOD = 20  # of the table, per period of the cutoff
MOST_ITERATIONS = 1000
HIGHEST_CUTOFF = 0.4  # of the rate


@dataclass(frozen=True)
class Feedforward:
    """The table of feedforward efforts of a repetition. efforts: joint -> (k,) at times t (k,) [s]."""

    t: Array
    efforts: Mapping[str, Array]

    def csv(self) -> str:
        """A table as `trajectory.feedforward.file` takes it."""
        rows = np.column_stack([self.t, *self.efforts.values()])
        lines = [
            ",".join(("t", *map(quoted, self.efforts))),
            *(",".join(f"{value:.9g}" for value in row) for row in rows),
        ]
        return "\n".join(lines) + "\n"

    def save(self, path: str | Path) -> None:
        """Raises InputError, RunError for a file that cannot be written."""
        from cosim.output.output_files import write_file

        write_file(path, self.csv().encode(), "feedforward")


@dataclass(frozen=True)
class Repetition:
    """A run of the motion. error_rms, error_max: (n,) of the joints [rad or m]."""

    number: int
    run: Run
    feedforward: Feedforward  # that it had
    error_rms: Array
    error_max: Array


@dataclass(frozen=True)
class Learned:
    """The result of learning a motion: the errors of its repetitions, and the best of them.

    error_rms, error_max: joint -> (iterations + 1,) of the runs, the first one without what was learned; best: the run
    with the smallest error; stopped: why the run after them ended early, else "".
    """

    error_rms: Mapping[str, Array]
    error_max: Mapping[str, Array]
    best: Repetition
    stopped: str = ""

    @property
    def feedforward(self) -> Feedforward:
        return self.best.feedforward

    @property
    def error(self) -> Array:
        """(iterations + 1,) see `relative_error`."""
        rms = np.array(list(self.error_rms.values())).T
        return np.array([relative_error(row, rms[0]) for row in rms])


def relative_error(rms: Array, first: Array) -> float:
    """The root of the mean square over the joints of their errors (n,), each relative to the first run's."""
    moved = first > 0.0
    return float(np.sqrt(np.mean(np.square(rms[moved] / first[moved])))) if moved.any() else 0.0


def next_feedforward(rig: Rig, run: Run, gain: float = 1.0, cutoff: float = 10.0) -> Feedforward:
    """The efforts for the next repetition, from a run of this rig. gain: fraction of the feedback that is learned;
    cutoff: of Q [Hz].

    Raises InputError for a rig without trajectories, for a run of another rig (other joints, parameters of controllers
    or references), and for a cutoff that the ticks of the run do not resolve.
    """
    check_run(rig, run)
    return _next(rig, run, gain, cutoff)


def _next(rig: Rig, run: Run, gain: float, cutoff: float) -> Feedforward:
    step = float(np.median(np.diff(run.t))) if len(run.t) > 1 else math.inf
    _check_cutoff(cutoff, step)
    every = max(1, int(1.0 / (ROWS_PER_PERIOD * cutoff * step) + 1e-6))  # of a step with rounding
    rows = np.unique([*range(0, len(run.t), every), len(run.t) - 1])
    efforts = {}
    for loop in learning_loops(rig):
        learned = feedforward_in(loop, run.t) + gain * feedback_effort(rig, loop, run)
        smooth = _low_pass(learned, cutoff, step)
        for name, column in zip(_names(rig, loop.index), smooth.T, strict=True):
            efforts[name] = column[rows]
    return Feedforward(run.t[rows], efforts)


def learn(
    rig: Rig,
    iterations: int = 8,
    gain: float = 1.0,
    cutoff: float = 10.0,
    progress: Callable[[Repetition], None] | None = None,
) -> Learned:
    """Run a simulated rig again and again and learn the feedforward of its motion; progress: called after each run.

    Raises InputError for settings out of range and a rig with real motors, StoppedRun where the first run stops; where
    a later one does, learning ends with the runs before.
    """
    _check(rig, iterations, gain)
    _check_cutoff(cutoff, rig.tick_model.step)
    names = [name for loop in learning_loops(rig) for name in _names(rig, loop.index)]
    errors: list[tuple[Array, Array]] = []
    stopped = ""
    with tempfile.TemporaryDirectory() as folder:
        repetition = best = _repeated(0, rig, feedforward_of(rig), names)
        current = rig
        while True:
            errors.append((repetition.error_rms, repetition.error_max))
            sizes = [relative_error(rms, errors[0][0]) for rms, _ in errors]
            best = repetition if sizes[-1] <= min(sizes) else best
            if progress is not None:
                progress(repetition)
            if repetition.number == iterations:
                break
            learned = _next(current, repetition.run, gain, cutoff)
            number = repetition.number + 1
            current = with_feedforward(rig, learned, Path(folder) / f"{number}.csv", number)
            try:
                repetition = _repeated(number, current, learned, names)
            except StoppedRun as error:
                stopped = f"run {number}: {error.run.fault}"
                break
    rms, largest = (dict(zip(names, np.array(values).T, strict=True)) for values in zip(*errors, strict=True))
    return Learned(rms, largest, best, stopped)


def _repeated(number: int, rig: Rig, feedforward: Feedforward, names: list[str]) -> Repetition:
    run = rig.run(keep="all")
    error = error_of(run, np.array(names))
    return Repetition(number, run, feedforward, np.sqrt(np.mean(np.square(error), axis=0)), np.abs(error).max(axis=0))


def feedforward_of(rig: Rig) -> Feedforward:
    """What the rig has learned already."""
    end = rig.spec.schedule.duration_ns * 1e-9
    t, efforts = np.array([0.0, end]), {}
    for loop in learning_loops(rig):
        table = feedforward_in(loop, t)
        efforts |= dict(zip(_names(rig, loop.index), table.T, strict=True))
    return Feedforward(t, efforts)


def with_feedforward(rig: Rig, feedforward: Feedforward, file: Path, repetition: int = 0) -> Rig:
    """The rig with this feedforward, written to a file. The noise of encoders is another one in each repetition."""
    file.write_text(feedforward.csv())
    data = copy.deepcopy(rig.spec.source.data)
    data["schedule"] = {**(data.get("schedule") or {}), "seed": rig.spec.schedule.seed + repetition}
    for section in data["controllers"]:
        if section.get("trajectory") is not None:
            section["trajectory"]["feedforward"] = {"file": str(file)}
    learned = Rig(read_rig(dataclasses.replace(rig.spec.source, data=data)), rig.interpret)
    learned.tick_model.parameters[:] = rig.tick_model.parameters  # as set in Python
    return learned


def _check(rig: Rig, iterations: int, gain: float) -> None:
    if not 1 <= iterations <= MOST_ITERATIONS:
        raise SectionError(f"must be 1 to {MOST_ITERATIONS}, is {iterations}", ("iterations",))
    if not 0.0 < gain <= 1.0:
        raise SectionError(f"must be above 0 and at most 1, is {gain:g}", ("gain",))
    if rig.hardware:
        what = "the rig has real motors, which do not return to their start by themselves"
        raise InputError(f"{what}; run it with --record, and learn from the recording", str(rig.spec.path))


def _check_cutoff(cutoff: float, step: float) -> None:
    """step: of the ticks of a run [s], inf of one without."""
    if not cutoff < (highest := HIGHEST_CUTOFF / step):
        what = f"{cutoff:g} Hz is too high for ticks of {step * 1e3:g} ms; give less than {highest:.4g} Hz"
        raise SectionError(what if math.isfinite(step) else "the run has no two ticks to learn from", ("cutoff",))


def _names(rig: Rig, index: Array) -> list[str]:
    return [rig.plant.model.dof_names[k] for k in index]


def _low_pass(values: Array, cutoff: float, step: float) -> Array:
    """(k, n) without phase lag; at the ends the values go on as they are."""
    from scipy.signal import butter, sosfiltfilt

    sections = butter(FILTER_ORDER, cutoff, fs=1.0 / step, output="sos")
    padding = min(len(values) - 1, int(2.0 / (cutoff * step)))
    return sosfiltfilt(sections, values, axis=0, padtype="constant", padlen=padding)
