"""The command `cosim foxglove`, and what it is given that is wrong."""

import re
import signal
import socket
import subprocess
import sys

import pytest

from cosim.errors import InputError
from cosim.foxglove.command import FoxgloveAddress, open_bridge
from tests.foxglove.client import FoxgloveClient

STREAM = "tcp://127.0.0.1:19891"


def wrong(address, *at):
    with pytest.raises(InputError) as caught, open_bridge(address, FoxgloveAddress(*at)):
        raise AssertionError
    return str(caught.value)


def test_a_port_in_use():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        what = f"port {port} of 127.0.0.1 cannot be opened (Address already in use)"
        assert wrong(STREAM, "127.0.0.1", port) == f"--port: {what}; pass another one, or 0 for any"


def test_what_is_no_port_and_no_address():
    what = "70000 is no port; give one from 1 to 65535, or 0 for any that is free"
    assert wrong(STREAM, "127.0.0.1", 70_000) == f"--port: {what}"
    address = "tcp://127.0.0.1:99999"
    assert wrong(address, "127.0.0.1", 0) == f"{address}: there is no port 99999; use one from 1 to 65535"
    what = "'192.0.2.1' is no name or address of this machine (Cannot assign requested address)"
    assert wrong(STREAM, "192.0.2.1", 0) == f"--host: {what}; give one such as 127.0.0.1"
    what = "no address of a stream (Invalid argument); give one such as tcp://127.0.0.1:9872"
    assert wrong("somewhere", "127.0.0.1", 0) == f"somewhere: {what}"


def test_what_is_no_name_and_no_origin():
    what = "--allow-host: 'a b' is no name of a machine; give one such as robot.example.org"
    assert wrong(STREAM, "127.0.0.1", 0, ["a b"]) == what
    what = "--allow-origin: 'example.org' is no origin; give one such as https://example.org"
    assert wrong(STREAM, "127.0.0.1", 0, [], ["example.org"]) == what


def test_without_websockets(monkeypatch):
    monkeypatch.setitem(sys.modules, "websockets.asyncio.server", None)
    what = "Foxglove needs websockets; run pip install 'cosim[foxglove]'"
    assert wrong(STREAM, "127.0.0.1", 0) == f"foxglove: {what}"


def test_the_command_serves_until_it_is_interrupted():
    command = [sys.executable, "-m", "cosim", "foxglove", STREAM, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.fullmatch(rf"{STREAM}: connect Foxglove to (\S+) \(the whole of it\); Ctrl-C ends\n", line)
        assert found, line
        client = FoxgloveClient(found[1])
        client.until(lambda: client.of("serverInfo"))
        client.close()
        silence = "nothing is published there without a key; the bridge waits for a run"
        assert process.stdout.readline() == f"warning: {STREAM}: {silence}\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(10.0) == 0
