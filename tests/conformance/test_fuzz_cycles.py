"""Nonsense, changed traffic and bursts into the compiled cycles: nothing is read or written beyond the memory that is
theirs, what they measure is what the driver in Python measures of the same bytes, and where that driver finds a fault
they do not go on.

COSIM_FUZZ sets how many items there are, see `test_fuzz`.
"""

import ctypes
import faulthandler
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import chain
from typing import Any

import numpy as np
import pytest

from cosim.core.driver_contract import CycleOutcome
from cosim.plugins.drivers.common import compiled_driver
from cosim.plugins.drivers.common.node_driver import NodeDriver
from cosim.plugins.drivers.dynamixel import packet_link
from cosim.plugins.drivers.moteus import fdcanusb_link
from cosim.plugins.drivers.transport import CanFrame, byte_stream, can_socket, datagrams, now
from tests.kit.guarded_memory import GuardedNumpy

from .families import cases, load_cycle
from .test_fuzz import COUNT
from .two_engines import CanLine, TwoEngines, lines_for, silent_bench
from .wires import mutants, nonsense, through_checksums

COMPILED = [case for case in cases() if case.compiled]
ITEMS = COUNT // 40  # of each kind
OFTEN = 10  # items between two sound answers of all drives
BURSTS, BURST = 10, 150  # items at once, more than a link takes in one call
MEMORY = (compiled_driver, datagrams, can_socket, byte_stream, fdcanusb_link, packet_link)
# what a driver in Python keeps of a fault until it is enabled again, by family; a `NodeDriver` needs no entry
FORGET: dict[str, Callable[[Any], object]] = {
    "moteus": lambda driver: driver._fault.__init__([0] * len(driver.joints)),
    "mit": lambda driver: driver._on.__init__([not damiao for damiao in driver._damiao]),
    "cia402": lambda driver: driver._network.set_operational(True),
}


class Fuzzed:
    """Both engines on a line, and what their drives say when all is well."""

    def __init__(self, case: Any, driver: Any, line: Any, seen: dict[int, bytes]) -> None:
        self.case, self.driver, self.line = case, driver, line
        layout = driver._cycle_layout()
        self.frames = [each.frame._replace(data=seen[k]) for k, each in enumerate(layout.reception.frames) if k in seen]
        self.known = {each.frame.id for each in layout.reception.frames}
        self.sound = [line.wire(frame) for frame in self.frames]
        driver.interpreted.forget()  # what an earlier test has left
        self.engines = TwoEngines(driver, line)
        self.numbers = self.engines.cycle._received_numbers.copy()
        self.begin()

    def begin(self) -> None:
        """As after `enable`, with a sound answer of every drive."""
        if isinstance(self.driver, NodeDriver):
            self.driver._tripped = [0] * len(self.driver.joints)
        FORGET.get(self.case.family, lambda driver: None)(self.driver)
        self.engines.cycle._received_numbers[:] = self.numbers
        self.engines.cycle._received_frames["t_ns"] = now()
        self.put(self.sound)
        self.read()

    def put(self, items: list[bytes]) -> None:
        for item in items:
            self.line.put(item)

    def read(self) -> tuple[CycleOutcome, bool]:
        """(outcome of the compiled cycle, whether the driver in Python found a fault)."""
        outcome, error = self.engines.read()
        self.line.sent()
        return outcome, bool(error) or bool(self.engines.out.fault.any())

    def check(self, items: list[bytes], answered: bool = False) -> tuple[int, int]:
        """The same measurements of these, or a fault in both; (damaged frames in the compiled cycle, in Python).

        answered: they end with sound answers of all drives. Then the compiled cycle, which judges the last answers, may
        go on after a fault that came before: no drive recovers from one between two answers.
        """
        before = self.engines.counted()
        self.put(items)
        outcome, fault = self.read()
        after = self.engines.counted()
        if outcome is CycleOutcome.BUS_OFF:
            assert self.driver.link.lost
            self.driver.link._unusable, self.driver.link._lost, outcome = "", False, CycleOutcome.SUSPECT
        assert outcome in (CycleOutcome.NOMINAL, CycleOutcome.SUSPECT)
        if fault:
            assert answered or outcome is CycleOutcome.SUSPECT, items
        elif outcome is CycleOutcome.NOMINAL:
            assert self.engines.measured_alike(), items
        if fault or outcome is not CycleOutcome.NOMINAL:
            self.begin()
        return after[0] - before[0], after[1] - before[1]


