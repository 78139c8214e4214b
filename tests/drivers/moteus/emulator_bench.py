"""Emulated moteus drives with rotors, stepped by the test."""

import math
from typing import Any

from cosim.plugins.drivers.common.motor import Rotor
from cosim.plugins.drivers.moteus import registers as reg
from cosim.plugins.drivers.moteus.codec import (
    CLIENT_DATA,
    FLOAT,
    INT8,
    Reply,
    Tunnel,
    arbitration,
    decode,
    pad,
    poll,
    read,
    tunnel,
    write,
)
from cosim.plugins.drivers.moteus.emulator import Emulator
from cosim.plugins.drivers.moteus.registers import Mode
from cosim.plugins.drivers.transport import CanFrame
from tests.kit.clock import MS

POSITION = write(reg.MODE, INT8, [Mode.POSITION])


ON = POSITION + write(reg.COMMAND_TIMEOUT, FLOAT, [math.nan])  # no watchdog


class Bench:
    """Drives 1 and 2."""

    def __init__(self, motor: type[Rotor] = Rotor) -> None:
        self.rotors = [motor(), motor()]
        self.emulator = Emulator([1, 2], self.rotors)
        self.servo, self.rotor = self.emulator.servos[0], self.rotors[0]
        self.t_ns = 0

    def run(self, ms: int) -> None:
        for _ in range(ms):
            for rotor in self.rotors:
                rotor.advance(1e-3)
            self.t_ns += MS
            self.emulator.process(self.t_ns)

    def tell(self, data: bytes, node: int = 1) -> None:
        assert self.emulator.handle(CanFrame(arbitration(0, node), pad(data), False, True, True), self.t_ns) == []

    def ask(self, data: bytes, node: int = 1) -> list[Any]:
        (answer,) = self.emulator.handle(
            CanFrame(arbitration(0, node, reply=True), pad(data), True, True, True), self.t_ns
        )
        assert answer.id == node << 8 and answer.fd and len(answer.data) in (*range(9), 12, 16, 20, 24, 32, 48, 64)
        found, whole = decode(answer.data)
        assert whole
        return found

    def get(self, register: int, resolution: int = FLOAT) -> float:
        (answer,) = self.ask(read(register, resolution))
        assert isinstance(answer, Reply)
        return answer.values[0]

    def say(self, text: str) -> str:
        """A line to the console, and its whole answer."""
        self.tell(tunnel(CLIENT_DATA, 1, text.encode() + b"\n"))
        heard = b""
        while True:
            (answer,) = self.ask(poll(1, 60))
            assert isinstance(answer, Tunnel)
            if not answer.data:
                return heard.decode("latin1")
            heard += answer.data

    def start(self, data: bytes = b"") -> None:
        self.tell(ON + data)
        self.run(15)
        assert self.servo.mode == Mode.POSITION
