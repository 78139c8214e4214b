"""What a compiled cycle sends is equal to the bit to what the driver in Python sends, for the same random commands and
the same random feedback; and what it measures is what that driver measures."""

from __future__ import annotations

import ctypes
import socket
import struct
from collections import deque
from typing import Any

import numpy as np
import pytest

from cosim.drivers.common.compiled_driver import CompiledDriver
from cosim.drivers.common.frame_layout import Kind, ReceivedFrame, Role, pack
from cosim.drivers.transport import CanFrame, now
from cosim.drivers.transport.can_socket import CanSocket
from cosim.drivers.transport.datagrams import RAW_CAN, SocketMemory
from cosim.types import COMMAND, FEEDBACK, CycleOutcome, JointCommand, JointState

from .families import Bench, cases

COMPILED = [case for case in cases() if case.compiled and case.line == "udp_multicast"]
MODES = ("effort", "velocity", "position")
ROUNDS = 2_000  # of a command to each of two drives
_CALL = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 4)
_EXTENDED, _REMOTE = 0x80000000, 0x40000000


class UnixSocket(CanSocket):
    """Linux' raw CAN frames on a pair of sockets of this process."""

    def __init__(self, descriptor: int) -> None:
        self._packed, self.descriptor = False, descriptor
        self._use(SocketMemory(descriptor, RAW_CAN))

    def count(self, traffic: Any, errors: int) -> None:
        """There is no bus."""


class Wires:
    """A driver that is on, its compiled cycle on one end of a socket, and what both send."""

    def __init__(self, driver: Any) -> None:
        self.driver, self.sent = driver, []
        driver.link.send = lambda item, deadline_ns: self.sent.append(item)
        driver.link.receive = lambda deadline_ns: self.coming.popleft() if self.coming else None
        self.coming: deque[CanFrame] = deque()
        ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.theirs.setblocking(False)
        self._ours, self.layout = ours, driver._cycle_layout()
        self.cycle = CompiledDriver(driver, self.layout, UnixSocket(ours.fileno()))

    def close(self) -> None:
        self._ours.close()
        self.theirs.close()

    def deliver(self, frame: CanFrame) -> None:
        """A frame from the drives, to both."""
        self.coming.append(frame._replace(t_ns=now()))
        word = frame.id | _EXTENDED * frame.extended
        self.theirs.send(struct.pack("=IBB2x", word, len(frame.data), 0) + frame.data.ljust(64, b"\0"))

    def both_sent(self) -> tuple[list[CanFrame], list[CanFrame]]:
        """(by the compiled cycle, by the driver in Python) since the last call; data frames."""
        compiled = []
        while True:
            try:
                message = self.theirs.recv(100)
            except BlockingIOError:
                break
            word, size, _ = struct.unpack_from("=IBB", message)
            if not word & _REMOTE:
                compiled.append(CanFrame(word & 0x1FFFFFFF, message[8 : 8 + size]))
        python, self.sent = [CanFrame(item.id, item.data) for item in self.sent if not item.remote], []
        return compiled, python

    def run(self, function: str, valid_until_ns: int) -> CycleOutcome:
        address = getattr(self.cycle, function)
        return CycleOutcome(_CALL(address)(self.cycle.context, now() + 10**8, valid_until_ns, 0))


def wild(generator: np.random.Generator, count: int) -> np.ndarray:
    """Numbers of all sizes, some of them 0."""
    numbers = generator.normal(size=count) * 10.0 ** generator.uniform(-6, 4, count)
    return np.where(generator.random(count) < 0.1, 0.0, numbers)


def measured(generator: np.random.Generator, received: ReceivedFrame, seen: bytes) -> CanFrame:
    """A frame as a drive that is on sends it, with other measurements."""
    numbers = np.zeros(64)
    keep = []
    for field in received.fields:
        if field.kind is Kind.FLOAT32:
            numbers[field.number] = np.float32(wild(generator, 1)[0])
        elif field.kind in (Kind.INT16, Kind.INT32):
            most = 2 ** (15 if field.kind is Kind.INT16 else 31)
            numbers[field.number] = generator.integers(-most, most)
        else:
            keep.append(field)
    fresh = tuple(field for field in received.fields if field not in keep)
    data = pack(_sent(received.frame._replace(data=seen), fresh), numbers)
    return received.frame._replace(data=data)


def _sent(frame: CanFrame, fields: tuple) -> Any:
    from cosim.drivers.common.frame_layout import SentFrame

    return SentFrame(frame, 0, fields)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", COMPILED, ids=str)
def test_what_is_sent_and_measured_is_equal_to_the_bit(case, tmp_path, mode):
    with Bench(case._replace(compiled=False), tmp_path) as bench:
        bench.driver.load_cycle()  # before its drives wait for commands
        driver = bench.open(mode)
        bench.drive(lambda: True)
        last = _last_frames(driver, bench)
        bench.emulation.stopped = True
        bench._thread.join()
        wires, generator, n = Wires(driver), np.random.default_rng(len(str(case))), len(driver.joints)
        out, cmd, frames = JointState.zeros(n), JointCommand.zeros(n), 0
        try:
            driver.write(bench.command(), now() + 10**9)  # from now on both expect answers
            wires.both_sent()
            wires.cycle._set(commanded=1)
            for _ in range(ROUNDS):
                for received in wires.layout.received:
                    if received.role is not Role.NOTICE or received.longest_silence_ns:
                        wires.deliver(measured(generator, received, last[received.frame.id]))
                driver.read(out, now())
                assert wires.run("read", 0) is CycleOutcome.NOMINAL
                for k, name in enumerate((*FEEDBACK, "temperature")):
                    assert np.array_equal(wires.cycle.states[:, k], getattr(out, name), equal_nan=True), name
                for k, name in enumerate(COMMAND):
                    values = wild(generator, n)
                    getattr(cmd, name)[:] = wires.cycle.commands[:, k] = np.abs(values) if name[0] == "k" else values
                cmd.valid_until_ns = now() + 10**10
                driver.write(cmd, now() + 10**9)
                assert wires.run("write", cmd.valid_until_ns) is CycleOutcome.NOMINAL
                compiled, python = wires.both_sent()
                assert compiled == python and compiled
                frames += len(compiled)
        finally:
            wires.close()
            for name in ("send", "receive"):
                delattr(driver.link, name)
        assert frames >= ROUNDS * n


def _last_frames(driver: Any, bench: Bench) -> dict[int, bytes]:
    """The last data of every frame that the drives send, by identifier."""
    seen: dict[int, bytes] = {}
    receive = driver.link.receive

    def listening(deadline_ns: int) -> CanFrame | None:
        item = receive(deadline_ns)
        if item is not None:
            seen[item.id] = item.data
        return item

    driver.link.receive = listening
    awaited = {
        received.frame.id
        for received in driver._cycle_layout().received
        if received.role is not Role.NOTICE or received.longest_silence_ns
    }
    for _ in bench.until(lambda: awaited <= seen.keys()):
        bench.write()
        bench.read()
    del driver.link.receive
    return seen
