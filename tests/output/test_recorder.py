"""Recordings: what goes in comes out, Foxglove understands it, a crash or a full disk loses little."""

import json
import resource
import subprocess
import sys
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from mcap.exceptions import McapError
from mcap.reader import make_reader

from cosim.core.errors import RunError
from cosim.core.recordings.index import recordings_of
from cosim.core.recordings.reader import RecordedSamples, read_recording
from cosim.output.recorder import CHUNK_BYTES, Recorder
from tests.kit.disk import small_disk
from tests.kit.mcap_validation import validate
from tests.kit.recordings import recorded_messages
from tests.kit.refusals import raised, refusal

CHANNELS = (
    ("shoulder/position", "rad"),
    ("lift/position", "m"),
    ("shoulder/velocity", "rad/s"),
    ("energy/work", "J"),
    ("lift/velocity", "m/s"),
)
MS = 1_000_000


def samples(k):
    return np.arange(k, dtype=np.int64) * MS, np.random.default_rng(1).standard_normal((k, len(CHANNELS)))


@pytest.fixture(params=["protobuf", "json"])
def encoding(request):
    return request.param


def write(path, k=10, encoding="protobuf", **keys):
    t_ns, rows = samples(k)
    with Recorder(path, CHANNELS, {"rig": "test"}, encoding, **keys) as recorder:
        recorder.append(t_ns, rows)
    return t_ns, rows


def chunks(path):
    with open(path, "rb") as file:
        return make_reader(file).get_summary().chunk_indexes


def test_samples_come_back_exactly_by_name(tmp_path, encoding):
    t_ns, rows = samples(2500)
    with Recorder(tmp_path / "a.mcap", CHANNELS, {}, encoding) as recorder:
        for begin in range(0, 2500, 700):
            recorder.append(t_ns[begin : begin + 700], rows[begin : begin + 700])
    t_read, values, *_ = read_recording(tmp_path / "a.mcap")
    assert t_read.dtype == np.int64
    np.testing.assert_array_equal(t_read, t_ns)
    assert values.keys() == dict(CHANNELS).keys()
    for column, (name, _) in enumerate(CHANNELS):
        np.testing.assert_array_equal(values[name], rows[:, column])


def test_one_topic_per_joint_and_one_for_the_energies(tmp_path, encoding):
    write(tmp_path / "a.mcap", k=1, encoding=encoding)
    _, rows = samples(1)
    assert recorded_messages(tmp_path / "a.mcap") == [
        ("cosim.shoulder", "/joints/shoulder", 0, {"position": rows[0, 0], "velocity": rows[0, 2]}),
        ("cosim.lift", "/joints/lift", 0, {"position": rows[0, 1], "velocity": rows[0, 4]}),
        ("cosim.energy", "/energy", 0, {"work": rows[0, 3]}),
    ]


def test_the_timing_of_ticks_is_a_topic_of_the_rig(tmp_path):
    channels = (("shoulder/position", "rad"), ("timing/latency", "s"), ("timing/step", "s"))
    with Recorder(tmp_path / "a.mcap", channels, {}, "json") as recorder:
        recorder.append(np.array([MS]), np.array([[0.5, 2e-5, np.nan]]))
    assert recorded_messages(tmp_path / "a.mcap")[1] == (
        "cosim.timing",
        "/timing",
        MS,
        {"latency": 2e-5, "step": None},
    )
    _, values, *_ = read_recording(tmp_path / "a.mcap")
    assert values.keys() == dict(channels).keys()


def test_schemas_are_json_schemas_with_units_and_plain_types(tmp_path):
    write(tmp_path / "a.mcap", encoding="json")
    with open(tmp_path / "a.mcap", "rb") as file:
        schemas = {s.name: s for s in make_reader(file).get_summary().schemas.values()}
    assert {s.encoding for s in schemas.values()} == {"jsonschema"}
    assert json.loads(schemas["cosim.lift"].data)["properties"] == {
        "position": {"type": "number", "description": "[m], null if not finite"},
        "velocity": {"type": "number", "description": "[m/s], null if not finite"},
    }
    fields = json.loads(schemas["foxglove.Log"].data)["properties"]
    assert {name: field["type"] for name, field in fields.items()} == {
        "timestamp": "object",
        "level": "integer",
        "message": "string",
        "name": "string",
        "file": "string",
        "line": "integer",
    }


