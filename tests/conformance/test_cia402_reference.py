"""The package `canopen` as reference: its CiA 402 client commands emulated drives, its local node serves driver."""

from __future__ import annotations

import io
import math
import struct
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import canopen
import numpy as np
import pytest
import yaml
from canopen.profiles.p402 import BaseNode402

from cosim.core.driver_contract import DriverContext
from cosim.core.errors import SourceLocation
from cosim.core.types import JointCommand, JointState, Limits
from cosim.plugins.drivers import cia402
from cosim.plugins.drivers.cia402.profile import STATES
from cosim.plugins.drivers.transport import CanParams, now

from .families import Case, section
from .served import Served

PATIENCE, PATIENCE_NS = 30.0, 30_000_000_000  # s, for a machine that stalls
LONG = 60.0  # s, a watchdog that does not matter
NODE, COUNTS = 5, 4096
TYPES = {"I8": 2, "I16": 3, "I32": 4, "U8": 5, "U16": 6, "U32": 7, "TEXT": 9}  # by the numbers of CiA 301
OBJECTS = yaml.safe_load(Path(__file__).with_name("cia402_objects.yaml").read_text())


def dictionary() -> canopen.ObjectDictionary:
    """The table as an electronic data sheet, read by canopen."""
    lines = ["[DeviceInfo]", "VendorNumber=0", "[DeviceComissioning]", f"NodeID={NODE}"]
    lines += ["[OptionalObjects]", f"SupportedObjects={len(OBJECTS)}"]
    lines += [f"{k}=0x{index:04X}" for k, index in enumerate(OBJECTS, 1)]
    for index, (name, entries) in OBJECTS.items():
        if isinstance(entries, dict):
            lines += [f"[{index:04X}]", f"ParameterName={name}", "ObjectType=0x9", f"SubNumber={len(entries)}"]
        for sub, (kind, access, default) in entries.items() if isinstance(entries, dict) else [("", entries)]:
            lines += [
                f"[{index:04X}]" if sub == "" else f"[{index:04X}sub{sub:X}]",
                f"ParameterName={name} {sub}".strip(),
            ]
            lines += ["ObjectType=0x7", f"DataType=0x{TYPES[kind]:04X}", f"AccessType={access}"]
            lines += [f"DefaultValue={default}", "PDOMapping=1"]
    source = io.StringIO("\n".join(lines))
    source.name = "drive.eds"
    return canopen.import_od(source, NODE)


class Client(NamedTuple):
    """The client of the package, its node, which is pre-operational, and the drive behind it."""

    network: canopen.Network
    node: Any
    served: Served

    @property
    def drive(self) -> Any:
        return self.served.drives.nodes[0]


def connected(bus: dict[str, Any]) -> canopen.Network:
    network = canopen.Network()
    network.NOTIFIER_CYCLE = 0.01
    network.connect(**bus)
    return network


@pytest.fixture
def client(request, tmp_path: Path) -> Iterator[Client]:
    """Indirect parameter: the interface, by default `virtual`."""
    interface = getattr(request, "param", "virtual")
    bus: dict[str, Any] = {"interface": interface, "channel": str(tmp_path / "can")}
    more: dict[str, Any] = {"bitrate": 1e6, "sleep_after_open": 0} if interface == "slcan" else {}
    if interface == "udp_multicast":
        bus["channel"] = section(Case("cia402", interface), tmp_path)["bus"]["channel"]
    driver = {"type": "cia402", "bus": bus | ({"bitrate": 1e6} if interface == "slcan" else {})}
    with Served(tmp_path, driver, [{"id": NODE, "cpr": COUNTS}], each=0, idle=1) as served:
        network = connected(bus | more)
        node: Any = BaseNode402(NODE, dictionary())
        for name in ("SWITCH_STATE_SINGLE", "SWITCH_STATE_FINAL", "SWITCH_OP_MODE", "CHECK_TPDO"):
            setattr(node, f"TIMEOUT_{name}", PATIENCE)
        network.add_node(node)
        node.sdo.RESPONSE_TIMEOUT = PATIENCE
        node.nmt.state = "PRE-OPERATIONAL"
        yield Client(network, node, served)
        network.sync.stop()
        network.disconnect()


