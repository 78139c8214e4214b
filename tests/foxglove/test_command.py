"""The command `cosim foxglove`, and what it is given that is wrong."""

import re
import signal
import socket
import subprocess
import sys

import pytest

from cosim.apps.foxglove.command import FoxgloveAddress, open_bridge
from cosim.core.errors import InputError
from tests.foxglove.client import FoxgloveClient

STREAM = "tcp://127.0.0.1:19891"


def wrong(address, *at):
    with pytest.raises(InputError) as caught, open_bridge(address, FoxgloveAddress(*at)):
        raise AssertionError
    return str(caught.value)


def test_a_port_in_use(said):
    with socket.create_server(("127.0.0.1", 0)) as other:
        said(wrong(STREAM, "127.0.0.1", other.getsockname()[1]), r"(?<=port )\d+")


WRONG = {
    "no port": (STREAM, "127.0.0.1", 70_000),
    "no port of a stream": ("tcp://127.0.0.1:99999", "127.0.0.1", 0),
    "no address of this machine": (STREAM, "192.0.2.1", 0),
    "no stream": ("somewhere", "127.0.0.1", 0),
    "no host": (STREAM, "127.0.0.1", 0, ["a b"]),
    "no origin": (STREAM, "127.0.0.1", 0, [], ["example.org"]),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_named(said, what):
    said(wrong(*WRONG[what]))


def test_without_websockets(said, monkeypatch):
    monkeypatch.setitem(sys.modules, "websockets.asyncio.server", None)
    said(wrong(STREAM, "127.0.0.1", 0))


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
        assert process.wait(60.0) == 0
