"""The confirmation before real motors are switched on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from cosim.errors import InputError

QUESTION = "Type yes to switch the motors on: "


def check_confirmable(yes: bool, stdin: TextIO | None) -> None:
    """Raises InputError without a terminal on which a human could confirm."""
    if not yes and (stdin is None or stdin.closed or not stdin.isatty()):
        raise InputError(
            "real motors would move and there is no terminal to confirm on; check the list and pass --yes", "--yes"
        )


def confirm(lines: Sequence[str], yes: bool, stdin: TextIO | None, stdout: TextIO) -> None:
    """Print `lines`, the motors that will move and their limits, and wait for the answer yes.

    yes: confirmed on the command line. Raises InputError for any other answer, and without a terminal.
    """
    for line in lines:
        print(line, file=stdout)
    stdout.flush()
    if yes:
        return
    check_confirmable(yes, stdin)
    assert stdin is not None
    print(QUESTION, end="", file=stdout, flush=True)
    try:
        answer = stdin.readline()
    except (KeyboardInterrupt, OSError, ValueError):  # Ctrl-C, a closed terminal, invalid bytes
        answer = ""
    if not answer.endswith("\n"):
        answer = ""  # Ctrl-D
        print(file=stdout, flush=True)  # end the line of the question
    if answer.strip() != "yes":
        raise InputError("not confirmed, the motors stay off")
