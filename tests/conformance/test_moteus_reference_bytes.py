"""The codec of moteus drives against that of mjbots' own Python package."""

import math
import struct

import moteus as mjbots
import pytest
from moteus.fdcanusb_device import _append_checksum, _compute_crc8, _strip_and_validate_checksum

from cosim.drivers.moteus.codec import (
    INT8,
    INT16,
    INT32,
    Reply,
    ServoFeedback,
    Write,
    command_tail,
    decode,
    decode_feedback,
    encode_command,
    encode_feedback,
)
from cosim.drivers.moteus.fdcanusb import checksum, with_checksum, without_checksum
from cosim.drivers.moteus.registers import to_raw, to_value
from cosim.units import TURN

R = mjbots.Register


def test_the_same_command_in_both_codecs() -> None:
    """Our frame is what the mjbots's package makes of the same command, register by register."""
    ours = mjbots.parse_registers(
        encode_command(command_tail(0.075, integral=False), 0.3, -1.2, 0.5, 0.25, 0.125, 1.75)
    )
    assert ours.command == pytest.approx(
        {
            R.MODE: 10,
            R.COMMAND_POSITION: 0.3 / TURN,
            R.COMMAND_VELOCITY: -1.2 / TURN,
            R.COMMAND_FEEDFORWARD_TORQUE: 0.5,
            R.COMMAND_KP_SCALE: 0.25,
            R.COMMAND_KD_SCALE: 0.125,
            R.COMMAND_POSITION_MAX_TORQUE: 1.75,
            R.COMMAND_TIMEOUT: 0.075,
            R.COMMAND_VELOCITY_LIMIT: -0.00025,
            R.COMMAND_ACCEL_LIMIT: -0.001,
            R.COMMAND_ILIMIT_SCALE: 0.0,
        },
        rel=1e-6,
    )
    assert [register for register, _ in ours.query] == [0x00, 0x01, 0x02, 0x03, 0x0D, 0x0E, 0x0F] and not ours.errors


def test_the_same_feedback_in_both_codecs() -> None:
    data = encode_feedback(ServoFeedback(10, 0.3, -1.2, 0.5, 23.5, 31.0, 0))
    values = mjbots.parse_registers(data).response
    back = decode_feedback(data)
    assert back is not None
    assert [values[r] for r in (0, 1, 2, 3, 13, 14, 15)] == pytest.approx(
        [back.mode, back.position / TURN, back.velocity / TURN, back.effort, back.voltage, back.temperature, back.fault]
    )


def test_every_register_means_the_same() -> None:
    for register in R:
        for resolution, raw in ((INT8, 100), (INT8, -128), (INT16, -3210), (INT16, -32768), (INT32, 123456)):
            if register in UNKNOWN_TO_THE_PACKAGE:
                continue
            ours = to_value(register, resolution, raw)
            assert ours == pytest.approx(mjbots.scale_register(register, resolution, raw), nan_ok=True), register
            if math.isfinite(ours):
                assert to_raw(register, resolution, ours) in (raw, raw - 1, raw + 1)


# the package reads them as whole numbers, but the firmware and the register reference scale them
UNKNOWN_TO_THE_PACKAGE = (
    *range(0x010, 0x01F),
    *(R.COMMAND_FIXED_CURRENT_OVERRIDE, R.SET_OUTPUT_NEAREST, R.SET_OUTPUT_EXACT),
)


def test_commands_of_the_manufacturer_decode() -> None:
    drive = mjbots.Controller(id=1)
    frame = drive.make_position(position=1.0, velocity=2.0, watchdog_timeout=0.25, query=True).data
    found, whole = decode(frame)
    assert whole and found[:3] == [Write(0, INT8, (10,)), Write(0x020, 3, (1.0, 2.0)), Write(0x027, 3, (0.25,))]
    assert mjbots.parse_registers(struct.pack("<BBhBB", 0x25, 0x01, 2500, 0x50, 0x50)).response == {1: 0.25}
    assert decode(struct.pack("<BBhBB", 0x25, 0x01, 2500, 0x50, 0x50)) == ([Reply(1, INT16, (2500,))], True)


def test_the_same_checksums() -> None:
    for line in (b"", b"OK", b"ERR checksum", b"can send 8001 01000A BF", bytes(range(32, 127))):
        assert checksum(line) == _compute_crc8(line) and with_checksum(line) == _append_checksum(line)
        theirs, had, right = _strip_and_validate_checksum(with_checksum(line))
        assert had and right and without_checksum(with_checksum(line)) == (theirs, True)
