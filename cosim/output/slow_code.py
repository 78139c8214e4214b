"""A line for Python code of the user that does not return: a command that waits for it must not be silent."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from cosim.core.errors import PROGRAM, escaped

PATIENCE = 5.0  # s
# this program, Python and the libraries
OTHERS = (*PROGRAM, *{Path(prefix) for prefix in (sys.prefix, sys.base_prefix)})


@contextmanager
def named_when_slow() -> Iterator[None]:
    """Within this block a line on stderr names the user's function in which this thread has been for PATIENCE."""
    thread, ended = threading.get_ident(), threading.Event()

    def watch() -> None:
        before = None
        while not ended.wait(PATIENCE):
            call = _call_of_user(sys._current_frames().get(thread))
            if call is not None and call is before:
                code = call.f_code
                place = f"{code.co_filename}:{call.f_lineno}"
                what = f"'{code.co_name}' has not returned for {PATIENCE:g} s; check its loops, or press Ctrl-C"
                print(escaped(f"{place}: {what}"), file=sys.stderr, flush=True)  # above a bar of rich, too
                return
            before = call

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def _call_of_user(frame: FrameType | None) -> FrameType | None:
    """The innermost call of a function in a file of the user."""
    while frame is not None and not _is_of_user(Path(frame.f_code.co_filename)):
        frame = frame.f_back
    return frame


def _is_of_user(file: Path) -> bool:
    library = "site-packages" in file.parts or any(file.is_relative_to(other) for other in OTHERS)
    return file.suffix == ".py" and not library
