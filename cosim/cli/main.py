"""The command `cosim`. Exit codes: 0 done, 1 the run failed or was interrupted, 2 the input is wrong."""

from __future__ import annotations

import io
import sys


def main() -> None:
    """Entry point: an error is one line on stderr and an exit code, without a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show µ shows ?
    try:
        code = _run()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        code = 1
    sys.exit(code)


def _run() -> int:
    """The exit code of the command. Imports are here because Ctrl-C may come during them."""
    import typer

    from cosim.cli.commands import app
    from cosim.errors import CosimError
    from cosim.execution.posix_signals import raise_on_termination

    raise_on_termination()  # an orderly stop completes the recording
    try:
        # an interrupt is an exception or, early on, the exit code 130
        if app(standalone_mode=False):
            raise KeyboardInterrupt
    except CosimError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except typer.Abort:
        return 1
    except OSError as error:
        print(f"cannot write: {error.strerror}; make room or choose another place", file=sys.stderr)
        return 1
    except Exception as error:
        # typer's own complaints about the command line
        show, explain = getattr(error, "show", None), getattr(error, "format_message", None)
        if show is None or explain is None:
            raise
        command = getattr(getattr(error, "ctx", None), "command_path", "cosim")
        what = " ".join(explain().split()).rstrip(".")
        if what:
            print(f"{command}: {what}; see {command} --help", file=sys.stderr)
        else:
            show()  # the list of commands
        return getattr(error, "exit_code", 2)
    return 0
