"""Shared by the tests of estop."""

import os
import termios
from contextlib import ExitStack

import pytest

from cosim.core.errors import InputError, RunError, SourceLocation
from cosim.execution.hardware.estop import EstopParams, open_estop

AGAIN = "; release it, then start again"


def place(*keys):
    return SourceLocation("rig.yaml", 7, ".".join(("guard.estop", *keys)))


def refused(**given):
    """The message for an input that cannot be had."""
    with pytest.raises(InputError) as caught, ExitStack() as stack:
        open_estop(EstopParams(**given), place, stack)
    return str(caught.value)


def stays(stop):
    """Why a reset is refused."""
    with pytest.raises(RunError) as caught:
        stop.reset()
    reported = str(caught.value)
    assert reported.endswith(AGAIN) and stop.pressed() == reported.removesuffix(AGAIN)
    return stop.pressed()


class Terminal:
    """A terminal whose keyboard is in the hands of the test."""

    def __init__(self) -> None:
        self.leader, self.follower = os.openpty()

    def type(self, keys: bytes) -> None:
        os.write(self.leader, keys)

    @property
    def mode(self) -> list:
        return termios.tcgetattr(self.follower)

    def close(self) -> None:
        for file in (self.leader, self.follower):
            if file >= 0:
                os.close(file)
        self.leader = self.follower = -1
