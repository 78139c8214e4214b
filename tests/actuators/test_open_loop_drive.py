"""Drives whose motor follows a field without feedback."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from cosim import Rig, Run
from cosim.core.errors import InputError
from tests.kit.messages import Said
from tests.kit.refusals import raised

STEPPER = {
    **{"type": "stepper", "teeth": 50, "resistance": 1.5, "inductance": 3e-3, "torque_constant": 0.3},
    **{"inertia": 3e-5, "viscous": 1e-3},
}
CONTROL = {"bandwidth": 1000, "voltage_limit": 36}
STEP = math.pi / 100.0  # 1.8°


def moving(goal: float) -> dict[str, Any]:
    """The section of a controller that sends the setpoints of a motion of 0.1 s."""
    trajectory = {"type": "quintic", "goal": goal, "duration": 0.1}
    return {"controllers": [{"type": "passthrough", "kp": 1, "kd": 0, "trajectory": trajectory}]}


def one_joint(motor: Mapping[str, Any] = STEPPER, schedule: Mapping[str, Any] = {}, **drive: Any) -> dict[str, Any]:
    """A rig of one wheel on a drive."""
    drive = {"type": "drive", "motor": dict(motor), "control": CONTROL, **drive}
    inertia = [1e-4, 1e-4, 5e-5]
    return {
        "name": "open",
        "mechanism": {
            "gravity": [0, 0, 0],
            "bodies": [{"name": "wheel", "joint": "hinge", "axis": [0, 0, 1], "mass": 1, "inertia": inertia}],
        },
        "joints": {"hinge": {"initial": {"position": 0.2}, "actuator": drive}},
        **moving(1.0),
        "schedule": {"step": "0.5 ms", "duration": "0.2 s", "integrator": "rk4", "substeps": 20, **schedule},
    }


def gap_of(run: Run) -> float:
    """The relative residual of its energy."""
    energy = run.summary["energy"]
    assert energy is not None
    return energy["residual_relative"]


def steps(current: float = 1.5, microsteps: int = 16, **loop: Any) -> dict[str, Any]:
    return {"steps": {"current": current, "microsteps": microsteps}, **loop}


@pytest.mark.parametrize("microsteps", [1, 4, 16])
def test_a_stepper_stands_at_whole_steps(microsteps: int) -> None:
    """Its field is at a multiple of the step that is nearest to the goal, behind gears too; the rotor follows."""
    rig = one_joint(open_loop=steps(microsteps=microsteps), gears=[{"ratio": 3}])
    run = Rig.from_dict(rig | moving(0.5)).run()
    count = 3 * run["hinge/field_position"] * microsteps / STEP
    assert count == pytest.approx(np.round(count), abs=1e-8)
    assert abs(run["hinge/field_position"][-1] - 0.5) <= STEP / microsteps / 6.0 * 1.001
    assert run["hinge/position"][-1] == pytest.approx(run["hinge/field_position"][-1], abs=2e-3)
    currents = np.hypot(run["hinge/current_a"][-1], run["hinge/current_b"][-1])
    assert currents == pytest.approx(1.5, rel=1e-2)


def test_it_follows_a_velocity_and_loses_steps_when_that_is_too_fast() -> None:
    """Without feedback the drive does not notice."""
    moved = {}
    for goal in (1.0, 40.0):
        run = Rig.from_dict(one_joint(open_loop=steps(mode="velocity")) | moving(goal)).run()
        assert run["hinge/field_position"][-1] == pytest.approx(goal, abs=0.02 * goal)
        moved[goal] = run["hinge/position"][-1] / goal
    assert moved[1.0] == pytest.approx(1.0, abs=0.02)
    assert moved[40.0] < 0.9


def test_the_reference_keeps_its_limit_of_velocity() -> None:
    run = Rig.from_dict(one_joint(open_loop=steps(limit=5.0))).run()
    assert np.abs(run["hinge/field_velocity"]).max() == pytest.approx(5.0)
    assert run["hinge/field_position"][-1] < 1.0 + STEP


def test_it_lets_go_where_it_is_disabled() -> None:
    rig = one_joint(open_loop=steps())
    run = Rig.from_dict({**rig, "events": [{"do": "disable", "of": "hinge", "at": "50 ms"}]}).run()
    before, after = run.t < 0.05, run.t > 0.1
    assert np.hypot(run["hinge/current_a"], run["hinge/current_b"])[before].max() > 1.4
    assert np.hypot(run["hinge/current_a"], run["hinge/current_b"])[after].max() < 0.05
    assert np.abs(run["hinge/field_velocity"][after]).max() == 0.0


def test_a_stepper_with_feedback_holds_what_a_field_without_loses() -> None:
    """The loops of a drive along its rotor reach a goal at which the counted steps fail."""
    loops = {
        "mode": "position",
        "current": {"rate": "20 kHz"},
        "velocity": {"gain": 0.03, "rate": "4 kHz"},
        "position": {"gain": 60, "rate": "1 kHz"},
    }
    rig = one_joint(loops=loops, control={**CONTROL, "current_limit": 1.5})
    run = Rig.from_dict(rig | moving(5.0)).run()
    assert run["hinge/position"][-1] == pytest.approx(5.0, abs=5e-3)
    assert np.hypot(run["hinge/current_a"], run["hinge/current_b"]).max() < 1.6


@pytest.mark.parametrize(
    ("schedule", "residual"),
    [
        ({"substeps": 320}, 1e-9),
        ({"integrator": "rodas4", "substeps": "auto", "tolerance": 1e-11}, 1e-9),
    ],
)
def test_its_energy_closes(schedule: dict[str, Any], residual: float) -> None:
    """Both ways: it accelerates a wheel, and brakes it."""
    motor = {**STEPPER, "detent": 0.02}
    run = Rig.from_dict(one_joint(motor, {**schedule, "duration": "0.12 s"}, open_loop=steps())).run()
    assert gap_of(run) < residual
    assert run["hinge/effort"].min() < -0.01 and run["hinge/effort"].max() > 0.01


def test_rosenbrock_closes_it_with_the_square_of_its_step() -> None:
    def gap(substeps: int) -> float:
        schedule = {"integrator": "rosenbrock", "substeps": substeps, "duration": "0.02 s"}
        return gap_of(Rig.from_dict(one_joint(schedule=schedule, open_loop=steps())).run())

    assert gap(160) < gap(80) / 3.0 < gap(40) / 9.0


MISTAKES: dict[str, dict[str, Any]] = {
    "no steps": {"open_loop": {"mode": "position"}},
    "another motor": {
        "motor": {"type": "dc_machine", "resistance": 1, "inductance": 1e-3, "torque_constant": 0.1},
        "open_loop": {"steps": {"current": 1}},
    },
    "loops and no loops": {"open_loop": {"steps": {"current": 1}}, "loops": {"mode": "effort", "current": {}}},
    "an overload": {
        "open_loop": {"steps": {"current": 1}},
        "control": {"current_limit": 3, "overload": {"continuous_current": 1, "time_constant": 1}},
    },
    "a current beyond its limit": {"open_loop": {"steps": {"current": 4}}, "control": {"current_limit": 3}},
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_refused_with_its_fix(name: str, said: Said) -> None:
    said(str(raised(InputError, Rig.from_dict, one_joint(**MISTAKES[name]))))
