"""Drivers between a compiled loop and its memory: feedback is written to the memory of a tick, commands are read from
it, and feedback is checked, as in `HardwareManager`, in machine code.

What is not plausible ends the tick: the manager finds it again and reports it.
"""

from __future__ import annotations

import numpy as np

from cosim.control import plausibility
from cosim.core.driver_contract import CycleOutcome
from cosim.core.machine_code import array_at, call_at, doubles_at, entry, i64, machine_code, now, words_at
from cosim.core.types import COMMAND
from cosim.execution.hardware.group_memory import MEASURED
from cosim.execution.hardware.manager import LATE_STEPS

# what the memory holds of a joint: its command, then what is measured, in the order of states; NOWHERE: nothing
PLACES = (*COMMAND, *MEASURED)
NOWHERE = -1

GROUP = np.dtype(
    [
        *[(name, "i8") for name in ("read", "write", "stop", "context", "joints")],
        *[(name, "i8") for name in ("commands", "command_count", "states", "state_count", "t_ns")],  # addresses, sizes
        ("places", "i8"),  # whole numbers (joints, PLACES)
        *[(name, "i8") for name in ("history", "last_position", "max_velocity")],  # the latter two doubles (joints,)
        # of load motors: places of the velocities of their joints, of the ages of these, and their limits
        *[(name, "i8") for name in ("shafts", "shaft_delays", "shaft_velocity")],
        *[(name, "i8") for name in ("read_ns", "valid_ns")],
        *[(name, "f8") for name in ("step", "stale")],  # s
        *[(name, "i8") for name in ("outcome", "expired", "scratch")],
    ]
)

# see `manager.DriverSample`; known: whether its position is
HISTORY = np.dtype([("known", "i8"), ("t_ns", "i8"), ("interval", "f8"), ("late_ns", "i8"), ("late_interval", "f8")])

groups_at, history_at = array_at(GROUP), array_at(HISTORY)
_NOMINAL, _EXPIRED, _SUSPECT = [int(one) for one in CycleOutcome][:3]
_WIDTH, _COMMANDS, _MEASURED = len(PLACES), len(COMMAND), len(MEASURED)
_DELAY, _AGE = MEASURED.index("delay"), MEASURED.index("age")
_jumped, _is_stale = machine_code(plausibility.jumped), machine_code(plausibility.is_stale)
_shaft_slips, _longest_span = machine_code(plausibility.shaft_slips), machine_code(plausibility.longest_span)
_sampled_together, _outstanding = machine_code(plausibility.sampled_together), machine_code(plausibility.outstanding)


@machine_code
def _is_plausible(group: np.record, memory: int, t_ns: int, age: float, delay: float) -> bool:
    """Whether feedback that has come is plausible; its history is continued if it is. age, delay [s]: now, and at the
    time of the tick."""
    history = history_at(group.history, 1)[0]
    last = doubles_at(group.last_position, group.joints)
    limit = doubles_at(group.max_velocity, group.joints)
    shafts, shaft_velocity = words_at(group.shafts, group.joints), doubles_at(group.shaft_velocity, group.joints)
    shaft_delays = words_at(group.shaft_delays, group.joints)
    interval, new = (t_ns - history.t_ns) * 1e-9, t_ns != history.t_ns
    elapsed = _longest_span(interval, history.interval, group.step)
    compared = new and history.known != 0 and history.t_ns != 0
    if _is_stale(age, group.stale):
        return False
    for j in range(group.joints):
        state = doubles_at(group.states + j * group.state_count * 8, 3)
        if compared and _jumped(last[j], state[0], elapsed, limit[j]):
            return False
        if shafts[j] != NOWHERE:
            turning = doubles_at(memory + shafts[j] * 8, 1)[0]
            since = doubles_at(memory + shaft_delays[j] * 8, 1)[0]
            if _sampled_together(delay, since, group.step) and _shaft_slips(state[1], turning, shaft_velocity[j]):
                return False
    if new:
        for j in range(group.joints):
            last[j] = doubles_at(group.states + j * group.state_count * 8, 1)[0]
        history.known = 1
    if compared:
        history.interval = _outstanding(interval, history.interval)
        if interval > LATE_STEPS * group.step:
            history.late_ns, history.late_interval = t_ns, interval
    return True


@entry(i64, i64, i64, i64, i64)
def read(address: int, memory: int, due: int, until: int) -> int:
    """Read feedback into the memory at this address; due, until: of the tick [ns]; whether the tick ends with it."""
    group = groups_at(address, 1)[0]
    # also in a late tick drives have time to reply
    group.outcome = call_at(group.read, group.context, max(until, now(group.scratch) + group.read_ns), 0, 0)
    if group.outcome != _NOMINAL:
        return 1
    t_ns, history = words_at(group.t_ns, 1)[0], history_at(group.history, 1)[0]
    age, delay, interval = (now(group.scratch) - t_ns) * 1e-9, (due - t_ns) * 1e-9, (t_ns - history.t_ns) * 1e-9
    if not _is_plausible(group, memory, t_ns, age, delay):
        group.outcome = _SUSPECT
        return 1
    history.t_ns = t_ns
    places = words_at(group.places, group.joints * _WIDTH)
    for j in range(group.joints):
        state = doubles_at(group.states + j * group.state_count * 8, 4)
        for k in range(_MEASURED):
            place = places[j * _WIDTH + _COMMANDS + k]
            if place != NOWHERE:
                value = state[k] if k < 4 else age if k == _AGE else delay if k == _DELAY else interval
                doubles_at(memory + place * 8, 1)[0] = value
    return 0


@entry(i64, i64, i64, i64, i64)
def write(address: int, memory: int, due: int, until: int) -> int:
    """Send the commands in the memory; see `read`."""
    group = groups_at(address, 1)[0]
    places = words_at(group.places, group.joints * _WIDTH)
    for j in range(group.joints):
        command = doubles_at(group.commands + j * group.command_count * 8, _COMMANDS)
        for k in range(_COMMANDS):
            place = places[j * _WIDTH + k]
            command[k] = 0.0 if place == NOWHERE else doubles_at(memory + place * 8, 1)[0]
    group.outcome = call_at(group.write, group.context, until, until + group.valid_ns, 0)
    if group.outcome == _EXPIRED:  # the program was suspended; the feedback behind this command is out of date
        group.expired += 1
        return 0
    return 0 if group.outcome == _NOMINAL else 1


@entry(i64, i64, i64, i64, i64)
def stop(address: int, memory: int, due: int, until: int) -> int:
    """Switch the motors off."""
    group = groups_at(address, 1)[0]
    return call_at(group.stop, group.context, 0, 0, 0)
