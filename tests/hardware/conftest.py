"""Fixtures of the tests in this folder."""

import os
import sys
from contextlib import ExitStack

import can
import pytest

from cosim.execution.hardware.estop import EstopParams, open_estop
from tests.hardware.estop_helpers import Terminal, place


@pytest.fixture
def opened():
    """How to open an emergency stop that is closed with the test."""
    with ExitStack() as stack:
        yield lambda **given: open_estop(EstopParams(**given), place, stack)


@pytest.fixture
def bus(request, opened):
    """(how to open a stop by message on it, how to send)."""
    channel = request.node.name
    sender = can.Bus(interface="virtual", channel=channel)

    def send(identifier, data=b"", **more):
        more.setdefault("is_extended_id", identifier > 0x7FF)
        sender.send(can.Message(arbitration_id=identifier, data=data, **more))

    yield lambda identifier=0x10: opened(interface="virtual", channel=channel, id=identifier), send
    sender.shutdown()


@pytest.fixture
def cause(request):
    return f"the emergency stop: message 0x10 on virtual {request.node.name}"


@pytest.fixture
def terminal(monkeypatch):
    terminal = Terminal()
    with os.fdopen(os.dup(terminal.follower)) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield terminal
    terminal.close()
