"""Overlays: values of a file in place of a rig's."""

from __future__ import annotations

from pathlib import Path

import yaml

from cosim.rig.reading.yaml_source import overlay_text, read_overlay


def test_values_are_written_as_they_are_read(tmp_path):
    values = {"controllers.arm.kp": [1.5, 2e-7], "controllers.arm.kd": 30.0, "name": "ä: #b"}
    path = tmp_path / "a.yaml"
    path.write_text(overlay_text(values, "rig.yaml"))
    assert yaml.safe_load(path.read_text()) == values
    assert [yaml.safe_load(text.partition("=")[2]) for text, _ in read_overlay(path)] == list(values.values())


def test_the_last_value_of_options_counts(command):
    Path("a.yaml").write_text("schedule.duration: 20 ms\nschedule.step: 2 ms\n")
    printed = command.prints("run", "rig.yaml", "--overlay", "a.yaml", "--set", "schedule.step=5 ms")
    assert "4 ticks of 5 ms" in printed
