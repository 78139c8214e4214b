"""The package `canopen` as a reference: its CiA 402 client commands the emulator, its local node serves the driver."""

from __future__ import annotations

import io
import socket
import struct
import threading
import time
import uuid
from typing import Any, ClassVar

import can
import canopen
import numpy as np
import pytest
from canopen.profiles.p402 import BaseNode402

from cosim.drivers import cia402
from cosim.drivers.cia402.profile import STATES
from cosim.drivers.common.motor import Rotor
from cosim.drivers.transport import CanFrame, CanParams, now
from cosim.errors import SourceLocation
from cosim.types import DriverContext, JointCommand, JointState, Limits

pytestmark = pytest.mark.real_time

NODE, COUNTS = 5, 4096
U8, U16, U32, I8, I16, I32, TEXT = 0x05, 0x06, 0x07, 0x02, 0x03, 0x04, 0x09
# index -> name and (sub-index, type, access, default); sub-index None: a variable
RECORDS: dict[int, tuple[str, list[tuple[int | None, int, str, int | str]]]] = {
    0x1000: ("Device type", [(None, U32, "ro", 0x00020192)]),
    0x1001: ("Error register", [(None, U8, "ro", 0)]),
    0x1008: ("Device name", [(None, TEXT, "const", "a drive of the canopen package")]),
    0x1016: ("Consumer heartbeat", [(0, U8, "ro", 1), (1, U32, "rw", 0)]),
    0x1017: ("Producer heartbeat", [(None, U16, "rw", 0)]),
    0x1018: (
        "Identity",
        [(0, U8, "ro", 4), (1, U32, "ro", 0x9A), (2, U32, "ro", 0x30924), *((k, U32, "ro", 1) for k in (3, 4))],
    ),
    0x1029: ("Error behaviour", [(0, U8, "ro", 1), (1, U8, "rw", 0)]),
    **{
        index + n: (f"{kind} {n + 1}", [(0, U8, "ro", 2), (1, U32, "rw", cob + 0x100 * n + NODE), (2, U8, "rw", 255)])
        for index, kind, cob in ((0x1400, "RPDO", 0x200), (0x1800, "TPDO", 0x40000180))
        for n in range(4)
    },
    **{
        index + n: (f"mapping {index + n:X}", [(0, U8, "rw", 0), *((k, U32, "rw", 0) for k in range(1, 9))])
        for index in (0x1600, 0x1A00)
        for n in range(4)
    },
    **{
        index: (name, [(None, kind, "rww" if access == "rw" else access, default)])
        for index, name, kind, access, default in (
            (0x6007, "Abort connection option", I16, "rw", 1),
            (0x603F, "Error code", U16, "ro", 0),
            (0x6040, "Controlword", U16, "rw", 0),
            (0x6041, "Statusword", U16, "ro", 0x40),
            (0x605A, "Quick stop option", I16, "rw", 2),
            (0x605E, "Fault reaction option", I16, "rw", 2),
            (0x6060, "Mode", I8, "rw", 0),
            (0x6061, "Mode display", I8, "ro", 0),
            (0x6064, "Position", I32, "ro", 1000),
            (0x606C, "Velocity", I32, "ro", 0),
            (0x6071, "Target torque", I16, "rw", 0),
            (0x6072, "Max torque", U16, "rw", 3000),
            (0x6076, "Rated torque", U32, "ro", 500),
            (0x6077, "Torque", I16, "ro", 0),
            (0x607A, "Target position", I32, "rw", 0),
            (0x6080, "Max motor speed", U32, "rw", 6000),
            (0x6085, "Quick stop deceleration", U32, "rw", 100000),
            (0x6098, "Homing method", I8, "rw", 0),
            (0x60B1, "Velocity offset", I32, "rw", 0),
            (0x60B2, "Torque offset", I16, "rw", 0),
            (0x60FF, "Target velocity", I32, "rw", 0),
            (0x6502, "Supported modes", U32, "ro", 0x3A0),
        )
    },
    0x60C2: ("Interpolation time", [(0, U8, "ro", 2), (1, U8, "rw", 1), (2, I8, "rw", -3)]),
}


