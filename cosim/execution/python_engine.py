"""The Python engine: ticks in Python around drivers and controllers that cannot be compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack

import numpy as np

from cosim.core.driver_contract import Driver
from cosim.core.errors import RunError
from cosim.execution.engine import Snapshot, call_of_controller
from cosim.execution.hardware.driver_group import DriverGroup
from cosim.execution.hardware.estop import Estop
from cosim.execution.hardware_engine import HardwareEngine
from cosim.execution.python_pacer import ClockPacer, NoPacer, Pacer, policies
from cosim.simulation.loop.tick_ring import LoopStatus, PacingMemory, SharedWord, TickRing
from cosim.simulation.tick.tick_model import TickModel, TickTask
from cosim.simulation.tick.virtual_plant import VirtualPlant


class PythonEngine(HardwareEngine):
    """Runs ticks in Python around drivers; calls that can be compiled are, except in an interpreted run."""

    kind = "Python"
    _pacer: Pacer = NoPacer()

    def __init__(
        self,
        tick_model: TickModel,
        virtual_plant: VirtualPlant,
        drivers: Sequence[tuple[Driver, np.ndarray] | DriverGroup],
        hardware: bool = False,
        estop: Callable[[ExitStack], Estop] | None = None,
        watchdog: float | None = None,
    ) -> None:
        super().__init__(tick_model, virtual_plant, drivers, hardware, estop, watchdog)
        self._runs = [self._task(task) for task in self.tasks]
        self._names = [f"controller '{task.name}'" if task.loop else f"task '{task.name}'" for task in self.tasks]
        self._fault = virtual_plant.view("fault")

    def open(self) -> None:
        policies(not self.tick_model.compiled)  # compiled before motors are on
        super().open()

    def restore(self, snapshot: Snapshot) -> None:
        coupling = self.tick_model.coupling
        if snapshot.number == 0 and not self.hardware:
            self.virtual_plant.restart()
        elif coupling is not None and coupling.in_python:  # the memory does not hold the states of these parts
            names = ", ".join(f"'{name}'" for name in coupling.in_python)
            raise RunError(f"{names} in Python cannot return to an earlier state with the rig; run it anew instead")
        super().restore(snapshot)
        self.virtual_plant.discard_sample()

    # --- the tasks ---

    def _task(self, task: TickTask) -> Callable[[int], object]:
        """A task of the tick, called with its deadline [ns]."""
        if task.loop is not None:
            return self._controller(task)
        # simulated drivers measure and set the request themselves; for real ones the request is only recorded
        by_drivers = ("measure",) if self.tick_model.plant.real else ("measure", "request")
        calls = [self.virtual_plant.bind(call) for call in task.calls if call.name not in by_drivers]
        if task.name == "read":
            return lambda until: (self._read(until), *(call() for call in calls))
        if task.name == "write":
            return lambda until: (*(call() for call in calls), self.hardware_manager.write(until, self._pacer.now))
        if task.name == "step":
            return lambda _: self.virtual_plant.advance()
        return lambda _: [call() for call in calls]

    def _controller(self, task: TickTask) -> Callable[[int], object]:
        name, (call,) = task.name, task.calls
        run = call_of_controller(name, self.virtual_plant.bind(call, interpret=name in self.tick_model.untraceable))
        return lambda _: run()

    def _read(self, until: int) -> None:
        self._check_estop()
        self.hardware_manager.read(until, self._pacer.now, self._pacer.due())

    # --- the loop ---

    def _unpaced(self) -> Pacer:
        """The pacer of ticks without a clock."""
        return NoPacer()

    def _run_ticks(self, ring: TickRing, pace: PacingMemory | None) -> None:
        """The loop that `timing.native_loop` writes as compiled code."""
        status, pacer = LoopStatus.FAULT, self._unpaced()
        if not self.force_stopped:  # else no tick runs until the rig is armed again
            self.failure = ""
        if self._watchdog is not None:
            self._watchdog.feed()
        try:
            if pace is not None:
                pacer = ClockPacer(pace, self.program, ring.words, not self.tick_model.compiled)
            status = self.virtual_plant.supervise(self._loop, ring, pacer)
        except BaseException as error:  # the ticks before it stay in the ring
            self._fail(int(ring.words[SharedWord.NUMBER]), error)
            if not isinstance(error, Exception):
                raise
        finally:
            if self._watchdog is not None:
                self._watchdog.suspend()
            if status is LoopStatus.FAULT:
                self.stop()
            ring.words[SharedWord.STATUS] = status

    @np.errstate(all="ignore")  # the guard reports a diverging run, not numpy's warnings
    def _loop(self, ring: TickRing, pacer: Pacer) -> LoopStatus:
        words, memory, program = ring.words, self.memory, self.program
        self._pacer = pacer
        first, count, places = (int(words[word]) for word in (SharedWord.NUMBER, SharedWord.COUNT, SharedWord.PLACES))
        step_ns, early = self.tick_model.step_ns, program.early
        for k in range(count):
            if (status := pacer.wait(words)) is not LoopStatus.RUNNING:
                return status
            number, taken = first + k, int(words[SharedWord.TAKEN])
            if ring.changed_at is None:
                self.change(ring.changes[:, 0], ring.changes[:, 1].view(float))
                words[SharedWord.CHANGED_AT], words[SharedWord.CHANGES_MADE] = number, words[SharedWord.CHANGES]
            room = taken - int(words[SharedWord.READ]) < places
            place = taken % places if room else places
            self.number = number
            self.virtual_plant.begin(number * step_ns)
            ring.rows[place, :early] = memory[:early]
            faulty = self._tick(number, pacer)
            ring.rows[place, early:] = memory[early : program.row]
            pacer.stamp(ring, place)
            words[SharedWord.LOST] += not room
            if self._watchdog is not None:
                self._watchdog.feed()
            words[SharedWord.NUMBER] = number + 1
            words[SharedWord.TAKEN] = taken + room
            if faulty:
                return LoopStatus.FAULT
            if (status := pacer.schedule_next(k, number)) is not LoopStatus.RUNNING:
                return status
        return LoopStatus.FINISHED

    def _tick(self, number: int, pacer: Pacer) -> bool:
        """Run the tasks that are due; whether a fault ended the tick after the guard."""
        t_ns, faulty = number * self.tick_model.step_ns, False
        for i, (task, run) in enumerate(zip(self.program.tasks, self._runs, strict=True)):
            if not faulty and number % task.ticks == task.phase:
                if self.force_stopped:
                    raise RunError("the engine was stopped by force")
                self.running = self._names[i]
                run(pacer.deadline(i, t_ns))
                pacer.ended(i)
            faulty |= i == self.program.judge and bool(self._fault)
        return faulty
