"""The cause of a stop as a word, for every sentence that a run can end with."""

import pytest

from cosim.control.limits import LIMITS
from cosim.execution.stop_cause import OTHERS, UNKNOWN, WORDS, cause_of

MOTION = ("position", "unseen_motion", "tracking_error", "velocity", "effort", "effort_rate", "power")
FIELDS = {
    **dict.fromkeys(MOTION, "1 rad"),
    **{"temperature": "90 degC", "residual_energy": "-1 J", "load_residual_energy": "1 J"},
    **dict.fromkeys(("shadow_effort", "shadow_drive", "shadow_position", "shadow_slip"), "1 N*m"),
    **{"commanded_effort": "1 N*m", "units": "moves 13 times as far as it is commanded", "units_check": "check"},
    "joint": "elbow 2",
}  # fmt: skip
SENTENCES = {
    "joint 'a' has sent no feedback for 51 ms, more than the 50 ms of guard.stale; check": ("stale", "a"),
    "the load motor of 'a' has sent no feedback for 51 ms, more than the 50 ms": ("stale", "a"),
    "joint 'a' is not finite (position nan rad, velocity 0 rad/s); check": ("not_finite", "a"),
    "joint 'a' is commanded an effort that is not finite (at 0 rad, 0 rad/s); check": ("not_finite", "a"),
    "joint 'a': node 3 reports no number as its position or velocity; check": ("not_finite", "a"),
    "the command of joint 'a', 'b' is not finite and was not sent; check": ("not_finite", "a"),
    "joint 'a' jumped by 1 rad in 2 ms, more than its limit": ("jump", "a"),
    "the drive of joint 'a' reports over temperature (drive error 38); let": ("drive_fault", "a"),
    "the load motor of joint 'a' reports fault 3; clear it first": ("drive_fault", "a"),
    "the load motor of 'a' turns at 3 rad/s, the joint at": ("shaft", "a"),
    "can0: bus off: the controller counted too many errors; check": ("bus_off", ""),
    "/dev/ttyUSB0: the connection is lost (gone); check": ("connection", ""),
    "a command could not be sent by its deadline; the": ("connection", ""),
    "controller 'arm' failed: ValueError: x": ("controller", "arm"),
    "the driver of a, b failed: ValueError: x": ("driver", "a, b"),
    "joint 'a' melted; cool it": (UNKNOWN, ""),
}


@pytest.mark.parametrize("sentence", SENTENCES)
def test_the_word_of_a_sentence(sentence):
    assert cause_of(f"stopped at tick 7 (t = 0.007 s): {sentence}") == SENTENCES[sentence]


def test_every_word_has_a_sentence_here():
    assert {word for word, _ in SENTENCES.values()} == {*OTHERS, UNKNOWN}
    assert len(set(WORDS)) == len(WORDS)


@pytest.mark.parametrize("unit", ["rad", "m"])
@pytest.mark.parametrize("row", LIMITS, ids=lambda row: row.key)
def test_the_word_of_a_limit_is_its_key(row, unit):
    """Also after a controlled stop; other fixes may follow the cause."""
    for template in filter(None, (row.reason, row.controlled_stop)):
        limit = row.show([-1.0, 1.5][: len(row.bound_keys)], unit)
        what = template.format(**FIELDS, limit=limit).split("; ")[0]
        assert cause_of(f"stopped at tick 7 (t = 1 s): joint 'elbow 2' {what}; fix it") == (row.key, "elbow 2")
