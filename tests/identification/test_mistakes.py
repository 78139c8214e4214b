"""What cannot be identified is refused with the reason, in one line."""

from __future__ import annotations

import re

import numpy as np
import pytest

from cosim import InputError, load_rig, open_recording
from cosim.identification.excitation import excite
from cosim.identification.identification import identify
from cosim.identification.variables import choose
from tests.identification.conftest import ARM, MOTOR, written
from tests.kit.samples import FOLDER


def text_of(call):
    with pytest.raises(InputError) as raised:
        call()
    return str(raised.value)


def table_of(path, columns):
    np.savetxt(path, np.column_stack(list(columns.values())), delimiter=",", header=",".join(columns), comments="")
    return path


@pytest.fixture(scope="module")
def columns(recording):
    """The signals of the recording that are needed."""
    run = open_recording(recording)
    names = [f"{joint}/{what}" for joint in run.joints for what in ("position", "current")]
    return {"t": np.asarray(run.t)} | {name: run[name].copy() for name in names}


def test_a_recording_of_another_rig(arm, tmp_path):
    other = load_rig(FOLDER / "user_controller.yaml")
    other.run(record=tmp_path / "other.mcap", duration=0.1)
    assert text_of(lambda: identify(arm, tmp_path / "other.mcap")) == (
        f"{tmp_path}/other.mcap: is a recording of '{other.run_spec.name}', which has no joint 'shoulder' of 'arm';"
        " give a recording of this rig"
    )


def test_a_joint_without_position(arm, columns, tmp_path):
    path = table_of(tmp_path / "f.csv", {name: v for name, v in columns.items() if name != "elbow/position"})
    assert text_of(lambda: identify(arm, path)) == (
        f"{path}: has no signal 'elbow/position'; did you mean 'shoulder/position'?"
    )


def test_a_joint_without_current(arm, columns, tmp_path):
    path = table_of(tmp_path / "f.csv", {name: v for name, v in columns.items() if name != "elbow/current"})
    assert text_of(lambda: identify(arm, path)) == (
        f"{path}: has no signal 'elbow/current', nor command_effort of all joints; record what drives each joint"
    )


def test_a_short_recording(arm, columns, tmp_path):
    path = table_of(tmp_path / "f.csv", {name: values[:800] for name, values in columns.items()})
    assert text_of(lambda: identify(arm, path)) == f"{path}: has 0.799 s of motion; record at least 1 s"


def test_a_recording_in_which_too_little_moves(arm, columns, tmp_path):
    path = table_of(tmp_path / "f.csv", {name: values[:1500] for name, values in columns.items()})
    text = text_of(lambda: identify(arm, path))
    assert text.startswith(f"{path}: has ")
    assert text.endswith(" samples in which a joint moves steadily, 20 are needed; record a longer or a faster motion")


def test_a_constant_recording(arm, columns, tmp_path):
    still = {name: values if name == "t" else np.full_like(values, 0.5) for name, values in columns.items()}
    path = table_of(tmp_path / "f.csv", still)
    assert text_of(lambda: identify(arm, path)) == (
        f"{path}: no joint moves; record a motion, such as that of 'cosim identify --excite'"
    )


def test_a_recording_with_a_gap(arm, columns, tmp_path):
    path = table_of(
        tmp_path / "f.csv", {name: np.delete(values, slice(5000, 5100)) for name, values in columns.items()}
    )
    assert text_of(lambda: identify(arm, path)) == (
        f"{path}: the rows are 0.001 s apart, but 0.101 s after t = 4.999 s (line 5001);"
        " record all ticks, or cut the file there"
    )


def test_numbers_that_are_not_finite(arm, columns, tmp_path):
    broken = {name: values.copy() for name, values in columns.items()}
    broken["elbow/current"][100:103] = np.nan
    path = table_of(tmp_path / "f.csv", broken)
    assert text_of(lambda: identify(arm, path)) == (
        f"{path}: 3 numbers of the drives are not finite; record them again"
    )


def test_uneven_times(arm, columns, tmp_path):
    t = columns["t"] + np.random.default_rng(0).uniform(-3e-4, 3e-4, len(columns["t"]))
    path = table_of(tmp_path / "f.csv", columns | {"t": t})
    assert re.fullmatch(
        rf"{path}: the rows are 0\.001\d* s apart, but 0\.0\d+ s after t = [\d.]+ s \(line \d+\), and \d+ others are"
        " uneven too; record all ticks, or interpolate them evenly",
        text_of(lambda: identify(arm, path)),
    )


