"""Mistakes in the map of registers: one line each, at its place."""

import pytest

from tests.conformance.families import Case
from tests.conformance.register_maps import FLOATS, WHOLE_NUMBERS
from tests.drivers.loading import mistakes_of

CASE = Case("modbus", "pty", stepped=True)
CONTROL = {"register": 1, "clear": [2], "off": [0]}
# a map, and what is changed in it; None: it has no such key
MISTAKES = {
    "no position": (WHOLE_NUMBERS, {"position": None}),
    "unknown point": (WHOLE_NUMBERS, {"efort_target": {"register": 1}}),
    "no register": (WHOLE_NUMBERS, {"velocity": {"type": "int32"}}),
    "no type": (WHOLE_NUMBERS, {"velocity": {"register": 1, "type": "int64"}}),
    "another unit": (WHOLE_NUMBERS, {"effort": {"register": 1, "scale": "1 A"}}),
    "too large": (WHOLE_NUMBERS, {"effort": {"register": 70000}}),
    "no target": (WHOLE_NUMBERS, dict.fromkeys(("effort_target", "velocity_target", "position_target"))),
    "not this target": (WHOLE_NUMBERS, {"effort_target": None}),
    "functions": (WHOLE_NUMBERS, {"read": 4}),
    "two registers by one": (FLOATS, {"write": 6}),
    "words": (WHOLE_NUMBERS, {"control": {**CONTROL, "on": []}}),
    "on is off": (WHOLE_NUMBERS, {"control": {**CONTROL, "on": [1, 0]}}),
    "faults": (WHOLE_NUMBERS, {"faults": {"high": "overcurrent"}}),
}


def mistake(folder, b, **keys) -> str:
    (what,) = mistakes_of(folder, CASE, {"id": 1, "registers": WHOLE_NUMBERS}, {"id": 2, **b}, **keys)
    return what


@pytest.mark.parametrize("change", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_in_the_map_is_one_line_at_its_place(change, tmp_path, said):
    registers = {key: value for key, value in {**change[0], **change[1]}.items() if value is not None}
    what = mistake(tmp_path, {"registers": registers}, watchdog=0.2)
    assert what.startswith("drivers[0].joints.b.registers")
    said(what)


def test_mistakes_beside_the_map(tmp_path, said):
    said(mistake(tmp_path, {}))
    said(mistake(tmp_path, {"registers": WHOLE_NUMBERS}, watchdog=0.03))  # it would trip between two commands
    # each an exchange of 15 and 21 bytes, a response and a pause of 1.75 ms, 2 · 80.5 ms at 1 Mbit/s
    said(mistake(tmp_path, {"registers": WHOLE_NUMBERS}, watchdog=0.2, response_time=0.08))
