"""Exact gradients of runs: equal to central differences for sample rigs of every kind, or refused with the reason."""

from __future__ import annotations

import numpy as np
import pytest

import cosim
from cosim import Rig, RunError, load_rig
from cosim.core import ops
from cosim.rig.parameter_table import table_of
from tests.kit.refusals import raised, refusal
from tests.kit.samples import COVERED, FOLDER, few_samples
from tests.rig import test_parameters as parameters

# sample rigs without derivative: each says what has none, in messages.yaml
REFUSED = {
    "arm_can", "arm_mixed", "arm_twin", "axis_behind_bus", "haptic_wall", "bench/one_can_bus", "bench/one_serial_link",
    "bench/stiff_arm", "bench/two_can_buses", "cart_pole", "cosimulation/quarter_car", "cosimulation/winch",
    "drives/backlash", "drives/bldc_hall", "drives/dc_link", "drives/dc_start", "drives/differential_wrist",
    "drives/duty_cycle", "drives/electromechanical", "drives/excavator", "drives/field_weakening",
    "drives/gear_efficiency", "drives/hydraulic_boom", "drives/hydraulic_full", "drives/induction_axis",
    "drives/lossy_gear", "drives/pneumatic_balancer", "drives/position_servo", "drives/servo_axis",
    "drives/stepper_axis",
    "drives/switched_inverter", "drives/two_motors", "drives/two_stage_gear", "dynamometer/bench",
    "dynamometer/bench_modbus", "dynamometer/elbow", "dynamometer/elbow_modbus", "flywheel_vesc", "leg_mit",
    "mechanisms/hoist", "mechanisms/release", "mechanisms/solar_array_fixed", "mechanisms/solar_array_free",
    "mechanisms/solar_linkage",
}  # fmt: skip
SAMPLES = sorted(
    str(path.relative_to(FOLDER).with_suffix("")) for path in FOLDER.rglob("*.yaml") if path.parent.name != "scenarios"
)
SAMPLES = [name for name in SAMPLES if not name.startswith("layouts/")]
# prescribed or free motions of beams, whose numbers are constants: there is nothing to differentiate by
WITHOUT_NUMBERS = {"elastic/cantilever", "elastic/sliding_beam", "elastic/spin_up"}
# their paths have no parameters of the plant, and all else is as in other rigs
SAME = {"ur5_circle", "ur5_time_optimal"}
# bodies begin to touch in their runs; `test_gradient_of_contacts` has others
TOUCHING = {"contacts/gripper", "contacts/peg_in_hole", "contacts/quadruped_stand"}
COMPARED = [name for name in SAMPLES if name not in REFUSED | WITHOUT_NUMBERS | COVERED.keys() | SAME | TOUCHING]
# those that have all kinds of parts
CHOSEN = few_samples(COMPARED)

# of the largest number of a parameter; central differences at all of them, the best pair is extrapolated
STEPS = np.array([0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5])
WEIGHTS = {"position": 1.0, "velocity": 0.1, "effort": 1e-4, "kinetic": 1.0}
TRACKING = 1e4


def figure(t, signals):
    """A smooth figure of every rig, in which errors count more than the motion itself."""
    total = 0.0
    for name, value in signals.items():
        joint, _, what = name.rpartition("/")
        total = total + WEIGHTS.get(what, 0.0) * value * value
        if what == "reference_position":
            total = total + TRACKING * (value - signals[f"{joint}/position"]) ** 2
    return ops.array([total])


# s: Andrews' mechanism moves chaotically, so do gears that pass their backlash; the block of stick_slip
# is pulled loose after 7 s
SECONDS = {"andrews": 0.015, "industrial_arm": 0.05, "stick_slip": 8.0, "spacecraft": 0.1, "ur5_contact": 0.15}


def seconds(rig):
    return SECONDS.get(rig.spec.name, 0.3)


def elements(rig, gradient):
    """(name, index, its scale) of numbers with room on both sides."""
    numbers = table_of(rig).per_run
    for name, given in gradient.parameters.items():
        values = np.atleast_1d(np.asarray(given, dtype=float))
        for i in range(values.size):
            scale = max(abs(values[i]), 1e-2 * np.abs(values).max(), 1e-4)
            ends = values + np.outer([-STEPS.max() * scale, STEPS.max() * scale], np.eye(values.size)[i])
            wrong = map(numbers[name].wrong, ends) if name in numbers else [ends[0, i] < 0.0]
            if not any(wrong):
                yield name, i, scale