PAIR = (("j/position", "rad"), ("j/velocity", "rad/s"))


def test_values_that_are_not_finite_are_null_in_json_and_nan_when_read(tmp_path):
    with Recorder(tmp_path / "a.mcap", PAIR, {}, "json") as recorder:
        recorder.append(np.array([0, MS]), np.array([[np.nan, 1.0], [np.inf, -np.inf]]))
    assert [m[3] for m in recorded_messages(tmp_path / "a.mcap")] == [
        {"position": None, "velocity": 1.0},
        {"position": None, "velocity": None},
    ]
    _, values, *_ = read_recording(tmp_path / "a.mcap")
    np.testing.assert_array_equal(values["j/position"], [np.nan, np.nan])
    np.testing.assert_array_equal(values["j/velocity"], [1.0, np.nan])


def test_values_that_are_not_finite_are_kept_in_protobuf(tmp_path):
    rows = np.array([[np.nan, 1.0], [np.inf, -np.inf], [-0.0, 5e-324]])
    with Recorder(tmp_path / "a.mcap", PAIR, {}) as recorder:
        recorder.append(np.arange(3), rows)
    _, values, *_ = read_recording(tmp_path / "a.mcap")
    found = np.column_stack([values[name] for name, _ in PAIR])
    assert found.tobytes() == rows.tobytes()
    np.testing.assert_array_equal([list(m[3].values()) for m in recorded_messages(tmp_path / "a.mcap")], rows)


def test_signals_of_any_name_and_number_are_fields_of_protobuf(tmp_path):
    """More than 15 fields have longer tags; names that Protobuf does not have are those in JSON."""
    names = ["a b/x-1", "a b/x_1", "a b/µ", "a_b/2nd", "base.qx/position"]
    channels = [(name, "m") for name in names] + [(f"many/x{k}", "m") for k in range(300)]
    rows = np.random.default_rng(2).standard_normal((7, len(channels)))
    with Recorder(tmp_path / "a.mcap", channels, {}) as recorder:
        recorder.append(np.arange(7), rows)
    expected = [
        ("cosim.a_b_2", "/joints/a b", {"x-1": rows[0, 0], "x_1": rows[0, 1], "µ": rows[0, 2]}),
        ("cosim.a_b", "/joints/a_b", {"2nd": rows[0, 3]}),
        ("cosim.base_qx", "/joints/base.qx", {"position": rows[0, 4]}),
        ("cosim.many", "/joints/many", {f"x{k}": rows[0, 5 + k] for k in range(300)}),
    ]
    assert [(name, topic, fields) for name, topic, _, fields in recorded_messages(tmp_path / "a.mcap")[:4]] == expected
    _, values, *_ = read_recording(tmp_path / "a.mcap")
    assert list(values) == [name for name, _ in channels]
    np.testing.assert_array_equal(np.column_stack(list(values.values())), rows)


def test_messages_are_logged_at_the_time_of_the_day(tmp_path, encoding):
    start = 1_700_000_000_123_456_789
    t_ns, _ = write(tmp_path / "a.mcap", k=50, encoding=encoding, start_ns=start)
    with open(tmp_path / "a.mcap", "rb") as file:
        reader = make_reader(file)
        statistics = reader.get_summary().statistics
        found = [(m.log_time, m.publish_time) for _, channel, m in reader.iter_messages(topics=["/energy"])]
        late = list(reader.iter_messages(starting_at=start + 40 * MS))
        units = {c.topic: c.metadata for c in reader.get_summary().channels.values()}
    assert found == [(start + t, t) for t in t_ns]
    assert (statistics.message_start_time, statistics.message_end_time) == (start, start + 49 * MS)
    assert len(late) == 10 * 3 and units["/joints/lift"] == {"position": "m", "velocity": "m/s"}
    np.testing.assert_array_equal(read_recording(tmp_path / "a.mcap").t_ns, t_ns)


