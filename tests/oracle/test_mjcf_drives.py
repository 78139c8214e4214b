"""Rigs with `actuators: file` move as MuJoCo moves the same file under the same controls, step by step: both with the
classical Runge–Kutta method. And the limits of efforts that follow from actuators."""

import math

import mujoco
import numpy as np
import pytest

from cosim import load_rig
from cosim.core.errors import RunWarning
from cosim.mechanics.multibody.description.mjcf.reader import read_mjcf

STEP, DURATION, RATE = 1e-3, 1.0, 9.0  # s, s, rad/s
BODIES = """<body name="a" pos="0 0 1"><joint name="h" axis="0 1 0" damping="0.1"/>
    <inertial pos="0.2 0 -0.05" mass="1.2" diaginertia="0.01 0.02 0.015"/>
    <body name="b" pos="0.4 0 0"><joint name="s" type="slide" axis="1 0 0" damping="2"/>
      <inertial pos="0.05 0 0.02" mass="0.6" diaginertia="0.002 0.002 0.003"/>
    </body></body>"""
CONTROLLER = """
from cosim.plugin import COMMAND, joint_signals, ops, param, params


@params
class Params:
    follows: str = param(default="effort")
    amplitude: float = param(default=1.0)


class Sine:
    def __init__(self, params):
        self.params, self.inputs, self.outputs = params, {}, joint_signals(COMMAND, 1)

    def initial(self):
        return {}

    def update(self, t, p, x, u):
        zero = ops.zeros(1)
        command = {"position": zero, "velocity": zero, "effort": zero, "kp": zero, "kd": zero}
        return x, command | {p.follows: ops.array([p.amplitude * ops.sin(9.0 * t)])}


def load(params, context):
    return Sine(params)
"""
AMPLITUDES = {"effort": 1.5, "position": 0.6, "velocity": 0.6}

# actuator on joint h, what of the command it follows, the control of MuJoCo for a command
CASES = {
    "motor": ('<motor joint="h" gear="5" ctrlrange="-0.2 0.2"/>', "effort", lambda u: u / 5),
    "motor, one-sided": ('<motor joint="h" gear="-5" forcerange="-0.05 0.3"/>', "effort", lambda u: u / -5),
    "position": ('<position joint="h" kp="40" kv="3" ctrlrange="-0.5 0.2"/>', "position", lambda u: u),
    "position, gear": ('<position joint="h" kp="40" gear="2.5" forcerange="-3 5"/>', "position", lambda u: 2.5 * u),
    "position, turned": ('<position joint="h" kp="40" gear="-2" kv="1"/>', "position", lambda u: -2 * u),
    "velocity": ('<velocity joint="h" kv="6" gear="-2" ctrlrange="-0.3 0.9"/>', "velocity", lambda u: -2 * u),
    "integrated velocity": ('<intvelocity joint="h" kp="60" kv="2" actrange="-0.5 0.2"/>', "velocity", lambda u: u),
    "damper": ('<damper joint="h" kv="2" gear="1.5" ctrlrange="0 4"/>', "effort", lambda u: u),
    "cylinder": ('<cylinder joint="h" area="3" timeconst="0.02" bias="0.5 -1 -0.2"/>', "effort", lambda u: u / 3),
    "general": (
        """<general joint="h" gear="2" gaintype="affine" gainprm="2 0.5 -0.3" biastype="affine" biasprm="0.3 -4 -0.5"
             dyntype="filter" dynprm="0.1"/>""",
        "effort",
        lambda u: u,
    ),
    "dcmotor": ('<dcmotor joint="h" motorconst="0.1" resistance="2" gear="30"/>', "effort", lambda u: u * 2 / 0.1 / 30),
    "rotor": ('<motor joint="h" gear="5" armature="0.02" damping="0.05 0.02"/>', "effort", lambda u: u / 5),
}
# MuJoCo advances these activations by a step of first order, which halves with the step
FIRST_ORDER = {
    "position, filtered": ('<position joint="h" kp="40" kv="3" timeconst="0.05"/>', "position", lambda u: u),
    "dcmotor, inductance": (
        '<dcmotor joint="h" motorconst="0.1" resistance="2" inductance="0.004" gear="30" ctrlrange="-24 24"/>',
        "effort",
        lambda u: u * 2 / 0.1 / 30,
    ),
}


