"""Each limit that stops a joint that is commissioned is named in one sentence."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cosim.commissioning.reasons import fault_reason
from cosim.control.limits import CODES, LIMITS, NOT_FINITE, STALE
from cosim.tick.tick_functions import GUARD_INPUTS, REAL_GUARD_INPUTS
from cosim.types import COMMAND

BOUNDS = {key: np.array([1.0, 2.0]) for row in LIMITS for key in row.bound_keys}


def said(code: float) -> str:
    guard = SimpleNamespace(bounds=BOUNDS, stale=np.full(2, 0.05))
    joints: Any = SimpleNamespace(
        names=("a", "b"), units=("rad", "m"), guard=guard, age=np.array([0.0, 0.07]), period=0.002
    )
    feedback = {name: np.zeros(2) for name in ("request", *GUARD_INPUTS, *REAL_GUARD_INPUTS)}
    wanted = dict.fromkeys(COMMAND, np.zeros(2)) | {"effort": np.array([0.0, 3000.0])}
    safe = wanted | {"effort": np.array([0.0, 2.0])}
    return fault_reason(joints, np.array([0.0, float(code)]), feedback, safe, wanted)


@pytest.mark.parametrize("key", CODES)
def test_a_limit(key):
    text = said(CODES[key])
    assert text.startswith("joint 'b' ") and "\n" not in text and "{" not in text


def test_the_effort_that_was_commanded_is_named_as_it_was_given():
    assert "is commanded 3000 N, beyond its limit of 2 N" in said(CODES["commanded_effort"])
    assert "is commanded 2 N," in said(CODES["effort"])


def test_other_faults():
    assert "no feedback for 70 ms" in said(STALE)
    assert "reports no number" in said(NOT_FINITE)
