"""Gains that are unstable at the step: `check` and `run` name every joint; a run with invalid results has failed."""

from __future__ import annotations

import json
import re
from importlib.metadata import files
from pathlib import Path

import pytest

from tests.kit.rigs import controller

# current loops of 200 Hz: their lag takes part in the stability of the gains
ARM = Path(__file__).with_name("stiff_arm.yaml").read_text(encoding="utf-8")
HEAVY_DAMPING = "controllers.arm.kd=[4000, 1000]"


@pytest.fixture
def arm(command):
    Path("rig.yaml").write_text(ARM)
    return command


def warnings(out):
    return [line.strip() for line in out.splitlines() if "warning" in line]


@pytest.mark.parametrize("more", [(), ("--set", HEAVY_DAMPING)], ids=["stiff", "damped"])
def test_check_names_every_joint(arm, more, said):
    code, out, err = arm("check", "rig.yaml", *more)
    assert (code, err) == (0, [])
    said(warnings(out))


def test_a_run_in_a_limit_cycle_has_the_cause_before_and_after(arm, said):
    code, out, err = arm("run", "rig.yaml", "--json", "a.json")
    assert (code, err) == (0, [])
    first, second, last = warnings(out)
    said(last)
    assert out.splitlines()[:2] == [first, second]
    assert last.endswith("; ".join(line.removeprefix("warning: ") for line in (first, second)))
    assert json.loads(Path("a.json").read_bytes())["energy"]["residual_relative"] > 0.01
    # beside a summary on stdout
    code, out, err = arm("run", "rig.yaml", "--json", "-")
    assert (code, err) == (0, [first, second, last.replace("warning  ", "warning: ")]) and json.loads(out)


def test_a_run_with_invalid_results_has_failed(arm, said):
    code, out, err = arm("run", "rig.yaml", "--set", HEAVY_DAMPING)
    assert code == 1
    said(err)
    assert all(line.removeprefix("warning: ") in err[0] for line in warnings(out)) and len(warnings(out)) == 2


def test_the_step_is_the_cause_where_no_loop_is_unstable(command, said):
    settings = "controllers=[]", "schedule={step: 200 ms, duration: 4 s}", "joints.hinge.initial.position=170 deg"
    out = command.prints("run", "rig.yaml", *(word for setting in settings for word in ("--set", setting)))
    said(out.splitlines()[-1])


@pytest.mark.parametrize("fix", ["controllers.arm.kd=[46, 13]", "schedule.step=100 us"])
def test_the_fix_cures(arm, fix):
    code, out, err = arm("run", "rig.yaml", "--set", fix)
    assert (code, err) == (0, [])
    assert "warning" not in out and "cut to its limit" not in out


STILL = "controllers.arm.kp=[400, 100]"
MOTOR = "{type: dc_motor, resistance: 0.3, inductance: 0.5 mH, torque_constant: 0.1, ratio: 50, rotor_inertia: 0.2}"
UNFIT = {
    "weak motors": "joints.all.limits.effort=5 N*m",
    "large rotors": f"joints.all={{actuator: {MOTOR}}}",
    "few counts": "joints.elbow.encoder.cpr=4096",
}


@pytest.mark.parametrize("what", UNFIT)
def test_motors_and_encoders_that_do_not_fit_are_named(arm, what, said):
    words = ["rig.yaml", "--set", STILL, "--set", UNFIT[what]]
    code, out, err = arm("check", *words)
    assert (code, err) == (0, [])
    said(warnings(out))
    assert warnings(arm("run", *words, "--duration", "1 ms")[1])[: len(warnings(out))] == warnings(out)


def test_an_encoder_that_fits_is_not_named(arm):
    assert not warnings(arm("check", "rig.yaml", "--set", STILL, "--set", "joints.elbow.encoder.cpr=1000000")[1])


def test_controllers_in_python_are_not_called_before_the_run(command):
    # `open` keeps it in Python
    note = """
with open("calls", "a") as file:
    file.write(f"{math.floor(t * 1e3 + 0.5) / 1e3} ")
effort = np.zeros(1)"""
    Path("own.py").write_text(controller(note))
    command.prints("run", "rig.yaml", "--set", "controllers=[{type: own.py}]", "--duration", "3 ms")
    assert Path("calls").read_text() == "0.0 0.001 0.002 0.003 "


PANDA = Path(__file__).with_name("panda.yaml").read_text(encoding="utf-8")


def panda_warnings(command, *settings):
    """Joint -> (gain, advice) of the unstable gains of a Panda."""
    (urdf,) = (
        file for file in files("example-robot-data") or () if str(file).endswith("panda_description/urdf/panda.urdf")
    )
    Path("rig.yaml").write_text(PANDA % urdf.locate())
    out = command.prints("check", "rig.yaml", *(word for each in settings for word in ("--set", each)))
    found = re.findall(
        r"(kp|kd) \S+ \S+ of joint '(\w+)' is unstable .*; (?:lower|raise) \w+ (?:to at most|above) (\S+)", out
    )
    assert len(found) == out.count("unstable")
    return {joint: (key, float(value)) for key, joint, value in found}


def test_joints_with_good_gains_are_not_blamed_for_the_damping_of_others(command):
    wrong, kd = {"panda_joint1": 0, "panda_joint3": 2}, [1e6, 80, 1e6, 60]
    found = panda_warnings(command, f"controllers.arm.kd={kd}", "controllers.wrist.kd=2000")
    assert found.keys() == {*wrong, "panda_joint5", "panda_joint6", "panda_joint7"}
    for joint, place in wrong.items():
        key, kd[place] = found[joint]
        assert key == "kd" and 40 < kd[place] < 120
    wrist = [found[f"panda_joint{k}"][1] for k in (5, 6, 7)]
    # the advice is enough
    assert panda_warnings(command, f"controllers.arm.kd={kd}", f"controllers.wrist.kd={wrist}") == {}
