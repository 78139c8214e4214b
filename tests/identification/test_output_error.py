"""Numbers from the errors of simulated runs: of arms, elastic gears and loops, with intervals that hold."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import yaml

from cosim import load_rig
from cosim.apps.identification.equation_error import sources_of
from cosim.apps.identification.identification import identify
from cosim.apps.identification.output_error import ClosedLoop, covariance
from cosim.apps.identification.recorded_motion import actuated_joints, read_motion
from cosim.apps.identification.variables import choose
from cosim.rig.reading.yaml_source import read_overlay
from tests.identification.conftest import ARM, MOTOR, written
from tests.kit.refusals import refusal

FRICTION = {
    "joints.shoulder.actuator.viscous": 0.9,
    "joints.shoulder.actuator.coulomb": 1.1,
    "joints.elbow.actuator.viscous": 0.4,
    "joints.elbow.actuator.coulomb": 1.3,
    "joints.elbow.actuator.torque_constant": 0.066,
}
SEEDS = 3
NOISE = {"position": 5e-5, "current": 0.05, "effort": 0.1}


def recorded(rig, path, truth, seed=None, duration=None, known=False, position="position"):
    """A table of a run of a rig with other numbers, of which its controllers know nothing unless `known`; noise with
    a seed."""
    joints, source = actuated_joints(rig), sources_of(rig)[0]
    names = [f"{joint}/{what}" for joint in joints for what in ("position", source)]
    batch = rig.rollouts(
        parameters={name: np.atleast_2d(value) for name, value in truth.items()},
        duration=duration,
        signals=names,
        every=1,
        unknown=() if known else tuple(truth),
    )
    assert not batch.stopped.any(), batch.faults[0]
    table = {"t": batch.t} | {name: batch[name][0].copy() for name in names}
    if seed is not None:
        rng = np.random.default_rng(seed)
        for name in names:
            table[name] += rng.normal(size=len(batch.t)) * NOISE[name.rpartition("/")[2]]
    table = {name.replace("/position", f"/{position}"): values for name, values in table.items()}
    np.savetxt(path, np.column_stack(list(table.values())), delimiter=",", header=",".join(table), comments="")
    return path


def off(found, truth):
    """Number -> its error in intervals of 95 %."""
    known = {number.name: number for number in found.numbers}
    return {name: (known[name].value - value) / known[name].interval for name, value in truth.items()}


@pytest.fixture(scope="module")
def noisy(arm_file, tmp_path_factory):
    """Recordings of the other arm with noise."""
    rig, folder = load_rig(arm_file), tmp_path_factory.mktemp("noisy")
    return [recorded(rig, folder / f"{seed}.csv", FRICTION, seed) for seed in range(SEEDS)]


@pytest.mark.parametrize("method", ["equation-error", "output-error"])
def test_intervals_hold_over_many_recordings(arm_file, noisy, method):
    """Half of a normal distribution lies within 0.34 intervals, 95 % within one."""
    rig = load_rig(arm_file)
    wanted = ["friction", "torque_constant"]
    errors = np.array([list(off(identify(rig, path, wanted, method=method), FRICTION).values()) for path in noisy])
    assert np.abs(errors).max() < 2.0
    assert 0.1 < np.median(np.abs(errors)) < 0.8
    assert np.mean(np.abs(errors) < 1.0) >= 0.8


def test_its_intervals_are_smaller_than_those_of_the_equation_error(arm_file, noisy):
    rig, wanted = load_rig(arm_file), ["friction"]
    width = {
        method: {n.name: n.interval for n in identify(rig, noisy[0], wanted, method=method).numbers}
        for method in ("equation-error", "output-error")
    }
    for name, interval in width["output-error"].items():
        assert interval < width["equation-error"][name]


def test_controllers_that_know_the_numbers(arm_file, tmp_path):
    """As in a recording of a simulated rig: found from the recording itself."""
    rig = load_rig(arm_file)
    truth = FRICTION | {"joints.elbow.actuator.rotor_inertia": 7e-5}
    wanted = ["friction", "torque_constant", "joints.elbow.actuator.rotor_inertia"]
    for known in (True, False):
        path = recorded(rig, tmp_path / "known.csv", truth, 5, known=known)
        found = identify(rig, path, wanted, method="output-error")
        assert ("with controllers that know the numbers" in next(iter(found.lines()))) == known
        assert max(map(abs, off(found, truth).values())) < 2.0


def test_inertias_and_frictions_of_a_recording(arm_file, recording):
    found = identify(load_rig(arm_file), recording, method="output-error")
    known = {number.name: number.value for number in found.numbers}
    mass = known["mechanism.fore.mass"]
    assert mass * known["mechanism.fore.com.x"] == pytest.approx(1.6 * 0.2, rel=1e-3)
    assert known["joints.elbow.actuator.coulomb"] == pytest.approx(1.3, rel=1e-3)
    for check in found.checks:
        assert check.after < 0.01 * check.before
    assert "the mass of upper" in [quantity.title for quantity in found.unsure]


@pytest.mark.parametrize("late", [0.0, 4e-3])
def test_uneven_rows_with_a_gap_and_rubbish(arm_file, noisy, tmp_path, late):
    """Simulated runs pass the means that the log became; a third of its ticks is there, at times between them."""
    rig, errors = load_rig(arm_file), []
    for seed, path in enumerate(noisy):
        head, table = path.read_text().split("\n", 1)[0], np.loadtxt(path, delimiter=",", skiprows=1)
        rng = np.random.default_rng(seed)
        t = np.cumsum(rng.uniform(2e-3, 4e-3, 6000)) - 2e-3
        t = t[(t < table[-1, 0]) & ((t < 3.0) | (t > 3.3))]
        rows = [np.interp(t - late * name.endswith("/position"), table[:, 0], column)
                for name, column in zip(head.split(","), table.T, strict=True)]  # fmt: skip
        rows[0] = t
        rows[1][[70, 900]] += 50.0
        np.savetxt(tmp_path / "f.csv", np.column_stack(rows), delimiter=",", header=head, comments="")
        wanted = ["friction", "torque_constant", *(["delay"] if late else [])]
        found = identify(rig, tmp_path / "f.csv", wanted, method="output-error")
        assert found.motion.window == pytest.approx(6e-3, rel=0.1)
        assert any("1 gap" in note for note in found.motion.notes)
        assert any("no motion has" in note for note in found.motion.notes)
        errors.append(list(off(found, FRICTION | ({"delay": late} if late else {})).values()))
        assert max(check.after / check.before for check in found.checks) < 0.4
    assert np.abs(errors).max() < 2.0
    assert np.mean(np.abs(errors) < 1.0) >= 0.8


def test_uneven_rows_without_noise_give_the_numbers_themselves(arm_file, tmp_path):
    """What the means make of straight lines between rows, they make of the simulated runs too."""
    rig = load_rig(arm_file)
    path = recorded(rig, tmp_path / "all.csv", FRICTION)
    head, table = path.read_text().split("\n", 1)[0], np.loadtxt(path, delimiter=",", skiprows=1)
    table = table[np.cumsum(np.random.default_rng(0).integers(2, 30, 720))]
    np.savetxt(tmp_path / "f.csv", table, delimiter=",", header=head, comments="")
    found = identify(rig, tmp_path / "f.csv", ["friction", "torque_constant"], method="output-error")
    assert found.motion.window > 0.03
    known = {number.name: number.value for number in found.numbers}
    assert [known[name] for name in FRICTION] == pytest.approx(list(FRICTION.values()), rel=1e-4)


@pytest.mark.parametrize("ticks", [1, 4])
def test_the_delay_of_positions(arm_file, noisy, tmp_path, ticks):
    names = noisy[0].read_text().split("\n", 1)[0].split(",")
    table, late = np.loadtxt(noisy[0], delimiter=",", skiprows=1), ticks * 1e-3
    for k, name in enumerate(names):
        if name.endswith("/position"):
            table[:, k] = np.interp(table[:, 0] - late, table[:, 0], table[:, k])
    np.savetxt(tmp_path / "late.csv", table, delimiter=",", header=",".join(names), comments="")
    found = identify(load_rig(arm_file), tmp_path / "late.csv", ["friction", "torque_constant", "delay"],
                     method="output-error")  # fmt: skip
    assert abs(off(found, {"delay": late})["delay"]) < 2.0
    assert max(map(abs, off(found, FRICTION).values())) < 2.0
    late_encoders = {key: value for key, value in found.overlay().items() if key.endswith("encoder")}
    lost = [line for line in found.lines() if line.endswith("the overlay does not have it")]
    if ticks == 1:
        assert late_encoders == {f"joints.{name}.encoder": {"delay": 1} for name in ("shoulder", "elbow")}
        again = load_rig(arm_file, [f"{key}={yaml.safe_dump(value)}" for key, value in late_encoders.items()])
        assert again.tick_model.encoders.params.late.all()
        assert not lost
    else:
        assert not late_encoders
        late_by = " ms are 4 ticks of 1 ms, and encoders are late by 0 or 1: the overlay does not have it"
        assert re.fullmatch(rf"delay     (4|4\.00\d|3\.99\d?){late_by}", lost[0])


def test_derivatives_are_those_of_the_runs(arm_file, noisy):
    """They equal the gradient of a run, which is differentiated backwards."""

    names = ("joints.elbow.actuator.viscous", "joints.elbow.actuator.coulomb")
    rig = load_rig(arm_file)
    loop = ClosedLoop(rig, choose(rig, names), read_motion(rig, noisy[0], ("current",)), known=True)
    rows = 3000
    loop.together = 1
    slope = loop.evaluate(np.zeros(2), rows)[1]
    currents = loop.runs(np.zeros((1, 2)), rows)[0][:, 3]

    def square(t, signals):
        return signals["elbow/current"] * signals["elbow/current"]

    exact = rig.gradient([square], names, duration=(rows - 1) * 1e-3)
    ours = (2.0 * currents[:, None] * slope[:, 3]).sum(axis=0) * 1e-3
    start = np.array([rig.numbers[name] for name in names])
    theirs = np.array([np.ravel(exact[name])[0] for name in names]) * start  # variables are logarithms
    np.testing.assert_allclose(ours, theirs, rtol=5e-3)


def test_errors_that_are_alike_widen_the_intervals():
    """The mean of noise of first order with correlation ρ has the variance σ² (1 + ρ) / (1 − ρ) / n."""
    rng = np.random.default_rng(0)
    n, rho = 20_000, 0.8
    white = rng.normal(size=(n, 1))
    errors = white.copy()
    for k in range(1, n):
        errors[k] = rho * errors[k - 1] + white[k]
    white, errors = white - white.mean(), errors - errors.mean()  # as the fit of the mean leaves them
    slope = np.ones((n, 1, 1))
    found = covariance(errors / errors.std(), slope, 0.01)[0, 0]
    assert found == pytest.approx((1.0 + rho) / (1.0 - rho) / n, rel=0.3)
    assert covariance(white / white.std(), slope, 0.01)[0, 0] == pytest.approx(1.0 / n, rel=0.3)


def test_encoders_with_increments(tmp_path):
    """They average out; the runs that are compared have none, and so have derivatives."""
    encoder = {"cpr": 20000, "noise": "1e-4 rad"}
    joints = {name: of | {"encoder": encoder} for name, of in ARM["joints"].items()}
    rig = load_rig(written(tmp_path, "encoders.yaml", joints=joints))
    table = recorded(rig, tmp_path / "encoders.csv", FRICTION, 2)
    found = identify(rig, table, ["friction", "torque_constant"], method="output-error")
    assert max(map(abs, off(found, FRICTION).values())) < 2.0


def test_elastic_gears(tmp_path, said):
    motor = MOTOR | {"stiffness": 900, "damping": 5.0}
    path = written(
        tmp_path,
        "elastic.yaml",
        joints={"all": ARM["joints"]["all"] | {"actuator": motor}, "elbow": {"actuator": motor | {"ratio": 50}}},
        controllers=[ARM["controllers"][0] | {"kp": 60, "kd": 4}],
    )
    rig = load_rig(path)
    truth = FRICTION | {
        "joints.shoulder.actuator.stiffness": 700.0,
        "joints.elbow.actuator.stiffness": 1100.0,
        "joints.shoulder.actuator.rotor_inertia": 5e-5,
    }
    del truth["joints.elbow.actuator.torque_constant"]
    table = recorded(rig, tmp_path / "elastic.csv", truth, 3)
    wanted = ["friction", "joints.*.actuator.stiffness", "joints.shoulder.actuator.rotor_inertia"]
    found = identify(rig, table, wanted)
    assert found.method == "output-error"
    assert max(map(abs, off(found, truth).values())) < 2.0
    keys = found.overlay()
    again = load_rig(path, [f"{key}={yaml.safe_dump(value)}" for key, value in keys.items()])
    assert again.numbers["joints.elbow.actuator.stiffness"] == pytest.approx(1100.0, rel=0.02)
    stiff = load_rig(written(tmp_path, "stiff.yaml"))
    said(refusal(choose, stiff, ["elasticity"]))
    assert len(choose(rig, ["elasticity"]).names) == 4


FOUR_BAR = {
    "name": "four_bar",
    "mechanism": {
        "gravity": [0, -9.81, 0],
        "bodies": [
            {"name": "crank", "mass": 1, "com": [0.1, 0, 0], "inertia": [0, 0.01, 0.01]},
            {"name": "coupler", "origin": {"xyz": [0.2, 0, 0]}, "mass": 2, "com": [0.25, 0, 0],
             "inertia": [0, 0.05, 0.05]},
            {"name": "rocker", "parent": "base", "origin": {"xyz": [0.5, 0, 0]}, "mass": 1, "com": [0.2, 0, 0],
             "inertia": [0, 0.02, 0.02]},
        ],
        "loops": [{"name": "pin", "parent": "rocker", "child": "coupler", "origin": {"xyz": [0.4, 0, 0]},
                   "child_origin": {"xyz": [0.5, 0, 0]}}],
    },
    "joints": {
        "crank": {"actuator": MOTOR | {"ratio": 60}},
        "coupler": {"initial": {"guess": "-53 deg"}},
        "rocker": {"initial": {"guess": "-90 deg"}},
    },
    "controllers": [{"name": "track", "type": "pid", "joints": ["crank"], "kp": 300, "ki": 0, "kd": 15,
                     "trajectory": {"type": "sine", "amplitude": 0.9, "frequency": 0.6, "ramp": 1}}],
    "schedule": {"step": "1 ms", "integrator": "rk4", "duration": 6},
}  # fmt: skip


def test_closed_loops(tmp_path):
    path = tmp_path / "four_bar.yaml"
    path.write_text(yaml.safe_dump(FOUR_BAR))
    rig = load_rig(path)
    truth = {"joints.crank.actuator.viscous": 0.8, "joints.crank.actuator.coulomb": 1.2, "mechanism.coupler.mass": 2.5}
    table = recorded(rig, tmp_path / "loop.csv", truth, 1)
    found = identify(rig, table, ["friction", "mechanism.coupler.mass"])
    assert found.method == "output-error"
    assert max(map(abs, off(found, truth).values())) < 2.0
    assert {n.name for n in found.numbers} >= {"mechanism.coupler.damping", "mechanism.rocker.friction"}
    assert [check.joint for check in found.checks] == ["crank"]
    assert found.checks[0].after < 0.2 * found.checks[0].before


def test_the_command(arm_file, noisy, tmp_path, command):
    overlay, report, figures = (tmp_path / name for name in ("found.yaml", "found.html", "found.json"))
    words = ["--method", "output-error", "--fit", "friction", "-o", overlay, "--report", report, "--json", figures]
    code, out, _ = command("identify", arm_file, noisy[0], *words)
    assert code == 0
    assert "positions and current of 2 joints in simulated runs" in out
    data = json.loads(figures.read_text())
    assert (data["method"], data["cutoff_hz"]) == ("output-error", None)
    rig = load_rig(arm_file, read_overlay(overlay))
    for name in ("joints.elbow.actuator.coulomb", "joints.shoulder.actuator.viscous"):
        assert rig.numbers[name] == pytest.approx(data["numbers"][name]["value"], rel=1e-12)
    assert "in simulated runs" in report.read_text()


def test_the_covariance_where_two_numbers_have_the_same_effect():
    """Their difference is known by the prior alone, however well the sum is seen."""
    errors = np.random.default_rng(3).normal(size=(400, 1))
    slope = 1e9 * np.sin(np.arange(400.0))[:, None, None] * np.ones(2)
    found = covariance(errors, slope, 0.01, 1e-4)
    apart = np.array([1.0, -1.0]) / np.sqrt(2.0)
    assert apart @ found @ apart == pytest.approx(1e4, rel=1e-3)
