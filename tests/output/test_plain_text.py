"""What a command prints shows the characters that a terminal would obey."""

import io
import sys

import pytest

from cosim.core.errors import escaped
from cosim.output import console
from cosim.output.plain_text import BOLD, NOT_BOLD, PlainText, plain_output
from cosim.output.text_table import TextTable
from tests.kit.terminal import Terminal


def printed(*texts, **options):
    stream = io.StringIO()
    print(*texts, file=PlainText(stream), **options)
    return stream.getvalue()


def test_all_that_does_not_print_is_escaped():
    """Of all characters, only line breaks and tabs."""
    some = (*range(0x3000), *range(0x3000, sys.maxunicode, 97))
    odd = [c for c in map(chr, some) if not c.isprintable() and c not in "\n\t"]
    shown = printed("".join(odd), end="")
    assert shown.isprintable() and shown == "".join(map(escaped, odd))
    assert printed("a\tb\nµ 关节 🤖 ─ ²") == "a\tb\nµ 关节 🤖 ─ ²\n"
    assert printed("\x1b[2J", "\u202etxt", sep="\n") == "\\u001b[2J\n\\u202etxt\n"


def test_lines_that_are_written_at_once_are_escaped():
    stream = io.StringIO()
    PlainText(stream).writelines(["\x1b[2J\n", "\x9b2J\n"])
    assert stream.getvalue() == "\\u001b[2J\n\\u009b2J\n"


def test_headings_of_tables_are_bold():
    assert printed(f"{BOLD}joint{NOT_BOLD}") == f"{BOLD}joint{NOT_BOLD}\n"


def test_a_row_of_a_table_is_one_line():
    table = TextTable(["joint"], ["error"])
    table.add_row("a\nequal  to the bit", "1")
    assert [*table.lines()][2:] == ["a\\nequal  to the bit      1"]


@pytest.mark.parametrize("name", ["a\x1b[2J\rb", "[/b] [red]", "\u202e"])
def test_lines_that_move_the_cursor_show_names_as_they_are(name):
    terminal = Terminal()
    with plain_output(sys.stdout, terminal.stream):
        console.write_line(f"running {name}")
        with console.progress(name) as show:
            assert show is not None
            show(0.5)
    shown = escaped(name)
    terminal.wait_for("running")
    terminal.close()
    assert terminal.text.startswith(f"\r\x1b[Krunning {shown}")
    assert terminal.text.count(shown) >= 2 and "\x1b[2J" not in terminal.text
    assert "\\u001b[9" not in terminal.text  # of the bar
