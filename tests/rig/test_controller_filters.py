"""Filters of the effort of any controller: what they do in a loop, in both engines, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import signal

from cosim.core import filters

# two inertias of 0.1 kg m² on a spring: they resonate at 50 Hz
TWO_INERTIAS = """
mechanism:
  gravity: [0, 0, 0]
  bodies:
    - {name: motor, joint: motor, axis: [0, 0, 1], mass: 1 kg, inertia: [0.1, 0.1, 0.1]}
    - {name: load, parent: motor, joint: spring, axis: [0, 0, 1], mass: 1 kg, inertia: [0.1, 0.1, 0.1],
       stiffness: 4935, damping: 0.02}
joints: {motor: {actuator: {type: ideal}}}
controllers:
  - {type: CONTROLLER, joints: [motor]FILTERS,
     trajectory: {type: quintic, goal: 60 deg, duration: 0.2 s}}
schedule: {step: 1 ms, duration: 1 s, integrator: rk4}
"""
PD = "feedforward_pd, kp: 800, kd: 20"
NOTCH = ", filters: [{type: notch, frequency: 50 Hz, width: 40 Hz, depth: 0.02}]"
LOW_PASS = ", filters: [{type: low_pass, frequency: 40 Hz, order: 3}]"


def text(controller=PD, filters="", source=TWO_INERTIAS) -> str:
    return source.replace("CONTROLLER", controller).replace("FILTERS", filters)


@pytest.mark.parametrize(
    "controller",
    [
        PD,
        "pid, kp: 800, ki: 100, kd: 20",
        "cascade, position_gain: 20, velocity_gain: 10",
        "computed_torque, bandwidth: 8",
    ],
)
def test_the_effort_of_any_controller_passes_the_filters(rig_of, controller):
    """The recorded effort is the filtered request that the commands of the controller would have made."""
    plain = rig_of(text(controller, ", filters: [{type: low_pass, frequency: 100 Hz}]")).run(0.3)
    loop = rig_of(text(controller)).tick_model.loops[0]
    state, wanted = loop.block.initial(), []
    inputs = {name: plain[f"motor/{name}"] for name in ("position", "velocity")}
    inputs |= {f"reference_{name}": plain[f"motor/reference_{name}"] for name in ("position", "velocity")}
    trajectory = loop.trajectory
    for k, t in enumerate(plain.t):
        u = {name: values[k : k + 1] for name, values in inputs.items()}
        u |= {f"reference_{name}": value for name, value in trajectory.sample(t).items()}
        for name in ("position", "velocity"):
            u[f"all_{name}"] = np.array([plain[f"{dof}/{name}"][k] for dof in ("motor", "spring")])
        u |= {name: np.zeros(2) for name in ("all_effort", "all_acceleration", "all_locked")}
        state, y = loop.block.update(t, loop.block.params, state, {name: u[name] for name in loop.block.inputs})
        error, rate = y["position"] - u["position"], y["velocity"] - u["velocity"]
        wanted.append((y["kp"] * error + y["kd"] * rate + y["effort"]).item())
    (section,) = filters.low_pass(100.0, 2, 1e-3)
    rows = np.array([[section.b0, section.b1, section.b2, 1.0, section.a1, section.a2]])
    expected, _ = signal.sosfilt(rows, wanted, zi=signal.sosfilt_zi(rows) * wanted[0])
    np.testing.assert_allclose(plain["motor/effort"], expected, rtol=1e-6, atol=1e-6)


def test_a_notch_makes_a_late_loop_stable(rig_of):
    """Measured one period of 4 ms late, the loop excites the resonance at 50 Hz; with the notch it does not see it."""
    late = TWO_INERTIAS.replace("type: ideal}", "type: ideal}, encoder: {delay: 1}").replace(
        "duration: 1 s", "duration: 2 s"
    )
    late = late.replace("step: 1 ms", "step: 4 ms, substeps: 8")
    unchanged = ", filters: [{type: low_pass, frequency: 124 Hz, order: 1}]"
    runs = [rig_of(text("pid, ki: 0, kp: 60, kd: 4", found, late)).run() for found in (unchanged, NOTCH)]
    plain, notched = (np.ptp(run["motor/effort"][run.t > 1.5]) for run in runs)
    assert plain > 100.0 and notched < 1e-3


def test_engines_agree_and_a_fallback_is_filtered_too(rig_of):
    both = NOTCH[:-1] + ", {type: low_pass, frequency: 90 Hz, joints: [motor]}], fallback: {type: passthrough, kp: 3}"
    one, other = (rig_of(text(filters=both), interpret=engine).run(0.05) for engine in (False, True))
    np.testing.assert_allclose(other.values, one.values, rtol=1e-8, atol=1e-8)
    loop = rig_of(text(filters=both)).tick_model.loops[0]
    assert loop.fallback is not None and set(loop.fallback.initial()) == {"controller", "filter"}


def test_gains_of_a_filtered_controller_can_be_set(rig_of):
    rig = rig_of(text(filters=LOW_PASS))
    rig.set("feedforward_pd.kp", 400)
    first = rig.run(0.3)
    again = rig_of(text("feedforward_pd, kp: 400, kd: 20", LOW_PASS)).run(0.3)
    np.testing.assert_allclose(first.values, again.values, rtol=1e-9, atol=1e-9)


def test_a_controller_in_python_is_filtered(rig_of):
    push = "push.py{}"
    lines = "effort = np.array([math.copysign(1.0, 0.5 - float(n[0]) / 100.0)])"  # 1, and −1 after 50 calls
    run = rig_of(text(push.format(""), ", filters: [{type: low_pass, frequency: 20 Hz, order: 1}]"), push=lines).run(
        0.2
    )
    effort = run["motor/effort"]
    assert effort[0] == pytest.approx(1.0)
    k = np.tan(np.pi * 20.0 * 1e-3)
    after = (1.0 - k) / (1.0 + k)
    assert effort[53:60] / effort[52:59] != pytest.approx(1.0)
    np.testing.assert_allclose((effort[60:70] + 1.0) / (effort[59:69] + 1.0), after, rtol=1e-6)


@pytest.mark.parametrize("key", ["", ", filters: [{type: low_pass, frequency: 20 Hz}]"])
def test_a_wrong_result_of_a_filtered_controller_is_named_with_its_line(rig_of, tmp_path, key):
    lines = "effort = ops.zeros(3) + q"
    what = r"the output 'effort' has shape \(3,\); it must be \(1,\) \(\S*push.py:20 Push.update\)"
    with pytest.raises(Exception, match=what):
        rig_of(text("push.py", key), push=lines).run(0.1)
