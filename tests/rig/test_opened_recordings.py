"""Recordings of any length as runs: read where they are used, whole or cut off."""

from __future__ import annotations

import pickle
import tracemalloc

import numpy as np
import orjson
import pytest
from mcap.writer import Writer

from cosim import compare, load_run, open_recording
from cosim.core.recordings.index import read_index
from cosim.core.recordings.stored_array import StoredArray
from cosim.output.recorder import Recorder
from cosim.rig.rig import Rig
from tests.kit.refusals import refusal
from tests.rig.test_run_forms import MOVING


@pytest.fixture(scope="module", params=["protobuf", "json"])
def recorded(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("recorded") / "a.mcap"
    run = Rig.from_dict({**MOVING, "recording": {"encoding": request.param}}).run(record=path)
    return path, run


def test_an_opened_recording_is_the_run(recorded):
    path, run = recorded
    opened = open_recording(path)
    assert isinstance(opened.t, StoredArray) and isinstance(opened.values, StoredArray)
    np.testing.assert_array_equal(opened.t, run.t)
    for name in run:
        np.testing.assert_array_equal(opened[name], run[name])
    assert opened.summary["joints"] == run.summary["joints"] and opened.summary["outcome"] == "finished"
    assert opened.to_pandas().equals(run.to_pandas()) and opened.to_xarray().equals(run.to_xarray())
    assert compare(opened, run).identical
    assert opened.plot(["elbow/position"]).axes
    loaded = load_run(path)
    assert isinstance(loaded.values, np.ndarray) and loaded.summary == opened.summary
    np.testing.assert_array_equal(loaded.values, run.values)


def test_an_opened_recording_is_pickled_as_its_file(recorded):
    opened = pickle.loads(pickle.dumps(open_recording(recorded[0])))
    np.testing.assert_array_equal(opened["elbow/position"], recorded[1]["elbow/position"])


def test_a_signal_that_does_not_exist_is_a_key_error(recorded):
    with pytest.raises(KeyError, match="no signal 'elbow/posit'; did you mean 'elbow/position'"):
        open_recording(recorded[0])["elbow/posit"]


def recording_of(path, ticks, block=5_000):
    """A recording of 20 signals of which the first counts the ticks."""
    units = {f"j{k}/position": "rad" for k in range(20)}
    saved = {**orjson.loads(orjson.dumps(Rig.from_dict(MOVING).run(0.01).rig)), "units": units, "roles": {}}
    metadata = {"rig": "long", "outline": orjson.dumps(saved).decode(), "cosim": "0"}
    noise = np.random.default_rng(4).standard_normal((block, 20))
    with Recorder(path, tuple(units.items()), metadata) as recorder:
        for begin in range(0, ticks, block):
            noise[:, 0] = np.arange(begin, begin + block)
            recorder.append(np.arange(begin, begin + block) * 1_000_000, noise)
    return path


def test_a_long_recording_does_not_go_to_memory(tmp_path):
    ticks = 100_000
    opened = open_recording(recording_of(tmp_path / "a.mcap", ticks))
    assert opened.values.nbytes == 16e6 < (tmp_path / "a.mcap").stat().st_size
    tracemalloc.start()
    try:
        for begin in range(0, ticks, 10_000):
            np.testing.assert_array_equal(opened.values[begin : begin + 9, 0], np.arange(begin, begin + 9))
        assert opened.t[-1] == (ticks - 1) * 1_000_000 * 1e-9
        assert opened.summary["ticks"] == ticks - 1
        np.testing.assert_array_equal(opened["j0/position"], np.arange(ticks))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 12e6  # a chunk, and 1 signal


def test_a_recording_that_was_cut_off_is_read_up_to_its_last_complete_chunk_and_says_so(tmp_path):
    whole = recording_of(tmp_path / "a.mcap", 20_000).read_bytes()
    chunk = read_index(tmp_path / "a.mcap").chunks[2]
    message = "the recording is cut off after t = {} s: its program was killed, or is still writing it"
    ends = np.cumsum([c.indexes[1][1] for c in read_index(tmp_path / "a.mcap").chunks])
    # within a chunk; after it, before its message indexes; within these; before the summary
    places = {chunk.start + 100: ends[1], chunk.start + chunk.length: ends[2]}
    places |= {chunk.start + chunk.length + 40: ends[2], len(whole) - 30: ends[-1]}
    for size, ticks in places.items():
        (tmp_path / "cut.mcap").write_bytes(whole[:size])
        opened = open_recording(tmp_path / "cut.mcap")
        np.testing.assert_array_equal(opened["j0/position"], np.arange(ticks))
        assert opened.fault == message.format(f"{(ticks - 1) * 1e-3:.6g}") == opened.summary["outcome"]


def test_a_recording_of_another_version_is_refused(tmp_path, said):
    path, signals = tmp_path / "a.mcap", (("j/position", "rad"),)
    for metadata in ({"outline": '{"parameters": {}, "constraints": {}}', "cosim": "9.1"}, {}):
        Recorder(path, signals, metadata).close()
        said(refusal(open_recording, path))


def test_what_is_no_recording_is_refused(tmp_path, said):
    (tmp_path / "a.mcap").write_text("name: arm\n")
    for name in ("a.mcap", "none.mcap", "b*.mcap"):
        said(refusal(open_recording, tmp_path / name))


def foreign(path, *, topic="", schema="std_msgs/String", data=b"string data", encoding="cdr", metadata=False):
    """A file of another program, with a topic or without any."""
    with open(path, "wb") as file:
        writer = Writer(file)
        writer.start(profile="", library="other")
        if metadata:
            writer.add_metadata("run", {})
        if topic:
            number = writer.register_schema(schema, "ros2msg" if encoding == "cdr" else encoding, data)
            channel = writer.register_channel(topic, encoding, number)
            writer.add_message(channel, log_time=5, publish_time=5, data=b"xx")
        writer.finish()


@pytest.mark.parametrize("topic", ["", "/chatter", "/log", "/changes"])
def test_a_recording_of_another_program_is_refused(tmp_path, said, topic):
    foreign(tmp_path / "a.mcap", topic=topic)
    said(refusal(open_recording, tmp_path / "a.mcap"))


@pytest.mark.parametrize("encoding", ["json", "protobuf"])
def test_a_topic_like_ours_with_another_schema_is_refused(tmp_path, encoding):
    path = tmp_path / "a.mcap"
    for data in (b"", b"no schema", b"{}", b"[]", b"\x0a\x02\x22\x00", bytes(range(200))):
        foreign(path, topic="/joints/arm", schema="cosim.arm", data=data, encoding=encoding, metadata=True)
        assert refusal(open_recording, path) == f"{path}: the recording is damaged; record the run again"


def test_a_recording_cut_off_in_its_first_bytes_is_refused(tmp_path, said):
    """In the magic bytes; after them; within the header; within the metadata; and with other magic bytes."""
    whole = recording_of(tmp_path / "a.mcap", 5_000).read_bytes()
    for data in (*(whole[:size] for size in (0, 7, 8, 20, 60)), b"\x89MCAP1\r\n" + whole[8:]):
        (tmp_path / "cut.mcap").write_bytes(data)
        said(refusal(open_recording, tmp_path / "cut.mcap"))
