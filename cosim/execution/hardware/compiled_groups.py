"""Drivers whose cycles are in machine code, in a compiled loop: the table of their functions, and their memory.

Between the loop and its memory, feedback is written to the memory of a tick, commands are read from it, and feedback is
checked, as in `HardwareManager`, in machine code. What is not plausible ends the tick: the manager finds it again and
reports it. Other drivers are called by the loop, see `BusEngine`.
"""

from __future__ import annotations

import time

import numpy as np

from cosim.control import plausibility
from cosim.core.driver_contract import CompiledCycle, CycleOutcome
from cosim.core.errors import RunError
from cosim.core.machine_code import array_at, call_at, doubles_at, entry, i64, machine_code, now, words_at
from cosim.core.types import COMMAND
from cosim.execution.hardware.driver_group import MEASURED, paths_of
from cosim.execution.hardware.manager import FIRST_FEEDBACK_NS, LATE_STEPS, DriverSample, HardwareManager, no_position

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
        ("due", "i8"),  # of the last tick [ns]
    ]
)
# see `manager.DriverSample`; known: whether its position is
HISTORY = np.dtype([("known", "i8"), ("t_ns", "i8"), ("interval", "f8"), ("late_ns", "i8"), ("late_interval", "f8")])


class CompiledGroups:
    """The groups of real drivers of a manager in machine code, while a compiled loop runs them.

    numbers (k,): of the groups; table (3, k, 2) integers: their rows for `NativeLoop.run`: reads, writes and stops.
    """

    def __init__(self, manager: HardwareManager) -> None:
        """After the motors were enabled."""
        self._manager = manager
        self.numbers = [k for k, group in enumerate(manager.groups) if group.real and not group.called]
        self._cycles: list[CompiledCycle] = []
        self._kept: list[np.ndarray] = []
        self._samples: list[tuple[np.ndarray, np.ndarray]] = []  # (HISTORY, last position) of each
        self._records = np.zeros(len(self.numbers), GROUP)
        for place, k in enumerate(self.numbers):
            self._fill(place, k)
        addresses = [self._records[place : place + 1].ctypes.data for place in range(len(self.numbers))]
        functions = read.address, write.address, stop.address
        rows = [[(function, address) for address in addresses] for function in functions]
        self.table = np.array(rows, np.int64).reshape(3, -1, 2)

    def _fill(self, place: int, k: int) -> None:
        manager, group = self._manager, self._manager.groups[k]
        hardware = group.hardware
        assert hardware is not None
        cycle, index, n = hardware.compile(), group.joint_index, len(group.joint_index)
        self._cycles.append(cycle)
        paths = paths_of(group)
        starts = [manager.place(*paths[name]) if name in paths else None for name in PLACES]
        places = np.column_stack([np.full(n, NOWHERE) if start is None else start + index for start in starts])
        shafts = [manager.loads[load].joint for load in index] if group.load else []
        turning, turned = (
            np.array([manager.place(*path) + joint for joint in shafts] or [NOWHERE] * n, np.int64)
            for path in (("measured", "velocity"), ("sample_delay",))
        )
        unlimited, sample = np.full(n, np.inf), manager.samples[k]
        history = np.array([(sample.position is not None, *sample[:4])], HISTORY)
        last_position = np.array(sample.position or [0.0] * n)
        self._samples.append((history, last_position))
        arrays = {
            "commands": cycle.commands,
            "states": cycle.states,
            "t_ns": cycle.t_ns,
            "history": history,
            "last_position": last_position,
            "places": np.ascontiguousarray(places, np.int64),
            "max_velocity": unlimited if group.load else manager.max_velocity[index],
            "shafts": turning,
            "shaft_delays": turned,
            "shaft_velocity": manager.max_velocity[shafts] if group.load else unlimited,
            "scratch": np.zeros(2, np.int64),
        }
        words = {
            **{"read": cycle.read, "write": cycle.write, "stop": cycle.stop, "context": cycle.context, "joints": n},
            **{"command_count": cycle.commands.shape[1], "state_count": cycle.states.shape[1]},
            **{"read_ns": manager.read_ns, "valid_ns": manager.valid_ns},
            **{"step": manager.step, "stale": manager.stale_ns * 1e-9 if group.load else np.inf},
        }
        for name, array in arrays.items():
            self._kept.append(array)
            self._records[name][place] = array.ctypes.data
        for name, word in words.items():
            self._records[name][place] = word

    def take_over(self) -> None:
        """Run the drivers in the loop from now on, beginning with new feedback. Raises RunError."""
        for k, cycle in zip(self.numbers, self._cycles, strict=True):
            group = self._manager.groups[k]
            with group.named():
                if not cycle.take_over(time.monotonic_ns() + FIRST_FEEDBACK_NS):
                    raise RunError(no_position(group))

    def hand_back(self) -> None:
        """Let the manager run them again."""
        for place, (k, cycle) in enumerate(zip(self.numbers, self._cycles, strict=True)):
            cycle.hand_back()
            self._manager.unsent[k] += int(self._records["expired"][place])
            self._records["expired"][place] = 0
            history, last_position = self._samples[place]
            known, t_ns, interval, late_ns, late_interval = history.item()
            position = last_position.tolist() if known else None
            self._manager.samples[k] = DriverSample(t_ns, interval, late_ns, late_interval, position)

    def check(self) -> None:
        """Raises the error of a group whose read or write ended the loop, if it is not the manager that has to say
        why."""
        for k, cycle, outcome in zip(self.numbers, self._cycles, self._records["outcome"], strict=True):
            with self._manager.groups[k].named():
                cycle.check(CycleOutcome(int(outcome)))

    @property
    def suspects(self) -> list[tuple[int, int]]:
        """(number, when its tick was due [ns]) of each group whose feedback the manager has to judge."""
        rows = zip(self.numbers, self._records, strict=True)
        return [(k, int(record["due"])) for k, record in rows if record["outcome"] == CycleOutcome.SUSPECT]


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
    group.due = due
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
