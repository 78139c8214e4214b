"""Errors of the field angle and of measured currents: their closed forms, and the torque of a drive that has them."""

import math
from typing import Any

import numpy as np
import pytest

from cosim import Rig
from cosim.core.errors import InputError
from cosim.core.servo.commutation import Commutation, turned
from tests.kit.messages import Said

MOTOR = {"type": "pmsm", "pole_pairs": 4, "resistance": 0.5, "inductance_d": 1e-3, "inductance_q": 1e-3, "flux": 0.02}
REQUEST = 0.6  # N·m: 5 A


def spun(commutation: dict[str, Any], speed: float = 0.0, duration: float = 0.1, **more: Any) -> Any:
    """A drive on a flywheel that keeps its speed, under a constant request, in whole samples of 0.25 ms."""
    drive = {"type": "drive", "motor": MOTOR | {"inertia": 1e-3}, "control": {"bandwidth": 1000}}
    drive["loops"] = {"mode": "effort", "current": {"rate": 16e3}, "commutation": commutation}
    body = {"name": "wheel", "joint": "hub", "axis": [0, 0, 1], "type": "continuous", "mass": 1, "inertia": [1e6] * 3}
    goal = {"type": "trapezoidal", "goal": 1e7, "max_velocity": 1e6, "max_acceleration": 1e9}
    return Rig.from_dict(
        {
            "mechanism": {"gravity": [0, 0, 0], "bodies": [body]},
            "joints": {
                "hub": {"actuator": drive | more, "limits": {"effort": REQUEST}, "initial": {"velocity": speed}}
            },
            "controllers": [{"type": "pid", "kp": 1, "ki": 0, "kd": 0, "trajectory": goal}],
            "schedule": {"step": "0.25 ms", "duration": duration, "integrator": "rk4", "substeps": 8},
        }
    ).run()


def torque(run: Any) -> np.ndarray:
    return 1.5 * 4 * 0.02 * run["hub/current_q"]


@pytest.mark.parametrize("offset", [0.3, -0.8, 1.2])
def test_an_offset_of_the_field_angle_takes_its_cosine_of_the_torque(offset: float) -> None:
    run = spun({"offset": offset})
    assert torque(run)[-1] == pytest.approx(REQUEST * math.cos(offset), rel=1e-6)
    assert run["hub/current_d"][-1] == pytest.approx(-5.0 * math.sin(offset), rel=1e-6)


def test_a_late_angle_lags_by_the_speed_times_its_age() -> None:
    """The same as the offset −p ω T."""
    run, fixed = spun({"delay": "0.5 ms"}, 200.0), spun({"offset": -0.4}, 200.0)
    assert torque(run)[-1] == pytest.approx(REQUEST * math.cos(0.4), rel=2e-3)
    assert run["hub/current_d"][-1] == pytest.approx(fixed["hub/current_d"][-1], rel=1e-6)


ORDERS: dict[str, tuple[dict[str, Any], int, float | None]] = {
    # order per electrical turn, and its amplitude in i_q [A] by closed form
    "offset of a current": ({"current_offsets": [0.2, -0.1, 0.0]}, 1, 2 / 3 * math.sqrt(0.07)),
    "gain of a current": ({"current_gains": [0.03, 0.0, 0.0]}, 2, 0.03 * 5.0 / 3.0 / 1.01**2),
    "hall switches": ({"hall": True}, 6, None),
}


@pytest.mark.parametrize("name", ORDERS)
def test_the_torque_ripples_with_the_order_of_the_error(name: str) -> None:
    """At 10 electrical turns per second, far below the bandwidth: 10 whole turns."""
    commutation, order, amplitude = ORDERS[name]
    run = spun(commutation, 2.0 * math.pi * 10.0 / 4.0, 1.1)
    current = run["hub/current_q"][run.t > 0.1 - 1e-9][:4000]
    spectrum = 2.0 * np.abs(np.fft.rfft(current - current.mean())) / 4000
    assert spectrum.argmax() == 10 * order
    if amplitude is not None:
        assert spectrum[10 * order] == pytest.approx(amplitude, rel=0.01)
        assert np.delete(spectrum, 10 * order).max() < 0.05 * amplitude
    else:  # the mean of cos δ over ± 30°
        assert current.mean() == pytest.approx(5.0 * 3.0 / math.pi, rel=0.01)


def test_the_error_of_the_angle_by_its_closed_forms() -> None:
    """Small errors of a disc, and of a sine and a cosine: e sin φ; o_s cos − o_c sin, g/2 sin 2, β/2 (1 + cos 2)."""
    angle = np.linspace(0.0, 2.0 * math.pi, 721)
    n, small = 3, 1e-5
    a = n * angle
    expected: dict[str, tuple[np.ndarray, dict[str, Any]]] = {
        "eccentricity": (4 * small * np.sin(angle), {"eccentricity": small}),
        "sine": (4 / n * small * np.cos(a), {"sine_offset": small}),
        "cosine": (-4 / n * small * np.sin(a), {"cosine_offset": small}),
        "gain": (4 / n * small * 0.5 * np.sin(2 * a), {"sine_gain": small}),
        "phase": (4 / n * small * 0.5 * (1.0 + np.cos(2 * a)), {"phase": small}),
    }
    for values, error in expected.values():
        found = Commutation(periods=n, **error).angle_error(4, angle, 0.0)
        assert found == pytest.approx(values, abs=30 * small**2)
    hall = Commutation(hall=True, offset=0.1).angle_error(4, angle, 0.0) + 4 * angle
    assert len(np.unique(np.round(np.sin(hall), 9) + 2 * np.round(np.cos(hall), 9))) == 6
    assert np.abs(hall - 4 * angle - 0.1).max() <= math.pi / 6 + 1e-12
    counts = (Commutation(cpr=48).angle_error(4, angle, 0.0) + 4 * angle) / (4 * 2.0 * math.pi / 48)
    assert counts == pytest.approx(np.round(counts), abs=1e-9)


