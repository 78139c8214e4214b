"""Signals that controllers declare: their values and units in runs of both engines, and what is refused."""

import numpy as np
import pytest
from scipy.linalg import solve_discrete_are

from cosim.core.errors import CosimError
from tests.controllers.arms import MOTION, arm
from tests.controllers.test_contract import context
from tests.controllers.test_controllers import make
from tests.kit.refusals import raised
from tests.kit.rigs import controller, rig_in

BOTH = pytest.mark.parametrize("interpret", [False, True], ids=["compiled", "interpreted"])
RIG = """
mechanism: {bodies: [{name: link, joint: hinge, mass: 1, com: [1, 0, 0], inertia: [1, 1, 1]}]}
joints: {hinge: {actuator: {type: ideal}}}
controllers: [{name: hold, type: push.py}]
schedule: {duration: 5 ms}
"""
DECLARED = 'self.signals = {"calls": Signal((), "1"), "twice": Signal((1,), "joint velocity")}'
GIVEN = 'command |= {"calls": n[0], "twice": 2.0 * v}'


def own_rig(folder, interpret=False, **changes):
    text = controller("effort = ops.array([5.0])").replace("joint_signals, param", "Signal, joint_signals, param")
    text = text.replace("self.outputs =", f"{changes.get('declared', DECLARED)}\n        self.outputs =")
    text = text.replace('return {"n": n + 1.0}', f'{changes.get("given", GIVEN)}\n        return {{"n": n + 1.0}}')
    return rig_in(folder, RIG, interpret=interpret, push=text + changes.get("more", ""))


@BOTH
def test_signals_of_a_users_controller_are_recorded_with_their_units(tmp_path, interpret):
    run = own_rig(tmp_path, interpret).run()
    np.testing.assert_array_equal(run["hold/calls"], np.arange(len(run.t)))
    np.testing.assert_allclose(run["hinge/twice"], 2.0 * run["hinge/velocity"], atol=1e-15)
    assert run["hinge/twice"][-1] != 0.0
    assert (run.rig.units["hold/calls"], run.rig.units["hinge/twice"]) == ("1", "rad/s")


def test_signals_of_a_controller_in_python_are_recorded(tmp_path):
    given = 'command |= {"calls": float(str(float(n[0]))), "twice": 2.0 * v}'
    rig = own_rig(tmp_path, given=given)
    run = rig.run()
    assert run.rig.engine["controller hold"].startswith("Python")
    np.testing.assert_array_equal(run["hold/calls"], np.arange(len(run.t)))


@pytest.mark.parametrize(
    "changes",
    [
        {"given": "pass"},
        {"declared": "pass"},
        {"declared": DECLARED.replace("calls", "c/s")},
        {"declared": DECLARED.replace("calls", "kp")},
        {"declared": DECLARED.replace("(1,)", "(3,)")},
        {"declared": 'self.signals = {"calls": 1}'},
        {"declared": 'self.signals = {"calls": Signal((), 3)}'},
        {"declared": "self.signals = ['calls']"},
        {key: text.replace("twice", "acceleration") for key, text in (("declared", DECLARED), ("given", GIVEN))},
    ],
    ids=str,
)
def test_a_wrong_signal_is_refused(tmp_path, changes, said):
    said(raised(CosimError, lambda: own_rig(tmp_path, **changes).run()))


@BOTH
def test_the_signals_of_a_failed_controller_are_zero(tmp_path, interpret):
    text = RIG.replace("type: push.py", "type: push.py, fallback: {type: pid, kp: 1, ki: 0, kd: 1}")
    failing = controller("effort = ops.array([5.0]) / (2.0 - n)").replace(
        "joint_signals, param", "Signal, joint_signals, param"
    )
    failing = failing.replace("self.outputs =", 'self.signals = {"calls": Signal((), "1")}\n        self.outputs =')
    failing = failing.replace('return {"n": n + 1.0}', 'command["calls"] = n[0]\n        return {"n": n + 1.0}')
    run = rig_in(tmp_path, text, interpret=interpret, push=failing).run()
    np.testing.assert_array_equal(run["hold/calls"][:4], [0.0, 1.0, 0.0, 0.0])


