"""Files that cannot be written at the end of a run: a full disk, a folder that vanished. The others are written."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from cosim.cli.run_files import _recorded
from cosim.core.errors import InputError
from cosim.core.recordings.reader import read_recording
from tests.kit.disk import small_disk
from tests.kit.rigs import controller


def fill(disk, free=0):
    """Leave so many bytes of a small disk."""
    with open(disk / "other", "wb", buffering=0) as file:
        assert file.write(bytes(400 * 1024 - free)) == 400 * 1024 - free


def test_a_full_disk_takes_no_plot_and_no_summary_and_the_other_files_are_written(command, tmp_path, said):
    with small_disk(tmp_path) as disk:
        fill(disk)
        files = ["--plot", "disk/a.svg", "--json", "disk/a.json", "--record", "a.mcap"]
        code, out, err = command("run", "rig.yaml", *files)
        assert [path.name for path in disk.iterdir()] == ["other"]  # no part of a file is left
        assert (code, out.splitlines()[-1]) == (1, "wrote    recording a.mcap")
        said(err)
        assert len(read_recording("a.mcap")[0]) == 401
        # the summary on stdout is printed all the same
        code, out, err = command("run", "rig.yaml", "--plot", "disk/a.svg", "--json", "-", "--duration", "0.01")
    assert code == 1 and len(err) == 1
    assert orjson.loads(out)["outcome"] == "finished"


@pytest.mark.parametrize("realtime", [False, True])
def test_a_folder_that_vanishes_during_the_run(command, realtime, said):
    Path("gone").mkdir()
    late = "if t > 0.2 and os.path.exists('gone/a.mcap'): shutil.rmtree('gone')"
    Path("push.py").write_text(controller(f"import os, shutil\n{late}\neffort = ops.array([0.0])"))
    files = ["--record", "gone/a.mcap", "--plot", "gone/a.svg", "--json", "a.json"]
    options = ["--realtime", "--set", "schedule.step=10 ms"] if realtime else []
    code, out, err = command("run", "rig.yaml", "--set", "controllers=[{type: push.py}]", *files, *options)
    said(err)
    assert (code, out.splitlines()[-1]) == (1, "wrote    summary a.json")
    summary = orjson.loads(Path("a.json").read_bytes())
    assert (f"rig.yaml: {summary['outcome']}", summary["duration_s"]) == (err[1], 0.4)


def test_what_is_named_as_recorded_is_what_the_file_holds(recorded):
    whole = Path("a.mcap").read_bytes()
    Path("a.mcap").unlink()
    Path("a.mcap").write_bytes(whole)
    assert _recorded("a.mcap") == "a.mcap"
    ticks = []
    for size in range(0, len(whole), len(whole) // 20):
        Path("a.mcap").write_bytes(whole[:size])
        try:
            t_ns = read_recording("a.mcap").t_ns
        except InputError:
            t_ns = []
        ticks.append(len(t_ns))
        end = f"a.mcap, only {len(t_ns)} ticks up to t = {t_ns[-1] * 1e-9:.6g} s" if len(t_ns) else ""
        assert _recorded("a.mcap") == end
    assert ticks[0] == 0 < ticks[-1]
    Path("a.mcap").unlink()
    assert _recorded("a.mcap") == ""


def test_a_file_in_the_place_of_the_recording_is_left_alone(command, said):
    replace = "if t > 0.2: os.system('echo notes > b; mv b a.mcap')"
    Path("push.py").write_text(controller(f"import os\n{replace}\neffort = ops.array([0.0])"))
    code, _, err = command("run", "rig.yaml", "--set", "controllers=[{type: push.py}]", "--record", "a.mcap")
    assert code == 1
    said(err)
    assert Path("a.mcap").read_text() == "notes\n"


def test_a_stopped_run_whose_recording_fails_keeps_its_reason_and_its_other_files(command, tmp_path):
    with small_disk(tmp_path) as disk:
        fill(disk, free=16_384)
        limits = "joints.hinge.limits={upper: 25 deg}"
        code, out, err = command("run", "rig.yaml", "--set", limits, "--record", "disk/a.mcap", "--json", "a.json")
    (line,) = err
    assert code == 1
    assert line.startswith("rig.yaml: stopped at tick ")
    assert "joints.hinge.limits; and disk/a.mcap: cannot write the recording: No space left on device; " in line
    assert out.splitlines()[-1] == "wrote    summary a.json"
    assert orjson.loads(Path("a.json").read_bytes())["outcome"] == line.removeprefix("rig.yaml: ")
