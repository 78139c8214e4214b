"""Processes that a test has started: their children, their memory, and waiting for what they do."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Found = TypeVar("Found")
TIMEOUT = 60.0  # s: for a busy machine


def until(condition: Callable[[], Found], timeout: float = TIMEOUT) -> Found:
    """What the condition returns, once that is true; a test that waits for too long fails."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.01)
    raise AssertionError(f"nothing happened within {timeout:g} s")


def child(pid: int, module: str, number: int = 0) -> int:
    """The process that `pid` has started with `python -m module`; number: of several, in the order of their start."""
    found = [each for each in _children(pid) if module.encode() in Path(f"/proc/{each}/cmdline").read_bytes()]
    return sorted(found)[number]


def _children(pid: int) -> list[int]:
    """Of all of its threads."""
    threads = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(word) for thread in threads for word in thread.read_text().split()]


def memory(pid: int) -> int:
    """Bytes that are in use."""
    words = Path(f"/proc/{pid}/status").read_text().partition("VmRSS:")[2].split()
    return int(words[0]) << 10


def runs(pid: int) -> bool:
    """False also for one that has ended and that nobody has asked about yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
