"""Recordings that are damaged, or lack a file: every intact chunk is read, and what is missing is said."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

import numpy as np
import pytest

from cosim import compare, load_run, open_recording
from cosim.core.errors import InputError
from cosim.core.recordings.index import read_index
from cosim.core.recordings.reader import RecordedSamples
from cosim.rig.rerun import rerun
from cosim.rig.rig import Rig
from tests.kit.command import Command
from tests.kit.refusals import refusal
from tests.rig.test_opened_recordings import recording_of
from tests.rig.test_run_forms import MOVING

TICKS = 20_000
FIRST = "j0/position"  # counts the ticks
BEFORE = (
    "the recording is cut off before its first tick: its program was killed, or is still writing it;"
    " record the run again"
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = recording_of(tmp_path_factory.mktemp("whole") / "a.mcap", TICKS)
    return path.read_bytes(), read_index(path)


@pytest.fixture
def damage(whole, tmp_path):
    """damage({place: bytes, …}) -> a recording with these instead."""

    def write(changes):
        data = bytearray(whole[0])
        for place, content in changes.items():
            place %= len(data)
            data[place : place + len(content)] = content
        (tmp_path / "a.mcap").write_bytes(data)
        return tmp_path / "a.mcap"

    return write


def ticks_of(index):
    """(first tick, tick behind the last) of each chunk."""
    return list(itertools.pairwise(np.cumsum([0, *(chunk.indexes[1][1] for chunk in index.chunks)]).tolist()))


def between(before, after):
    return f"no ticks between t = {before * 1e-3:.6g} s and t = {after * 1e-3:.6g} s"


INDEX_LOST = {-100: bytes(90)}  # in the summary


# in the head of the record, of the chunk; in its messages
@pytest.mark.parametrize(("at", "index_lost"), [(0, INDEX_LOST), (40, {}), (5_000, INDEX_LOST)])
def test_a_damaged_chunk_is_left_out_and_its_time_is_said(damage, whole, at, index_lost):
    chunk, (first, end) = whole[1].chunks[2], ticks_of(whole[1])[2]
    path = damage({chunk.start + at: bytes(range(200)), **index_lost})
    opened, loaded = open_recording(path), load_run(path)
    left = [*range(first), *range(end, TICKS)]
    np.testing.assert_array_equal(opened[FIRST], left)
    np.testing.assert_array_equal(opened.t, np.array(left) * 1_000_000 * 1e-9)
    assert opened.fault == opened.lacks == f"the recording is damaged: {between(first - 1, end)}"
    assert opened.gaps == ((opened.t[first - 1], opened.t[first]),)
    assert (loaded.fault, loaded.gaps) == (opened.fault, opened.gaps)


def test_damage_at_both_ends_of_the_ticks(damage, whole):
    chunks, ticks = whole[1].chunks, ticks_of(whole[1])
    opened = open_recording(damage({chunks[0].start + 60: bytes(50), chunks[-1].start + 60: bytes(50)}))
    begin, end = ticks[0][1], ticks[-1][0]
    np.testing.assert_array_equal(opened[FIRST], np.arange(begin, end))
    sides = f"no ticks before t = {begin * 1e-3:.6g} s", f"no ticks after t = {(end - 1) * 1e-3:.6g} s"
    assert opened.fault == "; and ".join(f"the recording is damaged: {side}" for side in sides)
    assert opened.gaps == ()


def test_an_index_that_is_damaged_is_made_anew(damage, whole):
    message_index = whole[1].chunks[1].indexes[3][0]
    fault = "the index of the recording is damaged; every tick was found without it"

    def flipped(place):
        return {place: bytes([whole[0][place] ^ 0xFF])}

    beside = flipped(message_index - 9)
    for places in (INDEX_LOST, flipped(-9), flipped(-26), {message_index + 50: bytes(200)}, beside):
        opened = open_recording(damage(places))
        np.testing.assert_array_equal(opened[FIRST], np.arange(TICKS))
        assert (opened.lacks, opened.gaps) == ("", ())
        assert opened.fault == ("" if places is beside else fault)


def test_an_end_that_is_damaged_with_the_index_is_lost(damage, whole):
    chunk, (first, _) = whole[1].chunks[-1], ticks_of(whole[1])[-1]
    opened = open_recording(damage({chunk.start: bytes(200), **INDEX_LOST}))
    np.testing.assert_array_equal(opened[FIRST], np.arange(first))
    assert opened.fault == f"the recording is damaged: no ticks after t = {(first - 1) * 1e-3:.6g} s"


def test_random_damage_never_gives_wrong_numbers(damage, whole):
    random = np.random.default_rng(7)
    said = 0
    for _ in range(10):
        size = int(random.integers(1, 2_000))
        at = int(random.integers(whole[1].chunks[0].start, len(whole[0]) - size))
        try:
            opened = open_recording(damage({at: random.bytes(size)}))
        except InputError as error:
            assert len(str(error).splitlines()) == 1
            continue
        counts = opened[FIRST]
        np.testing.assert_array_equal(np.rint(np.asarray(opened.t) * 1e3), counts)
        assert opened.fault or len(counts) == TICKS
        said += bool(opened.fault)
    assert said > 5


def test_a_recording_of_nothing_but_damage_is_refused(damage, whole, said):
    path = damage({chunk.start + 60: bytes(100) for chunk in whole[1].chunks})
    said(refusal(open_recording, path))


def test_a_comparison_leaves_gaps_out(damage, whole, tmp_path):
    chunk, (first, end) = whole[1].chunks[2], ticks_of(whole[1])[2]
    (tmp_path / "b.mcap").write_bytes(whole[0])
    path = damage({chunk.start + 60: bytes(100)})
    found = compare(path, tmp_path / "b.mcap")
    assert found.signals[FIRST].max == 0.0 and not found.identical
    assert all(difference.max == 0.0 for difference in found.signals.values())
    assert end - first > 100


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    return Command(capsys, monkeypatch)


LONG = {**MOVING, "schedule": {"step": "1 ms", "duration": 4.8}, "recording": {"split_time": 1.0}}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A recording in five files."""
    folder = tmp_path_factory.mktemp("split")
    Rig.from_dict(LONG).run(record=folder / "st.mcap")
    assert sorted(path.name for path in folder.iterdir()) == [*(f"st.{k}.mcap" for k in range(1, 5)), "st.mcap"]
    return folder


