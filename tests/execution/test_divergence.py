"""What a run that diverged says: the likely cause with its numbers, one rig per cause."""

import numpy as np
import pytest

from cosim.execution import drive_loops
from cosim.rig.run.run import StoppedRun
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
# what is measured at the stop
NUMBERS = (
    r"(?<=moves at )\S+(?= \w+/s, above)|(?<=is )\S+(?= rad from)"
    r"|(?<=position )\S+(?= \w+, vel)|(?<=velocity )\S+(?= \w+/s\))"
)


def reason(folder, text, **files):
    """Why the run stopped."""
    with pytest.raises(StoppedRun) as caught:
        rig_in(folder, text, **files).run()
    return str(caught.value).partition(" s): ")[2]


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


ELASTIC = """
mechanism:
  bodies: [{name: arm, joint: hub}, {name: b, type: fixed, parent: arm, origin: {xyz: [1, 0, 0]}, mass: 5}]
  elastic:
    - link: arm
      beam: {length: 1, density: 2700, youngs_modulus: 70 GPa, modes: {bend_y: 2}, damping_ratio: 0.01,
             section: {shape: rectangle, width: 20 mm, height: 40 mm}}
joints: {hub: {limits: {velocity: 20}, actuator: {type: ideal}}}
controllers: [{type: feedforward_pd, kp: 1, kd: 1, trajectory: {type: sine, amplitude: 0.1, frequency: 1}}]
schedule: {duration: 5, step: 2 ms}
"""
FAST = "limits: {velocity: 20}"
CASES = {
    "sampled loops": SERVO,
    # one kp and kd for shoulder and wrist
    "damping": ARM % (FAST, 400, 20),
    "damping, nothing limited": ARM % ("", 400, 20),
    "stiffness": ARM % (FAST, 1e4, 3),
    "stiffness without damping": ARM % (FAST, 100, 0),
    "a linear joint": SLIDE % ("limits: {velocity: 1}", 10, 7000),
    "current loop": ARM % (f"{FAST}, {FAST_DRIVE}, bandwidth: 2 kHz}}", 10, 0.2),
    "elastic gear": ARM % (f"{FAST}, {FAST_DRIVE}, ratio: 3, stiffness: 1e4}}", 10, 0.2),
    "elastic link": ELASTIC,
    "effort limit": ARM % ("limits: {effort: 0.001, tracking: 0.1}", 100, 1),
    "effort limit, part of the time": ARM % ("limits: {effort: 0.008, tracking: 0.002}", 100, 1),
    "saturated drive": ARM % ("limits: {tracking: 0.1}, actuator: {type: ideal, max_effort: 0.001}", 100, 1),
    "velocity of the reference": ARM % ("limits: {velocity: 0.5}", 100, 1),
    "position of the reference": ARM % ("limits: {upper: 0.4}", 100, 1),
    "its own reference and the gains of another": ARM.replace("goal: 0.5", "goal: [0.5, 0.0]").replace(
        "joints: {", "joints: {shoulder: {limits: {upper: 0.01}}, "
    )
    % ("", 400, [20, 5]),
    "none of these": ARM.replace("goal: 0.5", "goal: 0") % ("limits: {tracking: 0.1}, initial: {velocity: 8}", 1, 0.01),
}


@pytest.mark.parametrize("case", CASES)
def test_the_cause_is_named(tmp_path, said, case):
    said(reason(tmp_path, CASES[case]), NUMBERS)


@pytest.mark.parametrize("encoder", ["", "delay: 1", "cpr: 1000000", "delay: 1, cpr: 1000000"])
def test_the_largest_damping_is_where_the_run_begins_to_diverge(tmp_path, encoder):
    """Exact or differentiated velocities, in time or a period late: 2, 1, 2 and 0.83 of inertia/step."""
    drive = f"limits: {{velocity: 5}}, encoder: {{{encoder}}}"
    told = reason(tmp_path, SLIDE % (drive, 0.1, 9000))
    largest = float(told.split("at most ")[1].split()[0])
    expected = {"": 2.0, "delay: 1": 1.0, "cpr: 1000000": 2.0, "delay: 1, cpr: 1000000": 2.0 * (np.sqrt(2.0) - 1.0)}
    assert largest == pytest.approx(3000.0 * expected[encoder], rel=0.05)
    rig_in(tmp_path, SLIDE % (drive, 0.1, 0.98 * largest)).run()
    with pytest.raises(StoppedRun, match=r"kd .* is unstable"):
        rig_in(tmp_path, SLIDE % (drive, 0.1, 1.05 * 3000.0 * expected[encoder])).run()


def test_gains_of_drives_that_are_unstable_together(tmp_path, said):
    """Each joint by itself allows a kd of 2 I/T; two that move the same light body allow less."""
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
    # M⁻¹ = 50 [1 −1; −1 2]: the larger eigenvalue is 131, of b alone 100
    said(reason(tmp_path, text % 17), NUMBERS)
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


def test_large_rigs_stop_without_eigenvalues(tmp_path, monkeypatch, said):
    monkeypatch.setattr(drive_loops, "MAX_SIZE", 1)
    said(reason(tmp_path, ARM % (FAST, 400, 20)), NUMBERS)


FAILING = """
from cosim.plugin import params
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


def test_a_search_that_fails_leaves_the_reason(tmp_path, said):
    text = SLIDE.replace("{type: sine, amplitude: 0.1, frequency: 1 Hz}", "{type: failing.py}")
    said(reason(tmp_path, text % ("limits: {velocity: 1}", 100, 100), failing=FAILING), NUMBERS)
