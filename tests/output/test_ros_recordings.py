"""Recordings of ROS 2: other programs read what went in, and messages have the bytes that another serialiser writes."""

from __future__ import annotations

import numpy as np
import pytest
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from rosbags.highlevel import AnyReader
from rosbags.typesys import Stores, get_typestore

from cosim.core.recordings.cdr import CdrReader, CdrWriter
from cosim.core.recordings.reader import read_recording
from cosim.core.recordings.ros_messages import FIELDS, PACKAGE, field_name, message_name, schema_name, unique
from cosim.output.recorder import Recorder
from cosim.output.recording_formats import DIAGNOSTICS
from tests.kit.mcap_validation import validate

WRENCH = tuple((f"foot/{part}_{axis}", unit) for part, unit in (("force", "N"), ("moment", "N·m")) for axis in "xyz")
CHANNELS = (
    *(("arm/position", "rad"), ("arm/velocity", "rad/s"), ("lift/position", "m"), ("lift/velocity", "m/s")),
    *(("lift/effort", "N"), ("energy/work", "J"), ("arm/_Twice 2", ""), ("arm/twice_2", "")),
    *WRENCH,
)
TICKS, START = 1_500, 1_700_000_000_123_456_789


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """(file, times, rows)"""
    path = tmp_path_factory.mktemp("ros") / "a.mcap"
    t_ns, rows = np.arange(TICKS) * 1_000_000, np.random.default_rng(3).standard_normal((TICKS, len(CHANNELS)))
    rows[::100, 1] = np.nan
    with Recorder(path, CHANNELS, {"rig": "arm"}, "ros2", START) as recorder:
        recorder.attach("arm.yaml", b"name: arm", "application/yaml")
        for begin in range(0, TICKS, 700):
            recorder.append(t_ns[begin : begin + 700], rows[begin : begin + 700])
            recorder.event(begin, "über ends", "warning" if begin else "error")
            recorder.change(begin, begin, "arm.kp", (1.5, -2.0))
    return path, t_ns, rows


def test_it_is_a_valid_file_of_the_profile(written):
    path, *_ = written
    validate(path)
    with open(path, "rb") as file:
        reader = make_reader(file)
        assert reader.get_header().profile == "ros2"
        summary = reader.get_summary()
    assert {channel.message_encoding for channel in summary.channels.values()} == {"cdr"}
    assert {schema.encoding for schema in summary.schemas.values()} == {"ros2msg"}


def test_this_program_reads_what_went_in(written):
    path, t_ns, rows = written
    found = read_recording(path)
    np.testing.assert_array_equal(found.t_ns, t_ns)
    assert set(found.signals) == {name for name, _ in CHANNELS}
    for column, (name, _) in enumerate(CHANNELS):
        np.testing.assert_array_equal(found.signals[name], rows[:, column])
    assert found.log == [(0, "über ends", "error"), (700, "über ends", "warning"), (1400, "über ends", "warning")]


def decoded(path) -> dict[str, list]:
    """Topic -> messages, by the package of the makers of MCAP."""
    found: dict[str, list] = {}
    with open(path, "rb") as file:
        for _, channel, _, message in make_reader(file, decoder_factories=[DecoderFactory()]).iter_decoded_messages():
            found.setdefault(channel.topic, []).append(message)
    return found


