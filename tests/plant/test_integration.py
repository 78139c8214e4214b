"""The motion of a plant by `rodas4`: its order in rigs of all kinds, its estimated error, steps of chosen length."""

import numpy as np
import pytest

from cosim import StoppedRun
from cosim.core.compile import ArrayPort, compile
from cosim.core.compile.jacobian import Jacobian
from tests.kit.refusals import raised
from tests.plant.event_runs import FOUR_BAR, EventRun, with_events

RODAS = "schedule.integrator=rodas4"
SPRING = """
mechanism:
  gravity: [0, 0, -9.81]
  bodies: [{name: a, type: prismatic, axis: [0, 0, 1], mass: 1 kg, stiffness: 400 N/m, damping: 3}]
joints: {a: {initial: {position: 0.2}}}
"""
ARM = """
mechanism:
  gravity: [0, -9.81, 0]
  bodies:
    - {name: a, mass: 1 kg, com: [0.2, 0, 0], inertia: [0.01, 0.01, 0.01]}
    - {name: b, mass: 0.5 kg, com: [0.1, 0, 0], inertia: [0.01, 0.01, 0.01], origin: {xyz: [0.4, 0, 0]}}
joints:
  a: {actuator: {type: dc_motor, resistance: 1, inductance: 5 mH, torque_constant: 0.05, rotor_inertia: 1e-4, ratio: 50,
      stiffness: 800, damping: 0.4}, initial: {position: 0.3}}
  b: {prescribed: {type: sine, amplitude: 0.3, frequency: 1 Hz}}
"""
TOP = """
mechanism:
  bodies:
    - {name: top, type: spherical, mass: 1 kg, com: [0, 0, 0.2], inertia: [0.02, 0.03, 0.01]}
joints: {top.rx: {initial: {velocity: 4}}, top.rz: {initial: {velocity: 9}}}
"""
RIGS = {"spring": SPRING, "arm": ARM, "loop": FOUR_BAR, "quaternion": TOP}


class March:
    """Steps of any length of a rig without events, by machine code that is compiled once."""

    def __init__(self, rig):
        self.tick_model = tick_model = rig.tick_model
        nx, nv = tick_model.nx, tick_model.nv
        ports = [ArrayPort("t", ()), ArrayPort("x", (nx,)), ArrayPort("request", (nv,)), ArrayPort("h", ())]
        self._step = compile(tick_model.integration.advance, ports, "march", interpret=False)

    def to(self, end, n):
        x, request = self.tick_model.plant.layout.pack(self.tick_model.plant.initial()), np.zeros(self.tick_model.nv)
        for k in range(n):
            x = self._step(k * end / n, x, request, end / n)
        return x


def order_of(errors, ratio=2.0):
    """The slope of log error over log step."""
    slopes = np.diff(np.log(errors)) / -np.log(ratio)
    return float(slopes.mean())


@pytest.mark.parametrize("name", RIGS)
def test_the_order_is_four(rig_of, name):
    march = March(rig_of(RIGS[name], RODAS, "schedule.tolerance=0.1"))
    moving = np.concatenate(march.tick_model.plant.state_places)
    exact = march.to(0.16, 400)[moving]
    errors = [np.abs(march.to(0.16, n)[moving] - exact).max() for n in (20, 40, 80)]
    assert errors[0] < 0.01
    assert order_of(errors) == pytest.approx(4, abs=0.5)


def test_the_order_is_four_with_an_event(rig_of):
    """A stop with restitution within a step: the motion before and after it is exact to the order."""
    text = SPRING.replace("position: 0.2}", "position: 0.2}, stops: {lower: 0.05, restitution: 0.8}")
    ends = [
        EventRun(rig_of(text, RODAS, f"schedule.step={step} ms", "schedule.duration=0.16"))["a/position"][-1]
        for step in (8, 4, 2, 0.25)
    ]
    errors = np.abs(np.array(ends[:3]) - ends[3])
    assert errors[0] < 1e-3
    assert order_of(errors) == pytest.approx(4, abs=0.7)


LATCHED = with_events(["do: latch, of: a, at: 0.002"], ARM.replace("  b: {p", "  # {p"))


