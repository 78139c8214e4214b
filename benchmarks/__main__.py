"""`python -m benchmarks`, in a checkout: `--help` lists the options."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from cosim.cli.command_tree import CommandParser
from cosim.cli.main import run_program


def parse(words: list[str]) -> Callable[[], None]:
    """The measurement with its options. Raises InputError for unknown words, SystemExit after a help text."""
    import benchmarks

    parser = CommandParser(prog="python -m benchmarks", description=benchmarks.__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--only", metavar="TEXT", help="only rows whose name contains this, in upper or lower case")
    parser.add_argument(
        "--json",
        metavar="F.json",
        type=Path,
        default=Path("bench.json"),
        help="where to write the figures; - for stdout",
    )
    return partial(benchmarks.main, **vars(parser.parse_command(words)))


if __name__ == "__main__":
    run_program(parse)
