"""A fit that explains nothing is a failed run, with the sign or the unit that explains the recording."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from cosim import load_rig, open_recording
from cosim.apps.identification.equation_error import sources_of
from cosim.apps.identification.identification import identify
from cosim.apps.identification.recorded_motion import read_motion
from cosim.apps.identification.suspicions import cause_of, suspicions_of
from cosim.core.errors import RunError
from tests.identification import pendulum
from tests.identification.test_mistakes import table_of
from tests.kit.refusals import refusal


@pytest.fixture(scope="module")
def columns():
    return pendulum.motion()


@pytest.fixture
def rig_file(tmp_path):
    path = tmp_path / "pend.yaml"
    path.write_text(pendulum.RIG)
    return path


CAUSES = [
    ({"pivot/effort": -1.0}, "it would be 100 % if pivot/effort has the other sign; turn it"),
    ({"pivot/position": 180 / np.pi}, "it would be 100 % if the positions are in degrees; give rad"),
    ({"pivot/position": 0.5 / np.pi}, "it would be 100 % if the positions are in revolutions; give rad"),
]


@pytest.mark.parametrize(("factors", "cause"), CAUSES)
def test_the_cause_is_named_and_no_overlay_is_written(rig_file, columns, command, factors, cause):
    path, overlay, figures = (rig_file.parent / name for name in ("f.csv", "found.yaml", "found.json"))
    pendulum.write(path, {name: factors.get(name, 1.0) * values for name, values in columns.items()})
    code, out, error = command("identify", rig_file, path, "-o", overlay, "--json", figures)
    text = json.loads(figures.read_text())["failure"]
    assert (code, error) == (1, [f"{path}: {text}"])
    explained = re.fullmatch(
        r"the numbers explain ([\d.]+) % of the mean square of pivot/effort in the part that checks,"
        r" 50 % are needed; (.*)",
        text,
    )
    assert explained is not None
    assert float(explained[1]) < 50.0
    assert explained[2] == cause
    assert not overlay.exists()
    assert "wrote     overlay" not in "\n".join(out)
    code, out, error = command("identify", rig_file, path, "-o", overlay, "--anyway")
    assert (code, error) == (1, [f"{path}: {text}"])
    assert f"wrote     overlay {overlay}" in out
    assert overlay.exists()


def test_noise_has_no_cause(rig_file, columns, tmp_path):
    """Efforts of another motion."""
    effort = np.roll(columns["pivot/effort"], 3210)
    found = identify(load_rig(rig_file), pendulum.write(tmp_path / "f.csv", columns | {"pivot/effort": effort}))
    assert found.failure.startswith("the numbers explain ")
    assert found.failure.endswith("; no other sign or unit explains it, so check both in the drives and the rig")


def test_a_good_fit_has_no_failure(rig_file, columns, tmp_path):
    found = identify(load_rig(rig_file), pendulum.write(tmp_path / "f.csv", columns))
    assert found.failure == ""
    assert found.as_json()["failure"] is None


def test_semicolons_and_decimal_commas(rig_file, columns, tmp_path):
    path = pendulum.write(tmp_path / "f.csv", columns)
    other = tmp_path / "g.csv"
    other.write_text(path.read_text().replace(",", "; ").replace(".", ","), encoding="utf-8-sig")
    rig = load_rig(rig_file)
    np.testing.assert_array_equal(identify(rig, other).values, identify(rig, path).values)


@pytest.fixture(scope="module")
def of_arm(recording):
    run = open_recording(recording)
    names = [f"{joint}/{what}" for joint in run.joints for what in ("position", "current")]
    return {"t": np.asarray(run.t)} | {name: run[name].copy() for name in names}


@pytest.mark.parametrize(
    ("factors", "wanted", "cause"),
    [
        # the arm has other inertias too: with all numbers, the fits of all signs take ten times as long
        (
            {"elbow/current": -1.0},
            ["friction", "torque_constant"],
            "98.2 % if elbow/current has the other sign; turn it",
        ),
        ({"elbow/position": -1.0}, ["friction"], "88.3 % if the position of elbow has the other sign; turn it"),
        (
            {"elbow/current": -1.0, "shoulder/current": -1.0},
            ["friction"],
            "88.3 % if all current signals have the other sign; turn it",
        ),
    ],
)
def test_signs_of_the_joints_of_an_arm(arm, of_arm, tmp_path, factors, wanted, cause):
    changed = {name: factors.get(name, 1.0) * values for name, values in of_arm.items()}
    found = identify(arm, table_of(tmp_path / "f.csv", changed), wanted)
    assert found.failure.endswith(f" it would be {cause}")


def test_signs_in_simulated_runs(arm, of_arm, tmp_path):
    path = table_of(tmp_path / "f.csv", of_arm | {"elbow/current": -of_arm["elbow/current"]})
    found = identify(arm, path, ["friction"], method="output-error")
    assert found.failure.endswith(" it would be 88.3 % if elbow/current has the other sign; turn it")


def test_degrees_in_simulated_runs(arm, of_arm, tmp_path, said):
    degrees = {name: np.degrees(of_arm[name]) for name in ("shoulder/position", "elbow/position")}
    path = table_of(tmp_path / "f.csv", of_arm | degrees)
    said(refusal(identify, arm, path, method="output-error"), r"[\d.]+ rms")


def test_a_suspicion_without_possible_numbers_is_no_cause(arm, recording):
    motion = read_motion(arm, recording, sources_of(arm))
    tried = []

    def compare(of):
        tried.append(of)
        raise RunError("the possible numbers were not found")

    assert cause_of(arm, motion, compare) == ""
    assert len(tried) == len(list(suspicions_of(arm, motion))) > 3
