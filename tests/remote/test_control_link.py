"""The process of the control socket, between real clients and the run's end of it."""

from __future__ import annotations

import os
import random
import re
import signal
import threading
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import zmq
from orjson import loads

from cosim.core.errors import CosimError, InputError, RunError
from cosim.execution.remote import control_link, control_process
from cosim.execution.remote.arbiter import RemoteCommand
from cosim.execution.remote.control_link import ENDED, HANGS, LOOK, SILENCE, ControlLink, LostControl
from cosim.execution.remote.control_process import ControlSetup
from cosim.output.client import connect
from tests.kit.garbage import Stranger, garbage, raw_client
from tests.kit.processes import runs, until


def setup(endpoint="tcp://127.0.0.1:*", timeout=60.0):
    parameters = {"arm.kp": {"value": 1.0, "unit": "1", "min": 0.0, "max": None}}
    return ControlSetup(endpoint, {"state": "running", "parameters": parameters}, {}, {"rig.yaml": "a: 1"}, timeout)


@pytest.fixture(scope="module")
def shared():
    """A link for tests that leave nothing behind."""
    with ControlLink(setup()) as link:
        yield link


@pytest.fixture
def link():
    with ControlLink(setup()) as link:
        yield link


@contextmanager
def carried_out(link):
    """What commands the run gets, all of which but pauses it carries out."""
    seen, ended = [], threading.Event()

    def run():
        while not ended.is_set():
            for command in link.take() if link.wait(0.02) else ():
                seen.append((command.name, command.client, command.fields))
                no = command.name == "pause"
                link.reply(command.token, {"ok": False, "error": "no"} if no else {"ok": True, "tick": 7})

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield seen
    ended.set()
    thread.join()


def test_orders_reach_the_run_and_answers_and_news_the_client(link):
    with carried_out(link) as seen, connect(link.endpoint, "tuner", timeout=60.0) as client:
        with client.control():
            assert client.status()["holder"] == "tuner"
            assert client.set({"arm.kp": np.array([2.0, 3.0])}) == 7
            with pytest.raises(RunError, match="no"):
                client.pause()
        assert client.status()["holder"] is None
        client.estop()
        link.update({"state": "paused", "values": {"arm.kp": 5.0}})
        until(lambda: client.status()["state"] == "paused")
        assert client.get("arm.kp") == {"arm.kp": 5.0}
        assert client.files() == ("rig.yaml", {"rig.yaml": "a: 1"})
    values = {"values": {"arm.kp": [2.0, 3.0]}}
    assert seen == [("set", "tuner", values), ("pause", "tuner", {}), ("estop", "tuner", {})]


def test_a_request_is_one_frame_of_any_kind_of_socket(shared):
    with raw_client(zmq.REQ, shared.endpoint) as client:
        client.send_string('{"command": "get"}')
        assert loads(client.recv())["values"] == {"arm.kp": 1.0}
    with raw_client(zmq.DEALER, shared.endpoint) as client:
        client.send_multipart([b"a", b"b", b"c"])
        assert loads(client.recv())["error"] == "a request is one frame, got 3"


def test_garbage_never_reaches_the_run(shared):
    with connect(shared.endpoint, "tuner", timeout=60.0) as owner, owner.control():
        with Stranger(shared.endpoint) as stranger:
            for seed in range(4):
                stranger.ask(garbage(random.Random(seed), 500))
        assert owner.get("arm.kp") == {"arm.kp": 1.0} and owner.status()["holder"] == "tuner"
        for value in (2**70, "\ud800", print):  # no JSON is not even sent
            with pytest.raises(InputError, match=f"^{re.escape(shared.endpoint)}: set: cannot be sent: [^\n]+$"):
                owner.request("set", values={"arm.kp": value})
    assert shared.take() == []


