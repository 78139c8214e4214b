"""The process of the control socket, between real clients and the run's end of it."""

from __future__ import annotations

import os
import random
import re
import signal
import socket
import threading
import time

import numpy as np
import pytest
import zmq
from orjson import loads

from cosim.client import connect
from cosim.errors import InputError, RunError
from cosim.remote.control_link import ControlLink
from cosim.remote.control_process import ControlSetup
from tests.kit.garbage import Stranger, garbage


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
                    if not isinstance(order, str):
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
            assert not link.wait(1.0)
        client.take()
        assert link.wait(5.0) and link.take() == ["tuner"]


def test_a_request_reply_socket_is_served(link):
    client = zmq.Context.instance().socket(zmq.REQ)
    client.connect(link.endpoint)
    client.send_string('{"command": "get"}')
    assert loads(client.recv()) == {"id": None, "ok": True, "values": {"arm.kp": 1.0}}
    client.close()


def test_frames_that_are_no_request_are_refused(link):
    client = zmq.Context.instance().socket(zmq.DEALER)
    client.connect(link.endpoint)
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
    assert link.wait(5.0) and link.take() == [] and link.ended
    link.update({"state": "paused"})  # to nobody
    link.reply(1, {"ok": True})
