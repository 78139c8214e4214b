"""An emulated CiA 402 drive with a rotor, stepped by the test."""

import math
import struct

import numpy as np
import pytest

from cosim.core.driver_contract import DriverContext
from cosim.core.errors import SourceLocation
from cosim.core.types import Limits
from cosim.plugins.drivers import cia402
from cosim.plugins.drivers.cia402 import sdo
from cosim.plugins.drivers.common.motor import Rotor
from cosim.plugins.drivers.transport import CanFrame, CanParams
from tests.kit.clock import MS

NODE, COUNTS = 5, 4096


TURN = 2 * math.pi


class Rig:
    """One emulated drive in front of a rotor; time goes by `run` only."""

    def __init__(self, motor: Rotor | None = None, **wired) -> None:
        limits = Limits(*np.full((4, 1), np.inf))
        joint = cia402.JointParams(id=NODE, cpr=COUNTS, **wired)
        context = DriverContext(("elbow",), (joint,), limits, 1e-3, "effort", lambda *keys: SourceLocation("rig.yaml"))
        params = cia402.Params(bus=CanParams(interface="virtual", channel="x"))
        self.motor = motor or Rotor()
        self.emulator = cia402.emulate(params, context, [self.motor])
        self.t = 0
        self.heard: list[CanFrame] = []
        self.run(2)

    def run(self, ms: int, beat: bool = False) -> None:
        for _ in range(ms):
            self.t += MS
            self.motor.advance(1e-3)
            if beat:
                self.send(0x77F, "05")
            self.heard += self.emulator.process(self.t)

    def send(self, cob_id: int, data: str | bytes = b"") -> list[CanFrame]:
        data = bytes.fromhex(data) if isinstance(data, str) else data
        answers = self.emulator.handle(CanFrame(cob_id, data), self.t)
        self.heard += answers
        return answers

    def ask(self, request: bytes) -> bytes:
        answers = [f.data for f in self.send(0x600 + NODE, request) if f.id == 0x580 + NODE]
        assert len(answers) == 1
        return answers[0]

    def transfer(self, transfer: sdo.Transfer) -> bytes:
        request = next(transfer)
        while True:
            try:
                request = transfer.send(self.ask(request))
            except StopIteration as done:
                return done.value

    def read(self, index: int, sub: int = 0, kind: str = "I") -> int:
        return struct.unpack("<" + kind, self.transfer(sdo.upload(index, sub)))[0]

    def write(self, index: int, sub: int, kind: str, value: int) -> None:
        self.transfer(sdo.download(index, sub, struct.pack("<" + kind, value)))

    def refused(self, index: int, sub: int, kind: str, value: int) -> int:
        with pytest.raises(sdo.Aborted) as refused:
            self.write(index, sub, kind, value)
        return refused.value.code

    def control(self, *words: int) -> None:
        for word in words:
            self.write(0x6040, 0, "H", word)

    def code(self, request: str) -> int:
        """With which a request by SDO is refused."""
        answer = self.ask(bytes.fromhex(request))
        assert answer[0] == 0x80
        return struct.unpack("<I", answer[4:])[0]

    @property
    def status(self) -> int:
        return self.read(0x6041, kind="H")

    @property
    def state(self) -> int:
        """0x40: disabled, 0x21 to 0x27: on the way, 0x07: quick stop, 0x0F: reacting, 0x08: fault"""
        status = self.status
        return status & (0x4F if status & 0x4F in (0x40, 0x0F, 0x08) else 0x6F)

    @property
    def position(self) -> int:
        return self.read(0x6064, kind="i")

    def enable(self, mode: int) -> None:
        self.send(0, bytes((1, NODE)))
        self.write(0x6060, 0, "b", mode)
        self.control(6, 7, 15)
        assert self.state == 0x27

    def emergencies(self) -> list[int]:
        return [struct.unpack("<H", f.data[:2])[0] for f in self.heard if f.id == 0x80 + NODE]

    def count(self, cob_id: int, ms: int) -> int:
        """Frames with this identifier in this time."""
        self.heard.clear()
        self.run(ms)
        return sum(frame.id == cob_id for frame in self.heard)


def map_pdo(rig: Rig, index: int, cob_id: int, kind: int, *objects: int) -> None:
    rig.write(index, 1, "I", 0x80000000 | cob_id)
    rig.write(index + 0x200, 0, "B", 0)
    for k, mapped in enumerate(objects):
        rig.write(index + 0x200, k + 1, "I", mapped)
    rig.write(index + 0x200, 0, "B", len(objects))
    rig.write(index, 2, "B", kind)
    rig.write(index, 1, "I", cob_id)
