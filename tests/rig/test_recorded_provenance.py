"""What a recording states about the run that it is of."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest
import yaml
from mcap.reader import make_reader

from cosim import load_rig, load_run
from tests.rig.test_parameters import ARM


def git(folder, *words):
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", folder, *words], check=True, capture_output=True
    )


@pytest.mark.parametrize("encoding", ["protobuf", "json", "ros2"])
def test_the_rig_as_it_ran_versions_and_commit_are_in_the_file(tmp_path, encoding):
    path = tmp_path / "arm.yaml"
    path.write_text(yaml.safe_dump(ARM))
    git(tmp_path, "init")
    git(tmp_path, "add", "arm.yaml")
    git(tmp_path, "commit", "-m", "arm")
    rig = load_rig(path, ["controllers.hold.kp=70", f"recording.encoding={encoding}"])
    found = []
    for changed in (False, True):
        if changed:
            path.write_text(path.read_text() + "\n")
        run = rig.run(0.05, record=tmp_path / "a.mcap")
        with open(tmp_path / "a.mcap", "rb") as file:
            reader = make_reader(file)
            found.append((next(reader.iter_metadata()).metadata, {a.name: a.data for a in reader.iter_attachments()}))
    (before, files), (after, _) = found
    assert yaml.safe_load(files["arm.as_run.yaml"])["controllers"][0]["kp"] == 70
    assert yaml.safe_load(files["arm.yaml"])["controllers"][0]["kp"] == 100
    head = subprocess.run(["git", "-C", tmp_path, "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    assert (before["git"], before["git_changed"], after["git_changed"]) == (head, "no", "yes")
    assert before["numpy"] == np.__version__ and {"cosim", "python", "system", "started"} <= before.keys()
    again = load_run(tmp_path / "a.mcap")
    np.testing.assert_array_equal(again.values, run.values)
    assert again.rig.parameters["hold.kp"] == [70.0, 70.0]


def test_a_rig_outside_of_git_has_no_commit(tmp_path):
    path = tmp_path / "arm.yaml"
    path.write_text(yaml.safe_dump(ARM))
    load_rig(path).run(0.05, record=tmp_path / "a.mcap")
    with open(tmp_path / "a.mcap", "rb") as file:
        assert "git" not in next(make_reader(file).iter_metadata()).metadata
