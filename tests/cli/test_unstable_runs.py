"""Gains that are unstable at the step: `check` and `run` name every joint; a run with invalid results has failed."""

from __future__ import annotations

import json
import re
from importlib.metadata import files
from pathlib import Path

import pytest

# current loops of 200 Hz: their lag takes part in the stability of the gains
ARM = """
mechanism:
  bodies:
    - {name: upper, joint: shoulder, axis: [0, 1, 0], mass: 2 kg, com: [20 cm, 0, 0], inertia: [0.002, 0.03, 0.03]}
    - {name: fore, joint: elbow, axis: [0, 1, 0], origin: {xyz: [40 cm, 0, 0]}, mass: 1 kg, com: [15 cm, 0, 0],
       inertia: [0.001, 0.01, 0.01]}
joints:
  all:
    actuator: {type: dc_motor, resistance: 0.3 ohm, inductance: 0.5 mH, torque_constant: 0.1 N*m/A, ratio: 50,
               rotor_inertia: 0.2 kg*cm^2}
    limits: {effort: 40 N*m}
  shoulder: {initial: {position: 90 deg}}
controllers:
  - {name: arm, type: feedforward_pd, kp: [40000, 10000], kd: [40, 10],
     trajectory: {type: quintic, goal: [0 deg, 45 deg], duration: 0.8 s}}
schedule: {duration: 1 s}
"""
LIGHT = "is unstable at a step of 1 ms: its drive sees an inertia of 0.0644 kg*m^2"
HEAVY = "is unstable at a step of 1 ms: its drive sees an inertia of 0.369 kg*m^2"
STIFF = [
    f"kp 10000 N*m/rad of joint 'elbow' {LIGHT}; raise kd above 12 N*m*s/rad",
    f"kp 40000 N*m/rad of joint 'shoulder' {HEAVY}; raise kd above 45 N*m*s/rad",
]
DAMPED = [
    f"kd 1000 N*m*s/rad of joint 'elbow' {LIGHT}; lower kd to at most 140 N*m*s/rad",
    f"kd 4000 N*m*s/rad of joint 'shoulder' {HEAVY}; lower kd to at most 600 N*m*s/rad",
]
HEAVY_DAMPING = "controllers.arm.kd=[4000, 1000]"


@pytest.fixture
def arm(command):
    Path("rig.yaml").write_text(ARM)
    return command


@pytest.mark.parametrize(("more", "expected"), [((), STIFF), (("--set", HEAVY_DAMPING), DAMPED)])
def test_check_names_every_joint(arm, more, expected):
    code, out, err = arm("check", "rig.yaml", *more)
    assert (code, err) == (0, [])
    assert [line.strip() for line in out.splitlines() if "warning" in line] == [f"warning: {line}" for line in expected]


def test_a_run_in_a_limit_cycle_has_the_cause_before_and_after(arm):
    code, out, err = arm("run", "rig.yaml")
    assert (code, err) == (0, [])
    assert out.splitlines()[:2] == [f"warning: {line}" for line in STIFF]
    assert out.splitlines()[-1] == f"warning  the energy balance does not close: {'; '.join(STIFF)}"


def test_a_run_with_invalid_results_has_failed(arm):
    code, out, err = arm("run", "rig.yaml", "--set", HEAVY_DAMPING)
    assert (code, err) == (1, [f"rig.yaml: the run is unstable and its results are invalid: {'; '.join(DAMPED)}"])
    assert [line for line in out.splitlines() if "warning" in line] == [f"warning: {line}" for line in DAMPED]


def test_warnings_leave_stdout_to_the_summary(arm):
    code, out, err = arm("run", "rig.yaml", "--json", "-")
    assert (code, err) == (0, [f"warning: {line}" for line in STIFF])
    assert json.loads(out)["energy"]["residual_relative"] > 0.01


def test_the_step_is_the_cause_where_no_loop_is_unstable(command):
    settings = "controllers=[]", "schedule={step: 200 ms, duration: 4 s}", "joints.hinge.initial.position=170 deg"
    code, out, err = command("run", "rig.yaml", *(word for setting in settings for word in ("--set", setting)))
    assert (code, err) == (0, [])
    assert out.splitlines()[-1] == (
        "warning  the energy balance does not close: the step is too coarse; try a smaller schedule.step, more"
        " schedule.substeps or schedule.integrator: rosenbrock"
    )


@pytest.mark.parametrize("fix", ["controllers.arm.kd=[46, 13]", "schedule.step=100 us"])
def test_the_fix_cures(arm, fix):
    code, out, err = arm("run", "rig.yaml", "--set", fix)
    assert (code, err) == (0, [])
    assert "warning" not in out and "cut to its limit" not in out


