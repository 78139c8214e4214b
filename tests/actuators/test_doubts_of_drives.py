"""What is said of a drive before and after a run: commands that its mode does not follow, sampled fields, lost steps,
and temperatures beyond their limits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from cosim import Rig, Run
from cosim.core.errors import InputErrors, RunWarning
from cosim.rig.inspection import warnings_before_run
from cosim.rig.references import FEWEST_SAMPLES
from tests.kit.messages import Said
from tests.kit.refusals import raised

SERVO = {"type": "dc_machine", "resistance": 1, "inductance": 1e-3, "torque_constant": 0.1, "inertia": 1e-4}
STEPPER = {
    "type": "stepper",
    "teeth": 50,
    "resistance": 1.5,
    "inductance": 3e-3,
    "torque_constant": 0.3,
    "inertia": 3e-5,
}
LOOPS = {"velocity": {"gain": 0.01}, "position": {"gain": 20}}
TRAJECTORY = {"type": "quintic", "goal": 0.5, "duration": 0.1}


def rig_of(actuator: dict[str, Any], controller: dict[str, Any], trajectory: Any = TRAJECTORY, **rig: Any) -> Rig:
    body = {"name": "disc", "joint": "axis", "axis": [0, 0, 1], "mass": 1, "inertia": [1e-4, 1e-4, 1e-4]}
    return Rig.from_dict(
        {
            "mechanism": {"gravity": [0, 0, 0], "bodies": [body]},
            "joints": {"axis": {"actuator": {"type": "drive", **actuator}, **rig.pop("joint", {})}},
            "controllers": [{"name": "c", **controller, "trajectory": trajectory}],
            "schedule": {"step": "0.5 ms", "duration": "0.2 s", "integrator": "rk4", "substeps": 20, **rig},
        }
    )


# mode of the drive, interface of the command -> whether it is warned of; by the table of `drive_commands.py`
MODES = {
    "effort": {"position": False, "velocity": False, "effort": False},
    "velocity": {"position": True, "velocity": False, "effort": True},
    "position": {"position": False, "velocity": True, "effort": True},
}


@pytest.mark.parametrize("interface", ["position", "velocity", "effort"])
@pytest.mark.parametrize(
    ("kind", "mode"),
    [(kind, mode) for kind in ("loops", "open_loop") for mode in MODES if (kind, mode) != ("open_loop", "effort")],
)
def test_a_command_that_the_mode_does_not_follow(kind: str, mode: str, interface: str, said: Said) -> None:
    """Whether the joint reaches its goal decides: the run agrees with the warning."""
    own = {"motor": SERVO, "loops": {"mode": mode, **LOOPS, "current": {"rate": 8000}}}
    if kind == "open_loop":
        own = {"motor": STEPPER, "open_loop": {"mode": mode, "steps": {"current": 1.5}, "rate": "40 kHz"}}
    gains = {"position": {"kp": 1, "kd": 0.05}, "velocity": {"kd": 1}, "effort": {}}[interface]
    rig = rig_of(own, {"type": "passthrough", "interface": interface, **gains})
    unstable, misfits = warnings_before_run(rig)
    found = [line for line in misfits if "commands joint" in line]
    assert not unstable and len(found) == MODES[mode][interface]
    said(found)
    if found and "stands still" in found[0]:
        assert moved_by(rig) == pytest.approx(0.0, abs=1e-9)


def moved_by(rig: Rig) -> float:
    with pytest.warns(RunWarning):
        return float(np.ptp(rig.run()["axis/position"]))


def stepping(top: float, rate: float, duration: float = 0.4, **steps: Any) -> Rig:
    """A wheel that is brought to a speed [rad/s] within 0.2 s."""
    trajectory = {"type": "trapezoidal", "goal": 1e3, "max_velocity": top, "max_acceleration": 5 * top}
    drive = {"motor": STEPPER, "control": {"bandwidth": 1000, "voltage_limit": 36}}
    drive["open_loop"] = {"mode": "velocity", "steps": {"current": 1.5, **steps}, "rate": rate}
    return rig_of(drive, {"type": "passthrough", "interface": "velocity", "kd": 1}, trajectory, duration=duration)


@pytest.mark.parametrize("microsteps", [1, 16])
@pytest.mark.parametrize("ratio", [0.98, 1.02])
def test_a_field_that_is_sampled_too_rarely(microsteps: int, ratio: float, said: Said) -> None:
    """At the fewest samples: N · speed / 2π electrical turns per second, whatever the microsteps."""
    top = 8e3 * 2.0 * math.pi / (50 * FEWEST_SAMPLES * ratio)
    _, misfits = warnings_before_run(stepping(top, 8e3, microsteps=microsteps))
    assert len([line for line in misfits if "samples per electrical turn" in line]) == (ratio < 1.0)
    said(misfits)


def by_hand(run: Run) -> np.ndarray:
    return 4 * np.round(50 * (run["axis/field_position"] - run["axis/position"]) / (2.0 * math.pi))


def test_lost_steps_are_counted_and_warned_of() -> None:
    with pytest.warns(RunWarning, match="the step motor of joint 'axis' lost"):
        run = stepping(400.0, 80e3).run()
    lost = by_hand(run)
    assert run["axis/lost_steps"] == pytest.approx(lost)
    figures = run.summary["lost_steps"]["axis"]
    first = run.t[np.argmax(lost != 0)]
    assert figures == {"count": abs(lost[-1]), "max": np.abs(lost).max(), "first_s": pytest.approx(first)}
    assert figures["count"] > 4
    assert any(f"lost {figures['count']} full steps, the first at {first:.6g} s" in line for line in run.warnings)


def test_a_motor_in_step_has_lost_none() -> None:
    run = stepping(20.0, 20e3).run()
    assert run.summary["lost_steps"] == {"axis": {"count": 0, "max": 0, "first_s": None}} and not run.warnings


THERMAL = {"winding_capacity": 0.5, "housing_capacity": 20, "winding_to_housing": 5, "housing_to_ambient": 2}


@pytest.mark.parametrize("kept", [None, {"signals": ["axis/position"]}])
def test_the_largest_temperatures_are_in_the_summary(kept: dict[str, Any] | None) -> None:
    """Also where the temperature is not kept; above the limit the run warns."""

    def run_of(limit: float, **keep: Any) -> Run:
        drive = {"motor": {**SERVO, "thermal": {**THERMAL, "winding_limit": limit}}}
        motion = {"type": "sine", "amplitude": 3, "frequency": "10 Hz"}
        return rig_of(drive, {"type": "feedforward_pd", "kp": 1, "kd": 0.01}, motion).run(**keep)

    run = run_of(500.0)
    rise = run["axis/winding_temperature"]
    assert rise.max() > 1.0 and not run.warnings
    limit = 0.5 * float(rise.max())
    with pytest.warns(
        RunWarning, match=f"the winding of the drive of joint 'axis' is warmer than its limit of {limit:g} K"
    ):
        warm = run_of(limit, **({} if kept is None else {"keep": kept}))
    nodes = warm.summary["temperatures"]["axis"]
    assert nodes["winding"] == {"max": rise.max(), "t_s": pytest.approx(run.t[rise.argmax()]), "limit": limit}
    assert nodes["housing"]["max"] == run["axis/housing_temperature"].max() and nodes["housing"]["limit"] is None


def test_a_limit_of_the_guard_on_a_rise_is_refused(said: Said) -> None:
    drive = {"motor": {**SERVO, "thermal": THERMAL}}
    joint = {"limits": {"temperature": 80}}
    said(raised(InputErrors, rig_of, drive, {"type": "feedforward_pd", "kp": 1, "kd": 1}, joint=joint))
    assert rig_of({"motor": SERVO}, {"type": "feedforward_pd", "kp": 1, "kd": 1}, joint=joint)


@pytest.mark.parametrize(("detent", "doubted"), [(0.11, False), (0.12, True)])
@pytest.mark.parametrize("own", [{"open_loop": {"steps": {"current": 1.5}}}, {"control": {"current_limit": 1.5}}])
def test_a_detent_torque_that_holds_the_rotor_between_microsteps(
    own: dict[str, Any], detent: float, doubted: bool
) -> None:
    """M = T_h sin(φ − N θ) − M_d sin 4 N θ has one rest at each φ up to M_d = T_h / 4, 0.1125 N·m here."""
    theta = np.linspace(-math.pi, math.pi, 200001)  # N θ
    torque = 0.45 * np.sin(math.pi / 4 - theta) - detent * np.sin(4 * theta)
    rests = np.sum((torque[:-1] > 0.0) & (torque[1:] <= 0.0))
    assert (rests > 1) == doubted
    rig = rig_of({"motor": {**STEPPER, "detent": detent}, **own}, {"type": "passthrough", "kp": 1})
    assert any("detent torque" in line for line in warnings_before_run(rig)[1]) == doubted


def test_a_field_that_is_off_by_more_than_a_quarter_of_an_electrical_turn(said: Said) -> None:
    motor = {
        "type": "pmsm", "pole_pairs": 20, "resistance": 1, "inductance_d": 1e-3, "inductance_q": 1e-3, "flux": 0.01,
        "inertia": 1e-4,
    }  # fmt: skip
    found = []
    for e in (0.078, 0.079):  # 1.57 rad
        loops = {"mode": "effort", "current": {}, "commutation": {"eccentricity": e}}
        rig = rig_of({"motor": motor, "loops": loops}, {"type": "feedforward_pd", "kp": 1, "kd": 1})
        found.append(warnings_before_run(rig)[1])
    assert not found[0]
    said(found[1])
