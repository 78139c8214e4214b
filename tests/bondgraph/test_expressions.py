"""Laws written as text: their values, the signals that they use, and what is refused."""

import math

import pytest

from cosim.bondgraph.expressions import FUNCTIONS, law
from tests.kit.messages import Said
from tests.kit.refusals import raised

VALUES = {
    "2 * flow + 1": 7.0,
    "-flow^2 / 2": -4.5,
    "flow**3 - flow^1": 24.0,
    "k * spring.effort": 2.5,
    "sin(pi / 2) * flow": 3.0,
    "where(flow > 2, 1, -1)": 1.0,
    "where(flow <= 2, 1, -1)": -1.0,
    "max(0, min(flow, 2))": 2.0,
    "clip(flow, -1, 1) + abs(-2)": 3.0,
    "2^0.5": math.sqrt(2.0),
    "+flow": 3.0,
}
REFUSED = [
    "flow +",
    "",
    "tanhh(flow)",
    "atan2(flow)",
    "__import__('os')",
    "flow if t else 0",
    "flow.__class__()",
    "[flow]",
    "1 < flow < 2",
    "True",
    "flow " + "+ flow" * 2000,
    "(" * 900 + "flow" + ")" * 900,
]


@pytest.mark.parametrize("text", VALUES)
def test_values(text: str) -> None:
    signals = {"flow": 3.0, "spring.effort": 5.0}
    found = law(text, {"k": 0.5})
    assert set(found.uses) <= set(signals)
    assert found.fn(*(signals[name] for name in found.uses)) == pytest.approx(VALUES[text], rel=1e-15)


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:20])
def test_what_is_no_law_is_refused(text: str, said: Said) -> None:
    said(raised(ValueError, law, text, {}))


def test_every_function_is_of_numbers() -> None:
    for name, (_, count) in FUNCTIONS.items():
        call = f"{name}({', '.join(['0.5', '0.25', '2'][:count])})"
        assert math.isfinite(law(call, {}).fn())