def test_events_are_foxglove_log_recorded_messages(tmp_path):
    with Recorder(tmp_path / "a.mcap", CHANNELS, {}) as recorder:
        recorder.event(0, "start")
        recorder.event(20, "late", level="warning")
        recorder.event(1_500_000_000, "elbow: position limit", level="error")
    common = {"name": "cosim", "file": "", "line": 0}
    start = {"timestamp": {"sec": 0, "nsec": 0}, "level": 2, "message": "start"}
    late = {"timestamp": {"sec": 0, "nsec": 20}, "level": 3, "message": "late"}
    stop = {"timestamp": {"sec": 1, "nsec": 500_000_000}, "level": 4, "message": "elbow: position limit"}
    assert recorded_messages(tmp_path / "a.mcap") == [
        ("foxglove.Log", "/log", 0, start | common),
        ("foxglove.Log", "/log", 20, late | common),
        ("foxglove.Log", "/log", 1_500_000_000, stop | common),
    ]


def test_metadata_and_attachments_are_kept(tmp_path):
    with Recorder(tmp_path / "a.mcap", CHANNELS, {"rig": "arm", "period": "1 ms"}) as recorder:
        recorder.attach("arm.yaml", "name: arm # µ\n".encode(), "application/yaml")
    with open(tmp_path / "a.mcap", "rb") as file:
        reader = make_reader(file)
        (metadata,) = reader.iter_metadata()
        (attachment,) = reader.iter_attachments()
    assert (metadata.name, metadata.metadata) == ("run", {"rig": "arm", "period": "1 ms", "part": "0"})
    assert (attachment.name, attachment.media_type) == ("arm.yaml", "application/yaml")
    assert attachment.data == "name: arm # µ\n".encode()


def test_a_run_without_samples_reads_as_empty_signals(tmp_path):
    Recorder(tmp_path / "a.mcap", CHANNELS, {}).close()
    t_ns, values, *_ = read_recording(tmp_path / "a.mcap")
    assert t_ns.shape == (0,)
    assert {name: v.shape for name, v in values.items()} == {name: (0,) for name, _ in CHANNELS}


def test_chunks_stay_small_and_end_between_ticks(tmp_path, encoding):
    write(tmp_path / "a.mcap", k=8000, encoding=encoding)
    indexes = chunks(tmp_path / "a.mcap")
    assert len(indexes) > 4
    assert max(i.uncompressed_size for i in indexes) < CHUNK_BYTES + 1000
    for before, after in pairwise(indexes):
        assert after.message_start_time == before.message_end_time + MS


def test_a_slow_run_is_on_disk_after_a_second_of_the_run(tmp_path):
    recorder = Recorder(tmp_path / "a.mcap", CHANNELS, {})
    t_ns, rows = samples(15)
    recorder.append(t_ns * 100, rows)  # 0.1 s apart
    t_read, _, *_ = read_recording(tmp_path / "a.mcap")
    recorder.close()
    np.testing.assert_array_equal(t_read, t_ns[:11] * 100)


def test_an_error_event_is_on_disk_at_once(tmp_path):
    recorder = Recorder(tmp_path / "a.mcap", CHANNELS, {})
    recorder.append(*samples(3))
    recorder.event(3 * MS, "fault", level="error")
    t_read, _, *_ = read_recording(tmp_path / "a.mcap")
    recorder.close()
    assert len(t_read) == 3


def test_an_exception_in_the_run_still_finishes_the_file(tmp_path):
    t_ns, rows = samples(10)
    with pytest.raises(ZeroDivisionError), Recorder(tmp_path / "a.mcap", CHANNELS, {}) as recorder:
        recorder.append(t_ns, rows)
        raise ZeroDivisionError
    with open(tmp_path / "a.mcap", "rb") as file:
        assert make_reader(file).get_summary().statistics.message_count == 30


