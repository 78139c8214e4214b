"""Faults of encoders in the ticks: the same as in emulated encoders, and none without a fault."""

import numpy as np
import pytest

from cosim.apps.scenario.armed_rig import ArmedRig
from cosim.apps.scenario.command import ScenarioFiles
from cosim.apps.scenario.faulty_ticks import ENCODER_FAULTS, FaultyEncoders
from cosim.simulation.plant.encoder import Encoders
from tests.scenario.helpers import SIM, fault, file_of, scenario

PERIOD, N = 1e-3, 2


def encoders(noise=0.0):
    plain = Encoders([0.0] * N, [noise, 0.0], [False] * N, PERIOD, seed=3)
    return plain, FaultyEncoders.of(plain, np.array([True, False]))


def measured(faulty, steps, **faults):
    """(positions, velocities) (steps, n) of joints that move at 2 rad/s; faults: of the first joint."""
    q, v = np.array([0.5, 1.0]), np.full(N, 2.0)
    state = faulty.initial(q, v)
    for name, value in faults.items():
        state[name] = np.array([value, 0.0])
    rows = []
    for k in range(steps):
        u = {"position": q + v * k * PERIOD, "velocity": v, "effort": np.zeros(N)}
        state, y = faulty.update(k * PERIOD, faulty.params, state, u)
        rows.append((y["position"], y["velocity"]))
    position, velocity = (np.array(column) for column in zip(*rows, strict=True))
    return position, velocity


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_without_a_fault_nothing_is_changed(noise):
    plain, faulty = encoders(noise)
    for one, other in zip(measured(plain, 50), measured(faulty, 50), strict=True):
        assert np.array_equal(one, other)
    assert list(faulty.inexact) == [True, False] and list(plain.inexact) == [noise > 0.0, False]


def test_each_fault_is_that_of_its_joint_alone():
    plain, faulty = encoders()
    q, v = measured(plain, 1000)
    for faults, position, velocity in (
        ({"jump": 0.1}, q[:, 0] + 0.1, v[:, 0]),
        ({"rate": 0.3}, q[:, 0] + 0.3 * PERIOD * np.arange(1, 1001), v[:, 0] + 0.3),
        ({"slip": 0.3}, q[:, 0], v[:, 0] + 0.3),
        ({"frozen": 1.0}, np.full(1000, 0.5), np.zeros(1000)),
        ({"blind": 1.0}, np.full(1000, np.nan), np.full(1000, np.nan)),
        ({"blind": 1.0, "frozen": 1.0}, np.full(1000, np.nan), np.full(1000, np.nan)),
    ):
        found_q, found_v = measured(faulty, 1000, **faults)
        assert np.allclose(found_q[:, 0], position, equal_nan=True) and np.allclose(
            found_v[:, 0], velocity, equal_nan=True
        )
        assert np.array_equal(found_q[:, 1], q[:, 1]) and np.array_equal(found_v[:, 1], v[:, 1])


def test_noise_is_normal_with_its_deviation_and_the_same_each_time():
    plain, faulty = encoders()
    q, _ = measured(plain, 4000)
    errors = measured(faulty, 4000, deviation=0.02)[0][:, 0] - q[:, 0]
    assert np.mean(errors) == pytest.approx(0.0, abs=2e-3) and np.std(errors) == pytest.approx(0.02, rel=0.05)
    assert np.mean(np.abs(errors) < 0.02) == pytest.approx(0.683, abs=0.03)
    assert np.array_equal(errors, measured(faulty, 4000, deviation=0.02)[0][:, 0] - q[:, 0])


@pytest.mark.parametrize("interpret", [False, True])
def test_a_rig_with_these_ticks_moves_as_without_them(tmp_path, interpret):
    """To the bit until a fault begins, in compiled ticks and in Python."""
    given = {"one": scenario("completed", *(fault(f"encoder_{kind}", joint="elbow") for kind in ("nan", "freeze")))}
    spec, scenarios = ScenarioFiles(SIM, (file_of(tmp_path, given),)).read()
    rows = []
    for those in ((), scenarios):
        armed = ArmedRig(spec, those, interpret)
        armed.begin()
        rows.append(armed.run(15 if interpret else 80)[0])
    assert np.array_equal(rows[0], rows[1])
    for name in ENCODER_FAULTS:
        assert not armed.engine.view("sensors", name).any()