@pytest.fixture(scope="module")
def each_line(case, tmp_path_factory) -> Iterator[Callable[[], Iterator[Fuzzed]]]:
    """The lines of a driver, whose tests have the same one."""
    memory = GuardedNumpy()
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for module in MEMORY:
            patch.setattr(module, "np", memory)
        load_cycle(case)
        driver, seen = stack.enter_context(silent_bench(case, tmp_path_factory.mktemp(str(case)), "effort"))
        stack.enter_context(np.errstate(over="ignore", invalid="ignore"))

        def lines() -> Iterator[Fuzzed]:
            for kind in lines_for(driver):
                line = kind(driver)
                try:
                    yield Fuzzed(case, driver, line, seen)
                finally:
                    line.close()
                assert memory.intact

        yield lines


compiled = pytest.mark.parametrize("case", COMPILED, ids=str, scope="module")


@compiled
def test_changed_frames_are_those_of_the_driver_in_python(case, each_line):
    for fuzzed in each_line():
        if not isinstance(fuzzed.line, CanLine):
            continue
        for k, frame in enumerate(mutants(1, fuzzed.frames, ITEMS)):
            if k % OFTEN == 0:
                fuzzed.check(fuzzed.sound)
            compiled, python = fuzzed.check([fuzzed.line.wire(_possible(frame))])
            assert compiled == python or (frame.id not in fuzzed.known and not compiled), frame


def _possible(frame: CanFrame) -> CanFrame:
    """With a length that a frame can have."""
    sizes = (*range(9), 12, 16, 20, 24, 32, 48, 64) if frame.fd else range(9)
    return frame._replace(data=frame.data[: max(size for size in sizes if size <= len(frame.data))])


@compiled
def test_changed_bytes_and_nonsense_are_those_of_the_driver_in_python(case, each_line):
    for fuzzed in each_line():
        if isinstance(fuzzed.line, CanLine) and not fuzzed.line.packed:
            continue  # the system makes the messages of raw sockets
        spoilt = chain(mutants(2, fuzzed.sound, ITEMS), nonsense(3, fuzzed.sound, ITEMS // 4))
        for k, data in enumerate(through_checksums(case, spoilt)):
            if k % OFTEN == 0:
                fuzzed.check(fuzzed.sound)
            fuzzed.check([data])


@compiled
def test_bursts_beyond_what_is_taken_at_once(case, each_line):
    for fuzzed in each_line():
        corpus = fuzzed.sound
        for seed in range(BURSTS):
            spoilt = list(mutants(10 + seed, corpus, BURST - len(corpus)))
            if isinstance(fuzzed.line, CanLine) and not fuzzed.line.packed:
                spoilt = corpus * (BURST // len(corpus) - 1)
            fuzzed.check([*spoilt, *corpus], answered=True)


@pytest.mark.parametrize("case", [c for c in COMPILED if c.line == "udp_multicast"], ids=str, scope="module")
def test_error_frames_are_counted_and_bus_off_ends_the_cycle(case, each_line):
    for fuzzed in each_line():
        fuzzed.driver.link.meter.errors = 0
        passive, off = (_error_frame(fuzzed.line, kind) for kind in (0x04, 0x40))
        fuzzed.put([passive, passive, *fuzzed.sound])
        assert fuzzed.read() == (CycleOutcome.NOMINAL, False)
        assert fuzzed.engines.cycle._record["errors"][0] == fuzzed.driver.link.meter.errors == 2
        fuzzed.put([off, *fuzzed.sound])
        assert fuzzed.read() == (CycleOutcome.BUS_OFF, True)
        assert fuzzed.driver.link.lost
        fuzzed.driver.link._unusable, fuzzed.driver.link._lost = "", False


def _error_frame(line: CanLine, kind: int) -> bytes:
    if not line.packed:
        return (kind | 0x20000000).to_bytes(4, "little") + b"\x08" + bytes(11)
    from can import Message
    from can.interfaces.udp_multicast.utils import pack_message

    return pack_message(Message(arbitration_id=kind, is_error_frame=True, data=bytes(8), is_extended_id=False))


@pytest.mark.parametrize("beyond", [-1, 0])
def test_what_leaves_its_memory_is_found(beyond):
    """One byte before an array, or behind it."""
    memory = GuardedNumpy()
    array = memory.zeros(5)
    address = array.ctypes.data + (array.nbytes if beyond == 0 else -1)
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        ctypes.memset(address, 0, 1)
        os._exit(0 if memory.intact else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == (-signal.SIGSEGV if beyond == 0 else 1)
