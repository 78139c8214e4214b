"""The command `cosim drives jog`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from cosim.apps.commissioning.jog import JogPlan, JogReading, hold_names, jog
from cosim.apps.commissioning.keys import terminal_keys
from cosim.apps.commissioning.session import CommissioningSession
from cosim.core.errors import InputError
from cosim.output.console import quantity_of, write_line
from cosim.rig.rig import Rig

SPEED = {"rad": math.radians(5.0), "m": 5e-3}  # per s, by default; at most FRACTION of the limit
FRACTION = 0.1
HELP = "keys: + and arrows up, right; - and arrows down, left; q: end; space or any other key: stop"


def jog_joint(
    rig: Rig,
    name: str,
    by: str | None,
    speed: str | None,
    step: str | None,
    effort: float,
    hold: Sequence[str],
    confirm: Callable[[Sequence[str]], object],
    confirm_turns: Callable[[Sequence[str]], object],
) -> None:
    """Move one joint by a way, or by the keys of the terminal. Raises InputError and RunError.

    confirm: raises InputError where the motion is not wanted; confirm_turns: then, where a drive may be on another turn
    than it reports."""
    session = CommissioningSession(rig, "jog")
    session.require(name)
    held, unit = hold_names(session, name, hold), session.unit(name)
    fastest = float(rig.limits.velocity[rig.joints.index(name)])
    rate = min(SPEED[unit], FRACTION * fastest)
    if speed is not None:
        rate = quantity_of(speed, f"{unit}/s", "--speed", (1e-9, fastest), f"a speed up to {_show(fastest, unit)}/s")
    words = "a way such as 5 deg" if unit == "rad" else "a way such as 5 mm"
    way = None if by is None else quantity_of(by, unit, "--by", (-math.inf, math.inf), words)
    bit = 0.0 if step is None else quantity_of(step, unit, "--step", (0.0, math.inf), words)
    if way is not None and not way:
        raise InputError("0 is no way; give one such as 5 deg", "--by")
    if not 0.0 < effort <= 1.0:
        raise InputError(f"expected a fraction of the limit, above 0 and up to 1, got {effort:g}", "--effort")
    plan = JogPlan(rate, way, bit, effort, held)
    confirm(list(what_moves(session, name, plan)))
    if doubts := session.doubtful_turns((name, *held)):
        confirm_turns(doubts)
    with ExitStack() as stack:
        keys = None
        if way is None:
            keys = stack.enter_context(terminal_keys())
            print(HELP)
        last = jog(session, name, plan, keys, lambda reading: write_line(_line(name, unit, reading)))
        write_line("")
    print(f"{_line(name, unit, last)}; motors are off")


def what_moves(session: CommissioningSession, name: str, plan: JogPlan) -> list[str]:
    """The joint, its motion and its bounds, and what the others do."""
    rig, unit, spec = session.rig, session.unit(name), session.specs[name]
    k = rig.joints.index(name)
    how = "by keys" if plan.by is None else f"by {_show(plan.by, unit)}"
    if plan.step:
        how = f"by {_show(plan.step, unit)} with each key"
    largest = plan.effort * float(rig.limits.effort[k])
    limits = " to ".join(_show(float(end[k]), unit) for end in (rig.limits.lower, rig.limits.upper))
    others = [each for each in session.joints if each != name and each not in plan.hold]
    lines = [
        f"{rig.spec.name} moves {name} ({spec.plugin.name} node {spec.wiring[name].address}) {how}",
        f"  at {_show(plan.speed, unit)}/s with up to {largest:.3g} {'N' if unit == 'm' else 'N·m'}, within {limits}",
    ]
    if plan.hold:
        lines.append(f"  held at their positions: {', '.join(plan.hold)}")
    if others:
        lines.append(f"  motors off: {', '.join(others)}; support those that gravity moves, or hold them with --hold")
    return [*lines, "  all motors are off at the end"]


def _line(name: str, unit: str, reading: JogReading) -> str:
    parts = [f"{name}  {_show(reading.position, unit)}", f"{_show(reading.velocity, unit)}/s"]
    if math.isfinite(reading.effort):
        parts.append(f"{reading.effort:.3g} {'N' if unit == 'm' else 'N·m'}")
    if math.isfinite(reading.temperature):
        parts.append(f"{reading.temperature:.0f} °C")
    return "  ".join([*parts, "guard: at a limit" if reading.at_limit else "guard: ok"])


def _show(value: float, unit: str) -> str:
    return f"{value * 1e3:.4g} mm" if unit == "m" else f"{math.degrees(value):.4g} deg"