def dictionary() -> canopen.ObjectDictionary:
    """The table as an electronic data sheet, read by canopen."""
    lines = ["[DeviceInfo]", "VendorNumber=0", "[DeviceComissioning]", f"NodeID={NODE}"]
    lines += ["[OptionalObjects]", f"SupportedObjects={len(RECORDS)}"]
    lines += [f"{k}=0x{index:04X}" for k, index in enumerate(RECORDS, 1)]
    for index, (name, entries) in RECORDS.items():
        single = entries[0][0] is None
        if not single:
            lines += [f"[{index:04X}]", f"ParameterName={name}", "ObjectType=0x9", f"SubNumber={len(entries)}"]
        for sub, kind, access, default in entries:
            lines += [f"[{index:04X}]" if single else f"[{index:04X}sub{sub:X}]"]
            lines += [f"ParameterName={name}{'' if single else f' {sub}'}", "ObjectType=0x7", f"DataType=0x{kind:04X}"]
            lines += [f"AccessType={access}", f"DefaultValue={default}", "PDOMapping=1"]
    source = io.StringIO("\n".join(lines))
    source.name = "drive.eds"
    return canopen.import_od(source, NODE)


def context(mode: str, **wired) -> DriverContext:
    limits = Limits(*(np.full(1, bound) for bound in (-np.inf, np.inf, 100.0, 1.0)))
    joint = cia402.JointParams(id=NODE, **wired)
    return DriverContext(
        ("elbow",), (joint,), limits, 0.002, mode, lambda *keys: SourceLocation("rig.yaml", 7, ".".join(keys))
    )


@pytest.fixture
def channel():
    return f"cia402-{uuid.uuid4()}"


@pytest.fixture
def bus(request, channel) -> dict[str, Any]:
    """Keys of python-can's buses; indirect parameter: the interface."""
    interface = getattr(request, "param", "virtual")
    if interface == "virtual":
        return {"interface": interface, "channel": channel}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:  # so that no other test hears it
        free.bind(("", 0))
        return {"interface": interface, "channel": "239.74.14.9", "port": free.getsockname()[1]}


@pytest.fixture
def network(bus):
    network = canopen.Network()
    network.NOTIFIER_CYCLE = 0.01
    network.connect(**bus)
    yield network
    network.sync.stop()
    network.disconnect()


class Served:
    """The emulated drive in a thread of its own, on a bus of python-can."""

    def __init__(self, bus: dict[str, Any]) -> None:
        params = cia402.Params(bus=CanParams(interface=bus["interface"], channel=bus["channel"]))
        self.motor = Rotor()
        self.emulator = cia402.emulate(params, context("effort", cpr=COUNTS), [self.motor])
        self._bus = can.Bus(**bus)
        self._leave = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        before = now()
        while not self._leave.is_set():
            message = self._bus.recv(0.0005)
            t_ns = now()
            if message is not None:
                frame = CanFrame(message.arbitration_id, bytes(message.data), remote=message.is_remote_frame)
                self._send(self.emulator.handle(frame, t_ns))
            while t_ns - before >= 1_000_000:
                before += 1_000_000
                self.motor.advance(1e-3)
                self._send(self.emulator.process(before))

    def _send(self, frames: list[CanFrame]) -> None:
        for frame in frames:
            self._bus.send(can.Message(arbitration_id=frame.id, data=frame.data, is_extended_id=False))

    def close(self) -> None:
        self._leave.set()
        self._thread.join()
        self._bus.shutdown()


@pytest.fixture
def served(bus, network):
    served = Served(bus)
    yield served
    served.close()


@pytest.fixture
def node(network, served):
    node = BaseNode402(NODE, dictionary())
    network.add_node(node)
    node.nmt.state = "PRE-OPERATIONAL"
    return node


def map_for_402(network, node, at_sync: bool = False) -> None:
    """Controlword and mode in, statusword, mode and position out at every SYNC, all by canopen.

    at_sync: the controlword is sent periodically and applied at SYNC, otherwise it is sent once and applied at once.
    """
    for pdo, names in ((node.rpdo[1], (0x6040, 0x6060)), (node.tpdo[1], (0x6041, 0x6061, 0x6064))):
        pdo.read()
        pdo.clear()
        for index in names:
            pdo.add_variable(index)
        pdo.enabled = True
        pdo.trans_type = 1
        pdo.save()
    if not at_sync:
        node.rpdo[1].trans_type = 255
        node.rpdo[1].save()
    node.nmt.state = "PRE-OPERATIONAL"
    node.setup_402_state_machine(read_pdos=False)
    network.unsubscribe(node.rpdo[1].cob_id)  # udp_multicast brings back what is sent: canopen would call it periodic
    network.sync.start(0.01)
    node.nmt.state = "OPERATIONAL"
    if at_sync:
        node.rpdo[1].start(0.01)


