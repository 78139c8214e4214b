"""The manufacturer's own packages as clients of the emulated drives, over a real pseudo terminal."""

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import dynamixel_sdk as sdk
import numpy as np
import pytest
from dynamixel_easy_sdk import Connector, DxlRuntimeError, OperatingMode

from cosim.drivers import dynamixel
from cosim.drivers.common.motor import Rotor
from cosim.drivers.dynamixel import codec
from cosim.drivers.dynamixel.emulator import Emulator
from cosim.drivers.dynamixel.node import FIRMWARE
from cosim.drivers.transport import ConnectionLost, now
from cosim.errors import SourceLocation
from cosim.types import DriverContext, JointCommand, JointState, Limits

pytestmark = pytest.mark.real_time

BAUD = 1_000_000
IDS = (1, 2, 7)
STEP_NS = 1_000_000

OPERATING_MODE, TORQUE, PROFILE_ACCELERATION, PROFILE_VELOCITY = 11, 64, 108, 112
VELOCITY_TRAJECTORY, POSITION_TRAJECTORY = 136, 140
LED, HARDWARE_ERROR, GOAL_CURRENT, GOAL_POSITION = 65, 70, 102, 116
PRESENT_POSITION, PRESENT_TEMPERATURE = 132, 146


class Line(NamedTuple):
    """The emulated side, served by a thread."""

    params: dynamixel.Params
    context: DriverContext
    emulator: Emulator
    rotors: list[Rotor]


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Line]:
    # the SDK gives an answer 34 ms and spins meanwhile, which keeps the emulator's thread from running
    monkeypatch.setattr("dynamixel_sdk.port_handler.LATENCY_TIMER", 1000)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    n = len(IDS)
    params = dynamixel.Params(port=dynamixel.SerialSettings(port=str(tmp_path / "dxl"), baudrate=BAUD), watchdog=2.0)
    context = DriverContext(
        tuple(f"j{id}" for id in IDS),
        tuple(dynamixel.JointParams(id=id) for id in IDS),
        Limits(np.full(n, -2.0), np.full(n, 2.0), np.full(n, 4.0), np.full(n, 3.0)),
        0.01,
        "effort",
        lambda *keys: SourceLocation("rig.yaml", 1, ".".join(keys)),
    )
    rotors = [Rotor(inertia=1e-2, friction=1e-2) for _ in IDS]
    for k, rotor in enumerate(rotors):
        rotor.max_velocity, rotor.position = 5.0, 0.1 * (k + 1)
    emulator = dynamixel.emulate(params, context, rotors)
    device = dynamixel.device(params, context)
    device.open()
    over = threading.Event()

    def serve() -> None:
        done = now()
        emulator.reset(done)
        while not over.is_set():
            try:
                chunk = device.receive(done + STEP_NS)
                for answer in emulator.handle(chunk, now()) if chunk else ():
                    device.send(answer, now() + 100_000_000)
            except ConnectionLost:
                return
            while done + STEP_NS <= now():
                done += STEP_NS
                for rotor in rotors:
                    rotor.advance(STEP_NS * 1e-9)
                emulator.process(done)

    thread = threading.Thread(target=serve)
    thread.start()
    yield Line(params, context, emulator, rotors)
    over.set()
    thread.join()
    device.close()
    sys.setswitchinterval(interval)


class Client(NamedTuple):
    """The manufacturer's SDK."""

    port: sdk.PortHandler
    packets: sdk.Protocol2PacketHandler


@pytest.fixture
def client(line: Line) -> Iterator[Client]:
    port = sdk.PortHandler(line.params.port.port)
    assert port.setBaudRate(BAUD)
    yield Client(port, sdk.Protocol2PacketHandler())
    port.closePort()


DONE = (sdk.COMM_SUCCESS, 0)


def within(seconds: float, done: Callable[[], bool]) -> bool:
    deadline = now() + round(seconds * 1e9)
    while not done():
        if now() > deadline:
            return False
    return True


def counts(position: float) -> int:
    return round(position * 4096 / (2 * np.pi))


