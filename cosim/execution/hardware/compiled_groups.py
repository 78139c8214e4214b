"""All drivers of a rig in a compiled loop: the table of their functions, and their memory."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cosim.core.driver_contract import CompiledCycle, CycleOutcome
from cosim.core.errors import RunError
from cosim.execution.hardware import group_cycle
from cosim.execution.hardware.group_cycle import GROUP, HISTORY, NOWHERE, PLACES
from cosim.execution.hardware.group_memory import paths_of
from cosim.execution.hardware.manager import FIRST_FEEDBACK_NS, DriverSample, HardwareManager
from cosim.simulation.loop.tick_ring import NativeCall, TickProgram


def with_buses(program: TickProgram, names: Sequence[str], groups: int) -> TickProgram:
    """The program with calls that read so many groups after the first call of the task `read`, that write them at the
    end of the task `write`, and that stop them when it ends; names: of its tasks."""
    reads, writes, stops = (tuple(NativeCall(row * groups + k) for k in range(groups)) for row in range(3))
    tasks = []
    for task, name in zip(program.tasks, names, strict=True):
        calls = task.calls
        if name == "read":
            calls = (*calls[:1], *reads, *calls[1:])
        elif name == "write":
            calls = (*calls, *writes)
        tasks.append(replace(task, calls=calls))
    return replace(program, tasks=tuple(tasks), at_end=stops)


class CompiledGroups:
    """The groups of real drivers of a manager while a compiled loop runs them.

    table (3 k, 2) integers: the functions for `NativeLoop.run`: reads, then writes, then stops.
    """

    def __init__(self, manager: HardwareManager) -> None:
        """After the motors were enabled."""
        self._manager = manager
        self._numbers = [k for k, group in enumerate(manager.groups) if group.real]
        self._cycles: list[CompiledCycle] = []
        self._kept: list[np.ndarray] = []
        self._samples: list[tuple[np.ndarray, np.ndarray]] = []  # (HISTORY, last position) of each
        self._records = np.zeros(len(self._numbers), GROUP)
        for place, k in enumerate(self._numbers):
            self._fill(place, k)
        addresses = [self._records[place : place + 1].ctypes.data for place in range(len(self._numbers))]
        functions = group_cycle.read.address, group_cycle.write.address, group_cycle.stop.address
        self.table = np.array([(function, address) for function in functions for address in addresses], np.int64)

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
        for k, cycle in zip(self._numbers, self._cycles, strict=True):
            group = self._manager.groups[k]
            with group.named():
                if not cycle.take_over(time.monotonic_ns() + FIRST_FEEDBACK_NS):
                    raise RunError(f"the drives of {group.joints} report no position; check their power and their bus")

    def hand_back(self) -> None:
        """Let the manager run them again."""
        for place, (k, cycle) in enumerate(zip(self._numbers, self._cycles, strict=True)):
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
        for k, cycle, outcome in zip(self._numbers, self._cycles, self._records["outcome"], strict=True):
            with self._manager.groups[k].named():
                cycle.check(CycleOutcome(int(outcome)))

    @property
    def suspect(self) -> bool:
        """Whether the manager has to judge what ended the loop."""
        return CycleOutcome.SUSPECT in self._records["outcome"]
