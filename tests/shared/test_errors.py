"""Messages are one line of printable characters, of which a reader sees the beginning and the end."""

import json
import sys

import pytest

from cosim.core.errors import LONGEST_LINE, LONGEST_WORD, InputError, escaped


def test_escapes_are_those_of_json():
    # all of the first plane, and what is not assigned above it, of which there is a million, now and then
    codes = [*range(0x11000), *range(0x11000, sys.maxunicode + 1, 101), sys.maxunicode]
    odd = [c for c in map(chr, codes) if not c.isprintable()]
    shown = list(map(escaped, odd))
    assert "".join(shown).isascii() and [json.loads(f'"{text}"') for text in shown] == odd
    assert escaped('a "µ" 关节 🤖\\') == 'a "µ" 关节 🤖\\'


@pytest.mark.parametrize("letter", ["n", "\x1b", "关", "\U000e0001"])
def test_a_long_name_leaves_room_for_the_message(letter):
    message = str(InputError("cannot be read; check the path", f"folder/{5000 * letter}.mcap"))
    assert message.startswith("folder/") and message.endswith(".mcap: cannot be read; check the path")
    assert len(message) < LONGEST_WORD + 50 and message.isprintable()


def test_a_path_of_usual_length_is_whole():
    path = "/".join(["folder"] * (LONGEST_WORD // 7))
    assert str(InputError("cannot be read", path)) == f"{path}: cannot be read"


def test_many_words_lose_their_middle():
    message = str(InputError("word " * LONGEST_LINE + "end"))
    assert message.startswith("word word") and message.endswith("word end") and len(message) < LONGEST_LINE
