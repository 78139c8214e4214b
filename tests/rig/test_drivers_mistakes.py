"""Mistakes about real drives: in the sections `drivers` and `emulator`, in what guards them, and of lines that are not
there; each one line at its place, and no motor is on."""

from __future__ import annotations

import pytest

from cosim import load_rig
from cosim.rig.sections.rig_spec import read_rig
from tests.rig.drivers_mistakes_helpers import BUS, ELBOW, REAL, RIG, driver

# --- the section `drivers` --------------------------------------------------------------------------


def test_a_mode_that_a_family_does_not_have(mistakes, monkeypatch):
    from cosim.drivers import odrive

    monkeypatch.setattr(odrive, "MODES", frozenset({"velocity", "position"}))
    said = "odrive drives have the modes position, velocity; choose one"
    assert mistakes(driver(BUS, ELBOW)) == [f"13 drivers[0]: {said}"]
    assert mistakes(driver(BUS, ELBOW, "mode: effort")) == [f"13 drivers[0].mode: {said}"]


# --- what a real joint must have, and must not ------------------------------------------------------


def test_stops_of_a_real_joint_are_those_of_the_emulated_one(tmp_path):
    (tmp_path / "rig.yaml").write_text(f"{RIG}  elbow: {{stops: {{upper: 2}}}}\n{REAL}")
    assert read_rig(tmp_path / "rig.yaml").joints["elbow"].stops == ((1.0, 2.0),)


def test_a_limit_of_temperature_may_stand_at_a_joint_that_is_simulated(tmp_path):
    """Nothing measures it there, so nothing is held: a rig is the same with its drives and without."""
    (tmp_path / "rig.yaml").write_text(RIG.replace("effort: 9", "effort: 9, temperature: 60") + REAL)
    for overrides in ([], ["drivers=[]"]):
        joints = load_rig(tmp_path / "rig.yaml", overrides).spec.joints
        bounds = {name: joint.limits["temperature"] for name, joint in joints.items() if name[:4] != "ball"}
        assert bounds == dict.fromkeys(("shoulder", "elbow", "lift", "swing"), 60.0)


# --- time ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("realtime", ["", "yes", "{rate: 1}", "strict", "{trigger: {file: rig.yaml}}"])
def test_real_time_settings_for_real_motors(tmp_path, realtime):
    (tmp_path / "rig.yaml").write_text(f"{RIG}{REAL}schedule: {{realtime: {realtime}}}\n")
    pacing = load_rig(tmp_path / "rig.yaml").spec.schedule.pacing
    assert pacing.rate == 1.0
    assert pacing.overrun == ("catch_up" if realtime else "skip")  # late commands are no good
