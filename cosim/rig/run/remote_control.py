"""A run that other programs control: it carries out what comes from its control socket, between ticks."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np

from cosim.core.errors import CosimError, InputError, RunError
from cosim.execution.remote.arbiter import RemoteCommand
from cosim.execution.remote.control_link import ControlLink, LostControl
from cosim.execution.remote.control_process import ControlSetup
from cosim.execution.scheduler import SchedulerState
from cosim.rig.parameter_table import table_of
from cosim.rig.parameters import read_values
from cosim.rig.run.changes import ENDED, WAITING, OrderedStop, places_of
from cosim.rig.run.consent import Agreement
from cosim.rig.run.provenance import attachments_of
from cosim.rig.run.recorded_run import Change
from cosim.rig.run.stream import schema_of

if TYPE_CHECKING:
    from cosim.execution.motion_plan import MotionPlan
    from cosim.rig.run.run_recorder import RunRecorder

ARMED_TIME = 30.0  # s from `arm` within which `start` must come
UPDATE_PERIOD = 0.1  # s
START_POLL = 0.05  # s
LOOK_PERIOD = 1.0  # s between looks at joints with real motors before the start


class RemoteControl:
    """Carries out commands. Without `attend`, nothing happens."""

    def __init__(self, recorder: RunRecorder, link: ControlLink, rest_when_lost: bool) -> None:
        """rest_when_lost: whether a controlled stop follows when control is lost, else it goes on."""
        self.recorder, self.rig, self.scheduler, self.link = recorder, recorder.rig, recorder.scheduler, link
        self.rest_when_lost = rest_when_lost
        self.started = False
        self._armed_until = 0.0
        self.allow_turns = recorder.agreement.allow_turns  # of the command line
        self._next_look = 0.0  # at the joints with real motors
        self._ended = False  # nobody can control the run any more, and it was reported
        self._told, self._state = 0.0, ""
        self._commands: Mapping[str, Callable[[RemoteCommand], dict[str, Any]]] = {
            "set": self._set,
            "arm": self._arm,
            "start": self._start,
            "pause": self._pause,
            "resume": self._resume,
            "step": self._step,
            "stop": self._stop,
            "estop": self._emergency_stop,
            "marker": self._marker,
        }

    def wait_for_start(self, wait: bool) -> None:
        """Return when a client starts the run; immediately unless it waits for that. Raises OrderedStop."""
        self.started = not wait
        while not self.started:
            self._look()
            self.attend(START_POLL)

    def _look(self) -> None:
        """Report where the joints with real motors stand and how far they would go, motors off."""
        if self.rig.hardware and time.monotonic() >= self._next_look:
            try:
                shown = self._motion_of(self._plan())
            except CosimError as error:  # a joint that could not start, or a drive that does not answer: `arm` says it
                shown = {"motion": [error.what], "confirm_turns": []}
            self.link.update(shown)
            self._next_look = time.monotonic() + LOOK_PERIOD

    def _plan(self) -> MotionPlan:
        return self.scheduler.plan(self.recorder.store.kept.expected - 1)

    @staticmethod
    def _motion_of(plan: MotionPlan) -> dict[str, Any]:
        """What the page and other clients show of a plan."""
        return {"motion": list(plan.lines()), "confirm_turns": [joint.joint for joint in plan.confirm_turns]}

    @property
    def state(self) -> str:
        if not self.started:
            return "armed" if time.monotonic() < self._armed_until else WAITING
        state = self.scheduler.state
        return ENDED if state in (SchedulerState.STOPPED, SchedulerState.FAULT) else str(state)

    @property
    def tick(self) -> int:
        """The next one, as far as the rows were read."""
        return self.recorder.done if self.scheduler.state is SchedulerState.RUNNING else self.scheduler.engine.number

    def attend(self, timeout: float = 0.0) -> None:
        """Carry out what has come, or comes within `timeout` [s]. Raises OrderedStop."""
        if timeout and not self.link.failure:
            self.link.wait(timeout)
        elif timeout:
            time.sleep(timeout)
        for item in self.link.take():
            with self.scheduler.signals.postponed():  # a command is carried out and recorded, or neither
                self._carry_out(item) if isinstance(item, RemoteCommand) else self._lost(item)
        if self.link.failure:
            self._end()
        self.tell()

    def _end(self) -> None:
        """Nobody can control the run any more. Raises OrderedStop for a run that could only go on by a command."""
        if not self._ended:
            self._ended = True
            self.recorder.note(self.tick, f"{self.link.failure}; no further commands are possible", "warning")
        if not self.started:
            raise OrderedStop(fault=f"{self.link.failure}: nobody can start the run")
        if self.scheduler.state is SchedulerState.PAUSED:
            raise OrderedStop(fault=f"{self.link.failure}: nobody can resume the run, which was paused")

    def tell(self) -> None:
        """Tell clients and subscribers the state of the run, where it has changed or is old."""
        now, state = time.monotonic(), self.state
        if state != self._state or now - self._told >= UPDATE_PERIOD:
            step = self.rig.run_model.step
            self.link.update({"state": state, "tick": self.tick, "t": self.tick * step})
            if state != self._state:
                self.recorder.outputs.describe(state=state)
            self._told, self._state = now, state

    def _carry_out(self, command: RemoteCommand) -> None:
        try:
            reply = {"ok": True, **self._commands[command.name](command)}
            self._told = 0.0
            self.tell()  # who asks for the state after the reply gets the new one
        except CosimError as error:
            reply = {"ok": False, "error": f"{command.name}: {error}", "input": isinstance(error, InputError)}
        except OrderedStop:
            self.link.reply(command.token, {"ok": True, "tick": self.tick})
            raise
        self.link.reply(command.token, reply)

    def _lost(self, lost: LostControl) -> None:
        event = f"control by '{lost.name}' was lost: {lost.why}"
        self.recorder.note(self.tick, event, "warning")
        self._armed_until = 0.0
        if self.rest_when_lost and self.started:
            raise OrderedStop(fault=event)

    # --- commands ---

    def _set(self, command: RemoteCommand) -> dict[str, Any]:
        present = self.scheduler.engine.view("parameters")
        new = read_values(self.rig, command.fields["values"], present)
        places = [place for where, _ in new.values() for place in places_of(self.rig, where)]
        before = present.copy()
        tick = self.scheduler.change(np.array(places), np.concatenate([numbers for _, numbers in new.values()]))
        for name, (where, numbers) in new.items():
            self.recorder.change(Change(tick, name, tuple(numbers)))
            was, now = (_show(part) for part in (before[where].tolist(), numbers))
            self.recorder.note(tick, f"{name} = {now} (was {was}), set by '{command.client}'")
        values = table_of(self.rig).values(self.scheduler.engine.view("parameters"))
        self.link.update({"values": {name: values[name] for name in new}})
        self.recorder.outputs.describe({name: values[name] for name in new})
        return {"tick": tick}

    def _arm(self, command: RemoteCommand) -> dict[str, Any]:
        self._check_waits()
        self._armed_until, shown = 0.0, {}
        if self.rig.hardware:
            plan, allow_turns = self._plan(), self.allow_turns or bool(command.fields.get("allow_turns"))
            if not allow_turns:
                plan.check_turns("arm it with allow_turns")
            self.recorder.agreement, shown = Agreement(plan, allow_turns), self._motion_of(plan)
        self._armed_until = time.monotonic() + ARMED_TIME
        return {"seconds": ARMED_TIME, **shown}

    def _start(self, command: RemoteCommand) -> dict[str, Any]:
        self._check_waits()
        if self.rig.hardware and self.state != "armed":
            raise RunError("this rig has real motors; arm it first")
        agreed = self.recorder.agreement.plan
        if agreed is not None and (moved := agreed.moved(self._plan())):
            self._armed_until = 0.0
            raise RunError(f"{moved}; arm it again")
        self.started = True
        return {"tick": self.tick}

    def _check_waits(self) -> None:
        if self.started:
            raise RunError("the run has started; start another one")

    def _pause(self, command: RemoteCommand) -> dict[str, Any]:
        self._check_started()
        self.scheduler.pause()
        self.recorder.note(self.tick, f"paused by '{command.client}'")
        return {"tick": self.tick}

    def _resume(self, command: RemoteCommand) -> dict[str, Any]:
        self._check_started()
        self.scheduler.resume()
        return {"tick": self.tick}

    def _step(self, command: RemoteCommand) -> dict[str, Any]:
        self._check_started()
        self.scheduler.step(command.fields.get("ticks", 1))
        return {"tick": self.tick}

    def _check_started(self) -> None:
        if not self.started:
            raise RunError("the run has not started; start it first")

    def _stop(self, command: RemoteCommand) -> dict[str, Any]:
        raise OrderedStop(f"stopped by '{command.client}'")

    def _emergency_stop(self, command: RemoteCommand) -> dict[str, Any]:
        self.scheduler.stop()  # before anything else
        raise OrderedStop(fault=f"emergency stop by '{command.client}'")

    def _marker(self, command: RemoteCommand) -> dict[str, Any]:
        tick = self.tick
        self.recorder.note(tick, f"marker by '{command.client}': {command.fields['text']}")
        return {"tick": tick}


def control_of(recorder: RunRecorder, stack: ExitStack) -> RemoteControl:
    """The control of a run with `telemetry.control`, closed by `stack`. Raises InputError when it cannot be bound."""
    rig, telemetry = recorder.rig, recorder.rig.run_spec.telemetry
    assert telemetry.control is not None
    status = schema_of(rig, recorder.metadata, WAITING) | {"signals": dict(recorder.metadata.units)}
    status |= {"stream": recorder.outputs.endpoint, "tick": 0, "t": 0.0}
    files = {name: content.decode(errors="replace") for name, content in attachments_of(rig)}
    unset, timeout = table_of(rig).unset(), telemetry.control_timeout
    setup = ControlSetup(telemetry.control, dict(status), unset, files, timeout, telemetry.key)
    link = stack.enter_context(ControlLink(setup))
    link.update({"control": link.endpoint})
    recorder.outputs.describe(control=link.endpoint, state=WAITING)
    return RemoteControl(recorder, link, telemetry.control_lost == "rest")


def _show(numbers: list[float]) -> str:
    same = len(set(numbers)) == 1
    return f"{numbers[0]:g}" if same else "[" + ", ".join(f"{number:g}" for number in numbers) + "]"