def test_identity_and_name_by_sdo(node):
    assert node.sdo[0x1000].raw == 0x00020192
    assert node.sdo[0x1018][2].raw == 0x402
    assert node.sdo[0x1008].raw == "emulated CiA 402 drive"  # segmented
    assert node.sdo[0x6502].raw == 0x3A5
    with pytest.raises(canopen.SdoAbortedError) as refused:
        node.sdo.download(0x1000, 0, bytes(4))
    assert refused.value.code == 0x06010002
    with pytest.raises(canopen.SdoAbortedError) as refused:
        node.sdo.upload(0x5000, 0)
    assert refused.value.code == 0x06020000
    node.sdo.download(0x6085, 0, struct.pack("<I", 777), force_segment=True)
    assert node.sdo[0x6085].raw == 777


def test_boot_up_and_heartbeat(node):
    node.sdo[0x1017].raw = 20
    assert node.nmt.wait_for_heartbeat(2.0) == "PRE-OPERATIONAL"
    node.nmt.send_command(0x81)
    node.nmt.wait_for_bootup(2.0)


def test_the_profile_client_enables_the_emulator(network, node, served):
    map_for_402(network, node)
    node.op_mode = "PROFILED VELOCITY"
    assert node.op_mode == "PROFILED VELOCITY"
    node.state = "OPERATION ENABLED"
    assert node.state == "OPERATION ENABLED"
    node.sdo[0x60FF].raw = 2 * COUNTS
    deadline = time.monotonic() + 2.0
    while abs(node.tpdo_values[0x6064]) < COUNTS // 4 and time.monotonic() < deadline:
        node.tpdo[1].wait_for_reception(0.2)
    assert COUNTS // 4 <= node.tpdo_values[0x6064] <= served.motor.position / (2 * np.pi) * COUNTS + 1
    node.state = "SWITCH ON DISABLED"
    assert served.motor.effort == 0.0


@pytest.mark.parametrize("at_sync", [False, True], ids=["at once", "at sync"])
@pytest.mark.parametrize("bus", ["virtual", "udp_multicast"], indirect=True)
def test_the_profile_client_changes_states_by_pdo_and_sync(network, node, served, at_sync):
    node.TIMEOUT_SWITCH_STATE_SINGLE = node.TIMEOUT_SWITCH_STATE_FINAL = node.TIMEOUT_SWITCH_OP_MODE = 5.0
    node.TIMEOUT_CHECK_TPDO = 2.0  # for a machine that stalls
    map_for_402(network, node, at_sync)
    try:
        node.op_mode = "CYCLIC SYNCHRONOUS TORQUE"
        assert node.op_mode == "CYCLIC SYNCHRONOUS TORQUE"
        for state in ("READY TO SWITCH ON", "SWITCHED ON", "OPERATION ENABLED", "SWITCHED ON", "SWITCH ON DISABLED"):
            node.state = state
            assert node.state == state
            assert served.emulator.nodes[0].state == STATES.index(state.lower())
    finally:
        node.rpdo[1].stop()


def test_the_profile_client_homes_the_emulator(network, node):
    map_for_402(network, node)
    node.sdo[0x6098].raw = 35
    assert node.homing(timeout=3.0)
    assert abs(node.sdo[0x6064].raw) < 5


def test_fault_emergency_and_reset(network, node, served):
    map_for_402(network, node)
    node.op_mode = "CYCLIC SYNCHRONOUS TORQUE"
    node.state = "OPERATION ENABLED"
    served.motor.fault_cause = "overcurrent"
    deadline = time.monotonic() + 2.0
    while not node.emcy.active and time.monotonic() < deadline:
        node.check_statusword()
    assert (node.emcy.active[0].code, node.emcy.active[0].register) == (0x2310, 0x03)
    node.check_statusword()
    assert node.state == "FAULT"
    assert node.sdo[0x603F].raw == 0x2310
    served.motor.fault_cause = ""
    node.reset_from_fault()
    assert node.state == "OPERATION ENABLED"
    assert node.emcy.active == []


