"""Recordings of every form are valid by the specification of MCAP, and the check of that finds damage."""

from __future__ import annotations

import numpy as np
import pytest

from cosim.output.recorder import Recorder
from cosim.output.recording_index import recordings_of
from tests.kit.mcap_validation import Invalid, validate

CHANNELS = (("shoulder/position", "rad"), ("lift/position", "m"), ("energy/work", "J"))
TICKS = 3000


def write(path, ticks=TICKS, **keys):
    values = np.random.default_rng(1).standard_normal((ticks, len(CHANNELS)))
    with Recorder(path, CHANNELS, {"a": "b"}, **keys) as recorder:
        recorder.attach("rig.yaml", b"name: rig", "application/yaml")
        for block in np.array_split(np.arange(ticks), 10):
            recorder.append(block * 1_000_000, values[block])
        recorder.event(1_000_000, "marker", "info")
    return path


@pytest.mark.parametrize("encoding", ["protobuf", "json"])
@pytest.mark.parametrize("numbers", ["float64", "float32"])
def test_recordings_are_valid(tmp_path, encoding, numbers):
    assert validate(write(tmp_path / "a.mcap", encoding=encoding, numbers=numbers)) > TICKS


def test_an_empty_recording_is_valid(tmp_path):
    with Recorder(tmp_path / "a.mcap", CHANNELS, {}):
        pass
    validate(tmp_path / "a.mcap")


def test_each_part_of_a_split_recording_is_valid(tmp_path):
    parts = [part.path for part in recordings_of(write(tmp_path / "a.mcap", split_time=1.0))]
    assert len(parts) >= 3
    assert sum(map(validate, parts)) > TICKS


def test_damage_is_found(tmp_path):
    data = write(tmp_path / "a.mcap").read_bytes()
    damaged = tmp_path / "b.mcap"
    accepted = []
    for place in np.linspace(0, len(data) - 1, 200).astype(int):
        damaged.write_bytes(data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :])
        try:
            validate(damaged)
            accepted.append(int(place))
        except Exception:  # whatever a decoder says of damage
            continue
    assert len(accepted) <= 2, accepted  # a byte of an identifier that nothing refers to
    damaged.write_bytes(data[: len(data) // 2])
    with pytest.raises(Invalid, match="no magic at an end of the file"):
        validate(damaged)
