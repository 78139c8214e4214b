"""The cases of `guard_cases.yaml` as arrays: each case is a joint."""

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from cosim.types import COMMAND, Limits

DATA = yaml.safe_load(Path(__file__).with_name("guard_cases.yaml").read_text())
STEP, SOFT = 0.01, 0.5  # s
# codes and bits as they are recorded
VERDICTS = ("fine", "effort", "rate", "power", "temperature", "position", "tracking", "velocity", "stale", "not_finite")
SEEN = {"position": 0.0, "velocity": 0.0, "temperature": math.nan, "age": 0.0, "request": 0.0, "reference": 0.0}


def column(cases: list[dict], section: str, key: str, default: Any) -> np.ndarray:
    values = [case.get(section, {}).get(key, default) for case in cases]
    return np.array(values) if isinstance(default, str) else np.array(values, dtype=float)


def held(cases: list[dict], soft_start: float = 0.0) -> dict[str, Any]:
    """What a Guard of the cases is made of."""
    bounds = {"lower": -math.inf, "upper": math.inf, "velocity": math.inf, "effort": math.inf}
    rest = ("rate", "power", "tracking", "temperature", "stale")
    return dict(
        limits=Limits(*(column(cases, "held", *item) for item in bounds.items())),
        **{name: column(cases, "held", name, math.inf) for name in rest},
        actions={kind: column(cases, "do", kind, action) for kind, action in DATA["defaults"].items()},
        soft_start=soft_start,
        step=STEP,
    )


def seen(cases: list[dict]) -> dict[str, np.ndarray]:
    return {name: column(cases, "seen", name, default) for name, default in SEEN.items()}


def command(cases: list[dict]) -> dict[str, np.ndarray]:
    return {name: column(cases, "command", name, 0.0) for name in COMMAND}


def groups() -> list[tuple[float, float, list[dict]]]:
    """(soft start, time since arming, cases)."""
    soft = itertools.groupby(DATA["soft"], lambda case: case["armed"])
    return [(0.0, 0.0, DATA["cases"]), *((SOFT, float(armed), list(cases)) for armed, cases in soft)]


def verify(cases: list[dict], safe: Any, verdict: Any, warned: Any) -> None:
    """What `check` gave is what the cases say: to the bit but for the sums of a cut."""
    told = command(cases)
    for k, case in enumerate(cases):
        gives = case.get("gives", {})
        assert verdict[k] == VERDICTS.index(gives.get("verdict", "fine")), (case, verdict[k])
        if gives.get("verdict") == "not_finite":
            continue
        bits = sum(2.0 ** (VERDICTS.index(kind) - 1) for kind in gives.get("warned", ()))
        assert warned[k] == bits, (case, warned[k])
        for name in COMMAND:
            expected = gives.get(name, told[name][k])
            assert safe[name][k] == expected, (case, name, safe[name][k])
