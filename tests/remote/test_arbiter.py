"""The arbiter of the control socket: one client holds control, others watch; what passed the checks goes to the run."""

from __future__ import annotations

import pytest
from orjson import dumps

from cosim.execution.remote.arbiter import MAX_OPEN, ControlArbiter, RemoteCommand

A, B = (b"a",), (b"b", b"")


@pytest.fixture
def arbiter():
    parameters = {
        "arm.kp": {"value": [1.0, 2.0], "unit": "N*m/rad", "min": 0.0, "max": None, "joints": ["lift", "turn"]}
    }
    parameters["arm.kp"]["units"] = ["N/m", "N*m/rad"]
    unset = {
        "tank/pump.size": {"value": 2.0, "unit": "m^3", "min": 0.0, "max": None, "changes": "fixed"},
        "arm.weights": {"value": [1.0, 2.0], "unit": "1", "min": None, "max": None, "changes": "fixed"},
    }
    status = {"state": "running", "parameters": parameters}
    return ControlArbiter(status, unset, {"rig.yaml": "name: rig"}, timeout=2.0)


def ask(arbiter, who, command, now=0.0, **fields):
    return arbiter.handle(who, dumps({"id": 1, "command": command, **fields}), now)


@pytest.fixture
def refused(arbiter, said):
    """What is asked is refused, with words."""

    def check(*request, **fields):
        reply = ask(arbiter, *request, **fields)
        assert reply["ok"] is False and reply["id"] == 1
        said(reply["error"])

    return check


def test_what_is_known_is_answered_without_the_run(arbiter, refused):
    assert ask(arbiter, A, "status") == {"id": 1, "ok": True, "holder": None, **arbiter.status}
    parameters = arbiter.status["parameters"]
    assert ask(arbiter, A, "list") == {"id": 1, "ok": True, "parameters": parameters}
    assert ask(arbiter, A, "get") == {**ask(arbiter, A, "list"), "values": {"arm.kp": [1.0, 2.0]}}
    assert ask(arbiter, A, "files") == {"id": 1, "ok": True, "files": {"rig.yaml": "name: rig"}, "rig": "rig.yaml"}
    of_joint = {"value": 1.0, "unit": "N/m", "min": 0.0, "max": None}
    assert ask(arbiter, A, "list", names=["arm.kp/lift"])["parameters"] == {"arm.kp/lift": of_joint}
    assert ask(arbiter, A, "get", names=["tank/pump.size", "arm.weights/1"])["values"] == {
        "tank/pump.size": 2.0,
        "arm.weights/1": 2.0,
    }
    for name in ("arm.kp/lif", "arm.weights/2", "tank/pump.size/0", "arm.kd/1", "arm.kd"):
        refused(A, "get", names=[name])
    arbiter.update({"state": "paused", "values": {"arm.kp": [3.0, 3.0]}})  # by the run
    assert ask(arbiter, A, "status")["state"] == "paused"
    assert ask(arbiter, A, "get")["values"] == {"arm.kp": [3.0, 3.0]}


def test_only_the_owner_of_control_changes_the_run(arbiter, refused):
    change = {"values": {"arm.kp": 5}}
    refused(A, "set", **change)
    assert ask(arbiter, A, "take", client="tuner") == {"id": 1, "ok": True, "timeout": 2.0}
    assert ask(arbiter, A, "set", **change) == RemoteCommand(1, "set", "tuner", change)
    refused(B, "set", **change)
    refused(B, "take", client="dash")
    assert ask(arbiter, A, "release")["ok"] and ask(arbiter, B, "take", client="dash")["ok"]
    assert ask(arbiter, A, "take", client="tuner", force=True)["ok"]
    refused(B, "pause")
    assert ask(arbiter, B, "status")["holder"] == "tuner"
    # but anyone stops in an emergency, and sets markers
    assert ask(arbiter, B, "estop") == RemoteCommand(2, "estop", "a client", {})
    marker = RemoteCommand(3, "marker", "phone", {"text": "loud"})
    assert ask(arbiter, B, "marker", text="loud", client="phone") == marker


def test_control_is_lost_in_silence(arbiter, refused):
    ask(arbiter, A, "take", client="tuner", now=0.0)
    ask(arbiter, A, "heartbeat", now=1.5)
    assert arbiter.lost(3.5) is None
    assert arbiter.lost(3.6) == "tuner"
    assert arbiter.lost(9.0) is None
    refused(A, "heartbeat", now=9.0)
    ask(arbiter, A, "take", client="tuner", now=10.0)
    assert arbiter.handle(A, b"?", 12.0)["ok"] is False  # garbage is no sign of life
    assert arbiter.lost(12.1) == "tuner"


def test_replies_reach_who_asked(arbiter):
    first, second = ask(arbiter, B, "marker", text="x"), arbiter.handle(A, dumps({"id": "z", "command": "estop"}), 0.0)
    assert arbiter.answered(second.token, {"ok": True}) == (A, {"id": "z", "ok": True})
    assert arbiter.answered(first.token, {"ok": False, "error": "no"}) == (B, {"id": 1, "ok": False, "error": "no"})


def test_a_client_cannot_flood_the_run(arbiter, refused):
    commands = [ask(arbiter, A, "marker", text="x") for _ in range(MAX_OPEN)]
    refused(A, "marker", text="x")
    assert isinstance(ask(arbiter, B, "marker", text="x"), RemoteCommand)
    assert isinstance(ask(arbiter, A, "estop"), RemoteCommand)  # never refused
    for command in commands[:2]:
        arbiter.answered(command.token, {"ok": True})
    assert isinstance(ask(arbiter, A, "marker", text="x"), RemoteCommand)
