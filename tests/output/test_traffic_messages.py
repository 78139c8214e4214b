"""Messages of the bus traffic: as Protobuf and the readers of MCAP have them, and read back."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from mcap.reader import make_reader
from mcap_protobuf.decoder import DecoderFactory

from cosim.core.errors import InputError
from cosim.core.recordings.index import DAMAGED
from cosim.execution.hardware.traffic.traffic_log import Fields, Passing, TrafficEntry
from cosim.output.recorder import Recorder
from cosim.output.traffic_messages import SEQUENCES, BusChannel, decode, encode
from cosim.output.traffic_reader import NO_TRAFFIC, RecordedTraffic
from cosim.plugins.drivers.transport import CanFrame
from tests.kit.refusals import raised

CAN = BusChannel("arm", "moteus", "socketcan can0", ("base", "elbow"), True)
PORT = BusChannel("hand", "dynamixel", "/dev/ttyUSB0", ("finger",), False)
CHANNELS = (("base/position", "rad"),)
START, ZERO = 10**18, 5 * 10**9
TIMES = st.integers(0, 2**63 - 1)

frames = st.builds(
    CanFrame, st.integers(0, 2**29 - 1), st.binary(max_size=64), *[st.booleans()] * 4, t_ns=st.integers(0, 2**63 - 1)
)
fields = st.builds(
    Fields,
    st.text(st.characters(codec="utf-8")),
    st.lists(st.integers(-(2**63), 2**63 - 1)).map(tuple),
    st.lists(st.floats()).map(lambda numbers: np.array(numbers, float).tobytes()),
)


@given(TIMES, frames)
def test_a_frame_comes_back_as_it_was(t_ns, frame):
    data = encode(t_ns, Passing.SENT, tuple(frame))
    assert decode(data, 1, 2, 3, CanFrame) == TrafficEntry(1, 2, t_ns, Passing.SENT, frame, 3)


@given(TIMES, st.binary())
def test_bytes_come_back_as_they_were(t_ns, content):
    assert decode(encode(t_ns, Passing.RECEIVED, content), 0, 0, 0, None).content == content


@given(TIMES, st.sampled_from(sorted(set(Passing) - {"sent", "received"})), fields)
def test_an_event_comes_back_as_it_was(t_ns, what, content):
    assert decode(encode(t_ns, what, content), 0, 7, 0, CanFrame) == TrafficEntry(0, 7, t_ns, what, content)


@given(st.binary(max_size=80))
def test_other_bytes_are_no_message(data):
    try:
        decode(data, 0, 0, 0, CanFrame)
    except (ValueError, IndexError, KeyError, TypeError, AttributeError):
        return


def entries():
    frame = CanFrame(0x8001, bytes(range(12)), True, True, True)
    return [
        TrafficEntry(0, 0, ZERO - 10, Passing.OPEN, Fields()),
        TrafficEntry(0, 1, ZERO - 5, Passing.SENT, frame),
        TrafficEntry(1, 0, ZERO, Passing.RECEIVED, b"\xff\xff\xfd"),
        TrafficEntry(0, 2, ZERO + 7, Passing.RECEIVED, frame._replace(id=0x100, t_ns=ZERO + 3)),
        TrafficEntry(0, 3, ZERO + 9, Passing.RETURNED, Fields("", (1, -2), np.array([0.5, np.nan]).tobytes())),
    ]


def written(path, traffic=None, ticks=2, **options):
    with Recorder(path, CHANNELS, {"rig": "arm"}, start_ns=START, buses=(CAN, PORT), **options) as recorder:
        recorder.append(np.arange(ticks) * 10**6, np.zeros((ticks, 1)))
        recorder.traffic(ZERO, entries() if traffic is None else traffic)
    return path


@pytest.mark.parametrize("encoding", ["protobuf", "json"])
def test_entries_are_read_back_by_driver(tmp_path, encoding):
    read = RecordedTraffic(written(tmp_path / "a.mcap", encoding=encoding))
    assert read.buses == (CAN, PORT)
    of_arm, of_hand = (
        [entry._replace(run_ns=entry.t_ns - ZERO) for entry in entries() if entry.driver == k] for k in (0, 1)
    )
    assert list(read.entries(CAN, CanFrame)) == of_arm
    assert list(read.entries(PORT, None)) == of_hand


def test_of_a_run_without_a_tick_the_end_is_time_0(tmp_path):
    read = RecordedTraffic(written(tmp_path / "a.mcap", ticks=0))
    assert [entry.run_ns for entry in read.entries(CAN, CanFrame)] == [-19, -14, -2, 0]


def test_the_published_reader_of_protobuf_reads_them(tmp_path):
    with open(written(tmp_path / "a.mcap"), "rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        found = [each for each in reader.iter_decoded_messages() if each[1].topic.startswith("/bus/")]
    by_topic = {}
    for schema, channel, message, decoded in found:
        by_topic.setdefault(channel.topic, []).append((schema.name, channel.metadata, message, decoded))
    assert sorted(by_topic) == ["/bus/arm", "/bus/arm/driver", "/bus/hand"]
    (name, metadata, message, sent), (_, _, _, received) = by_topic["/bus/arm"]
    assert (name, message.log_time, message.publish_time, message.sequence) == ("bus.Item", START - 5, 0, 1)
    assert metadata["connection"] == "socketcan can0" and metadata["items"] == "CAN frames"
    assert (sent.direction, sent.id, sent.data, sent.clock_ns) == ("sent", 0x8001, bytes(range(12)), ZERO - 5)
    assert (sent.extended, sent.fd, sent.bit_rate_switch, sent.remote, sent.arrival_ns) == (True, True, True, False, 0)
    assert (received.direction, received.id, received.arrival_ns) == ("received", 0x100, ZERO + 3)
    assert by_topic["/bus/hand"][0][3].data == b"\xff\xff\xfd"
    event = by_topic["/bus/arm/driver"][-1][3]
    assert (event.what, list(event.whole_numbers), event.numbers[0]) == ("returned", [1, -2], 0.5)


def test_numbers_go_on_after_the_largest_of_mcap(tmp_path):
    numbers = [SEQUENCES - 1, SEQUENCES, SEQUENCES + 1]
    given = [TrafficEntry(0, k, ZERO, Passing.SENT, CanFrame(1, b"")) for k in numbers]
    read = RecordedTraffic(written(tmp_path / "a.mcap", given))
    assert [entry.number for entry in read.entries(CAN, CanFrame)] == numbers


def test_traffic_goes_on_in_the_next_file(tmp_path):
    with Recorder(tmp_path / "a.mcap", CHANNELS, {"rig": "arm"}, buses=(CAN,), split_time=1.0) as recorder:
        for k in range(4):
            recorder.append(np.arange(1000) * 10**6 + k * 10**9, np.zeros((1000, 1)))
            recorder.traffic(0, [TrafficEntry(0, k, k * 10**9, Passing.SENT, CanFrame(k, b""))])
    assert (tmp_path / "a.1.mcap").exists()
    read = RecordedTraffic(tmp_path / "a.mcap")
    assert [entry.content.id for entry in read.entries(CAN, CanFrame)] == [0, 1, 2, 3]


def test_a_recording_without_traffic(tmp_path):
    with Recorder(tmp_path / "a.mcap", CHANNELS, {"rig": "arm"}) as recorder:
        recorder.append(np.zeros(1, np.int64), np.zeros((1, 1)))
    error = raised(InputError, RecordedTraffic, tmp_path / "a.mcap")
    assert (error.what, error.place) == (NO_TRAFFIC, str(tmp_path / "a.mcap"))


def test_a_message_that_is_none(tmp_path):
    path = written(tmp_path / "a.mcap", [TrafficEntry(0, 0, ZERO, "nonsense", Fields())])
    assert raised(InputError, list, RecordedTraffic(path).entries(CAN, CanFrame)).what == DAMAGED
