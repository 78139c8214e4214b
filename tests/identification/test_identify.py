"""Numbers of an arm from a recording of another one: found within their intervals, checked, written, and applied."""

from __future__ import annotations

import json

import numpy as np
import pytest
import yaml

from cosim import load_rig, open_recording
from cosim.apps.identification.identification import identify
from cosim.apps.identification.variables import LinkBlock
from cosim.rig.reading.yaml_source import read_overlay
from cosim.rig.run.export import export_run, selection_of
from tests.identification.conftest import written

FRICTION = ["joints.*.actuator.viscous", "joints.*.actuator.coulomb"]
TRUE_FRICTION = {
    "joints.shoulder.actuator.viscous": 0.9,
    "joints.shoulder.actuator.coulomb": 0.8,
    "joints.elbow.actuator.viscous": 0.5,
    "joints.elbow.actuator.coulomb": 1.3,
}


@pytest.fixture(scope="module")
def found(arm_file, recording):
    return identify(load_rig(arm_file), recording)


def numbers(found):
    return {number.name: number for number in found.numbers}


def test_frictions_are_found_within_their_intervals(found):
    for name, value in TRUE_FRICTION.items():
        number = numbers(found)[name]
        assert number.state == "found"
        assert abs(number.value - value) <= max(2.0 * number.interval, 0.01 * value), (name, number)
        assert number.interval < 0.05 * value


def test_the_first_moment_of_the_last_link_is_found(found):
    """In a planar arm m c is a base parameter; the mass alone is not."""
    known = numbers(found)
    mass = known["mechanism.fore.mass"].value
    assert mass * known["mechanism.fore.com.x"].value == pytest.approx(1.6 * 0.2, rel=0.01)
    assert mass * known["mechanism.fore.com.z"].value == pytest.approx(1.6 * 0.03, rel=0.05)
    about_joint = known["mechanism.fore.inertia.iyy"].value + mass * sum(
        known[f"mechanism.fore.com.{axis}"].value ** 2 for axis in "xz"
    )
    assert about_joint == pytest.approx(0.03 + 1.6 * (0.2**2 + 0.03**2), rel=0.03)


def test_the_rest_of_the_recording_checks_the_numbers(found):
    for check in found.checks:
        assert check.before > 0.05 * check.drive
        assert check.after < 0.01 * check.drive


def test_what_the_motion_does_not_tell_is_named(found):
    """The arm moves in a plane."""
    assert "the mass of fore" in [quantity.title for quantity in found.unsure]
    assert numbers(found)["mechanism.fore.mass"].state == "in combination"


def test_a_joint_at_rest_is_not_identifiable(arm_file, tmp_path):
    sine = {"type": "sine", "amplitude": [0.7, 0.0], "frequency": [0.43, 0.71], "ramp": 1}
    rig = load_rig(arm_file, [f"controllers.track.trajectory={sine}", "mechanism.gravity=[0, 0, 0]"])
    rig.run(record=tmp_path / "one.mcap", duration=8.0)
    found = identify(rig, tmp_path / "one.mcap", FRICTION)
    assert [q.title for q in found.unseen] == ["the viscous of elbow", "the coulomb of elbow"]
    assert "unseen    the viscous of elbow is not identifiable from this motion" in list(found.lines())
    assert [n.name for n in found.numbers] == list(TRUE_FRICTION)[:2]


def test_inertias_are_possible_whatever_the_noise(arm_file, recording):
    run = open_recording(recording)
    rng = np.random.default_rng(0)
    table = {"t": np.asarray(run.t)}
    for joint in run.joints:
        table[f"{joint}/position"] = run[f"{joint}/position"] + rng.normal(size=len(run.t)) * 2e-4
        table[f"{joint}/current"] = run[f"{joint}/current"] + rng.normal(size=len(run.t)) * 0.5
    path = recording.parent / "noisy.csv"
    np.savetxt(path, np.column_stack(list(table.values())), delimiter=",", header=",".join(table), comments="")
    found = identify(load_rig(arm_file), path)
    for block, where in zip(found.variables.blocks, found.variables.number_places, strict=True):
        if isinstance(block, LinkBlock):
            mass, *rest = found.values[where]
            ixx, iyy, izz, ixy, ixz, iyz = rest[3:]
            moments = np.linalg.eigvalsh([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]])
            assert mass > 0.0
            assert moments[0] > 0.0
            assert moments[0] + moments[1] > moments[2] * (1 - 1e-9)
    friction = {number.name: number for number in found.numbers if number.name in TRUE_FRICTION}
    for name, value in TRUE_FRICTION.items():
        assert abs(friction[name].value - value) <= 2.0 * friction[name].interval


