"""Overlays: values of a file in place of those of a rig."""

from __future__ import annotations

import pytest
import yaml

from cosim.rig.reading.overlay import overlay_text, read_overlay
from tests.kit.command import Command
from tests.rig.test_run_forms import MOVING


@pytest.fixture
def command(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rig.yaml").write_text(yaml.safe_dump(MOVING))
    return Command(capsys, monkeypatch)


def test_values_are_written_as_they_are_read(tmp_path):
    values = {"controllers.arm.kp": [1.5, 2e-7], "controllers.arm.kd": 30.0, "name": "ä: #b"}
    path = tmp_path / "a.yaml"
    path.write_text(overlay_text(values, "rig.yaml"))
    assert yaml.safe_load(path.read_text()) == values
    assert [yaml.safe_load(text.partition("=")[2]) for text, _ in read_overlay(path)] == list(values.values())


def test_the_last_value_of_options_counts(command, tmp_path):
    (tmp_path / "a.yaml").write_text("schedule.duration: 20 ms\nschedule.step: 2 ms\n")
    code, printed, errors = command("run", "rig.yaml", "--overlay", "a.yaml", "--set", "schedule.step=5 ms")
    assert (code, errors) == (0, [])
    assert "4 ticks of 5 ms" in printed


MISTAKES = [
    ("schedule.stap: 1 ms\n", "a.yaml:1 schedule.stap: unknown key 'stap'; did you mean 'step'?"),
    ("", "a.yaml: the file is empty; it needs at least one value"),
    ("- 1\n", "a.yaml:1: expected 'key: value' lines at the top level"),
]


@pytest.mark.parametrize(("text", "message"), MISTAKES)
def test_mistakes_have_their_line(command, tmp_path, text, message):
    (tmp_path / "a.yaml").write_text(text)
    code, printed, errors = command("check", "rig.yaml", "--overlay", "a.yaml")
    assert (code, printed) == (2, "") and [errors[0]] == [message], errors


def test_a_file_that_is_not_there(command):
    code, printed, errors = command("check", "rig.yaml", "--overlay", "b.yaml")
    assert (code, printed, errors) == (2, "", ["b.yaml: no such file; check the path"])