def map_for_402(client: Client, at_sync: bool = False) -> None:
    """Controlword and mode in, statusword, mode and position out at every SYNC, all by canopen.

    at_sync: the controlword is sent periodically and applied at SYNC, otherwise it is sent once and applied at once.
    """
    network, node = client.network, client.node
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
    network.sync.start(0.01)
    node.nmt.state = "OPERATIONAL"
    if at_sync:
        node.rpdo[1].start(0.01)


def until(seen: Callable[[], Any]) -> Any:
    """What is seen, once it is anything."""
    end = time.monotonic() + PATIENCE
    while not (found := seen()):
        assert time.monotonic() < end
        time.sleep(0.002)
    return found


def test_identity_and_name_by_sdo(client):
    node = client.node
    assert node.sdo[0x1000].raw == 0x00020192
    assert node.sdo[0x1018][2].raw == 0x402
    assert node.sdo[0x1008].raw == "emulated CiA 402 drive"  # segmented
    assert node.sdo[0x6502].raw == 0x3A5
    for refuse, code in (
        (lambda: node.sdo.download(0x1000, 0, bytes(4)), 0x06010002),
        (lambda: node.sdo.upload(0x5000, 0), 0x06020000),
    ):
        with pytest.raises(canopen.SdoAbortedError) as refused:
            refuse()
        assert refused.value.code == code
    node.sdo.download(0x6085, 0, struct.pack("<I", 777), force_segment=True)
    assert node.sdo[0x6085].raw == 777


@pytest.mark.parametrize("client", ["slcan"], indirect=True)
def test_services_that_the_drives_do_not_have(client):
    unknown = client.served.drives.unknown
    with pytest.raises(canopen.SdoAbortedError) as refused:
        client.node.sdo.open(0x1008, block_transfer=True).read()
    assert refused.value.code == 0x05040001
    client.network.lss.RESPONSE_TIMEOUT = 0.05
    client.network.lss.send_switch_state_global(client.network.lss.CONFIGURATION_STATE)
    with pytest.raises(canopen.lss.LssError):
        client.network.lss.inquire_node_id()
    assert unknown.count + len(client.served.shown) >= 2


@pytest.mark.parametrize("client", ["slcan"], indirect=True)
def test_node_guarding_heartbeat_and_boot_up(client):
    nmt, states = client.node.nmt, list[int]()
    assert client.node.sdo[0x1000].raw  # its answer follows the boot-up of the drive, which may still be on the line
    nmt.add_heartbeat_callback(states.append)
    nmt.start_node_guarding(0.005)
    try:
        for _ in range(3):
            assert nmt.wait_for_heartbeat(PATIENCE) == "PRE-OPERATIONAL"
    finally:
        nmt.stop_node_guarding()
    client.node.sdo[0x1017].raw = 20  # heartbeats in its place
    assert nmt.wait_for_heartbeat(PATIENCE) == "PRE-OPERATIONAL"
    assert set(states) == {127} and client.served.shown == []
    nmt.send_command(0x81)
    until(lambda: 0 in states)


