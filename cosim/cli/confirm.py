"""The question before real motors are switched on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from cosim.errors import InputError

QUESTION = "Type yes to switch the motors on: "


def confirm(lines: Sequence[str], yes: bool, stdin: TextIO | None, stdout: TextIO) -> None:
    """Print `lines`, what will move and within which limits, and return once somebody has agreed.

    yes: agreed already, on the command line. Raises InputError when the answer is anything but yes, or when there is no
    terminal to ask on.
    """
    for line in lines:
        print(line, file=stdout)
    stdout.flush()
    if yes:
        return
    if stdin is None or stdin.closed or not stdin.isatty():
        raise InputError("real motors would move and nobody can be asked; look at the list and say --yes", "--yes")
    print(QUESTION, end="", file=stdout, flush=True)
    try:
        answer = stdin.readline()
    except (KeyboardInterrupt, OSError, ValueError):  # Ctrl-C, a terminal that is gone, bytes that are no text
        answer = ""
    if not answer.endswith("\n"):
        answer = ""  # Ctrl-D
        print(file=stdout, flush=True)  # what follows begins its own line
    if answer.strip() != "yes":
        raise InputError("not confirmed, the motors stay off")
