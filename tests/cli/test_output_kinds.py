"""Outputs never take the place of another kind of file: links are followed, devices written into, names checked."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from cosim import load_rig, open_recording
from cosim.errors import InputError
from tests.kit.disk import small_disk

CSV = ("export", "a.mcap", "--to", "csv", "-o")


@pytest.fixture
def recorded(command):
    assert command("run", "rig.yaml", "--record", "a.mcap")[0] == 0
    return command


# command, its option, the suffixes that it takes
OUTPUTS = [
    (CSV, "-o", ".csv"),
    (("export", "a.mcap", "--to", "parquet", "-o"), "-o", ".parquet"),
    (("export", "a.mcap", "--to", "mat", "-o"), "-o", ".mat"),
    (("layout", "rig.yaml", "--for", "foxglove", "-o"), "-o", ".json"),
    (("layout", "rig.yaml", "--for", "plotjuggler", "-o"), "-o", ".xml"),
    (("run", "rig.yaml", "--json"), "--json", ".json"),
    (("run", "rig.yaml", "--record"), "--record", ".mcap"),
    (("analyze", "rig.yaml", "--json"), "--json", ".json"),
    (("analyze", "rig.yaml", "--joint", "hinge", "--excitation"), "--excitation", ".yaml or .yml"),
]


@pytest.mark.parametrize(("words", "option", "suffixes"), OUTPUTS)
def test_an_output_of_another_kind_is_refused_by_its_name(recorded, words, option, suffixes):
    Path("notes.txt").write_text("notes")
    Path("link" + suffixes.split()[0]).symlink_to("notes.txt")
    Path("folder").mkdir()
    fix = f"the file must have the suffix {suffixes}; choose another name"
    suffix = suffixes.split()[0]
    link, lost = f"link{suffix}", f"none/a{suffix}"
    expected = {
        "notes.txt": f"notes.txt: {fix}",
        "new.txt": f"new.txt: {fix}",
        link: f"{link}: links to {Path('notes.txt').resolve()}: {fix}",
        "folder": "folder: is a folder; name a file in it",
        lost: f"{lost}: there is no folder 'none'; create it or choose another",
    }
    for name, what in expected.items():
        assert recorded.refuses(*words, name) == [f"{option}: {what}"]
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
    assert recorded(*CSV, "fifo")[0] == 0
    reader.join()
    assert read[0].startswith("t,hinge/") and Path("fifo").is_fifo()
    assert recorded(*CSV, "a.csv")[0] == 0
    assert read[0] == Path("a.csv").read_text()


def test_a_device_stays_a_device(recorded):
    full = "/dev/full: cannot write the export: No space left on device; free space on the disk and run again"
    for device in ("/dev/full", "/dev/null"):
        before = os.stat(device)
        code, _, err = recorded(*CSV, device)
        assert (code, err) == ((1, [full]) if device == "/dev/full" else (0, []))
        assert (os.stat(device).st_mode, os.stat(device).st_rdev) == (before.st_mode, before.st_rdev)
    assert recorded.refuses("run", "rig.yaml", "--record", "/dev/null") == [
        "--record: /dev/null: is no regular file; choose another file"
    ]


def test_an_export_that_fails_leaves_what_was_there(recorded, tmp_path):
    with small_disk(tmp_path) as disk:
        (disk / "a.csv").write_text("old")
        (disk / "other").write_bytes(bytes(380 * 1024))
        code, out, err = recorded(*CSV, "disk/a.csv")
        what = "cannot write the export: No space left on device; free space on the disk and run again"
        assert (code, out, err) == (1, "", [f"disk/a.csv: {what}"])
        assert (disk / "a.csv").read_text() == "old"
        assert sorted(path.name for path in disk.iterdir()) == ["a.csv", "other"]


def test_a_recording_in_python_has_the_name_of_one(command):
    before = Path("rig.yaml").read_text()
    with pytest.raises(InputError) as caught:
        load_rig("rig.yaml").run(record="rig.yaml")
    assert str(caught.value) == "record: rig.yaml: the file must have the suffix .mcap; choose another name"
    assert Path("rig.yaml").read_text() == before
    load_rig("rig.yaml").run(record="A.MCAP")
    assert open_recording("A.MCAP").fault == ""
