"""Simulated EtherCAT slaves with the profile CiA 402 on a raw socket: datagrams, SII EEPROM, state machine, mailbox,
CoE SDO, FMMUs, process data and watchdog. Behind each of them is the emulated CANopen drive.

Source: ETG.1000.4 (registers, datagrams), ETG.1000.6 (state machine, CoE), ETG.2010 (SII).
"""

import json
import select
import socket
import struct
import sys
from contextlib import suppress
from typing import TextIO

from cosim.plugins.drivers.cia402 import codec, sdo
from cosim.plugins.drivers.cia402.device import network
from cosim.plugins.drivers.cia402.device.node import Node
from cosim.plugins.drivers.cia402.params import EmulatedParams
from cosim.plugins.drivers.common.motor import Rotor
from cosim.plugins.drivers.transport import CanFrame, now

ETHERTYPE = 0x88A4
APRD, APWR, APRW, FPRD, FPWR, FPRW, BRD, BWR, BRW, LRD, LWR, LRW, ARMW, FRMW = range(1, 15)
# of which memory is read, or written
READS = {APRD, APRW, FPRD, FPRW, BRD, BRW, LRD, LRW}
WRITES = {APWR, APRW, FPWR, FPRW, BWR, BRW, LWR, LRW}
INIT, PREOP, BOOT, SAFEOP, OP, ERROR = 1, 2, 3, 4, 8, 0x10
STATION, DL_STATUS, AL_CONTROL, AL_STATUS, AL_CODE = 0x10, 0x110, 0x120, 0x130, 0x134
WD_DIVIDER, WD_TIME, EEPROM_CONTROL, EEPROM_ADDRESS, EEPROM_DATA = 0x400, 0x420, 0x502, 0x504, 0x508
FMMU, SM = 0x600, 0x800
MAILBOX_OUT, MAILBOX_IN, MAILBOX_SIZE = 0x1000, 0x1080, 0x80
OUTPUTS, INPUTS = 0x1100, 0x1180
COE, ERROR_WATCHDOG, ERROR_STATE = 3, 0x1B, 0x11


