"""What cannot be identified is refused with the reason, in one line."""

from __future__ import annotations

import re

import numpy as np
import pytest

from cosim import load_rig, open_recording
from cosim.apps.identification.excitation import excite
from cosim.apps.identification.identification import identify
from cosim.apps.identification.variables import choose
from tests.identification.conftest import ARM, MOTOR, written
from tests.kit.given import beside
from tests.kit.refusals import refusal
from tests.kit.samples import FOLDER

GIVEN = beside(__file__)


def refused(call) -> str:
    """Why a call is refused; files without their folders."""
    return re.sub(r"/\S+/", "", refusal(call))


def table_of(path, columns):
    np.savetxt(path, np.column_stack(list(columns.values())), delimiter=",", header=",".join(columns), comments="")
    return path


@pytest.fixture(scope="module")
def columns(recording):
    """The signals of the recording that are needed."""
    run = open_recording(recording)
    names = [f"{joint}/{what}" for joint in run.joints for what in ("position", "current")]
    return {"t": np.asarray(run.t)} | {name: run[name].copy() for name in names}


def test_a_recording_of_another_rig(arm, tmp_path, said):
    load_rig(FOLDER / "user_controller.yaml").run(record=tmp_path / "other.mcap", duration=0.1)
    said(refused(lambda: identify(arm, tmp_path / "other.mcap")))


def without(name):
    return lambda columns: {column: values for column, values in columns.items() if column != name}


def rows(of):
    return lambda columns: {name: of(values) for name, values in columns.items()}


def with_current_of(value):
    def change(columns):
        current = columns["elbow/current"].copy()
        current[100:1003] = value
        return columns | {"elbow/current": current}

    return change


def at_times(of):
    return lambda columns: columns | {"t": of(columns["t"])}


# what becomes of the columns of a recording
TABLES = {
    "no position": without("elbow/position"),
    "no current": without("elbow/current"),
    "short": rows(lambda values: values[:800]),
    "little moves": rows(lambda values: values[:1500]),
    "constant": lambda columns: rows(lambda values: np.full_like(values, 0.5))(columns) | {"t": columns["t"]},
    "a long gap": rows(lambda values: np.delete(values, slice(5000, 8100))),
    "not finite": with_current_of(np.nan),
    "times in ms": at_times(lambda t: 1e3 * t),
    "times in us": at_times(lambda t: 1e6 * t),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_that_shows_nothing(arm, columns, tmp_path, said, name):
    path = table_of(tmp_path / "f.csv", TABLES[name](columns))
    said(refused(lambda: identify(arm, path)), r"has \d\d samples")
    if name.startswith("times"):
        said(refused(lambda: identify(arm, path, method="output-error")))


HEAD = "t,shoulder/position,elbow/position,shoulder/current,elbow/current\n"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"time,angle,torque\n0,1,2\n",
        b"time;angle;torque\n0;1;2\n",
        b"t,angle,torque\n0,1,2\n",
        b"\x00\x01\n",
        bytes(range(256)),
        f"{HEAD}0,0,0,0,0\n1,0,x,0,0\n".encode(),
        HEAD.encode(),
        None,
    ],
    ids=["empty", "no t", "semicolons", "no position", "binary", "all bytes", "no number", "no rows", "missing"],
)
def test_a_file_that_is_no_table(arm, tmp_path, said, content):
    if content is not None:
        (tmp_path / "f.csv").write_bytes(content)
    said(refused(lambda: identify(arm, tmp_path / "f.csv")))


@pytest.mark.parametrize("arguments", GIVEN["options"], ids=str)
def test_options(arm, recording, arguments, said):
    said(refused(lambda: identify(arm, recording, **arguments)))


STATES = {"joints": {"all": {"actuator": MOTOR | {"stiffness": 3000}}, "elbow": {"actuator": {"type": "ideal"}}}}
ALONE = {"joints": ["shoulder"], "trajectory": {"type": "quintic", "goal": 0.1, "duration": 1}}
NO_DRIVE = {"joints": {"shoulder": {"actuator": MOTOR}}, "controllers": [ARM["controllers"][0] | ALONE]}


@pytest.mark.parametrize("change", [STATES, NO_DRIVE], ids=["states", "no drive"])
def test_rigs_without_an_equation_error(tmp_path, recording, change, said):
    rig = load_rig(written(tmp_path, "other.yaml", **change))
    said(refused(lambda: identify(rig, recording, method="equation-error")))
    said(refused(lambda: excite(rig, choose(rig, ["friction"]), 8.0)))


def test_samples_without_an_equation_error(recording, said):
    loop, elastic = (load_rig(FOLDER / name) for name in ("mechanisms/four_bar.yaml", "elastic/two_link_arm.yaml"))
    for rig in (loop, elastic):
        said(refused(lambda rig=rig: identify(rig, recording, method="equation-error")))
    said(refused(lambda: identify(loop, recording)))


SINE = {"type": "sine", "amplitude": [0.7, 0.9], "frequency": [0.33, 0.41], "ramp": 1}


def test_what_simulated_runs_cannot_be(arm_file, recording, columns, tmp_path, said):
    """A recording of another motion, rows between the ticks, and a rig that is interpreted."""
    otherwise = load_rig(arm_file, [f"controllers.track.trajectory={SINE}"])
    said(refused(lambda: identify(otherwise, recording, method="output-error")), r"0\.\d+ rms")
    between = load_rig(arm_file, ["schedule.step=0.3 ms"])
    path = table_of(tmp_path / "f.csv", columns)
    said(refused(lambda: identify(between, path, method="output-error")))
    interpreted = load_rig(arm_file, interpret=True)
    said(refused(lambda: identify(interpreted, recording, method="output-error")))


def test_a_motion_that_determines_nothing(arm_file, tmp_path, said):
    """Of the second joint, which is at rest."""
    sine = SINE | {"amplitude": [0.7, 0.0], "frequency": [0.43, 0.71]}
    rig = load_rig(arm_file, [f"controllers.track.trajectory={sine}"])
    rig.run(record=tmp_path / "f.mcap", duration=8.0)
    said(refused(lambda: identify(rig, tmp_path / "f.mcap", ["joints.elbow.actuator.viscous"])))


@pytest.mark.parametrize("words", GIVEN["words_of_the_command"])
def test_words_of_the_command(command, words, said):
    said(command.refuses("identify", "rig.yaml", *words.split()))
