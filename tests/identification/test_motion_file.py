"""What is known of one recording alone: its load, zeros, offsets and delay; and joints that do not move."""

from __future__ import annotations

import numpy as np
import pytest

from cosim import load_rig, open_recording
from cosim.apps.identification.identification import identify
from cosim.apps.identification.motion_file import MotionFile, motion_file
from cosim.core.errors import InputError
from tests.identification.conftest import written
from tests.identification.pendulum import write
from tests.kit.refusals import refusal

FRICTION = ["inertia", "friction"]


def signals(path):
    run = open_recording(path)
    return {"t": np.asarray(run.t)} | {
        f"{joint}/{what}": run[f"{joint}/{what}"].copy() for joint in run.joints for what in ("position", "current")
    }


def test_a_recording_with_its_facts():
    given = motion_file("a:b.csv:load=2 kg@tool:zero=elbow -90 deg, wrist 1 deg:delay=8 ms:offset=elbow 0.3 A")
    assert (given.path, given.load, given.delay) == ("a:b.csv", (2.0, "tool"), 0.008)
    assert given.zero == {"elbow": "-90 deg", "wrist": "1 deg"}
    assert given.offset == {"elbow": "0.3 A"}
    assert motion_file("plain.csv") == MotionFile("plain.csv")


def test_a_log_of_other_zeros_offsets_and_a_late_effect_is_that_of_the_machine(arm, recording, tmp_path):
    """The numbers are those from the recording itself, for facts of each kind and for all together."""
    columns = signals(recording)
    right = identify(arm, write(tmp_path / "right.csv", columns), FRICTION)
    t, late = columns["t"], 0.02
    wrong = columns | {
        "shoulder/position": columns["shoulder/position"] - 0.3,
        "elbow/current": np.interp(t + late, t, columns["elbow/current"]) + 0.4,
        "shoulder/current": np.interp(t + late, t, columns["shoulder/current"]),
    }
    path = write(tmp_path / "wrong.csv", wrong)
    assert identify(arm, path, FRICTION).residual(training=True).whole > 0.05
    found = identify(arm, motion_file(f"{path}:zero=shoulder 0.3 rad:offset=elbow 0.4 A:delay=20 ms"), FRICTION)
    assert found.residual(training=True).whole == pytest.approx(right.residual(training=True).whole, rel=0.05)
    np.testing.assert_allclose(found.values, right.values, rtol=0.02, atol=2e-3)


@pytest.mark.parametrize(
    "facts",
    [
        "lode=2 kg@fore",
        "zero=elbow",
        "zero=elbov 1 deg",
        "zero=elbow 1 kg",
        "offset=elbow 1 N*m",
        "delay=20 s",
        "load=2",
    ],
)
def test_a_mistake_in_the_facts(arm, recording, said, facts):
    said(refusal(lambda: identify(arm, motion_file(f"{recording}:{facts}"))).replace(str(recording), "F.mcap"))


# --- joints that do not move ---


@pytest.fixture(scope="module")
def held(tmp_path_factory):
    """A recording of the arm in which the shoulder is held, and the rig file."""
    folder = tmp_path_factory.mktemp("held")
    path = written(folder)
    truth = [
        "joints.shoulder.initial.position=0.6", "mechanism.numbers.fore.mass=1.6", "joints.elbow.actuator.coulomb=1.3",
        "controllers.track.trajectory={type: sine, amplitude: [0, 0.9], frequency: [0.4, 0.71], ramp: 1}",
        "joints.shoulder.latched=true",
    ]  # fmt: skip
    load_rig(path, truth).run(record=folder / "held.mcap")
    return path, folder / "held.mcap"


def test_a_joint_that_does_not_move_needs_no_drive(held, tmp_path):
    """Its position is that of the file. The numbers of the joint behind it are found, and none of its own."""
    path, recording = held
    columns = {name: column for name, column in signals(recording).items() if name != "shoulder/current"}
    log = write(tmp_path / "log.csv", columns)
    assert refusal(lambda: identify(load_rig(path), log, FRICTION)).startswith(f"{log}: no column 'shoulder/")
    found = identify(load_rig(path), log, FRICTION, fixed=["shoulder"])
    known = {number.name: number for number in found.numbers}
    assert known["joints.elbow.actuator.coulomb"].value == pytest.approx(1.3, rel=0.01)
    weight = next(number for number in found.base if number.name == "mx(fore)")
    assert weight.value == pytest.approx(1.6 * 0.15, rel=0.01)
    assert not [name for name in known if "shoulder" in name or "upper" in name]
    assert found.motions[0].joints == ("elbow",)
    assert found.residual(training=False).whole < 0.01


def test_a_fixed_joint_without_a_column_is_where_the_rig_has_it(held, tmp_path):
    path, recording = held
    columns = {name: column for name, column in signals(recording).items() if not name.startswith("shoulder")}
    log = write(tmp_path / "log.csv", columns)
    rig = load_rig(path, ["joints.shoulder.initial.position=0.6"])
    found = identify(rig, log, FRICTION, fixed=["shoulder"])
    assert "shoulder has no position here, and is taken to be at 0.6 rad as in the rig" in found.motions[0].notes
    assert found.residual(training=False).whole < 0.01


@pytest.mark.parametrize(("joint", "method"), [("elbow", None), ("sholder", None), ("shoulder", "output-error")])
def test_a_mistake_in_fixed_joints(held, said, joint, method):
    path, recording = held
    found = refusal(lambda: identify(load_rig(path), recording, FRICTION, method=method, fixed=[joint]))
    said(found.replace(str(recording), "F.mcap"))


def test_numbers_of_a_joint_that_does_not_move_are_named(held):
    with pytest.raises(InputError, match="not identifiable from this motion"):
        identify(load_rig(held[0]), held[1], ["joints.shoulder.actuator.coulomb"], fixed=["shoulder"])
