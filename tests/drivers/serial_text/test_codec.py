"""Patterns of lines, in both directions."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosim.plugins.drivers.serial_text import codec
from cosim.plugins.drivers.serial_text.codec import Pattern, pattern_of
from cosim.rig.rig import load_rig
from tests.conformance.families import rig

numbers = st.floats(allow_nan=False, allow_infinity=False, width=32)


@given(st.integers(0, 255), numbers, numbers)
def test_what_a_pattern_writes_it_reads(axis, position, velocity):
    pattern = Pattern("S{id} p={position:.17g}, {velocity:.17g} {{x}}")
    values = {"id": axis, "position": position, "velocity": velocity}
    assert pattern.match(pattern.text(values)) == values


@given(st.text())
def test_any_text_is_read_or_not(text):
    found = Pattern("S{id} {position} {mode}").match(text)
    assert found is None or set(found) == {"id", "position", "mode"}


@given(st.text(max_size=30))
def test_any_pattern_is_one_or_a_mistake(text):
    try:
        pattern = Pattern(text)
    except ValueError as error:
        assert "\n" not in str(error)
    else:
        assert set(pattern.fields) <= set(codec.FIELDS)


@pytest.mark.parametrize(
    ("text", "line", "values"),
    [
        ("P{position} V{velocity}", "P1.5 V-2e-3", {"position": 1.5, "velocity": -0.002}),
        ("P{position}  V{velocity}", "P+.5   V3.", {"position": 0.5, "velocity": 3.0}),
        ("pos:{position}", "POS:1", {"position": 1.0}),
        ("{position},{velocity},{fault}", "0,-0,12", {"position": 0.0, "velocity": 0.0, "fault": 12}),
        ("<{id}> {mode}", "<7> RUN", {"id": 7, "mode": "RUN"}),
        ("a.b {position}", "axb 1", None),
        ("P{position}", "P1 2", None),
        ("P{position}", "P1_0", None),
        ("P{position}", "P0x10", None),
        ("F{fault}", "F-1", None),
    ],
)
def test_lines_of_a_pattern(text, line, values):
    assert Pattern(text).match(line) == values


def test_numbers_in_text_and_their_resolution():
    assert math.isnan(Pattern("P{position}").match("Pnan")["position"])
    assert Pattern("P{position}").match("P-inf")["position"] == -math.inf
    # the resolution of a format
    assert Pattern("T{effort:.3f}").resolution("effort") == 1e-3
    assert Pattern("T{effort}").resolution("effort") == Pattern("T{effort:.3g}").resolution("effort") == 0.0


PATTERNS = (
    *("P{postion}", "{position}{velocity}", "{position} {position}", "{position!r}", "{position:,}", "{position:x}"),
    *("{id:.2f}", "P{position", "P}", "P{position.real}", "P\n{position}", "P{}"),
)


@pytest.mark.parametrize("text", PATTERNS)
def test_a_wrong_pattern_is_one_line_with_its_fix(text, said):
    with pytest.raises(ValueError) as caught:
        Pattern(text)
    assert "\n" not in str(caught.value)
    said(caught.value)


def test_a_pattern_has_the_fields_of_its_place():
    with pytest.raises(ValueError, match=r"^unknown field 'velocity'; known: id, position$"):
        pattern_of(("id", "position"))("P{velocity}")
    with pytest.raises(ValueError, match=r"^lacks the field '{position}'; add it$"):
        pattern_of(("id", "position"), ("position",))("P{id}")
    assert pattern_of(("id",), ("id",))("") == ""


def test_the_bus_load_is_that_of_the_longest_lines(tmp_path):
    """Of two axes at 115200 bit/s, every 20 ms."""
    data = rig({"type": "serial_text", "port": {"port": "/dev/ttyUSB0"}}, [{"id": 1}, {"id": 2}])
    (tmp_path / "rig.yaml").write_text(json.dumps(data))
    (load,) = load_rig(tmp_path / "rig.yaml").bus_loads.values()
    command, poll = "T1 -0.333333*00\n", "Q1*00\n"
    state = "S1 -1.234568e-05 -1.234568e-05 -1.234568e-05 0 0*00\n"
    assert load == pytest.approx(2 * 10 * len(command + poll + state) / 115200 / 20e-3, rel=0.03)