def test_ping(client: Client) -> None:
    port, packets = client
    assert packets.ping(port, 7) == (1020, *DONE)
    assert packets.broadcastPing(port) == ({id: [1020, FIRMWARE] for id in IDS}, sdk.COMM_SUCCESS)


def test_read_and_write(client: Client) -> None:
    port, packets = client
    assert packets.read2ByteTxRx(port, 1, 0) == (1020, *DONE)
    assert packets.read4ByteTxRx(port, 2, PRESENT_POSITION) == (counts(0.2), *DONE)
    assert packets.write1ByteTxRx(port, 1, LED, 1) == DONE
    assert packets.read1ByteTxRx(port, 1, LED) == (1, *DONE)
    assert packets.write1ByteTxRx(port, 1, LED, 2) == (sdk.COMM_SUCCESS, 4)
    assert packets.write2ByteTxRx(port, 1, 0, 5) == (sdk.COMM_SUCCESS, 7)
    assert packets.write2ByteTxRx(port, 1, GOAL_POSITION, 5) == (sdk.COMM_SUCCESS, 5)
    assert packets.write4ByteTxRx(port, 1, GOAL_POSITION, 5000) == (sdk.COMM_SUCCESS, 6)


def test_profile_and_factory_reset(client: Client, line: Line) -> None:
    port, packets = client
    for address, write, value in (
        (OPERATING_MODE, packets.write1ByteTxRx, 3),
        (TORQUE, packets.write1ByteTxRx, 1),
        (PROFILE_ACCELERATION, packets.write4ByteTxRx, 20),
        (PROFILE_VELOCITY, packets.write4ByteTxRx, 200),
        (GOAL_POSITION, packets.write4ByteTxRx, 3000),
    ):
        assert write(port, 1, address, value) == DONE
    seen: list[int] = []

    def arrived() -> bool:
        seen.append(packets.read4ByteTxRx(port, 1, VELOCITY_TRAJECTORY)[0])
        return packets.read4ByteTxRx(port, 1, POSITION_TRAJECTORY)[0] == 3000

    assert within(5.0, arrived) and 150 < max(seen) <= 200  # 0.64 s of acceleration
    assert packets.factoryReset(port, 1, 1) == DONE  # all but the id
    assert packets.read1ByteTxRx(port, 1, TORQUE) == (0, *DONE)
    assert packets.write1ByteTxRx(port, 1, OPERATING_MODE, 1) == DONE
    assert packets.factoryReset(port, 1, 0xFF) == DONE
    assert packets.read1ByteTxRx(port, 1, OPERATING_MODE) == (3, *DONE)
    assert packets.factoryReset(port, 7, 2) == DONE
    assert packets.ping(port, 7) == (1020, *DONE)


def test_bytes_that_must_be_stuffed(client: Client) -> None:
    port, packets = client
    # this version of the SDK drops what it stuffed when it sends, and unstuffs what it receives
    port.writePort(codec.write(1, 224, b"\xff\xff\xfd\0"))
    assert packets.writeTxRx(port, 2, LED, 1, [1]) == DONE
    assert packets.readTxRx(port, 1, 224, 4) == ([0xFF, 0xFF, 0xFD, 0], *DONE)


def test_registered_write(client: Client) -> None:
    port, packets = client
    assert packets.regWriteTxRx(port, 1, LED, 1, [1]) == DONE
    assert packets.read1ByteTxRx(port, 1, LED) == (0, *DONE)
    assert packets.action(port, 1) == sdk.COMM_SUCCESS
    acknowledged = codec.status(1, 0)  # the SDK does not wait for the answer to Action
    assert within(1.0, lambda: port.getBytesAvailable() >= len(acknowledged))
    assert port.readPort(100) == acknowledged
    assert packets.read1ByteTxRx(port, 1, LED) == (1, *DONE)


