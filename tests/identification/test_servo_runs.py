"""Numbers of a servo and its gears from short runs under other loads: simulated ones, of which they are known."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from cosim import load_rig
from cosim.apps.identification.command import identify_rig
from cosim.apps.identification.servo_fit import (
    ZERO,
    ServoNumbers,
    ServoSearch,
    fit_servo,
    fitted_numbers,
    open_runs,
)
from cosim.apps.identification.servo_runs import ServoRuns, read_index
from cosim.core.errors import InputError, InputErrors
from cosim.plugins.actuators.servo import PositionServo
from cosim.rig.reading.yaml_source import read_overlay
from tests.kit.refusals import raised

RIG = """
mechanism:
  gravity: [0, 0, -9.81]
  bodies: [{name: arm, axis: [0, -1, 0], mass: 0.5 kg, com: [0, 0, -0.1], inertia: [1e-6, 1e-6, 1e-6]}]
joints:
  arm:
    actuator: {type: servo, torque_constant: 0.4, resistance: 3, supply_voltage: 7.4, kp: 100, gain: 2.9e-3,
               armature: 2e-3, period: 5 ms, longest_delay: 40 ms}
    friction: {model: stribeck, coulomb: 0.02, static: 0.02, viscous: 0.01}
controllers: [{name: goal, type: passthrough, kp: 1, trajectory: {type: sine, amplitude: 1, frequency: 1}}]
schedule: {step: 5 ms, duration: 2 s, integrator: rodas4}
"""
TRUE = {
    "joints.arm.actuator.torque_constant": 0.33,
    "joints.arm.actuator.resistance": 3.6,
    "joints.arm.actuator.armature": 1.4e-3,
    "joints.arm.actuator.delay": 0.0123,
    "joints.arm.friction.coulomb": 0.03,
    "joints.arm.friction.viscous": 0.016,
}
# mass, distance, kp, amplitude, frequency
LOADS = [(0.5, 0.1, 100, 1.2, 0.7), (0.5, 0.1, 400, 0.8, 1.5), (0.3, 0.15, 300, 1.5, 1.0), (0.7, 0.08, 800, 1.0, 0.6)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The rig, recordings by ordinary runs of rigs with the true numbers, and their index."""
    folder = tmp_path_factory.mktemp("servo")
    (folder / "rig.yaml").write_text(RIG)
    with open(folder / "index.csv", "w", newline="") as file:
        index = csv.writer(file)
        index.writerow(["file", "mechanism.bodies.0.mass", "mechanism.bodies.0.com", "joints.arm.actuator.kp", "note"])
        for k, (mass, distance, kp, amplitude, frequency) in enumerate(LOADS):
            own = (f"{mass}", f"[0, 0, -{distance}]", f"{kp}")
            index.writerow([f"run{k}.csv", *own, "a note"])
            write_run(folder, k, own, amplitude, frequency)
    return folder


def write_run(folder, k, own, amplitude, frequency):
    mass, com, kp = own
    overrides = [f"mechanism.bodies.0.mass={mass}", f"mechanism.bodies.0.com={com}", f"joints.arm.actuator.kp={kp}"]
    overrides += [f"{name}={value}" for name, value in TRUE.items()]
    overrides += [f"controllers.goal.trajectory={{type: sine, amplitude: {amplitude}, frequency: {frequency}}}"]
    overrides += ["joints.arm.friction.static=0.03"]
    off = k == 2
    overrides += ["events=[{do: disable, of: arm, at: 1.2 s}]"] if off else []
    run = load_rig(folder / "rig.yaml", overrides).run()
    goal = amplitude * np.sin(2.0 * math.pi * frequency * run.t)
    enable = np.where(off & (run.t > 1.1975), 0, 1)
    columns = [run.t + 7.0, run["arm/position"], goal, enable, run["arm/velocity"]]
    np.savetxt(folder / f"run{k}.csv", np.column_stack(columns),
               "%.9f", ",", header="t,position,goal,enable,speed", comments="")  # fmt: skip


@pytest.fixture(scope="module")
def runs(folder):
    return ServoRuns(folder / "rig.yaml", read_index(folder / "index.csv"), fitted_numbers("arm"))


def true_numbers():
    return ServoNumbers({name.rpartition(".")[2]: value for name, value in TRUE.items()})


def test_runs_with_the_true_numbers_are_the_recordings(runs):
    """Goals, a delay of a fraction of a tick, the switch, and each run's own mass, place, gain and start."""
    numbers = {name: np.array([value]) for name, value in true_numbers().rig_numbers("arm").items()}
    found = runs.positions(numbers, np.zeros(1))[0]
    assert np.abs(runs.recorded).max(axis=1).min() > 0.2
    np.testing.assert_allclose(found, runs.recorded, atol=2e-4)