def sii(vendor: int, product: int) -> bytes:
    """The EEPROM: identity, mailboxes, categories general, FMMU and sync managers."""
    words = bytearray(b"\0" * 0x80)
    struct.pack_into("<IIII", words, 0x10, vendor, product, 1, 1)
    struct.pack_into("<HHHHH", words, 0x30, MAILBOX_OUT, MAILBOX_SIZE, MAILBOX_IN, MAILBOX_SIZE, 1 << 2)
    struct.pack_into("<HH", words, 0x7C, 0x0F, 1)

    def category(kind: int, data: bytes) -> bytes:
        data += b"\0" * (len(data) % 2)
        return struct.pack("<HH", kind, len(data) // 2) + data

    general = bytearray(32)
    general[5] = 0x01  # CoE: SDO
    syncs = b"".join(
        struct.pack("<HHBBBB", start, size, control, 0, 1, kind)
        for start, size, control, kind in (
            (MAILBOX_OUT, MAILBOX_SIZE, 0x26, 1),
            (MAILBOX_IN, MAILBOX_SIZE, 0x22, 2),
            (OUTPUTS, 0, 0x64, 3),
            (INPUTS, 0, 0x20, 4),
        )
    )
    body = category(30, bytes(general)) + category(40, bytes((1, 2, 3, 0))) + category(41, syncs)
    return bytes(words) + body + b"\xff" * 64


class Slave:
    """An EtherCAT slave controller and a drive."""

    def __init__(self, node: Node, last: bool) -> None:
        self.node, self.mute = node, False
        self._eeprom = sii(*node.identity)
        self._last = last
        self.restart()

    def restart(self) -> None:
        """The power is switched on."""
        self.node.restart(now())
        self.memory = memory = bytearray(0x2000)
        memory[0:10] = struct.pack("<BBHBBBBH", 0x11, 0, 2, 4, 4, 8, 0x0F, 0)
        struct.pack_into("<H", memory, DL_STATUS, 0x5610 if self._last else 0x5A30)
        struct.pack_into("<H", memory, AL_STATUS, INIT)
        struct.pack_into("<H", memory, WD_DIVIDER, 2498)
        struct.pack_into("<H", memory, WD_TIME, 1000)
        self._answers: list[bytes] = []
        self._count = 0  # of the mailbox
        self._assigned = {0x1C12: [0x1600], 0x1C13: [0x1A00]}
        self._output_ns = 0

    # --- datagrams ---------------------------------------------------------------------------------

    def datagram(self, command: int, adp: int, ado: int, data: bytearray, fresh: bytes) -> tuple[int, int]:
        """(address as it leaves, working counter to add); data are changed. fresh: as they came from the master."""
        if command in (LRD, LWR, LRW):
            return adp, self._logical(command, adp | ado << 16, data, fresh)
        if command in (APRD, APWR, APRW, ARMW):
            mine, adp = adp == 0, (adp + 1) & 0xFFFF
        elif command in (FPRD, FPWR, FPRW, FRMW):
            mine = adp == self._word(STATION)
        else:
            mine, adp = True, (adp + 1) & 0xFFFF
        if not mine:
            return adp, 0
        count = 0
        size = min(len(data), len(self.memory) - ado)
        new = bytes(data)
        if command in READS and size > 0:
            found = self.memory[ado : ado + size]
            data[:size] = bytes(a | b for a, b in zip(data, found, strict=False)) if command in (BRD, BRW) else found
            count += 1
            self._after_read(ado, size)
        if command in WRITES and size > 0:
            self._write(ado, new[:size])
            count += 2 if command in READS else 1
        return adp, count

    def _logical(self, command: int, address: int, data: bytearray, fresh: bytes) -> int:
        count = 0
        for k in range(4):
            start, length, _, _, physical, _, kind, active = struct.unpack_from("<IHBBHBBB", self.memory, FMMU + 16 * k)
            low, high = max(start, address), min(start + length, address + len(data))
            if not active & 1 or low >= high:
                continue
            here, there = slice(low - address, high - address), slice(physical + low - start, physical + high - start)
            if kind & 2 and command in WRITES:
                self.memory[there] = fresh[here]
                count += 2 if command == LRW else 1
                self._outputs()
        for k in range(4):
            start, length, _, _, physical, _, kind, active = struct.unpack_from("<IHBBHBBB", self.memory, FMMU + 16 * k)
            low, high = max(start, address), min(start + length, address + len(data))
            if active & 1 and low < high and kind & 1 and command in READS:
                data[low - address : high - address] = self.memory[physical + low - start : physical + high - start]
                count += 1
        return count

    def _word(self, address: int) -> int:
        return int.from_bytes(self.memory[address : address + 2], "little")

    def _after_read(self, ado: int, size: int) -> None:
        start, length = self._word(SM + 8), self._word(SM + 10)
        if length and ado <= start + length - 1 < ado + size and self.memory[SM + 13] & 8:
            self.memory[SM + 13] &= ~8
            self._post()

    def _write(self, ado: int, data: bytes) -> None:
        read_only = ado < STATION or AL_STATUS <= ado < AL_STATUS + 6 or ado == DL_STATUS
        if read_only:
            return
        self.memory[ado : ado + len(data)] = data
        if ado <= AL_CONTROL < ado + len(data):
            self._control(self._word(AL_CONTROL))
        elif ado <= EEPROM_CONTROL < ado + len(data):
            self._read_eeprom()
        start, length = self._word(SM), self._word(SM + 2)
        if length and ado <= start + length - 1 < ado + len(data) and self.state >= PREOP:
            self._mailbox(bytes(self.memory[start : start + length]))

    def _read_eeprom(self) -> None:
        command = self._word(EEPROM_CONTROL)
        if command & 0x0700 == 0x0100:
            at = 2 * int.from_bytes(self.memory[EEPROM_ADDRESS : EEPROM_ADDRESS + 4], "little")
            self.memory[EEPROM_DATA : EEPROM_DATA + 8] = self._eeprom[at : at + 8].ljust(8, b"\xff")
        struct.pack_into("<H", self.memory, EEPROM_CONTROL, 0x0040)

    # --- states -----------------------------------------------------------------------------------------

    @property
    def state(self) -> int:
        return self._word(AL_STATUS) & 0xF

    def _set_state(self, state: int, error: int = 0) -> None:
        struct.pack_into("<H", self.memory, AL_STATUS, state | (ERROR if error else 0))
        struct.pack_into("<H", self.memory, AL_CODE, error)

    def _control(self, value: int) -> None:
        """The AL state machine (ETG.1000.6, 6.4.1): one step up at a time, any number of steps down."""
        wanted, now_in = value & 0xF, self.state
        failed = self._word(AL_STATUS) & ERROR
        if failed and not value & ERROR and wanted >= now_in:
            return
        steps = {INIT: PREOP, PREOP: SAFEOP, SAFEOP: OP}
        if wanted > now_in and steps.get(now_in) != wanted:
            return self._set_state(now_in, ERROR_STATE)
        if wanted == SAFEOP and now_in == PREOP:
            self._configure()
        if wanted <= PREOP < now_in:
            self._nmt(codec.PRE_OPERATIONAL)
        if wanted == OP:
            self._output_ns = now()
        self._set_state(wanted)
        if wanted == SAFEOP:
            self._synchronise()  # its inputs are valid from here on

    def _configure(self) -> None:
        """The drive's PDOs, as assigned, are valid at every exchange; its watchdog is the sync manager's."""
        for index, base, kind in ((0x1C12, codec.RPDO, 0x140000), (0x1C13, codec.TPDO, 0x180000)):
            for number in range(4):
                assigned = (0x1600 if kind == 0x140000 else 0x1A00) + number in self._assigned[index]
                cob_id = base + number * codec.PDO_STRIDE + self.node.id | (0 if assigned else 0x80000000)
                key = kind + (number << 8)
                self._sdo(key + 2, (1).to_bytes(1, "little"))
                self._sdo(key + 1, (cob_id | 0x40000000 * (kind == 0x180000)).to_bytes(4, "little"))
        self._sdo(0x101601, (126 << 16 | max(1, self.watchdog_ns // 1_000_000)).to_bytes(4, "little"))
        self._nmt(codec.START)

    @property
    def watchdog_ns(self) -> int:
        return (self._word(WD_DIVIDER) + 2) * 40 * self._word(WD_TIME)

    def process(self, t_ns: int) -> None:
        network.process(self.node, t_ns)
        if self.state in (SAFEOP, OP):
            self._synchronise()
        emergencies = [f for f in self.node.outbox if f.id == codec.EMCY + self.node.id]
        self.node.outbox = []
        for frame in emergencies:
            self._answer(struct.pack("<H", 1 << 12) + frame.data)
        if self.state == OP and self.watchdog_ns and t_ns - self._output_ns > self.watchdog_ns:
            self._set_state(SAFEOP, ERROR_WATCHDOG)

    # --- process data -----------------------------------------------------------------------------------

    def _receive(self, frame: CanFrame) -> list[CanFrame]:
        kept, self.node.outbox = self.node.outbox, []
        network.receive(self.node, frame, now())
        found, self.node.outbox = self.node.outbox, kept
        return found

    def _nmt(self, command: int) -> None:
        self._receive(codec.nmt(command, self.node.id))

    def _outputs(self) -> None:
        if self.state != OP:
            return
        self._output_ns = now()
        self._receive(codec.heartbeat(126, codec.RUNNING))
        place = self._word(SM + 16)
        for number, size in self._sizes(0x1C12):
            data = bytes(self.memory[place : place + size])
            self._receive(CanFrame(codec.RPDO + number * codec.PDO_STRIDE + self.node.id, data))
            place += size
        self._synchronise()

    def _synchronise(self) -> None:
        place, frames = self._word(SM + 24), {frame.id: frame.data for frame in self._receive(codec.SYNC)}
        for number, size in self._sizes(0x1C13):
            data = frames.get(codec.TPDO + number * codec.PDO_STRIDE + self.node.id, b"").ljust(size, b"\0")
            self.memory[place : place + size] = data
            place += size

    def _sizes(self, index: int) -> list[tuple[int, int]]:
        """(number of the PDO, its bytes) of the assigned ones."""
        found = []
        for pdo in self._assigned[index]:
            n = self.node.value(pdo << 8)
            found.append((pdo & 0xFF, sum(self.node.value((pdo << 8) + 1 + k) & 0xFF for k in range(n)) // 8))
        return found

    # --- mailbox ----------------------------------------------------------------------------------------

    def _mailbox(self, data: bytes) -> None:
        length, _, _, kind = struct.unpack_from("<HHBB", data)
        if kind & 0xF != COE or length < 10:
            return
        (service,) = struct.unpack_from("<H", data, 6)
        request = data[8 : 6 + length]
        if service >> 12 == 2:
            answer = self._serve(request)
            self._answer(struct.pack("<H", (2 if answer[0] == sdo.ABORT else 3) << 12) + answer)

    def _answer(self, body: bytes) -> None:
        self._count = self._count % 7 + 1
        self._answers.append(struct.pack("<HHBB", len(body), 0, 0, COE | self._count << 4) + body)
        self._post()

    def _post(self) -> None:
        if self._answers and not self.memory[SM + 13] & 8:
            start, length = self._word(SM + 8), self._word(SM + 10)
            self.memory[start : start + length] = self._answers.pop(0).ljust(length, b"\0")
            self.memory[SM + 13] |= 8

    def _serve(self, request: bytes) -> bytes:
        """The SDO answer to a CoE SDO request."""
        command, index, sub = sdo.HEAD.unpack_from(request)
        key = index << 8 | sub
        try:
            if command & sdo.KIND == sdo.UPLOAD:
                data = self._sdo(key)
                if len(data) <= 4:
                    return sdo.expedited(sdo.UPLOAD_ANSWER, index, sub, data)
                return sdo.sized(sdo.UPLOAD_ANSWER, index, sub, len(data)) + data
            if command & sdo.KIND == sdo.DOWNLOAD:
                data = sdo.expedited_data(request) if command & 2 else request[8:]
                self._sdo(key, data)
                return sdo.plain(sdo.DOWNLOAD_ANSWER, index, sub)
            raise sdo.Aborted(sdo.COMMAND_UNKNOWN)
        except sdo.Aborted as error:
            return sdo.abort(index, sub, error.code)

    def _sdo(self, key: int, data: bytes | None = None) -> bytes:
        """Read or write an object. EtherCAT's are here, all others in the drive."""
        index, sub = key >> 8, key & 0xFF
        if index == 0x1C00 and data is None:
            return bytes(((4, 1, 2, 3, 4)[sub],)) if sub < 5 else self._absent()
        if index in self._assigned:
            return self._assign(index, sub, data)
        if index & ~3 in (0x1600, 0x1A00) and data is not None and not self.node.settings.fixed_maps:
            number = key - 0x20000 & ~0xFF | 1  # PDO invalid while it is mapped, as on CANopen
            word = int.from_bytes(self._drive(number), "little")
            self._drive(number, (word | 0x80000000).to_bytes(4, "little"))
        return self._drive(key, data)

    def _absent(self) -> bytes:
        raise sdo.Aborted(sdo.NO_SUBINDEX)

    def _assign(self, index: int, sub: int, data: bytes | None) -> bytes:
        pdos = self._assigned[index]
        if data is None:
            if sub > len(pdos):
                return self._absent()
            return pdos[sub - 1].to_bytes(2, "little") if sub else bytes((len(pdos),))
        if self.state != PREOP:
            raise sdo.Aborted(sdo.WRONG_STATE)
        value = int.from_bytes(data, "little")
        if sub:
            pdos[sub - 1 : sub] = [value]
        else:
            del pdos[value:]
        return b""

    def _drive(self, key: int, data: bytes | None = None) -> bytes:
        steps = sdo.upload(key >> 8, key & 0xFF) if data is None else sdo.download(key >> 8, key & 0xFF, data)
        request = next(steps)
        while True:
            frames = self._receive(CanFrame(codec.SDO_REQUEST + self.node.id, request))
            (frame,) = (frame for frame in frames if frame.id == codec.SDO_ANSWER + self.node.id)
            try:
                request = steps.send(frame.data)
            except StopIteration as done:
                return done.value or b""


class Segment:
    """Slaves at one end of an Ethernet link, with a rotor each. In a process of its own: pysoem holds the lock of the
    interpreter while it waits for a frame."""

    def __init__(self, interface: str, nodes: list[Node], rotors: list[Rotor]) -> None:
        """Raises PermissionError without the privilege for raw sockets."""
        self.slaves = [Slave(node, k == len(nodes) - 1) for k, node in enumerate(nodes)]
        self._rotors = rotors
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE))
        self._socket.bind((interface, 0))
        self._socket.settimeout(5e-4)

    def restart(self) -> None:
        """Motors at rest where they began, and the power is switched on."""
        for k, (slave, rotor) in enumerate(zip(self.slaves, self._rotors, strict=True), 1):
            rotor.position, rotor.velocity, rotor.fault_cause = 0.1 * k, 0.0, ""
            slave.mute = False
            slave.restart()

    def serve(self, commands: TextIO, answers: TextIO) -> None:
        """Until the commands end; each is a line, and is answered by a line."""
        due = now()
        while True:
            with suppress(TimeoutError):
                frame, address = self._socket.recvfrom(1600)
                if address[2] != socket.PACKET_OUTGOING:
                    self._socket.send(self.answer(frame))
            while now() >= due:
                due = max(due + 1_000_000, now() - 20_000_000)
                for rotor in self._rotors:
                    rotor.advance(1e-3)
                for slave in self.slaves:
                    slave.process(now())
            if select.select([commands], [], [], 0)[0]:
                line = commands.readline()
                if not line:
                    return
                print(json.dumps(self._execute(*line.split())), file=answers, flush=True)

    def _execute(self, word: str, k: str, value: str) -> object:
        rotor = self._rotors[int(k)]
        if word == "mute":
            self.slaves[int(k)].mute = value == "1"
        elif word == "fault":
            rotor.fault_cause = value.strip("-")
        elif word == "restart":
            self.restart()
        return {"position": rotor.position, "velocity": rotor.velocity, "effort": rotor.effort}

    def answer(self, frame: bytes) -> bytes:
        """The frame as it comes back."""
        found, at = bytearray(frame), 16
        while True:
            command, _, adp, ado, size, _ = struct.unpack_from("<BBHHHH", found, at)
            more, size = size & 0x8000, size & 0x7FF
            begin, end = at + 10, at + 10 + size
            data, fresh = found[begin:end], bytes(found[begin:end])
            counter = int.from_bytes(found[end : end + 2], "little")
            for slave in self.slaves:
                if not slave.mute:
                    adp, added = slave.datagram(command, adp, ado, data, fresh)
                    counter += added
            struct.pack_into("<H", found, at + 2, adp)
            found[begin:end] = data
            struct.pack_into("<H", found, end, counter & 0xFFFF)
            at = end + 2
            if not more:
                return bytes(found)


def main(interface: str, count: str, settings: str = "{}") -> None:
    """settings: of the emulated drives, as JSON."""
    settings_of = EmulatedParams(**json.loads(settings))
    rotors = [Rotor() for _ in range(int(count))]
    nodes = [Node(k, rotor, 65536, None, (0x5555, 0x10 + k), None, settings_of) for k, rotor in enumerate(rotors, 1)]
    segment = Segment(interface, nodes, rotors)
    segment.restart()
    print("ready", flush=True)
    segment.serve(sys.stdin, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
