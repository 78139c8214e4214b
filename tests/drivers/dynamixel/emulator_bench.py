"""Emulated Dynamixel drives with rotors, stepped by the test."""

from cosim.plugins.drivers.dynamixel import codec
from cosim.plugins.drivers.dynamixel import tables as t
from cosim.plugins.drivers.dynamixel.emulator import Emulator
from cosim.plugins.drivers.dynamixel.node import Node
from tests.drivers.dynamixel.conftest import rotor as made
from tests.kit.clock import MS

MODEL = t.MODELS["XM430-W350"]


class Bench:
    """Drives on a line, and time."""

    def __init__(self, *ids: int, model: t.ServoModel = MODEL) -> None:
        ids = ids or (1,)
        self.rotors = [made() for _ in ids]
        self.emulator = Emulator(
            [Node(id, model, model.effort(None), rotor) for id, rotor in zip(ids, self.rotors, strict=True)]
        )
        self.t_ns = 1000 * MS
        self.emulator.reset(self.t_ns)
        self.rotor = self.rotors[0]

    def say(self, data: bytes) -> list[codec.Packet]:
        return [p for answer in self.emulator.handle(data, self.t_ns) for p in codec.Decoder().feed(answer)]

    def ask(self, data: bytes) -> tuple[int, bytes]:
        """The error byte and the data of the one drive that answers."""
        [packet] = self.say(data)
        return packet.params[0], packet.params[1:]

    def read(self, register: t.Register, id: int = 1) -> int:
        error, data = self.ask(codec.read(id, register.address, register.size))
        assert error & ~codec.ALERT == 0
        return int.from_bytes(data, "little", signed=register.size == 4 or register == t.PRESENT_CURRENT)

    def write(self, register: t.Register, value: int, id: int = 1) -> int:
        return self.ask(codec.write(id, register.address, register.pack(value)))[0]

    def run(self, ms: int, feed: bool = False) -> None:
        for _ in range(ms):
            self.t_ns += MS
            for rotor in self.rotors:
                rotor.advance(1e-3)
            self.emulator.process(self.t_ns)
            if feed:
                self.say(codec.packet(codec.BROADCAST, codec.ACTION))

    def reads(self, *registers: t.Register) -> list[int]:
        return [self.read(register) for register in registers]

    def start(self, mode: int, **goals: int) -> None:
        """goals: registers of the table that are written then, by their names."""
        for register, value in ((t.OPERATING_MODE, mode), (t.GOAL_CURRENT, 0), (t.TORQUE_ENABLE, 1)):
            assert self.write(register, value) == 0
        for name, value in goals.items():
            self.write(getattr(t, name), value)
