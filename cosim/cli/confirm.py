"""The confirmation before real motors are switched on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TextIO

from cosim.core.errors import InputError, escaped
from cosim.execution.motion_plan import MotionPlan
from cosim.rig.run.consent import Consent, RunQuestion


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
    _show(lines, stdout)
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


def _show(lines: Sequence[str], stdout: TextIO) -> None:
    for line in lines:
        print(escaped(line), file=stdout)  # names in a file could hide what is asked
    stdout.flush()


class MotorQuestion(RunQuestion):
    """Asks before each of several runs with real motors on the terminal."""

    def __init__(self, yes: bool, stdin: TextIO | None, stdout: TextIO) -> None:
        """yes: confirmed on the command line."""
        super().__init__(lambda lines: confirm(lines, yes, stdin, stdout))
        self._yes, self._stdin, self._stdout = yes, stdin, stdout
        self.in_advance = yes

    def begin(self, lines: Sequence[str]) -> None:
        """Print `lines`. Raises InputError without a terminal on which a human could confirm."""
        _show(lines, self._stdout)
        check_confirmable(self._yes, self._stdin)

    def note(self, line: str) -> None:
        _show([line], self._stdout)


class MotorConsent(Consent):
    """Asks before a run with real motors: first what would move, then how far it will go from where it stands."""

    def __init__(
        self, lines: Sequence[str], yes: bool, allow_turns: bool, stdin: TextIO | None, stdout: TextIO
    ) -> None:
        """Prints `lines`; yes, allow_turns: confirmed on the command line. Raises InputError without a terminal."""
        super().__init__(self._confirmed)
        self._yes, self._allow_turns, self._stdin, self._stdout = yes, allow_turns, stdin, stdout
        self.in_advance = yes
        self._question = MotorQuestion(yes, stdin, stdout)
        self._question.begin(lines)

    def note(self, line: str) -> None:
        self._question.note(line)

    def _confirmed(self, plan: MotionPlan, moved: str) -> bool:
        """See `Consent`. Raises InputError unless all that moves is confirmed."""
        lines = [f"{moved}; motors are off:"] if moved else ["from where the joints stand, motors off:"]
        shown = [*lines, *(f"  {line}" for line in plan.lines())]
        if self._yes and not self._allow_turns:
            plan.check_turns("pass --allow-turns")
        self._question(shown)
        doubtful = plan.confirm_turns
        if doubtful and not self._allow_turns:
            confirm([f"  {joint.doubt}" for joint in doubtful], False, self._stdin, self._stdout, TURNS)
        return bool(doubtful)


TURNS = Asking(
    "Type yes again to confirm these turns: ",
    "turns of joints are to be confirmed and there is no terminal to confirm on; pass --allow-turns",
    "not confirmed, the motors stay off",
    "--allow-turns",
)
