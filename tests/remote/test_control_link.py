"""The process of the control socket, between real clients and the run's end of it."""

from __future__ import annotations

import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import zmq
from orjson import loads

from cosim.client import connect
from cosim.errors import InputError, RunError
from cosim.remote import control_link
from cosim.remote.control_link import ENDED, HANGS, ControlLink, LostControl
from cosim.remote.control_process import ControlSetup
from cosim.remote.desk import Order
from tests.kit.garbage import Stranger, garbage, raw_client
from tests.kit.processes import runs, until


@pytest.fixture
def free():
    """An endpoint that nobody uses."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    return f"tcp://127.0.0.1:{port}"


def setup(endpoint="tcp://127.0.0.1:*", timeout=2.0):
    parameters = {"arm.kp": {"value": 1.0, "unit": "1", "min": 0.0, "max": None}}
    return ControlSetup(endpoint, {"state": "running", "parameters": parameters}, {"rig.yaml": "a: 1"}, timeout)


@pytest.fixture
def link():
    with ControlLink(setup()) as link:
        yield link


class Run(threading.Thread):
    """Carries out every order: what it got is in `seen`."""

    def __init__(self, link):
        super().__init__(daemon=True)
        self.link, self.seen, self.ended = link, [], threading.Event()

    def run(self):
        while not self.ended.is_set():
            if self.link.wait(0.02):
                for order in self.link.take():
                    self.seen.append(order)
                    if isinstance(order, Order):
                        known = order.command != "pause"
                        self.link.reply(
                            order.token, {"ok": known, "tick": 7} if known else {"ok": False, "error": "no"}
                        )

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.join()


def test_orders_reach_the_run_and_answers_the_client(link):
    with Run(link) as run, connect(link.endpoint, "tuner") as client:
        with client.control():
            assert client.status()["holder"] == "tuner"
            assert client.set({"arm.kp": np.array([2.0, 3.0])}) == 7
            with pytest.raises(RunError, match="no"):
                client.pause()
        assert client.status()["holder"] is None
        client.estop()
    assert [(order.command, order.client) for order in run.seen] == [
        ("set", "tuner"),
        ("pause", "tuner"),
        ("estop", "tuner"),
    ]
    assert run.seen[0].fields == {"values": {"arm.kp": [2.0, 3.0]}}


def test_what_the_run_tells_is_known_to_clients(link):
    link.update({"state": "paused", "values": {"arm.kp": 5.0}})
    with connect(link.endpoint) as client:
        while client.status()["state"] != "paused":
            time.sleep(0.01)
        assert client.get("arm.kp") == {"arm.kp": 5.0}
        assert client.files() == ("rig.yaml", {"rig.yaml": "a: 1"})


def test_heartbeats_keep_control_and_silence_loses_it():
    with ControlLink(setup(timeout=0.4)) as link, connect(link.endpoint, "tuner") as client:
        with client.control():
            time.sleep(1.0)
            assert link.take() == []
        client.take()
        assert until(link.take, 5.0) == [LostControl("tuner", "its heartbeat ended")]


def test_a_request_reply_socket_is_served(link):
    client = raw_client(zmq.REQ, link.endpoint)
    client.send_string('{"command": "get"}')
    assert loads(client.recv()) == {"id": None, "ok": True, "values": {"arm.kp": 1.0}}
    client.close()


def test_frames_that_are_no_request_are_refused(link):
    client = raw_client(zmq.DEALER, link.endpoint)
    client.send_multipart([b"a", b"b", b"c"])
    assert loads(client.recv())["error"] == "a request is one frame, got 3"
    client.close()


def test_garbage_never_reaches_the_run(link):
    with connect(link.endpoint, "tuner") as holder, holder.control(), Stranger(link.endpoint) as stranger:
        for seed in range(20):
            stranger.ask(garbage(random.Random(seed), 500))
        assert holder.get("arm.kp") == {"arm.kp": 1.0} and holder.status()["holder"] == "tuner"
    assert link.take() == []


def test_what_is_no_json_is_not_sent(link):
    with connect(link.endpoint) as client:
        for value in (2**70, "\ud800", print):
            with pytest.raises(InputError, match=f"^{re.escape(link.endpoint)}: set: cannot be sent: [^\n]+$"):
                client.request("set", values={"arm.kp": value})
        assert client.get("arm.kp") == {"arm.kp": 1.0}


def test_an_endpoint_in_use_is_named(free):
    fix = "stop the other program or give another port"
    with ControlLink(setup(free)), pytest.raises(InputError) as caught:
        ControlLink(setup(free))
    assert str(caught.value) == f"{free}: cannot serve control: Address already in use; {fix}"


def test_nothing_there_is_named(free):
    with pytest.raises(RunError) as caught:
        connect(free, timeout=0.05)
    what = "nothing answers within 0.05 s; check that the run is there, with --control; an encrypted one needs its key"
    assert str(caught.value) == f"{free}: {what}"


def test_what_is_no_control_socket_is_named_as_soon(free):
    with zmq.Context() as context, context.socket(zmq.PUB) as stream:
        stream.bind(free)
        begun = time.monotonic()
        with pytest.raises(RunError) as caught:
            connect(free, timeout=0.3)
    assert str(caught.value).startswith(f"{free}: nothing answers within 0.3 s; ")
    assert time.monotonic() - begun < 5.0
    with pytest.raises(InputError, match=r"nonsense: no address of a control socket \(.*\); give one such as tcp://"):
        connect("nonsense")


def test_a_process_that_dies_ends_the_orders(link):
    os.kill(link._process.pid, signal.SIGKILL)
    assert until(lambda: link.take() or link.failure, 5.0) == ENDED
    link.update({"state": "paused"})  # to nobody
    link.reply(1, {"ok": True})


def held(link, client):
    """Take control; the run is aware of it."""
    client.take()
    assert link.wait(5.0) and link.take() == []  # told before the client had its reply


def test_the_death_of_the_process_is_the_loss_of_the_control_that_a_client_held(link):
    with connect(link.endpoint, "tuner") as client:
        held(link, client)
        os.kill(link._process.pid, signal.SIGKILL)
        assert until(link.take, 5.0) == [LostControl("tuner", ENDED)]
    assert link.take() == []


def test_control_that_was_released_is_not_lost_with_the_process(link):
    with connect(link.endpoint, "tuner") as client:
        held(link, client)
        client.release()
    os.kill(link._process.pid, signal.SIGKILL)
    until(lambda: link.take() or link.failure, 5.0)
    assert link.failure == ENDED and link.take() == []


def test_orders_from_before_the_death_of_the_process_are_carried_out(link):
    client = raw_client(zmq.DEALER, link.endpoint)
    client.send_string('{"command": "estop"}')
    client.send_string('{"command": "get"}')
    assert loads(client.recv())["ok"]  # answered after the first was passed on
    os.kill(link._process.pid, signal.SIGKILL)
    until(lambda: not runs(link._process.pid), 5.0)
    link.update({"state": "paused"})
    orders = link.take()
    until(lambda: orders.extend(link.take()) or link.failure, 5.0)
    assert [order.command for order in orders] == ["estop"] and link.failure == ENDED
    client.close()


@pytest.mark.parametrize("holds", [True, False])
def test_a_process_that_hangs_is_noticed_whether_a_client_holds_control_or_not(monkeypatch, holds):
    monkeypatch.setattr(control_link, "SILENCE", 0.2)
    with ControlLink(setup(timeout=0.3)) as link, connect(link.endpoint, "tuner") as client:
        if holds:
            held(link, client)
        os.kill(link._process.pid, signal.SIGSTOP)
        begun, items = time.monotonic(), []
        assert until(lambda: items.extend(link.take()) or link.failure, 5.0) == HANGS
        assert items == ([LostControl("tuner", HANGS)] if holds else [])
        assert time.monotonic() - begun > 0.4
        assert until(lambda: not runs(link._process.pid))


@pytest.mark.parametrize("holds", [True, False])
def test_a_run_that_did_not_look_for_long_does_not_take_that_for_silence(link, monkeypatch, holds):
    with connect(link.endpoint, "tuner") as client:
        if holds:
            held(link, client)
        now = time.monotonic()
        monkeypatch.setattr(control_link.time, "monotonic", lambda: now + 1000.0)
        while link.wait(0.0):
            assert link.take() == []
        monkeypatch.setattr(control_link.time, "monotonic", lambda: now + 2000.0)
        assert link.take() == [] and not link.failure


def test_the_process_ends_with_the_run():
    """Also where that is killed, while a client is served."""
    program = (
        "from tests.remote.test_control_link import setup, ControlLink\n"
        "link = ControlLink(setup()); print(link.endpoint, link._process.pid, flush=True); link.wait(60); input()"
    )
    run = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None and run.stdin is not None
    with run:
        endpoint, process = run.stdout.readline().split()
        with connect(endpoint, "tuner") as client:
            client.take()
            run.kill()
            until(lambda: not runs(int(process)), 5.0)
        run.stdin.close()