def differences(rig, gradient, chosen, duration):
    """(n, steps) central differences times their scales, each by two runs."""
    runs = 2 * len(STEPS)
    rows = {
        name: np.repeat(np.atleast_1d(value)[None], runs * len(chosen), axis=0)
        for name, value in gradient.parameters.items()
    }
    for k, (name, i, scale) in enumerate(chosen):
        moved = scale * np.concatenate([STEPS, -STEPS])
        rows[name][runs * k : runs * (k + 1), i] += moved
    values = rig.rollouts(rows, duration=duration, metrics=[figure])["figure"].reshape(len(chosen), 2, len(STEPS))
    return (values[:, 0] - values[:, 1]) / (2.0 * STEPS)


def best(found):
    """(extrapolated, bound of its error) of differences (steps,): Richardson's value of neighbouring steps, where it
    changes least to the next pair."""
    ratio = (STEPS[:-1] / STEPS[1:]) ** 2
    values = (ratio * found[1:] - found[:-1]) / (ratio - 1.0)
    change = np.abs(np.diff(values))
    k = int(np.argmin(change))
    return values[k], change[k]


def parameter_names(rig):
    """Gains, and the finite numbers of the plant."""
    plant = table_of(rig).per_run.items()
    return [*rig.parameters, *(name for name, number in plant if np.isfinite(number.values).all())]


def test_samples_left_out_have_the_kinds_of_parts_of_others():
    assert set().union(*COVERED.values()) <= set(COMPARED)
    assert COVERED.keys() | SAME <= set(SAMPLES) - REFUSED


@pytest.mark.parametrize("name", CHOSEN)
def test_gradients_of_sample_rigs_equal_central_differences(name):
    rig = load_rig(FOLDER / f"{name}.yaml", interpret=False)
    gradient = rig.gradient(figure, parameter_names(rig), duration=seconds(rig))
    chosen = list(elements(rig, gradient))
    assert chosen
    exact = np.array([np.atleast_1d(gradient[key])[i] * scale for key, i, scale in chosen])
    found = np.array([best(values) for values in differences(rig, gradient, chosen, seconds(rig))])
    error, bound = np.abs(exact - found[:, 0]), 5.0 * found[:, 1]
    # rounding of the figure, seen through the smallest step
    bound = np.maximum(bound, 1e-14 * gradient.value / STEPS.min())
    wrong = error > np.maximum(1e-6 * np.abs(exact), bound)
    assert not wrong.any(), [(chosen[k], exact[k], found[k]) for k in np.flatnonzero(wrong)]
    # differences are that exact where the figure depends most on the numbers
    largest = [k for k in np.argsort(-np.abs(exact))[:5] if abs(exact[k]) > 1e-6 * np.abs(exact).max()]
    assert (error[largest] <= 1e-6 * np.abs(exact[largest])).all()


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_sample_rigs_without_derivative_say_what_has_none(said, name):
    rig = load_rig(FOLDER / f"{name}.yaml", interpret=False)
    lines = refusal(rig.gradient, figure, "mechanism.x.mass", duration=0.01).splitlines()
    said(line.partition(f"{name}.yaml")[2].lstrip(":0123456789 ") for line in lines)


GOAL = {"type": "quintic", "goal": 0.5, "duration": 0.05}
ARM = {
    **parameters.ARM,
    "joints": {
        "all": {"actuator": {"type": "ideal"}, "limits": {"effort": 30, "lower": -2, "upper": 2, "velocity": 22}}
    },
    "controllers": [{**parameters.ARM["controllers"][0], "trajectory": GOAL}],
}
SLIDER = {
    "mechanism": {"bodies": [{"name": "cart", "type": "prismatic", "axis": [1, 0, 0], "mass": 2.0, "damping": 1.0}]},
    "joints": {"cart": {"actuator": {"type": "ideal"}}},
    "controllers": [{"name": "hold", "type": "pd_gravity", "kp": 100, "kd": 5, "trajectory": GOAL}],
    "schedule": {"step": "1 ms", "duration": 0.2},
}