def test_a_table_gives_what_its_recording_gives(arm_file, recording, found):
    path = recording.parent / "truth.csv"
    run = open_recording(recording)
    export_run(selection_of(run, [], None, None), "csv", path)
    same = identify(load_rig(arm_file), path)
    np.testing.assert_allclose(same.values, found.values, rtol=1e-6)


def test_the_torque_constant(arm_file, tmp_path):
    """Of a known arm."""
    rig = load_rig(arm_file, ["joints.elbow.actuator.torque_constant=0.066"])
    rig.run(record=tmp_path / "k.mcap")
    found = identify(load_rig(arm_file), tmp_path / "k.mcap", ["torque_constant"])
    number = numbers(found)["joints.elbow.actuator.torque_constant"]
    assert number.value == pytest.approx(0.066, rel=1e-3)
    assert numbers(found)["joints.shoulder.actuator.torque_constant"].value == pytest.approx(0.06, rel=1e-3)


def test_the_delay_of_drives(arm, recording):
    run, late = open_recording(recording), 0.02
    table = {"t": np.asarray(run.t)}
    for joint in run.joints:
        table[f"{joint}/position"] = np.interp(run.t - late, run.t, run[f"{joint}/position"])
        table[f"{joint}/current"] = run[f"{joint}/current"]
    path = recording.parent / "late.csv"
    np.savetxt(path, np.column_stack(list(table.values())), delimiter=",", header=",".join(table), comments="")
    found = identify(arm, path, ["inertia", "friction", "delay"])
    number = numbers(found)["delay"]
    assert number.unit == "s"
    assert number.value == pytest.approx(late, abs=5e-4)


def test_without_currents_the_commanded_effort_counts(arm_file, recording):
    run = open_recording(recording)
    names = [f"{joint}/{what}" for joint in run.joints for what in ("position", "command_effort")]
    path = recording.parent / "commands.csv"
    export_run(selection_of(run, names, None, None), "csv", path)
    found = identify(load_rig(arm_file), path)
    assert found.motions[0].source == "command_effort"
    assert numbers(found)["joints.elbow.actuator.coulomb"].value == pytest.approx(1.3, rel=0.03)


def test_the_command_writes_an_overlay_that_runs(arm_file, recording, tmp_path, command):
    overlay, report, figures = (tmp_path / name for name in ("found.yaml", "found.html", "found.json"))
    words = ["identify", arm_file, recording, "-o", overlay, "--report", report, "--json", figures]
    out = command.prints(*words)
    assert f"wrote     overlay {overlay}" in out
    data = json.loads(figures.read_text())
    assert data["signal"] == "current"
    assert data["validation"]["elbow"]["after"] < 0.1 * data["validation"]["elbow"]["before"]
    rig = load_rig(arm_file, read_overlay(overlay))
    for name in TRUE_FRICTION:
        assert rig.numbers[name] == pytest.approx(data["numbers"][name]["value"], rel=1e-12)
    assert rig.numbers["mechanism.fore.mass"] == pytest.approx(data["numbers"]["mechanism.fore.mass"]["value"])
    truth, before, after = open_recording(recording), load_rig(arm_file).run(), rig.run()
    for joint in rig.joints:  # the controller is wrong in another way; what it commands tells
        errors = [np.abs(run[f"{joint}/current"] - truth[f"{joint}/current"])[2000:].mean() for run in (before, after)]
        assert errors[1] < 0.1 * errors[0]
    text = report.read_text()
    assert text.startswith("<!doctype html>")
    assert "mechanism.fore.com.x" in text
    assert [joint for joint in rig.joints if f"{joint} [A]" in text] == list(rig.joints)


def test_a_rig_of_ideal_drives_takes_joint_frictions(tmp_path, arm_file):
    changes = {"joints": {"all": {"actuator": {"type": "ideal"}}}}
    rig = load_rig(
        written(tmp_path, "ideal.yaml", **changes), ["mechanism.numbers.elbow={damping: 0.4, friction: 0.3}"]
    )
    rig.run(record=tmp_path / "ideal.mcap")
    found = identify(load_rig(tmp_path / "ideal.yaml"), tmp_path / "ideal.mcap", ["friction"])
    assert found.motions[0].source == "effort"
    known = numbers(found)
    assert known["mechanism.elbow.damping"].value == pytest.approx(0.4, rel=0.03)
    assert known["mechanism.elbow.friction"].value == pytest.approx(0.3, rel=0.03)
    assert known["mechanism.shoulder.damping"].value < 0.02
    keys = found.overlay()
    again = load_rig(tmp_path / "ideal.yaml", [f"{key}={yaml.safe_dump(value)}" for key, value in keys.items()])
    assert again.numbers["mechanism.elbow.damping"] == pytest.approx(0.4, rel=0.03)
