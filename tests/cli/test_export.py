"""A recording in other formats is what other programs read: equal to the bit."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
import scipy.io

from cosim.rig import Rig
from cosim.rig import export as export_module
from cosim.rig.export import matlab_names
from tests.kit.command import Command
from tests.rig.test_run_forms import MOVING


@pytest.fixture
def recorded(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(export_module, "BLOCK", 64)  # several blocks
    return Command(capsys, monkeypatch), Rig.from_dict(MOVING).run(record="a.mcap")


def test_csv_has_every_number_to_the_bit(recorded):
    command, run = recorded
    printed = f"wrote    a.csv: 201 ticks, {len(run.signals)} signals\n"
    assert command("export", "a.mcap", "--to", "csv") == (0, printed, [])
    with open("a.csv", newline="") as file:
        names, *rows = csv.reader(file)
    assert names == ["t", *run.signals]
    np.testing.assert_array_equal(np.array(rows, float), np.column_stack([run.t, run.values]))


def test_a_recording_that_was_cut_off_is_exported_up_to_there_and_a_warning_says_so(recorded):
    command, run = recorded
    whole = Path("a.mcap").read_bytes()
    Path("cut.mcap").write_bytes(whole[:-9])
    fault = "the recording is cut off after t = 0.2 s: its program was killed, or is still writing it"
    printed = f"wrote    cut.csv: 201 ticks, {len(run.signals)} signals\nwarning  cut.mcap: {fault}\n"
    assert command("export", "cut.mcap", "--to", "csv") == (0, printed, [])


def test_parquet_has_columns_with_units(recorded):
    command, run = recorded
    chosen = [name for name in run.signals if name.endswith("/position")]
    printed = f"wrote    b.parquet: 51 ticks, {len(chosen)} signals\n"
    words = ("--to", "parquet", "-o", "b.parquet", "--signals", "*/position", "--from", "50 ms", "--until", "0.1")
    assert command("export", "a.mcap", *words) == (0, printed, [])
    table = pyarrow.parquet.read_table("b.parquet")
    assert table.column_names == ["t", *chosen]
    assert table.schema.field("elbow/position").metadata == {b"unit": b"rad"}
    np.testing.assert_array_equal(table["t"], run.t[50:101])
    for name in chosen:
        np.testing.assert_array_equal(table[name], run[name][50:101])


def test_matlab_has_a_variable_per_signal(recorded):
    command, run = recorded
    assert command("export", "a.mcap", "--to", "mat")[0] == 0
    found = scipy.io.loadmat("a.mat", squeeze_me=True)
    assert list(found["names"]) == list(run.signals) and list(found["units"]) == list(run.units.values())
    np.testing.assert_array_equal(found["t"], run.t)
    for name, variable in zip(run.signals, matlab_names(run.signals), strict=True):
        np.testing.assert_array_equal(found[variable], run[name])


def test_names_of_variables_are_valid_and_unique():
    names = ["a b/x-1", "a b/x_1", "t", "2nd/µ", "j" * 80, "j" * 80 + "k"]
    assert matlab_names(names) == ["a_b_x_1", "a_b_x_1_2", "t_2", "s_2nd__", "j" * 63, "j" * 61 + "_2"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--signals", "elbow/posit"), "--signals: there is no signal 'elbow/posit'; did you mean 'elbow/position'?"),
        (
            ("--signals", "nope/*"),
            "--signals: there is no signal 'nope/*'; known: shoulder/position, shoulder/velocity,"
            " shoulder/acceleration, shoulder/effort, elbow/position … and 18 more",
        ),
        (
            ("--signals", "elbow/zzzzzz*"),
            "--signals: there is no signal 'elbow/zzzzzz*'; known: elbow/position, elbow/velocity, elbow/acceleration,"
            " elbow/effort, elbow/reference_position … and 18 more",
        ),
        (("--from", "3"), "--from: there is no tick in this time; the recording is from 0 to 0.2 s"),
        (("-o", "a.mcap"), "-o: a.mcap: is the recording; choose another file"),
        (
            ("-o", "none/a.csv"),
            "-o: none/a.csv: there is no folder 'none'; create it or choose another",
        ),
    ],
)
def test_what_cannot_be_exported_is_refused(recorded, words, message):
    command, _ = recorded
    assert command("export", "a.mcap", "--to", "csv", *words) == (2, "", [message])


def test_parquet_needs_its_package_and_leaves_an_existing_file(recorded, monkeypatch, tmp_path):
    command, _ = recorded
    (tmp_path / "a.parquet").write_text("old")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    message = "--to: Parquet needs pyarrow; run 'pip install \"cosim[export]\"'"
    assert command("export", "a.mcap", "--to", "parquet") == (2, "", [message])
    assert (tmp_path / "a.parquet").read_text() == "old"
