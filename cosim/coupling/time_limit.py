"""Calls that must not take longer than a limit: a part that hangs is an error instead of a program that hangs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from cosim.errors import RunError


class HangingPart(RunError):
    """A part has exceeded its time limit. Its thread is abandoned: the part must not be called any more."""


def within(limit: float, what: str, fn: Callable[..., Any], *arguments: Any) -> Any:
    """fn(*arguments) in a thread of its own; its errors are raised here. Raises HangingPart: `what` takes longer than
    the limit [s]."""
    results: list[Any] = []
    failures: list[BaseException] = []

    def work() -> None:
        try:
            results.append(fn(*arguments))
        except BaseException as error:
            failures.append(error)

    # a daemon: it is not joined at the exit of the program
    thread = threading.Thread(target=work, name=what, daemon=True)
    thread.start()
    thread.join(limit)
    if thread.is_alive():
        raise HangingPart(f"{what} has not ended after {limit:g} s; it hangs, or needs a longer time limit")
    if failures:
        raise failures[0]
    return results[0]