def test_an_interrupt_leaves_whole_ticks(tmp_path, monkeypatch):
    t_ns, rows = samples(10)
    with pytest.raises(KeyboardInterrupt), Recorder(tmp_path / "a.mcap", CHANNELS, {}) as recorder:
        recorder.append(t_ns[:4], rows[:4])

        def interrupted(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr(recorder._samples, "encode", interrupted)
        recorder.append(t_ns[4:], rows[4:])
    t_read, values, *_ = read_recording(tmp_path / "a.mcap")
    np.testing.assert_array_equal(t_read, t_ns[:4])
    for column, (name, _) in enumerate(CHANNELS):
        np.testing.assert_array_equal(values[name], rows[:4, column])


KILLED = """
import os, sys
import numpy as np
from cosim.output.recorder import Recorder
recorder = Recorder(sys.argv[1], (("j/position", "rad"),), {"rig": "killed"})
for i in range(2500):
    recorder.append(np.array([i * 1_000_000]), np.array([[float(i)]]))
os._exit(9)
"""


def test_a_killed_process_leaves_all_but_the_last_second(tmp_path):
    path = tmp_path / "killed.mcap"
    assert subprocess.run([sys.executable, "-c", KILLED, path], cwd=Path(__file__).parents[2]).returncode == 9
    t_ns, values, *_ = read_recording(path)
    np.testing.assert_array_equal(t_ns, np.arange(2001) * MS)
    np.testing.assert_array_equal(values["j/position"], np.arange(2001.0))


def test_a_file_cut_anywhere_gives_its_complete_chunks(tmp_path, encoding):
    t_ns, rows = write(tmp_path / "whole.mcap", k=8000, encoding=encoding)
    data, indexes = (tmp_path / "whole.mcap").read_bytes(), chunks(tmp_path / "whole.mcap")
    for part in (0.999, 0.8, 0.3):
        keep = int(part * len(data))
        complete = [i for i in indexes if i.chunk_start_offset + i.chunk_length <= keep]
        (tmp_path / "cut.mcap").write_bytes(data[:keep])
        t_read, values, *_ = read_recording(tmp_path / "cut.mcap")
        assert complete and t_read[-1] == complete[-1].message_end_time
        np.testing.assert_array_equal(t_read, t_ns[: len(t_read)])
        np.testing.assert_array_equal(values["lift/velocity"], rows[: len(t_read), 4])


@pytest.mark.parametrize("name", ["missing/a.mcap", "."])
def test_a_path_that_cannot_be_written_is_an_input_error(tmp_path, said, name):
    said(refusal(Recorder, tmp_path / name, CHANNELS, {}))


@contextmanager
def file_size_limit(size):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_stops_the_run_and_keeps_what_was_written(tmp_path, said):
    path = tmp_path / "a.mcap"
    t_ns, rows = samples(8000)
    with pytest.raises(RunError) as error, Recorder(path, CHANNELS, {}) as recorder, file_size_limit(200_000):
        recorder.append(t_ns, rows)
    said(error.value)
    t_read, _, *_ = read_recording(path)
    assert 0 < len(t_read) < 8000

    said(raised(RunError, recorder.event, 0, "too late"))
    recorder.close()


def test_an_attachment_is_in_the_file_before_it_is_closed(tmp_path):
    from mcap.records import Attachment
    from mcap.stream_reader import StreamReader

    with Recorder(tmp_path / "a.mcap", CHANNELS, {}) as recorder:
        recorder.attach("rig.yaml", b"name: test", "application/yaml")
        found = []
        with open(tmp_path / "a.mcap", "rb") as file, suppress(McapError):  # it is not complete
            found.extend(StreamReader(file).records)
        assert [item.data for item in found if isinstance(item, Attachment)] == [b"name: test"]


@pytest.mark.parametrize(("free", "encoding"), [(0, "json"), (3_000, "protobuf"), (100_000, "json")])
def test_other_readers_open_the_recording_of_a_small_disk(tmp_path, free, encoding):
    """free: bytes of the disk that something else takes before, so that it is full at different places."""
    t_ns, rows = samples(20_000)
    with small_disk(tmp_path) as disk:
        (disk / "other").write_bytes(bytes(free))
        path = disk / "a.mcap"
        with (
            pytest.raises(RunError, match="No space left on device"),
            Recorder(path, CHANNELS, {"rig": "test"}, encoding) as recorder,
        ):
            recorder.attach("rig.yaml", b"name: test", "application/yaml")
            for k in range(0, 20_000, 100):
                recorder.append(t_ns[k : k + 100], rows[k : k + 100])
        validate(path)
        with open(path, "rb") as file:
            reader = make_reader(file, validate_crcs=True)
            summary = reader.get_summary()
            found = [(channel.topic, message.log_time) for _, channel, message in reader.iter_messages()]
            attached = [item.data for item in reader.iter_attachments()]
            described = [item.metadata for item in reader.iter_metadata()]
        times, values, *_ = read_recording(path)
    counts = {summary.channels[k].topic: n for k, n in summary.statistics.channel_message_counts.items()}
    assert counts == {f"/joints/{name}": len(times) for name in ("shoulder", "lift")} | {"/energy": len(times)}
    assert len(found) == summary.statistics.message_count == 3 * len(times) and 1_000 < len(times) < 20_000
    assert summary.statistics.message_end_time == times[-1] == found[-1][1]
    assert (attached, described) == (
        [b"name: test"],
        [{"rig": "test", "part": "0"}, {"why": "No space left on device"}],
    )
    np.testing.assert_array_equal(values["energy/work"], rows[: len(times), 3])


def test_a_recording_killed_before_its_first_chunk_has_no_samples(tmp_path):
    recorder = Recorder(tmp_path / "a.mcap", CHANNELS, {})
    t_ns, values, *_ = read_recording(tmp_path / "a.mcap")
    recorder.close()
    assert len(t_ns) == 0 and values.keys() == dict(CHANNELS).keys()


def damaged(path):
    """A recording with a flipped bit: an error, not wrong numbers."""
    write(path, k=100)
    data, (chunk,) = bytearray(path.read_bytes()), chunks(path)
    data[chunk.chunk_start_offset + chunk.chunk_length // 2] ^= 0x10
    return bytes(data)


def cut_in_its_header(path):
    write(path)
    return path.read_bytes()[:60]


UNREADABLE = {
    "text": lambda path: b"name: arm\n" * 10,
    "empty": lambda path: b"",
    "missing": lambda path: None,
    "killed before its first tick": cut_in_its_header,
    "damaged": damaged,
}


@pytest.mark.parametrize("what", UNREADABLE)
def test_what_cannot_be_read_is_an_input_error(tmp_path, said, what):
    path = tmp_path / "a.mcap"
    if (content := UNREADABLE[what](path)) is not None:
        path.write_bytes(content)
    said(refusal(read_recording, path))


def test_changes_are_stored_to_the_bit_and_on_disk_at_once(tmp_path, encoding):
    path, values = tmp_path / "a.mcap", (0.1 + 0.2, 5e-324, 1e300)
    with Recorder(path, CHANNELS, {}, encoding) as recorder:
        recorder.append(*samples(10))
        recorder.change(10 * MS, 10, "arm.kp", values)
        at_once = path.read_bytes()
        recorder.append(*samples(10))
    cut = tmp_path / "cut.mcap"
    cut.write_bytes(at_once)
    ((_, change),) = RecordedSamples(recordings_of(cut)).messages("/changes")
    assert json.loads(change)["value"] == list(values)
    (message,) = (message for message in recorded_messages(path) if message.topic == "/changes")
    assert (message.schema, message.t_ns) == ("Change", 10 * MS)
    assert message.fields == {"tick": 10, "name": "arm.kp", "value": list(values)}
