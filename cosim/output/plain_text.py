"""What a command prints: names in files of others could hold what a terminal obeys, which would hide or forge lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, TextIO, cast

from cosim.core.errors import escaped

BOLD, NOT_BOLD = "\x1b[1m", "\x1b[0m"  # all that the program itself prints of this kind
# candidates: most of what is printed is ASCII
_ODD = re.compile(rf"{re.escape(BOLD)}|{re.escape(NOT_BOLD)}|[^\t\n -~]")


class PlainText:
    """A stream in which all that does not print is escaped, but for line breaks, tabs and the bold of tables.

    direct: the stream itself, for what moves the cursor on purpose.
    """

    def __init__(self, stream: TextIO) -> None:
        self.direct = self.rich_proxied_file = stream  # rich, which moves the cursor, writes to the one of this name

    def write(self, text: str) -> int:
        self.direct.write(_ODD.sub(_shown, text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.direct, name)


def _shown(found: re.Match[str]) -> str:
    text = found[0]
    return text if text in (BOLD, NOT_BOLD) else escaped(text)


@contextmanager
def plain_output(stdout: TextIO, stderr: TextIO) -> Iterator[None]:
    """Within this block the streams of the process are these, as PlainText."""
    with redirect_stdout(cast(TextIO, PlainText(stdout))), redirect_stderr(cast(TextIO, PlainText(stderr))):
        yield


def direct(stream: TextIO) -> TextIO:
    """The stream that `plain_output` wraps."""
    return stream.direct if isinstance(stream, PlainText) else stream