@pytest.fixture(scope="module")
def arm():
    return Rig.from_dict(ARM)


def test_the_form_of_a_gradient(arm):
    gradient = arm.gradient("error_rms", ["hold.kp", "hold.kd", "mechanism.fore.mass", "mechanism.fore.com"])
    assert list(gradient) == ["hold.kp", "hold.kd", "mechanism.fore.mass", "mechanism.fore.com"]
    assert [np.shape(gradient[name]) for name in gradient] == [(2,), (2,), (), (3,)]
    assert gradient.units == {
        "hold.kp": "N*m/rad", "hold.kd": "N*m*s/rad", "mechanism.fore.mass": "kg", "mechanism.fore.com": "m",
    }  # fmt: skip
    np.testing.assert_array_equal(gradient.parameters["hold.kd"], [5.0, 3.0])
    batch = arm.rollouts({"hold.kp": [100.0]}, metrics=["error_rms"])
    np.testing.assert_array_equal(gradient.metrics["error_rms"], batch["error_rms"][0])
    assert gradient.value == pytest.approx(batch["error_rms"].sum(), rel=1e-14)
    assert gradient.vector.shape == (8,)
    assert (gradient.stopped, list(gradient.faults)) == (False, [""])
    assert repr(gradient) == "<Gradient arm: error_rms by 8 numbers>"
    with pytest.raises(KeyError, match=r"no derivative with respect to 'hold\.kq'; did you mean 'hold\.kp'"):
        gradient["hold.kq"]


def test_units_of_a_joint_that_slides():
    gradient = Rig.from_dict(SLIDER).gradient("iae", ["hold.kp", "mechanism.cart.damping", "mechanism.cart.friction"])
    assert list(gradient.units.values()) == ["N/m", "N*s/m", "N"]


def test_rows_of_runs_equal_single_gradients(arm):
    rows = np.random.default_rng(0).uniform(50.0, 200.0, (19, 2))
    masses = np.linspace(0.5, 2.0, 19)
    gradient = arm.gradient(["error_rms", "iae"], {"hold.kp": rows, "mechanism.fore.mass": masses}, threads=2)
    assert gradient.value.shape == (19,)
    assert (gradient["hold.kp"].shape, gradient["mechanism.fore.mass"].shape) == ((19, 2), (19,))
    assert gradient.vector.shape == (19, 3)
    assert repr(gradient) == "<Gradient arm: 19 runs, error_rms, iae by 3 numbers>"
    for k in (0, 7, 18):
        single = arm.gradient(
            ["error_rms", "iae"], {"hold.kp": rows[k : k + 1], "mechanism.fore.mass": masses[k : k + 1]}
        )
        np.testing.assert_allclose(gradient.vector[k], single.vector[0], rtol=1e-12)
        assert gradient.value[k] == single.value[0]


@pytest.mark.parametrize("tape", [1.0, 20e3, 100e3])
def test_segments_change_nothing(arm, tape):
    whole = arm.gradient("error_rms", ["hold.kp", "mechanism.upper.inertia"])
    cut = arm.gradient("error_rms", ["hold.kp", "mechanism.upper.inertia"], tape=tape)
    np.testing.assert_array_equal(cut.vector, whole.vector)
    assert cut.value == whole.value


def test_an_objective_of_metrics(arm):
    def weighted(metrics):
        return metrics["error_rms"][1] * 100.0 + ops.sqrt(metrics["effort_rms"][0])

    gradient = arm.gradient(["error_rms", "effort_rms"], "hold.kp", objective=weighted)
    step, kp = 1e-3, np.full((4, 2), 100.0)
    kp += step * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])
    batch = arm.rollouts({"hold.kp": kp}, metrics=["error_rms", "effort_rms"])
    values = batch["error_rms"][:, 1] * 100.0 + np.sqrt(batch["effort_rms"][:, 0])
    np.testing.assert_allclose(gradient["hold.kp"], (values[::2] - values[1::2]) / (2 * step), rtol=1e-6)


