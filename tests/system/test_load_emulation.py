"""A load motor that plays a joint, on a simulated bench: the motion against that of the joint itself."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kit.bench_rig import Bench, on_bench, run_on
from tests.kit.rigs import rig_in

ACTUATOR = """{type: dc_motor, resistance: 0.1 ohm, inductance: 200 uH, torque_constant: 0.1 N*m/A, ratio: 9,
               rotor_inertia: 0.4 kg*cm^2, voltage_limit: 24 V, current_limit: 20 A, viscous: 0.05, bandwidth: 200 Hz}"""
JOINT = """
mechanism:
  bodies:
    - {name: forearm, joint: elbow, axis: [0, 1, 0], mass: MASS, com: [110 mm, 0, 0], inertia: [0.0002, 0.0026, 0.0026],
       friction: 0.02, damping: 0.03}
joints: {elbow: {actuator: ACTUATOR, limits: {lower: -170 deg, upper: 170 deg, velocity: 20 rad/s, effort: 10 N*m}}}
controllers:
  - {type: feedforward_pd, kp: 12, kd: 0.6, trajectory: {type: sine, amplitude: 0.8, frequency: 1.1, ramp: 1}}
schedule: {step: STEP, duration: 3 s, substeps: 2}
"""
DRIVERS = """
drivers:
  - type: moteus
    name: test
    observer: OBSERVER
    bus: {interface: virtual, channel: one, fd: true, bitrate: 8 Mbit/s, data_bitrate: 8 Mbit/s}
    joints: {elbow: {id: 1}}
  - type: moteus
    name: load
    bus: {interface: virtual, channel: two, fd: true, bitrate: 8 Mbit/s, data_bitrate: 8 Mbit/s}
    loads: {elbow: {id: 1, effort: 8, inertia: 0.00484, viscous: 0.05}}
"""
# the shaft and the rotor of the load motor
SHAFT = """
mechanism:
  gravity: [0, 0, 0]
  bodies: [{name: shaft, joint: elbow, axis: [0, 1, 0], mass: 0.4, inertia: [0.00484, 0.00484, 0.00484], damping: 0.05}]
joints: {elbow: {actuator: ACTUATOR}}
schedule: {step: STEP, duration: 3 s, substeps: 2}
"""


def text_of(text, step=1e-3, mass=0.5):
    words = {"ACTUATOR": ACTUATOR, "STEP": step, "OBSERVER": 0.05 / step, "MASS": mass}
    for name, value in words.items():
        text = text.replace(name, str(value))
    return text


def rigs(tmp_path, step=1e-3):
    """(on the bench, the bench, ideal): the lag of the observer is as many steps for every step."""
    folders = [tmp_path / f"{name}_{step}" for name in ("real", "shaft", "ideal")]
    for folder in folders:
        folder.mkdir()
    texts = (JOINT + DRIVERS, SHAFT, JOINT)
    return [rig_in(folder, text_of(text, step)) for folder, text in zip(folders, texts, strict=True)]


class Delayed(Bench):
    """The load motor exerts its command late."""


def errors(tmp_path, step, delay=0):
    """(largest difference of the motions [rad], RMS, signals on the bench)."""
    real, shaft, ideal = rigs(tmp_path, step)
    signals, fault = run_on(real, Bench(on_bench(real, shaft), delay), 3.0)
    assert not fault
    difference = signals["elbow/measured_position"] - ideal.run(3.0)["elbow/position"]
    return np.abs(difference).max(), np.sqrt(np.mean(difference**2)), signals


def test_the_motion_is_that_of_the_joint_and_comes_nearer_with_shorter_steps(tmp_path):
    found = [errors(tmp_path, step)[0] for step in (1e-3, 0.5e-3, 0.25e-3)]
    print(found)
    assert found[0] < 10e-3
    for coarse, fine in zip(found[:-1], found[1:], strict=True):
        assert fine == pytest.approx(0.5 * coarse, rel=0.25)


def test_it_comes_nearer_with_less_delay(tmp_path):
    found = [errors(tmp_path, 1e-3, delay)[1] for delay in (8, 4, 0)]
    print(found)
    assert found[0] > 1.2 * found[1] > 1.2 * 1.2 * found[2]


@pytest.mark.parametrize("delay", [1, 4])
def test_the_delay_of_the_load_motor_is_identified(tmp_path, delay):
    signals = errors(tmp_path, 0.25e-3, delay)[2]
    # what is reported in a tick was exerted in the one before
    assert signals["elbow/load_delay"][-1] == pytest.approx((delay + 1) * 0.25e-3, rel=0.1)
    error = signals["elbow/load_measured_effort"] - signals["elbow/load_effort"]
    np.testing.assert_array_equal(signals["elbow/load_error"][1:], error[1:])
