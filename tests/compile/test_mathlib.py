"""The error bounds that `cosim.compile.mathlib` states for sine and cosine, against mpmath."""

import math
import platform
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

from cosim import ops
from cosim.compile import compile, emit, mathlib
from cosim.compile.mathlib import MAX_ULP, MAX_ULP_REDUCED, REDUCIBLE
from cosim.compile.object_code import object_code
from cosim.compile.targets import targets
from tests.compile.calls import ports
from tests.kit.linked_code import linked

# arguments with the largest errors found: of sine and of cosine, without and with range reduction
WORST_REDUCED = "0x1.6ff63794cd228p-1", "0x1.89ba89b905429p-1"
WORST = {
    "sin": ("0x1.9de94547e613ap+19", "0x1.6664a118a08dcp+9"),
    "cos": ("0x1.2bcbff3c839a7p+20", "0x1.4f1cad14201c9p+9"),
}
QUARTER = math.pi / 4
LOOP = Path(__file__).with_name("sines.ll").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def error():
    """(n, 2): the errors of sine and cosine at n arguments, in units in the last place of the true value."""
    f = compile(lambda x: (ops.sin(x), ops.cos(x)), ports(x=()))

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
    assert error(random.uniform(-QUARTER, QUARTER, 1000)).max() <= MAX_ULP_REDUCED
    right_angles = random.integers(1, int(REDUCIBLE / 1.6), 1000)
    with mpmath.workprec(120):
        # what is left after the reduction, where its rounding error counts most, and close to none
        left = np.concatenate([random.uniform(0.5, 0.524, 500), random.uniform(-1e-9, 1e-9, 500)])
        near = np.array([float(int(k) * mpmath.pi / 2 + r) for k, r in zip(right_angles, left, strict=True)])
    ranges = {
        "a turn": random.uniform(-2 * math.pi, 2 * math.pi, 500),
        "all sizes": 10.0 ** random.uniform(-300.0, math.log10(REDUCIBLE), 500),
        "all of the range": random.uniform(-REDUCIBLE, REDUCIBLE, 500),
        "beside right angles": near,
        "subnormal": random.integers(1, 2**52, 200).view(np.float64),
    }
    for name, x in ranges.items():
        assert error(x).max() <= MAX_ULP, name


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the code is run on x86-64")
def test_the_bits_do_not_depend_on_fused_multiplications():
    fused = targets()["x86_64"]
    arguments = np.random.default_rng(1).uniform(-REDUCIBLE, REDUCIBLE, 100_000)
    arguments[1000:2000] /= REDUCIBLE
    found = []
    for target in (fused, fused._replace(cpu="x86-64-v2")):
        loop = linked([object_code(emit.declarations({1}) + mathlib.sincos(1) + LOOP, target)], "sines")
        pair = np.empty((2, len(arguments)))
        loop(arguments.ctypes.data, *(values.ctypes.data for values in pair), len(arguments))
        found.append(pair)
    assert (found[0].view(np.int64) == found[1].view(np.int64)).all()
