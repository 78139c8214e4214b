"""A connection in memory, on the fake clock: traffic between real drivers and emulated drives without waiting."""

import random
import re
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cosim.core.types import JointCommand, JointState
from cosim.execution.hardware.emulation.motors import EmulatedMotor
from cosim.plugins.drivers.transport import CanFrame, ConnectionLost, TrafficMeter
from cosim.rig.rig import Rig
from cosim.rig.sections.rig_spec import read_rig
from tests.kit.clock import MS, FakeClock
from tests.kit.connection import FakeConnection

from .families import JOINTS, WIRING, Case, addresses, rig, section, write_rig


class Wire(FakeConnection):
    """Both ends of a connection. sent: items of the host; answered: items of the drives."""

    name = "wire"

    def __init__(self, emulator: Any) -> None:
        super().__init__(FakeClock(time=10_000 * MS, reading=1000))  # so that polling makes progress
        self.emulator = emulator
        self.queue: deque[Any] = deque()
        self.sent: list[Any] = []
        self.answered: list[Any] = []

    def accept(self, ids: Any) -> None:
        """All frames are received."""

    def open(self) -> None:
        super().open()
        self.queue.clear()

    def send(self, item: Any, deadline_ns: int) -> None:
        if not self.is_open:
            raise ConnectionLost("the connection is not open", self.name)
        self.sent.append(item)
        self._arrive(self.emulator.handle(item, self.t_ns))

    def receive(self, deadline_ns: int) -> Any:
        if not self.is_open:
            raise ConnectionLost("the connection is not open", self.name)
        while not self.queue and self.t_ns < deadline_ns:
            self.step()
        if not self.queue:
            return None
        item = self.queue.popleft()
        return item._replace(t_ns=self.t_ns) if isinstance(item, CanFrame) else item

    def step(self) -> None:
        self.t_ns += MS
        self._arrive(self.emulator.process(self.t_ns))

    def _arrive(self, items: Sequence[Any]) -> None:
        self.answered += items
        self.queue.extend(items)


class Desk:
    """A driver and its emulated drives on a `Wire`; motors stand still whatever the request."""

    def __init__(self, case: Case, folder: Path, patch: Any, joints: int = len(JOINTS)) -> None:
        self.case, module = case, case.module
        data = rig(section(case, folder, watchdog=0.1), addresses(case))
        for name in JOINTS[joints:]:
            del data["drivers"][0]["joints"][name]
        spec = read_rig(write_rig(folder / "rig.yaml", data))
        params, (context,) = spec.drivers[0].plugin.params, Rig(spec, interpret=True).contexts.values()
        self.motors = [
            EmulatedMotor(0.1, 0.3, 40.0, 80.0, 24.0, 25.0, position=0.1 * how.get("ratio", 1.0))
            for how in WIRING[:joints]
        ]
        self.emulator = module.emulate(params, context, self.motors)
        self.wire = Wire(self.emulator)
        self.ends = module.host(params, context), module.device(params, context)  # of the real connection, not open
        patch.setattr(module, "host", lambda params, context: self.wire)
        for name, part in list(sys.modules.items()):
            if name.startswith(module.__name__) and hasattr(part, "now"):
                patch.setattr(part, "now", self.wire.now)
        self.driver = module.load(params, context)
        self.out = JointState.zeros(joints)
        self.emulator.reset(self.wire.t_ns)
        self.wire.step()

    def command(self, **fields: Any) -> JointCommand:
        """A command; default: hold the last measured positions without effort."""
        cmd = JointCommand.zeros(len(self.motors))
        cmd.position[:] = self.out.position
        for name, value in fields.items():
            getattr(cmd, name)[:] = value
        cmd.valid_until_ns = self.wire.t_ns + 1000 * MS
        return cmd

    def cycle(self, times: int = 1, **fields: Any) -> None:
        """Cycles of reading, and of commands if fields are given."""
        for _ in range(times):
            if fields:
                self.driver.write(self.command(**fields), self.wire.t_ns + 5 * MS)
            self.driver.read(self.out, self.wire.t_ns + 5 * MS)
            self.wire.step()

    def client(self) -> None:
        """A correct sequence of all calls that a program makes."""
        self.driver.open()
        self.cycle(3)
        assert self.out.t_ns and not self.out.fault.any()
        for mode in sorted(self.driver.modes):
            self.driver.enable(mode)
            self.cycle(5, position=self.out.position + 0.2, velocity=0.2, effort=0.05)
            assert not self.out.fault.any(), [
                self.driver.describe_fault(k, int(c)) for k, c in enumerate(self.out.fault)
            ]
            assert any(motor.requested for motor in self.motors)
            self.driver.stop()
            self.wire.step()
            assert not any(motor.requested for motor in self.motors)
        self.driver.close()

    @contextmanager
    def recorded(self) -> Iterator[tuple[list[Any], list[Any]]]:
        """(items of the host, items of the drives) during the block."""
        sent, answered = len(self.wire.sent), len(self.wire.answered)
        found: tuple[list[Any], list[Any]] = ([], [])
        yield found
        found[0].extend(self.wire.sent[sent:])
        found[1].extend(self.wire.answered[answered:])


