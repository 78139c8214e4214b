"""The command `cosim`, and programs like it. Exit codes: 0 done, 1 the run failed or was interrupted, 2 the input is
wrong."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Parse = Callable[[list[str]], Callable[[], None]]


def main() -> None:
    """Entry point."""
    run_program(_parse)


def _parse(words: list[str]) -> Callable[[], None]:
    from cosim.cli.command_line import parse

    return parse(words)


def run_program(parse: Parse) -> None:
    """Parse the words of the command line, run what they say, and exit.

    An error is one line on stderr and an exit code, without a traceback.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show µ shows ?
    # threads for matrices far larger than a rig's, whose start takes as long as the import of numpy
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from cosim.output.plain_text import plain_output

        with plain_output(sys.stdout, sys.stderr):
            code = _run(parse)
    except KeyboardInterrupt as error:
        print(str(error) or "interrupted", file=sys.stderr)  # nothing is imported: a second one may come meanwhile
        code = 1
    sys.exit(code)


@contextmanager
def _warnings_of_runs() -> Iterator[None]:
    """Whatever command runs a rig passes on what the run warns of, each line once; one that prints a summary ignores
    them."""
    import warnings

    from cosim.core.errors import RunWarning

    said: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *place: Any, **further: Any) -> None:
        if not issubclass(category, RunWarning):
            others(message, category, *place, **further)
        elif (line := str(message)) not in said:
            said.add(line)
            print(f"warning: {line}", file=sys.stderr)

    with warnings.catch_warnings():
        others = warnings.showwarning
        warnings.showwarning = show
        warnings.simplefilter("always", RunWarning)
        yield


def _run(parse: Parse) -> int:
    """The exit code of the command. Imports are here because Ctrl-C may come during them."""
    from cosim.core.errors import CosimError, InputError, RunError, where_raised
    from cosim.execution.posix_signals import raise_on_termination

    raise_on_termination()  # an orderly stop completes the recording
    try:
        command = parse(sys.argv[1:])  # which exits by itself after a help text
        try:
            with _warnings_of_runs():
                command()
        except SystemExit as ended:  # no command does: code of a user may anywhere, and no code 0 hides that
            where = where_raised(ended)
            print(f"code that was called ended the program ({where}); raise an exception instead", file=sys.stderr)
            return 1
    except CosimError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:  # what reads the output has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        place = str(error.filename) if error.filename else None
        if error.errno == errno.ENAMETOOLONG:
            failed = InputError("the name is too long; give a shorter one", place)
        else:
            failed = RunError(f"cannot write: {error.strerror}; make room or choose another place", place)
        print(failed, file=sys.stderr)
        return failed.exit_code
    return 0