@pytest.mark.parametrize("text", [ARM, TOP, LATCHED])
def test_the_slope_by_implicit_accelerations_is_that_of_the_flow(rig_of, text):
    integration = rig_of(text, RODAS).tick_model.integration
    plant, rng = integration.plant, np.random.default_rng(1)
    nx, nv = plant.layout.size, plant.model.nv
    for locked in (0.0, 1.0):
        state = plant.layout.unpack(plant.layout.pack(plant.initial()) + 0.1 * rng.normal(size=nx))
        if plant.modes:
            state["modes"]["latched"] = np.array([locked] + [0.0] * (nv - 1))
        t, x, request = 0.3, plant.layout.pack(state), rng.normal(size=nv)
        explicit = Jacobian(lambda tx, r: integration._flow(tx[0], tx[1:], r), [(1 + nx,), (nv,)], "explicit")
        expected = explicit(np.array([t, *x]), request)
        found = integration.slope(np.array([t, *x]), request, integration.flow(t, x, request))
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


def test_a_rig_whose_integrator_does_not_estimate_keeps_nothing(rig_of):
    rig = rig_of(ARM)
    assert rig.plant.control is None and "steps" not in rig.plant.initial()
    assert not [name for name in rig.tick_model.signals.names if "step" in name]


def test_the_estimate_is_near_the_error_of_the_step_and_names_the_joint(rig_of):
    rig = rig_of(ARM, RODAS, "schedule.step=4 ms", "schedule.tolerance=1e-6", "schedule.duration=0.2")
    run = rig.run()
    assert not run["b/step_error"].any()  # prescribed
    error = run.summary["step_error"]
    assert error["joint"] == "a" and error["max"] == run["a/step_error"].max() > 1.0
    fine = rig_of(ARM, RODAS, f"schedule.substeps={error['substeps_needed']}", *OF_COARSE).run()
    assert fine.summary["step_error"]["max"] < 1.0
    assert fine.summary["step_error"]["substeps_needed"] == error["substeps_needed"]
    # relative to 1 + |y|, doubled by its other states
    end = np.abs(run["a/position"][-1] - fine["a/position"][-1])
    assert end < error["max"] * 1e-6 * 50


OF_COARSE = ("schedule.step=4 ms", "schedule.tolerance=1e-6", "schedule.duration=0.2")


def test_engines_agree_on_the_estimate(rig_of):
    for more in ((), ("schedule.substeps=auto",)):
        settings = (RODAS, *OF_COARSE, *more)
        native = rig_of(ARM, *settings, "schedule.duration=0.012").run()
        plain = rig_of(ARM, *settings, "schedule.duration=0.012", interpret=True).run()
        np.testing.assert_allclose(plain.values, native.values, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", ["spring", "arm", "quaternion"])
def test_chosen_steps_keep_the_error_near_the_tolerance(rig_of, name):
    exact = rig_of(RIGS[name], RODAS, "schedule.substeps=16", "schedule.duration=0.2").run()
    joint = exact.rig.joints[0]
    worst, counts = [], []
    for tolerance in (1e-4, 1e-7):
        settings = RODAS, "schedule.step=10 ms", f"schedule.tolerance={tolerance}", "schedule.substeps=auto"
        run = rig_of(RIGS[name], *settings, "schedule.duration=0.2").run()
        worst.append(np.abs(run[f"{joint}/position"] - exact[f"{joint}/position"][::10]).max() / tolerance)
        counts.append(run.summary["step_count"]["mean"])
    assert max(worst) < 5.0
    assert counts[1] > 1.5 * counts[0]


def test_steps_end_at_events(rig_of):
    """Free fall is a parabola, which the method has without error: the event is where it belongs."""
    events = ["do: latch, of: a, when: {signal: a/position, above: 0.3}"]
    run = EventRun(rig_of(with_events(events), RODAS, "schedule.substeps=auto", "schedule.step=20 ms"))
    count, last, _ = run.event(run.event_names[0])
    assert count == 1 and last == pytest.approx(np.sqrt(0.3), abs=1e-9)
    assert run["a/position"][-1] == pytest.approx(0.3, abs=1e-9)


def test_a_tick_that_no_step_can_take_ends_the_run_with_its_reason(rig_of, said):
    hard = SPRING.replace("400 N/m, damping: 3", "4e8 N/m")
    settings = RODAS, "schedule.substeps=auto", "schedule.tolerance=1e-12", "schedule.step=100 ms"
    said(raised(StoppedRun, rig_of(hard, *settings).run), r"(?<=from t = )\S+")
