"""The sampled loops of a drive: their frequency responses, limits, encoder, and what the rig refuses."""

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm

from cosim.core.errors import InputError, InputErrors
from tests.kit.rigs import controller

R, L, K, B, J = 0.5, 2e-3, 0.05, 2e-4, 4e-4  # of the motor, with the load
FAST, MIDDLE, SLOW = 16e3, 4e3, 1e3  # Hz
GAIN, TIME, POSITION_GAIN, BANDWIDTH = 0.12, 8e-3, 60.0, 700.0
RIG = f"""
mechanism:
  gravity: [0, 0, 0]
  bodies: [{{name: disc, joint: axis, axis: [0, 0, 1], mass: 1 kg, inertia: [1, 1, {J}], damping: {B}}}]
joints:
  axis:
    actuator:
      type: drive
      motor: {{type: dc_machine, resistance: {R}, inductance: {L}, torque_constant: {K}}}
      control: {{bandwidth: {BANDWIDTH}}}
      gears: [{{ratio: 1}}]
      loops:
        mode: effort
        current: {{rate: {FAST}}}
        velocity: {{rate: {MIDDLE}, gain: {GAIN}, integral_time: {TIME}}}
        position: {{rate: {SLOW}, gain: {POSITION_GAIN}, feedforward: 0}}
controllers: [{{type: push.py}}]
schedule: {{step: 1 ms, duration: 0.3 s, integrator: rk4}}
"""
FREQUENCIES = (20.0, 60.0, 130.0, 310.0)  # Hz, of the multisine; its period is 0.1 s
DRIVE = "joints.axis.actuator"
LOOPS = f"{DRIVE}.loops"


def commanded(what: str, value: str) -> str:
    """A controller that commands a value of one kind and 0 of the others."""
    source = controller(f"value = {value} + 0.0 * q\n{'effort = value' if what == 'effort' else 'effort = 0.0 * q'}")
    return source if what == "effort" else source.replace(f'"{what}": rest', f'"{what}": value')


def multisine(size: float) -> str:
    return f"{size} * ({' + '.join(f'ops.sin({2.0 * math.pi * f} * t + {k})' for k, f in enumerate(FREQUENCIES))})"


@pytest.fixture
def run_of(rig_of):
    """A run of RIG: what is commanded, its value by time, overrides."""

    def run(what: str, value: str, *settings: str) -> Any:
        return rig_of(RIG, *settings, push=commanded(what, value)).run()

    return run


def measured(run: Any, signal: str, size: float) -> np.ndarray:
    """The response at FREQUENCIES, from the last period of the multisine."""
    t, y = run.t[:-1], run[signal][:-1]
    last = t > t[-1] + t[1] / 2.0 - 0.1
    t, y = t[last], y[last]
    waves = [size * np.exp(1j * (2.0 * np.pi * f * t + k)) for k, f in enumerate(FREQUENCIES)]
    return np.array([2.0 * np.vdot(w, y) / np.vdot(w, w) for w in waves]) * 1j


# --- the linear system by hand: x = (angle, speed, current, voltage, next voltage, its integral) ---


def between_samples(period: float, locked: bool) -> np.ndarray:
    """(3, 4): what the winding and the shaft do in a period under a held voltage."""
    flow = np.array([[0, 1, 0, 0], [0, -B / J, K / J, 0], [0, -K / L, -R / L, 1 / L], [0.0] * 4])
    if locked:
        flow[:2] = 0.0
    return expm(flow * period)[:3]


