"""A run as the source of a page that controls it: its stream, its control socket, and its process where it is ours."""

from __future__ import annotations

import time
from collections.abc import Mapping

from cosim.apps.dashboard.actions import AGAIN, COMMANDS, PREPARE, TAKE_OVER, Situation, tunable
from cosim.apps.dashboard.gains import GainHistory
from cosim.apps.dashboard.launch import Outcome, RunProcess
from cosim.apps.dashboard.run_control import Note, RunControl
from cosim.apps.dashboard.source import About, News, Status, Value
from cosim.apps.dashboard.watch import Watch, value_of
from cosim.core.errors import CosimError

SETTLING_TIME = 1.0  # s after a move here, until which the values of the run do not replace the page's


class LiveRun:
    """A running rig as the source of a page, which can be controlled. gains: None until the run is known. `do` and the
    other commands may be called by any thread, `poll` by one."""

    def __init__(
        self, watch: Watch, control: RunControl, process: RunProcess | None = None, address: str | None = None
    ) -> None:
        """address: of the control socket, by default the one that the stream names."""
        self.watch, self.control, self.process, self._address = watch, control, process, address
        self.gains: GainHistory | None = None
        self._about: About | None = None
        self._known = 0  # pid of the process that was prepared
        self._again = self._go = False

    # --- what it shows ---

    @property
    def about(self) -> About | None:
        return self.watch.about

    @property
    def began(self) -> bool:
        """Whether a run of ours has come up once."""
        return self._known != 0

    @property
    def state(self) -> str:
        if self.process is not None:
            if (outcome := self.process.outcome) is not None:
                return outcome.state
            if self._known != self.process.pid and not self.control.answers:
                return "starting"
        return self.control.state or self.watch.status.state

    @property
    def status(self) -> Status:
        seen, state = self.watch.status, self.state
        outcome = None if self.process is None else self.process.outcome
        reason = self._reason(outcome) if outcome is not None else seen.reason if state == seen.state else ""
        t = self.control.status.get("t") if state in ("paused", "running") and self.control.answers else None
        return seen._replace(state=state, reason=reason, t=t, owner=self.control.owner, mine=self.control.mine)

    def _reason(self, outcome: Outcome) -> str:
        """Without the name of the rig, which the page has."""
        return outcome.reason.removeprefix(f"{self.process.rig}: ") if self.process is not None else outcome.reason

    @property
    def situation(self) -> Situation:
        real = self.about is not None and self.about.real
        own, control = self.process is not None, self.control
        held = control.answers, control.mine, control.owner
        return Situation(self.state, real, own, *held, bool(control.address), bool(control.status.get("confirm_turns")))

    @property
    def note(self) -> Note:
        return self.control.note

    # --- what a user does ---

    def do(self, button: str, **fields: object) -> None:
        """Carry out what is written on a button."""
        if button in (AGAIN, PREPARE):
            self._again, self._go = True, button == AGAIN
        elif button == TAKE_OVER:
            self.control.ask("take", force=True)
        else:
            self.control.ask(COMMANDS[button], **fields)

    def estop(self) -> None:
        """Immediately, whoever holds control."""
        try:
            self.control.estop()
            self.control.note = Note("emergency stop", "warning")
        except CosimError as error:
            if self.process is None or not self.process.running:
                self.control.note = Note(f"emergency stop: {error.what}", "error")
                return
            self.process.terminate()
            self.control.note = Note("emergency stop: the process of the run was ordered to end", "warning")

    def mark(self, text: str) -> None:
        self.control.ask("marker", text=text)

    def set(self, values: Mapping[str, Value]) -> None:
        """To a run that is controlled here; any other one gets the chosen values at its start."""
        if values and tunable(self.situation) and self.control.mine:
            self.control.set(values)

    # --- the thread of the page ---

    def poll(self) -> News:
        if self._again and self.process is not None and not self.process.running:
            self._again = False
            self._launch()
        self.control.connect(self._address or self.watch.control)
        news = self.watch.poll()
        if self.about is not None and self.about is not self._about:
            self._about, self.gains = self.about, GainHistory(self.about.parameters)
        if self.process is not None:
            self._prepare(self.process)
        self._follow_values()
        return news

    def _launch(self) -> None:
        assert self.process is not None
        self.control.forget()
        try:
            self.process.start()
        except CosimError as error:
            self.control.note = Note(error.what, "error")

    def _prepare(self, process: RunProcess) -> None:
        """Take control of a run that was just launched; it gets the gains, and starts if it was started before. Take it
        back once a run answers again that did not for a while."""
        if process.outcome is not None:
            if self.control.status:
                self.control.forget()
            return
        if self._known == process.pid:
            lost = self.control.silenced and not self.control.asked("release")
            if lost and self.control.answers and not self.control.owner:
                self._take()
            return
        if self.control.state not in ("waiting", "armed"):
            return
        if self.about is None or self.control.status.get("pid") != process.pid:
            return
        if not self.control.mine:
            self._take(force=True)
            return
        self._known = process.pid
        if self.gains is not None and (chosen := self.gains.changed()):
            self.control.set(chosen)
        if self._go and not self.about.real:
            self.control.ask("start")
        self._go = False

    def _take(self, force: bool = False) -> None:
        if not self.control.asked("take"):
            self.control.ask("take", force=force)

    def _follow_values(self) -> None:
        """Show the gains that the run has, when nothing is on its way."""
        own = self.process is not None
        if self.gains is None or not self.control.answers or self.control.setting:
            return
        if own and self._known != self.control.status.get("pid"):
            return
        if self.gains.moved_since(time.monotonic(), SETTLING_TIME):
            return
        parameters = self.control.status.get("parameters", {})
        self.gains.accept({name: value_of(item["value"]) for name, item in parameters.items()})

    def close(self) -> None:
        self.control.close()
        self.watch.close()
        if self.process is not None:
            self.process.close()
