"""The limits of `guard_cases.yaml`, and its cases as arrays: each case is a joint."""

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from cosim.core.types import COMMAND

DATA = yaml.safe_load(Path(__file__).with_name("guard_cases.yaml").read_text())
STEP, SOFT_START = 0.01, 0.5  # s
POSITION_TOLERANCE = 1e-9  # rad or m, without an encoder
LIMITS: dict[str, dict[str, Any]] = DATA["limits"]
VERDICTS = ("ok", *LIMITS, "stale", "not_finite")  # by fault code
BOUNDS = {key: -math.inf if key == "lower" else math.inf for row in LIMITS.values() for key in row["keys"]}
ACTIONS = {key: row["action"] for key, row in LIMITS.items()}
CHOICES = {
    key: ("warn", "saturate", "stop") if row.get("saturates", True) else ("warn", "stop") for key, row in LIMITS.items()
}
CASES = [*DATA["cases"], *(case for row in LIMITS.values() for case in row["cases"])]
FEEDBACK = {"position": 0.0, "velocity": 0.0, "temperature": math.nan, "age": 0.0, "request": 0.0, "reference": 0.0}
FEEDBACK |= {"stalled_time": 0.0, "unseen_motion": 0.0, "residual_energy": 0.0, "load_residual_energy": 0.0}
FEEDBACK |= dict.fromkeys(("shadow_effort", "shadow_drive", "shadow_position", "shadow_slip"), 0.0) | {"new": 1.0}
FEEDBACK |= {"wall_energy": 0.0}
FEEDBACK |= {"reaction_force": 0.0, "reaction_moment": 0.0}
FEEDBACK |= {"unit_disagreement": 0.0, "judged_velocity": math.nan}  # NaN: the measured velocity


def column(cases: list[dict], section: str, key: str, default: Any) -> np.ndarray:
    values = [case.get(section, {}).get(key, default) for case in cases]
    return np.array(values) if isinstance(default, str) else np.array(values, dtype=float)


def guard_fields(cases: list[dict], soft_start: float = 0.0) -> dict[str, Any]:
    """The fields of a Guard of the cases."""
    return dict(
        bounds={key: column(cases, "bounds", key, default) for key, default in BOUNDS.items()},
        actions={key: column(cases, "actions", key, action) for key, action in ACTIONS.items()},
        stale=column(cases, "bounds", "stale", math.inf),
        soft_start=soft_start,
        step=STEP,
        position_tolerance=column(cases, "guard", "position_tolerance", POSITION_TOLERANCE),
    )


def feedback(cases: list[dict]) -> dict[str, np.ndarray]:
    found = {name: column(cases, "feedback", name, default) for name, default in FEEDBACK.items()}
    judged = found["judged_velocity"]
    return found | {"judged_velocity": np.where(np.isnan(judged), found["velocity"], judged)}


def command(cases: list[dict]) -> dict[str, np.ndarray]:
    return {name: column(cases, "command", name, 0.0) for name in COMMAND}


def groups() -> list[tuple[float, float, list[dict]]]:
    """(soft start, time since arming, cases)."""
    ramps = itertools.groupby(DATA["soft_start"], lambda case: case["armed"])
    return [(0.0, 0.0, CASES), *((SOFT_START, float(armed), list(cases)) for armed, cases in ramps)]


def verify(cases: list[dict], safe: Any, fault_codes: Any, alarms: Any) -> None:
    """The result of `check` is as in the cases, bit for bit."""
    commanded = command(cases)
    for k, case in enumerate(cases):
        expect = case.get("expect", {})
        assert fault_codes[k] == VERDICTS.index(expect.get("verdict", "ok")), (case, fault_codes[k])
        for name in COMMAND:  # what is not finite is as it was commanded
            expected = expect.get(name, commanded[name][k])
            assert np.array_equal(safe[name][k], expected, equal_nan=True), (case, name, safe[name][k])
        if expect.get("verdict") == "not_finite":
            continue
        bits = sum(2.0 ** list(LIMITS).index(key) for key in expect.get("alarms", ()))
        assert alarms[k] == bits, (case, alarms[k])
