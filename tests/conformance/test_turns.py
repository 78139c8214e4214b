"""A drive may have lost whole turns without power: its first position is folded into the limits, or is not known.

Each family in Python and in machine code.
"""

import numpy as np
import pytest

from cosim.core.units import TURN
from cosim.rig.rig import Rig
from cosim.rig.sections.rig_spec import read_rig
from tests.conformance.marks import ENGINES, drivers, over, with_each
from tests.conformance.test_life_cycle import QUANTUM

from .families import SCALES, START, Bench, addresses, rig, section, stepped_cases, write_rig

LOST = {"a": 1, "b": -1}  # turns of the drives; further ones are outside what some of the protocols carry
WAY = 0.05  # rad
WITHIN_A_TURN = {"vesc", "dynamixel"}  # what these drives report first


def lost(bench, **turns):
    def jump():
        for motor, count in zip(bench.motors, turns.values(), strict=True):
            motor.jump = count * TURN

    bench.there(jump)


def at(bench, positions):
    return np.abs(bench.out.position - positions).max() < 0.4 * WAY


@with_each("mode", ["effort", "position"], ENGINES)
def test_lost_turns_are_folded_into_the_limits_in_feedback_and_commands(case, mode, tmp_path):
    with Bench(case, tmp_path, mode=mode) as bench:
        lost(bench, **LOST)
        driver = bench.open(mode)
        np.testing.assert_allclose(bench.out.position, START, atol=2 * QUANTUM)
        shifts = [shift for _, shift in driver.added_turns()]
        if case.family not in WITHIN_A_TURN:
            assert [turns for turns, _ in driver.added_turns()] == [-LOST[name] for name in LOST]
            assert shifts == pytest.approx([-LOST[name] * TURN / SCALES[name] for name in LOST])
        goal = np.array(START) + WAY
        gains = {"kp": [0.8, 0.2], "kd": [0.08, 0.02]} if mode == "effort" else {}
        bench.drive(lambda: at(bench, goal), position=goal, **gains)
        np.testing.assert_allclose(bench.truth[0], goal, atol=0.5 * WAY)


@drivers
def test_the_turns_are_found_anew_with_each_connection(case, tmp_path):
    with Bench(case, tmp_path) as bench:
        bench.open()
        bench.driver.close()
        lost(bench, **LOST)
        bench.open()
        np.testing.assert_allclose(bench.out.position, START, atol=2 * QUANTUM)


@drivers
def test_a_turn_within_a_connection_is_a_motion(case, tmp_path):
    """What happens while the drive has power is not corrected: it is refused as a jump."""
    with Bench(case, tmp_path) as bench:
        bench.open()
        lost(bench, a=0, b=1)
        if case.family not in WITHIN_A_TURN:
            assert bench.fresh().position[1] == pytest.approx(START[1] + TURN, abs=2 * QUANTUM)


@over(stepped_cases()[0])
def test_what_is_known_of_the_turns_follows_from_the_limits_and_the_rig(case, tmp_path):
    def known(limits, **wiring):
        data = rig(section(case, tmp_path), addresses(case))
        for joint in data["joints"].values():
            joint["limits"] |= limits
        for wired in data["drivers"][0]["joints"].values():
            wired |= wiring
        spec = read_rig(write_rig(tmp_path / "rig.yaml", data))
        return Rig(spec, interpret=True).contexts[spec.drivers[0].name].turns

    assert known({}) == ("folded", "folded")
    assert known({"lower": -3, "upper": 3}) == ("ambiguous", "folded")  # a has a ratio of 2
    assert known({"lower": -4, "upper": 4}) == ("ambiguous", "ambiguous")
    assert known({"lower": -4, "upper": 4}, turns="kept") == ("known", "known")


@drivers
def test_a_drive_that_keeps_its_turns_is_believed(case, tmp_path):
    def keeps(data):
        for wired in data["drivers"][0]["joints"].values():
            wired["turns"] = "kept"

    with Bench(case, tmp_path, host=keeps) as bench:
        lost(bench, **LOST)
        bench.open()
        if case.family not in WITHIN_A_TURN:
            expected = [start + LOST[name] * TURN / SCALES[name] for name, start in zip(LOST, START, strict=True)]
            np.testing.assert_allclose(bench.out.position, expected, atol=2 * QUANTUM)
