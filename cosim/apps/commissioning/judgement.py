"""What the motion of a probed joint shows about its wiring: one line with the fix."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from cosim.apps.commissioning.expected import ExpectedJoint
from cosim.apps.commissioning.probe import SEEN, JointProbe, MotionFit, effort_text, way_text
from cosim.rig.reading.driver_family import JointWiring

INERTIA = 1.5  # factor by which an inertia may be beyond what the model expects
GRAVITY = 0.35  # fraction by which an effort of gravity may differ from the model's
VISIBLE, NOTICED = 0.5, 0.15  # of the dry friction and of the effort, from which on an effort of gravity shows


class ProbeJudgement(NamedTuple):
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
    if off <= max(GRAVITY * abs(model), visible):
        return ""
    both = f"gravity needs {effort_text(fit.gravity, unit)} where the model expects {effort_text(model, unit)}"
    if abs(fit.gravity + model) <= max(GRAVITY * abs(model), visible):
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
    return bounds[0] / INERTIA <= inertia <= bounds[1] * INERTIA


def _right(probe: JointProbe, fit: MotionFit) -> str:
    up, down = probe.moved
    figures = f"inertia {_mass(fit.inertia, probe.unit)}, friction {effort_text(fit.friction, probe.unit)}"
    moved = f"moved {way_text(up, probe.unit)} and {way_text(down, probe.unit)}, {figures}: ok"
    if abs(probe.expected.gravity) > _visible(probe, fit):
        return f"{moved}, direction agrees with gravity"
    return f"{moved}; gravity does not show its direction: check that + is the joint's positive direction"


def _mass(value: float, unit: str) -> str:
    return f"{value:.3g} {'kg' if unit == 'm' else 'kg·m²'}"
