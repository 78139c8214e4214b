"""Arming by the control socket: what will move is reported, more than a turn has to be allowed, `start` keeps to it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from cosim.core.units import TURN
from cosim.execution.remote.arbiter import RemoteCommand
from cosim.rig.run.consent import Agreement
from cosim.rig.run.remote_control import RemoteControl
from tests.execution.test_motion_plan import bench_of  # noqa: F401 a fixture


class Link:
    """The run's end of a control socket: commands come one by one, replies and the status are kept."""

    failure = ""

    def __init__(self):
        self.status, self.commands, self.replies = {}, [], []

    def update(self, parts):
        self.status |= parts

    def reply(self, token, reply):
        self.replies.append(reply)

    def take(self):
        commands, self.commands = self.commands, []
        return commands

    def wait(self, timeout):
        return None


class Waiting:
    """A rig with real motors that waits for its start."""

    def __init__(self, bench):
        self.drives, self.link = bench.drives, Link()
        self.recorder = SimpleNamespace(
            rig=bench.rig,
            scheduler=bench.scheduler,
            store=SimpleNamespace(kept=SimpleNamespace(expected=401)),
            agreement=Agreement(),
            outputs=SimpleNamespace(describe=lambda **parts: None),
            done=0,
        )
        self.control = RemoteControl(self.recorder, self.link, True)

    def ask(self, command, **fields):
        self.link.commands.append(RemoteCommand(1, command, "page", fields))
        self.control.attend()
        return self.link.replies[-1]


@pytest.fixture
def waiting(bench_of):  # noqa: F811
    return Waiting(bench_of())


def test_the_motion_is_in_the_status_while_the_run_waits(waiting):
    waiting.drives.position = [1.5 * TURN, 0.0]
    waiting.control._look()
    assert waiting.link.status["motion"][0].startswith("a is at 9.425 rad; its reference begins at 0 rad, is reached")
    assert waiting.link.status["confirm_turns"] == ["a"]


def test_a_joint_that_could_not_start_is_in_the_status_too(waiting, said):
    waiting.drives.position = [50.0, 0.0]
    waiting.control._look()
    said(waiting.link.status["motion"])


def test_arm_reports_what_will_move_and_start_keeps_to_it(waiting, said):
    reply = waiting.ask("arm")
    assert reply["ok"] and reply["confirm_turns"] == []
    assert [line[:7] for line in reply["motion"]] == ["a is at", "w is at"]
    waiting.drives.position = [0.3, 0.0]  # by hand
    refused = waiting.ask("start")
    assert (refused["ok"], refused["input"]) == (False, False)
    said(refused["error"])
    assert not waiting.control.started and waiting.ask("start")["error"].endswith("arm it first")
    assert waiting.ask("arm")["ok"] and waiting.ask("start")["ok"] and waiting.control.started
    assert waiting.recorder.agreement.plan.joints[0].measured == 0.3
    assert "enable" not in waiting.drives.log  # the run itself switches the motors on


def test_more_than_a_turn_has_to_be_allowed(waiting, said):
    waiting.drives.position = [1.5 * TURN, 0.0]
    said(waiting.ask("arm")["error"])
    assert waiting.ask("start")["error"].endswith("arm it first")
    assert waiting.ask("arm", allow_turns=True)["confirm_turns"] == ["a"]
    assert waiting.recorder.agreement.allow_turns
