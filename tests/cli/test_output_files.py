"""Files that cannot be written at the end of a run: a full disk, a folder that vanished. The others are written."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from cosim.cli.run_files import _recorded
from cosim.errors import InputError
from cosim.output.recording_reader import read_recording
from tests.kit.disk import small_disk
from tests.kit.rigs import controller

FULL = "No space left on device; free space on the disk and run again"
GONE = "No such file or directory; name a file in a folder that exists and that you may write to"
MOVED = "its file was removed or moved during the run; leave it in its place and run again"


def fill(disk, free=0):
    """Leave so many bytes of a small disk."""
    with open(disk / "other", "wb", buffering=0) as file:
        assert file.write(bytes(400 * 1024 - free)) == 400 * 1024 - free


def test_a_full_disk_takes_no_plot_and_no_summary_and_the_other_files_are_written(command, tmp_path):
    with small_disk(tmp_path) as disk:
        fill(disk)
        files = ["--plot", "disk/a.png", "--plot", "b.svg", "--json", "disk/a.json", "--record", "a.mcap"]
        code, out, err = command("run", "rig.yaml", *files)
        assert [path.name for path in disk.iterdir()] == ["other"]  # no part of a file is left
    assert err == [
        f"disk/a.png: cannot write the plot: {FULL}",
        f"disk/a.json: cannot write the summary: {FULL}",
    ]
    assert code == 1
    assert out.splitlines()[-1] == "wrote    plot b.svg, recording a.mcap"
    assert Path("b.svg").stat().st_size and len(read_recording("a.mcap")[0]) == 401


def test_the_summary_on_stdout_is_printed_beside_a_plot_that_failed(command, tmp_path):
    with small_disk(tmp_path) as disk:
        fill(disk)
        code, out, err = command("run", "rig.yaml", "--plot", "disk/a.png", "--json", "-")
    assert (code, err) == (1, [f"disk/a.png: cannot write the plot: {FULL}"])
    assert orjson.loads(out)["outcome"] == "finished"


@pytest.mark.parametrize("realtime", [False, True])
def test_a_folder_that_vanishes_during_the_run(command, realtime):
    Path("gone").mkdir()
    late = "if t > 0.2 and os.path.exists('gone/a.mcap'): shutil.rmtree('gone')"
    Path("push.py").write_text(controller(f"import os, shutil\n{late}\neffort = ops.array([0.0])"))
    files = ["--record", "gone/a.mcap", "--plot", "gone/a.png", "--json", "a.json"]
    options = ["--realtime", "--set", "schedule.step=10 ms"] if realtime else []
    code, out, err = command("run", "rig.yaml", "--set", "controllers=[{type: push.py}]", *files, *options)
    lost = f"gone/a.mcap: cannot write the recording: {MOVED}"
    assert err == [f"gone/a.png: cannot write the plot: {GONE}", f"rig.yaml: {lost}"]
    assert code == 1
    assert out.splitlines()[-1] == "wrote    summary a.json"
    summary = orjson.loads(Path("a.json").read_bytes())
    assert (summary["outcome"], summary["duration_s"]) == (lost, 0.4)


def test_what_is_named_as_recorded_is_what_the_file_holds(command):
    assert command("run", "rig.yaml", "--record", "a.mcap")[0] == 0
    whole = Path("a.mcap").read_bytes()
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


def test_a_file_in_the_place_of_the_recording_is_left_alone(command):
    replace = "if t > 0.2: os.system('echo notes > b; mv b a.mcap')"
    Path("push.py").write_text(controller(f"import os\n{replace}\neffort = ops.array([0.0])"))
    code, _, err = command("run", "rig.yaml", "--set", "controllers=[{type: push.py}]", "--record", "a.mcap")
    assert (code, err) == (1, [f"rig.yaml: a.mcap: cannot write the recording: {MOVED}"])
    assert Path("a.mcap").read_text() == "notes\n"


def test_a_stopped_run_whose_recording_fails_keeps_its_reason_and_its_other_files(command, tmp_path):
    with small_disk(tmp_path) as disk:
        fill(disk, free=16_384)
        limits = "joints.hinge.limits={upper: 25 deg}"
        code, out, err = command("run", "rig.yaml", "--set", limits, "--record", "disk/a.mcap", "--json", "a.json")
    (line,) = err
    assert code == 1
    assert line.startswith("rig.yaml: stopped at tick ")
    assert line.endswith(f"joints.hinge.limits; and disk/a.mcap: cannot write the recording: {FULL}")
    assert out.splitlines()[-1] == "wrote    summary a.json"
    assert orjson.loads(Path("a.json").read_bytes())["outcome"] == line.removeprefix("rig.yaml: ")
