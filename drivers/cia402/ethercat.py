"""CiA 402 over EtherCAT (CoE): a connection that takes the frames of CANopen and exchanges them with EtherCAT slaves.

CoE has the objects, the SDO services and the profile of CANopen, so that the driver is the same one. What differs:

    SDO                        in mailboxes: one call of pysoem for each transfer
    NMT                        the state machine of the application layer: PRE-OP, SAFE-OP, OP
    RPDO, SYNC, TPDO           the process data of all slaves in one datagram, exchanged at SYNC
    COB-ID, transmission type  assignment of the PDOs to the sync managers, 1C12h and 1C13h
    heartbeat of the host      watchdog of the output sync manager: process data are sent only with a heartbeat
    EMCY                       read from 603Fh when the statusword reports a fault

The id of a drive is its position on the segment, 1 for the first slave.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from types import ModuleType
from typing import Any, NamedTuple

from cosim.core.errors import InputError
from cosim.core.types import param, params
from cosim.plugins.drivers.cia402 import codec, profile, sdo
from cosim.plugins.drivers.transport import BaseConnection, CanFrame
from cosim.plugins.drivers.transport.connection import Locate

BITRATE = 100e6  # bit/s
OVERHEAD = 8 + 14 + 2 + 12 + 4 + 12  # bytes: preamble, Ethernet, EtherCAT, datagram, check sequence, gap
FORWARD_TIME = 1e-6  # s that a frame takes through a slave
EXCHANGE_US, STATE_US, SDO_US = 10_000, 500_000, 50_000  # at most
FACTORY_WATCHDOG = 100  # ms
CONSUMER, PRODUCER, ERROR_CODE = 0x101601, 0x101700, 0x603F00
RECEIVE, TRANSMIT, RECEIVE_MAPS, TRANSMIT_MAPS = 0x14, 0x18, 0x16, 0x1A  # the upper byte of their indices
ASSIGNMENT = {RECEIVE: (0x1C12, 0x1600), TRANSMIT: (0x1C13, 0x1A00)}
MAX_EMERGENCIES = 8
INPUT_MANAGER = 0x818  # register: start and length of the input process data


@params
class EthercatParams:
    """A network interface with EtherCAT slaves."""

    interface: str = param(doc="eth0, an interface for this alone")

    @property
    def name(self) -> str:
        """The name of the segment in messages."""
        return f"EtherCAT on {self.interface}"

    @property
    def bitrate(self) -> float:
        """bit/s"""
        return BITRATE


class ProcessData(NamedTuple):
    """What one cycle exchanges, as frames of CANopen. Their data are in one datagram."""

    out: Sequence[CanFrame]
    back: Sequence[CanFrame]
    slaves: int

    def load(self, params: EthercatParams, period: float) -> float:
        """The fraction of the cycle that the exchange takes."""
        data = sum(len(frame.data) for frame in (*self.out, *self.back))
        return (8 * (OVERHEAD + data) / BITRATE + 2 * self.slaves * FORWARD_TIME) / period


class EthercatLink(BaseConnection[CanFrame]):
    """The program's end of a segment, through pysoem."""

    def __init__(self, params: EthercatParams, nodes: Sequence[int], locate: Locate) -> None:
        super().__init__(params.name, locate)
        self._interface, self._nodes = params.interface, tuple(nodes)
        self._pysoem: ModuleType | None = None
        self._master: Any = None
        self._reset()

    def _reset(self) -> None:
        self._frames: deque[CanFrame] = deque()
        self._outputs: dict[int, dict[int, bytes]] = {node: {} for node in self._nodes}
        self._assigned: dict[tuple[int, int], set[int]] = {}  # node and direction -> numbers of the PDOs
        self._lengths: dict[tuple[int, int], int] = {}  # node and number of a TPDO -> bits of each mapped object
        self._started: set[int] = set()
        self._upload: dict[int, bytes] = {}  # rest of a segmented upload
        self._fed = self._mapped = self._operational = False
        self._faulty: set[int] = set()

    # --- connection ------------------------------------------------------------------------------------

    def _connect(self) -> None:
        place = self._locate("interface")
        try:
            import pysoem
        except ImportError:
            raise InputError("EtherCAT needs pysoem: pip install 'cosim[ethercat]'", place) from None
        self._reset()
        pysoem.settings.always_release_gil = True
        self._pysoem, self._master = pysoem, pysoem.Master()
        self._master.sdo_read_timeout = self._master.sdo_write_timeout = SDO_US
        try:
            self._master.open(self._interface)
            found = self._master.config_init()
        except Exception as error:
            self._disconnect()
            what = f"cannot open '{self._interface}' for EtherCAT: {error}"
            raise InputError(f"{what}; check its name, and run with the privilege for raw sockets", place) from error
        if found < 1:
            self._disconnect()
            what = f"no EtherCAT slave answers on '{self._interface}'; check its cable and the power of the drives"
            raise InputError(what, place)

    def _disconnect(self) -> None:
        master, self._master = self._master, None
        if master is not None:
            master.close()

    def send(self, item: CanFrame, deadline_ns: int) -> None:
        """A frame of CANopen. SYNC exchanges the process data; transfers and changes of state wait for their end."""
        if self._unusable:
            raise self._unusable_error()
        node, data = item.id & 0x7F, item.data
        self.meter.sent(8 * len(data))
        if item.id == codec.SYNC_ID:
            self._exchange(deadline_ns)
        elif item.id == codec.NMT:
            self._command(data[0], data[1])
        elif codec.HEARTBEAT <= item.id < codec.HEARTBEAT + 0x80:
            self._fed = True
        elif node in self._outputs and item.id & ~0x7F == codec.SDO_REQUEST:
            self._serve(node, data)
        elif node in self._outputs:
            self._outputs[node][(item.id - codec.RPDO) // codec.PDO_STRIDE] = data

    def receive(self, deadline_ns: int) -> CanFrame | None:
        """See `Connection`. Nothing comes unasked: an exchange has ended when it was sent."""
        if self._unusable:
            raise self._unusable_error()
        if self._frames:
            return self._frames.popleft()
        if (rest := deadline_ns - self.now()) > 0:
            time.sleep(rest * 1e-9)
        return None

    def _put(self, id: int, data: bytes) -> None:
        self.meter.received(8 * len(data))
        self._frames.append(CanFrame(id, data, t_ns=self.now()))

    def _slave(self, node: int) -> Any:
        """None if the segment has no such slave."""
        return self._master.slaves[node - 1] if node <= len(self._master.slaves) else None

    # --- states ----------------------------------------------------------------------------------------

    def _command(self, command: int, node: int) -> None:
        assert self._pysoem is not None
        if command == codec.PRE_OPERATIONAL:
            self._started.clear()
            self._operational = False
            if self._mapped:  # SOEM maps a segment once: the second mapping would need further FMMUs
                self._mapped = False
                self._master.config_init()
            self._change(self._pysoem.PREOP_STATE)
        elif command == codec.START and self._slave(node) is not None:
            self._started.add(node)
            if self._started >= {n for n in self._nodes if self._slave(n) is not None} and not self._operational:
                self._start()

    def _start(self) -> None:
        """To SAFE-OP and OP, without an output; again after an attempt that failed."""
        assert self._pysoem is not None
        master = self._master
        if not self._mapped:
            self._map()
        self._change(self._pysoem.SAFEOP_STATE)
        for node in self._nodes:
            if (slave := self._slave(node)) is not None:
                slave.output = bytes(len(slave.output))
        master.send_processdata()
        master.receive_processdata(EXCHANGE_US)
        self._operational = self._change(self._pysoem.OP_STATE)

    def _map(self) -> None:
        """Assign the PDOs to the sync managers, and these to the datagram of the segment."""
        for node in self._nodes:
            for direction, (index, first) in ASSIGNMENT.items():
                pdos = [first + number for number in sorted(self._assigned.get((node, direction), ()))]
                with suppress(Exception):
                    self._assign(self._slave(node), index, pdos)
        self._mapped = True
        with suppress(Exception):  # a drive that refuses its process data stays silent, and is named
            self._master.config_map()

    def _change(self, state: int) -> bool:
        """To a state of the application layer; errors are acknowledged. Whether all slaves have reached it."""
        assert self._pysoem is not None
        master = self._master
        master.read_state()
        for slave in master.slaves:
            if slave.state & self._pysoem.STATE_ERROR:
                slave.state = (slave.state & 0xF) + self._pysoem.STATE_ACK
                slave.write_state()
        master.state = state
        master.write_state()
        return master.state_check(state, STATE_US) == state

    @staticmethod
    def _assign(slave: Any, index: int, pdos: list[int]) -> None:
        slave.sdo_write(index, 0, b"\0")
        for k, pdo in enumerate(pdos, 1):
            slave.sdo_write(index, k, pdo.to_bytes(2, "little"))
        slave.sdo_write(index, 0, bytes((len(pdos),)))

    # --- process data ----------------------------------------------------------------------------------

    def _exchange(self, deadline_ns: int) -> None:
        """Outputs are sent only with a heartbeat: they feed the watchdogs; inputs alone are read from each slave."""
        master, fed, self._fed = self._master, self._fed, False
        complete = False
        if fed and self._operational:
            for node, pdos in self._outputs.items():
                if (slave := self._slave(node)) is not None and pdos:
                    self._set_output(slave, b"".join(pdos[number] for number in sorted(pdos)))
            master.send_processdata()
            timeout = min(max((deadline_ns - self.now()) // 1000, 100), EXCHANGE_US)
            complete = master.receive_processdata(timeout) == master.expected_wkc
        for node in self._nodes if self._started else ():
            if (slave := self._slave(node)) is not None:
                self._take(node, bytes(slave.input) if complete else self._inputs(slave))

    @staticmethod
    def _set_output(slave: Any, data: bytes) -> None:
        """A drive that was too slow to state its process data has no memory for them, which nobody else checks: it gets
        none and does not switch on."""
        if len(slave.output) == len(data):
            slave.output = data

    @staticmethod
    def _inputs(slave: Any) -> bytes:
        """The input process data of one slave; empty without an answer."""
        with suppress(Exception):
            manager = slave._fprd(INPUT_MANAGER, 4)
            return slave._fprd(int.from_bytes(manager[:2], "little"), int.from_bytes(manager[2:], "little"))
        return b""

    def _take(self, node: int, data: bytes) -> None:
        """The TPDOs in the inputs of a drive."""
        numbers = sorted(self._assigned.get((node, TRANSMIT), ()))
        sizes = [self._size(node, number) for number in numbers]
        if not data or sum(sizes) != len(data):
            return
        for number, size in zip(numbers, sizes, strict=True):
            self._put(codec.TPDO + number * codec.PDO_STRIDE + node, data[:size])
            data = data[size:]
            if number == 0:
                self._watch(node, int.from_bytes(self._frames[-1].data[:2], "little"))

    def _size(self, node: int, number: int) -> int:
        return sum(bits for (n, key), bits in self._lengths.items() if n == node and key >> 8 == number) // 8

    def _watch(self, node: int, status: int) -> None:
        """The emergency of a drive that begins to report a fault."""
        if not status & profile.FAULTY:
            self._faulty.discard(node)
        elif node not in self._faulty:
            self._faulty.add(node)
            for _ in range(MAX_EMERGENCIES):  # one that is in the mailbox is raised in place of the answer
                with suppress(Exception):
                    code = int.from_bytes(self._slave(node).sdo_read(ERROR_CODE >> 8, 0), "little")
                    self._frames.append(codec.emergency(node, code, 1))
                    return

    # --- SDO -------------------------------------------------------------------------------------------

    def _serve(self, node: int, request: bytes) -> None:
        """The answer to an SDO request; none from a drive that does not answer."""
        assert self._pysoem is not None
        command, index, sub = sdo.HEAD.unpack_from(request)
        try:
            answer = self._answer(node, request, command & sdo.KIND, index, sub)
        except self._pysoem.SdoError as error:
            answer = sdo.abort(index, sub, error.abort_code)
        except Exception:  # a time-out, or no such slave
            return
        self._put(codec.SDO_ANSWER + node, answer)

    def _answer(self, node: int, request: bytes, kind: int, index: int, sub: int) -> bytes:
        slave = self._slave(node)
        if kind == sdo.SEGMENT_UP:
            piece, self._upload[node] = self._upload[node][:7], self._upload[node][7:]
            return sdo.segment(sdo.SEGMENT_UP_ANSWER, request[0] & sdo.TOGGLE, piece, not self._upload[node])
        if kind == sdo.DOWNLOAD:
            self._write(node, slave, index << 8 | sub, sdo.expedited_data(request))
            return sdo.plain(sdo.DOWNLOAD_ANSWER, index, sub)
        data = slave.sdo_read(index, sub) if index << 8 | sub != CONSUMER else bytes(4)  # the sync manager has one
        if index >> 8 == TRANSMIT_MAPS and sub and data:  # of a drive with its own process data
            self._lengths[node, (index & 0xFF) << 8 | sub] = data[0]
        if 1 <= len(data) <= 4:
            return sdo.expedited(sdo.UPLOAD_ANSWER, index, sub, data)
        self._upload[node] = data
        return sdo.sized(sdo.UPLOAD_ANSWER, index, sub, len(data))

    def _write(self, node: int, slave: Any, key: int, data: bytes) -> None:
        """Write an object; those that only CANopen has are here."""
        value, group, number = int.from_bytes(data, "little"), key >> 16, key >> 8 & 0xFF
        if key == CONSUMER:
            slave.set_watchdog("processdata", value & 0xFFFF or FACTORY_WATCHDOG)
        elif group in ASSIGNMENT and key & 0xFF == 1:
            assigned = self._assigned.setdefault((node, group), set())
            (assigned.discard if value >> 31 else assigned.add)(number)
            if value >> 31 and group == RECEIVE:
                self._outputs[node].pop(number, None)
        elif key != PRODUCER and group not in ASSIGNMENT:
            if group == TRANSMIT_MAPS:
                own = (node, number << 8 | key & 0xFF)
                if key & 0xFF:
                    self._lengths[own] = value & 0xFF
                elif not value:
                    self._lengths = {k: v for k, v in self._lengths.items() if (k[0], k[1] >> 8) != (node, number)}
            slave.sdo_write(key >> 8, key & 0xFF, data)