def test_endpoints_that_serve_nothing_or_are_in_use_are_named(shared, said, tmp_path):
    with zmq.Context() as context, context.socket(zmq.PUB) as stream:
        stream.bind("tcp://127.0.0.1:*")
        for use in (
            lambda: ControlLink(setup(shared.endpoint)),
            lambda: connect(f"ipc://{tmp_path}/nobody", timeout=0.01),
            lambda: connect(stream.get_string(zmq.LAST_ENDPOINT), timeout=0.01),
            lambda: connect("nonsense"),
        ):
            with pytest.raises(CosimError) as caught:
                use()
            said(caught.value, r"(?<=127.0.0.1:)\d+")


# --- heartbeats, death and silence ---


def time_of(module, monkeypatch):
    """The time of a module, which only a test changes."""
    time = SimpleNamespace(now=1000.0, monotonic=lambda: time.now)
    monkeypatch.setattr(module, "time", time)
    return time


def test_heartbeats_keep_control_and_silence_loses_it(monkeypatch):
    """The process in a thread: its time goes on by less than the limit whenever it has heard some heartbeats."""
    time, heard, lines, limit = time_of(control_process, monkeypatch), [], [], 0.2
    server = control_process.ControlServer(setup(timeout=limit), lambda **line: lines.append(line))
    serve = server._serve
    monkeypatch.setattr(server, "_serve", lambda parts: (heard.append(parts[-1]), serve(parts)))
    (source, end), ended = os.pipe(), threading.Event()
    thread = threading.Thread(target=lambda: [server.turn(source) for _ in iter(ended.is_set, True)])
    thread.start()
    try:
        with server, connect(server.endpoint, "tuner", timeout=60.0) as client:
            with client.control():
                for _ in range(5):
                    count = len(heard)
                    until(lambda count=count: len(heard) > count + 1)
                    time.now += 0.9 * limit
                assert not any("lost" in line for line in lines)
            client.take()
            time.now += 1.1 * limit
            until(lambda: {"lost": "tuner"} in lines)
            ended.set()
            thread.join()
    finally:
        ended.set()
        for each in (source, end):
            os.close(each)


HELD = pytest.mark.parametrize("holds", [True, False], ids=["held", "not held"])


def taken(link, client, holds):
    """The client takes control, and gives it back unless it holds it; the run is aware of it before the client is."""
    client.take()
    if not holds:
        client.release()
    assert link.wait(60.0) and link.take() == []


@HELD
def test_the_death_of_the_process_ends_the_control_that_a_client_held_after_its_last_commands(link, holds):
    with connect(link.endpoint, "tuner", timeout=60.0) as client, raw_client(zmq.DEALER, link.endpoint) as other:
        taken(link, client, holds)
        other.send_string('{"command": "estop"}')
        other.send_string('{"command": "get"}')
        assert loads(other.recv())["ok"]  # answered after the first was passed on
        os.kill(link._process.pid, signal.SIGKILL)
        until(lambda: not runs(link._process.pid))
        link.update({"state": "paused"})  # to nobody
        link.reply(1, {"ok": True})
        items = link.take()
        assert until(lambda: items.extend(link.take()) or link.failure) == ENDED
    command, *lost = items
    assert isinstance(command, RemoteCommand) and command.name == "estop"
    assert lost == [LostControl("tuner", ENDED)] * holds and link.take() == []


@HELD
def test_a_process_that_hangs_is_noticed_after_its_silence_not_after_one_of_the_run(link, monkeypatch, holds):
    time, pid = time_of(control_link, monkeypatch), link._process.pid
    link._looked = time.now
    with connect(link.endpoint, "tuner", timeout=60.0) as client:
        taken(link, client, holds)
        for _ in range(3):  # the run did not look for long
            time.now += 1000.0
            until(lambda: link.wait(0.0))
            assert link.take() == [] and not link.failure
        os.kill(pid, signal.SIGSTOP)
        until(lambda: "State:\tT" in Path(f"/proc/{pid}/status").read_text())
        while link.wait(0.0):
            assert link.take() == []
        for _ in range(round((60.0 + SILENCE) / LOOK)):
            time.now += 1000.0
            assert link.take() == [] and not link.failure
        time.now += 1000.0
        assert link.take() == [LostControl("tuner", HANGS)] * holds and link.failure == HANGS
        until(lambda: not runs(pid))
