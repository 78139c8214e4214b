"""`cosim explain F.mcap`: what a recorded run shows of the time before its stop, printed and written as JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cosim.apps.post_mortem.symptom import StopWindow, Symptom
from cosim.apps.post_mortem.symptoms import DETECTORS
from cosim.core.errors import InputError
from cosim.core.trust.data_only import refused_code
from cosim.execution.stop_cause import UNKNOWN, StopCause, cause_of
from cosim.output.console import check_targets, quantity_of
from cosim.output.output_files import write_json
from cosim.output.timing_report import is_timing_line
from cosim.rig.run.recorded_run import RecordedRun
from cosim.rig.run.run import open_recording
from cosim.rig.run.run_file import INDEX_DAMAGED

SHORTEST_LAST, LONGEST_LAST = 1e-3, 3600.0  # s
AND = "; and "  # between the sentences of a fault
# of a stop by the guard that ends with the joints at rest: when it began
_CONTROLLED = re.compile(r" at t = (\S+) s, followed by a controlled stop")
_STOPPED = re.compile(r"stopped at tick (\d+) ")
# of user code that failed, in a sentence without a fix
_PLACE = re.compile(r"\(([^()\s]+:\d+)\)$")


def explain_recording(path: Path, last: str, json: str | None) -> None:
    """last: time before the stop with its unit; json: file, - for stdout. Raises InputError."""
    seconds = quantity_of(last, "s", "--last", (SHORTEST_LAST, LONGEST_LAST), "a time from 1 ms to 1 h, such as 2 s")
    check_targets([], json)
    run = open_recording(path)
    found = explain(run, str(path), seconds)
    if json != "-":
        if run.lacks:
            print(f"warning  {path}: {run.lacks}")
        print(*found.lines(), sep="\n")
    if json is not None and write_json(json, found.as_json(), "explanation"):
        print(f"wrote    explanation {json}")


@dataclass(frozen=True)
class Explanation:
    """What a recording shows of a stop and the time before it.

    reason: the sentence with the cause of the stop, "" of a run without one; t: of the stop, or of the beginning of a
    controlled one [s]; last: time before it that is looked at [s]; symptoms: (kind, symptom) in order of time; next:
    what to look at; unexamined: what was not looked at, and why.
    """

    name: str
    reason: str
    cause: StopCause
    t: float
    last: float
    symptoms: tuple[tuple[str, Symptom], ...]
    next: str
    unexamined: str = ""

    @property
    def first(self) -> Symptom | None:
        """The earliest symptom that a sound run does not have; None where only the stop shows it."""
        return next((symptom for _, symptom in self.symptoms if symptom.abnormal), None)

    def lines(self) -> Iterator[str]:
        if not self.reason:
            yield f"{self.name}: the run ended without a stop at t = {self.t:.6g} s"
            return
        about = f" of {self.cause.name}" if self.cause.name else ""
        yield f"{self.name}: {self.reason}"
        yield f"cause: {self.cause.word}{about}"
        yield from (self._line(symptom) for _, symptom in self.symptoms)
        if self.unexamined:
            yield f"not examined: {self.unexamined}"
        first = self.first
        yield f"first symptom: {'the stop itself' if first is None else self._line(first).strip()}"
        yield f"next: {self.next}"

    def _line(self, symptom: Symptom) -> str:
        return f"{_milliseconds(symptom.t - self.t):>12}  {symptom.what}"

    def as_json(self) -> dict[str, Any]:
        """JSON-ready; times in s, those before the stop negative."""
        first = self.first
        return {
            "rig": self.name,
            "stopped": bool(self.reason),
            "reason": self.reason,
            "cause": {"word": self.cause.word, "name": self.cause.name} if self.reason else None,
            "t_s": self.t,
            "last_s": self.last,
            "symptoms": [self._as_json(kind, symptom) for kind, symptom in self.symptoms],
            "first_symptom": None if first is None else self._as_json(*next(p for p in self.symptoms if p[1] is first)),
            "next": self.next,
            "unexamined": self.unexamined,
        }

    def _as_json(self, kind: str, symptom: Symptom) -> dict[str, Any]:
        figures = {"abnormal": symptom.abnormal, "value": symptom.value, "limit": symptom.limit}
        return {"kind": kind, "t_s": symptom.t, "before_stop_s": symptom.t - self.t, "what": symptom.what, **figures}


def explain(run: RecordedRun, path: str, last: float) -> Explanation:
    """path: of the recording; last: time before the stop that is looked at [s].

    Raises InputError of a recording that lacks its end: what ended the run is not known.
    """
    reason = _reason(run)
    times = np.asarray(run.t)
    end = _end(reason, run, float(times[-1]))
    # in the tick in which a part or a controller fails nothing is recorded any more
    if run.lacks and (not reason or times[-1] < end - 1.5e-9 * run.rig.step_ns):
        raise InputError(f"{run.lacks}; what ended the run is not in it; record the run again", path)
    if not reason:
        return Explanation(run.rig.name, "", StopCause(UNKNOWN, ""), end, last, (), "")
    controlled = _CONTROLLED.search(reason)
    t = end if controlled is None else float(controlled[1])
    window, cause = _window(run, times, t, last), cause_of(reason)
    with np.errstate(all="ignore"):  # the state may have diverged
        symptoms = [(kind, symptom) for kind, find in DETECTORS.items() for symptom in find(window)]
    unexamined = ""
    if run.rig.hardware:
        from cosim.apps.post_mortem.traffic_symptoms import traffic_symptoms

        try:
            symptoms += [("traffic", symptom) for symptom in traffic_symptoms(path, t, last)]
        except InputError as error:
            first, *_ = refused_code(error)
            unexamined = f"the bus traffic, because the rig of the recording has '{first.name}', {first.kind}"
    symptoms.sort(key=lambda each: each[1].t)
    return Explanation(
        run.rig.name, reason, cause, t, last, tuple(symptoms), _next(reason, cause, path, run), unexamined
    )


def _reason(run: RecordedRun) -> str:
    """Why the run was stopped, without what its recording lacks."""
    fault = run.fault
    for part in (INDEX_DAMAGED, run.lacks):
        fault = "" if fault == part else fault.removesuffix(f"{AND}{part}") if part else fault
    return fault


def _end(reason: str, run: RecordedRun, last: float) -> float:
    """Time of the tick in which the run was stopped; of one without a stop, of its last tick."""
    stopped = _STOPPED.search(reason)
    return last if stopped is None else int(stopped[1]) * run.rig.step_ns * 1e-9


def _window(run: RecordedRun, times: np.ndarray, t: float, last: float) -> StopWindow:
    step = run.rig.step_ns * 1e-9
    slack = step / 2 + 5e-6 * t  # times in sentences have six digits
    begin, end = np.searchsorted(times, (t - last - step / 2, t + slack))
    rows = slice(min(int(begin), len(times) - 1), max(int(end), int(begin) + 1))
    table = np.asarray(run.values[rows])
    signals = dict(zip(run.signals, table.T, strict=True))
    shown = [event for event in run.events if not is_timing_line(event.name)]
    events = [event for event in shown if times[rows.start] - step / 2 <= event.t <= t + slack]
    limits = {joint: run.rig.limits.get(joint, {}) for joint in run.joints}
    return StopWindow(times[rows], signals, run.units, limits, step, events)


def _next(reason: str, cause: StopCause, path: str, run: RecordedRun) -> str:
    """The place of the code that failed, else the fix that the reason states, else the signals of what failed."""
    place = _PLACE.search(reason)
    if place is not None:
        return f"look at {place[1]}"
    _, found, fix = reason.partition("; ")
    if found:
        return fix
    return f'cosim plot {path} "{cause.name}/*"' if cause.name in run.joints else f"cosim plot {path}"


def _milliseconds(time: float) -> str:
    """`-12.5 ms`; a time that is 0 but for rounding is `0 ms`."""
    return f"{round(1e3 * time, 3) + 0.0:.7g} ms"
