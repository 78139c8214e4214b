"""The question before motors are switched on: what is shown, who agrees, and that everything else is a no."""

import errno
import io

import pytest

from cosim.cli.confirm import confirm
from cosim.core.errors import InputError

LINES = ["elbow moves on can0, node 3", "  position -90 to 90 deg"]
SHOWN = "elbow moves on can0, node 3\n  position -90 to 90 deg\n"
ASKED = SHOWN + "Type yes to switch the motors on: "

FAILURES = [KeyboardInterrupt(), OSError(errno.EIO, "gone"), UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no text")]


class Terminal(io.StringIO):
    """Somebody who types, or something that happens meanwhile."""

    def __init__(self, answer: str | BaseException) -> None:
        super().__init__(answer if isinstance(answer, str) else "")
        self.answer = answer

    def isatty(self):
        return True

    def readline(self, size=-1):
        if not isinstance(self.answer, str):
            raise self.answer
        return super().readline(size)


def asked(stdin, yes=False):
    """(what was printed, the complaint or None)."""
    out = io.StringIO()
    try:
        confirm(LINES, yes, stdin, out)
    except InputError as error:
        return out.getvalue(), error
    return out.getvalue(), None


@pytest.mark.parametrize("answer", ["yes\n", " yes \n", "yes\nno\n"])
def test_yes_is_yes(answer):
    shown, error = asked(Terminal(answer))
    assert error is None
    assert shown == ASKED


NO = ["\n", "no\n", "y\n", "Yes\n", "YES\n", "yes please\n", "ye s\n", "\nyes\n", "", "yes", *FAILURES]


@pytest.mark.parametrize("answer", NO)
def test_anything_else_is_no(answer):
    shown, error = asked(Terminal(answer))
    assert str(error) == "not confirmed, the motors stay off" and error.exit_code == 2
    assert shown == ASKED + ("" if str(answer).endswith("\n") else "\n")


def closed():
    stdin = Terminal("yes\n")
    stdin.close()
    return stdin


@pytest.mark.parametrize("stdin", [lambda: io.StringIO("yes\n"), closed, lambda: None], ids=["pipe", "closed", "none"])
def test_without_a_terminal_there_is_no_confirmation(stdin):
    shown, error = asked(stdin())
    reported = "--yes: real motors would move and there is no terminal to confirm on; check the list and pass --yes"
    assert str(error) == reported and error.exit_code == 2
    assert shown == SHOWN


@pytest.mark.parametrize("stdin", [io.StringIO("no\n"), Terminal("no\n"), None])
def test_with_yes_there_is_no_question_but_a_report(stdin):
    assert asked(stdin, yes=True) == (SHOWN, None)
    assert stdin is None or stdin.tell() == 0


def test_what_will_move_is_on_the_screen_before_the_answer():
    """Output that is kept back until a line is full would show the question after it."""

    class Screen(io.StringIO):
        seen = ""

        def flush(self):
            self.seen = self.getvalue()

    screen = Screen()

    class Watching(Terminal):
        def readline(self, size=-1):
            assert screen.seen == ASKED
            return "yes\n"

    confirm(LINES, False, Watching(""), screen)


def test_names_in_a_file_cannot_hide_what_is_asked():
    out = io.StringIO()
    confirm(["rig \x1b[2K\x1b[1A\u202e\nname"], True, None, out)
    assert out.getvalue() == "rig \\u001b[2K\\u001b[1A\\u202e\\nname\n"
