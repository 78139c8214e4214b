"""The manufacturer's own packages as clients of the emulated drives, over a real pseudo terminal."""

import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import dynamixel_sdk as sdk
import pytest
from dynamixel_easy_sdk import Connector, DxlRuntimeError, OperatingMode

from cosim.plugins.drivers.dynamixel import codec
from cosim.plugins.drivers.dynamixel.node import FIRMWARE

from .served import Served

BAUD = 1_000_000
IDS = (1, 2, 7)
LED, TORQUE, OPERATING_MODE, HARDWARE_ERROR = 65, 64, 11, 70
GOAL_CURRENT, PROFILE_ACCELERATION, PROFILE_VELOCITY, GOAL_POSITION = 102, 108, 112, 116
PRESENT_POSITION, VELOCITY_TRAJECTORY, POSITION_TRAJECTORY, PRESENT_TEMPERATURE = 132, 136, 140, 146
DONE = (sdk.COMM_SUCCESS, 0)


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    # the SDK gives an answer 34 ms and spins meanwhile, which keeps the emulator's thread from running
    monkeypatch.setattr("dynamixel_sdk.port_handler.LATENCY_TIMER", 30_000)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    driver = {"type": "dynamixel", "port": {"port": str(tmp_path / "dxl"), "baudrate": BAUD}}
    with Served(tmp_path, driver, [{"id": id} for id in IDS], inertia=1e-2, each=4) as made:
        for k, motor in enumerate(made.motors):
            motor.jump = 0.1 * (k + 1)
        made.run(0.001)
        yield made
    sys.setswitchinterval(interval)


class Client(NamedTuple):
    """The manufacturer's SDK."""

    port: sdk.PortHandler
    packets: sdk.Protocol2PacketHandler


@pytest.fixture
def client(line: Served) -> Iterator[Client]:
    port = sdk.PortHandler(line.connection.link.name)
    assert port.setBaudRate(BAUD)
    yield Client(port, sdk.Protocol2PacketHandler())
    port.closePort()


def comes_true(seen: Callable[[], bool]) -> bool:
    """Looking lets the time pass."""
    return any(seen() for _ in range(2000))


def counts(position: float) -> int:
    return round(position * 4096 / math.tau)


@pytest.mark.real_time  # as it listens as long as drives need
def test_all_drives_answer_a_ping(client: Client) -> None:
    port, packets = client
    assert packets.broadcastPing(port) == ({id: [1020, FIRMWARE] for id in IDS}, sdk.COMM_SUCCESS)


def test_read_and_write(client: Client) -> None:
    port, packets = client
    assert packets.ping(port, 7) == (1020, *DONE)
    assert packets.read2ByteTxRx(port, 1, 0) == (1020, *DONE)
    assert packets.read4ByteTxRx(port, 2, PRESENT_POSITION) == (counts(0.2), *DONE)
    assert packets.write1ByteTxRx(port, 1, LED, 1) == DONE
    assert packets.read1ByteTxRx(port, 1, LED) == (1, *DONE)
    assert packets.write1ByteTxRx(port, 1, LED, 2) == (sdk.COMM_SUCCESS, 4)
    assert packets.write2ByteTxRx(port, 1, 0, 5) == (sdk.COMM_SUCCESS, 7)
    assert packets.write2ByteTxRx(port, 1, GOAL_POSITION, 5) == (sdk.COMM_SUCCESS, 5)
    assert packets.write4ByteTxRx(port, 1, GOAL_POSITION, 5000) == (sdk.COMM_SUCCESS, 6)


def test_profile_and_factory_reset(client: Client) -> None:
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

    assert comes_true(arrived) and 150 < max(seen) <= 200  # 0.64 s of acceleration
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
    port.ser.timeout = 30.0
    assert port.readPort(len(acknowledged)) == acknowledged
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


def test_a_fault_and_its_end(line: Served, client: Client) -> None:
    port, packets = client
    assert packets.write1ByteTxRx(port, 1, TORQUE, 1) == DONE
    line.motors[0].fault_cause = "overcurrent"
    assert comes_true(lambda: packets.read1ByteTxRx(port, 1, TORQUE)[0] == 0)
    assert packets.read1ByteTxRx(port, 1, HARDWARE_ERROR) == (0x20, sdk.COMM_SUCCESS, 0x80)
    assert packets.getRxPacketError(0x80).startswith("[RxPacketError] Hardware error")
    line.motors[0].fault_cause = ""
    assert packets.reboot(port, 1) == (sdk.COMM_SUCCESS, 0x80)
    assert packets.read1ByteTxRx(port, 1, HARDWARE_ERROR) == (0, *DONE)
    assert packets.clearMultiTurn(port, 1) == DONE
    assert packets.factoryReset(port, 1, 0x02) == DONE


def test_the_manufacturers_simpler_package(line: Served) -> None:
    connector = Connector(line.connection.link.name, BAUD)
    try:
        motor = connector.createMotor(2)
        assert motor.getPresentPosition() == counts(0.2)
        assert [motor.getCurrentLimit(), motor.getVelocityLimit(), motor.getPWMLimit()] == [1193, 200, 885]
        motor.setOperatingMode(OperatingMode.EXTENDED_POSITION)
        motor.enableTorque()
        motor.setGoalPosition(1500)
        assert comes_true(lambda: abs(motor.getPresentPosition() - 1500) <= 3)
        assert line.motors[1].position == pytest.approx(1500 * math.tau / 4096, abs=0.01)
        with pytest.raises(DxlRuntimeError):
            motor.setCurrentLimit(100)  # the EEPROM is locked
        motor.disableTorque()
    finally:
        connector.closePort()
