"""Long recordings in several files, numbers of 32 bits; files are validated by independent readers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from mcap.reader import make_reader

from cosim.core.errors import RunError
from cosim.core.recordings.index import recordings_of
from cosim.core.recordings.reader import RecordedSamples, read_recording
from cosim.output.recorder import Recorder
from tests.kit.disk import small_disk
from tests.kit.recordings import recorded_messages
from tests.kit.refusals import refusal

JOINTS = 2
CHANNELS = tuple((f"j{joint}/s{k}", "m") for joint in range(JOINTS) for k in range(10))
MS = 1_000_000


def samples(ticks):
    return np.arange(ticks) * MS, np.random.default_rng(5).standard_normal((ticks, len(CHANNELS)))


def write(path, ticks, block=700, start_ns=10**18, started="now", **options):
    t_ns, rows = samples(ticks)
    metadata = {"rig": "long", "started": started}
    with Recorder(path, CHANNELS, metadata, start_ns=start_ns, **options) as recorder:
        recorder.attach("rig.yaml", b"name: long", "application/yaml")
        for begin in range(0, ticks, block):
            recorder.append(t_ns[begin : begin + block], rows[begin : begin + block])
            recorder.event(t_ns[begin], "block")
    return t_ns, rows


def validated(path):
    """(attachments, metadata by name, ticks) of a file that mcap reads with all checks: counts, monotonic times."""
    with open(path, "rb") as file:
        reader = make_reader(file, validate_crcs=True)
        summary = reader.get_summary()
        times: dict[str, list[int]] = {}
        for _, channel, message in reader.iter_messages():
            times.setdefault(channel.topic, []).append(message.log_time)
        counts = {summary.channels[k].topic: n for k, n in summary.statistics.channel_message_counts.items()}
        attachments = [(item.name, item.data) for item in reader.iter_attachments()]
        described = {item.name: item.metadata for item in reader.iter_metadata()}
    assert counts == {topic: len(each) for topic, each in times.items()}
    assert all(a < b for each in times.values() for a, b in itertools.pairwise(each))
    ticks = counts.get("/joints/j0", 0)
    assert {counts.get(f"/joints/j{joint}", 0) for joint in range(JOINTS)} == {ticks}
    return attachments, described, ticks


@pytest.mark.parametrize("options", [{"split_size": 5e5}, {"split_time": 2.0}])
def test_a_long_recording_is_several_files_that_are_read_as_one(tmp_path, options):
    t_ns, rows = write(tmp_path / "a.mcap", 8_000, **options)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["a.1.mcap", "a.2.mcap", "a.3.mcap", "a.mcap"]
    found = [validated(tmp_path / name) for name in names]
    assert sum(ticks for *_, ticks in found) == 8_000
    assert all(attachments == [("rig.yaml", b"name: long")] for attachments, *_ in found)
    run = {"rig": "long", "started": "now"}
    parts = {"a.mcap": 0, "a.1.mcap": 1, "a.2.mcap": 2, "a.3.mcap": 3}
    following = {number: {"continued": {"file": name}} for name, number in parts.items()}
    for name, (_, described, _) in zip(names, found, strict=True):
        number = parts[name]
        assert described == {"run": {**run, "part": str(number)}, **following.get(number + 1, {})}
    for name in ("a.mcap", "a*.mcap"):
        recording = read_recording(tmp_path / name)
        np.testing.assert_array_equal(recording.t_ns, t_ns)
        np.testing.assert_array_equal(np.column_stack(list(recording.signals.values())), rows)
        assert len(recording.log) == -(-8_000 // 700)
    last = read_recording(tmp_path / "a.3.mcap")
    assert last.t_ns[-1] == t_ns[-1] and len(last.t_ns) == found[2][2]


def test_files_of_an_earlier_run_are_no_part_of_it(tmp_path, said):
    write(tmp_path / "a.mcap", 2_500, split_time=1.0, started="before")
    write(tmp_path / "a.mcap", 1_500, split_time=1.0)
    assert [index.path.name for index in recordings_of(tmp_path / "a.mcap")] == ["a.mcap", "a.1.mcap"]
    assert len(read_recording(tmp_path / "a.mcap").t_ns) == 1_500
    said(refusal(read_recording, tmp_path / "a*.mcap"))


def test_a_full_disk_leaves_all_files_readable(tmp_path):
    with small_disk(tmp_path) as disk:
        with pytest.raises(RunError, match="No space left on device"):
            write(disk / "a.mcap", 16_000, split_size=150_000)
        read = read_recording(disk / "a.mcap")
        files = sorted(path for path in disk.iterdir() if path.stat().st_size)
        assert len(files) > 1 and sum(validated(path)[2] for path in files) == len(read.t_ns) > 1_000
        end = f"the recording ends after t = {read.t_ns[-1] * 1e-9:.6g} s, before its run: No space left on device"
        assert RecordedSamples(recordings_of(disk / "a.mcap")).losses == [end]
        assert all(path.stat().st_size for path in disk.iterdir())


def test_numbers_of_32_bits_are_fields_of_type_float(tmp_path):
    t_ns, rows = write(tmp_path / "a.mcap", 3_000, numbers="float32")
    write(tmp_path / "b.mcap", 3_000)
    read = read_recording(tmp_path / "a.mcap")
    np.testing.assert_array_equal(np.column_stack(list(read.signals.values())), rows.astype(np.float32))
    np.testing.assert_array_equal(read.t_ns, t_ns)
    schema, topic, _, fields = recorded_messages(tmp_path / "a.mcap")[0]
    assert (schema, topic) == ("cosim.j0", "/joints/j0")
    assert list(fields.values()) == rows[0, :10].astype(np.float32).tolist()
    a, b = ((tmp_path / f"{name}.mcap").stat().st_size / rows.size for name in "ab")
    assert a <= 8.0 and a < 0.7 * b
