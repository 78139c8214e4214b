"""`cosim check`: masses, limits and gains; the first tick; time constants and references beyond limits."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cosim.output import slow_code

CONTROLLER = """\
from cosim.types import COMMAND, joint_signals, params
from cosim import ops
import numpy as np

@params
class Params:
    pass

class Own:
    def __init__(self, params, context):
        n = len(context.joints)
        self.params = params
        self.inputs = joint_signals(("position",), n)
        self.outputs = joint_signals(COMMAND, n)

    def initial(self):
        return {}

    def update(self, t, p, x, u):
        zero = ops.zeros(1)
        BODY
        return {}, {"position": zero, "velocity": zero, "effort": effort, "kp": zero, "kd": zero}

def load(params, context):
    return Own(params, context)
"""


def lines(command, *overrides):
    words = [word for override in overrides for word in ("--set", override)]
    code, out, err = command("check", "rig.yaml", *words)
    assert (code, err) == (0, [])
    return [line.strip() for line in out.splitlines()]


def test_masses_limits_and_gains_are_listed(command):
    found = lines(command, "joints.hinge.limits={lower: -90 deg, upper: 90 deg, effort: 30}")
    assert "mass 1 kg: link 1 kg" in found
    assert "hinge: actuated by ideal, from 0.174533 rad; limits: effort 30 N·m, position -1.571 to 1.571 rad" in found
    assert "kp 50, ki 10, kd 5" in found


def test_what_shaping_does_to_a_motion_is_listed(command, tmp_path):
    code, out, _ = command("check", str(Path(__file__).parents[2] / "rigs/crane.yaml"))
    assert code == 0 and "    shaped for 0.2878 Hz: the motion is longer by 3.47 s and ends at 8.475 s\n" in out
    shaping = "shaping: {type: zv, modes: [auto]}"
    (tmp_path / "arm.yaml").write_text(
        "mechanism:\n  gravity: [0, 0, 0]\n  bodies: [{name: arm, joint: hub, axis: [0, 0, 1]}]\n"
        "  elastic: [{link: arm, beam: {length: 1, stiffness: {mass: 1, EI: [100, 100]}, modes: {bend_y: 1}}}]\n"
        f"joints: {{hub: {{prescribed: {{type: quintic, goal: 1, duration: 0.5 s, {shaping}}}}}}}\n"
        "schedule: {step: 1 ms, duration: 1 s}\n"
    )
    code, out, _ = command("check", "arm.yaml")
    frequency = 1.875104**2 * 10.0 / (2.0 * 3.141592653589793)
    ends = f"longer by {0.5 / frequency:.3g} s and ends at {0.5 + 0.5 / frequency:.4g} s, its speed changes by up to "
    assert code == 0 and f"    shaped for {frequency:.4g} Hz: the motion is {ends}" in out


def test_references_beyond_limits_are_named(command):
    limits = "joints.hinge.limits={lower: -20 deg, upper: 25 deg, velocity: 1}"
    found = [line for line in lines(command, limits) if line.startswith("warning")]
    assert found == [
        "warning: the position of the reference of joint 'hinge' is 0.5034 rad at 0.4 s, its limit 0.4363 rad",
        "warning: the velocity of the reference of joint 'hinge' is 1.309 rad/s at 0.2499 s, its limit 1 rad/s",
    ]


def test_gains_that_are_unstable_at_the_step_are_named_with_a_fix(command):
    (found,) = (line for line in lines(command, "controllers.hold.kd=900") if line.startswith("warning"))
    assert found.startswith("warning: kd 900 N*m*s/rad of joint 'hinge' is unstable at a step of 1 ms:")
    assert "its drive sees an inertia of 0.35 kg*m^2; lower kd to at most 700 N*m*s/rad" in found


def test_the_fastest_time_constants_stand_beside_the_step(command):
    (found,) = (line for line in lines(command) if line.startswith("fastest"))
    assert "joint 'hinge' 269 ms, 269 steps" in found  # √(I/(m g l cos 10°))
    assert "closed loop of joint 'hinge'" in found


def test_a_step_that_is_too_long_for_an_elastic_link_names_the_mode(command, tmp_path):
    """At twice the step the first tick diverges."""
    section = "{shape: rectangle, width: 20 mm, height: 40 mm}"
    (tmp_path / "rig.yaml").write_text(
        "mechanism:\n"
        "  bodies: [{name: arm, joint: hub}, {name: b, type: fixed, parent: arm, origin: {xyz: [1, 0, 0]}, mass: 5}]\n"
        "  elastic:\n"
        "    - link: arm\n"
        f"      beam: {{length: 1, density: 2700, youngs_modulus: 70 GPa, modes: {{bend_y: 2}}, section: {section}}}\n"
        "joints: {hub: {actuator: {type: ideal}}}\n"
        "schedule: {step: 20 ms, duration: 1 s}\n"
    )
    _, shown, _ = command("check", str(tmp_path / "rig.yaml"))
    fastest, warning = (line.strip() for line in shown.splitlines() if "time constant" in line)
    assert fastest.startswith("fastest time constants at the start: mode 'arm.bend_y_1' ")
    fix = "too short for a step of 20 ms with rk4; use schedule.substeps: 64 or schedule.integrator: rosenbrock"
    assert warning == f"warning: mode 'arm.bend_y_1' has a time constant of 524 us, {fix}"


def test_a_mechanism_whose_motion_is_prescribed_has_no_time_constants(command):
    found = lines(command, "controllers=[]", "joints.hinge={prescribed: {type: quintic, goal: 1, duration: 1 s}}")
    assert "hinge: prescribed, from 0 rad" in found
    assert not [line for line in found if line.startswith("fastest")]


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("effort = 1.0 / zero", ": its command 'effort' is not finite in its first call"),
        ("effort = ops.zeros(2)", "the output 'effort' has shape (2,); it must be (1,)"),
        (
            "effort = ops.log(u['position'] - 100.0)",
            "its command 'effort' is not finite in its first call; check its arithmetic",
        ),
        ("effort = np.linalg.inv(np.zeros((1, 1)))[0]", "fails in its first call: LinAlgError: Singular matrix"),
        ("effort = __import__('os')._exit(0)", "os._exit(0) would end the program; raise an exception instead"),
        ("effort = __import__('sys').exit(0)", "fails in its first call: SystemExit: 0"),
    ],
)
def test_a_controller_that_fails_is_named_before_anything_runs(command, body, what):
    Path("own.py").write_text(CONTROLLER.replace("BODY", body))
    code, out, err = command("check", "rig.yaml", "--set", "controllers=[{type: own.py}]")
    assert (code, out) == (2, "")
    (message,) = err
    assert message.startswith("--set controllers=[{type: own.py}]: ") and what in message
    assert "LinAlgError" not in message or message.endswith("own.py:21)")


MISTAKES = [
    ('effort = u["velocity"]', "position", "'velocity' is not in the inputs; add it to them", 21),
    ('effort = u["positon"]', "position", "there is no input 'positon'; did you mean 'position'?", 21),
    (
        'effort = self.model.frame_pose(u["position"], "lnk")[0, :1]',
        "position",
        "link 'lnk' does not exist; did you mean 'link'?",
        21,
    ),
    ("effort = zero", "all_velocities", "there is no signal 'all_velocities'; did you mean 'all_velocity'?", 13),
]


@pytest.mark.parametrize(("body", "declared", "what", "line"), MISTAKES)
@pytest.mark.parametrize("action", ["check", "run"])
def test_mistakes_of_names_in_a_controller_have_their_line(command, tmp_path, action, body, declared, what, line):
    own = CONTROLLER.replace("BODY", body).replace('"position",), n', f'"{declared}",), n')
    Path("own.py").write_text(own.replace("self.params = params", "self.params, self.model = params, context.model"))
    code, out, err = command(action, "rig.yaml", "--set", "controllers=[{type: own.py}]")
    assert (code, out) == (1 if action == "run" and declared == "position" else 2, "")
    assert len(err) == 1 and f"{what} ({tmp_path / 'own.py'}:{line})" in err[0]


def test_a_controller_that_stays_in_python_is_named(command, tmp_path):
    Path("own.py").write_text(CONTROLLER.replace("BODY", "effort = zero if t > 0.1 else zero"))
    found = lines(command, "controllers=[{type: own.py}]")
    (why,) = (line for line in found if line.startswith("in Python: "))
    assert why.startswith(f"in Python: {tmp_path / 'own.py'}:21: ")
    assert found[found.index(why) - 1] == "controller own: own, every 1 ms"
    assert not any(line.startswith("in Python") for line in lines(command))


@pytest.mark.parametrize("action", ["check", "run"])
def test_a_function_that_does_not_return_is_named(command, tmp_path, monkeypatch, action):
    """It returns when its name was printed, so that the test takes no longer."""
    monkeypatch.setattr(slow_code, "PATIENCE", 0.05)
    named = threading.Event()
    monkeypatch.setattr("builtins.NAMED", named, raising=False)
    printed = []

    def show(text, file, flush):
        printed.append(text)
        named.set()

    monkeypatch.setattr(slow_code, "print", show, raising=False)
    body = "effort = zero\n        while not NAMED.is_set():\n            pass"
    Path("own.py").write_text(CONTROLLER.replace("BODY", body))
    code, _, err = command(action, "rig.yaml", "--set", "controllers=[{type: own.py}]")
    assert (code, err) == (0, [])
    place, what = printed[0].split(": ")
    assert place in [f"{tmp_path / 'own.py'}:{line}" for line in (22, 23)]
    assert what == "'update' has not returned for 0.05 s; check its loops, or press Ctrl-C"


def test_waiting_for_this_program_and_its_libraries_is_silent(command):
    """In a process of its own, where only they are called."""
    code = "from cosim.output import slow_code; slow_code.PATIENCE = 0.01; from cosim.cli.main import main; main()"
    found = subprocess.run([sys.executable, "-c", code, "check", "rig.yaml"], capture_output=True, text=True)
    assert (found.returncode, found.stderr) == (0, "")