@pytest.mark.parametrize(("factor", "unit"), [(1e3, "ms"), (1e6, "us")])
def test_times_in_another_unit(arm, columns, tmp_path, factor, unit):
    path = table_of(tmp_path / "f.csv", columns | {"t": factor * columns["t"]})
    fix = f"rows {1e-3 * factor:.4g} s apart look like times in {unit}; give t in s, from 0 to 12"
    assert text_of(lambda: identify(arm, path)) == (
        f"{path}: has 0 samples in which a joint moves steadily, 20 are needed; {fix}"
    )
    assert text_of(lambda: identify(arm, path, method="output-error")) == f"{path}: {fix}"


def test_a_table_that_is_not_text(arm, tmp_path):
    (tmp_path / "f.csv").write_bytes(bytes(range(256)))
    assert text_of(lambda: identify(arm, tmp_path / "f.csv")) == (
        f"{tmp_path}/f.csv: is no text; give a table as 'cosim export' writes it, or a recording (.mcap)"
    )


COLUMNS = "t, shoulder/position, shoulder/current, elbow/position, elbow/current"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("", f"line 1 has no column 't'; name the columns {COLUMNS}"),
        ("time,angle,torque\n0,1,2\n", f"line 1 has no column 't'; name the columns {COLUMNS}"),
        ("time;angle;torque\n0;1;2\n", f"line 1 has no column 't'; name the columns {COLUMNS}"),
        ("t,angle,torque\n0,1,2\n", f"has no signal 'shoulder/position'; name the columns {COLUMNS}"),
        ("\x00\x01\n", "is no text; give a table as 'cosim export' writes it, or a recording (.mcap)"),
        (
            "t,shoulder/position,elbow/position,shoulder/current,elbow/current\n0,0,0,0,0\n1,0,x,0,0\n",
            "line 3 does not have a number for each signal",
        ),
        (
            "t,shoulder/position,elbow/position,shoulder/current,elbow/current\n",
            "has 0 s of motion; record at least 1 s",
        ),
    ],
)
def test_a_table_that_is_none(arm, tmp_path, content, text):
    (tmp_path / "f.csv").write_text(content)
    assert text_of(lambda: identify(arm, tmp_path / "f.csv")) == f"{tmp_path}/f.csv: {text}"


def test_a_file_that_is_missing(arm, tmp_path):
    assert text_of(lambda: identify(arm, tmp_path / "f.csv")) == (
        f"{tmp_path}/f.csv: cannot be read: No such file or directory"
    )


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"wanted": ["inertias"]}, "--fit: there is no number 'inertias'; did you mean 'inertia'?"),
        (
            {"wanted": ["joints.elbow.actuator.viscos"]},
            "--fit: there is no number 'joints.elbow.actuator.viscos'; did you mean 'joints.elbow.actuator.viscous'?",
        ),
        ({"cutoff": 200.0}, "--cutoff: is 200 Hz; rows of 1000 Hz allow more than 0 and up to 125 Hz"),
        ({"cutoff": 0.02}, "truth.mcap: has 12 s; a cut-off of 0.02 Hz needs 133 s"),
        ({"training": 1.0}, "--training: is 1; give a fraction from 0.1 to 0.95"),
        ({"method": "output_error"}, "--method: there is no method 'output_error'; did you mean 'output-error'?"),
    ],
)
def test_options(arm, recording, arguments, text):
    assert text_of(lambda: identify(arm, recording, **arguments)).endswith(text)


OTHERWISE = "use --method output-error"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"joints": {"all": {"actuator": MOTOR | {"stiffness": 3000}}, "elbow": {"actuator": {"type": "ideal"}}}},
            "the drive of 'shoulder' (dc_motor) has states that no recording has",
        ),
        (
            {
                "joints": {"shoulder": {"actuator": MOTOR}},
                "controllers": [
                    ARM["controllers"][0]
                    | {"joints": ["shoulder"], "trajectory": {"type": "quintic", "goal": 0.1, "duration": 1}}
                ],
            },
            "joint 'elbow' has no drive, so its effort is not recorded",
        ),
    ],
)
def test_rigs_without_an_equation_error(tmp_path, recording, change, text):
    path = written(tmp_path, "other.yaml", **change)
    assert text_of(lambda: identify(load_rig(path), recording, method="equation-error")) == (
        f"{path}: {text}; {OTHERWISE}"
    )
    rig = load_rig(path)
    assert text_of(lambda: excite(rig, choose(rig, ["friction"]), 8.0)) == (
        f"{path}: {text}; design its motion yourself"
    )


