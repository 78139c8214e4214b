"""The commands and their groups: the help text, and former names."""

import re

import pytest

from cosim.cli.command_line import all_commands
from cosim.cli.command_tree import FORMER, GROUPS, HEADINGS, Commands
from tests.kit.command import Command

COMMANDS = all_commands()


def test_the_help_text_fits_one_screen_and_has_every_command_under_five_headings():
    lines = COMMANDS.help_text().splitlines()
    assert len(HEADINGS) == 5 and len(lines) <= 45 and max(map(len, lines)) <= 80
    listed = [name for names in HEADINGS.values() for name in names]
    assert len(listed) == len(set(listed))
    assert set(listed) == {name.partition(" ")[0] for name in COMMANDS.parsers}
    assert {name.partition(" ")[0] for name in COMMANDS.parsers if " " in name} == GROUPS.keys()


@pytest.mark.parametrize("name", [*COMMANDS.parsers])
def test_the_help_of_a_command_is_one_imperative_sentence(name):
    about = COMMANDS.parsers[name].description or ""
    assert re.fullmatch(r"[A-Z][a-z]+,? [^.]+\.", about) and not about.split()[0].endswith("s")


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_alone_lists_its_commands(command: Command, group: str):
    out = command.prints(group)
    assert re.findall(rf"^  ({group} \w+) ", out, flags=re.MULTILINE) == [
        name for name in COMMANDS.parsers if name.startswith(f"{group} ")
    ]


@pytest.mark.parametrize("former", FORMER)
def test_a_former_name_is_refused_with_the_new_one(command: Command, former: str):
    assert command.refuses(former, "rig.yaml") == [f"cosim: 'cosim {former}' is now {FORMER[former]}"]
    new = re.findall(r"^'cosim (.*)'$", FORMER[former])
    assert new == [] or new[0] in COMMANDS.parsers


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("drives jogg", "cosim drives: there is no command 'jogg'; did you mean 'jog'?; see cosim drives --help"),
        ("comparr a b", "cosim: there is no command 'comparr'; did you mean 'compare'?; see cosim --help"),
        ("tune rig.yaml", "cosim tune: there is no command 'rig.yaml'; gains are tuned by 'cosim tune gains RIG'; see"),
        ("export a.mcap", "cosim export: there is no command 'a.mcap'; a recording is exported by 'cosim export"),
        ("--fast", "cosim: there is no option '--fast'; see cosim --help"),
    ],
)
def test_unknown_words_are_refused_with_what_is_near(command: Command, words: str, hint: str):
    (error,) = command.refuses(*words.split())
    assert error.startswith(hint)


def test_a_command_without_a_heading_is_refused():
    with pytest.raises(LookupError, match="the command 'weigh' stands under no heading"):
        Commands().add_command("weigh", print)
