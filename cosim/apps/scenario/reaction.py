"""Whether a run with faults did what its scenario expects."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cosim.apps.scenario.faulty_run import FaultyRun
from cosim.core.units import show_quantity
from cosim.execution.stop_cause import UNKNOWN, StopCause, cause_of
from cosim.rig.sections.scenario import COMPLETED, DEGRADED, OFF, STOPPED, Bound, ExpectedEnd


class SignalBound(NamedTuple):
    """A bound with its value in SI, the column of its signal and its unit."""

    bound: Bound
    value: float
    column: int
    unit: str


@dataclass(frozen=True)
class Reaction:
    """What happened. ticks: from the beginning of the last fault to the end of the run, the first one included."""

    what: str
    ticks: int | None
    failures: tuple[str, ...]


def judge(
    run: FaultyRun,
    expect: Sequence[ExpectedEnd | SignalBound],
    signals: np.ndarray,
    fallbacks: Mapping[str, np.ndarray],
) -> Reaction:
    """signals (k, n): of all ticks; fallbacks: controller -> whether its fallback is active (k,)."""
    if missing := run.timeline.untriggered:
        return Reaction(_never(run, missing), None, (_never(run, missing),))
    last = len(run.timeline.faults) - 1
    begin = int(run.timeline.begin_of(last) or 0)
    if begin > run.last:
        return Reaction(_never(run, [last]), None, (_never(run, [last]),))
    cause = cause_of(run.fault) if run.fault else None
    active = {name: int(np.argmax(on)) for name, on in fallbacks.items() if on[begin:].any()}
    failures = []
    for each in expect:
        if isinstance(each, SignalBound):
            failure = _bound_failure(each, signals, begin, run.step)
        else:
            failure = _OUTCOMES[each.what](each, run, begin, cause, active)
        if failure:
            failures.append(failure)
    ticks = run.last - begin + 1 if run.fault else None
    return Reaction(_what(run, cause, active), ticks, tuple(failures))


def _never(run: FaultyRun, missing: Sequence[int]) -> str:
    k = missing[0]
    which = f"fault {k + 1}, " if len(run.timeline.faults) > 1 else ""
    spec = run.timeline.faults[k].spec
    end = f"; the run was {_stopped(cause_of(run.fault))} before" if run.fault else ""
    return f"never triggered: {which}{spec.kind}{end}"


def _what(run: FaultyRun, cause: StopCause | None, active: Mapping[str, int]) -> str:
    if cause is not None:
        return _stopped(cause)
    return f"degraded: fallback of {', '.join(active)}" if active else COMPLETED


def _stopped(cause: StopCause) -> str:
    return f"stopped by {cause.word}{f' of {cause.name}' if cause.name else ''}"


def _late(each: ExpectedEnd, ticks: float, step: float) -> str:
    """Why the reaction after these ticks is too late; "" if it is in time."""
    if each.ticks is not None and ticks > each.ticks:
        return f"after {ticks:g} ticks, not within {each.ticks}"
    if each.within is not None and ticks * step > each.within * (1.0 + 1e-9):
        return f"after {show_quantity(ticks * step, 's')}, not within {show_quantity(each.within, 's')}"
    return ""


def _stop_failure(
    each: ExpectedEnd, run: FaultyRun, begin: int, cause: StopCause | None, active: Mapping[str, int]
) -> str:
    if cause is None:
        return "not stopped"
    if (each.cause and each.cause != cause.word) or (each.name and each.name not in cause.name.split(", ")):
        why = run.fault if cause.word == UNKNOWN else _stopped(cause)
        expected = f"by {each.cause or 'any cause'}{f' of {each.name}' if each.name else ''}"
        return f"{why}, not {expected}"
    late = _late(each, run.last - begin + 1, run.step)
    return f"stopped {late}" if late else ""


def _completion_failure(
    each: ExpectedEnd, run: FaultyRun, begin: int, cause: StopCause | None, active: Mapping[str, int]
) -> str:
    if cause is not None:
        return f"{_stopped(cause)}, not completed"
    return f"degraded: fallback of {', '.join(active)}" if active else ""


def _degradation_failure(
    each: ExpectedEnd, run: FaultyRun, begin: int, cause: StopCause | None, active: Mapping[str, int]
) -> str:
    if cause is not None:
        return f"{_stopped(cause)}, not degraded"
    known = {name: tick for name, tick in active.items() if each.name in ("", name)}
    if not known:
        return f"no fallback{f' of {each.name}' if each.name else ''} was active"
    late = _late(each, min(known.values()) - begin + 1, run.step)
    return f"degraded {late}" if late else ""


def _off_failure(
    each: ExpectedEnd, run: FaultyRun, begin: int, cause: StopCause | None, active: Mapping[str, int]
) -> str:
    if not run.fault:
        return "the motors were on until the end"
    if run.off is None:
        return "the motors were not off 2 s after the stop"
    late = _late(each, run.last - begin + 1 + math.ceil(run.off / run.step - 1e-9), run.step)
    return f"the motors were off {late}" if late else ""


_OUTCOMES = {
    STOPPED: _stop_failure,
    COMPLETED: _completion_failure,
    DEGRADED: _degradation_failure,
    OFF: _off_failure,
}


def _bound_failure(each: SignalBound, signals: np.ndarray, begin: int, step: float) -> str:
    bound, first = each.bound, begin + math.ceil(each.bound.after / step - 1e-9)
    values = signals[first:, each.column]
    if not len(values):
        return f"{bound.signal}: the run ended before"
    size = np.abs(values) if bound.relation == "at most" else values
    kept = size > each.value if bound.relation == "above" else size <= each.value
    if bound.relation == "below":
        kept = size < each.value
    if kept.all():
        return ""
    k = int(np.argmin(size) if bound.relation == "above" else np.argmax(size))
    k = k if np.isfinite(size[k]) else int(np.argmin(kept))
    shown = show_quantity(float(values[k]), each.unit) if np.isfinite(values[k]) else "no number"
    return f"{bound.signal} was {shown} at t = {(first + k) * step:.6g} s, not {bound.relation} {bound.value}"
