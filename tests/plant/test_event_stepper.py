"""Events together with prescribed joints, elastic drives, controllers in Python, in all engines and integrators."""

import numpy as np
import pytest

from tests.kit.engines import python_engine
from tests.kit.rigs import controller, rig_in
from tests.plant.event_runs import BALL, EventRun, with_events


def test_events_beside_a_prescribed_joint(run_of):
    """The cart of a prescribed joint carries a body that is latched to it: from then on it does what the cart does."""
    text = """
mechanism:
  gravity: [0, 0, 0]
  bodies:
    - {name: cart, type: prismatic, axis: [1, 0, 0], mass: 1 kg}
    - {name: load, type: prismatic, axis: [1, 0, 0], mass: 2 kg}
joints:
  cart: {prescribed: {type: quintic, goal: 1, duration: 1}}
  load: {initial: {velocity: 0.2}}
"""
    ran = run_of(["do: latch, of: load, at: 0.5"], text)
    np.testing.assert_allclose(ran["cart/effort"][501:], 3 * ran["cart/acceleration"][501:], atol=1e-9)
    # the load alone keeps its speed until then: 0.2 m/s against the peak of the quintic, 1.875 m/s
    assert ran.event("latch load")[2] == pytest.approx(0.5 * 2 * (0.2 - 1.875) ** 2, rel=1e-6)
    assert not ran["load/velocity"][501:].any()
    stored = ran["energy/stored"] - ran["energy/work"] + ran["energy/dissipated"]
    np.testing.assert_allclose(stored, stored[0], atol=1e-6)


MOTORISED = """
mechanism:
  gravity: [0, -9.81, 0]
  bodies:
    - {name: a, mass: 1 kg, com: [0.2, 0, 0], inertia: [0.01, 0.01, 0.01]}
    - {name: b, mass: 0.5 kg, com: [0.1, 0, 0], inertia: [0.01, 0.01, 0.01], origin: {xyz: [0.4, 0, 0]}}
joints:
  a: {stops: {lower: -0.5, restitution: 0.3}}
  b: {actuator: {type: dc_motor, resistance: 1, inductance: 1 mH, torque_constant: 0.05, rotor_inertia: 1e-5,
      ratio: 50, stiffness: 40}}
controllers: [{type: pid, joints: [b], kp: 4, ki: 0, kd: 0.05, trajectory: {type: quintic, goal: 0.5, duration: 0.2}}]
events:
  - {do: brake, of: a, effort: 1, at: 0.0025}
  - {do: latch, of: b, when: {signal: a/position, below: -0.001}}
  - {do: unlatch, of: b, at: 0.0155}
  - {do: unbrake, of: a, when: {signal: a/position, below: -0.2}}
schedule: {duration: 0.3, integrator: rk4}
"""
ALTERNATIVES = {
    "rk4 in substeps": ("schedule.integrator=rk4", "schedule.substeps=3"),
    "rosenbrock": ("schedule.integrator=rosenbrock",),
    "semi-implicit Euler": ("schedule.integrator=semi_implicit_euler", "schedule.step=0.2 ms"),
}


@pytest.fixture(scope="module")
def fine(tmp_path_factory):
    return EventRun(rig_in(tmp_path_factory.mktemp("fine"), MOTORISED, "schedule.step=0.1 ms"))


@pytest.mark.parametrize("case", ALTERNATIVES)
def test_engines_and_integrators_agree(rig_of, fine, case):
    """Machine code, the Python loop around it, and Python alone; an elastic drive takes part."""
    rig = rig_of(MOTORISED, *ALTERNATIVES[case])
    native = EventRun(rig)
    assert [native.event(name)[0] for name in native.event_names[:4]] == [1, 1, 1, 1]
    np.testing.assert_allclose(EventRun(rig, python_engine(rig)).rows, native.rows, rtol=1e-9, atol=1e-11)
    ticks = round(0.02 / rig.tick_model.step)  # past three events
    if case == "rosenbrock":  # other tests run rk4 in Python
        plain = EventRun(rig_of(MOTORISED, *ALTERNATIVES[case], interpret=True), ticks=ticks)
        np.testing.assert_allclose(plain.rows, native.rows[: ticks + 1], rtol=1e-7, atol=1e-9)
    room = 10 if "Euler" in case else 1
    for name in native.event_names[:4]:
        assert native.event(name)[1] == pytest.approx(fine.event(name)[1], abs=2e-4 * room)
    for name in ("a/position", "b/position"):
        assert native[name][-1] == pytest.approx(fine[name][-1], abs=2e-3 * room)


def test_the_energy_of_an_elastic_drive_is_accounted_for(rig_of):
    summary = rig_of(MOTORISED).run().summary
    assert summary["energy"]["residual_relative"] < 1e-3


def test_a_controller_in_python_gives_the_same_run(rig_of):
    """What reads a number cannot be traced."""
    text = BALL + "controllers: [{type: push.py, joints: [a]}]\n"
    text = with_events(["do: latch, of: a, at: 0.7"], text, "duration: 0.8")
    lines = "effort = ops.array([ops.sin(t)]) + q"
    native, in_python = (EventRun(rig_of(text, push=controller(push))) for push in (lines, f"float(q[0]); {lines}"))
    np.testing.assert_allclose(in_python.rows, native.rows, rtol=1e-9, atol=1e-12)
