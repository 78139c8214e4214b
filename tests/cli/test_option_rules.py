"""Options that would be ignored are refused, in one line."""

from __future__ import annotations

import pytest

from cosim.cli.command_line import command_parser
from cosim.cli.option_rules import NEEDED, USELESS
from tests.kit.command import Command


def test_the_rules_are_of_options_that_exist():
    commands = command_parser().commands.choices
    for rules in (NEEDED, USELESS):
        for name, of_command in rules.items():
            known = {option for action in commands[name]._actions for option in action.option_strings}
            assert {*of_command, *(other for others in of_command.values() for other in others)} <= known


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("analyze", "r", "--amplitude", "1"),
            "--amplitude: is for --measure or --excitation; add it, or take --amplitude out",
        ),
        (("analyze", "r", "--yes"), "--yes: is for --measure; add it, or take --yes out"),
        (
            ("analyze", "r", "--measure", "chirp", "--yes"),
            "--yes: is for --measure relay, which alone moves real motors here; take it out",
        ),
        (
            ("analyze", "r", "--joint", "a", "--excitation", "e.yaml", "--at=1"),
            "--at: has no effect beside --excitation; take one of them out",
        ),
        (
            ("derive", "r", "--graph", "--to", "latex"),
            "--to: is for --bondgraph or --equations; add it, or take --to out",
        ),
        (
            ("identify", "r", "--excite", "--training", "0.5"),
            "--training: has no effect beside --excite; take one of them out",
        ),
        (
            ("learn", "r", "--save", "a.csv", "--from", "a.mcap", "--iterations", "3"),
            "--iterations: has no effect beside --from; take one of them out",
        ),
        (
            ("tune", "r", "--on-hardware", "h", "--trial", "1", "--candidates", "2"),
            "--candidates: has no effect beside --trial; take one of them out",
        ),
    ],
)
def test_an_option_without_effect_is_refused(command: Command, words, message):
    assert command.refuses(*words) == [message]