def test_loops_have_no_equation_error(recording):
    path = FOLDER / "mechanisms" / "four_bar.yaml"
    assert text_of(lambda: identify(load_rig(path), recording, method="equation-error")) == (
        f"{path}: only open trees of joints with one coordinate each have an equation error; {OTHERWISE}"
    )
    assert text_of(lambda: identify(load_rig(path), recording)) == (
        f"{path}: no joint has a simulated drive, so nothing drives the motion; add one"
    )


def test_elastic_links_have_no_equation_error(recording):
    path = FOLDER / "elastic" / "two_link_arm.yaml"
    assert text_of(lambda: identify(load_rig(path), recording, method="equation-error")) == (
        f"{path}: elastic links bend, and how far is not recorded; {OTHERWISE}"
    )


def test_a_recording_of_another_motion(tmp_path, arm_file, recording):
    sine = {"type": "sine", "amplitude": [0.7, 0.9], "frequency": [0.33, 0.41], "ramp": 1}
    rig = load_rig(arm_file, [f"controllers.track.trajectory={sine}"])
    with pytest.raises(InputError) as raised:
        identify(rig, recording, method="output-error")
    assert re.fullmatch(
        rf"{recording}: joint 'shoulder' of the rig moves otherwise, 0\.\d+ rms away from the recording;"
        r" give the overlay of the recorded run with --overlay",
        str(raised.value),
    )


def test_rows_between_the_ticks(arm_file, columns, tmp_path):
    rig = load_rig(arm_file, ["schedule.step=0.3 ms"])
    path = table_of(tmp_path / "f.csv", columns)
    assert text_of(lambda: identify(rig, path, method="output-error")) == (
        f"{path}: begins at 0 s with rows 0.001 s apart, which are no ticks of 0.0003 s of the rig;"
        " change schedule.step"
    )


def test_a_rig_that_is_interpreted(arm_file, recording):
    rig = load_rig(arm_file, interpret=True)
    assert text_of(lambda: identify(rig, recording, method="output-error")) == (
        f"{arm_file}: rollouts need compiled ticks, and its ticks are interpreted; load it without 'interpret'"
    )


def test_a_motion_that_determines_nothing(arm_file, tmp_path):
    """Of the second joint, which is at rest."""
    sine = {"type": "sine", "amplitude": [0.7, 0.0], "frequency": [0.43, 0.71], "ramp": 1}
    rig = load_rig(arm_file, [f"controllers.track.trajectory={sine}"])
    rig.run(record=tmp_path / "f.mcap", duration=8.0)
    names = ["joints.elbow.actuator.viscous"]
    assert text_of(lambda: identify(rig, tmp_path / "f.mcap", names)) == (
        f"{tmp_path}/f.mcap: the viscous of elbow is not identifiable from this motion;"
        " move the joints farther and faster"
    )


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "cosim identify: give a recording, or --excite for a motion to record"),
        (["F.mcap", "--excite"], "F.mcap: is for a recording; --excite designs a motion"),
        (["--excite", "--method", "output-error"], "--method: is for a recording; --excite designs a motion"),
        (["--excite", "--report", "r.html"], "--report: is for a recording; --excite designs a motion"),
        (["F.mcap", "--duration", "3"], "--duration: is for --excite"),
        (["--excite", "-o", "motion.txt"], "-o: motion.txt: the file must have the suffix .csv; choose another name"),
        (["--excite", "--duration", "2"], "--duration: is 2 s; give at least 4 s"),
        (["F.mcap", "-o", "rig.yaml"], "-o: rig.yaml: is the rig itself; choose another file"),
        (["F.mcap", "-o", "a.yaml", "--report", "a.yaml"], "--report: a.yaml: is the file of -o; choose another file"),
    ],
)
def test_words_of_the_command(command, words, text):
    assert command.refuses("identify", "rig.yaml", *words) == [text]