def test_the_reader_of_the_format_decodes_every_topic(written):
    path, t_ns, rows = written
    found = decoded(path)
    values = {name: rows[:, column] for column, (name, _) in enumerate(CHANNELS)}
    stamps = [message.header.stamp for message in found["/joint_states"]]
    assert [stamp.sec * 10**9 + stamp.nanosec for stamp in stamps] == (START + t_ns).tolist()
    states = found["/joint_states"]
    assert states[0].name == ["arm", "lift"] and states[0].effort == []  # the arm has none
    for field, places in (
        ("position", ("arm/position", "lift/position")),
        ("velocity", ("arm/velocity", "lift/velocity")),
    ):
        own = np.array([list(getattr(state, field)) for state in states])
        np.testing.assert_array_equal(own, np.column_stack([values[place] for place in places]))
    (first, *_) = found["/wrenches/foot"]
    assert [first.wrench.force.x, first.wrench.torque.z] == [values["foot/force_x"][0], values["foot/moment_z"][0]]
    assert first.header.frame_id == "foot"
    np.testing.assert_array_equal([message.twice_22 for message in found["/joints/arm"]], values["arm/twice_2"])
    assert [(log.level, log.msg) for log in found["/rosout"]] == [(40, "über ends"), *[(30, "über ends")] * 2]
    assert [list(change.value) for change in found["/changes"]] == [[1.5, -2.0]] * 3
    assert [each.status[0].message for each in found[DIAGNOSTICS]] == ["über ends"] * 3


def test_rosbags_reads_every_message(written):
    path, *_ = written
    with AnyReader([path]) as reader:
        counts = {connection.topic: connection.msgcount for connection in reader.connections}
        messages = [reader.deserialize(raw, connection.msgtype) for connection, _, raw in reader.messages()]
    assert counts["/joint_states"] == TICKS and len(messages) == sum(counts.values())


@pytest.mark.parametrize("message", [name for name in FIELDS if not name.startswith(PACKAGE)])
def test_definitions_are_those_of_ros(message):
    """Names, order and kinds of the fields."""
    of_ros = get_typestore(Stores.ROS2_KILTED).fielddefs[schema_name(message)][1]
    base = {"string": "string", "byte": "uint8"}
    assert [field.split()[0] for _, field in FIELDS[message]] == [name for name, _ in of_ros]
    for (kind, _), (_, (node, detail)) in zip(FIELDS[message], of_ros, strict=True):
        inner = detail[0] if node.name in ("SEQUENCE", "ARRAY") else (node, detail)
        found = inner[1][0] if isinstance(inner[1], tuple) else inner[1]
        wanted = kind.removesuffix("[]")
        assert (node.name == "SEQUENCE") == kind.endswith("[]")
        assert str(found) in (base.get(wanted, wanted), wanted, schema_name(wanted))


def test_messages_have_the_bytes_of_another_serialiser(written):
    path, *_ = written
    store = get_typestore(Stores.ROS2_KILTED)
    compared = set()
    with AnyReader([path], default_typestore=store) as reader:
        for connection, _, raw in reader.messages():
            if connection.msgtype.startswith(PACKAGE) or connection.msgtype in compared:
                continue
            compared.add(connection.msgtype)
            again = store.serialize_cdr(reader.deserialize(raw, connection.msgtype), connection.msgtype)
            assert bytes(again) == bytes(raw), connection.msgtype
    assert len(compared) == 4


def test_numbers_are_aligned_to_their_size():
    data = CdrWriter().whole(1, 1).values([2.5]).text("ab").whole(-3, 8).stamp(-1).message
    assert data.hex(" ", 4) == (
        "00010000 01000000 00000000 00000000 00000440 03000000 61620000 fdffffff ffffffff ffffffff ffc99a3b"
    )
    reader = CdrReader(data)
    assert (reader.whole(1), reader.values(1), reader.text()) == (1, [2.5], "ab")
    reader.whole(8)
    assert reader.stamp() == -1
    with pytest.raises(ValueError, match="are needed"):
        reader.whole()
    with pytest.raises(ValueError, match="no CDR"):
        CdrReader(b"\0\0\0\0")


def test_names_are_those_that_ros_allows():
    assert [message_name(text) for text in ("upper_arm", "2nd", "größe.x")] == ["UpperArm", "N2nd", "GrEX"]
    assert [field_name(text) for text in ("Force_X", "_a__b_", "7", "é")] == ["force_x", "a_b", "n7", "n"]
    assert unique(["a", "a", "a2", "a"]) == ["a", "a2", "a22", "a3"]
