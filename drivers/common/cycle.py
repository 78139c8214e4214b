"""The cycle of a drive, declared once: pure functions of one joint and the frames that carry their numbers. The driver
in Python calls them as they stand (`interpreted_cycle`), the compiled one as machine code (`exchange`).

A family writes them in plain Python, in arithmetic on numbers of arrays or lists that are given:

    state(settings, command, received, state)     what the drive reports: the numbers received -> its state
    command(settings, command, received, sent)    what it is sent in a mode: a command of the joint -> the numbers sent

settings: the joint's own, for both functions; `state` may keep there what it needs from one call to the next. It is
called for each measurement, and maybe again for the same numbers and time. The last of `sent`, behind the numbers that
frames carry, is the effort that is requested of the joint. They raise for no number, NaN included, and call functions
of their kind by names of their module.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from cosim.plugins.drivers.common.frame_layout import ReceivedFrame, SentFrame
from cosim.plugins.drivers.transport.connection import LinkFrame

Numbers: TypeAlias = Any  # an array or a list of floats
JointFunction: TypeAlias = Callable[[Numbers, Numbers, Numbers, Numbers], None]

# of a command: what it is in the joint's units, what was measured last, three of the joint's wiring and of the limit of
# its feedforward field; the last one is the time of its measurement [ns]
POSITION, VELOCITY, EFFORT, KP, KD, MEASURED_POSITION, MEASURED_VELOCITY, SCALE, ZERO, LIMIT, MEASURED_NS = range(11)
COMMAND_SIZE = 11
# of a state, in the drive's units; FAULTY: not 0 where the drive is not as it should be while it is on
STATE_POSITION, STATE_VELOCITY, STATE_EFFORT, STATE_TEMPERATURE, FAULTY = range(5)
STATE_SIZE = 5

LARGEST_COMMAND = 1e30  # commands are smaller, so that 32-bit floats can hold them in the drives' units
_WHOLE = 6755399441055744.0  # 3 · 2⁵¹: beside it, doubles are whole numbers


def requested_effort(c: Numbers) -> float:
    """The effort that a command requests at the measured motion: kp (q_cmd − q) + kd (v_cmd − v) + effort."""
    effort = c[KP] * (c[POSITION] - c[MEASURED_POSITION])
    return effort + c[KD] * (c[VELOCITY] - c[MEASURED_VELOCITY]) + c[EFFORT]


def clipped(value: float, low: float, high: float) -> float:
    """NaN for NaN."""
    return low if value < low else high if value > high else value


def effort_of_motor(c: Numbers, effort: float) -> float:
    """An effort of the joint within the limit of its feedforward field, at the motor."""
    return clipped(effort, -c[LIMIT], c[LIMIT]) / c[SCALE]


def nearest(value: float, low: float, high: float) -> float:
    """The nearest whole number within whole ends of less than 2⁵¹, of two the even one; NaN for NaN."""
    return clipped(value, low, high) + _WHOLE - _WHOLE


def effort_target(s: Numbers, c: Numbers, r: Numbers, sent: Numbers) -> None:
    effort = requested_effort(c)
    sent[0], sent[1] = effort_of_motor(c, effort), effort


def velocity_target(s: Numbers, c: Numbers, r: Numbers, sent: Numbers) -> None:
    sent[0], sent[1] = c[SCALE] * c[VELOCITY], c[EFFORT]


def position_target(s: Numbers, c: Numbers, r: Numbers, sent: Numbers) -> None:
    sent[0], sent[1] = c[SCALE] * (c[POSITION] - c[ZERO]), c[EFFORT]


# mode -> the function of a command whose frame has one number: the target in the drive's SI units
TARGETS: dict[str, JointFunction] = {
    "effort": effort_target,
    "velocity": velocity_target,
    "position": position_target,
}


class Reception(NamedTuple):
    """What the drives report, in every mode.

    whole: where a measurement comes in parts, (settings, command, numbers of the parts, result): whether they belong
    together when the frame that is the MEASUREMENT has come, result[0] above 0; 0 if they are damaged, below 0 if they
    are something else. Only then they are the numbers received.
    """

    state: JointFunction
    frames: Sequence[ReceivedFrame]
    numbers: Sequence[float]  # of a joint, before anything has come
    whole: JointFunction | None = None


class Transmission(NamedTuple):
    """What the drives are sent in a mode, in this order."""

    command: JointFunction
    frames: Sequence[SentFrame]


class CycleLayout(NamedTuple):
    """What makes a cycle in machine code, while the motors are on."""

    reception: Reception
    transmission: Transmission
    settings: Sequence[Sequence[float]]  # of each joint
    numbers: Sequence[Sequence[float]]  # of each joint, received before
    polls: Sequence[LinkFrame]  # request measurements; on a half-duplex link in every cycle
    stops: Sequence[LinkFrame]  # switch all motors off
    # where requests feed the drives' watchdogs: from and until how long after the last command none is sent
    quiet_ns: tuple[int, int] = (0, 0)
    repeated_ns: int = 0  # for how long after a command it may be repeated, see `SentFrame`; then the cycle ends
    longest_pause_ns: int = 0  # between two commands, after which the cycle ends; 0: any
