"""A load motor that plays a joint, on a simulated bench: the motion against the joint itself."""

import re
from pathlib import Path

import numpy as np
import pytest

from cosim import load_rig
from cosim.rig.inspection import unstable_loads
from cosim.rig.reading.yaml_source import read_overlay
from tests.kit.bench_rig import Bench, on_bench, run_on
from tests.kit.rigs import rig_in

ROOT = Path(__file__).parents[2]
ACTUATOR = """{type: dc_motor, resistance: 0.1 ohm, inductance: 200 uH, torque_constant: 0.1 N*m/A, ratio: 9,
               rotor_inertia: 0.4 kg*cm^2, voltage_limit: 24 V, current_limit: 20 A, viscous: 0.05,
               bandwidth: 200 Hz}"""
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


def rigs(tmp_path, step=1e-3, *overrides):
    """(on the bench, the bench, ideal): the lag of the observer is as many steps for every step."""
    folders = [tmp_path / f"{name}_{step}" for name in ("real", "shaft", "ideal")]
    for folder in folders:
        folder.mkdir(parents=True)
    texts = (JOINT + DRIVERS, SHAFT, JOINT)
    given = (overrides, (), ())
    parts = zip(folders, texts, given, strict=True)
    return [rig_in(folder, text_of(text, step), *more) for folder, text, more in parts]


def errors(tmp_path, step, delay=0):
    """(largest difference of the motions [rad], RMS, signals on the bench)."""
    real, shaft, ideal = rigs(tmp_path, step)
    signals, fault = run_on(real, Bench(on_bench(real, shaft), delay), 3.0)
    assert not fault
    difference = signals["elbow/measured_position"] - ideal.run(3.0)["elbow/position"]
    return np.abs(difference).max(), np.sqrt(np.mean(difference**2)), signals


def test_the_motion_is_that_of_the_joint_and_comes_nearer_with_shorter_steps(tmp_path):
    found = [errors(tmp_path, step)[0] for step in (1e-3, 0.5e-3)]
    assert found[0] < 1e-3  # of a motion of 0.8 rad
    assert found[1] == pytest.approx(0.5 * found[0], rel=0.1)


def test_it_comes_nearer_with_less_delay(tmp_path):
    found = [errors(tmp_path / str(delay), 1e-3, delay)[1] for delay in (3, 0)]
    assert found[0] > 1.3 * found[1]


def test_the_delay_of_the_load_motor_is_identified(tmp_path, delay=4):
    signals = errors(tmp_path, 0.25e-3, delay)[2]
    # what is reported in a tick was exerted in the one before
    assert signals["elbow/load_delay"][-1] == pytest.approx((delay + 1) * 0.25e-3, rel=0.1)
    error = signals["elbow/load_measured_effort"][:-1] - signals["elbow/load_effort"][1:]
    settled = 100  # ticks
    np.testing.assert_array_equal(signals["elbow/load_error"][settled:], error[settled - 1 :])


class Heavy(Bench):
    """A load motor whose torque constant is a tenth too low."""

    def exerted(self, t, commands):
        return 0.9 * commands


def test_a_weak_load_motor_lacks_inertia(tmp_path):
    """Without gravity and friction its command is (J_bench − J_load) a, of which a tenth is missing."""
    real, shaft, _ = rigs(tmp_path, 0.25e-3, "mechanism.gravity=[0, 0, 0]", "mechanism.bodies.0.friction=0")
    signals, _ = run_on(real, Heavy(on_bench(real, shaft)), 3.0)
    emulated = 0.0026 + 0.5 * 0.11**2
    assert signals["elbow/load_inertia_error"][-1] == pytest.approx(-0.1 * (emulated - 0.00484), rel=0.1)


# --- where it is stable ---------------------------------------------------------------------------------


def test_a_load_beyond_the_delay_limit_oscillates_and_is_warned_of(tmp_path, said):
    real, shaft, _ = rigs(tmp_path, 1e-3, "mechanism.bodies.0.mass=3", "drivers.load.loads.elbow.delay=5 ms")
    said(unstable_loads(real))
    signals, _ = run_on(real, Bench(on_bench(real, shaft), 5), 3.0)
    assert np.mean(np.abs(signals["elbow/load_effort"][-1000:]) == 8.0) > 0.5  # at the limit of the load motor


def test_a_stable_load_is_not_warned_of(tmp_path):
    real, shaft, _ = rigs(tmp_path, 1e-3, "drivers.load.loads.elbow.delay=5 ms")
    assert list(unstable_loads(real)) == []
    signals, fault = run_on(real, Bench(on_bench(real, shaft), 5), 3.0)
    assert fault == "" and np.abs(signals["elbow/load_effort"][-1000:]).max() < 2.0


def test_any_joint_of_a_simulated_rig_is_put_on_the_bench_by_an_overlay(tmp_path):
    """The overlay of the guide."""
    page = (ROOT / "docs" / "howto" / "dynamometer.md").read_text()
    (text,) = (block for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "delay: 2.5 ms" in block)
    (tmp_path / "bench_drivers.yaml").write_text(text)
    rig = load_rig(ROOT / "rigs" / "arm_sim.yaml", read_overlay(str(tmp_path / "bench_drivers.yaml")))
    assert rig.plant.real == ("elbow",) and [load.joint for load in rig.tick_model.loads] == [2]
    assert set(rig.plant.actuators) == {"base", "shoulder"} and list(unstable_loads(rig)) == []