class Tape:
    """A serial link in memory: `came` is to be read, `went` was written."""

    def __init__(self) -> None:
        self.name, self.meter = "tape", TrafficMeter()
        self.came: deque[bytes] = deque()
        self.went: list[bytes] = []

    def send(self, item: bytes, deadline_ns: int) -> None:
        self.went.append(item)

    def receive(self, deadline_ns: int) -> bytes | None:
        return self.came.popleft() if self.came else None


def distinct(items: Sequence[Any]) -> list[Any]:
    return list(dict.fromkeys(items))


# --- valid, mutated and random items -------------------------------------------------------------------------


def nonsense(seed: int, corpus: Sequence[Any], count: int) -> Iterator[Any]:
    """Items of the corpus' kind with random bytes; half of the frames have an identifier of the corpus."""
    dice = random.Random(seed)
    bits, pool = dice.getrandbits, dice.randbytes((1 << 16) + 64)
    if isinstance(corpus[0], bytes):
        for _ in range(count):
            r = bits(32)
            at = r & 0xFFFF
            yield pool[at : at + 1 + (r >> 16) % 24]
        return
    heads, fd = distinct([(item.id, item.extended) for item in corpus]), any(item.fd for item in corpus)
    lengths = (*range(9), 12, 16, 20, 24, 32, 48, 64) if fd else (*range(9), *range(2, 9))
    for _ in range(count):
        r = bits(64)
        at, kind, rest = r & 0xFFFF, r >> 20 & 3, r >> 24
        data = pool[at : at + lengths[r >> 16 & 15]]
        if kind < 2:
            id, extended = heads[rest % len(heads)]
            yield CanFrame(id, data, extended, fd, fd, rest & 0xF000 == 0)
        else:
            yield CanFrame(rest & (0x1FFFFFFF if kind == 2 else 0x7FF), data, kind == 2, fd, fd)


def through_checksums(case: Case, items: Iterator[Any]) -> Iterator[Any]:
    """The items, every second one with a valid checksum, as far as the family offers one."""
    repair = getattr(case.module, "with_valid_checksum", bytes)
    for k, item in enumerate(items):
        yield repair(item) if k % 2 and isinstance(item, bytes) else item


# in place of the numbers in lines of text
_NUMBERS = (
    *(b"1e999", b"-1e400", b"1e-999", b"nan", b"-inf", b"9" * 40, b"9" * 200, b"-1", b"-0", b"4294967296"),
    *(b"18446744073709551616", b"1_0", b"0x10", b"0.5", b"1e5", b"", b"\xb2", b"256", b"+3"),
)
_DIGITS = re.compile(rb"[-+.0-9]+(?:e[-+]?[0-9]+)?")
_PLACES = (0, 1, 0x7F, 0x80, 0xFE, 0xFF, 8, 10)


def mutants(seed: int, corpus: Sequence[Any], count: int, address: bool = True) -> Iterator[Any]:
    """Items of the corpus, most of them mutated; address: identifiers are mutated too."""
    dice = random.Random(seed)
    bits, size, framed = dice.getrandbits, len(corpus), isinstance(corpus[0], CanFrame)
    for _ in range(count):
        r = bits(80)
        item, how, r = corpus[(r & 0xFFFF) % size], r >> 16 & 15, r >> 20
        old = item.data if framed else item
        n = len(old)
        at = (r & 0xFFFF) % n if n else 0
        r >>= 16
        new = old
        if how < 7 and n:
            new = b"%b%c%b" % (old[:at], old[at] ^ 1 << (r & 7), old[at + 1 :])
        elif how < 9:
            new = b"%b%c%b" % (old[:at], r & 0xFF, old[at + 1 :])
        elif how == 9:
            new = b"%b%c%b" % (old[:at], _PLACES[r & 7], old[at + 1 :])
        elif how == 10:
            new = old[:at]
        elif how == 11:
            new = b"%b%c%b" % (old[:at], r & 0xFF, old[at:])
        elif how == 12:
            other = corpus[(r & 0xFFFF) % size]
            new = old[:at] + (other.data if framed else other)[at:]
        elif how == 14 and not framed and (found := list(_DIGITS.finditer(old))):
            one = found[at % len(found)]
            new = old[: one.start()] + _NUMBERS[(r & 0xFFFF) % len(_NUMBERS)] + old[one.end() :]
        elif how == 13:
            new = old[:at] + (r & 0xFFFFFFFF).to_bytes(4, "little") + old[at + 4 :]
        if not framed:
            yield new
            continue
        id, _, extended, fd, switched, remote, _ = item
        if address and how >= 14:
            id ^= 1 << (r & 15) % (29 if extended else 11)
            remote ^= not r & 0x700
        yield CanFrame(id, new[: 64 if fd else 8], extended, fd, switched, remote)
