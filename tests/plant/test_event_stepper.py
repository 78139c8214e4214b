"""Events together with prescribed joints, elastic drives, controllers in Python, in all engines and integrators."""

import numpy as np
import pytest

from cosim.execution.python_engine import PythonEngine
from cosim.rig.build.drivers import driver_groups
from cosim.tick.virtual_plant import VirtualPlant
from tests.plant.event_runs import BALL, EventRun, with_events

# --- other parts of a rig --------------------------------------------------------------------------------


def test_events_beside_a_prescribed_joint(rig_of):
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
    ran = EventRun(rig_of(with_events(["do: latch, of: load, at: 0.5"], text)))
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
ALTERNATIVES = [
    ["schedule.integrator=rk4"],
    ["schedule.integrator=rk4", "schedule.substeps=3"],
    ["schedule.integrator=rosenbrock"],
    ["schedule.integrator=semi_implicit_euler", "schedule.step=0.2 ms"],
]


@pytest.mark.parametrize("overrides", ALTERNATIVES)
def test_all_engines_agree(rig_of, overrides):
    """Machine code, the Python loop around it, and Python alone; an elastic drive takes part."""
    rig = rig_of(MOTORISED, *overrides)
    native = EventRun(rig)
    assert [native.event(name)[0] for name in native.event_names[:4]] == [1, 1, 1, 1]
    virtual_plant = VirtualPlant(rig.tick_model)
    looped = EventRun(
        rig, PythonEngine(rig.tick_model, virtual_plant, driver_groups((), {}, rig.joints, rig.limits, virtual_plant))
    )
    np.testing.assert_allclose(looped.rows, native.rows, rtol=1e-9, atol=1e-11)
    ticks = round(0.02 / rig.tick_model.step)  # past three events
    plain = EventRun(rig_of(MOTORISED, *overrides, interpret=True), ticks=ticks)
    np.testing.assert_allclose(plain.rows, native.rows[: ticks + 1], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("overrides", ALTERNATIVES)
def test_integrators_agree(rig_of, overrides):
    fine = EventRun(rig_of(MOTORISED, "schedule.step=0.1 ms"))
    ran = EventRun(rig_of(MOTORISED, *overrides))
    loose = "semi" in overrides[0]
    for name in ran.event_names[:4]:
        assert ran.event(name)[1] == pytest.approx(fine.event(name)[1], abs=2e-3 if loose else 2e-4)
    for name in ("a/position", "b/position"):
        assert ran[name][-1] == pytest.approx(fine[name][-1], abs=2e-2 if loose else 2e-3)


def test_the_energy_of_an_elastic_drive_is_accounted_for(rig_of):
    summary = rig_of(MOTORISED).run().summary
    assert summary["energy"]["residual_relative"] < 1e-3


USER = """
from cosim.types import COMMAND, joint_signals, params
import math
@params
class Params: pass
class Push:
    def __init__(self, params, context):
        self.params, self.n = params, len(context.joints)
        self.inputs, self.outputs = joint_signals(("position",), self.n), joint_signals(COMMAND, self.n)
    def initial(self): return {}
    def update(self, t, p, x, u):
        value = [math.sin(float(t)) + float(q) for q in u["position"]]
        return {}, {name: value if name == "effort" else [0.0] * self.n for name in COMMAND}
def load(params, context): return Push(params, context)
"""


def test_a_controller_in_python_gives_the_same_run(rig_of, tmp_path):
    (tmp_path / "mine.py").write_text(USER)
    text = BALL + "controllers: [{type: mine.py}]\n"
    text = with_events(["do: latch, of: a, at: 0.7"], text, "duration: 0.8")
    in_python = EventRun(rig_of(text))
    (tmp_path / "mine.py").write_text(
        USER.replace("import math", "from cosim import ops").replace("math.sin", "ops.sin").replace("float", "")
    )
    native = EventRun(rig_of(text))
    np.testing.assert_allclose(in_python.rows, native.rows, rtol=1e-9, atol=1e-12)
