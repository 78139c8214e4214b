"""The loops that drives close themselves: their stability as of `cosim analyze`, and what a run says of it."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from cosim import Rig, analyze
from cosim.apps.analysis.linearisation import linearise
from cosim.core.errors import RunWarning
from cosim.execution.servo_loops import gain_margins, servo_loops, unstable_servo_loops
from cosim.rig.inspection import BEFORE_STEP, first_tick, warnings_before_run
from tests.kit.messages import Said

MOTORS: dict[str, dict[str, Any]] = {
    "dc_machine": {"type": "dc_machine", "resistance": 1, "inductance": 0.001, "torque_constant": 0.1, "inertia": 2e-4},
    "pmsm": {
        "type": "pmsm", "pole_pairs": 4, "resistance": 0.5, "inductance_d": 1e-3, "inductance_q": 1e-3, "flux": 0.03,
        "inertia": 1.5e-4,
    },
    "stepper": {
        "type": "stepper", "teeth": 50, "resistance": 0.8, "inductance": 2e-3, "torque_constant": 0.2, "inertia": 1e-4,
    },
}  # fmt: skip
ELASTIC = [{"ratio": 20, "stiffness": 50, "damping": 0.002}]
RIGID = [{"ratio": 20}]


def drive(motor: str = "pmsm", mode: str = "velocity", gears: Any = ELASTIC, gain: float = 10, **more: Any) -> Any:
    loops: dict[str, Any] = {"mode": mode, "velocity": {"gain": gain, "rate": 4000, "integral_time": 0.06}}
    if mode == "position":
        loops["position"] = {"gain": more.pop("position_gain", 10), "rate": 1000}
    own = {"current": {"rate": 16000}} if more.pop("sampled", True) else {}
    own |= {"encoder": encoder} if (encoder := more.pop("encoder", None)) else {}
    control = {"bandwidth": 800, "current_limit": 50}
    return {"type": "drive", "motor": MOTORS[motor], "control": control, "gears": gears, "loops": loops | own}


def rig_of(*drives: Any, **schedule: Any) -> Rig:
    """An arm of as many joints in a row, without gravity."""
    links = [
        {"name": f"link_{k}", "joint": f"axis_{k}", "axis": [0, 0, 1], "mass": 1, "com": [0.1, 0, 0],
         "origin": {"xyz": [0.2 if k else 0, 0, 0]}, "inertia": [0.1, 0.1, 0.12], "damping": 0.3}
        for k in range(len(drives))
    ]  # fmt: skip
    return Rig.from_dict(
        {
            "mechanism": {"gravity": [0, 0, 0], "bodies": links},
            "joints": {f"axis_{k}": {"actuator": each} for k, each in enumerate(drives)},
            "controllers": [
                {
                    "type": "feedforward_pd",
                    "kp": 0,
                    "kd": 1,
                    "trajectory": {"type": "quintic", "goal": 0.2, "duration": 0.1},
                }
            ],
            "schedule": {"step": "1 ms", "duration": "0.3 s", "integrator": "rodas4", "substeps": 16, **schedule},
        }
    )


CASES = {
    "elastic, velocity": [drive()],
    "elastic, position": [drive(mode="position")],
    "rigid, velocity": [drive(gears=RIGID)],
    "rigid, position": [drive(gears=RIGID, mode="position", position_gain=60)],
    "a DC machine": [drive("dc_machine", "position")],
    "a stepper": [drive("stepper", "position", RIGID)],
    "a continuous current loop": [drive("dc_machine", "position", sampled=False)],
    "an encoder with an observer": [drive("dc_machine", "position", encoder={"cpr": 65536, "bandwidth": 300})],
    "an unstable one": [drive(gain=500)],
    "an unstable position loop": [drive(mode="position", gears=RIGID, position_gain=1500)],
    "two, one unstable": [drive(), drive(gain=400, mode="position")],
}


@pytest.mark.parametrize("name", CASES)
def test_the_growth_is_that_of_the_linearised_tick(name: str) -> None:
    """By the derivative of the compiled tick, which `cosim analyze` uses."""
    rig = rig_of(*CASES[name])
    loops = servo_loops(first_tick(rig, BEFORE_STEP))
    assert loops is not None
    assert float(loops.hyper_period) == pytest.approx(1e-3 if "position" in str(CASES[name]) else 0.25e-3)
    found, expected = (
        abs(np.linalg.eigvals(loops.monodromy({}))) ** (1e-3 / float(loops.hyper_period)),
        abs(np.linalg.eigvals(linearise(rig).A)),
    )
    # the slowest ones but for what is held or moves freely, which the other has in fewer numbers
    slowest = [np.sort(sizes[np.abs(sizes - 1.0) > 1e-5])[-3:] for sizes in (found, expected)]
    assert slowest[0] == pytest.approx(slowest[1], rel=1e-3)
    assert (expected.max() > 1.001) == ("unstable" in name) == bool(unstable_servo_loops(first_tick(rig, BEFORE_STEP)))


@pytest.mark.parametrize("name", [name for name in CASES if "unstable" in name])
def test_the_fix_that_is_named_is_stable_and_no_more(name: str, said: Said) -> None:
    unstable, _ = warnings_before_run(rig_of(*CASES[name]))
    said(unstable)
    (line,) = unstable
    key, value = line.split("lower ")[1].split(" to at most ")
    number = float(value.split()[0])
    for factor, stable in ((1.0, True), (1.12, False)):  # of two digits
        drives = copy.deepcopy(CASES[name])
        *_, number_of, _, _, loop, _ = key.replace("axis_", "").split(".")
        drives[int(number_of)]["loops"][loop]["gain"] = factor * number
        other = rig_of(*drives)
        assert not stable or not warnings_before_run(other)[0]
        assert (np.abs(np.linalg.eigvals(linearise(other).A)).max() < 1.0 + 1e-5) == stable


def test_a_run_with_unstable_loops_of_a_drive_warns() -> None:
    with pytest.warns(
        RunWarning, match=r"the gain 500 N\*m\*s/rad of the velocity loop in the drive of joint 'axis_0'"
    ):
        assert rig_of(drive(gain=500)).run().unstable


@pytest.mark.parametrize("name", ["elastic, velocity", "rigid, position", "a DC machine"])
def test_the_gain_margin_of_a_loop_of_a_drive_is_where_the_tick_becomes_unstable(name: str) -> None:
    """By the derivative of the tick with other gains."""
    margins = gain_margins(first_tick(rig_of(*CASES[name]), BEFORE_STEP))
    assert [loop for _, loop, _ in margins] == (["velocity"] if "velocity" in name else ["position", "velocity"])
    for _, loop, gain in margins:
        for factor, stable in ((0.97, True), (1.03, False)):
            drives = copy.deepcopy(CASES[name])
            drives[0]["loops"][loop]["gain"] *= factor * gain
            assert (np.abs(np.linalg.eigvals(linearise(rig_of(*drives)).A)).max() < 1.0 + 1e-5) == stable
    assert analyze(rig_of(*CASES[name])).as_json()["drives"][0]["gain_margin"] == pytest.approx(margins[0].gain)
