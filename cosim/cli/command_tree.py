"""Commands in groups: how they are parsed, their help text, former names, and options that mean nothing without another
one, or beside one: they are refused, not ignored."""

from __future__ import annotations

from argparse import ArgumentParser, HelpFormatter, Namespace
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NoReturn

from cosim.core.errors import InputError, did_you_mean

Rules = Mapping[str, Mapping[str, Sequence[str]]]

_OF_HARDWARE = ("--trial", "--candidates", "--step-factor", "--yes")
_OF_COGGING = ("--order", "--speed", "--effort", "--travel", "--yes", "--clear-faults")
_OF_EQUATIONS = ("--symbols", "--frame", "--load", "--point-masses", "--formulation")
_OF_SEARCH = (
    *("--parameter", "--minimise", "--limit", "--plant", "--samples", "--robust", "--optimiser", "--trials", "--batch"),
    *("--seed", "--duration", "--session", "--resume", "--dask", "--set", "--overlay"),
)
# command -> option -> the options of which it needs one
NEEDED: Rules = {
    "analyze": {
        "--amplitude": ("--measure", "--excitation"),
        "--yes": ("--measure",),
        **dict.fromkeys(("--ripple", "--report"), ("--supplies",)),
    },
    "drives calibrate": dict.fromkeys(_OF_COGGING, ("--cogging",)),
    "derive": {
        **dict.fromkeys(("--joint", "--form"), ("--bondgraph",)),
        **dict.fromkeys(_OF_EQUATIONS, ("--equations",)),
        **dict.fromkeys(("--times", "--labels"), ("--picture",)),
        **dict.fromkeys(("--at", "--mount", "--on"), ("--equations", "--picture")),
        "--to": ("--bondgraph", "--equations"),
        "--json": ("--compare",),
    },
    "export code": {"--trust": ("--check",)},
    "replay": {"--to": ("--bus",), "--trust": ("--rerun", "--bus")},
    "run": {"--record-bus": ("--record",), "--format": ("--record",)},
    "tune gains": dict.fromkeys(_OF_HARDWARE, ("--on-hardware",)),
}
# command -> option -> the options that have no effect beside it
USELESS: Rules = {
    "analyze": {
        "--excitation": ("--at", "--recorded", "--plot", "--json"),
        "--orders": ("--joint", "--measure", "--hysteresis", "--recorded", "--excitation", "--plot", "--supplies"),
        "--response": ("--joint", "--measure", "--hysteresis", "--recorded", "--excitation", "--orders", "--supplies"),
        "--supplies": ("--at", "--joint", "--measure", "--hysteresis", "--recorded", "--excitation", "--plot"),
    },
    "derive": {"--at": ("--times",), "--mount": ("--times",)},
    "identify": {"--excite": ("--training",)},
    "tune feedforward": {"--from": ("--iterations",)},
    "replay": {"--bus": ("--telemetry", "--speed", "--rerun")},
    "tune gains": {"--replay": _OF_SEARCH, "--trial": ("--candidates",)},
}


def check_options(command: str, words: Sequence[str]) -> None:
    """words: of the command line. Raises InputError for the first option that would be ignored."""
    given = {word.partition("=")[0] for word in words if word.startswith("-")}
    for option, needed in NEEDED.get(command, {}).items():
        if option in given and given.isdisjoint(needed):
            raise InputError(f"is for {' or '.join(needed)}; add it, or take {option} out", option)
    for option, useless in USELESS.get(command, {}).items():
        for other in (other for other in useless if option in given and other in given):
            raise InputError(f"has no effect beside {option}; take one of them out", other)


Word = tuple[tuple[str, ...], dict[str, Any]]  # an argument or an option, as `ArgumentParser.add_argument` takes it
ABOUT = "Robotics control co-simulation with hardware in the loop."
WIDTH = 110  # columns of a help text
INDENT = 30  # of what it says about an option
COLUMN = 11  # of what the help text says about a command
HEADINGS = {
    "The first hour": ("new", "check", "run", "plot", "compare", "dash"),
    "Runs and recordings": ("live", "explain", "replay", "export"),
    "Design": ("analyze", "derive", "identify", "tune", "scenario"),
    "Motors": ("drives", "emulate", "doctor"),
    "Other programs": ("foxglove", "federate", "key"),
}
GROUPS = {
    "live": "Get and set parameters of a run while it runs, and stop it.",
    "export": "Write a recording, an FMU, code, a robot file, or a layout.",
    "tune": "Find gains or feedforward by many runs, and look at sessions.",
    "drives": "Find, check, move and set up real drives.",
}
# former commands: what to run instead
FORMER = {
    **{name: f"'cosim live {name}'" for name in ("set", "get", "stop")},
    **{name: f"'cosim drives {name}'" for name in ("scan", "probe", "jog", "home", "calibrate")},
    "learn": "'cosim tune feedforward'",
    "sessions": "'cosim tune sessions'",
    "fmu": "'cosim export fmu'",
    "build": "'cosim export code'",
    "layout": "'cosim export layout'",
    "bench": "'python -m benchmarks', in a checkout of the project",
}
# what a word after a group may have meant that was a command itself
FORMER_IN_GROUPS = {
    "tune": "; gains are tuned by 'cosim tune gains RIG'",
    "export": "; a recording is exported by 'cosim export recording F.mcap'",
}


