"""Every kind of recording against the MCAP specification, by a validation that shares no code with the writer."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from cosim.core.errors import RunError
from cosim.core.recordings.index import read_index
from cosim.core.recordings.reader import read_recording
from cosim.output.recorder import Recorder
from tests.kit.disk import small_disk
from tests.kit.mcap_validation import CHUNK, HEAD, MAGIC, InvalidFile, records, validate
from tests.kit.refusals import raised

CHANNELS = (("arm/position", "rad"), ("arm/velocity", "rad/s"), ("lift/position", "m"), ("energy/work", "J"))
TICKS, BLOCK = 3_000, 500
FORMS = {"protobuf": {}, "json": {"encoding": "json"}, "float32": {"numbers": "float32"}}


def write(path, ticks=TICKS, **options):
    """A recording with everything that one can have."""
    t_ns = np.arange(ticks) * 1_000_000
    rows = np.random.default_rng(7).standard_normal((ticks, len(CHANNELS)))
    rows[::100, 1] = np.nan
    with Recorder(path, CHANNELS, {"rig": "arm", "started": "now"}, start_ns=10**18, **options) as recorder:
        recorder.attach("arm.yaml", b"name: arm", "application/yaml")
        recorder.attach("empty.csv", b"", "text/csv")
        for begin in range(0, ticks, BLOCK):
            recorder.append(t_ns[begin : begin + BLOCK], rows[begin : begin + BLOCK])
            recorder.event(int(t_ns[begin]), "block", "warning" if begin else "error")
            recorder.change(int(t_ns[begin]), begin, "arm.kp", (1.0, 2.0))


def messages(report):
    return {report.topics[channel]: count for channel, count in report.messages.items()}


def of_blocks(ticks=TICKS):
    blocks = -(-ticks // BLOCK)
    topics = "/joints/arm", "/joints/lift", "/energy"
    return dict.fromkeys(topics, ticks) | {"/log": blocks, "/changes": blocks}


@pytest.fixture(scope="module", params=FORMS)
def recorded(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("recorded") / "a.mcap"
    write(path, **FORMS[request.param])
    return path


def test_a_recording_is_valid(recorded):
    report = validate(recorded)
    assert messages(report) == of_blocks() and report.chunks >= 3
    assert report.span == (10**18, 10**18 + (TICKS - 1) * 1_000_000)
    assert report.names == ("run", "arm.yaml", "empty.csv")


@pytest.mark.parametrize("form", FORMS)
def test_a_recording_without_a_tick_is_valid(tmp_path, form):
    Recorder(tmp_path / "a.mcap", CHANNELS, {}, **FORMS[form]).close()
    assert validate(tmp_path / "a.mcap").messages == {}


@pytest.mark.parametrize("form", FORMS)
def test_every_file_of_a_split_recording_is_valid(tmp_path, form):
    write(tmp_path / "a.mcap", split_time=1.0, **FORMS[form])
    names = "a.mcap", "a.1.mcap", "a.2.mcap"
    reports = [validate(tmp_path / name) for name in names]
    files = "arm.yaml", "empty.csv"
    assert [report.names for report in reports] == [*[("run", "continued", *files)] * 2, ("run", *files)]
    assert sum(report.messages.total() for report in reports) == sum(of_blocks().values())


def test_a_recording_that_a_crash_cut_off_is_valid_up_to_there(recorded, tmp_path):
    whole = recorded.read_bytes()
    for size in np.linspace(len(MAGIC), len(whole) - 1, 12).astype(int).tolist():
        (tmp_path / "cut.mcap").write_bytes(whole[:size])
        try:
            report = validate(tmp_path / "cut.mcap", cut=True)
        except InvalidFile as error:  # the message indexes of the last chunk are lost
            assert str(error) == "messages of a chunk are in no message index"
            continue
        assert not report.ended and report.messages.total() <= sum(of_blocks().values())
        if report.chunks:
            ticks = report.messages[1]
            assert len(read_recording(tmp_path / "cut.mcap").t_ns) == ticks


def test_a_recording_of_a_full_disk_is_valid(tmp_path):
    with small_disk(tmp_path) as disk:
        with pytest.raises(RunError, match="No space left on device"):
            write(disk / "a.mcap", 20_000)
        report = validate(disk / "a.mcap")
        assert report.messages[1] == len(read_recording(disk / "a.mcap").t_ns) > 1_000


def _flip(data, at):
    data[at] ^= 1


def _of_footer(data, place):
    """Its content ends with the places of the summary and of the offsets, and a checksum."""
    return len(data) - len(MAGIC) - 20 + place


def _first(data, opcode):
    return next(
        record for record in records(bytes(data), len(MAGIC), len(data) - len(MAGIC)) if record.opcode == opcode
    )


MISTAKES = {
    "it does not begin with the magic bytes": lambda data: _flip(data, 0),
    "it does not end with the magic bytes": lambda data: _flip(data, len(data) - 1),
    "the footer names another place of the summary": lambda data: _flip(data, _of_footer(data, 0)),
    "the footer names another place of the summary offsets": lambda data: _flip(data, _unchecked(data) + 8),
    "the checksum of the summary is wrong": lambda data: _flip(data, _of_footer(data, 16)),
    "the times of a chunk are wrong": lambda data: _flip(data, _first(data, CHUNK).start + HEAD),
    "a chunk has": lambda data: _flip(data, _first(data, CHUNK).start + HEAD + 16),
    "the checksum of a chunk is wrong": lambda data: _flip(data, _first(data, CHUNK).start + HEAD + 24),
    "the message index of channel": lambda data: _flip(data, _first(data, 7).start + HEAD + 6),
    "a record 10 in the data section": lambda data: data.__setitem__(_first(data, 9).start, 10),
    "the header is not the first record": lambda data: data.__setitem__(len(MAGIC), 3),
    "there are two schemas": lambda data: _flip(data, _summary(data, 3) + HEAD + 6),
    "the chunk indexes are wrong": lambda data: _flip(data, _summary(data, 8) + HEAD),
    "the attachment indexes are wrong": lambda data: _flip(data, _summary(data, 10) + HEAD),
    "the metadata indexes are wrong": lambda data: _flip(data, _summary(data, 13) + HEAD),
    "the statistics are": lambda data: _flip(data, _summary(data, 11) + HEAD),
    "ends at": lambda data: _flip(data, len(MAGIC) + 4),
}


def _unchecked(data):
    """The place of the content of the footer, without its checksum."""
    footer = _of_footer(data, 0)
    data[footer + 16 : footer + 20] = bytes(4)
    return footer


def _summary(data, opcode):
    """The first record of this kind in the summary, which is unchecked."""
    (start,) = struct.unpack_from("<Q", data, _unchecked(data))
    found = records(bytes(data), start, len(data) - len(MAGIC))
    return next(record.start for record in found if record.opcode == opcode)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The bytes of a short recording."""
    path = tmp_path_factory.mktemp("small") / "a.mcap"
    write(path, 1_500)
    assert read_index(path).complete
    return path.read_bytes()


@pytest.mark.parametrize("what", MISTAKES)
def test_the_validation_finds_a_mistake(small, tmp_path, what):
    data = bytearray(small)
    MISTAKES[what](data)
    (tmp_path / "a.mcap").write_bytes(data)
    assert what in str(raised(InvalidFile, validate, tmp_path / "a.mcap"))
