"""Many runs of one rig side by side: equal to single runs to the bit, each with its own events, faults and metrics."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import cosim
from cosim import Rig
from cosim.core import ops
from cosim.core.errors import InputErrors
from cosim.rig.parameter_arrays import read_arrays
from cosim.rig.rollouts import read_starts
from tests.kit.refusals import refusal
from tests.kit.rigs import controller, rig_in
from tests.rig import test_parameters as parameters

GOAL = {"type": "quintic", "goal": 0.5, "duration": 0.05}
ARM = {
    **parameters.ARM,
    "joints": {"all": {"actuator": {"type": "ideal"}, "limits": {"effort": 30, "lower": -2, "upper": 2}}},
    "controllers": [{**parameters.ARM["controllers"][0], "trajectory": GOAL}],
}
BODY = parameters.BODY
# a pendulum that falls on a stop, is caught by a latch and stopped by the guard, in this order of speeds
PENDULUM = {
    "name": "pendulum",
    "mechanism": {"bodies": [{"name": "bob", "joint": "pivot", **BODY}]},
    "joints": {
        "pivot": {
            "stops": {"upper": 1.0, "restitution": 0.5},
            "limits": {"velocity": 12.0},
            "initial": {"position": 0.0},
        }
    },
    "events": [{"name": "catch", "when": {"signal": "pivot/velocity", "below": -0.5}, "do": "latch", "of": "pivot"}],
    "schedule": {"step": "1 ms", "duration": 0.3, "integrator": "rk4"},
}
K = 19  # no multiple of the lanes of any machine


@pytest.fixture(scope="module")
def arm():
    return Rig.from_dict(ARM)


def gains(k=K, seed=0):
    rng = np.random.default_rng(seed)
    return {"hold.kp": rng.uniform(20.0, 300.0, (k, 2)), "hold.kd": rng.uniform(1.0, 8.0, k)}


def single(rig, parameters, initial, ticks, k):
    """(signals, why it stopped) of run k by itself."""
    engine, starts = rig.engine(), read_starts(rig, rig.tick_model, initial)
    if starts is not None:
        engine.memory[:] = starts(k)
    if parameters:
        engine.view("parameters")[:] = read_arrays(rig, parameters).gains[k]
    rows, why = engine.run(ticks + 1)
    return rig.observe(engine.view("bumpless_start"), rows), why


def assert_equal_to_single_runs(rig, parameters, initial, ticks, batch):
    for k in range(len(batch)):
        values, why = single(rig, parameters, initial, ticks, k)
        assert (batch.ticks[k], batch.faults[k]) == (len(values) - 1, why)
        for column, name in enumerate(rig.tick_model.signals.names):
            np.testing.assert_array_equal(batch[name][k, : len(values)], values[:, column], err_msg=f"{name} of {k}")
            assert np.isnan(batch[name][k, len(values) :]).all()
            assert batch.final[name][k] == values[-1, column] or np.isnan(values[-1, column])


@pytest.mark.parametrize("threads", [1, 3])
def test_runs_with_other_gains_equal_single_runs_to_the_bit(arm, threads):
    batch = arm.rollouts(gains(), keep="all", threads=threads)
    assert_equal_to_single_runs(arm, gains(), {}, 200, batch)
    assert (len(batch), batch.faults, set(batch.ticks)) == (K, ("",) * K, {200})
    run = arm.run(parameters={name: values[7] for name, values in gains().items()})
    np.testing.assert_array_equal(batch["elbow/position"][7], run["elbow/position"])
    np.testing.assert_array_equal(batch.t, run.t)


def test_each_lane_has_its_own_events():
    rig = Rig.from_dict(PENDULUM)
    initial = {"pivot/velocity": np.linspace(-0.4, 11.0, K), "pivot/position": np.linspace(-0.5, 0.9, K)}
    batch = rig.rollouts(initial=initial, keep="all")
    assert_equal_to_single_runs(rig, {}, initial, 300, batch)
    assert {0.0, 1.0} <= set((batch.final["pivot/position"] < 0.99).astype(float))  # some rest at the stop
    caught = np.flatnonzero(batch.final["pivot/velocity"] == 0.0)
    assert 0 < len(caught) < K


def test_a_lane_with_a_fault_is_frozen_and_the_others_go_on(arm):
    speed = np.zeros(K)
    speed[[2, 3, 11]] = 60.0, 150.0, -90.0  # they leave the position limits
    initial = {"elbow/velocity": speed}
    batch = arm.rollouts(gains(), initial, keep="all", metrics=["error_max", "effort_rms"])
    assert_equal_to_single_runs(arm, gains(), initial, 200, batch)
    assert np.flatnonzero(batch.stopped).tolist() == [2, 3, 11]
    assert pickle.loads(pickle.dumps(batch)).faults == tuple(batch.faults)
    assert len({int(batch.ticks[k]) for k in (2, 3, 11)}) == 3
    for k in (2, 0):  # the metrics hold what there was up to the fault
        error = batch["elbow/reference_position"][k] - batch["elbow/position"][k]
        assert batch["error_max"][k, 1] == np.nanmax(np.abs(error))
        effort = batch["elbow/effort"][k]
        np.testing.assert_allclose(batch["effort_rms"][k, 1], np.sqrt(np.nanmean(effort**2)), rtol=1e-13)


def test_all_lanes_stop(arm):
    batch = arm.rollouts(initial={"elbow/position": np.array([2.5, -2.6, 2.7])})
    assert (batch.ticks.tolist(), len(set(batch.faults))) == ([0, 0, 0], 3)
    assert batch.faults[0].startswith(
        "stopped at tick 0 (t = 0 s): joint 'elbow' is at 2.5 rad, outside its limits -2 to 2 rad"
    )


@pytest.mark.parametrize("seed", range(3))
def test_random_rigs_with_lanes_that_fault(seed):
    rng = np.random.default_rng(seed)
    step, kinds = ("1 ms", "2 ms")[seed % 2], ("rk4", "semi_implicit_euler", "rosenbrock", "rk4")
    bodies = [
        {"name": "b0", "joint": "j0", **BODY},
        {"name": "b1", "parent": "b0", "joint": "j1", "type": ("revolute", "prismatic")[seed % 2], **BODY},
    ]
    names = ["j0", "j1"]
    rig = Rig.from_dict(
        {
            "name": "random",
            "mechanism": {"bodies": bodies},
            "joints": {
                "all": {"actuator": {"type": "ideal"}, "limits": {"lower": -3.0, "upper": 3.0}},
                "j0": {"actuator": {"type": "ideal"}, "stops": {"upper": float(rng.uniform(0.2, 0.8))}},
            },
            "controllers": [{"name": "hold", "type": "pd_gravity", "kp": 50, "kd": 2}],
            "schedule": {"step": step, "duration": 0.15, "integrator": kinds[seed]},
        }
    )
    parameters = {"hold.kp": 10.0 ** rng.uniform(1.0, 7.0, K), "hold.kd": 10.0 ** rng.uniform(-1.0, 2.0, K)}
    initial = {f"{name}/{what}": rng.normal(0.0, 0.7, K) for name in names for what in ("position", "velocity")}
    batch = rig.rollouts(parameters, initial, keep="all")
    assert_equal_to_single_runs(rig, parameters, initial, round(0.15 / rig.tick_model.step), batch)
    assert 0 < sum(map(bool, batch.faults)) < K


def test_chosen_signals_and_every_tenth_tick(arm):
    whole = arm.rollouts(gains(), keep="all")
    batch = arm.rollouts(gains(), signals=["elbow/position", "energy/kinetic"], every=10)
    assert list(batch.samples) == ["elbow/position", "energy/kinetic"]
    np.testing.assert_array_equal(batch["elbow/position"], whole["elbow/position"][:, ::10])
    np.testing.assert_array_equal(batch.t, whole.t[::10])
    assert batch["energy/kinetic"].shape == (K, 21)


def test_by_default_the_last_tick_is_kept(arm):
    batch = arm.rollouts(gains(3), duration="50 ms")
    assert (batch.samples, batch.ticks.tolist()) == ({}, [50, 50, 50])
    with pytest.raises(KeyError) as caught:
        batch["elbow/position"]
    assert "it was not kept over time: use batch.final, or signals=" in str(caught.value)
    assert repr(batch) == "<RolloutBatch arm: 3 runs, 0 stopped, no metrics>"


def test_the_parameters_of_the_rig_hold_where_none_are_given(arm):
    arm.set("hold.kp", 60.0)
    try:
        batch = arm.rollouts(initial={"elbow/velocity": np.zeros(2)}, keep="all")
        np.testing.assert_array_equal(batch["elbow/position"][1], arm.run()["elbow/position"])
    finally:
        arm.set("hold.kp", 100.0)


def test_metrics_are_those_of_the_signals(arm):
    batch = arm.rollouts(gains(), keep="all", metrics=list(cosim.METRICS))
    step, joints = arm.tick_model.step, ("shoulder", "elbow")
    position, velocity, effort, request, reference = (
        np.stack([batch[f"{joint}/{name}"] for joint in joints], axis=2)
        for name in ("position", "velocity", "effort", "command_effort", "reference_position")
    )
    error, target, start = reference - position, reference[:, -1:], position[:, :1]
    travel = np.abs(target - start)[:, 0]
    outside = np.abs(position - target) > 0.02 * np.abs(target - start)
    last = np.array([[np.flatnonzero(column)[-1] for column in run.T] for run in outside])
    expected = {
        "error_rms": np.sqrt((error**2).mean(axis=1)),
        "error_max": np.abs(error).max(axis=1),
        "iae": np.abs(error).sum(axis=1) * step,
        "overshoot": np.maximum((np.sign(target - start) * (position - target)).max(axis=1), 0.0) / travel,
        "settling_time": np.where(last == 200, np.inf, (last + 1) * step),
        "effort_rms": np.sqrt((effort**2).mean(axis=1)),
        "effort_max": np.abs(effort).max(axis=1),
        "saturation_time": (np.abs(request) >= 0.999 * 30.0).sum(axis=1) * step,
        "energy": np.abs(effort * velocity).sum(axis=1) * step,
    }
    assert list(expected) == list(cosim.METRICS)
    for name, values in expected.items():
        np.testing.assert_allclose(batch[name], values, rtol=1e-12, err_msg=name)
    assert (batch["overshoot"] > 0.0).any() and (batch["saturation_time"] > 0.0).any()
    assert np.isfinite(batch["settling_time"]).any() and np.isinf(batch["settling_time"]).any()


def test_a_function_of_signals_is_integrated_over_time(arm):
    def loss(t, signals):
        return signals["elbow/effort"] ** 2 + t

    def both(t, signals):
        return ops.array([signals["elbow/velocity"], signals["shoulder/velocity"]])

    batch = arm.rollouts(gains(), keep="all", metrics=[loss, both, "error_rms"])
    expected = (batch["elbow/effort"] ** 2 + batch.t).sum(axis=1) * 1e-3
    np.testing.assert_allclose(batch["loss"], expected, rtol=1e-12)
    assert (batch["both"].shape, list(batch.metrics)) == ((K, 2), ["error_rms", "loss", "both"])
    table = batch.to_pandas()
    assert list(table.columns) == [
        "hold.kp/0", "hold.kp/1", "hold.kd", "error_rms/shoulder", "error_rms/elbow", "loss", "both/0", "both/1",
        "ticks", "stopped",
    ]  # fmt: skip
    np.testing.assert_array_equal(table["hold.kd"], gains()["hold.kd"])


def test_a_joint_without_reference_has_no_error():
    batch = Rig.from_dict(PENDULUM).rollouts(duration=0.05, metrics=["error_rms", "effort_max", "saturation_time"])
    assert np.isnan([batch["error_rms"][0, 0], batch["saturation_time"][0, 0]]).all()
    assert np.isfinite(batch["effort_max"][0, 0])


MISTAKES = {
    "unknown parameter": {"parameters": {"hold.kq": [1.0]}},
    "arrays of unlike length": {"parameters": {"hold.kp": [1.0, 2.0], "hold.kd": [1.0]}},
    "another shape": {"parameters": {"hold.kp": np.ones((4, 3))}},
    "no array": {"parameters": {"hold.kp": "much"}},
    "a value the file could not have": {"parameters": {"hold.kp": [1.0, -5.0, 2.0]}},
    "nan": {"parameters": {"hold.kp": [1.0, 5.0, np.nan]}},
    "several": {"parameters": {"hold.kq": [1.0], "hold.kz": [1.0]}},
    "unknown initial value": {"initial": {"elbow/angle": [1.0]}},
    "initial value that is no array": {"initial": {"elbow/position": 1.0}},
    "initial values of unlike length": {"initial": {"elbow/position": [1.0], "elbow/velocity": [1.0, 2.0]}},
    "parameters and initial values of unlike length": {
        "parameters": {"hold.kp": [1.0, 2.0]},
        "initial": {"elbow/position": [1.0]},
    },
    "unknown metric": {"metrics": ["error_rsm"]},
    "two functions of one name": {"metrics": [lambda t, signals: t, lambda t, signals: 2.0 * t]},
    "unknown signal": {"signals": ["elbow/postion"]},
    "a name for a list of names": {"signals": "elbow/position"},
    "keep": {"keep": "everything"},
    "every": {"every": 0},
    "threads": {"threads": 0},
    "device": {"device": "gpu"},
    "threads of a GPU": {"device": "cuda", "threads": 2},
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(arm, said, name):
    said(refusal(arm.rollouts, **MISTAKES[name]))


PUSHED = """
name: pushed
mechanism:
  bodies: [{name: bob, joint: pivot, mass: 1, com: [0.2, 0, 0], inertia: [0.01, 0.02, 0.02], axis: [0, 1, 0]}]