def model_text(actuator, step=STEP):
    option = f'<option timestep="{step}" integrator="RK4"/>'
    return f"<mujoco>{option}<worldbody>{BODIES}</worldbody><actuator>{actuator}</actuator></mujoco>"


def run_of(folder, actuator, follows):
    (folder / "model.xml").write_text(model_text(actuator))
    (folder / "sine.py").write_text(CONTROLLER)
    file = folder / "rig.yaml"
    file.write_text(f"""
mechanism: {{mjcf: model.xml, actuators: file}}
controllers: [{{type: sine.py, joints: [h], follows: {follows}, amplitude: {AMPLITUDES[follows]}}}]
schedule: {{step: {STEP * 1e3} ms, duration: {DURATION} s, integrator: rk4}}
""")
    return load_rig(file).run()


def reference_of(actuator, follows, control, step=STEP):
    """(ticks, 2) positions of MuJoCo, with a control that is held for a tick."""
    model = mujoco.MjModel.from_xml_string(model_text(actuator, step))
    data, found = mujoco.MjData(model), []
    substeps = round(STEP / step)
    for k in range(round(DURATION / STEP) + 1):
        found.append(data.qpos.copy())
        data.ctrl[0] = control(AMPLITUDES[follows] * math.sin(RATE * k * STEP))
        for _ in range(substeps):
            mujoco.mj_step(model, data)
    return np.array(found)


def positions(run):
    return np.column_stack([run["h/position"], run["s/position"]])


@pytest.mark.parametrize("name", CASES)
def test_a_run_equals_mujoco(name, tmp_path):
    actuator, follows, control = CASES[name]
    expected = reference_of(actuator, follows, control)
    free = reference_of(actuator, follows, lambda u: 0.0)
    run = run_of(tmp_path, actuator, follows)
    assert np.abs(positions(run) - expected).max() < 1e-9
    assert np.abs(expected - free).max() > 1e-3  # the control matters
    assert run.summary["energy"]["residual_relative"] < 1e-6


@pytest.mark.parametrize("name", FIRST_ORDER)
def test_a_run_equals_mujoco_with_short_steps(name, tmp_path):
    actuator, follows, control = FIRST_ORDER[name]
    coarse, fine = (reference_of(actuator, follows, control, step) for step in (STEP / 8, STEP / 16))
    found = positions(run_of(tmp_path, actuator, follows))
    assert np.abs(found - (2 * fine - coarse)).max() < 0.02 * np.abs(found - fine).max() < 2e-5


def test_an_activation_stays_within_its_limits(tmp_path):
    """To the part of a step in which it reaches them."""
    actuator = '<intvelocity joint="h" kp="60" kv="2" actrange="-0.05 0.08"/>'
    expected = reference_of(actuator, "velocity", lambda u: u, STEP / 16)
    found = positions(run_of(tmp_path, actuator, "velocity"))
    assert np.abs(found - expected).max() < 0.6 * STEP


# actuators, attributes of the joint -> limit of its effort, and the range where that differs by direction
LIMITS = {
    "none": ("", "", math.inf, None),
    "force": ('<motor joint="h" gear="25" forcerange="-2 2" ctrlrange="-5 5"/>', "", 50.0, None),
    "control": ('<motor joint="h" gear="-25" ctrlrange="-5 5"/>', "", 125.0, None),
    "gain": ('<general joint="h" gear="2" gainprm="3" ctrlrange="-5 5"/>', "", 30.0, None),
    "integrated": ('<general joint="h" dyntype="integrator" gainprm="3" ctrlrange="-5 5"/>', "", math.inf, None),
    "position": ('<position joint="h" kp="50" ctrlrange="-1.5 1.5"/>', "", math.inf, None),
    "two": ('<motor joint="h" gear="2" ctrlrange="-1 1"/><motor joint="h" ctrlrange="-5 5"/>', "", 7.0, None),
    "two, one without": ('<motor joint="h" gear="2" ctrlrange="-1 1"/><motor joint="h"/>', "", math.inf, None),
    "joint": ('<motor joint="h" gear="2"/>', 'actuatorfrcrange="-7 7"', 7.0, None),
    "joint, by direction": ('<motor joint="h" gear="2"/>', 'actuatorfrcrange="-3 7"', 3.0, (-3.0, 7.0)),
    "pulls only": ('<motor joint="h" gear="-2" ctrlrange="0 4"/>', "", 8.0, (-8.0, 0.0)),
    "both": ('<motor joint="h" gear="2" ctrlrange="-1 3"/>', 'actuatorfrcrange="-4 4"', 2.0, (-2.0, 4.0)),
    "no clamps": (
        '<motor joint="h" gear="2" ctrlrange="-1 1"/>',
        '<option><flag clampctrl="disable"/></option>',
        math.inf,
        None,
    ),
}