class CommandParser(ArgumentParser):
    """A parser whose complaints are errors in one line."""

    def __init__(self, **settings: Any) -> None:
        def form(prog: str) -> HelpFormatter:
            return HelpFormatter(prog, max_help_position=INDENT, width=WIDTH)

        super().__init__(**settings, allow_abbrev=False, formatter_class=form)

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message}; see {self.prog} --help", self.prog)

    def parse_command(self, words: list[str]) -> Namespace:
        """The words after the command; arguments may stand behind options."""
        given, rest = self.parse_known_intermixed_args(words)
        if not rest:
            check_options(self.prog.partition(" ")[2], words)
            return given
        if not rest[0].startswith("-"):
            self.error(f"there is no place for the argument '{rest[0]}'")
        options = [name for action in self._actions for name in action.option_strings]
        self.error(f"there is no option '{rest[0]}'{did_you_mean(rest[0], options)}")


class Commands:
    """The commands by their names, of one word, or of two where they are in a group."""

    def __init__(self) -> None:
        self.parsers: dict[str, CommandParser] = {}

    def add_command(self, name: str, run: Callable[..., None], *words: Word) -> None:
        """A command with what runs it, whose docstring begins with its line of help. Raises LookupError for one that
        stands under no heading."""
        if all(name.partition(" ")[0] not in names for names in HEADINGS.values()):
            raise LookupError(f"the command '{name}' stands under no heading; add it to HEADINGS")
        about = (run.__doc__ or "").splitlines()[0]
        parser = self.parsers[name] = CommandParser(prog=f"cosim {name}", description=about)
        parser.set_defaults(command=run)
        for names, settings in words:
            parser.add_argument(*names, **settings)

    def in_group(self, group: str) -> list[str]:
        """The whole names of its commands."""
        return [name for name in self.parsers if name.startswith(f"{group} ")]

    def help_text(self) -> str:
        """One screen: every command, and the groups."""
        about = {name: parser.description or "" for name, parser in self.parsers.items()} | GROUPS
        lines = ["usage: cosim COMMAND …", "", ABOUT]
        for heading, names in HEADINGS.items():
            lines += ["", f"{heading}:", *(f"  {name:{COLUMN}}{about[name]}" for name in names)]
        lines += ["", "cosim COMMAND --help describes a command; cosim --version prints the version"]
        return "\n".join(lines)

    def help_of_group(self, group: str) -> str:
        names = self.in_group(group)
        column = max(map(len, names)) + 2
        lines = [f"usage: cosim {group} COMMAND …", "", GROUPS[group], "", "Commands:"]
        lines += [f"  {name:{column}}{self.parsers[name].description}" for name in names]
        return "\n".join([*lines, "", f"cosim {group} COMMAND --help describes a command"])

    def chosen(self, words: list[str]) -> tuple[CommandParser | None, list[str]]:
        """(the command, its words); None after a help text. Raises InputError for unknown words."""
        first = words[0] if words else "--help"
        if first in ("-h", "--help"):
            print(self.help_text())
        elif first == "--version":
            from importlib.metadata import version

            print(f"cosim {version('cosim')}")
        elif first in GROUPS:
            second = words[1] if len(words) > 1 else "--help"
            if second in ("-h", "--help"):
                print(self.help_of_group(first))
            elif (name := f"{first} {second}") in self.parsers:
                return self.parsers[name], words[2:]
            else:
                known = [name.partition(" ")[2] for name in self.in_group(first)]
                _no_command(f"cosim {first}", second, known, FORMER_IN_GROUPS.get(first, ""))
        elif first in self.parsers:
            return self.parsers[first], words[1:]
        elif first in FORMER:
            raise InputError(f"'cosim {first}' is now {FORMER[first]}", "cosim")
        elif first.startswith("-"):
            raise InputError(f"there is no option '{first}'; see cosim --help", "cosim")
        else:
            _no_command("cosim", first, [name for names in HEADINGS.values() for name in names], "")
        return None, []


def _no_command(place: str, word: str, known: Collection[str], hint: str) -> NoReturn:
    raise InputError(f"there is no command '{word}'{hint or did_you_mean(word, known)}; see {place} --help", place)


def word(*names: str, **settings: Any) -> Word:
    """An argument or an option, as `ArgumentParser.add_argument` takes it."""
    return names, settings


def flag(name: str, about: str) -> Word:
    return word(name, action="store_true", help=about)


def names_in(text: str) -> list[str]:
    """Names that an option has with commas between them."""
    return [name.strip() for name in text.split(",") if name.strip()]
