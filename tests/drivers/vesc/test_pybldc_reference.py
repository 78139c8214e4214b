"""The client `pybldc` of another author: its packets and frames are ours, and it restarts an emulated drive."""

import logging
import os
import random
import tty

import can
import pytest
from pybldc.pybldc import PyBldcCan, PyBldcSerial, crc16_ccitt

from cosim.plugins.drivers.common.motor import Rotor
from cosim.plugins.drivers.transport import CanFrame
from cosim.plugins.drivers.transport.content_packets import ASK, frames, packet
from cosim.plugins.drivers.vesc import codec
from cosim.plugins.drivers.vesc.emulator import Emulator, VescDrive
from cosim.plugins.drivers.vesc.params import JointParams
from tests.conformance.families import channel

LENGTHS = (1, 5, 6, 7, 8, 20, 255, 256, 300, 500)


def content(length: int) -> bytes:
    return bytes([codec.GET_VALUES_SELECTIVE]) + random.Random(length).randbytes(length - 1)


def test_the_checksum_is_that_of_the_client():
    for data in map(content, LENGTHS):
        assert packet(data)[-3:-1] == crc16_ccitt(data).to_bytes(2, "big")


@pytest.fixture(scope="module")
def bus():
    """It takes the client a second to end."""
    name = f"pybldc {channel()}"
    with can.Bus(interface="virtual", channel=name) as bus:
        client = PyBldcCan(logging.getLogger(), 10, "virtual", name)
        yield bus, client
        client.shutdown()


def received(bus: can.BusABC) -> list[CanFrame]:
    messages = iter(lambda: bus.recv(0), None)
    return [CanFrame(m.arbitration_id, bytes(m.data), m.is_extended_id) for m in messages]


def test_frames_are_those_of_the_client(bus):
    bus, client = bus
    for data in map(content, LENGTHS):
        client._send_implementation(list(data), [], timeout=0.0)
        assert received(bus) == frames(10, client._id, data, ASK)


def test_the_client_restarts_a_drive_over_can(bus):
    bus, client = bus
    rotor = Rotor()
    emulator = Emulator({10: VescDrive(rotor, JointParams(id=10, pole_pairs=7, torque_constant=0.1), 100)})
    drive = emulator.drives[10]
    for t_ns, cause in enumerate(("overcurrent", ""), 1):
        rotor.fault_cause = cause
        emulator.process(t_ns)
    assert drive.fault == "overcurrent"
    client.reset()
    for frame in received(bus):
        emulator.handle(frame, 3)
    assert drive.fault == "" and drive.boot_ns > 3


def test_packets_are_those_of_the_client_which_reads_ours_after_noise():
    ours, theirs = os.openpty()
    tty.setraw(ours)
    client = PyBldcSerial(logging.getLogger(), os.ttyname(theirs))
    for data in map(content, LENGTHS):
        client._send_implementation(list(data), [], timeout=0.0)
        assert os.read(ours, 1000) == packet(data)
    os.write(ours, b"\xff\x00noise" + b"".join(packet(content(length)) for length in LENGTHS))
    for length in LENGTHS:
        assert bytes(client._packet_queue.get(timeout=30.0)) == content(length)
    client.shutdown()
    os.close(ours)
    os.close(theirs)
