"""A recording in other formats is what other programs read: equal to the bit."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
import scipy.io
from rosbags.highlevel import AnyReader

from cosim import open_recording
from cosim.core.recordings.reader import read_recording
from cosim.rig.run import export as export_module
from cosim.rig.run.export import matlab_names


@pytest.fixture
def run(recorded, monkeypatch):
    """What `a.mcap` holds."""
    monkeypatch.setattr(export_module, "BLOCK", 64)  # several blocks
    return open_recording("a.mcap")


def test_csv_has_every_number_to_the_bit(recorded, run):
    said = "wrote    a.csv: 401 ticks, 14 signals\n"
    assert recorded("export", "recording", "a.mcap", "--to", "csv") == (0, said, [])
    with open("a.csv", newline="") as file:
        names, *rows = csv.reader(file)
    assert names == ["t", *run.signals]
    np.testing.assert_array_equal(np.array(rows, float), np.column_stack([run.t, run.values]))


def test_a_recording_that_was_cut_off_is_exported_up_to_there_and_a_warning_says_so(recorded, said):
    code, out, err = recorded("export", "recording", "cut.mcap", "--to", "csv")
    assert (code, err) == (0, [])
    said(out)


def test_parquet_has_columns_with_units(recorded, run):
    chosen = [name for name in run.signals if name.endswith("position")]
    printed = f"wrote    b.parquet: 51 ticks, {len(chosen)} signals\n"
    words = ("--to", "parquet", "-o", "b.parquet", "--signals", "*position", "--from", "50 ms", "--until", "0.1")
    assert recorded("export", "recording", "a.mcap", *words) == (0, printed, [])
    table = pyarrow.parquet.read_table("b.parquet")
    assert table.column_names == ["t", *chosen]
    assert table.schema.field("hinge/position").metadata == {b"unit": b"rad"}
    np.testing.assert_array_equal(table["t"], run.t[50:101])
    for name in chosen:
        np.testing.assert_array_equal(table[name], run[name][50:101])


def test_ros2_has_every_number_to_the_bit_and_the_joints_together(recorded, run):
    said = "wrote    a.ros2.mcap: 401 ticks, 14 signals\n"
    assert recorded("export", "recording", "a.mcap", "--to", "ros2") == (0, said, [])
    found = read_recording("a.ros2.mcap")
    np.testing.assert_allclose(found.t_ns * 1e-9, run.t, rtol=0, atol=1e-12)
    for name in run.signals:
        np.testing.assert_array_equal(found.signals[name], run[name])
    with AnyReader([Path("a.ros2.mcap")]) as reader:
        counts = {connection.topic: connection.msgcount for connection in reader.connections}
    assert counts["/joint_states"] == 401


def test_matlab_has_a_variable_per_signal(recorded, run):
    assert recorded("export", "recording", "a.mcap", "--to", "mat")[0] == 0
    found = scipy.io.loadmat("a.mat", squeeze_me=True)
    assert list(found["names"]) == list(run.signals) and list(found["units"]) == list(run.units.values())
    np.testing.assert_array_equal(found["t"], run.t)
    for name, variable in zip(run.signals, matlab_names(run.signals), strict=True):
        np.testing.assert_array_equal(found[variable], run[name])


def test_names_of_variables_are_valid_and_unique():
    names = ["a b/x-1", "a b/x_1", "t", "2nd/µ", "j" * 80, "j" * 80 + "k"]
    assert matlab_names(names) == ["a_b_x_1", "a_b_x_1_2", "t_2", "s_2nd__", "j" * 63, "j" * 61 + "_2"]


REFUSED = ["--signals hinge/posit", "--signals nope/*", "--signals energy/zzzzzz*", "--from 3", "-o a.mcap"]


@pytest.mark.parametrize("words", REFUSED)
def test_what_cannot_be_exported_is_refused(recorded, words, said):
    (line,) = recorded.refuses("export", "recording", "a.mcap", "--to", "csv", *words.split())
    said(line)


def test_parquet_needs_its_package_and_leaves_an_existing_file(recorded, monkeypatch, said):
    Path("a.parquet").write_text("old")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    said(recorded.refuses("export", "recording", "a.mcap", "--to", "parquet"))
    assert Path("a.parquet").read_text() == "old"
