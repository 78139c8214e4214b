"""The error bounds that `cosim.compile.mathlib` states for sine and cosine, against mpmath."""

import math
from typing import Any

import mpmath
import numpy as np
import pytest

from cosim import ops
from cosim.compile import ArrayPort, compile
from cosim.compile.mathlib import MAX_ULP, MAX_ULP_REDUCED, REDUCIBLE

# arguments with the largest errors found: of sine and of cosine, without and with range reduction
WORST_REDUCED = "0x1.89bab9b6e9c11p-1", "0x1.6bd157e93b6cap-1", "0x1.8556bf385a727p-1", "0x1.9098b49b13386p-1"
WORST = {
    "sin": ("0x1.80b78b5fe5d45p+10", "0x1.9b769e51c15d5p+30", "0x1.815385c29d600p+18", "-0x1.b99a77fc1824cp+17"),
    "cos": ("0x1.03edad24bb8e8p+28", "0x1.4f1c7ea1d928dp+9", "0x1.49927ad82d48fp+19", "0x1.efb24c1f45c0bp+27"),
}
QUARTER = math.pi / 4


@pytest.fixture(scope="module")
def error():
    """(n, 2): the errors of sine and cosine at n arguments, in units in the last place of the true value."""
    f = compile(lambda x: (ops.sin(x), ops.cos(x)), [ArrayPort("x", ())], interpret=False)

    def errors(x):
        found = []
        with mpmath.workprec(200):
            for value, *pair in zip(x.tolist(), *(part.tolist() for part in f(x)), strict=True):
                true: list[Any] = [fn(mpmath.mpf(value)) for fn in (mpmath.sin, mpmath.cos)]
                found.append([float(abs(a - b)) / math.ulp(float(b)) for a, b in zip(pair, true, strict=True)])
        return np.array(found)

    return errors


def test_the_worst_arguments_found_are_within_the_bounds_and_reach_them(error):
    reduced = error(np.array([float.fromhex(x) for x in WORST_REDUCED]))
    assert 0.95 * MAX_ULP_REDUCED < reduced.max() <= MAX_ULP_REDUCED
    for column, name in enumerate(("sin", "cos")):
        worst = error(np.array([float.fromhex(x) for x in WORST[name]]))[:, column]
        assert 0.98 * MAX_ULP < worst.max() <= MAX_ULP, name


def test_random_arguments_are_within_the_bounds(error):
    random = np.random.default_rng(0)
    assert error(random.uniform(-QUARTER, QUARTER, 4000)).max() <= MAX_ULP_REDUCED
    right_angles = random.integers(1, int(REDUCIBLE / 1.6), 4000)
    with mpmath.workprec(120):
        # what is left after the reduction, where its rounding error counts most, and close to none
        left = np.concatenate([random.uniform(0.5, 0.524, 2000), random.uniform(-1e-9, 1e-9, 2000)])
        near = np.array([float(int(k) * mpmath.pi / 2 + r) for k, r in zip(right_angles, left, strict=True)])
    ranges = {
        "a turn": random.uniform(-2 * math.pi, 2 * math.pi, 2000),
        "all sizes": 10.0 ** random.uniform(-300.0, math.log10(REDUCIBLE), 2000),
        "all of the range": random.uniform(-REDUCIBLE, REDUCIBLE, 2000),
        "beside right angles": near,
        "subnormal": random.integers(1, 2**52, 200).view(np.float64),
    }
    for name, x in ranges.items():
        assert error(x).max() <= MAX_ULP, name
