"""`cosim drives jog`: one joint is moved slowly under the guard, by a given way or by the keys of the terminal."""

from __future__ import annotations

import math
import os
import select
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import NamedTuple, Protocol

import numpy as np

from cosim.apps.commissioning.motion import HoldingLoop, expected
from cosim.apps.commissioning.session import CommissioningSession, LiveJoints, MotionBounds
from cosim.core.errors import InputError, RunError
from cosim.output.console import quantity_of, write_line
from cosim.rig.rig import Rig

SPEED = {"rad": math.radians(5.0), "m": 5e-3}  # per s, by default; at most FRACTION of the limit
FRACTION = 0.1
HELP = "keys: + and arrows up, right; - and arrows down, left; q: end; space or any other key: stop"
DEAD_MAN = 0.15  # s after the last press of a key, at which the reference stops
MARGIN, FACTOR = 0.05, 3.0  # of the velocity limit, and times the speed: where the guard stops
SETTLE = 0.5  # s at the end of a motion
READOUT = 0.1  # s between two readings
# what a terminal sends -> the key; arrows in both of their forms
SEQUENCES = {
    **{start + b"A": "+" for start in (b"\x1b[", b"\x1bO")},
    **{start + b"B": "-" for start in (b"\x1b[", b"\x1bO")},
    **{start + b"C": "+" for start in (b"\x1b[", b"\x1bO")},
    **{start + b"D": "-" for start in (b"\x1b[", b"\x1bO")},
}
SINGLE = {b"+": "+", b"=": "+", b"-": "-", b"_": "-", b" ": "stop", b"\x1b": "stop", b"q": "quit", b"Q": "quit"}


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


class JogPlan(NamedTuple):
    """SI. by: the way, None for keys; step: way of one press of a key, 0: as long as the key repeats; effort: fraction
    of the limit; hold: joints that are held meanwhile."""

    speed: float
    by: float | None = None
    step: float = 0.0
    effort: float = 0.5
    hold: tuple[str, ...] = ()


class JogReading(NamedTuple):
    """What the operator sees of the joint; effort and temperature are NaN where they are not measured."""

    t: float
    position: float
    velocity: float
    effort: float
    temperature: float
    at_limit: bool


def jog(
    session: CommissioningSession,
    name: str,
    plan: JogPlan,
    keys: Keys | None = None,
    show: Callable[[JogReading], object] = lambda reading: None,
) -> JogReading:
    """Move a joint; the last reading. Its motor and the motors of held joints are off afterwards.

    Raises RunError for whatever stopped the motion before its end.
    """
    names = (name, *plan.hold)
    expect = expected(session.rig, session.check())
    k = session.rig.joints.index(name)
    largest = float(session.rig.limits.velocity[k])
    efforts = [float(session.rig.limits.effort[session.rig.joints.index(each)]) for each in names]
    bounds = MotionBounds(velocity=FACTOR * plan.speed + MARGIN * largest, effort=plan.effort * max(efforts))
    mode = None if all(session.specs[each].mode == session.specs[name].mode for each in names) else "effort"
    with session.live(names, bounds, mode) as live:
        loop = HoldingLoop(live, mode or session.specs[name].mode, expect)
        moved = live.names.index(name)
        way = _given(live, plan) if keys is None else _by_keys(live, plan, keys)
        shown = -READOUT
        for rate in way:
            velocity = np.zeros(len(names))
            velocity[moved] = rate
            loop.follow(velocity)
            if live.t - shown >= READOUT:
                shown = live.t
                show(_reading(live, moved))
        return _reading(live, moved)


def _given(live: LiveJoints, plan: JogPlan):
    """The rates of a motion by a given way, a tick each, and the time to settle."""
    assert plan.by is not None
    rest, sign = abs(plan.by), 1.0 if plan.by > 0.0 else -1.0
    while rest > 0.0:
        live.read()
        step = min(plan.speed * live.dt, rest)
        rest -= step
        yield sign * step / live.dt
    until = live.t + SETTLE
    while live.t < until:
        live.read()
        yield 0.0


def _by_keys(live: LiveJoints, plan: JogPlan, keys: Keys):
    """The rates that the keys command, until `quit`. Raises RunError for `stop`, and when the terminal is gone."""
    sign, until, rest = 0.0, 0.0, 0.0
    while True:
        live.read()
        for key in keys.poll():
            if key == "stop":
                raise RunError("stopped by a key")
            if key == "quit":
                return
            way = 1.0 if key == "+" else -1.0
            rest = plan.step if way != sign or not rest else rest + plan.step
            sign, until = way, live.t + DEAD_MAN
        if plan.step:
            step = min(plan.speed * live.dt, rest)
            rest -= step
            yield sign * step / live.dt
        else:
            yield sign * plan.speed if live.t < until else 0.0


def _reading(live: LiveJoints, k: int) -> JogReading:
    position, velocity = float(live.position[k]), float(live.velocity[k])
    lower, upper = live.guard.bounds["lower"][k], live.guard.bounds["upper"][k]
    limited = bool(live.alarms[k]) or not lower + 1e-9 < position < upper - 1e-9
    return JogReading(live.t, position, velocity, float(live.effort[k]), float(live.temperature[k]), limited)


def hold_names(session: CommissioningSession, name: str, hold: Sequence[str]) -> tuple[str, ...]:
    """The joints that are held, each once, without the one that moves. Raises InputError."""
    for each in (name, *hold):
        session.require(each)
    return tuple(dict.fromkeys(each for each in hold if each != name))


class Keys(Protocol):
    """What the operator has pressed since the last look: `+`, `-`, `stop` or `quit`. Raises RunError without him."""

    def poll(self) -> list[str]: ...


def decode(data: bytes) -> Iterator[str]:
    """The keys in what a terminal sent; a key without a meaning stops, for it was meant to do something."""
    while data:
        head = data[:3]
        if head in SEQUENCES:
            yield SEQUENCES[head]
            data = data[3:]
        else:
            yield SINGLE.get(data[:1], "stop")
            data = data[1:]


class TerminalKeys:
    """The keys of a terminal that delivers each of them immediately and echoes none."""

    def __init__(self, file: int) -> None:
        self._file, self._poll = file, select.poll()
        self._poll.register(file, select.POLLIN)

    def poll(self) -> list[str]:
        if not self._poll.poll(0):
            return []
        try:
            typed = os.read(self._file, 1024)
        except OSError:
            typed = b""
        if not typed:
            raise RunError("the terminal is gone")
        return list(decode(typed))


@contextmanager
def terminal_keys(terminal: int | None = None) -> Iterator[TerminalKeys]:
    """The keys of standard input, or of this terminal. Raises InputError without a terminal."""
    import termios

    try:
        file = sys.stdin.fileno() if terminal is None else terminal
        saved = termios.tcgetattr(file)
    except (AttributeError, ValueError, OSError, termios.error):
        what = "there is no terminal whose keys could move the joint; give the motion with --by"
        raise InputError(what, "cosim drives jog") from None
    mode = termios.tcgetattr(file)
    mode[0] &= ~termios.IXON
    mode[3] &= ~(termios.ICANON | termios.ECHO)
    mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
    mode[6][termios.VSUSP] = mode[6][termios.VQUIT] = b"\0"
    termios.tcsetattr(file, termios.TCSANOW, mode)
    try:
        yield TerminalKeys(file)
    finally:
        with suppress(termios.error, OSError):  # the terminal may be gone
            termios.tcflush(file, termios.TCIFLUSH)
            termios.tcsetattr(file, termios.TCSANOW, saved)
