"""Efforts from outside: the motion against another integrator, their work against the energy of the plant."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from cosim import load_rig
from cosim.mechanics.integrators.methods import INTEGRATORS
from cosim.simulation.plant.integration import Integration
from cosim.simulation.plant.recorded_signals import recorded_of

STEP, STEPS = 1e-3, 100
SINCE = 0.02  # s
# cart: 3 + 40 (t - t0) - 300 (t - t0)²; pole: -0.4 + 6 (t - t0)
COEFFICIENTS = np.array([[3.0, 40.0, -300.0], [-0.4, 6.0, 0.0]])
CHAIN = """
mechanism:
  bodies:
    - {name: cart, joint: rail, type: prismatic, axis: [1, 0, 0], mass: 2 kg, inertia: [0.1, 0.1, 0.1]}
    - {name: pole, parent: cart, joint: pole, axis: [0, 1, 0], mass: 0.5 kg, com: [0, 0, -0.4],
       inertia: [0.03, 0.03, 0.001], damping: 0.02}
joints:
  rail: {RAIL}
  pole: {initial: {position: 0.3}}
schedule: {step: 1 ms, duration: 0.2 s}
"""
FREE, PRESCRIBED = "{}", "{prescribed: {type: sine, amplitude: 0.1, frequency: 2}}"


def plant_of(tmp_path, rail):
    (tmp_path / "chain.yaml").write_text(CHAIN.replace("{RAIL}", rail))
    return replace(load_rig(tmp_path / "chain.yaml", interpret=True).plant, coupled=("rail", "pole"))


def marched(plant, integrator):
    """The states (STEPS + 1) of the plant."""
    integration = Integration(
        replace(plant, multirate=INTEGRATORS[integrator].multirate, moreau=INTEGRATORS[integrator].moreau),
        integrator,
        False,
    )
    state = integration.plant.initial()
    state["external"] = {"since": np.array(SINCE), "coefficients": COEFFICIENTS}
    states, request = [integration.plant.layout.pack(state)], np.zeros(2)
    for k in range(STEPS):
        states.append(np.asarray(integration.advance(k * STEP, states[-1], request, STEP), dtype=float))
    return [integration.plant.layout.unpack(x) for x in states]


def given(t):
    return COEFFICIENTS @ np.array([1.0, t - SINCE, (t - SINCE) ** 2])


@pytest.fixture(scope="module")
def exact(tmp_path_factory):
    """(q and v of the free chain at the end, work of both efforts)."""
    plant = plant_of(tmp_path_factory.mktemp("exact"), FREE)
    model, start = plant.model, plant.start

    def flow(t, y):
        effort = given(t)
        a = model.forward_dynamics(y[:2], y[2:4], effort - [0.0, 0.02 * y[3]])
        return np.concatenate([y[2:4], a, effort * y[2:4]])

    begun = np.concatenate([start.q, start.v, np.zeros(2)])
    return solve_ivp(flow, (0.0, STEPS * STEP), begun, "DOP853", rtol=1e-12, atol=1e-13).y[:, -1]


@pytest.mark.parametrize(
    ("integrator", "tolerance"),
    [
        ("rk4", 1e-9),
        ("rodas4", 1e-7),
        ("rosenbrock", 1e-4),
        ("multirate", 1e-4),
        ("semi_implicit_euler", 2e-2),
        ("moreau", 2e-3),
    ],
)
def test_motion_and_work_of_every_integrator(tmp_path, exact, integrator, tolerance):
    plant = plant_of(tmp_path, FREE)
    end = marched(plant, integrator)[-1]
    found = np.concatenate([end["position"], end["velocity"], end["energy"]["external"]])
    np.testing.assert_allclose(found, exact, atol=tolerance * np.abs(exact).max())
    assert set(INTEGRATORS) == {"rk4", "rodas4", "rosenbrock", "multirate", "semi_implicit_euler", "moreau"}


def test_the_energy_of_the_plant_is_what_comes_in(tmp_path):
    plant = plant_of(tmp_path, PRESCRIBED)
    states = marched(plant, "rk4")
    balance = []
    for k in (0, STEPS):
        energy = {
            name.partition("/")[2]: float(value)
            for name, value in recorded_of(plant, k * STEP, states[k], np.zeros(2)).values.items()
            if name.startswith("energy/")
        }
        balance.append(energy["stored"] + energy["dissipated"] - energy["work"] - energy["parts"])
    external = states[-1]["energy"]["external"]
    assert abs(external).min() > 0.002
    assert balance[1] == pytest.approx(balance[0], abs=1e-9)
    assert energy["parts"] == pytest.approx(external.sum(), abs=1e-12)


def test_a_prescribed_dof_needs_less_by_what_comes_from_outside(tmp_path):
    plant = plant_of(tmp_path, PRESCRIBED)
    state = plant.initial()
    without = recorded_of(plant, 0.05, state, np.zeros(2)).values
    state["external"] = {"since": np.array(SINCE), "coefficients": COEFFICIENTS * [[1.0], [0.0]]}
    found = recorded_of(plant, 0.05, state, np.zeros(2)).values
    assert found["rail/external_effort"] == pytest.approx(given(0.05)[0])
    assert found["rail/effort"] == pytest.approx(without["rail/effort"] - given(0.05)[0])
    assert found["pole/acceleration"] == pytest.approx(without["pole/acceleration"])