@pytest.mark.parametrize("metric", [name for name, metric in cosim.METRICS.items() if not metric.counts_ticks])
def test_every_metric_has_its_derivative(arm, metric):
    gradient = arm.gradient(metric, {"hold.kp": [[80.0, 90.0]], "hold.kd": [[2.0, 1.0]]})
    moves = 1e-4 * np.eye(4)
    rows = np.array([80.0, 90.0, 2.0, 1.0]) + np.concatenate([moves, -moves])
    batch = arm.rollouts({"hold.kp": rows[:, :2], "hold.kd": rows[:, 2:]}, metrics=[metric])[metric].sum(axis=1)
    np.testing.assert_allclose(gradient.vector[0], (batch[:4] - batch[4:]) / 2e-4, rtol=2e-6, atol=1e-9)


def test_controllers_at_several_rates():
    rig = Rig.from_dict(ARM | {"controllers": [ARM["controllers"][0] | {"period": "5 ms"}]})
    gradient = rig.gradient("error_rms", "hold.kp")
    rows = 100.0 + 1e-3 * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])
    values = rig.rollouts({"hold.kp": rows}, metrics=["error_rms"])["error_rms"].sum(axis=1)
    np.testing.assert_allclose(gradient["hold.kp"], (values[::2] - values[1::2]) / 2e-3, rtol=1e-6)


@pytest.fixture(scope="module")
def still():
    """Without gravity, and at rest for its first second."""
    waits = ARM["controllers"][0] | {"trajectory": GOAL | {"delay": 1.0}}
    return Rig.from_dict(ARM | {"mechanism": ARM["mechanism"] | {"gravity": [0, 0, 0]}, "controllers": [waits]})


def test_a_parameter_without_influence_has_the_derivative_0(still):
    assert (still.gradient("error_rms", ["hold.kp"])["hold.kp"] == 0.0).all()


def test_a_run_that_is_stopped_has_no_gradient(arm):
    gains = {"hold.kp": [[100.0, 100.0], [1e6, 1e6]]}
    gradient = arm.gradient("error_rms", gains)
    single = arm.rollouts(gains)
    assert list(single.stopped) == [False, True]
    np.testing.assert_array_equal(gradient.stopped, single.stopped)
    assert list(gradient.faults) == list(single.faults)
    assert np.isfinite(gradient.vector[0]).all()
    assert np.isnan(gradient.vector[1]).all()
    assert np.isnan(gradient.value[1])
    other = Rig.from_dict(ARM | {"controllers": [ARM["controllers"][0] | {"kp": 1e6}]})
    words = str(raised(RunError, other.gradient, "error_rms", "hold.kp"))
    assert words == f"gradient: the run is stopped: {single.faults[1]}"


@pytest.mark.parametrize(
    ("what", "by", "keys"),
    [
        ("error_rms", "hold.kq", {}),
        ("error", "hold.kp", {}),
        ([], "hold.kp", {}),
        ("error_rms", [], {}),
        ("settling_time", "hold.kp", {}),
        (["saturation_time"], "hold.kp", {}),
        ("error_rms", {"hold.kp": [-1.0]}, {}),
        ("error_rms", "hold.kp", {"threads": 0}),
        ("error_rms", "hold.kp", {"tape": 0}),
    ],
    ids=str,
)
def test_mistakes(arm, said, what, by, keys):
    said(refusal(arm.gradient, what, by, **keys))


def test_an_objective_in_plain_python_is_refused(arm):
    def branching(metrics):
        return 1.0 if metrics["error_rms"][0] > 1 else 2.0

    assert refusal(arm.gradient, "error_rms", "hold.kp", objective=branching).endswith("use cosim.plugin.ops.where")


def test_whole_counts_of_an_encoder_have_no_derivative(said):
    joints = {"all": ARM["joints"]["all"], "elbow": {"encoder": {"cpr": 4096}}}
    said(refusal(Rig.from_dict(ARM | {"joints": joints}).gradient, "iae", "hold.kp"))


@pytest.mark.parametrize(
    ("metrics", "keys"),
    [("iae", {"objective": lambda metrics: ops.sqrt(metrics["iae"][0])}), (["overshoot", "iae"], {"duration": 0.1})],
    ids=["a root at zero has no derivative", "an objective that is not finite"],
)
def test_a_gradient_that_is_not_finite(still, said, metrics, keys):
    said(raised(RunError, still.gradient, metrics, "hold.kp", **keys))