@pytest.mark.parametrize("name", LIMITS)
def test_effort_limits(name, tmp_path):
    actuators, more, limit, by_direction = LIMITS[name]
    text = model_text(actuators)
    place = "<mujoco>" if more.startswith("<") else 'name="h"'
    text = text.replace(place, f"{place} {more}")
    (tmp_path / "model.xml").write_text(text)
    robot = read_mjcf(tmp_path / "model.xml")
    (joint,) = (joint for joint in robot.mechanism.joints if joint.name == "h")
    assert joint.max_effort == limit
    assert robot.efforts.get("h") == by_direction


def test_a_limit_by_direction_is_taken_with_the_actuator_and_warned_of_without(tmp_path):
    actuators, _, _, (lower, upper) = LIMITS["both"]
    text = model_text(actuators).replace('name="h"', 'name="h" actuatorfrcrange="-4 4"')
    (tmp_path / "model.xml").write_text(text)
    file = tmp_path / "rig.yaml"
    file.write_text("mechanism: {mjcf: model.xml, actuators: file}\nschedule: {duration: 10 ms}\n")
    rig = load_rig(file)
    servo = rig.plant.actuators["h"].params
    assert (servo.min_control, servo.max_control, servo.min_effort, servo.max_effort) == (lower, 6.0, -4.0, upper)
    assert rig.spec.joints["h"].limits["effort"] == upper
    file.write_text(
        "mechanism: {mjcf: model.xml}\njoints: {h: {actuator: {type: ideal}}}\nschedule: {duration: 10 ms}\n"
    )
    with pytest.warns(RunWarning, match="its effort is limited to -2 to 4, here to 2 in both directions"):
        load_rig(file)


LOST = {
    "muscle": '<muscle joint="h" lengthrange="0.5 1"/>',
    "tendon": '<motor tendon="t"/>',
    "site": '<motor site="tip" gear="0 0 1 0 0 0"/>',
    "second": '<motor joint="h" gear="2"/><position joint="h" kp="3"/>',
    "ball": '<motor joint="ball" gear="1 0 0"/>',
}


@pytest.mark.parametrize("name", LOST)
def test_actuators_that_a_rig_cannot_have_are_warned_of(name, tmp_path, said):
    more = '<body name="e"><joint name="ball" type="ball"/><geom size="0.1"/><site name="tip"/></body>'
    text = model_text(LOST[name] + '<motor name="drive" joint="s"/>').replace("</worldbody>", f"{more}</worldbody>")
    tendon = '<tendon><fixed name="t"><joint joint="h" coef="1"/><joint joint="s" coef="2"/></fixed></tendon>'
    (tmp_path / "model.xml").write_text(text.replace("<actuator>", f"{tendon}<actuator>"))
    file = tmp_path / "rig.yaml"
    file.write_text("mechanism: {mjcf: model.xml, actuators: file}\nschedule: {duration: 10 ms}\n")
    with pytest.warns(RunWarning) as caught:
        rig = load_rig(file)
    said([str(one.message) for one in caught])
    assert "s" in rig.plant.actuators


def test_a_pair_of_fingers_has_one_drive(tmp_path):
    """A tendon of both, and an equality: the joint that leads has the drive of both."""
    text = model_text('<position tendon="both" kp="20" kv="2" ctrlrange="-0.1 0.1"/>')
    finger = """<tendon><fixed name="both"><joint joint="h" coef="0.5"/><joint joint="s" coef="0.25"/></fixed></tendon>
      <equality><joint joint1="s" joint2="h" polycoef="0 0.5 0 0 0"/></equality>"""
    (tmp_path / "model.xml").write_text(text.replace("<actuator>", f"{finger}<actuator>"))
    (actuator,) = read_mjcf(tmp_path / "model.xml").actuators
    gear = 0.5 + 0.25 * 0.5
    assert actuator.joints == {"h": gear}
    bounds = {"min_control": -0.1 / gear, "max_control": 0.1 / gear}
    gains = {"gain": 20 * gear**2, "bias_position": -20 * gear**2, "bias_velocity": -2 * gear**2}
    assert actuator.keys == pytest.approx({"mode": "position"} | gains | bounds)