@pytest.fixture
def split(command, files):
    shutil.copytree(files, ".", dirs_exist_ok=True)
    return command


def span_of(name):
    """Times of the first and of the last tick of a file alone [s]."""
    t = RecordedSamples([read_index(name)]).t
    return float(t[0]), float(t[-1])


def test_a_missing_file_is_said_by_every_command(split):
    (_, before), (after, _) = span_of("st.mcap"), span_of("st.2.mcap")
    Path("st.1.mcap").unlink()
    missing = f"the file st.1.mcap is missing: no ticks between t = {before:.6g} s and t = {after:.6g} s"
    warning = f"warning  st.mcap: {missing}"
    for name in ("st.mcap", "st*.mcap"):
        assert open_recording(name).fault == missing
    code, out, err = split("export", "recording", "st.mcap", "--to", "csv")
    assert (code, out.splitlines()[1:], err) == (0, [warning], [])
    assert split("plot", "st.mcap")[1].splitlines()[1:] == [warning]
    assert split("compare", "st.mcap", "st.2.mcap")[1].splitlines()[2] == warning
    refused = f"st.mcap: {missing}; only runs that have every tick can be run again"
    assert split("replay", "--rerun", "st.mcap") == (2, "", [refused])
    figure = open_recording("st.mcap").plot(["elbow/position"])
    x, y = figure.axes[0].lines[0].get_data()
    assert np.isnan(np.asarray(y)[(np.asarray(x) >= before) & (np.asarray(x) < after)]).any()


def test_the_first_and_the_last_file_are_missed(split):
    start, end = span_of("st.1.mcap")[0], span_of("st.3.mcap")[1]
    Path("st.mcap").unlink()
    Path("st.4.mcap").unlink()
    first = f"the file st.mcap is missing: no ticks before t = {start:.6g} s"
    last = f"the file st.4.mcap is missing: no ticks after t = {end:.6g} s"
    assert open_recording("st*.mcap").fault == f"{first}; and {last}"
    assert open_recording("st.2.mcap").fault == ""  # asked for alone


def test_a_rerun_claims_no_more_than_the_recording_has(split):
    end = span_of("st.3.mcap")[1]
    Path("st.4.mcap").unlink()
    out = split.prints("replay", "--rerun", "st.mcap")
    assert out.splitlines()[1:] == [
        f"equal    every signal at every tick up to t = {end:.6g} s, where the recording ends, to the bit",
        f"warning  st.mcap: the file st.4.mcap is missing: no ticks after t = {end:.6g} s",
    ]


def test_a_file_within_a_recording_that_is_cut_off_or_no_recording(split):
    (_, before), (after, _) = span_of("st.mcap"), span_of("st.2.mcap")
    whole = Path("st.1.mcap").read_bytes()
    Path("st.1.mcap").write_bytes(whole[:-200])
    third = open_recording("st.1.mcap").t[-1]
    lost = "no tick is missing, but events may be" if after - third < 2e-3 else ""
    assert open_recording("st.mcap").fault == f"the file st.1.mcap is cut off at t = {third:.6g} s: {lost}"
    Path("st.1.mcap").write_bytes(b"nothing")
    what = f"the file st.1.mcap cannot be read: no ticks between t = {before:.6g} s and t = {after:.6g} s"
    assert open_recording("st.mcap").fault == what


def test_a_copy_of_a_file_of_the_rig_that_is_damaged_is_not_run(command):
    Rig.from_dict(MOVING).run(record="a.mcap")
    (first, *_) = read_index("a.mcap").summary.attachment_indexes
    data = bytearray(Path("a.mcap").read_bytes())
    data[first.offset + first.length - 20] ^= 1
    Path("a.mcap").write_bytes(data)
    assert refusal(rerun, "a.mcap") == f"a.mcap: its copy of the file '{first.name}' is damaged; record the run again"


def test_a_recording_without_a_tick_is_refused_by_every_command(command):
    Rig.from_dict(MOVING).run(record="a.mcap")
    whole, first = Path("a.mcap").read_bytes(), read_index("a.mcap").chunks[0].start
    for size, words in (
        (first, "export recording cut.mcap --to csv"),
        (first + 100, "plot cut.mcap"),
        (300, "compare a.mcap cut.mcap"),
        (first, "replay cut.mcap"),
        (first + 100, "replay --rerun cut.mcap"),
        (300, "dash cut.mcap --port 0"),
    ):
        Path("cut.mcap").write_bytes(whole[:size])
        assert command.refuses(*words.split()) == [f"cut.mcap: {BEFORE}"], words