joints: {pivot: {actuator: {type: ideal}}}
controllers: [{name: push, type: push.py}]
schedule: {step: 1 ms, duration: 0.1}
"""


def test_more_than_the_memory_holds(arm):
    words = refusal(arm.rollouts, {"hold.kp": np.full(1_000_000, 50.0)}, keep="all", duration=1000.0)
    assert "; keep fewer with signals=[…], every=n or metrics=[…]" in words


def test_the_first_run_that_a_controller_refuses_is_named(tmp_path):
    refusing = controller("effort = ops.array([p.size])").replace(
        "    return Push",
        "    if params.size > 4.0:\n        raise ValueError(f'{params.size:g} is too much')\n    return Push",
    )
    rig = rig_in(tmp_path, PUSHED, push=refusing)
    assert rig.rollouts({"push.size": [1.0, 1.0, 3.0]}, duration=0.01).stopped.tolist() == [False] * 3
    words = refusal(rig.rollouts, {"push.size": [1.0, 1.0, 3.0, 1.0, 6.0, 5.0]})
    assert words.startswith("controller 'push' of run 4: cannot be set up: ValueError: 6 is too much (")


def test_a_metric_that_cannot_be_compiled_names_its_line(arm):
    def peak(t, signals):
        return 1.0 if signals["elbow/effort"] > 2.0 else 0.0

    words = refusal(arm.rollouts, metrics=[peak])
    assert words.startswith(f"metrics: {__file__}:{peak.__code__.co_firstlineno + 1}") and "a Python `if`" in words


def test_a_controller_in_python_is_named(rig_of, said):
    rig = rig_of(PUSHED, push="effort = np.array([math.sin(t)])")
    said(refusal(rig.rollouts), r"\(\S*push\.py:[^;]*;")


FREE = {
    "name": "free",
    "mechanism": {
        "bodies": [{"name": "ball", "type": "free", "mass": 1, "com": [0, 0, 0], "inertia": [1, 1, 1]}],
    },
    "schedule": {"step": "1 ms", "duration": 0.1},
}


def test_free_bodies_start_from_other_places_but_turned_as_in_the_rig():
    rig, heights = Rig.from_dict(FREE), np.array([0.0, 0.5, 2.0])
    batch = rig.rollouts(initial={"ball.z/position": heights})
    np.testing.assert_allclose(batch.final["ball.z/position"], heights - 0.5 * 9.81 * 0.01, rtol=0, atol=1e-9)
    with pytest.raises(InputErrors, match="the orientation of 'ball' is a quaternion; give its velocities only"):
        rig.rollouts(initial={"ball.rx/position": heights})