@pytest.mark.parametrize("fast", [False, True])
def test_several_drives_at_once(client: Client, fast: bool) -> None:
    port, packets = client
    goals = sdk.GroupSyncWrite(port, packets, GOAL_CURRENT, 2)
    bulk = sdk.GroupBulkWrite(port, packets)
    for id in IDS:
        assert goals.addParam(id, [id, 1])
        assert bulk.addParam(id, LED, 1, [1])
    assert goals.txPacket() == sdk.COMM_SUCCESS
    assert bulk.txPacket() == sdk.COMM_SUCCESS
    sync, mixed = sdk.GroupSyncRead(port, packets, GOAL_CURRENT, 2), sdk.GroupBulkRead(port, packets)
    places = ((LED, 1), (PRESENT_POSITION, 4), (PRESENT_TEMPERATURE, 1))
    for id, place in zip(IDS, places, strict=True):
        assert sync.addParam(id)
        assert mixed.addParam(id, *place)
    assert (sync.fastSyncRead() if fast else sync.txRxPacket()) == sdk.COMM_SUCCESS
    assert [sync.getData(id, GOAL_CURRENT, 2) for id in IDS] == [256 + id for id in IDS]
    assert (mixed.fastBulkRead() if fast else mixed.txRxPacket()) == sdk.COMM_SUCCESS
    assert [mixed.getData(id, *place) for id, place in zip(IDS, places, strict=True)] == [1, counts(0.2), 25]


def test_a_fault_and_its_end(line: Line, client: Client) -> None:
    port, packets = client
    assert packets.write1ByteTxRx(port, 1, 64, 1) == DONE
    line.rotors[0].fault_cause = "overcurrent"
    assert within(2.0, lambda: packets.read1ByteTxRx(port, 1, 64)[0] == 0)
    assert packets.read1ByteTxRx(port, 1, HARDWARE_ERROR) == (0x20, sdk.COMM_SUCCESS, 0x80)
    assert packets.getRxPacketError(0x80).startswith("[RxPacketError] Hardware error")
    line.rotors[0].fault_cause = ""
    assert packets.reboot(port, 1) == (sdk.COMM_SUCCESS, 0x80)
    assert packets.read1ByteTxRx(port, 1, HARDWARE_ERROR) == (0, *DONE)
    assert packets.clearMultiTurn(port, 1) == DONE
    assert packets.factoryReset(port, 1, 0x02) == DONE


def test_the_manufacturers_simpler_package(line: Line) -> None:
    connector = Connector(line.params.port.port, BAUD)
    try:
        motor = connector.createMotor(2)
        assert motor.getPresentPosition() == counts(0.2)
        assert [motor.getCurrentLimit(), motor.getVelocityLimit(), motor.getPWMLimit()] == [1193, 200, 885]
        motor.setOperatingMode(OperatingMode.EXTENDED_POSITION)
        motor.enableTorque()
        motor.setGoalPosition(5000)
        assert within(8.0, lambda: abs(motor.getPresentPosition() - 5000) <= 3)
        assert line.rotors[1].position == pytest.approx(5000 * 2 * np.pi / 4096, abs=0.01)
        with pytest.raises(DxlRuntimeError):
            motor.setCurrentLimit(100)  # the EEPROM is locked
        motor.disableTorque()
    finally:
        connector.closePort()


def test_the_driver_on_the_same_line(line: Line) -> None:
    driver = dynamixel.load(line.params, line.context)
    out, cmd = JointState.zeros(len(IDS)), JointCommand.zeros(len(IDS))
    cmd.position[:], cmd.kp[:], cmd.kd[:] = 0.5, 1.0, 0.2
    driver.open()
    try:
        driver.enable("effort")
        begin = now()
        while now() < begin + 1_500_000_000:
            cmd.valid_until_ns = now() + 1_000_000_000
            driver.write(cmd, now() + 50_000_000)
            driver.read(out, now() + 50_000_000)
        assert out.position == pytest.approx([0.5] * 3, abs=0.02)
        assert out.fault.tolist() == [0, 0, 0]
        assert now() - out.t_ns < 1_000_000_000
    finally:
        driver.close()
    assert within(1.0, lambda: not any(node.torque for node in line.emulator.nodes))
