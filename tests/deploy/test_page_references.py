"""References that a page can change: the same run as of a rig file with the changed trajectory."""

from __future__ import annotations

import numpy as np
import pytest

from cosim import load_rig
from cosim.apps.deploy.page.references import with_parametrised_references
from tests.kit.samples import FOLDER

TICKS = 900
# rounding: constants of the code are folded before
TOLERANCE = 1e-11
RIG = """\
name: arm
mechanism:
  bodies:
    - {name: upper, joint: shoulder, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.1]}
    - {name: lower, joint: elbow, parent: upper, origin: {xyz: [0, 0, -1]}, axis: [0, 1, 0], mass: 1 kg,
       com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.1]}
controllers:
  - {name: hold, type: feedforward_pd, kp: 50, kd: 5, trajectory: TRAJECTORY}
schedule: {step: 1 ms, duration: 1 s}
"""
# trajectory with fields to fill in, their values in the rig, others
CASES = {
    "quintic": (
        "{type: quintic, goal: [GOAL, 0.2], duration: DURATION, delay: 0.1}",
        {"goal/shoulder": ("GOAL", 0.5, -0.3), "duration": ("DURATION", 0.8, 0.6)},
    ),
    "minimum_jerk": (
        "{type: minimum_jerk, goal: [GOAL, 0.2], duration: DURATION}",
        {"goal/shoulder": ("GOAL", 0.5, -0.3), "duration": ("DURATION", 0.8, 0.6)},
    ),
    "sine": (
        "{type: sine, amplitude: [AMPLITUDE, 0.2], frequency: FREQUENCY, ramp: 0.5}",
        {"amplitude/shoulder": ("AMPLITUDE", 0.5, 0.2), "frequency/elbow": ("FREQUENCY", 1.0, 1.0)},
    ),
    "trapezoidal": (
        "{type: trapezoidal, goal: [GOAL, 0.2], max_velocity: VELOCITY, max_acceleration: 4}",
        {"goal/shoulder": ("GOAL", 0.5, -0.7), "max_velocity/elbow": ("VELOCITY", 1.5, 1.5)},
    ),
}


def rig_file(folder, trajectory, numbers):
    for place, value in numbers.items():
        trajectory = trajectory.replace(place, str(value))
    path = folder / "arm.yaml"
    path.write_text(RIG.replace("TRAJECTORY", trajectory))
    return path


@pytest.mark.parametrize("kind", CASES)
def test_a_parametrised_reference_is_that_of_the_changed_rig(kind, tmp_path) -> None:
    trajectory, fields = CASES[kind]
    references = with_parametrised_references(
        load_rig(rig_file(tmp_path, trajectory, {a: b for a, b, _ in fields.values()}))
    )
    places = {parameter["name"]: parameter for parameter in references.parameters}
    engine = references.rig.engine()
    for name, (_, before, after) in fields.items():
        parameter = places[f"hold.trajectory.{name}"]
        assert parameter["value"] == before
        engine.memory[parameter["place"]] = after
    found, _ = engine.run(TICKS)
    changed = load_rig(rig_file(tmp_path, trajectory, {a: c for a, _, c in fields.values()})).engine()
    expected, _ = changed.run(TICKS)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=TOLERANCE)


def test_a_unit_and_bounds_are_those_that_the_trajectory_declares(tmp_path) -> None:
    path = rig_file(tmp_path, CASES["sine"][0], {"AMPLITUDE": 0.5, "FREQUENCY": 1.0})
    found = {parameter["name"]: parameter for parameter in with_parametrised_references(load_rig(path)).parameters}
    frequency = found["hold.trajectory.frequency/elbow"]
    assert (frequency["unit"], frequency["min"], frequency["max"]) == ("Hz", 0.0, None)
    assert frequency["about"] == "periods per second"
    assert "hold.trajectory.ramp" not in found  # a ramp of 0 is another motion


def test_what_cannot_be_changed_is_named(tmp_path) -> None:
    path = rig_file(tmp_path, CASES["sine"][0], {"AMPLITUDE": 0.5, "FREQUENCY": 1.0})
    assert with_parametrised_references(load_rig(path)).notes == [
        "Of the sine trajectory of hold, ramp cannot be changed here: the code of the motion depends on that."
    ]


def test_a_path_that_is_planned_stays_as_it_is() -> None:
    rig = load_rig(FOLDER / "ur5_circle.yaml")
    references = with_parametrised_references(rig)
    assert references.parameters == []
    (note,) = references.notes
    assert note == (
        "The numbers of the arc trajectory of feedforward_pd cannot be changed here: it is planned when the rig is"
        " loaded."
    )
