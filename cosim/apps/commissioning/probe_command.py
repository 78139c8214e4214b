"""`cosim drives probe`: what the motions of joints show about their wiring, a line with the fix for each."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from cosim.apps.commissioning.motion import ExpectedJoint, expected
from cosim.apps.commissioning.probe import (
    SEEN,
    JointProbe,
    MotionFit,
    ProbeSettings,
    effort_text,
    probe_joint,
    session_travel,
    way_text,
)
from cosim.apps.commissioning.session import CommissioningSession
from cosim.core.errors import InputError, RunError
from cosim.output.console import quantity_of
from cosim.rig.moving_motors import add_to_record, record_path, wiring_text
from cosim.rig.reading.driver_family import JointWiring
from cosim.rig.rig import Rig

TRAVELS, WORDS = (1e-6, 0.5), "a way such as 2 deg or 1 mm, up to 0.5 rad or m"
INERTIA_FACTOR = 1.5  # factor by which an inertia may be beyond what the model expects
GRAVITY_FRACTION = 0.35  # fraction by which an effort of gravity may differ from the model's
VISIBLE, NOTICED = 0.5, 0.15  # of the dry friction and of the effort, from which on an effort of gravity shows


def probe_rig(
    rig: Rig,
    joints: Sequence[str],
    settings: ProbeSettings,
    confirm: Callable[[Sequence[str]], object],
    session: CommissioningSession | None = None,
) -> None:
    """Probe the wiring of these real joints, or of all, one after the other; a line for each.

    confirm: receives what will move, and raises InputError unless that is confirmed. Raises RunError for a joint whose
    wiring is wrong or could not be judged.
    """
    session = CommissioningSession(rig, "probe") if session is None else session
    for name in joints:
        session.require(name)
    names = tuple(joints) or session.joints
    positions = session.check()
    confirm(list(what_moves(session, names, settings)))
    wiring = {name: spec.wiring[name] for name, spec in session.specs.items()}
    wrong: list[str] = []
    left = list(names)
    for name in names:
        left.remove(name)
        expect = expected(rig, positions)
        result, positions = probe_joint(session, name, expect[name], positions, settings)
        found = judge(result, session_travel(session, name, settings), wiring, expect)
        print(f"{name}: {found.text}", flush=True)
        row = {"wiring": wiring_text(session.specs[name], name), "passed": found.ok, "judgement": found.text}
        at = {"at": time.strftime("%Y-%m-%dT%H:%M:%S")}
        fit = {} if result.fit is None else result.fit._asdict()
        add_to_record(rig.spec.path, {name: {**row, **at, **fit}})
        wrong += [] if found.ok else [name]
        if result.stopped:
            break
    print(f"wrote    {record_path(rig.spec.path)}")
    if wrong:
        rest = f"; {', '.join(left)} not probed" if left else ""
        raise RunError(f"the wiring of {', '.join(wrong)} did not pass{rest}; motors are off", str(rig.spec.path))


def settings_of(effort: float, travel: str) -> ProbeSettings:
    """The settings that the options give; travel: empty for the default. Raises InputError."""
    if not 0.0 < effort <= 1.0:
        raise InputError(f"expected a fraction of the limit, above 0 and up to 1, got {effort:g}", "--effort")
    if not travel:
        return ProbeSettings(effort)
    turn, slide = ProbeSettings().travel
    try:
        return ProbeSettings(effort, (quantity_of(travel, "rad", "--travel", TRAVELS, WORDS), slide))
    except InputError:
        return ProbeSettings(effort, (turn, quantity_of(travel, "m", "--travel", TRAVELS, WORDS)))


def what_moves(session: CommissioningSession, names: Sequence[str], settings: ProbeSettings) -> list[str]:
    """The joints in their order, with the bounds of their motion."""
    lines = [f"{session.rig.spec.name}: each motor is switched on alone, all others stay off"]
    for name in names:
        spec, unit = session.specs[name], session.unit(name)
        largest = settings.effort * float(session.rig.limits.effort[session.rig.joints.index(name)])
        travel = session_travel(session, name, settings)
        where = f"{spec.plugin.name} node {spec.wiring[name].address}"
        bound = way_text(5.0 * travel, unit).removeprefix("+")
        way = way_text(travel, unit).removeprefix("+")
        lines.append(f"  {name} ({where}): ±{way} with up to {effort_text(largest, unit)}; stopped beyond {bound}")
    return [*lines, "keep clear of the machine, and support joints that gravity moves"]


class ProbeJudgement(NamedTuple):
    """Whether the wiring of a joint is right, and the line that reports it."""

    ok: bool
    text: str


def judge(
    probe: JointProbe, travel: float, wiring: Mapping[str, JointWiring], inertias: Mapping[str, ExpectedJoint]
) -> ProbeJudgement:
    """The judgement on one joint. wiring, inertias: of all real joints, by name."""
    up, down = probe.moved
    seen, unit, how = SEEN * travel, probe.unit, wiring[probe.joint]
    if probe.skipped:
        return ProbeJudgement(False, f"not probed: {probe.skipped}")
    if probe.stopped:
        return ProbeJudgement(False, f"stopped: {probe.stopped}")
    effort = effort_text(probe.effort, unit)
    if probe.others:
        others = ", ".join(f"{name} by {way_text(way, unit)}" for name, way in probe.others.items())
        what = f"did not move under {effort}, but {others}: cables are swapped"
        return ProbeJudgement(False, f"{what}; connect motor and encoder of each drive to the same joint")
    if abs(up) <= seen and abs(down) <= seen:
        what = f"did not move under ±{effort}: its brake is closed, its motor is not connected, or friction is larger"
        return ProbeJudgement(False, f"{what}; check them, then raise --effort")
    if up < 0.0 < down:
        what = f"moved {way_text(up, unit)} under +{effort}: its motor acts against its encoder"
        return ProbeJudgement(
            False, f"{what}; swap two phases, or calibrate the drive again (direction has no effect here)"
        )
    if up * down >= 0.0 or min(abs(up), abs(down)) <= seen:
        return ProbeJudgement(False, _one_sided(probe, how))
    if probe.fit is None or probe.fit.inertia <= 0.0:
        return ProbeJudgement(
            False, f"moved {way_text(up, unit)} and {way_text(down, unit)}, too little to judge; raise --effort"
        )
    for wrong in (_gravity(probe, probe.fit, how), _inertia(probe, probe.fit, wiring, inertias)):
        if wrong:
            return ProbeJudgement(False, wrong)
    return ProbeJudgement(True, _right(probe, probe.fit))


def _one_sided(probe: JointProbe, how: JointWiring) -> str:
    up, down = probe.moved
    unit, gravity = probe.unit, probe.expected.gravity
    ways = f"{way_text(up, unit)} under +{effort_text(probe.effort, unit)} and {way_text(down, unit)} under the reverse"
    moved = f"moved {ways}"
    if gravity and up * gravity >= 0.0 and down * gravity >= 0.0:
        what = f"{moved}: gravity acts against the model, its direction or zero is wrong"
        return f"{what}; set direction: {-how.direction}, or correct zero"
    return f"{moved}: a stop, gravity or a spring is in the way; move or support it"


def _visible(probe: JointProbe, fit: MotionFit) -> float:
    """The smallest effort of gravity that shows beside the friction and the effort of the motion."""
    return max(VISIBLE * fit.friction, NOTICED * probe.effort)


def _gravity(probe: JointProbe, fit: MotionFit, how: JointWiring) -> str:
    """What is wrong by the effort of gravity, where there is enough to see."""
    model, unit, visible = probe.expected.gravity, probe.unit, _visible(probe, fit)
    off = abs(fit.gravity - model)
    if off <= max(GRAVITY_FRACTION * abs(model), visible):
        return ""
    both = f"gravity needs {effort_text(fit.gravity, unit)} where the model expects {effort_text(model, unit)}"
    if abs(fit.gravity + model) <= max(GRAVITY_FRACTION * abs(model), visible):
        return f"{both}: direction is wrong; set direction: {-how.direction}"
    return f"{both}: zero, ratio or masses are wrong; calibrate zero, and check ratio and masses"


def _inertia(
    probe: JointProbe, fit: MotionFit, wiring: Mapping[str, JointWiring], inertias: Mapping[str, ExpectedJoint]
) -> str:
    """What is wrong by the inertia."""
    own = wiring[probe.joint]
    if _fits(fit.inertia, probe.expected.inertia):
        return ""
    size, (least, largest) = _mass(fit.inertia, probe.unit), probe.expected.inertia
    both = f"moves {size} where the model has {least:.3g} to {_mass(largest, probe.unit)}"
    for name, other in wiring.items():
        scale = (own.ratio / other.ratio) ** 2
        low, high = (scale * inertia for inertia in inertias[name].inertia)
        if name != probe.joint and _fits(fit.inertia, (low, high)):
            return f"{both}: fits joint '{name}'; exchange their {own.key}s, or correct ratio or masses"
    ratio = own.ratio * math.sqrt(math.sqrt(least * largest) / fit.inertia)
    return f"{both}: ratio or masses are wrong; a ratio of about {ratio:.2g} instead of {own.ratio:g} would fit"


def _fits(inertia: float, bounds: tuple[float, float]) -> bool:
    return bounds[0] / INERTIA_FACTOR <= inertia <= bounds[1] * INERTIA_FACTOR


def _right(probe: JointProbe, fit: MotionFit) -> str:
    up, down = probe.moved
    figures = f"inertia {_mass(fit.inertia, probe.unit)}, friction {effort_text(fit.friction, probe.unit)}"
    moved = f"moved {way_text(up, probe.unit)} and {way_text(down, probe.unit)}, {figures}: ok"
    if abs(probe.expected.gravity) > _visible(probe, fit):
        return f"{moved}, direction agrees with gravity"
    return f"{moved}; gravity does not show its direction: check that + is the joint's positive direction"


def _mass(value: float, unit: str) -> str:
    return f"{value:.3g} {'kg' if unit == 'm' else 'kg·m²'}"
