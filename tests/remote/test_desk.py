"""The desk of the control socket: one client holds control, others watch; the run is asked what passed the checks."""

from __future__ import annotations

import pytest
from orjson import dumps

from cosim.execution.remote.desk import MAX_OPEN, ControlDesk, Order

A, B = (b"a",), (b"b", b"")


@pytest.fixture
def desk():
    parameters = {"arm.kp": {"value": [1.0, 2.0], "unit": "N*m/rad", "min": 0.0, "max": None}}
    return ControlDesk({"state": "running", "parameters": parameters}, {"rig.yaml": "name: rig"}, timeout=2.0)


def ask(desk, who, command, now=0.0, **fields):
    return desk.handle(who, dumps({"id": 1, "command": command, **fields}), now)


@pytest.fixture
def refused(desk, said):
    """What is asked is refused, with words."""

    def check(*request, **fields):
        reply = ask(desk, *request, **fields)
        assert reply["ok"] is False and reply["id"] == 1
        said(reply["error"])

    return check


def test_what_is_known_is_answered_without_the_run(desk, refused):
    assert ask(desk, A, "status") == {"id": 1, "ok": True, "holder": None, **desk.status}
    assert ask(desk, A, "get") == {"id": 1, "ok": True, "values": {"arm.kp": [1.0, 2.0]}}
    assert ask(desk, A, "list")["parameters"]["arm.kp"]["unit"] == "N*m/rad"
    assert ask(desk, A, "files") == {"id": 1, "ok": True, "files": {"rig.yaml": "name: rig"}, "rig": "rig.yaml"}
    assert ask(desk, A, "get", names=["arm.kp/1"])["values"] == {"arm.kp/1": 2.0}
    for name in ("arm.kp/2", "arm.kd/1", "arm.kd"):
        refused(A, "get", names=[name])
    desk.update({"state": "paused", "values": {"arm.kp": [3.0, 3.0]}})  # by the run
    assert ask(desk, A, "status")["state"] == "paused"
    assert ask(desk, A, "get")["values"] == {"arm.kp": [3.0, 3.0]}


def test_only_the_holder_of_control_changes_the_run(desk, refused):
    change = {"values": {"arm.kp": 5}}
    refused(A, "set", **change)
    assert ask(desk, A, "take", client="tuner") == {"id": 1, "ok": True, "timeout": 2.0}
    assert ask(desk, A, "set", **change) == Order(1, "set", "tuner", change)
    refused(B, "set", **change)
    refused(B, "take", client="dash")
    assert ask(desk, A, "release")["ok"] and ask(desk, B, "take", client="dash")["ok"]
    assert ask(desk, A, "take", client="tuner", force=True)["ok"]
    refused(B, "pause")
    assert ask(desk, B, "status")["holder"] == "tuner"
    # but anyone stops in an emergency, and sets markers
    assert ask(desk, B, "estop") == Order(2, "estop", "a client", {})
    assert ask(desk, B, "marker", text="loud", client="phone") == Order(3, "marker", "phone", {"text": "loud"})


def test_control_is_lost_in_silence(desk, refused):
    ask(desk, A, "take", client="tuner", now=0.0)
    ask(desk, A, "heartbeat", now=1.5)
    assert desk.lost(3.5) is None
    assert desk.lost(3.6) == "tuner"
    assert desk.lost(9.0) is None
    refused(A, "heartbeat", now=9.0)
    ask(desk, A, "take", client="tuner", now=10.0)
    assert desk.handle(A, b"?", 12.0)["ok"] is False  # garbage is no sign of life
    assert desk.lost(12.1) == "tuner"


def test_replies_reach_who_asked(desk):
    first, second = ask(desk, B, "marker", text="x"), desk.handle(A, dumps({"id": "z", "command": "estop"}), 0.0)
    assert desk.answered(second.token, {"ok": True}) == (A, {"id": "z", "ok": True})
    assert desk.answered(first.token, {"ok": False, "error": "no"}) == (B, {"id": 1, "ok": False, "error": "no"})


def test_a_client_cannot_flood_the_run(desk, refused):
    orders = [ask(desk, A, "marker", text="x") for _ in range(MAX_OPEN)]
    refused(A, "marker", text="x")
    assert isinstance(ask(desk, B, "marker", text="x"), Order)
    assert isinstance(ask(desk, A, "estop"), Order)  # never refused
    for order in orders[:2]:
        desk.answered(order.token, {"ok": True})
    assert isinstance(ask(desk, A, "marker", text="x"), Order)
