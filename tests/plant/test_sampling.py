"""Actuators with a sampled part: their samples lie at whole multiples of their period, in every engine."""

from functools import partial

import numpy as np
import pytest
from scipy.linalg import expm

from cosim.core.errors import InputErrors
from cosim.core.types import EVERY_TICK
from cosim.simulation.plant.sampling import due, nearest_steps, samples_per_tick, whole_substeps
from tests.kit.refusals import raised
from tests.kit.rigs import controller

# a motor without losses in its gear, whose PI controller of the speed holds its voltage between samples
SAMPLED = """
import numpy as np
from cosim.plugin import ACTUATOR_INPUTS, ACTUATOR_OUTPUTS, Signal, param, params

@params
class Params:
    period: float = param(unit="s", above=0.0, default=1e-3)
    gain: float = param(default=0.6)
    integral: float = param(default=9.0)

class Sampled:
    inputs, positions, reflected_inertia = ACTUATOR_INPUTS, (), 0.0
    outputs = {**ACTUATOR_OUTPUTS, "samples": Signal((), "1")}

    def __init__(self, params):
        self.params, self.period = params, params.period

    def initial(self, position, velocity):
        return {name: np.zeros(()) for name in ("current", "sum", "voltage", "samples")}

    def flow(self, t, p, x, u):
        i, v = x["current"], u["velocity"]
        rates = {"current": (x["voltage"] - 2.0 * i - 0.5 * v) / 5e-3}
        held = {name: np.zeros(()) for name in ("sum", "voltage", "samples")}
        stored = 2.5e-3 * i * i
        outputs = {"effort": 0.5 * i, "power": x["voltage"] * i, "loss": 2.0 * i * i, "stored": stored}
        return rates | held, outputs | {"samples": x["samples"]}

    def update(self, t, p, x, u):
        error = u["setpoint_velocity"] + u["request"] - u["velocity"]
        total = x["sum"] + p.period * error
        return {"sum": total, "voltage": p.gain * error + p.integral * total, "samples": x["samples"] + 1.0}

def load(params):
    return Sampled(params)
"""
RIG = """
mechanism:
  gravity: [0, 0, 0]
  bodies: [{name: disc, joint: axis, axis: [0, 0, 1], mass: 1 kg, inertia: [1, 1, 0.02], damping: 0.03}]
joints: {axis: {actuator: {type: sampled.py, period: 1 ms}}}
controllers: [{type: push.py}]
schedule: {step: 4 ms, duration: 0.2 s, integrator: rk4, substeps: 62}
"""
# its effort is the request of the sampled part, which adds it to the speed
PUSH = controller("effort = 3.0 + 0.0 * q").replace('"velocity": rest', '"velocity": 0.5 + rest')


@pytest.fixture
def rig_with(rig_of):
    return partial(rig_of, sampled=SAMPLED, push=PUSH)


def by_hand(samples: int, period: float, setpoint: float) -> tuple[np.ndarray, np.ndarray]:
    """(positions, speeds) at every sample: exact between samples, by the matrix exponential of the motor's equations
    with a held voltage."""
    # position, speed, current, voltage
    flow = np.array([[0, 1, 0, 0], [0, -0.03 / 0.02, 0.5 / 0.02, 0], [0, -0.5 / 5e-3, -2 / 5e-3, 1 / 5e-3], [0.0] * 4])
    step, x, total, found = expm(flow * period), np.zeros(4), 0.0, []
    for _ in range(samples):
        found.append(x[:2].copy())
        error = setpoint - x[1]
        total += period * error
        x[3] = 0.6 * error + 9.0 * total
        x = step @ x
    return tuple(np.array(found).T)


SETTINGS = {
    "rk4": (),
    "steps of chosen length": (
        *("schedule.integrator=rodas4", "schedule.substeps=auto", "schedule.tolerance=1e-11"),
        "schedule.duration=0.1 s",
    ),
    "an event that never comes": ("events=[{do: latch, of: axis, when: {signal: axis/velocity, above: 50}}]",),
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_a_sampled_loop_is_that_of_the_exact_discretisation(rig_with, settings) -> None:
    rig = rig_with(RIG, *settings)
    run, (position, speed) = rig.run(), by_hand(201, 1e-3, 3.5)
    np.testing.assert_allclose(run["axis/velocity"], speed[::4][: len(run.t)], rtol=0, atol=1e-9)
    np.testing.assert_allclose(run["axis/position"], position[::4][: len(run.t)], rtol=0, atol=1e-9)
    assert rig.tick_model.substeps == {"rk4": 64, "rodas4": 4}[rig.tick_model.integrator]
    assert run.summary["energy"]["residual_relative"] == pytest.approx(0.0, abs=1e-6)


def test_an_event_between_two_samples_takes_none_away(rig_with) -> None:
    """The joint is latched and released between two samples: the loop keeps its times."""
    events = "events=[{do: latch, of: axis, at: 21.3 ms}, {do: unlatch, of: axis, at: 29.8 ms}]"
    rig = rig_with(RIG, events, "schedule.duration=0.04 s")
    run = rig.run()
    assert run["axis/velocity"][6] == 0.0 < run["axis/velocity"][8]
    np.testing.assert_array_equal(run["axis/samples"], 4.0 * np.arange(11))


def test_engines_agree(rig_with) -> None:
    short = "schedule.duration=0.02 s", "schedule.substeps=8"
    native, plain = (rig_with(RIG, *short, interpret=how).run() for how in (False, True))
    np.testing.assert_allclose(plain.values, native.values, rtol=1e-9, atol=1e-12)


def test_rollouts_are_single_runs(rig_with) -> None:
    rig = rig_with(RIG, "schedule.duration=0.02 s")
    found = rig.rollouts({"joints.axis.actuator.gain": [0.6, 0.9]}, keep="all")
    alone = rig_with(RIG, "schedule.duration=0.02 s", "joints.axis.actuator.gain=0.9").run()
    np.testing.assert_allclose(found["axis/velocity"][1], alone["axis/velocity"], rtol=1e-13)


def test_samples_and_substeps_fit() -> None:
    assert samples_per_tick(62.5e-6, 1_000_000) == 16 and samples_per_tick(1e-3, 500_000) is None
    assert samples_per_tick(1.0 / 3e3, 1_000_000) == 3 and nearest_steps(1.0 / 3e3, 2_500_000) == [2e6, 3e6]
    assert samples_per_tick(EVERY_TICK, 1_000_000) == samples_per_tick(EVERY_TICK, 3) == 1
    samples = {"a": 4, "b": 6}
    assert whole_substeps(1, samples) == 12 and whole_substeps(13, samples) == 24
    assert [due(k, 24, samples) for k in (0, 4, 5, 6, 12)] == [("a", "b"), ("b",), (), ("a",), ("a", "b")]


def test_a_tick_that_is_no_whole_number_of_samples_is_refused(rig_with, said) -> None:
    said(raised(InputErrors, rig_with, RIG, "joints.axis.actuator.period=1.5 ms"))