def test_candidates_do_not_touch_each_other(runs):
    """A candidate among others, on any lane, has the runs that it has alone."""
    gains = np.array([0.2, 0.3, 0.4, 0.5, 0.6])
    name = "joints.arm.actuator.torque_constant"
    together = runs.positions({name: gains}, np.linspace(-0.1, 0.1, 5))
    for k in (0, 3, 4):
        alone = runs.positions({name: gains[k : k + 1]}, np.linspace(-0.1, 0.1, 5)[k : k + 1])
        np.testing.assert_array_equal(together[k], alone[0])


def test_a_wrong_zero_turns_gravity_alone(runs):
    """Recorded positions that are too low by z are those of a run with all angles larger by z."""
    numbers = {name: np.array([value]) for name, value in true_numbers().rig_numbers("arm").items()}
    moved = runs.positions(numbers, np.array([0.2]))[0]
    assert 0.005 < np.abs(moved - runs.recorded).max() < 0.6
    assert np.abs(moved[:, 0] - runs.recorded[:, 0]).max() < 1e-12


def test_the_numbers_are_found(runs):
    found = fit_servo(runs, laws=("M1",), budget=400, kept_out=np.array([False, False, False, True]))
    stage = found.taken
    assert found.candidates <= 400 and stage.errors.max() < 1e-3
    numbers = stage.numbers.rig_numbers("arm")
    for name, value in TRUE.items():
        assert numbers[name] == pytest.approx(value, rel=0.05), name
    assert numbers["joints.arm.actuator.delay"] == pytest.approx(0.0123, abs=3e-4)
    assert abs(stage.numbers.values[ZERO]) < 2e-3
    assert not stage.open
    text = "\n".join(found.lines())
    assert "M1" in text and "taken" in text
    k, R = (TRUE[f"joints.arm.actuator.{name}"] for name in ("torque_constant", "resistance"))
    damping, stiffness = (value for value, _ in found.products.values())
    assert damping == pytest.approx(k**2 / R, rel=0.01)
    assert stiffness == pytest.approx(found.gain * k / R, rel=0.01)
    assert f"torque_constant^2/resistance {damping:.5g} N*m*s/rad" in text


def test_the_play_of_gears_is_found(folder):
    """Of runs with it, from a tenth of it."""
    gears = ["joints.arm.actuator.gear_stiffness=60", "joints.arm.actuator.play=0.008 rad"]
    known = ServoRuns(folder / "rig.yaml", read_index(folder / "index.csv"), fitted_numbers("arm", ["play"]), gears)
    numbers = ServoNumbers(true_numbers().values | {"play": 0.08})
    known.recorded = known.positions(
        {name: np.array([value]) for name, value in numbers.rig_numbers("arm").items()}, np.zeros(1)
    )[0]
    search = ServoSearch(known, np.ones(len(known.runs), dtype=bool), budget=120)
    start = true_numbers().values | {"play": 0.008, "torque_constant": 0.36}
    found = search.best(start, ["play", "torque_constant"], (), 100)
    assert found.values["play"] == pytest.approx(0.08, rel=0.02)
    assert found.values["torque_constant"] == pytest.approx(0.33, rel=0.02)


def test_rigid_gears_have_no_play(folder, said):
    said(raised(InputError, open_runs, folder / "rig.yaml", read_index(folder / "index.csv"), ["play"], []))


def test_what_cannot_be_told_apart_is_named(runs):
    """Without the duty at its limit, k_t, R and the gain of the firmware share one degree of freedom: (k_t, R, gain) →
    (c k_t, c² R, c gain) changes nothing."""
    fitted = fitted_numbers("arm", ["gain"])
    few = ServoRuns(runs.path, runs.runs[:1], fitted)
    search = ServoSearch(few, np.array([True]))
    numbers = ServoNumbers(true_numbers().values | {"gain": 2.9e-3})
    noisy = 1e-3 * np.sin(np.arange(few.recorded.size)).reshape(few.recorded.shape)
    few.recorded = few.recorded + noisy
    combinations = search.left_open(numbers, ("torque_constant", "resistance", "gain", "armature"))
    assert len(combinations) == 1
    powers = dict(part.split("^") for part in combinations[0].split(" · "))
    assert set(powers) == {"torque_constant", "resistance", "gain"}
    assert float(powers["torque_constant"]) / float(powers["resistance"]) == pytest.approx(0.5, abs=0.1)
    assert float(powers["gain"]) / float(powers["resistance"]) == pytest.approx(0.5, abs=0.1)


# --- mistakes ---

INDEX = {
    "no file column": "mechanism.bodies.0.mass\n1\n",
    "a short row": "file,mechanism.bodies.0.mass\nrun0.csv\n",
    "no recording": "file\nrun9.csv\n",
}


@pytest.mark.parametrize("name", INDEX)
def test_a_wrong_index(folder, name, said):
    (folder / "wrong.csv").write_text(INDEX[name])
    said(str(raised((InputError, InputErrors), read_index, folder / "wrong.csv")).replace(str(folder), "<folder>"))


