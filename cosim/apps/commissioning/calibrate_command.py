"""`cosim drives home` and `cosim drives calibrate`: what they find is an overlay for `cosim run RIG --overlay F.yaml`.

The zero of a joint is found slowly against a hard stop with a bounded effort, or by the homing of its drive.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cosim.apps.commissioning.calibration import CoggingPlan, fit_marks, measure_cogging
from cosim.apps.commissioning.motion import ExpectedJoint, HoldingLoop, expected
from cosim.apps.commissioning.session import CommissioningSession, LiveJoints, MotionBounds
from cosim.core.errors import InputError, RunError
from cosim.core.units import TURN
from cosim.output.console import quantity_of
from cosim.output.output_files import check_output, identity
from cosim.rig.reading.yaml_source import load_yaml, overlay_text
from cosim.rig.rig import Rig
from cosim.rig.sections.drivers import DriverSpec

Confirm = Callable[[Sequence[str]], object]
SPEED = {"rad": math.radians(5.0), "m": 5e-3}  # per s, by default; at most SPEED_FRACTION of the limit
WAY_BACK = {"rad": math.radians(3.0), "m": 3e-3}
SPEED_FRACTION = 0.1
PERIOD_TIME = 10.0  # s per period of the cogging, by default
WINDOW = 0.25  # s without motion at the bound of the effort, after which a joint is at its stop
STANDS = 0.1  # of the way at its speed: a joint that moves less stands
AT_BOUND = 0.98  # of the effort
SEARCH_TIME = 2.0  # s for a stop at the end of the travel
LEAST_APPROACH = 0.5  # of the way back, that a joint must have moved for its stop to count
SPEED_MARGIN = 0.05  # of the velocity limit


class HomeOptions(NamedTuple):
    """As given on the command line."""

    at: str | None
    towards: str
    speed: str | None
    effort: float
    travel: str | None


def home_joints(rig: Rig, joints: Sequence[str], options: HomeOptions, output: Path | None, confirm: Confirm) -> None:
    """Home these joints, one after the other, and write their zeros. Raises InputError and RunError."""
    session = CommissioningSession(rig, "home")
    for name in joints:
        session.require(name)
    names = tuple(joints) or session.joints
    path = overlay_path(rig.spec.path, output)
    by_drive = [name for name in names if getattr(session.specs[name].wiring[name], "homing", None)]
    plans = {name: _home_plan(session, name, options) for name in names if name not in by_drive}
    confirm(list(_home_lines(session, names, plans)))
    for name in names:
        unit, spec = session.unit(name), session.specs[name]
        if name in by_drive:
            at = home_by_drive(session, name)
            print(f"{name}: homed by its drive, now at {show(at, unit)}")
            continue
        found = home_at_stop(session, name, plans[name])
        write_overlay(path, rig.spec.path, {wiring_key(spec, name, "zero"): found.zero})
        was = spec.wiring[name].zero
        apart = f"the two approaches differ by {show(found.repeated, unit)}"
        print(f"{name}: zero {show(found.zero, unit)} instead of {show(was, unit)}; {apart}")
    if plans:
        print(f"wrote    {path}; use it with cosim run {rig.spec.path} --overlay {path}")


def _home_plan(session: CommissioningSession, name: str, options: HomeOptions) -> HomePlan:
    unit, side = session.unit(name), -1 if options.towards == "lower" else 1
    if "effort" not in session.specs[name].family.MODES:
        raise InputError(f"the drive of '{name}' has no effort mode to bound its effort at a stop", "cosim drives home")
    stops = dict(session.rig.spec.joints[name].stops)
    if options.at is None and side not in stops:
        what = f"where the {options.towards} stop of '{name}' is, is unknown"
        raise InputError(f"{what}; give --at, or joints.{name}.stops.{options.towards}", "cosim drives home")
    at = stops.get(side, 0.0) if options.at is None else _quantity(options.at, unit, "--at")
    _check_fraction(options.effort)
    whole = travel_of(session, name)
    travel = whole if options.travel is None else _quantity(options.travel, unit, "--travel")
    return HomePlan(side, at, _speed(session, name, options.speed), options.effort, WAY_BACK[unit], travel)


def _home_lines(session: CommissioningSession, names: Sequence[str], plans: dict[str, HomePlan]) -> list[str]:
    lines = [f"{session.rig.spec.name}: each motor is switched on alone, all others stay off"]
    for name in names:
        unit, spec = session.unit(name), session.specs[name]
        where = f"{name} ({spec.plugin.name} node {spec.wiring[name].address})"
        if (plan := plans.get(name)) is None:
            lines.append(f"  {where}: homed by its drive, as its section 'homing' has it")
            continue
        largest = plan.effort * float(session.rig.limits.effort[session.rig.joints.index(name)])
        side = "lower" if plan.towards < 0 else "upper"
        way = f"to its {side} stop at {show(plan.at, unit)}, at {show(plan.speed, unit)}/s"
        bound = f"up to {show(plan.travel, unit)}, with up to {largest:.3g} {'N' if unit == 'm' else 'N·m'}"
        lines.append(f"  {where}: {way}, {bound}; then back")
    return lines


def calibrate_by_marks(
    rig: Rig, name: str, marks: Sequence[str], output: Path | None, wait: Callable[[str], object]
) -> None:
    """Direction, ratio and zero of a joint that is moved by hand to each mark; its motor stays off.

    wait: shows a request and returns when it is carried out. Raises InputError and RunError.
    """
    session = CommissioningSession(rig, "calibrate")
    session.require(name)
    unit, spec = session.unit(name), session.specs[name]
    given = [_quantity(mark, unit, "--mark") for mark in marks]
    path = overlay_path(rig.spec.path, output)
    measured = []
    for mark in given:
        session.check()  # the motor is off
        wait(f"move {name} by hand to {show(mark, unit)}, and press Enter: ")
        measured.append(session.check()[name])
        print(f"{name}: at {show(mark, unit)} it measures {show(measured[-1], unit)}")
    wiring = spec.wiring[name]
    fit = fit_marks(wiring, given, measured)
    values: dict[str, float | int] = {wiring_key(spec, name, "zero"): fit.zero}
    found = f"zero {show(fit.zero, unit)}"
    if len(given) > 1:
        values |= {wiring_key(spec, name, "direction"): fit.direction, wiring_key(spec, name, "ratio"): fit.ratio}
        found = f"direction {fit.direction}, ratio {fit.ratio:.6g}, {found}"
        found += f"; largest distance of a mark {show(fit.residual, unit)}"
    write_overlay(path, rig.spec.path, values)
    print(f"{name}: {found}")
    print(f"wrote    {path}; use it with cosim run {rig.spec.path} --overlay {path}")


class CoggingOptions(NamedTuple):
    """As given on the command line."""

    speed: str | None
    travel: str | None
    effort: float
    order: int


def calibrate_cogging(rig: Rig, name: str, options: CoggingOptions, output: Path | None, confirm: Confirm) -> None:
    """The cogging of a joint, from a slow motion up and back. Raises InputError and RunError."""
    session = CommissioningSession(rig, "calibrate")
    session.require(name)
    if "effort" not in session.specs[name].family.MODES:
        raise InputError(f"the drive of '{name}' has no effort mode, so its cogging cannot be measured", "--cogging")
    _check_fraction(options.effort)
    if not 1 <= options.order <= 64:
        raise InputError(f"expected a number of harmonics from 1 to 64, got {options.order}", "--order")
    unit, path = session.unit(name), overlay_path(rig.spec.path, output)
    period = TURN / session.specs[name].wiring[name].ratio
    slow = min(period / PERIOD_TIME, _speed(session, name, None))
    speed = slow if options.speed is None else _speed(session, name, options.speed)
    travel = 1.2 * period if options.travel is None else abs(_quantity(options.travel, unit, "--travel"))
    plan = CoggingPlan(speed, travel, options.effort, options.order, period)
    largest = options.effort * float(rig.limits.effort[rig.joints.index(name)])
    confirm(
        [
            f"{rig.spec.name} moves {name} by {show(travel, unit)} up and back at {show(speed, unit)}/s",
            f"  with up to {largest:.3g} {'N' if unit == 'm' else 'N·m'}; all other motors stay off",
        ]
    )
    fit = measure_cogging(session, name, plan)
    one = fit.cogging
    value = {"period": one.period, "cosine": list(one.cosine), "sine": list(one.sine)}
    write_overlay(path, rig.spec.path, {f"joints.{name}.cogging": value})
    word = "N" if unit == "m" else "N·m"
    sizes = [math.hypot(*pair) for pair in zip(one.cosine, one.sine, strict=True)]
    strongest = sizes.index(max(sizes))
    print(
        f"{name}: strongest harmonic {strongest + 1} of a period of {show(period, unit)}, {sizes[strongest]:.3g} {word}"
    )
    print(f"  friction {fit.friction:.3g} {word}, not explained {fit.residual:.2g} {word} rms")
    print(f"wrote    {path}; use it with cosim run {rig.spec.path} --overlay {path}")


def _speed(session: CommissioningSession, name: str, given: str | None) -> float:
    unit = session.unit(name)
    fastest = float(session.rig.limits.velocity[session.rig.joints.index(name)])
    if given is None:
        return min(SPEED[unit], SPEED_FRACTION * fastest)
    return quantity_of(given, f"{unit}/s", "--speed", (1e-9, fastest), f"a speed up to {show(fastest, unit)}/s")


def _quantity(text: str, unit: str, option: str) -> float:
    words = "an angle such as 5 deg" if unit == "rad" else "a way such as 5 mm"
    return quantity_of(text, unit, option, (-math.inf, math.inf), words)


def _check_fraction(effort: float) -> None:
    if not 0.0 < effort <= 1.0:
        raise InputError(f"expected a fraction of the limit, above 0 and up to 1, got {effort:g}", "--effort")


def show(value: float, unit: str) -> str:
    return f"{value * 1e3:.4g} mm" if unit == "m" else f"{math.degrees(value):.4g} deg"


class HomePlan(NamedTuple):
    """SI. towards: −1 or 1; at: position of the stop; speed: of the first approach, the second has half of it; effort:
    fraction of the limit; back: way back from the stop; travel: the longest way."""

    towards: int
    at: float
    speed: float
    effort: float
    back: float
    travel: float


class FoundStop(NamedTuple):
    """The position of a joint at its hard stop, from two approaches. zero: of the wiring, with which the stop is at its
    position; repeated: difference of the two approaches."""

    zero: float
    measured: float
    repeated: float


def home_at_stop(
    session: CommissioningSession, name: str, plan: HomePlan, abort: Callable[[], str] = lambda: ""
) -> FoundStop:
    """Move a joint to its stop twice, and back; its motor is off afterwards, all others stay off.

    Raises RunError for a joint that does not move or finds no stop, and for whatever else stops it.
    """
    k = session.rig.joints.index(name)
    fastest, strongest = float(session.rig.limits.velocity[k]), float(session.rig.limits.effort[k])
    ignored = frozenset({"stall", "tracking", "frozen"})
    bounds = MotionBounds(
        plan.effort * strongest, 4.0 * plan.speed + SPEED_MARGIN * fastest, plan.travel, in_range=False, ignored=ignored
    )
    # gravity depends on a posture that is not known yet: the integral part of the loop carries it
    expect = {name: ExpectedJoint(expected(session.rig, session.check())[name].inertia, 0.0)}
    with session.live([name], bounds, "effort", abort) as live:
        start = float(live.position[0])
        first = _approach(live, expect, plan, plan.speed, name)
        if abs(first - start) < LEAST_APPROACH * plan.back:
            what = f"joint '{name}' did not move towards its stop; it may stand there already: move it away"
            raise RunError(f"{what}, or raise --effort")
        _move(live, expect, -plan.towards * plan.speed, plan.back)
        second = _approach(live, expect, plan, 0.5 * plan.speed, name)
        _move(live, expect, -plan.towards * plan.speed, plan.back)
    zero = session.specs[name].wiring[name].zero + plan.at - second
    return FoundStop(zero, second, abs(second - first))


def _approach(live: LiveJoints, expect: dict[str, ExpectedJoint], plan: HomePlan, speed: float, name: str) -> float:
    """The position at which the joint stands against its stop."""
    loop, bound = HoldingLoop(live, "effort", expect), float(live.guard.bounds["effort"][0])
    since, at = live.t, float(live.position[0])
    longest = live.t + plan.travel / speed + SEARCH_TIME
    while True:
        live.read()
        loop.follow([plan.towards * speed])
        moves = abs(float(live.position[0]) - at) > STANDS * speed * WINDOW
        if moves or abs(float(live.request[0])) < AT_BOUND * bound:
            since, at = live.t, float(live.position[0])
        elif live.t - since > WINDOW:
            return float(live.position[0])
        if live.t > longest:
            raise RunError(f"joint '{name}' found no stop; check --towards, or raise --travel")


def _move(live: LiveJoints, expect: dict[str, ExpectedJoint], rate: float, way: float) -> None:
    loop, end = HoldingLoop(live, "effort", expect), live.t + way / abs(rate)
    while live.t < end:
        live.read()
        loop.follow([rate])


def home_by_drive(session: CommissioningSession, name: str) -> float:
    """Let the drive home itself while it is switched on; the position afterwards. Raises InputError and RunError."""
    bounds = MotionBounds(in_range=False)
    with session.live([name], bounds, session.specs[name].mode) as live:
        live.read()
        return float(live.position[0])


def travel_of(session: CommissioningSession, name: str) -> float:
    """The whole range of a joint, a turn or a metre without one."""
    k = session.rig.joints.index(name)
    limits = session.rig.limits
    span = float(limits.upper[k] - limits.lower[k])
    return span if math.isfinite(span) else (1.0 if session.unit(name) == "m" else 2.0 * math.pi)


def overlay_path(rig: Path, given: Path | None) -> Path:
    """The file that is written: as given, or RIG.commissioning.yaml beside the rig. Raises InputError."""
    path = rig.with_name(f"{rig.stem}.commissioning.yaml") if given is None else given
    check_output(path, "-o", (".yaml", ".yml"), {identity(rig): "the rig itself"})
    return path


def wiring_key(spec: DriverSpec, joint: str, key: str) -> str:
    """The path of a key of a joint's wiring in the rig."""
    return f"drivers.{spec.name}.joints.{joint}.{key}"


def write_overlay(path: Path, rig: Path, values: Mapping[str, Any]) -> None:
    """Add values to an overlay, or replace them in it. Raises InputError for a file that is no overlay."""
    known = dict(load_yaml(path).data) if path.exists() and path.stat().st_size else {}
    path.write_text(overlay_text({**known, **values}, str(rig)), encoding="utf-8")
