"""The table of detectors: each is a pure function of the ticks before the stop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from cosim.apps.post_mortem.limit_symptoms import limit_symptoms
from cosim.apps.post_mortem.symptom import Detector, Symptom, first, growth
from cosim.apps.post_mortem.window import StopWindow
from cosim.output.events import RunEvent, without_quantities

# of the limit of tracking; and rad or m where there is none: a smaller tracking error has no meaning
SMALL_PART, SMALL_ERROR = 0.1, 1e-3
SMALL_ENERGY = 1e-3  # J of a bond
# times the median age of the feedback, and steps: feedback that is older is late
OLD, OLD_STEPS = 3.0, 2.0
FINITE = ("position", "velocity", "measured_position", "measured_velocity", "reference_position", "command_effort")
TAKEOVER = "its fallback has taken over"
TIMING, END_TO_END = "timing/", "timing/end_to_end"


def tracking_symptoms(window: StopWindow) -> Iterator[Symptom]:
    """Tracking errors that grew until the stop."""
    for joint in window.joints:
        error, limit = window.tracking_error(joint), window.limits[joint].get("tracking")
        if error is None:
            continue
        k = growth(error, SMALL_ERROR if limit is None else SMALL_PART * limit)
        if k is not None:
            what = (
                f"joint '{joint}': tracking error grew {_from_to(window, error, k, window.units[f'{joint}/position'])}"
            )
            yield Symptom(float(window.t[k]), what, True, float(error[-1]), limit)


def bond_symptoms(window: StopWindow) -> Iterator[Symptom]:
    """Residual energies of bonds of parts that grew until the stop; joints have limits for theirs."""
    for name in window.signals:
        bond, _, what = name.rpartition("/")
        if what != "residual_energy" or bond in window.limits:
            continue
        energy = np.abs(window.signals[name])
        if (k := growth(energy, SMALL_ENERGY)) is not None:
            grew = f"bond '{bond}': residual energy grew {_from_to(window, energy, k, 'J')}"
            yield Symptom(float(window.t[k]), grew, True, float(energy[-1]))


def _from_to(window: StopWindow, magnitude: np.ndarray, k: int, unit: str) -> str:
    """From the k-th tick to the last one that has a number."""
    end = int(np.flatnonzero(np.isfinite(magnitude))[-1])
    time = f"{1e3 * (window.t[end] - window.t[k]):.6g} ms"
    return f"from {magnitude[k]:.3g} to {magnitude[end]:.3g} {unit} in {time}"


def number_symptoms(window: StopWindow) -> Iterator[Symptom]:
    """Motions, references and commands of joints that are not finite."""
    for joint in window.joints:
        for what in FINITE:
            values = window.signals.get(f"{joint}/{what}")
            if values is not None and (k := first(~np.isfinite(values))) is not None:
                yield Symptom(float(window.t[k]), f"joint '{joint}': {what} is {values[k]:g}", True, float(values[k]))


def age_symptoms(window: StopWindow) -> Iterator[Symptom]:
    """Feedback that came later than it usually does."""
    for joint in window.joints:
        age = window.signals.get(f"{joint}/age")
        if age is None or np.isnan(age).all():
            continue
        usual = float(np.nanmedian(age))
        late = age > max(OLD * usual, OLD_STEPS * window.step)
        if (k := first(late)) is not None:
            oldest = float(np.nanmax(age))
            what = f"joint '{joint}': feedback is {1e3 * age[k]:.4g} ms old, later up to {1e3 * oldest:.4g} ms"
            yield Symptom(float(window.t[k]), f"{what}; usual are {1e3 * usual:.4g} ms", True, oldest)


def timing_symptoms(window: StopWindow) -> Iterator[Symptom]:
    """Ticks of a run in real time that took longer than a step, from due to the end of `write`, and the longest part of
    the first one. Deadlines are not recorded; `write` has one at most a step long unless the rig gives a longer one."""
    total = window.signals.get(END_TO_END)
    if total is None:
        return
    late = total > window.step
    k = first(late)
    if k is None:
        return
    parts = {name: values[k] for name, values in window.signals.items() if name.startswith(TIMING)}
    del parts[END_TO_END]
    name = max(parts, key=lambda part: -np.inf if np.isnan(parts[part]) else parts[part])
    longest = f"{name.removeprefix(TIMING)} took {1e3 * parts[name]:.4g} ms of it"
    more = "" if late.sum() == 1 else f"; {int(late.sum())} ticks did"
    what = f"timing: a tick took {1e3 * total[k]:.4g} ms, longer than its step; {longest}{more}"
    yield Symptom(float(window.t[k]), what, True, float(total[k]), window.step)


def event_symptoms(window: StopWindow) -> Iterator[Symptom]:
    """Events of the run, warnings of the guard, fallbacks and changes of parameters; repeated ones are one symptom, and
    so are warnings that differ in their numbers alone."""
    found: dict[str, list[RunEvent]] = {}
    for event in window.events:
        found.setdefault(event.name if event.level == "info" else without_quantities(event.name), []).append(event)
    for same in found.values():
        earliest, alike = same[0], len({event.name for event in same}) == 1
        times = "" if len(same) == 1 else f" ({len(same)} times{'' if alike else ', with other numbers'})"
        kind = "event" if earliest.level == "info" else earliest.level
        yield Symptom(earliest.t, f"{kind}: {earliest.name}{times}", kind != "event" or TAKEOVER in earliest.name)


# kind -> what finds its symptoms
DETECTORS: Mapping[str, Detector] = {
    "limit": limit_symptoms,
    "tracking": tracking_symptoms,
    "bond": bond_symptoms,
    "number": number_symptoms,
    "age": age_symptoms,
    "timing": timing_symptoms,
    "event": event_symptoms,
}