def of_current_loop(locked: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """(A (6, 6), B (6,)) of a fast sample; input: the setpoint of the torque."""
    period, w = 1.0 / FAST, 2.0 * math.pi * BANDWIDTH
    motion = between_samples(period, locked)
    A, inputs = np.zeros((6, 6)), np.zeros(6)
    # at the sample: the voltage that was next, and the new next one w L (i* − i) + I + K v
    A[3, 4] = 1.0
    A[4, 1], A[4, 2], A[4, 5], inputs[4] = K, -w * L, 1.0, w * L / K
    A[5, 5], A[5, 2], inputs[5] = 1.0, -w * R * period, w * R * period / K
    # then the motion under the new voltage
    A[:3, :3] += motion[:, :3]
    A[:3] += np.outer(motion[:, 3], A[3])
    return A, inputs


def repeated(A: np.ndarray, inputs: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """`count` samples with a held input."""
    held = np.array([np.linalg.matrix_power(A, k) @ inputs for k in range(count)])
    return np.linalg.matrix_power(A, count), held.sum(axis=0)


def of_velocity_loop() -> tuple[np.ndarray, np.ndarray]:
    """(A (7, 7), B (7,)) of a sample of the velocity loop with its integral; input: the setpoint of the velocity."""
    inner, inputs = repeated(*of_current_loop(), round(FAST / MIDDLE))
    A, share = np.zeros((7, 7)), 1.0 / (MIDDLE * TIME)
    torque = np.array([0, -GAIN, 0, 0, 0, 0, 1.0])
    A[:6, :6], A[6, 6], A[6, 1] = inner, 1.0, -share * GAIN
    A[:6] += np.outer(inputs, torque)
    return A, np.array([*(inputs * GAIN), share * GAIN])


def of_position_loop() -> tuple[np.ndarray, np.ndarray]:
    A, inputs = repeated(*of_velocity_loop(), round(MIDDLE / SLOW))
    closed = A.copy()
    closed[:, 0] -= POSITION_GAIN * inputs
    return closed, POSITION_GAIN * inputs


def response(system: tuple[np.ndarray, np.ndarray], output: int, rate: float) -> np.ndarray:
    A, inputs = system
    z = np.exp(2j * np.pi * np.array(FREQUENCIES) / rate)
    return np.array([np.linalg.solve(value * np.eye(len(A)) - A, inputs)[output] for value in z])


CASES = {
    "current": ("effort", "axis/current", 2, 0.05, FAST, partial(of_current_loop, locked=True)),
    "velocity": ("velocity", "axis/velocity", 1, 1.0, MIDDLE, of_velocity_loop),
    "position": ("position", "axis/position", 0, 0.1, SLOW, of_position_loop),
}


@pytest.mark.parametrize("name", CASES)
def test_frequency_response_is_that_of_the_linear_samples(run_of, name: str) -> None:
    what, signal, output, size, rate, system = CASES[name]
    settings = [f"{LOOPS}.mode={what}", f"schedule.step={1e6 / rate} us"]
    settings += ["joints.axis.latched=true"] if name == "current" else []
    run = run_of(what, multisine(size), *settings)
    expected = response(system(), output, rate)
    found = measured(run, signal, size)
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_the_response_of_the_current_loop_is_the_product_of_controller_delay_and_winding() -> None:
    """The matrices of this test against the transfer function: C(z) z⁻¹ P(z) / (1 + …)."""
    z, period, w = np.exp(2j * np.pi * np.array(FREQUENCIES) / FAST), 1.0 / FAST, 2.0 * math.pi * BANDWIDTH
    pole = math.exp(-R / L * period)
    loop = w * L * (1.0 + period * R / L / (z - 1.0)) / z * (1.0 - pole) / R / (z - pole)
    np.testing.assert_allclose(response(of_current_loop(True), 2, FAST), loop / (1.0 + loop) / K, rtol=1e-9)


PMSM = (
    f"{DRIVE}.motor={{type: pmsm, pole_pairs: 4, resistance: {R}, inductance_d: 1 mH, inductance_q: {L}, flux: 0.01}}"
)


@pytest.mark.parametrize("delay", [0, 1])
def test_a_synchronous_machine_has_the_same_loop_in_each_axis(run_of, delay: int) -> None:
    """Held shaft: the current of q follows its torque 3/2 p ψ i_q by the product of controller, delay and winding."""
    settings = [f"{LOOPS}.mode=effort", f"{LOOPS}.current.delay={delay}", "joints.axis.latched=true"]
    run = run_of("effort", multisine(0.05), PMSM, *settings, f"schedule.step={1e6 / FAST} us")
    z, period, w = np.exp(2j * np.pi * np.array(FREQUENCIES) / FAST), 1.0 / FAST, 2.0 * math.pi * BANDWIDTH
    pole = math.exp(-R / L * period)
    loop = w * L * (1.0 + period * R / L / (z - 1.0)) / z**delay * (1.0 - pole) / R / (z - pole)
    expected = loop / (1.0 + loop) / (1.5 * 4 * 0.01)
    np.testing.assert_allclose(measured(run, "axis/current_q", 0.05), expected, rtol=1e-6)
    assert np.abs(run["axis/current_d"]).max() < 1e-9


def test_the_loops_keep_the_limit_of_an_overload(run_of) -> None:
    """The setpoint of the effort is within the limit of the current, which falls to the continuous current."""
    overload = "{bandwidth: 700, current_limit: 6, overload: {continuous_current: 2, time_constant: 50 ms}}"
    settings = f"{DRIVE}.control={overload}", f"{LOOPS}.mode=velocity", "joints.axis.latched=true"
    run = run_of("velocity", "50.0", *settings)
    limit, effort = run["axis/current_limit"], run["axis/effort_setpoint"]
    assert limit[0] == 6.0 and limit[-1] == pytest.approx(2.0, rel=0.05)
    # set at a sample of the tick before, while the limit falls
    assert (effort[2:] <= K * limit[1:-1] + 1e-9).all() and (effort[2:] >= K * limit[2:] - 1e-9).all()
    assert np.abs(run["axis/current"]).max() < 6.3 and run["axis/current"][-1] == pytest.approx(2.0, rel=0.06)


def test_without_a_sampled_current_loop_the_request_of_the_continuous_one_is_held(run_of) -> None:
    """Mode effort takes the effort at the samples of the velocity loop: the run is as without loops."""
    held, plain = (
        run_of("effort", "0.03 * ops.sin(40.0 * t)", f"{LOOPS}={loops}", "schedule.substeps=4")
        for loops in (f"{{mode: effort, velocity: {{gain: 1, rate: {MIDDLE}}}}}", "null")
    )
    np.testing.assert_allclose(held["axis/position"], plain["axis/position"], rtol=0, atol=1e-12)


# --- what a rig may not have ---

MISTAKES = (
    "loops.velocity.rate=3 kHz",
    "loops.velocity.rate=20 kHz",
    "loops.velocity.gain=-1",
    "loops.position.gain=-1",
    "loops.position.feedforward=2",
    "loops.velocity.integral_time=1 us",
    "loops.encoder.cpr=0",
    "loops.encoder.index=7",
    "loops={mode: position, velocity: {gain: 1}}",
    "loops={mode: velocity}",
    "loops={mode: effort}",
    "control.bandwidth=3 kHz",
)


@pytest.mark.parametrize("setting", MISTAKES)
def test_a_mistake_is_refused_with_its_fix(rig_of, setting: str, said) -> None:
    with pytest.raises((InputError, InputErrors)) as raised:
        _ = rig_of(RIG, f"{LOOPS}.mode=position", f"{DRIVE}.{setting}", push=commanded("effort", "0.0")).plant
    assert DRIVE in str(raised.value)
    said(raised.value)
