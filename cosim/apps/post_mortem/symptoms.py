"""The table of detectors, each a pure function of the ticks before the stop.

Limits are seen by the guard's own table: joints that came near one, reached it or went beyond it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from cosim.apps.post_mortem.symptom import Detector, StopWindow, Symptom, first, growth
from cosim.control.limits import DERATING, LIMIT_OF, POSITION_TOLERANCE, GuardLimit
from cosim.output.events import RunEvent, without_quantities

# of the limit of tracking; and rad or m where there is none: a smaller tracking error has no meaning
SMALL_PART, SMALL_ERROR = 0.1, 1e-3
SMALL_ENERGY = 1e-3  # J of a bond
# times the median age of the feedback, and steps: feedback that is older is late
OLD, OLD_STEPS = 3.0, 2.0
FINITE = ("position", "velocity", "measured_position", "measured_velocity", "reference_position", "command_effort")
TAKEOVER = "its fallback has taken over"
TIMING, END_TO_END = "timing/", "timing/end_to_end"
NEAR = 0.9  # of a limit
# of its value, by which what saturates may differ from its limit through rounding
ROUNDING = 1e-9
Measure = Callable[[StopWindow, str], np.ndarray | None]


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


class Checked(NamedTuple):
    """How a limit is seen in a recording. what: is measured; measure: (k,) of a joint, None where it is not recorded;
    saturates: whether it is the limited value, which comes up to its limit and not beyond."""

    what: str
    measure: Measure
    saturates: bool = False


def _signal(name: str) -> Measure:
    return lambda window, joint: window.signals.get(f"{joint}/{name}")


def _of_the_joint(name: str) -> Measure:
    """Of the joint that a dof belongs to."""

    def measure(window: StopWindow, dof: str) -> np.ndarray | None:
        owners = dof, dof.rpartition(".")[0]
        return next((s for owner in owners if (s := window.signals.get(f"{owner}/{name}")) is not None), None)

    return measure


def _power(window: StopWindow, joint: str) -> np.ndarray | None:
    effort, velocity = window.signals.get(f"{joint}/command_effort"), window.measured(joint, "velocity")
    return None if effort is None or velocity is None else effort * velocity


def _effort_rate(window: StopWindow, joint: str) -> np.ndarray | None:
    effort = window.signals.get(f"{joint}/command_effort")
    return None if effort is None else np.diff(effort, prepend=effort[:1]) / window.step


# key of the limit -> how it is seen. `stall` and `frozen` check histories that are not recorded, `commanded_effort`
# what the guard cuts; a stop states them
CHECKED: Mapping[str, Checked] = {
    "effort": Checked("commanded effort", _signal("command_effort"), saturates=True),
    "rate": Checked("change of the commanded effort", _effort_rate, saturates=True),
    "power": Checked("commanded power", _power, saturates=True),
    "temperature": Checked("temperature", _signal("temperature")),
    "position": Checked("position", lambda window, joint: window.measured(joint, "position")),
    "residual_energy": Checked("residual energy", _signal("residual_energy")),
    "load_residual_energy": Checked("residual energy of the load motor", _signal("load_residual_energy")),
    "wall_energy": Checked("energy from virtual contacts", _signal("wall_energy")),
    "reaction_force": Checked("transmitted force", _of_the_joint("resultant_force")),
    "reaction_moment": Checked("transmitted moment", _of_the_joint("resultant_moment")),
    "shadow_drive": Checked("effort of the drive beside its twin", _signal("shadow_drive")),
    "shadow_effort": Checked("effort beyond its twin's", _signal("shadow_effort")),
    "shadow_slip": Checked("motion beyond the measured velocity", _signal("shadow_slip")),
    "shadow_position": Checked("distance from the predicted position", _signal("shadow_position")),
    "units": Checked("disagreement of units", _signal("unit_disagreement")),
    "tracking": Checked("tracking error", StopWindow.tracking_error),
    "velocity": Checked("velocity", lambda window, joint: window.measured(joint, "velocity")),
}


def limit_symptoms(window: StopWindow) -> Iterator[Symptom]:
    """Of each limit that has a bound: when the joint first came near it, and when it first was at it or beyond."""
    for joint in window.joints:
        for key, checked in CHECKED.items():
            bounds = window.limits[joint]
            values = checked.measure(window, joint)
            if values is not None and any(name in bounds for name in LIMIT_OF[key].bound_keys):
                yield from _symptoms(window, joint, LIMIT_OF[key], checked, values)


def fraction_of(key: str, values: np.ndarray, bounds: Mapping[str, float]) -> tuple[np.ndarray, np.ndarray]:
    """(fraction, nearest bound), (k,) each: 1 at a bound and above 1 beyond it.

    Of a position from the middle of its range; where only one end is limited, 0 within and infinite beyond. Of a
    temperature 1 − (limit − temperature) / (10 · `DERATING`): its zero has no meaning.
    """
    if key == "position":
        return _fraction_of_range(values, bounds.get("lower", -np.inf), bounds.get("upper", np.inf))
    limit = bounds[key]
    if key == "temperature":
        return 1.0 - (limit - values) / (DERATING / (1.0 - NEAR)), np.full(len(values), limit)
    return np.abs(values) / limit, np.full(len(values), limit)


def _fraction_of_range(values: np.ndarray, lower: float, upper: float) -> tuple[np.ndarray, np.ndarray]:
    outside = (values < lower - POSITION_TOLERANCE) | (values > upper + POSITION_TOLERANCE)
    if not np.isfinite(upper - lower):
        return np.where(outside, np.inf, 0.0), np.full(len(values), lower if np.isfinite(lower) else upper)
    middle, half = (upper + lower) / 2, (upper - lower) / 2
    fraction = np.abs(values - middle) / half if half > 0 else np.zeros(len(values))
    # within the tolerance a joint rests at its limit
    fraction = np.where(outside, np.maximum(fraction, 1.0), np.minimum(fraction, 1.0))
    return fraction, np.where(values < middle, lower, upper)


def _symptoms(
    window: StopWindow, joint: str, row: GuardLimit, checked: Checked, values: np.ndarray
) -> Iterator[Symptom]:
    fraction, nearest = fraction_of(row.key, values, window.limits[joint])
    beyond = fraction >= 1.0 - ROUNDING if checked.saturates else fraction > 1.0
    at, came = first(beyond), first(fraction >= NEAR)
    unit = row.unit_of(window.units.get(f"{joint}/position", "rad"))

    def symptom(k: int, relation: str, abnormal: bool) -> Symptom:
        limit = f"{nearest[k]:.6g} {unit}"
        what = f"joint '{joint}': {checked.what} {values[k]:.6g} {unit}, {relation.format(limit=limit)}"
        return Symptom(float(window.t[k]), what, abnormal, float(values[k]), float(nearest[k]))

    if came is not None and came != at:
        part = _how_near(row.key, unit, fraction, np.abs(nearest - values), came)
        yield symptom(came, f"{part} its limit of {{limit}}", False)
    if at is not None:
        saturated = f"at its limit of {{limit}} {_how_long(beyond)}"
        yield symptom(at, saturated if checked.saturates else "beyond its limit of {limit}", True)


def _how_near(key: str, unit: str, fraction: np.ndarray, distance: np.ndarray, k: int) -> str:
    """As a part of the limit, or as a distance where zero is not where the limit is counted from."""
    return f"{distance[k]:.3g} {unit} from" if key in ("position", "temperature") else f"{100 * fraction[k]:.0f} % of"


def _how_long(beyond: np.ndarray) -> str:
    """How many of the ticks from the first one on are."""
    ticks = beyond[int(np.argmax(beyond)) :]
    return "from then on" if ticks.all() else f"in {int(ticks.sum())} of the {len(ticks)} ticks from then on"


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
