"""The confirmation before real motors are switched on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TextIO

from cosim.errors import InputError


class Asking(NamedTuple):
    """A question, the errors where nobody can answer it and for another answer than yes, and the option that is a
    yes."""

    question: str
    unanswerable: str
    refused: str
    option: str = "--yes"


MOTORS = Asking(
    "Type yes to switch the motors on: ",
    "real motors would move and there is no terminal to confirm on; check the list and pass --yes",
    "not confirmed, the motors stay off",
)


def check_confirmable(yes: bool, stdin: TextIO | None, asking: Asking = MOTORS) -> None:
    """Raises InputError without a terminal on which a human could confirm."""
    if not yes and (stdin is None or stdin.closed or not stdin.isatty()):
        raise InputError(asking.unanswerable, asking.option)


def confirm(lines: Sequence[str], yes: bool, stdin: TextIO | None, stdout: TextIO, asking: Asking = MOTORS) -> None:
    """Print `lines`, what will move or change and its limits, and wait for the answer yes.

    yes: confirmed on the command line. Raises InputError for any other answer, and without a terminal.
    """
    for line in lines:
        print(line, file=stdout)
    stdout.flush()
    if yes:
        return
    check_confirmable(yes, stdin, asking)
    assert stdin is not None
    print(asking.question, end="", file=stdout, flush=True)
    try:
        answer = stdin.readline()
    except (KeyboardInterrupt, OSError, ValueError):  # Ctrl-C, a closed terminal, invalid bytes
        answer = ""
    if not answer.endswith("\n"):
        answer = ""  # Ctrl-D
        print(file=stdout, flush=True)  # end the line of the question
    if answer.strip() != "yes":
        raise InputError(asking.refused)
