"""What a run that diverged says: the likely cause with its numbers, one rig per cause."""

import re

import numpy as np
import pytest

from cosim.execution import drive_loops
from cosim.rig.run import StoppedRun
from tests.kit.rigs import rig_in

ARM = """
mechanism:
  gravity: [0, 0, 0]
  bodies:
    - {name: upper, joint: shoulder, mass: 5 kg, com: [0.3, 0, 0], inertia: [0.05, 0.3, 0.3]}
    - {name: hand, joint: wrist, origin: {xyz: [0.5, 0, 0]}, mass: 0.2 kg, inertia: [0.001, 0.001, 0.002]}
joints: {wrist: {%s}}
controllers: [{type: feedforward_pd, kp: %s, kd: %s, trajectory: {type: quintic, goal: 0.5, duration: 1}}]
schedule: {duration: 5, step: 1 ms}
"""
SLIDE = """
mechanism:
  bodies: [{name: cart, joint: rail, type: prismatic, axis: [1, 0, 0], mass: 3 kg}]
joints: {rail: {%s}}
controllers: [{type: passthrough, kp: %s, kd: %s, trajectory: {type: sine, amplitude: 0.1, frequency: 1 Hz}}]
schedule: {duration: 3, step: 1 ms}
"""
FAST_DRIVE = "actuator: {type: dc_motor, resistance: 0.1, inductance: 1 mH, torque_constant: 0.1, rotor_inertia: 1e-5"
TRACKING = "is NUMBER rad from its reference, more than its limit of 0.1 rad; "


def reason(folder, text, **files):
    """Why the run stopped; the numbers of what was measured are replaced."""
    with pytest.raises(StoppedRun) as caught:
        rig_in(folder, text, **files).run()
    told = re.fullmatch(
        r"rig.yaml: stopped at tick \d+ \(t = \S+ s\): (.*)", str(caught.value).removeprefix(f"{folder}/")
    )
    assert told, str(caught.value)
    return re.sub(r"(moves at|is|position|velocity) (-?[\d.e+]+|-?inf|nan) (rad|m)", r"\1 NUMBER \3", told[1], count=2)


SERVO = """
mechanism: {gravity: [0, 0, 0], bodies: [{name: disc, joint: axis, axis: [0, 0, 1], mass: 1 kg, inertia: [1, 1, 0.02]}]}
joints:
  axis:
    actuator:
      type: drive
      motor: {type: dc_machine, resistance: 0.5, inductance: 2 mH, torque_constant: 0.05}
      loops: {velocity: {gain: 500}, position: {gain: 30}}
controllers: [{type: feedforward_pd, kp: 0, kd: 0, trajectory: {type: quintic, goal: 0.5, duration: 1}}]
schedule: {duration: 5, step: 1 ms}
"""