OTHER = {
    "a loop": "joints.arm.actuator.loop\nrun0.csv,sampled\n",
    "gravity": 'mechanism.gravity\nrun0.csv,"[0, 0, -3]"\n',
    "a step": "schedule.step\nrun0.csv,10 ms\n",
    "a place": 'mechanism.bodies.0.origin\nrun0.csv,"{rpy: [0, 0.5, 0]}"\n',
}


@pytest.mark.parametrize("name", OTHER)
def test_runs_that_differ_in_more_than_numbers(folder, name, said):
    (folder / "wrong.csv").write_text(f"file,{OTHER[name]}")
    runs = read_index(folder / "wrong.csv")
    line = str(raised((InputError, InputErrors), ServoRuns, folder / "rig.yaml", runs, fitted_numbers("arm")))
    said(line.replace(str(folder), "<folder>"))


def test_a_rig_without_a_servo(folder, said):
    runs = read_index(folder / "index.csv")
    other = ["joints.arm.actuator={type: ideal}"]
    line = str(raised((InputError, InputErrors), ServoRuns, folder / "rig.yaml", runs[:1], (), other))
    said(line.replace(str(folder), "<folder>"))


# --- the command ---


def test_the_command_writes_an_overlay_that_moves_as_recorded(folder, capsys, monkeypatch):
    monkeypatch.setattr("cosim.apps.identification.servo_command.fit_servo", lambda runs, optional: fit_servo(
        runs, optional, laws=("M1",), budget=600))  # fmt: skip
    identify_rig(folder / "rig.yaml", [str(folder / "index.csv")], [], [], ["inertia", "friction"], None, 0.7,
                 str(folder / "found.yaml"), None, str(folder / "found.json"))  # fmt: skip
    text, figures = capsys.readouterr().out, json.loads((folder / "found.json").read_text())
    assert "wrote     overlay" in text and figures["taken"]["law"] == "M1" and figures["joint"] == "arm"
    rig = load_rig(folder / "rig.yaml", read_overlay(folder / "found.yaml"))
    drive = cast(PositionServo, rig.plant.actuators["arm"]).params
    assert drive.torque_constant == pytest.approx(TRUE["joints.arm.actuator.torque_constant"], rel=0.05)
    assert drive.delay == pytest.approx(TRUE["joints.arm.actuator.delay"], abs=5e-4)


OPTIONS = {
    "--method": {"method": "equation-error"},
    "--report": {"report": "r.html"},
    "--fit": {"wanted": ["elasticity"]},
}


@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_that_an_index_does_not_take(folder, option, said):
    given = {"wanted": [], "cutoff": None, "training": 0.7, "output": None, "report": None, "json": None}
    said(
        str(
            raised(
                InputError,
                identify_rig,
                folder / "rig.yaml",
                [str(folder / "index.csv")],
                [],
                [],
                **given | OPTIONS[option],
            )
        )
    )


# --- a real servo ---

RECORDINGS = Path(__file__).resolve().parents[3] / "shared" / "data" / "xl330"
XL330 = """
mechanism:
  gravity: [0, 0, -9.80665]
  bodies: [{name: arm, axis: [0, -1, 0], mass: 0.49 kg, com: [0, 0, -0.1], inertia: [1e-6, 1e-6, 1e-6]}]
joints:
  arm:
    actuator: {type: servo, torque_constant: 0.38, resistance: 3.5, supply_voltage: 7.3, kp: 100, gain: 2.877e-3,
               armature: 1.8e-3, period: 5 ms, longest_delay: 60 ms}
    friction: {model: stribeck, creep_speed: 0.002, coulomb: 0.01, viscous: 0.004}
controllers: [{name: goal, type: passthrough, kp: 1, trajectory: {type: sine, amplitude: 1, frequency: 1}}]
schedule: {step: 5 ms, duration: 2 s, integrator: rodas4}
"""


def test_a_real_servo_moves_as_simulated_in_runs_that_were_kept_out(tmp_path):
    """A Dynamixel XL330 (Rhoban/bam, Apache-2.0): mean absolute error of the position over the 6 s of each run."""
    if not RECORDINGS.is_dir():
        pytest.skip(f"needs the recordings in {RECORDINGS}, which are no part of the repository")
    with open(RECORDINGS / "index.csv", newline="") as file, open(tmp_path / "index.csv", "w", newline="") as index:
        rows = csv.writer(index)
        rows.writerow(["file", "joints.arm.actuator.kp"])
        rows.writerows([str(RECORDINGS / row["file"]), row["kp"]] for row in csv.DictReader(file))
    (tmp_path / "rig.yaml").write_text(XL330)
    runs = open_runs(tmp_path / "rig.yaml", read_index(tmp_path / "index.csv"))
    found = fit_servo(runs, budget=1200)
    by_law = {stage.law: stage for stage in found.stages}
    assert by_law["M4"].other_error < 0.06 and by_law["M4"].fitted_error < 0.045
    assert by_law["M4"].fitted_error < 0.9 * by_law["M1"].fitted_error
    still = np.nanmean([np.abs(run.goal - run.position).mean() for run in runs.runs])
    assert found.taken.fitted_error < 0.3 * still