class Device:
    """A drive made of canopen's local node: its SDO server and object dictionary, and a minimal state machine."""

    STATES: ClassVar = {0x06: 0x21, 0x07: 0x23, 0x0F: 0x27, 0x00: 0x40}

    def __init__(self, network: canopen.Network) -> None:
        self.node = network.create_node(NODE, dictionary())
        self.network, self.received, self.beats = network, {}, 0
        self.node.add_write_callback(self._written)
        for n in range(2):
            network.subscribe(0x200 + 0x100 * n + NODE, self._hear)
        network.subscribe(0x80, self._synchronise)
        network.subscribe(0x77F, self._beat)

    def get(self, index: int) -> int:
        return self.node.sdo[index].raw

    def put(self, index: int, value: int) -> None:
        self.node.sdo[index].raw = value

    def _written(self, index, subindex, od, data) -> None:
        if index == 0x6040:
            self.put(0x6041, self.STATES.get(data[0], 0x40))
        elif index == 0x6060:
            self.put(0x6061, struct.unpack("b", data)[0])

    def _hear(self, cob_id, data, timestamp) -> None:
        self.received[cob_id] = bytes(data)

    def _beat(self, cob_id, data, timestamp) -> None:
        self.beats += data == b"\x05"

    def _mapped(self, group: int):
        for n in range(4):
            cob_id = self.node.sdo[group + n][1].raw
            if not cob_id & 0x80000000 and self.node.sdo[group + n][2].raw == 1:
                objects = [
                    self.node.sdo[group + 0x200 + n][k + 1].raw for k in range(self.node.sdo[group + 0x200 + n][0].raw)
                ]
                yield cob_id & 0x7FF, [(o >> 16, (o & 0xFF) // 8) for o in objects]

    def _synchronise(self, cob_id, data, timestamp) -> None:
        if self.node.nmt.state != "OPERATIONAL":
            return
        for identifier, objects in self._mapped(0x1400):
            data = self.received.pop(identifier, None)
            for index, size in objects if data else ():
                self.node.set_data(index, 0, data[:size])
                data = data[size:]
        for identifier, objects in self._mapped(0x1800):
            self.network.send_message(identifier, b"".join(self.node.get_data(index, 0) for index, _ in objects))


@pytest.fixture
def device(network):
    return Device(network)


def opened(channel: str, mode: str, **wired):
    ctx = context(mode, **wired)
    return cia402.load(cia402.Params(bus=CanParams(interface="virtual", channel=channel)), ctx)


def test_the_driver_commands_a_local_node(channel, device):
    driver = opened(channel, "position", cpr=COUNTS, velocity_unit="counts/s", vendor=0x9A, product=0x30924)
    driver.open()
    try:
        assert device.get(0x6072) == 2000  # the guard's 1 N·m of 0.5 N·m rated
        out, command = JointState.zeros(1), JointCommand.zeros(1)
        driver.read(out, now() + 500_000_000)
        assert out.position == pytest.approx(1000 / COUNTS * 2 * np.pi)
        driver.enable("position")
        assert device.node.sdo[0x1016][1].raw == 0x7F0064
        assert (device.node.sdo[0x60C2][1].raw, device.node.sdo[0x60C2][2].raw) == (2, -3)
        command.position[:], command.velocity[:], command.effort[:] = np.pi, -1.0, 0.25
        command.valid_until_ns = now() + 1_000_000_000
        beats = device.beats
        driver.write(command, now() + 500_000_000)
        driver.read(out, now() + 500_000_000)
        assert not out.fault.any()
        assert device.beats == beats + 1
        assert (device.get(0x607A), device.get(0x60B1), device.get(0x60B2)) == (2048, -652, 500)
        assert device.get(0x6041) == 0x27
        driver.stop()
        deadline = time.monotonic() + 2.0
        while device.get(0x6041) != 0x40 and time.monotonic() < deadline:
            time.sleep(0.005)
        assert device.get(0x6041) == 0x40
    finally:
        driver.close()
    assert device.node.sdo[0x1016][1].raw == 0
    assert device.get(0x6072) == 3000


def test_the_driver_names_another_product(channel, device):
    from cosim.errors import InputError

    driver = opened(channel, "effort", cpr=COUNTS, product=0x1)
    with pytest.raises(InputError) as refused:
        driver.open()
    assert str(refused.value) == (
        "rig.yaml:7 joints.elbow.id: node 5 'a drive of the canopen package' is of product 0x30924, expected 0x1;"
        " check the id"
    )
