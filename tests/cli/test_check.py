"""`cosim check`: masses, limits and gains; the first tick; time constants and references beyond limits."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cosim.output import slow_code
from tests.kit.rigs import controller

OWN = "controllers=[{name: own, type: own.py}]"


def own(lines):
    """A controller beside the rig, with these lines from line 22 on."""
    Path("own.py").write_text(controller(lines))


def lines(command, *overrides):
    words = [word for override in overrides for word in ("--set", override)]
    out = command.prints("check", "rig.yaml", *words)
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


@pytest.mark.parametrize(
    "setting", ["joints.hinge.limits={lower: -20 deg, upper: 25 deg, velocity: 1}", "controllers.hold.kd=900"]
)
def test_references_beyond_limits_and_unstable_gains_are_named(command, setting, said):
    said(line for line in lines(command, setting) if line.startswith("warning"))


def test_the_fastest_time_constants_stand_beside_the_step(command):
    (found,) = (line for line in lines(command) if line.startswith("fastest"))
    assert "joint 'hinge' 269 ms, 269 steps" in found  # √(I/(m g l cos 10°))
    assert "closed loop of joint 'hinge'" in found


def test_a_step_that_is_too_long_for_an_elastic_link_names_the_mode(command, tmp_path, said):
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
    said(warning)


def test_a_mechanism_whose_motion_is_prescribed_has_no_time_constants(command):
    found = lines(command, "controllers=[]", "joints.hinge={prescribed: {type: quintic, goal: 1, duration: 1 s}}")
    assert "hinge: prescribed, from 0 rad" in found
    assert not [line for line in found if line.startswith("fastest")]


FAILING = ["1.0 / ops.zeros(1)", "ops.zeros(2)", "ops.log(q - 100.0)", "np.linalg.inv(np.zeros((1, 1)))[0]"]
FAILING += ["__import__('os')._exit(0)", "__import__('sys').exit(0)"]


@pytest.mark.parametrize("effort", FAILING)
def test_a_controller_that_fails_is_named_before_anything_runs(command, effort, said):
    own(f"effort = {effort}")
    (message,) = command.refuses("check", "rig.yaml", "--set", OWN)
    assert message.startswith(f"--set {OWN}: ") and ("LinAlgError" not in message or message.endswith("own.py:22)"))
    said(message)


# what is wrong, and the line that has it
MISTAKES = {
    'effort = u["torque"]': 22,
    'effort = u["positon"]': 22,
    'effort = u["reference_position"]': 22,
    'effort = self.model.frame_pose(u["position"], "lnk")[0, :1]': 22,
    "effort = all_velocities": 14,
}


@pytest.mark.parametrize("lines", MISTAKES)
@pytest.mark.parametrize("action", ["check", "run"])
def test_mistakes_of_names_in_a_controller_have_their_line(command, action, lines, said):
    own(lines.replace("all_velocities", "ops.zeros(1)"))
    text = Path("own.py").read_text().replace("self.seen = params, []", "self.model = params, context.model")
    if "all_velocities" in lines:
        text = text.replace("joint_signals(FEEDBACK, 1)", "joint_signals(('all_velocities',), 1)")
    Path("own.py").write_text(text)
    code, out, err = command(action, "rig.yaml", "--set", OWN)
    assert (code, out) == (1 if action == "run" and MISTAKES[lines] == 22 else 2, "")
    assert f"own.py:{MISTAKES[lines]})" in err[0]
    said(err)


def test_a_controller_that_stays_in_python_is_named(command, tmp_path):
    own("effort = ops.zeros(1) if t > 0.1 else ops.zeros(1)")
    found = lines(command, OWN)
    (why,) = (line for line in found if line.startswith("in Python: "))
    assert why.startswith(f"in Python: {tmp_path / 'own.py'}:22: ")
    assert found[found.index(why) - 2] == "controller own: own, every 1 ms"  # and its parameter
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
    own("effort = ops.zeros(1)\nwhile not NAMED.is_set():\n    pass")
    command.prints(action, "rig.yaml", "--set", OWN)
    place, what = printed[0].split(": ")
    assert place in [f"{tmp_path / 'own.py'}:{line}" for line in (23, 24)]
    assert what == "'update' has not returned for 0.05 s; check its loops, or press Ctrl-C"


def test_waiting_for_this_program_and_its_libraries_is_silent(command):
    """In a process of its own, where only they are called."""
    code = "from cosim.output import slow_code; slow_code.PATIENCE = 0.01; from cosim.cli.main import main; main()"
    found = subprocess.run([sys.executable, "-c", code, "check", "rig.yaml"], capture_output=True, text=True)
    assert (found.returncode, found.stderr) == (0, "")
