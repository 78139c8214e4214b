"""Mistakes in the patterns of a board: one line each, at its place."""

from __future__ import annotations

import json

import pytest

from cosim.errors import InputError
from cosim.rig.rig import load_rig
from tests.conformance.families import rig

PORT = {"port": "/dev/ttyUSB0"}
AT = "1 drivers[0]"
MISTAKES = {
    f"{AT}.patterns.state: unknown field 'postion'; did you mean 'position'?": {
        "patterns": {"state": "P{postion} V{velocity}"}
    },
    f"{AT}.patterns.state: lacks the field '{{velocity}}'; add it": {"patterns": {"state": "P{position}"}},
    f"{AT}.patterns.effort: unknown field 'velocity'; known: id, mode, watchdog, effort_limit, effort": {
        "patterns": {"effort": "T{velocity}"}
    },
    f"{AT}.patterns.poll: expected text, got 5; put it in quotes": {"patterns": {"poll": 5}},
    f"{AT}.patterns: unknown key 'answer'; known: enable, disable, effort, velocity, position, poll, clear, identify,"
    " state, identity": {"patterns": {"answer": "{position}"}},
    f"{AT}.patterns: 'poll' is empty; give the text": {"patterns": {"poll": ""}},
    f"{AT}.patterns: give both 'identify' and 'identity', or make both empty": {"patterns": {"identify": ""}},
    f"{AT}.patterns: no mode has a command; give 'effort', 'velocity' or 'position'": {
        "patterns": {"effort": "", "velocity": "", "position": ""}
    },
    f"{AT}.patterns.effort: mode 'effort' needs a command; give it, or another 'mode'": {"patterns": {"effort": ""}},
    f"{AT}.patterns.state: the answers of 2 axes need the field '{{id}}'; add it": {
        "patterns": {"state": "{position} {velocity}"}
    },
    f"{AT}.scales.velocity: unit 'deg' does not fit here; use rad/s, mrad/s, deg/s, rpm, turn/s": {
        "scales": {"velocity": "1 deg"}
    },
    f"{AT}.modes: each mode has a word of its own, without blanks and asterisks": {"modes": {"off": "1"}},
    f"{AT}: 'faults' has a text for each fault code; '7' has none": {"faults": {"7": 7}},
    f"{AT}.watchdog: must be longer than the period of 0.02 s, is 0.02 s": {"watchdog": 0.02},
}


@pytest.mark.parametrize("expected", MISTAKES)
def test_a_mistake_is_one_line_at_its_place(expected, tmp_path):
    data = rig({"type": "serial_text", "port": PORT, **MISTAKES[expected]}, [{"id": 1}, {"id": 2}])
    (tmp_path / "rig.yaml").write_text(json.dumps(data))
    with pytest.raises(InputError) as caught:
        load_rig(tmp_path / "rig.yaml").run(0.1)
    assert str(caught.value).removeprefix(f"{tmp_path}/rig.yaml:") == expected


def test_the_bus_load_is_that_of_the_longest_lines(tmp_path):
    """Of two axes at 115200 bit/s, every 20 ms."""
    data = rig({"type": "serial_text", "port": PORT}, [{"id": 1}, {"id": 2}])
    (tmp_path / "rig.yaml").write_text(json.dumps(data))
    (load,) = load_rig(tmp_path / "rig.yaml").bus_loads.values()
    command, poll = "T1 -0.333333*00\n", "Q1*00\n"
    state = "S1 -1.234568e-05 -1.234568e-05 -1.234568e-05 0 0*00\n"
    assert load == pytest.approx(2 * 10 * len(command + poll + state) / 115200 / 20e-3, rel=0.03)
