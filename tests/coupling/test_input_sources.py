"""Polynomials of all inputs of a part together: those of `polynomial` one by one."""

import numpy as np
import pytest

from cosim.coupling.extrapolation import polynomial
from cosim.coupling.input_sources import InputSources

H, TIMES = 0.3, [0.0, -0.2, -0.5]
KINDS = {  # (delayed, its source has stepped)
    "extrapolated": (False, False),
    "interpolated": (False, True),
    "delayed": (True, False),
    "delayed, after its source": (True, True),
}


def expected(kind, order, reached, past):
    delayed, stepped = KINDS[kind]
    if delayed:
        return [past[0], *[0.0] * order]
    values, times = ([reached, *past], [H, *TIMES]) if stepped else (past, TIMES)
    return polynomial(values[: order + 1], times[: order + 1])


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("kinds", [*([kind] for kind in KINDS), list(KINDS), []], ids="+".join)
def test_each_element_has_its_own_polynomial(order, kinds):
    rng = np.random.default_rng(order)
    reached, *past = rng.normal(size=(4, 8))
    places = [np.array([6, 1]), np.array([3]), np.array([0, 4]), np.array([5])][: len(kinds)]
    sources = InputSources(order, places, *zip(*(KINDS[kind] for kind in kinds), strict=True) if kinds else ([], []))
    found = sources.polynomials(H, reached, past, TIMES)
    wanted = [
        expected(kind, order, reached[k], [values[k] for values in past])
        for kind, place in zip(kinds, places, strict=True)
        for k in place
    ]
    np.testing.assert_allclose(found, np.array(wanted).reshape(-1, order + 1).T, rtol=1e-14)
