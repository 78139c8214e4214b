"""Outputs never take the place of another kind of file: links are followed, devices written into, names checked."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from cosim import load_rig, open_recording
from cosim.core.errors import InputError
from tests.kit.disk import small_disk

CSV = ("export", "recording", "a.mcap", "--to", "csv", "-o")
# command up to its option -> the suffix that it takes
OUTPUTS = {
    "export recording a.mcap --to csv -o": ".csv",
    "export recording a.mcap --to parquet -o": ".parquet",
    "export recording a.mcap --to mat -o": ".mat",
    "export layout rig.yaml --for plotjuggler -o": ".xml",
    "run rig.yaml --json": ".json",
    "run rig.yaml --record": ".mcap",
    "analyze rig.yaml --json": ".json",
    "analyze rig.yaml --joint hinge --excitation": ".yaml",
}


@pytest.mark.parametrize("words", OUTPUTS)
def test_an_output_of_another_kind_is_refused_by_its_name(recorded, words, said):
    suffix = OUTPUTS[words]
    Path("notes.txt").write_text("notes")
    Path("link" + suffix).symlink_to("notes.txt")
    Path("folder").mkdir()
    for name in ("notes.txt", "new.txt", f"link{suffix}", "folder", f"none/a{suffix}"):
        (line,) = recorded.refuses(*words.split(), name)
        said(line)
    assert Path("notes.txt").read_text() == "notes" and not Path("new.txt").exists()


def test_every_file_of_a_split_recording_is_named(command):
    words = ("--record", "s.mcap", "--set", "recording.split_time=1", "--duration", "2.5", "--json", "s.json")
    code, out, _ = command("run", "rig.yaml", *words)
    assert (code, out.splitlines()[-1]) == (0, "wrote    summary s.json, recording s.mcap … s.2.mcap (3 files)")
    code, out, _ = command("run", "rig.yaml", *words[:2])  # the files of the earlier run stay
    assert (code, out.splitlines()[-1]) == (0, "wrote    recording s.mcap")


def test_the_file_behind_a_link_is_written_and_keeps_its_permissions(recorded):
    Path("real.csv").write_text("old")
    Path("real.csv").chmod(0o640)
    Path("link.csv").symlink_to("real.csv")
    code, out, err = recorded(*CSV, "link.csv")
    assert (code, out[:17], err) == (0, "wrote    link.csv", [])
    assert Path("link.csv").is_symlink() and Path("real.csv").read_text().startswith("t,hinge/")
    assert Path("real.csv").stat().st_mode & 0o777 == 0o640


def test_a_fifo_is_written_into(recorded):
    os.mkfifo("fifo")
    read = []
    reader = threading.Thread(target=lambda: read.append(Path("fifo").read_text()))
    reader.start()
    assert recorded(*CSV, "fifo")[0] == recorded(*CSV, "a.csv")[0] == 0
    reader.join()
    assert read[0] == Path("a.csv").read_text() and Path("fifo").is_fifo()


def test_a_device_stays_a_device(recorded, said):
    for device, expected in (("/dev/full", 1), ("/dev/null", 0)):
        before = os.stat(device)
        code, _, err = recorded(*CSV, device)
        assert code == expected
        said(err)
        assert (os.stat(device).st_mode, os.stat(device).st_rdev) == (before.st_mode, before.st_rdev)
    said(recorded.refuses("run", "rig.yaml", "--record", "/dev/null"))


def test_an_export_that_fails_leaves_what_was_there(recorded, tmp_path, said):
    with small_disk(tmp_path) as disk:
        (disk / "a.csv").write_text("old")
        (disk / "other").write_bytes(bytes(380 * 1024))
        code, out, err = recorded(*CSV, "disk/a.csv")
        assert (code, out) == (1, "")
        said(err)
        assert (disk / "a.csv").read_text() == "old"
        assert sorted(path.name for path in disk.iterdir()) == ["a.csv", "other"]


def test_a_recording_in_python_has_the_name_of_one(command):
    before = Path("rig.yaml").read_text()
    with pytest.raises(InputError, match=r"^record: rig.yaml: the file must have the suffix .mcap; choose"):
        load_rig("rig.yaml").run(record="rig.yaml")
    assert Path("rig.yaml").read_text() == before
    load_rig("rig.yaml").run(record="A.MCAP")
    assert open_recording("A.MCAP").fault == ""
