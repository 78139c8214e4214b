"""The tick: periods of controllers, encoders, overrides, controllers that stay in Python."""

import math

import numpy as np
import pytest

from cosim import load_rig
from cosim.core.errors import InputErrors, RunError
from cosim.core.recordings.reader import read_recording
from cosim.rig.run.run import StoppedRun
from tests.kit.engines import python_rows
from tests.kit.refusals import raised

RIG = """
mechanism:
  bodies:
    - {name: one, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.1], damping: 0.5}
    - {name: two, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.1], parent: base}
controllers:
  - {name: a, type: push.py, joints: [one]}
  - {name: b, type: push.py, joints: [two]}
schedule: {duration: 0.2}
"""
COUNT = "effort = n"


def both_ways(rig, ticks):
    """The signals by machine code and by the Python loop, each by name."""
    native, looped = rig.run((ticks - 1) * rig.tick_model.step), python_rows(rig, ticks)
    return native, dict(zip(native.signals, looped.T, strict=True))


def test_a_command_is_held_until_the_next_period_of_its_controller(rig_of):
    rig = rig_of(RIG, "controllers.a.period=5 ms", "controllers.b.period=3 ms", push=COUNT)
    for run in both_ways(rig, 50):
        np.testing.assert_array_equal(run["one/command_effort"], np.arange(50) // 5)
        np.testing.assert_array_equal(run["two/command_effort"], np.arange(50) // 3)


def test_a_controller_gets_the_measurement_of_its_tick(rig_of):
    rig = rig_of(RIG, "controllers.a.period=10 ms", push="effort = q + t")
    for run in both_ways(rig, 60):
        k = np.arange(60) // 10 * 10
        np.testing.assert_allclose(run["one/command_effort"], run["one/position"][k] + k * 1e-3, atol=1e-14)
        np.testing.assert_allclose(run["two/command_effort"], run["two/position"] + np.arange(60) * 1e-3, atol=1e-14)


def test_drives_close_their_loops_at_every_tick_between_controller_calls(rig_of):
    text = RIG.replace("type: push.py, joints: [one]", "type: passthrough, joints: [one], kp: 50, kd: 3, period: 20 ms")
    moving = "controllers.a.trajectory={type: quintic, goal: 0.1, duration: 0.2}"
    run = rig_of(text, "joints={one: {initial: {position: 0.4}}}", moving).run()
    k = np.arange(len(run.t)) // 20 * 20
    expected = 50 * (run["one/reference_position"][k] - run["one/position"])
    expected += 3 * (run["one/reference_velocity"][k] - run["one/velocity"])
    np.testing.assert_allclose(run["one/command_effort"], expected, atol=1e-12)


def test_substeps_do_not_change_the_ticks_of_controllers(rig_of):
    one, four = (rig_of(RIG, f"schedule.substeps={n}", push=COUNT).run() for n in (1, 4))
    np.testing.assert_array_equal(one["one/command_effort"], four["one/command_effort"])
    assert len(one.t) == len(four.t) == 201
    np.testing.assert_allclose(one["one/position"], four["one/position"], atol=1e-9)
    assert np.any(one["one/position"] != four["one/position"])


@pytest.mark.parametrize("integrator", ["rk4", "rosenbrock"])
def test_prescribed_joints_move_within_a_tick(rig_of, integrator):
    text = RIG.replace(", parent: base", "")  # the second link hangs on the first
    moved = "joints={one: {prescribed: {type: sine, amplitude: 0.5, frequency: 3}}}"
    same = (moved, "controllers=[]", f"schedule.integrator={integrator}")
    fine = rig_of(text, *same).run()
    coarse = rig_of(text, *same, "schedule.step=4 ms", "schedule.substeps=4").run()
    assert np.ptp(fine["two/position"]) > 0.1
    np.testing.assert_allclose(coarse["two/position"], fine["two/position"][::4], atol=1e-12)


def test_required_effort_of_a_prescribed_joint_includes_friction(rig_of):
    moved = "joints={one: {prescribed: {type: sine, amplitude: 0.5, frequency: 3}}}"
    rubbing, smooth = (rig_of(text, moved, "controllers=[]").run() for text in (RIG, RIG.replace(", damping: 0.5", "")))
    friction = rubbing["one/effort"] - smooth["one/effort"]
    np.testing.assert_allclose(friction, 0.5 * rubbing["one/velocity"], atol=1e-12)
    assert rubbing["energy/dissipated"][-1] > 1.0 and smooth["energy/dissipated"][-1] == 0.0


def test_parameters_are_inputs_of_the_compiled_code(rig_of):
    rig = rig_of(RIG, push="effort = ops.array([p.size])")
    np.testing.assert_array_equal(rig.tick_model.parameters, [1.0, 1.0])
    rig.tick_model.parameters[:] = 2.5, -3.0
    for run in both_ways(rig, 10):
        np.testing.assert_array_equal(run["one/command_effort"], 2.5)
        np.testing.assert_array_equal(run["two/command_effort"], -3.0)


# --- encoders -------------------------------------------------------------------------------------


def test_encoder_position_and_velocity_are_whole_counts(rig_of):
    joint = "joints={one: {initial: {velocity: 2}, encoder: {cpr: 500}}}"
    rig = rig_of(RIG, joint, push="effort = 100.0 * q + v")
    size = 2 * math.pi / 500
    for run in both_ways(rig, 150):
        counts = run["one/measured_position"] / size
        np.testing.assert_allclose(counts, np.round(counts), atol=1e-9)
        np.testing.assert_allclose(counts, np.round(run["one/position"] / size), atol=1e-9)
        assert len(np.unique(np.round(counts))) > 5
        velocity = np.diff(run["one/measured_position"]) / 1e-3
        np.testing.assert_allclose(run["one/measured_velocity"][1:], velocity, atol=1e-9)
        seen = 100 * run["one/measured_position"] + run["one/measured_velocity"]
        np.testing.assert_allclose(run["one/command_effort"], seen, atol=1e-9)


def test_a_delayed_encoder_gives_the_sample_of_the_previous_tick(rig_of):
    joint = "joints={one: {initial: {position: 0.3, velocity: 2}, encoder: {delay: 1}}}"
    rig = rig_of(RIG, joint, push="effort = q")
    for run in both_ways(rig, 50):
        np.testing.assert_allclose(run["one/measured_position"][1:], run["one/position"][:-1], atol=1e-15)
        np.testing.assert_allclose(run["one/measured_velocity"][1:], run["one/velocity"][:-1], atol=1e-15)
        assert run["one/measured_position"][0] == pytest.approx(0.3 - 2 * 1e-3)
        np.testing.assert_array_equal(run["one/command_effort"], run["one/measured_position"])


def test_noise_depends_on_the_seed_only(rig_of):
    joint = "joints={one: {encoder: {noise: 0.01}}}"
    first, again = rig_of(RIG, joint).run(), rig_of(RIG, joint).run()
    other = rig_of(RIG, joint, "schedule.seed=1").run()
    np.testing.assert_array_equal(first.values, again.values)
    errors = first["one/measured_position"] - first["one/position"]
    assert np.any(errors != other["one/measured_position"] - other["one/position"])
    assert np.std(errors) == pytest.approx(0.01, rel=0.2) and abs(np.mean(errors)) < 0.003


def test_exact_joints_have_no_measured_signals(rig_of):
    run = rig_of(RIG, "joints={one: {encoder: {cpr: 500}}}").run(0.01)
    assert "one/measured_position" in run and "two/measured_position" not in run
    with pytest.raises(KeyError, match=r"no signal 'two/measured_position'; did you mean 'one/measured_position'\?"):
        run["two/measured_position"]


# --- overrides ------------------------------------------------------------------------------------


def test_overrides_replace_values_of_the_file_in_their_order(rig_of):
    overrides = ("controllers.a.size=2.5", "controllers.b.size=1", "controllers.b.size=-3", "schedule.duration=50 ms")
    run = rig_of(RIG, *overrides).run()
    np.testing.assert_array_equal(run["one/command_effort"], 2.5)
    np.testing.assert_array_equal(run["two/command_effort"], -3.0)
    assert run.t[-1] == pytest.approx(0.05)


def test_all_mistakes_of_overrides_are_reported_together(rig_of, said):
    said(raised(InputErrors, rig_of, RIG, "controllers.a.sise=1", "schedule.step=2 kg", "controllers.c.size=1"))


# --- controllers that cannot be traced --------------------------------------------------------------

IF = "effort = -5.0 * v if q[0] > 0.1 else 2.0 - q"
WHERE = "effort = ops.where(q > 0.1, -5.0 * v, 2.0 - q)"
UNTRACEABLE = {  # lines, and those with the same result in machine code; the reasons are as in tests/tick
    "if": (IF, WHERE),
    "math": ("effort = np.array([math.sin(q[0])])", "effort = ops.sin(q)"),
    "numpy element": ("effort = np.zeros(1)\neffort[0] = -3.0 * q[0]", "effort = -3.0 * q"),
    "hidden list": ("self.seen.append(float(q[0]))\neffort = q - self.seen[-1]", "effort = q - q"),
    "numpy function": ("effort = np.clip(q, -0.01, 0.01)", "effort = ops.clip(q, -0.01, 0.01)"),
}


@pytest.mark.parametrize("case", UNTRACEABLE)
def test_untraceable_code_runs_in_python_and_the_summary_has_the_reason(rig_of, said, case):
    lines, traced = UNTRACEABLE[case]
    start = "joints={one: {initial: {position: 0.3}}}"
    looped, native = (rig_of(RIG, start, push=body).run(0.1) for body in (lines, traced))
    compiled = looped.summary["engine"]
    assert compiled["plant"] == "compiled" and compiled["loop"] == "compiled"
    said(compiled[name] for name in ("controller a", "controller b"))
    assert set(native.summary["engine"].values()) == {"compiled"}
    np.testing.assert_allclose(looped.values, native.values, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "lines",
    [
        "self.seen.append(1)\neffort = ops.array([0.1 * len(self.seen)])",
        "import time\neffort = ops.array([1e-9 * time.perf_counter_ns()])",
        "import random\neffort = ops.array([random.random()])",
    ],
    ids=["count", "clock", "dice"],
)
def test_a_controller_with_hidden_state_is_not_compiled(rig_of, tmp_path, lines):
    run = rig_of(RIG, push=lines).run(0.05)
    reason = run.summary["engine"]["controller a"]
    what = "does not compute the same at every call: it keeps hidden state, reads a clock"
    assert reason.startswith(f"Python: {tmp_path}/push.py:20 Push.update: {what}")
    assert len(set(run["one/command_effort"])) > 40


SETUPS = {
    "fails": ("joint_signals(COMMAND, 1)", "context.colour"),
    "a wrong shape": ("joint_signals(FEEDBACK, 1)", 'joint_signals(("position",), 3)'),
    "no such signal": ("joint_signals(FEEDBACK, 1)", '{"torque": None}'),
}


@pytest.mark.parametrize("case", SETUPS)
def test_a_controller_that_cannot_be_set_up_is_an_error_at_its_section(rig_of, tmp_path, said, case):
    rig_of(RIG)
    file = tmp_path / "push.py"
    file.write_text(file.read_text().replace(*SETUPS[case]))
    said(raised(InputErrors, load_rig, tmp_path / "rig.yaml").errors[0])


def test_controllers_beside_an_untraceable_one_stay_compiled(rig_of):
    text = RIG.replace("type: push.py, joints: [two]", "type: pd_gravity, joints: [two], kp: 3, kd: 1")
    compiled = rig_of(text, push=IF).run(0.01).summary["engine"]
    assert compiled["controller b"] == "compiled" and compiled["controller a"].startswith("Python: ")


def test_a_controller_that_raises_stops_the_run_and_data_are_kept(rig_of, said):
    rig = rig_of(RIG, push="if t > 0.0195:\n    raise ValueError('out of\\nideas')\neffort = q", interpret=False)
    with pytest.raises(StoppedRun) as caught:
        rig.run()
    said(caught.value)
    run = caught.value.run
    assert len(run.t) == 20 and str(caught.value).endswith(run.fault) and run.summary["outcome"] == run.fault


def test_a_non_finite_command_is_not_attributed_to_the_step(rig_of, said):
    rig = rig_of(RIG, push="effort = ops.where(t > 0.0095, ops.sqrt(-1.0 - t), 0.0) + 0.0 * q")
    said(raised(StoppedRun, rig.run))


def test_a_fault_in_the_first_tick_of_a_block_reaches_the_recording(rig_of, tmp_path):
    rig = rig_of(RIG, push="if t > 0.0315:\n    raise ValueError('enough')\neffort = q")
    with pytest.raises(StoppedRun) as caught:
        rig.run(record=tmp_path / "a.mcap")
    assert len(caught.value.run.t) == 32
    assert len(read_recording(tmp_path / "a.mcap")[0]) == 32


INVALID = {
    "shape": ("effort = np.zeros(2)", True),
    "a number": ("effort = 3.0", False),
    "text": ("effort = ['a']", True),
    "a missing output": ("return {'n': n}, {'effort': n}", False),
    "no such input": ("effort = u['velocty']", True),
}


@pytest.mark.parametrize("case", INVALID)
def test_an_invalid_command_names_its_controller(rig_of, said, case):
    lines, interpret = INVALID[case]
    said(raised(RunError, lambda: rig_of(RIG, push=lines, interpret=interpret).run()))