STILL = "controllers.arm.kp=[400, 100]"
WEAK = [
    "the motion of joint 'shoulder' needs 8.89 N*m at 0.8 s, its limit is 5 N*m; raise joints.shoulder.limits or slow"
    " the trajectory down",
]
ROTOR = "the links at most 0.423 kg*m^2; check rotor_inertia, which is that at the motor's shaft, and ratio"
LARGE = [
    f"the rotor of joint 'shoulder' has an inertia of 500 kg*m^2 at the joint, {ROTOR}",
    f"the rotor of joint 'elbow' has an inertia of 500 kg*m^2 at the joint, {ROTOR}",
]
COARSE = [
    "one count of the encoder of joint 'elbow' in a step of 1 ms requests 15.3 N*m by kd, its motion at most 1.04 N*m;"
    " lower kd or raise encoder.cpr"
]


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("joints.all.limits.effort=5 N*m", WEAK),
        ("joints.all={actuator: ROTOR}", LARGE),
        ("joints.elbow.encoder.cpr=4096", COARSE),
        ("joints.elbow.encoder.cpr=1000000", []),
    ],
)
@pytest.mark.parametrize("action", ["check", "run"])
def test_motors_and_encoders_that_do_not_fit_are_named(arm, action, setting, expected):
    motor = "{type: dc_motor, resistance: 0.3, inductance: 0.5 mH, torque_constant: 0.1, ratio: 50, rotor_inertia: 0.2}"
    code, out, err = arm(action, "rig.yaml", "--set", STILL, "--set", setting.replace("ROTOR", motor))
    assert (code, err) == (0, [])
    assert [line.strip() for line in out.splitlines() if "warning:" in line] == [
        f"warning: {line}" for line in expected
    ]


def test_controllers_in_python_are_not_called_before_the_run(command):
    Path("own.py").write_text(COUNTING)
    code, _, err = command("run", "rig.yaml", "--set", "controllers=[{type: own.py}]", "--duration", "3 ms")
    assert (code, err) == (0, [])
    assert Path("calls").read_text() == "0.0 0.001 0.002 0.003 "


COUNTING = """\
from pathlib import Path
import math
import numpy as np
from cosim.types import COMMAND, joint_signals, params

@params
class Params:
    pass

class Own:
    def __init__(self, params, context):
        self.params, self.inputs, self.outputs = params, joint_signals((), 1), joint_signals(COMMAND, 1)

    def initial(self):
        return {}

    def update(self, t, p, x, u):
        text = f"{math.floor(t * 1e3 + 0.5) / 1e3} "
        with open("calls", "a") as file:
            file.write(text)
        return {}, dict.fromkeys(COMMAND, np.zeros(1))

def load(params, context):
    return Own(params, context)
"""


PANDA = """
mechanism: {urdf: %s}
joints:
  all: {actuator: {type: dc_motor, resistance: 0.9 ohm, inductance: 1.1 mH, torque_constant: 0.11 N*m/A, ratio: 100,
                   rotor_inertia: 0.1 kg*cm^2, viscous: 1.0, bandwidth: 120 Hz},
        encoder: {cpr: 262144, delay: 1}}
  panda_joint4: {initial: {position: -90 deg}}
  panda_joint6: {initial: {position: 90 deg}}
  panda_finger_joint1: {actuator: {type: ideal}, encoder: null, initial: {position: 20 mm}}
controllers:
  - {name: arm, type: feedforward_pd, kp: [600, 900, 500, 900], kd: [45, 80, 35, 60],
     joints: [panda_joint1, panda_joint2, panda_joint3, panda_joint4],
     trajectory: {type: sine, amplitude: 0.01, frequency: 0.3}}
  - {name: wrist, type: pd_gravity, kp: 200, kd: 12, joints: [panda_joint5, panda_joint6, panda_joint7],
     trajectory: {type: sine, amplitude: 0.01, frequency: 0.3}}
  - {name: gripper, type: pid, kp: 2000, ki: 200, kd: 40, joints: [panda_finger_joint1],
     trajectory: {type: sine, amplitude: 0.01, frequency: 0.3}}
schedule: {duration: 1 s}
"""


def panda_warnings(command, *settings):
    """Joint -> (gain, advice) of the unstable gains of a Panda."""
    (urdf,) = (
        file for file in files("example-robot-data") or () if str(file).endswith("panda_description/urdf/panda.urdf")
    )
    Path("rig.yaml").write_text(PANDA % urdf.locate())
    code, out, err = command("check", "rig.yaml", *(word for each in settings for word in ("--set", each)))
    assert (code, err) == (0, [])
    found = re.findall(
        r"(kp|kd) \S+ \S+ of joint '(\w+)' is unstable .*; (?:lower|raise) \w+ (?:to at most|above) (\S+)", out
    )
    assert len(found) == out.count("unstable")
    return {joint: (key, float(value)) for key, joint, value in found}


@pytest.mark.parametrize("high", [120, 3_000, 1e6])
def test_joints_with_good_gains_are_not_blamed_for_the_damping_of_others(command, high):
    wrong = {"panda_joint1": 0, "panda_joint3": 2}
    kd = [45, 80, 35, 60]
    for place in wrong.values():
        kd[place] = high
    found = panda_warnings(command, f"controllers.arm.kd={kd}")
    assert found.keys() == wrong.keys()
    for joint, place in wrong.items():
        key, kd[place] = found[joint]
        assert key == "kd" and 40 < kd[place] < 120
    assert panda_warnings(command, f"controllers.arm.kd={kd}") == {}  # the advice is enough


def test_joints_with_good_dampings_are_not_blamed_for_those_of_the_wrist(command):
    found = panda_warnings(command, "controllers.wrist.kd=2000")
    assert found.keys() == {"panda_joint5", "panda_joint6", "panda_joint7"}
    kd = [found[f"panda_joint{k}"][1] for k in (5, 6, 7)]
    assert panda_warnings(command, f"controllers.wrist.kd={kd}") == {}
