"""`cosim export code --check`: the code that was built repeats a recording of the engine; what cannot be is refused."""

import platform
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from cosim import load_rig
from cosim.apps.deploy import check
from cosim.apps.deploy.check import TOOLS, Played, check_tools, played
from cosim.core.compile.object_code import CodeTarget
from cosim.core.errors import InputError, RunError
from cosim.execution.execution_mode import PlannedChange
from cosim.rig.run.recorded_run import Change
from tests.kit.command import RIG
from tests.kit.refusals import refusal
from tests.kit.samples import FOLDER
from tests.rig.test_rerun import with_changes

TARGET = platform.machine()
pytestmark = pytest.mark.skipif(TARGET not in TOOLS, reason=f"there is no target for {TARGET}")


def build(target=TARGET, *words):
    return ["export", "code", "rig.yaml", "--target", target, "--check", "run.mcap", *words]


def record(command, *words):
    command.prints("run", "rig.yaml", "--record", "run.mcap", *words)


def test_the_code_repeats_a_recording(command):
    record(command)
    out = command.prints(*build())
    assert out.splitlines()[-1] == "checked  run.mcap: 401 ticks of 14 signals, equal to the bit"
    assert sorted(path.name for path in Path().glob("rig.*")) == ["rig.h", "rig.json", "rig.o", "rig.yaml"]


@pytest.mark.parametrize("target", TOOLS)
def test_parameters_of_the_recording_and_their_changes_are_applied(command, target):
    if target != TARGET and (missing := [each for each in TOOLS[target][:2] if shutil.which(each) is None]):
        pytest.skip(f"there is no {', '.join(missing)}")
    changes = [Change(30, "hold.kp", (20.0,)), Change(70, "hold.kd", (8.0,))]
    with_changes("run.mcap", changes, lambda: load_rig("rig.yaml", ["controllers.hold.kp=70"]))
    out = command.prints(*build(target))
    assert out.splitlines()[-1] == "checked  run.mcap: 101 ticks of 14 signals, equal to the bit"


def test_the_first_difference_is_reported(command, monkeypatch, said):
    record(command)

    def wrong(items, target):
        (values,) = played(items, target)
        values[17:, 2] += 1e-6
        return [values]

    monkeypatch.setattr(check, "played", wrong)
    code, _, (line,) = command(*build())
    assert code == 1
    said(line, r"(?<=recorded )[^,]+", r"(?<=built )[^;]+")


def test_a_difference_within_the_tolerance_is_reported(command, monkeypatch):
    record(command)

    def rounded(items, target):
        (values,) = played(items, target)
        values[30, 0] += 3e-13
        return [values]

    monkeypatch.setattr(check, "played", rounded)
    code, out, _ = command(*build())
    assert code == 0
    assert re.fullmatch(
        r"checked  run.mcap: 401 ticks of 14 signals, largest difference 3e-13 \('hinge/position' at tick 30\)",
        out.splitlines()[-1],
    )


def test_a_run_that_its_guard_stopped(command):
    Path("rig.yaml").write_text(RIG.replace("hinge:\n", "hinge:\n    limits: {velocity: 0.4}\n"))
    code, _, _ = command("run", "rig.yaml", "--record", "run.mcap")
    assert code == 1
    out = command.prints(*build())
    assert re.search(r"run.mcap: [0-9]+ ticks of 14 signals, equal to the bit$", out.splitlines()[-1])


@pytest.mark.parametrize(
    "change",
    [
        "name=other",
        "schedule.integrator=semi_implicit_euler",
        "joints.hinge.initial.position=11 deg",
        "recording.numbers=float32",
    ],
)
def test_recordings_that_are_refused(command, said, change):
    record(command, "--set", change)
    code, _, err = command(*build())
    assert code == 2
    said(err)


def test_of_a_rig_with_real_motors(command, said):
    record(command)
    Path("rigs").symlink_to(FOLDER)
    said(command.refuses("export", "code", "rigs/leg_mit.yaml", "--target", TARGET, "--check", "run.mcap"))


def test_a_processor_that_is_not_this_one():
    with pytest.raises(InputError, match=r"^--check: this machine is a .*, which may not run code for a64fx; check it"):
        check_tools(TARGET, CodeTarget("", "a64fx"))


def test_without_an_emulator(monkeypatch, said):
    other = next(target for target in TOOLS if target != TARGET)
    monkeypatch.setattr(check.shutil, "which", lambda program: None)
    said(refusal(check_tools, other, CodeTarget("", "")))


def test_a_program_that_fails():
    other = next(target for target in TOOLS if target != TARGET)
    if shutil.which(TOOLS[other][0]) is None:
        pytest.skip(f"there is no {TOOLS[other][0]}")
    with pytest.raises(RunError, match=f"^--check: {TOOLS[other][0]} failed: "):
        played([Played("rig", b"no object", 1, 1, 1, [PlannedChange(0, np.zeros(1, int), np.zeros(1))])], other)


def test_a_recording_that_is_cut_off_is_repeated_as_far_as_it_goes(command):
    record(command)
    whole = Path("run.mcap").read_bytes()
    Path("run.mcap").write_bytes(whole[: 4 * len(whole) // 5])
    out = command.prints(*build())
    checked, warning = out.splitlines()[-2:]
    assert re.fullmatch(r"checked  run.mcap: [0-9]+ ticks of 14 signals, equal to the bit", checked)
    assert re.match(r"warning  run.mcap: the recording is cut off after t = [0-9.]+ s: ", warning)
