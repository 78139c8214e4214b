"""Mistakes in the patterns of a board: one line each, at its place."""

import json

import pytest

from cosim.rig.rig import load_rig
from tests.conformance.families import Case, rig
from tests.drivers.loading import mistakes_of

CASE = Case("serial_text", "pty", stepped=True)
PATTERNS = {
    "unknown field": {"state": "P{postion} V{velocity}"},
    "lacking field": {"state": "P{position}"},
    "field of others": {"effort": "T{velocity}"},
    "no text": {"poll": 5},
    "unknown pattern": {"answer": "{position}"},
    "empty poll": {"poll": ""},
    "identify alone": {"identify": ""},
    "no command": {"effort": "", "velocity": "", "position": ""},
    "no command of the mode": {"effort": ""},
    "no id": {"state": "{position} {velocity}"},
}
OTHERS = {
    "unit": {"scales": {"velocity": "1 deg"}},
    "words of modes": {"modes": {"off": "1"}},
    "text of a fault": {"faults": {"7": 7}},
}


@pytest.mark.parametrize(
    "keys", [{"patterns": p} for p in PATTERNS.values()] + [*OTHERS.values()], ids=[*PATTERNS, *OTHERS]
)
def test_a_mistake_is_one_line_at_its_place(keys, tmp_path, said):
    (what,) = mistakes_of(tmp_path, CASE, {"id": 1}, {"id": 2}, **keys)
    (key,) = keys
    assert what.startswith("drivers[0]") and key in what
    said(what)


def test_the_bus_load_is_that_of_the_longest_lines(tmp_path):
    """Of two axes at 115200 bit/s, every 20 ms."""
    data = rig({"type": "serial_text", "port": {"port": "/dev/ttyUSB0"}}, [{"id": 1}, {"id": 2}])
    (tmp_path / "rig.yaml").write_text(json.dumps(data))
    (load,) = load_rig(tmp_path / "rig.yaml").bus_loads.values()
    command, poll = "T1 -0.333333*00\n", "Q1*00\n"
    state = "S1 -1.234568e-05 -1.234568e-05 -1.234568e-05 0 0*00\n"
    assert load == pytest.approx(2 * 10 * len(command + poll + state) / 115200 / 20e-3, rel=0.03)
