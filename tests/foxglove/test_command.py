"""The command `cosim foxglove`, and what it is given that is wrong."""

import signal
import socket
import subprocess
import sys

import pytest

from cosim.errors import InputError
from cosim.foxglove.command import open_bridge
from tests.foxglove.client import FoxgloveClient

STREAM = "tcp://127.0.0.1:19891"


def wrong(*given):
    with pytest.raises(InputError) as caught, open_bridge(*given):
        raise AssertionError
    return str(caught.value)


def test_a_port_in_use():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        what = f"port {port} of 127.0.0.1 cannot be opened (Address already in use (os error 98))"
        assert wrong(STREAM, "127.0.0.1", port) == f"--port: {what}; pass another one, or 0 for any"


def test_what_is_no_port_and_no_address():
    what = "port 70000 of 127.0.0.1 cannot be opened (number too large to fit in target type)"
    assert wrong(STREAM, "127.0.0.1", 70_000) == f"--port: {what}; pass another one, or 0 for any"
    what = "no address of a stream (Invalid argument); give one such as tcp://127.0.0.1:9872"
    assert wrong("somewhere", "127.0.0.1", 0) == f"somewhere: {what}"


def test_without_the_sdk(monkeypatch):
    monkeypatch.setitem(sys.modules, "foxglove", None)
    what = "Foxglove needs its SDK; run pip install 'cosim[foxglove]'"
    assert wrong(STREAM, "127.0.0.1", 0) == f"foxglove: {what}"


def test_the_command_serves_until_it_is_interrupted():
    command = [sys.executable, "-m", "cosim", "foxglove", STREAM, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        start = f"{STREAM}: connect Foxglove to ws://127.0.0.1:"
        assert line.startswith(start) and line.endswith("; Ctrl-C ends\n")
        client = FoxgloveClient(int(line.removeprefix(start).partition(";")[0]))
        client.until(lambda: client.of("serverInfo"))
        client.close()
        silence = "nothing is published there without a key; the bridge waits for a run"
        assert process.stdout.readline() == f"warning: {STREAM}: {silence}\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(10.0) == 0