CASES = {
    "sampled loops": (
        SERVO,
        "joint 'axis' is not finite (position NUMBER rad, velocity NUMBER rad/s); try lower gains in"
        " joints.axis.actuator.loops",
    ),
    # one kp and kd for shoulder and wrist
    "damping": (
        ARM % ("limits: {velocity: 20}", 400, 20),
        "joint 'wrist' moves at NUMBER rad/s, above its limit of 20 rad/s; kd 20 N*m*s/rad of joint 'wrist' is"
        " unstable at"
        " a step of 1 ms: its drive sees an inertia of 0.002 kg*m^2; lower kd to at most 3.9 N*m*s/rad",
    ),
    "damping, nothing limited": (
        ARM % ("", 400, 20),
        "joint 'shoulder' is not finite (position NUMBER rad, velocity NUMBER rad/s); kd 20 N*m*s/rad of joint"
        " 'wrist' is"
        " unstable at a step of 1 ms: its drive sees an inertia of 0.002 kg*m^2; lower kd to at most 3.9 N*m*s/rad",
    ),
    "stiffness": (
        ARM % ("limits: {velocity: 20}", 1e4, 3),
        "joint 'wrist' moves at NUMBER rad/s, above its limit of 20 rad/s; kp 10000 N*m/rad of joint 'wrist' is"
        " unstable"
        " at a step of 1 ms: its drive sees an inertia of 0.002 kg*m^2; lower kp to at most 6000 N*m/rad",
    ),
    "stiffness without damping": (
        ARM % ("limits: {velocity: 20}", 100, 0),
        "joint 'wrist' moves at NUMBER rad/s, above its limit of 20 rad/s; kp 100 N*m/rad of joint 'wrist' is"
        " unstable at a"
        " step of 1 ms: its drive sees an inertia of 0.002 kg*m^2; raise kd above 0.05 N*m*s/rad",
    ),
    "a linear joint": (
        SLIDE % ("limits: {velocity: 1}", 10, 7000),
        "joint 'rail' moves at NUMBER m/s, above its limit of 1 m/s; kd 7000 N*s/m of joint 'rail' is unstable"
        " at a step"
        " of 1 ms: its drive sees an inertia of 3 kg; lower kd to at most 6000 N*s/m",
    ),
    "current loop": (
        ARM % (f"limits: {{velocity: 20}}, {FAST_DRIVE}, bandwidth: 2 kHz}}", 10, 0.2),
        "joint 'wrist' moves at NUMBER rad/s, above its limit of 20 rad/s; the drive of joint 'wrist' has a time"
        " constant"
        " of 78.9 us, too short for a step of 1 ms with rk4; use schedule.substeps: 8 or schedule.integrator:"
        " rosenbrock",
    ),
    "elastic gear": (
        ARM % (f"limits: {{velocity: 20}}, {FAST_DRIVE}, ratio: 3, stiffness: 1e4}}", 10, 0.2),
        "joint 'wrist' moves at NUMBER rad/s, above its limit of 20 rad/s; the drive of joint 'wrist' has a time"
        " constant"
        " of 92.8 us, too short for a step of 1 ms with rk4; use schedule.substeps: 4 or schedule.integrator:"
        " rosenbrock",
    ),
    "elastic link": (
        "mechanism:\n"
        "  bodies: [{name: arm, joint: hub}, {name: b, type: fixed, parent: arm, origin: {xyz: [1, 0, 0]}, mass: 5}]\n"
        "  elastic:\n"
        "    - link: arm\n"
        "      beam: {length: 1, density: 2700, youngs_modulus: 70 GPa, modes: {bend_y: 2}, damping_ratio: 0.01,"
        " section: {shape: rectangle, width: 20 mm, height: 40 mm}}\n"
        "joints: {hub: {limits: {velocity: 20}, actuator: {type: ideal}}}\n"
        "controllers: [{type: feedforward_pd, kp: 1, kd: 1, trajectory: {type: sine, amplitude: 0.1, frequency: 1}}]\n"
        "schedule: {duration: 5, step: 2 ms}\n",
        "joint 'hub' moves at NUMBER rad/s, above its limit of 20 rad/s; mode 'arm.bend_y_1' has a time constant of"
        " 523 us, too short for a step of 2 ms with rk4; use schedule.substeps: 4 or schedule.integrator: rosenbrock",
    ),
    "effort limit": (
        ARM % ("limits: {effort: 0.001, tracking: 0.1}", 100, 1),
        f"joint 'wrist' {TRACKING}its effort was at its limit of 0.001 N*m in 100% of the last 0.1 s; slow the"
        f" trajectory"
        " down, reduce the load, or raise joints.wrist.limits",
    ),
    "effort limit, part of the time": (
        ARM % ("limits: {effort: 0.008, tracking: 0.002}", 100, 1),
        "joint 'wrist' is NUMBER rad from its reference, more than its limit of 0.002 rad; its effort was at its"
        " limit of"
        " 0.008 N*m in 78% of the last 0.1 s; slow the trajectory down, reduce the load, or raise joints.wrist.limits",
    ),
    "saturated drive": (
        ARM % ("limits: {tracking: 0.1}, actuator: {type: ideal, max_effort: 0.001}", 100, 1),
        f"joint 'wrist' {TRACKING}its effort was at its limit in 100% of the last 0.1 s; slow the trajectory"
        f" down, reduce"
        " the load, or use a stronger joints.wrist.actuator",
    ),
    "velocity of the reference": (
        ARM % ("limits: {velocity: 0.5}", 100, 1),
        "joint 'wrist' moves at NUMBER rad/s, above its limit of 0.5 rad/s; its reference moves at NUMBER rad/s at t ="
        " 0.243 s; slow the trajectory down or change joints.wrist.limits",
    ),
    "position of the reference": (
        ARM % ("limits: {upper: 0.4}", 100, 1),
        "joint 'wrist' is at 0.400434 rad, outside its limits -inf to 0.4 rad; its reference is at 0.402 rad at"
        " t = 0.676 s;"
        " change the trajectory or joints.wrist.limits",
    ),
    "its own reference and the gains of another": (
        ARM.replace("goal: 0.5", "goal: [0.5, 0.0]").replace(
            "joints: {", "joints: {shoulder: {limits: {upper: 0.01}}, "
        )
        % ("", 400, [20, 5]),
        "joint 'shoulder' is at 0.0106333 rad, outside its limits -inf to 0.01 rad; its reference is at 0.0104 rad at"
        " t = 0.137 s; change the trajectory or joints.shoulder.limits; kd 5 N*m*s/rad of joint 'wrist' is unstable at"
        " a step of 1 ms: its drive sees an inertia of 0.002 kg*m^2; lower kd to at most 3.9 N*m*s/rad",
    ),
    "none of these": (
        ARM.replace("goal: 0.5", "goal: 0") % ("limits: {tracking: 0.1}, initial: {velocity: 8}", 1, 0.01),
        f"joint 'wrist' {TRACKING}check for an obstruction, slow the trajectory down, raise the controller gains"
        f" or change"
        " joints.wrist.limits",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_cause_is_named(tmp_path, monkeypatch, case):
    monkeypatch.chdir(tmp_path)
    text, expected = CASES[case]
    assert reason(tmp_path, text) == expected


@pytest.mark.parametrize("encoder", ["", "delay: 1", "cpr: 1000000", "delay: 1, cpr: 1000000"])
def test_the_largest_damping_is_where_the_run_begins_to_diverge(tmp_path, monkeypatch, encoder):
    """Exact or differentiated velocities, in time or a period late: 2, 1, 2 and 0.83 of inertia/step."""
    monkeypatch.chdir(tmp_path)
    drive = f"limits: {{velocity: 5}}, encoder: {{{encoder}}}"
    told = reason(tmp_path, SLIDE % (drive, 0.1, 9000))
    largest = float(told.split("at most ")[1].split()[0])
    expected = {"": 2.0, "delay: 1": 1.0, "cpr: 1000000": 2.0, "delay: 1, cpr: 1000000": 2.0 * (np.sqrt(2.0) - 1.0)}
    assert largest == pytest.approx(3000.0 * expected[encoder], rel=0.05)
    rig_in(tmp_path, SLIDE % (drive, 0.1, 0.98 * largest)).run()
    with pytest.raises(StoppedRun, match=r"kd .* is unstable"):
        rig_in(tmp_path, SLIDE % (drive, 0.1, 1.05 * 3000.0 * expected[encoder])).run()


def test_gains_of_drives_that_are_unstable_together(tmp_path, monkeypatch):
    """Each joint by itself allows a kd of 2 I/T; two that move the same light body allow less."""
    monkeypatch.chdir(tmp_path)
    text = """
mechanism:
  gravity: [0, 0, 0]
  bodies:
    - {name: heavy, joint: a, mass: 5 kg, inertia: [1, 1, 0.02]}
    - {name: light, joint: b, mass: 0.1 kg, inertia: [1, 1, 0.02]}
joints: {a: {limits: {velocity: 20}}}
controllers: [{type: passthrough, kp: 1, kd: %g, trajectory: {type: sine, amplitude: 0.1, frequency: 1 Hz}}]
schedule: {duration: 3, step: 1 ms}
"""
    told = reason(tmp_path, text % 17)  # M⁻¹ = 50 [1 −1; −1 2]: the larger eigenvalue is 131, that of b alone 100
    assert told.endswith(
        "kd 17 N*m*s/rad of joint 'a' is unstable at a step of 1 ms: its drive sees an inertia of 0.02 kg*m^2; lower kd"
        " to at most 16 N*m*s/rad; kd 17 N*m*s/rad of joint 'b' is unstable at a step of 1 ms: its drive sees an"
        " inertia of 0.01 kg*m^2; lower kd to at most 15 N*m*s/rad"
    )
    rig_in(tmp_path, text.replace("%g", "[16, 15]")).run()


def test_a_rig_that_is_armed_again_counts_from_there(tmp_path):
    rig = rig_in(tmp_path, ARM % ("limits: {velocity: 20}", 400, 20))
    with rig.scheduler() as scheduler:
        scheduler.prepare()
        for ticks in (3, 1000):
            scheduler.arm()
            scheduler.start(ticks)
            while scheduler.read() is not None:
                pass
        assert "kd 20 N*m*s/rad of joint 'wrist' is unstable" in scheduler.fault


def test_large_rigs_stop_without_eigenvalues(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(drive_loops, "MAX_SIZE", 1)
    assert reason(tmp_path, ARM % ("limits: {velocity: 20}", 400, 20)).endswith(
        "slow the trajectory down, lower the controller gains or change joints.wrist.limits"
    )


FAILING = """
from cosim.types import params
@params
class Params:
    pass
class Failing:
    end = 9.0
    def sample(self, t):
        if isinstance(t, float) and t > 0.0:
            raise RuntimeError("on numbers")
        return {"position": [2.0 * t * t], "velocity": [4.0 * t], "acceleration": [4.0], "effort": [0.0]}
def load(params, joints, folder, start):
    return Failing()
"""


def test_a_search_that_fails_leaves_the_reason(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = SLIDE.replace("{type: sine, amplitude: 0.1, frequency: 1 Hz}", "{type: failing.py}")
    assert reason(tmp_path, text % ("limits: {velocity: 1}", 100, 100), failing=FAILING) == (
        "joint 'rail' moves at NUMBER m/s, above its limit of 1 m/s; slow the trajectory down, lower the"
        " controller gains"
        " or change joints.rail.limits"
    )
