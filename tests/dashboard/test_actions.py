"""Which buttons a page has in which situation."""

import pytest

from cosim.apps.dashboard.actions import COMMANDS, Situation, control_buttons, control_line, run_buttons, tunable
from cosim.execution.remote.requests import COMMANDS as KNOWN


def now(state: str, **parts) -> Situation:
    return Situation(**{"state": state, "real": False, "own": True, "controlled": True, "mine": True} | parts)


@pytest.mark.parametrize(
    ("situation", "buttons"),
    [
        (now("starting", controlled=False, mine=False), ()),
        (now("waiting"), ("Start", "Stop")),
        (now("running"), ("Pause", "Stop")),
        (now("paused"), ("Resume", "Step", "Stop")),
        (now("stopping"), ()),
        (now("ended", controlled=False, mine=False), ("Start again",)),
        (now("failed", controlled=False, mine=False), ("Start again",)),
        (now("gone", controlled=False, mine=False), ("Start again",)),
        (now("gone", own=False, controlled=False, mine=False), ()),
        (now("running", mine=False), ()),
        (now("waiting", real=True), ("Arm the motors", "Stop")),
        (now("armed", real=True), ("Start", "Stop")),
        (now("running", real=True), ("Stop",)),  # real motors are not paused
        (now("failed", real=True, controlled=False, mine=False), ("Connect again",)),
    ],
)
def test_only_what_can_be_done_has_a_button(situation: Situation, buttons: tuple[str, ...]) -> None:
    assert run_buttons(situation) == buttons


def test_control_is_taken_given_back_or_taken_over() -> None:
    assert control_buttons(now("running")) == ("Release control",)
    assert control_buttons(now("running", mine=False)) == ("Take control",)
    assert control_buttons(now("running", mine=False, owner="tuner")) == ("Take it over",)
    assert control_buttons(now("running", controlled=False, mine=False)) == ()
    assert control_buttons(now("ended", mine=False)) == ()


def test_gains_are_chosen_with_control_or_for_the_next_run() -> None:
    assert tunable(now("running")) and tunable(now("ended", mine=False))
    assert not tunable(now("running", mine=False)) and not tunable(now("ended", own=False, mine=False))


LINES = {
    "starting": now("starting"),
    "running": now("running"),
    "real motors": now("waiting", real=True),
    "nobody": now("running", mine=False),
    "another client": now("running", mine=False, owner="tuner"),
    "no socket": now("running", own=False, controlled=False, mine=False),
    "no answer": now("running", own=False, controlled=False, mine=False, socket=True),
    "the next run": now("failed", mine=False),
    "the next run here": now("gone", own=False, mine=False),
}


@pytest.mark.parametrize("what", LINES)
def test_who_has_control_is_said(what: str, said) -> None:
    said(control_line(LINES[what]))


def test_every_button_is_a_command_of_the_socket() -> None:
    assert set(COMMANDS.values()) <= set(KNOWN)