def test_the_estimated_disturbance_is_the_applied_effort(tmp_path):
    weights = "largest_position_error: 2 deg, largest_velocity_error: 1 rad/s"
    noise = "position_noise: 1e-4, effort_noise: 0.1, load_noise: 20"
    for keys in (
        "type: disturbance_observer, bandwidth: 4 Hz, observer: 10 Hz",
        f"type: mpc, {weights}, observer: 10 Hz",
        f"type: lqg, {weights}, {noise}",
    ):
        run = arm(tmp_path, f"{{name: arm, {keys}, {MOTION}}}", "{step: 5}").run()
        assert run["elbow/disturbance"][-1] == pytest.approx(5.0, abs=0.01), keys
        assert run["shoulder/disturbance"][-1] == pytest.approx(0.0, abs=0.01), keys
        assert run.rig.units["elbow/disturbance"] == "N*m"


def test_the_adapted_friction_is_the_one_of_the_joints(tmp_path):
    motion = "trajectory: {type: sine, amplitude: [30 deg, 40 deg], frequency: 0.8 Hz}"
    keys = "largest_viscous: 4, bandwidth: 3 Hz, kd: [30, 10], adaptation: 3, friction: false"
    friction = ", friction: {model: smooth, coulomb: 0.001, viscous: 1.5}"
    run = arm(tmp_path, f"{{name: arm, type: adaptive, {keys}, {motion}}}", duration=6.0, more=friction).run()
    assert run["elbow/viscous"][-1] == pytest.approx(1.5, rel=0.05)
    assert run.rig.units["elbow/viscous"] == "N*m*s/rad" and "elbow/coulomb" not in run.signals


def test_the_integral_of_pid_carries_the_load(tmp_path):
    keys = "kp: [800, 400], ki: [3000, 2000], kd: [60, 30], derivative_filter: 50 Hz"
    run = arm(tmp_path, f"{{name: arm, type: pid, {keys}}}", duration=3.0).run()
    for name in ("shoulder", "elbow"):
        assert run[f"{name}/integral"][-1] == pytest.approx(run[f"{name}/effort"][-1], rel=1e-3)
        assert np.abs(run[f"{name}/filtered_velocity_error"]).max() > 0.01


def test_gains_and_effort_before_the_filter_are_recorded(tmp_path):
    schedule = "{gains: [[100, 50], [300, 90]], over: {signal: elbow/position, values: [0 deg, 60 deg]}}"
    keys = f"type: passthrough, kp: {schedule}, kd: 20, filters: [{{type: low_pass, frequency: 20 Hz}}]"
    run = arm(tmp_path, f"{{name: arm, {keys}, {MOTION}}}", duration=0.5).run()
    expected = np.interp(run["elbow/position"], [0.0, np.pi / 3], [100.0, 300.0])
    np.testing.assert_allclose(run["shoulder/scheduled_kp"], expected, rtol=1e-12)
    error = run["shoulder/reference_position"] - run["shoulder/position"]
    rate = run["shoulder/reference_velocity"] - run["shoulder/velocity"]
    np.testing.assert_allclose(run["shoulder/unfiltered_effort"], expected * error + 20.0 * rate, atol=1e-9)
    assert run.rig.units["shoulder/scheduled_kp"] == "N*m/rad"


def test_the_predicted_cost_without_bounds_is_that_of_the_regulator():
    """eᵀ P e of the Riccati equation."""
    block = make("mpc", context(False), largest_position_error=(0.1,) * 2, largest_velocity_error=(1.0,) * 2)
    q, r = map(np.diag, block.regulator.weights)
    model = block.regulator.model
    p = solve_discrete_are(model.a, model.b, q, r)
    error = np.array([1e-3, -2e-3, 4e-3, 1e-3])
    reached = block.program.initial()
    u = {name: np.zeros(signal.shape) for name, signal in block.inputs.items()}
    _, cost, _ = block._correction(block.table(0.0), error, np.zeros(2), reached, u)
    assert cost == pytest.approx(error @ p @ error, rel=1e-9)