def test_the_profile_client_enables_the_drive(client):
    map_for_402(client)
    node, (motor,) = client.node, client.served.motors
    node.op_mode = "PROFILED VELOCITY"
    assert node.op_mode == "PROFILED VELOCITY"
    node.state = "OPERATION ENABLED"
    assert node.state == "OPERATION ENABLED"
    node.sdo[0x60FF].raw = 2 * COUNTS
    until(lambda: abs(node.tpdo_values[0x6064]) >= COUNTS // 4)
    assert COUNTS // 4 <= node.tpdo_values[0x6064] <= motor.position / math.tau * COUNTS + 1
    node.state = "SWITCH ON DISABLED"
    assert motor.requested == 0.0


@pytest.mark.parametrize("at_sync", [False, True], ids=["at once", "at sync"])
def test_the_profile_client_changes_states_by_pdo_and_sync(client, at_sync):
    map_for_402(client, at_sync)
    try:
        client.node.op_mode = "CYCLIC SYNCHRONOUS TORQUE"
        assert client.node.op_mode == "CYCLIC SYNCHRONOUS TORQUE"
        goes_through(client, "READY TO SWITCH ON", "SWITCHED ON", "OPERATION ENABLED", "SWITCHED ON")
    finally:
        client.node.rpdo[1].stop()


def goes_through(client: Client, *states: str) -> None:
    for state in (*states, "SWITCH ON DISABLED"):
        client.node.state = state
        assert client.node.state == state and client.drive.state == STATES.index(state.lower())


@pytest.mark.parametrize("client", ["slcan", "udp_multicast"], indirect=True)
def test_states_are_changed_by_the_mapping_as_delivered(client):
    """On buses that other programs can reach."""
    node = client.node
    node.setup_402_state_machine()
    assert 0x6040 in node.rpdo_pointers and 0x6041 in node.tpdo_pointers
    node.nmt.state = "OPERATIONAL"
    until(lambda: node.tpdo_values[0x6041])
    if client.network.bus.__class__.__name__.startswith("Udp"):  # returns what is sent: a periodic PDO for the client
        node.rpdo[1].start(0.01)
    try:
        goes_through(client, "OPERATION ENABLED", "SWITCHED ON")
        goes_through(client, "OPERATION ENABLED")
    finally:
        node.rpdo[1].stop()


def test_the_profile_client_homes_the_drive(client):
    map_for_402(client)
    client.node.sdo[0x6098].raw = 35
    assert client.node.homing(timeout=PATIENCE)
    assert abs(client.node.sdo[0x6064].raw) < 5


def test_fault_emergency_and_reset(client):
    map_for_402(client)
    node, (motor,) = client.node, client.served.motors
    node.op_mode = "CYCLIC SYNCHRONOUS TORQUE"
    node.state = "OPERATION ENABLED"
    motor.fault_cause = "overcurrent"
    (active,) = until(lambda: node.emcy.active)
    assert (active.code, active.register) == (0x2310, 0x03)
    until(lambda: (node.check_statusword(), node.state == "FAULT")[1])
    assert node.sdo[0x603F].raw == 0x2310
    motor.fault_cause = ""
    node.reset_from_fault()
    assert node.state == "OPERATION ENABLED"
    assert node.emcy.active == []


# --- a drive of the package -----------------------------------------------------------------------------------


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


def test_the_driver_commands_a_local_node():
    bus = {"interface": "virtual", "channel": f"cia402-{uuid.uuid4()}"}
    wired = cia402.JointParams(id=NODE, cpr=COUNTS, velocity_unit="counts/s", vendor=0x9A, product=0x30924)
    limits = Limits(*(np.full(1, bound) for bound in (-np.inf, np.inf, 100.0, 1.0)))
    place = lambda *keys: SourceLocation("rig.yaml", 7, ".".join(keys))  # noqa: E731
    context = DriverContext(("elbow",), (wired,), limits, 0.002, "position", place)
    driver = cia402.load(cia402.Params(bus=CanParams(**bus), watchdog=LONG), context)
    network = connected(bus)
    device = Device(network)
    driver.open()
    try:
        assert device.get(0x6072) == 2000  # the guard's 1 N·m of 0.5 N·m rated
        out, command = JointState.zeros(1), JointCommand.zeros(1)
        driver.read(out, now() + PATIENCE_NS)
        assert out.position == pytest.approx(1000 / COUNTS * 2 * np.pi)
        driver.enable("position")
        assert device.node.sdo[0x1016][1].raw == 0x7F0000 + round(1e3 * LONG)
        assert (device.node.sdo[0x60C2][1].raw, device.node.sdo[0x60C2][2].raw) == (2, -3)
        command.position[:], command.velocity[:], command.effort[:] = np.pi, -1.0, 0.25
        command.valid_until_ns = now() + PATIENCE_NS
        beats = device.beats
        driver.write(command, now() + PATIENCE_NS)
        driver.read(out, now() + PATIENCE_NS)
        assert not out.fault.any()
        assert device.beats == beats + 1
        assert (device.get(0x607A), device.get(0x60B1), device.get(0x60B2)) == (2048, -652, 500)
        assert device.get(0x6041) == 0x27
        driver.stop()
        until(lambda: device.get(0x6041) == 0x40)
    finally:
        driver.close()
        network.disconnect()
    assert device.node.sdo[0x1016][1].raw == 0
    assert device.get(0x6072) == 3000