def test_phases_and_axes_are_the_same_currents() -> None:
    """Without errors of the phases, the drive sees the vector in its axes, and turns its own back."""
    seen = Commutation().measured(-2.0, 5.0, 0.7, 0.4, (0.0, 0.0, 0.0))
    assert turned(*seen, 0.4) == pytest.approx((-2.0, 5.0), rel=1e-12)


def test_the_noise_of_the_currents_is_normal_white_and_the_same_in_every_run() -> None:
    sensors, found = Commutation(current_noise=0.2), []
    x = sensors.initial()
    for _ in range(4000):
        state, noise = sensors.noise(x)
        x = x | state
        found.append([float(value) for value in noise])
    values = np.array(found)
    assert values.mean(axis=0) == pytest.approx([0.0] * 3, abs=0.012)
    assert values.std(axis=0) == pytest.approx([0.2] * 3, rel=0.04)
    assert np.mean(np.abs(values) < 0.2) == pytest.approx(0.6827, abs=0.015)
    assert np.corrcoef(values[1:, 0], values[:-1, 0])[0, 1] == pytest.approx(0.0, abs=0.05)
    assert abs(np.corrcoef(values.T) - np.eye(3)).max() < 0.05
    runs = [spun({"current_noise": 0.2})["hub/current_q"] for _ in range(2)]
    assert (runs[0] == runs[1]).all() and 0.01 < runs[0][200:].std() < 0.2


def test_errors_of_zero_change_nothing() -> None:
    exact, same = spun({"current_gains": [0, 0, 0]}, 50.0), spun({}, 50.0)
    np.testing.assert_array_equal(exact["hub/current_q"], same["hub/current_q"])
    bare = spun({}, 50.0, loops={"mode": "effort", "current": {"rate": 16e3}})
    assert same["hub/current_q"] == pytest.approx(bare["hub/current_q"], abs=1e-9)


def test_an_eccentric_disc_of_the_encoder_acts_on_the_velocity_and_on_the_field() -> None:
    """One declaration: the differences of θ + e sin θ, and the axes d and q off by p e sin θ."""
    e, speed = 0.02, 40.0
    loops = {
        "mode": "effort",
        "current": {"rate": 16e3},
        "velocity": {"gain": 1, "rate": 4e3},
        "encoder": {"eccentricity": e},
    }
    run = spun({}, speed, loops=loops)
    theta, late = run["hub/position"], run["hub/position"] - 0.25e-3 * speed
    seen = (theta + e * np.sin(theta) - late - e * np.sin(late)) / 0.25e-3
    assert run["hub/measured_velocity"][8:] == pytest.approx(seen[7:-1], abs=1e-3 * speed)
    assert np.ptp(run["hub/measured_velocity"][8:]) == pytest.approx(2 * e * speed, rel=2e-2)
    other = spun({"eccentricity": e}, speed)
    # but for the speed by which the loops are decoupled, which is measured too
    assert run["hub/current_d"] == pytest.approx(other["hub/current_d"], abs=1e-2)
    assert np.abs(run["hub/current_d"][50:]).max() == pytest.approx(5.0 * math.sin(4 * e), rel=0.1)


WRONG: dict[str, dict[str, Any]] = {
    "two discs": {
        "loops": {
            "mode": "velocity",
            "velocity": {"gain": 1},
            "current": {},
            "encoder": {"eccentricity": 0.01},
            "commutation": {"eccentricity": 0.01},
        }
    },
    "switches with a sine": {
        "loops": {"mode": "effort", "current": {}, "commutation": {"hall": True, "sine_gain": 0.1}}
    },
    "half a turn of eccentricity": {
        "loops": {"mode": "effort", "current": {}, "commutation": {"eccentricity": "90 deg", "delay": "1 s"}}
    },
    "a continuous loop": {"loops": {"mode": "velocity", "velocity": {"gain": 1}, "commutation": {}}},
    "both angles": {"loops": {"mode": "effort", "current": {}, "commutation": {"hall": True, "cpr": 1024}}},
    "a dc machine": {
        "motor": {"type": "dc_machine", "resistance": 1, "inductance": 1e-3, "torque_constant": 0.1, "inertia": 1e-3}
    },
    "a stepper": {
        "motor": {"type": "stepper", "teeth": 50, "resistance": 1, "inductance": 1e-3, "torque_constant": 0.1}
        | {"inertia": 1e-3}
    },
}


@pytest.mark.parametrize("case", WRONG)
def test_what_a_commutation_cannot_have(case: str, said: Said) -> None:
    with pytest.raises(InputError) as raised:
        spun({}, **WRONG[case])
    said(raised.value)
