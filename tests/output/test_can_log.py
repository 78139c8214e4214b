"""Recorded CAN frames as logs of other programs, read back by python-can."""

from __future__ import annotations

import numpy as np
import pytest
from can import LogReader

from cosim.execution.hardware.traffic.traffic_log import Fields, Passing, TrafficEntry
from cosim.output.recorder import Recorder
from cosim.output.traffic_reader import write_can_log
from cosim.plugins.drivers.transport import CanFrame
from tests.kit.refusals import refusal
from tests.output.test_traffic_messages import CAN, CHANNELS, PORT, START, ZERO

FRAMES = (
    (Passing.SENT, CanFrame(0x8001, bytes(range(12)), True, True, True)),
    (Passing.RECEIVED, CanFrame(0x100, bytes(range(8)), t_ns=3)),
    (Passing.SENT, CanFrame(0x1234567, b"\x01", True)),
    (Passing.SENT, CanFrame(0x701, b"", remote=True)),
)


def recorded(path, buses=(CAN, PORT)):
    entries = [TrafficEntry(0, k, ZERO + k * 1_000_000, what, frame) for k, (what, frame) in enumerate(FRAMES)]
    entries.insert(2, TrafficEntry(1, 0, ZERO + 1, Passing.RECEIVED, b"\xff"))
    entries.append(TrafficEntry(0, 4, ZERO + 9_000_000, Passing.OPEN, Fields()))
    with Recorder(path, CHANNELS, {"rig": "arm"}, start_ns=START, buses=buses) as recorder:
        recorder.append(np.zeros(1, np.int64), np.zeros((1, 1)))
        recorder.traffic(ZERO, entries if CAN in buses else [])
    return path


@pytest.mark.parametrize("suffix", ["log", "asc", "blf"])
def test_frames_are_read_back(tmp_path, suffix):
    path = tmp_path / f"bus.{suffix}"
    assert write_can_log(recorded(tmp_path / "a.mcap"), path) == (4, ["hand"])
    with LogReader(str(path)) as reader:
        found = list(reader)
    for message, (what, frame) in zip(found, FRAMES, strict=True):
        assert (message.arbitration_id, message.is_extended_id) == (frame.id, frame.extended)
        assert (bytes(message.data), message.is_remote_frame) == (frame.data, frame.remote)
        assert (message.is_fd, message.bitrate_switch) == (frame.fd, frame.switched)
        assert message.is_rx == (what == Passing.RECEIVED)
    steps = np.diff([message.timestamp for message in found])
    assert steps == pytest.approx([1e-3] * 3, abs=2e-6)


def test_a_log_that_cannot_be_written(tmp_path, said):
    path = recorded(tmp_path / "a.mcap")
    for name in ("none/bus.log", "bus.txt"):
        said(refusal(write_can_log, path, tmp_path / name))


def test_a_recording_of_serial_ports_only(tmp_path, said):
    path = recorded(tmp_path / "a.mcap", (PORT,))
    said(refusal(write_can_log, path, tmp_path / "bus.log"))
    assert not (tmp_path / "bus.log").exists()
