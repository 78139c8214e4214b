"""The option `repeat`: a motion that is made several times, in rigs, with other options, and where it is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cosim import Rig
from cosim.core.errors import InputErrors
from tests.kit.messages import Said
from tests.kit.refusals import raised

HERE_AND_BACK: dict[str, dict[str, Any]] = {
    "quintic": {"type": "quintic", "goal": 0.4, "duration": 0.1, "back": True},
    "spline": {"type": "spline", "points": [0.3, -0.2, 0.0], "times": [0.05, 0.12, 0.2]},
    "minimum_jerk": {"type": "minimum_jerk", "goal": 0.0, "via": [0.3], "duration": 0.2},
    "sine": {"type": "sine", "amplitude": 0.2, "frequency": 10.0},
}


def rig_of(trajectory: Any, prescribed: bool = False, duration: float = 1.0) -> Rig:
    body = {
        "name": "arm",
        "joint": "hinge",
        "axis": [0, 1, 0],
        "mass": 1,
        "com": [0, 0, -0.2],
        "inertia": [0.1, 0.1, 0.1],
    }
    pendulum = {
        "name": "bob",
        "joint": "pin",
        "axis": [0, 1, 0],
        "mass": 0.1,
        "com": [0, 0, -0.1],
        "inertia": [1e-3] * 3,
    }
    follow = [
        {"name": "c", "type": "feedforward_pd", "kp": 100, "kd": 10, "joints": ["hinge"], "trajectory": trajectory}
    ]
    return Rig.from_dict(
        {
            "mechanism": {"bodies": [body, pendulum]},
            **({"joints": {"hinge": {"prescribed": trajectory}}} if prescribed else {"controllers": follow}),
            "schedule": {"step": "1 ms", "duration": duration, "integrator": "rk4", "substeps": 2},
        }
    )


@pytest.mark.parametrize("name", HERE_AND_BACK)
@pytest.mark.parametrize("times", [3, None])
def test_every_period_is_the_first_one(name: str, times: int | None) -> None:
    """Interpreter and machine code; after the last one it stays."""
    motion, period = HERE_AND_BACK[name], 0.25 if name != "sine" else 0.2
    alone = rig_of(motion).run()["hinge/reference_position"]
    run = rig_of({**motion, "repeat": {"period": period, **({} if times is None else {"times": times})}}).run()
    n = round(period * 1e3)
    repeated = run["hinge/reference_position"]
    for k in range(int(1.0 / period)):
        whole = alone[: n + 1] if times is None or k < times else np.full(n + 1, alone[n])
        if name == "sine" and times is not None and k >= times - 1:
            whole = alone[: n + 1]  # it has no end
        found = repeated[k * n : (k + 1) * n + 1]
        assert found == pytest.approx(whole[: len(found)], abs=1e-9)


@pytest.mark.parametrize(("short", "full"), [("forever", {}), (3, {"times": 3})])
def test_short_forms(short: Any, full: Any) -> None:
    runs = [rig_of({**HERE_AND_BACK["quintic"], "repeat": given}).run() for given in (short, full)]
    assert np.array_equal(*(run["hinge/reference_position"] for run in runs))
    assert np.ptp(runs[0]["hinge/reference_position"][400:600]) == pytest.approx(0.4, abs=1e-3)


def test_a_prescribed_motion_has_the_breaks_of_every_repetition() -> None:
    """The energy of what it moves closes, also where the acceleration jumps between two ticks."""
    duty = {**HERE_AND_BACK["quintic"], "duration": 0.1003, "repeat": {"times": 4, "period": 0.2111}}
    run = rig_of(duty, prescribed=True).run()
    assert run.summary["energy"]["residual_relative"] < 1e-9
    times = rig_of(duty, prescribed=True).plant.prescribed["hinge"].breaks
    assert set(np.round(0.2111 * np.arange(5), 9)) <= set(np.round(times, 9))


def test_shaping_acts_on_all_repetitions() -> None:
    """As the sum of delayed repeated motions, by hand."""
    motion = {**HERE_AND_BACK["quintic"], "repeat": {"period": 0.25, "times": 3}}
    shaped = rig_of({**motion, "shaping": {"type": "zv", "frequency": 10.0}}).run()["hinge/reference_position"]
    plain = rig_of(motion).run()["hinge/reference_position"]
    late = np.concatenate([np.zeros(50), plain[:-50]])
    assert shaped == pytest.approx(0.5 * (plain + late), abs=1e-9)


MISTAKES: dict[str, dict[str, Any]] = {
    "a jump": {"type": "quintic", "goal": 0.4, "duration": 0.1, "repeat": 3},
    "longer than the period": {**HERE_AND_BACK["quintic"], "repeat": {"period": "50 ms"}},
    "without an end": {**HERE_AND_BACK["sine"], "repeat": "forever"},
    "not a whole number": {**HERE_AND_BACK["quintic"], "repeat": 2.5},
    "true": {**HERE_AND_BACK["quintic"], "repeat": True},
    "never": {**HERE_AND_BACK["quintic"], "repeat": {"times": 0}},
    "an unknown key": {**HERE_AND_BACK["quintic"], "repeat": {"count": 3}},
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name: str, said: Said) -> None:
    said(raised(InputErrors, rig_of, MISTAKES[name]))


def test_a_prescribed_joint_does_not_repeat_forever(said: Said) -> None:
    said(raised(InputErrors, rig_of, {**HERE_AND_BACK["quintic"], "repeat": "forever"}, prescribed=True))
