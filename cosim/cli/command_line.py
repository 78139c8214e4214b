"""The words of the command line: its commands, their arguments and options."""

from __future__ import annotations

from argparse import ArgumentParser, HelpFormatter, Namespace
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from cosim.cli import commands, commissioning_commands, remote_commands
from cosim.cli.option_rules import check_options
from cosim.core.access.binding import CONTROL_EXAMPLE, STREAM_EXAMPLE
from cosim.core.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from cosim.rig.reading.yaml_source import Override

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
    "export": "Write a recording, an FMU, code for other machines, or a layout.",
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

    def add_command(self, name: str, run: Callable[..., None], *words: tuple[tuple[str, ...], dict[str, Any]]) -> None:
        """A command with what runs it, whose docstring begins with its line of help."""
        about = (run.__doc__ or "").splitlines()[0]
        parser = self.parsers[name] = CommandParser(prog=f"cosim {name}", description=about)
        parser.set_defaults(command=run)
        for names, settings in words:
            parser.add_argument(*names, **settings)

    def help_text(self, group: str = "") -> str:
        """Of all commands, or of a group."""
        about = {name: parser.description or "" for name, parser in self.parsers.items()} | GROUPS
        if group:
            names = [name for name in self.parsers if name.startswith(f"{group} ")]
            tables = {"Commands": names}
        else:
            tables = HEADINGS
        lines = [f"usage: cosim {group + ' ' * bool(group)}COMMAND …", "", GROUPS.get(group, ABOUT)]
        for heading, names in tables.items():
            width = max(map(len, names)) + 2 if group else COLUMN
            lines += ["", f"{heading}:", *(f"  {name:{width}}{about[name]}" for name in names)]
        command = f"cosim {group} COMMAND".replace("  ", " ")
        lines += [
            "",
            f"{command} --help describes a command" + ("" if group else "; cosim --version prints the version"),
        ]
        return "\n".join(lines)

    def chosen(self, words: list[str]) -> tuple[CommandParser | None, list[str]]:
        """(the command, its words); None after a help text. Raises InputError for unknown words."""
        first = words[0] if words else "--help"
        if first in ("-h", "--help"):
            print(self.help_text())
        elif first == "--version":
            from cosim import __version__

            print(f"cosim {__version__}")
        elif first in GROUPS:
            second = words[1] if len(words) > 1 else "--help"
            if second in ("-h", "--help"):
                print(self.help_text(first))
            elif (name := f"{first} {second}") in self.parsers:
                return self.parsers[name], words[2:]
            else:
                known = [name.partition(" ")[2] for name in self.parsers if name.startswith(f"{first} ")]
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
    meant = did_you_mean(word, known)
    raise InputError(f"there is no command '{word}'{hint or meant}; see {place} --help", place)


def parse(words: list[str]) -> Callable[[], None]:
    """The chosen command with its arguments; of no words, the help text.

    Raises InputError for unknown words, SystemExit after a help text.
    """
    parser, rest = all_commands().chosen(words)
    if parser is None:
        raise SystemExit(0)
    given = vars(parser.parse_command(rest))
    command = given.pop("command")
    return lambda: command(**given)


def _word(*names: str, **settings: Any) -> tuple[tuple[str, ...], dict[str, Any]]:
    """An argument or an option, as `ArgumentParser.add_argument` takes it."""
    return names, settings


def _flag(name: str, about: str) -> tuple[tuple[str, ...], dict[str, Any]]:
    return _word(name, action="store_true", help=about)


def _trust() -> tuple[tuple[str, ...], dict[str, Any]]:
    return _flag("--trust", "run code that the recording has, also if it was not recorded here by you")


def _overrides_of(overlay: str) -> list[Override]:
    from cosim.rig.reading.overlay import read_overlay

    return read_overlay(overlay)


def _tuning_words() -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """The options of a session, which add to the section `tuning` of the rig or replace it."""
    pairs = (
        ("--parameter", "parameters", "NAME=LOW..HIGH", "what is varied, e.g. arm.kp=10..2000 or arm.kd=x0.2..x5"),
        ("--minimise", "minimise", "METRIC=WEIGHT", "a term of the cost, e.g. error_rms or effort_rms=0.001"),
        ("--limit", "limits", "METRIC=BOUND", "a bound that must hold, e.g. 'overshoot=5 %%' or disk_margin=0.5"),
        ("--plant", "plants", "NUMBER=FRACTION", "perturbed plants, e.g. 'inertia=20 %%'"),
    )
    for name, key, metavar, about in pairs:
        yield _word(name, dest=key, metavar=metavar, action="append", default=[], help=f"{about}; may be repeated")
    yield _word("--samples", metavar="N", type=int, help="so many random plants instead of the corners")
    yield _word("--robust", choices=("worst", "mean"), help="how the costs of the plants become one; default: worst")
    names = "cma, de, gradient, relay, shape, sobol, tpe"
    yield _word("--optimiser", metavar="NAME", help=f"what proposes the trials: {names}; default: tpe")
    yield _word("--trials", metavar="N", type=int, help="after which it ends; default: 200")
    yield _word("--batch", metavar="N", type=int, help="trials that are proposed together; default: 16")
    yield _word("--seed", metavar="N", type=int, help="of all random numbers; default: 0")
    yield _word("--duration", metavar="S", help="of each run, e.g. 2.5 or 500 ms; default: the rig's")
    yield _word("--session", metavar="FOLDER", help="where it is kept; default: tuning/RIG_1, _2, …")
    yield _flag("--resume", "go on with a session, by default with the latest one of the rig")
    yield _word("--dask", metavar="ADDRESS", help="of a Dask scheduler whose workers evaluate, e.g. tcp://host:8786")
    yield _word("--on-hardware", metavar="RIG", type=Path, help="try the best trials on this rig with real motors")
    yield _word("--replay", metavar="SESSION", type=Path, help="trials of this session, without another search")
    numbers = {"type": int, "action": "append", "default": []}
    yield _word("--trial", metavar="N", help="try this trial instead; may be repeated", **numbers)
    yield _word("--candidates", metavar="N", type=int, default=3, help="how many trials are tried; default: 3")
    yield _word("--step-factor", metavar="X", type=float, default=1.5, help="of a gain between two runs; default: 1.5")
    yield _flag("--yes", "run real motors without confirmation before each run")


def all_commands() -> Commands:
    parser = Commands()
    rig = _word("rig", type=Path, help="the rig file (YAML)")
    overrides = _word(
        "--set",
        metavar="A.B=C",
        dest="overrides",
        action="append",
        default=[],
        help="replace a value of the rig, e.g. controllers.arm.kp=200; may be repeated",
    )
    overlay = _word(
        "--overlay",
        metavar="F.yaml",
        dest="overrides",
        action="extend",
        default=[],
        type=_overrides_of,
        help="replace all values that a file has, e.g. 'controllers.arm.kp: 200'; may be repeated",
    )
    parser.add_command(
        "run",
        commands.run,
        rig,
        _word("--duration", metavar="S", help="how long to run, e.g. 2.5 or 500 ms"),
        overrides,
        overlay,
        _flag("--realtime", "run in real time"),
        _word("--record", metavar="F.mcap", help="record every tick"),
        _flag("--record-bus", "record the traffic of real drivers too"),
        _word(
            "--telemetry",
            metavar="ENDPOINT",
            nargs="?",
            const="",
            help=f"publish samples live, e.g. at {STREAM_EXAMPLE}; default: the rig's, or for this user alone",
        ),
        _word(
            "--control",
            metavar="ENDPOINT",
            nargs="?",
            const="",
            help=f"open a control socket, e.g. {CONTROL_EXAMPLE}; default: the rig's, or for this user alone",
        ),
        _flag("--wait", "wait until a client starts the run"),
        _word(
            "--plot",
            metavar="F.png",
            dest="plots",
            action="append",
            default=[],
            help="draw the run (png, svg, pdf), or its timing in a file …timing.png; may be repeated",
        ),
        _word("--plot-joints", metavar="A,B", default="", help="joints to plot"),
        _word("--plot-signals", metavar="A/B,C/D", default="", help="signals to plot, e.g. elbow/velocity"),
        _word("--json", metavar="F.json", help="write the summary; - for stdout"),
        _word(
            "--interpret",
            action="store_const",
            const=True,
            help="run the Python reference instead of machine code",
        ),
        _flag("--reference", "report the errors of the steps, by a run with steps of a tight tolerance"),
        _word(
            "--integrator",
            metavar="NAME",
            help="use this integrator, and report what its steps cost and their error",
        ),
        _word("--step", metavar="S", help="use this step, e.g. 0.5 ms, and report likewise"),
        _word(
            "--helics",
            metavar="ADDRESS",
            nargs="?",
            const="",
            help="run parts with the key `federate` as federates of HELICS; default: a broker and processes of its own",
        ),
        _flag("--yes", "switch real motors on without confirmation"),
        _flag("--allow-turns", "drives have lost no turns, and joints may rotate by more than one to their trajectory"),
        _flag("--clear-faults", "clear faults of the drives first; look at their causes before"),
        _flag("--shadow", "compare real joints with their simulated twins"),
    )
    parser.add_command(
        "federate",
        commands.federate,
        rig,
        _word("name", metavar="NAME", help="of the federate"),
        _word("--broker", metavar="ADDRESS", required=True, help="of HELICS, e.g. 192.168.1.10:23404"),
        overrides,
        overlay,
    )
    parser.add_command(
        "emulate",
        commands.emulate,
        rig,
        overrides,
        overlay,
        _word(
            "--fault",
            dest="faults",
            action="append",
            default=[],
            help="a fault to inject, e.g. 'kind: drop, fraction: 0.1, at: 2 s'; may be repeated",
        ),
        _word("--duration", metavar="S", help="how long, e.g. 60 or 5 min; default: until Ctrl-C"),
    )
    parser.add_command(
        "scenario",
        commands.scenario,
        rig,
        _word("files", metavar="F.yaml", nargs="*", type=Path, help="files with further scenarios"),
        overrides,
        overlay,
        _word("--only", metavar="NAME", action="append", default=[], help="this scenario; may be repeated"),
        _word("--jobs", metavar="N", type=int, help="processes at a time; default: one per core"),
        _word("--junit", metavar="F.xml", type=Path, help="write the results as JUnit XML"),
        _word("--json", metavar="F.json", type=Path, help="write the results; - for stdout"),
        _word("--record", metavar="FOLDER", type=Path, help="record the runs of those that fail"),
    )
    parser.add_command(
        "check",
        commands.check,
        _word("rig", metavar="RIG", nargs="?", type=Path, help="the rig file (YAML)"),
        overrides,
        overlay,
        _word(
            "--eds",
            metavar="FILE",
            type=Path,
            help="whether a drive fits, by its data sheet (EDS, DCF, XDD, XDC, ESI); with RIG: its joints",
        ),
        _flag("--untrusted", "run nothing of the rig, and open its folder alone"),
    )
    parser.add_command(
        "analyze",
        commands.analyze,
        rig,
        _word(
            "--at", metavar="S", default="0", help="after this time of a run, e.g. 0.5 or 500 ms; default: its start"
        ),
        overrides,
        overlay,
        _word("--joint", metavar="A,B", default="", help="joints whose loops are analyzed; default: all"),
        _word(
            "--measure",
            choices=("multisine", "chirp", "relay"),
            help="run experiments with this excitation, and compare",
        ),
        _word(
            "--amplitude",
            metavar="X",
            type=float,
            help="of their effort; default: 1 %% of the joint's limit, a relay 10 %%",
        ),
        _word(
            "--hysteresis", metavar="X", type=float, help="of the relay, rad or m; default: two counts of the encoder"
        ),
        _word(
            "--recorded",
            metavar="F.mcap",
            type=Path,
            action="append",
            default=[],
            help="compare with a recorded experiment; may be repeated",
        ),
        _word("--excitation", metavar="F.yaml", type=Path, help="only write the experiment of --joint, as an overlay"),
        _word("--plot", metavar="F.png", help="draw Bode and Nyquist diagrams and steps (png, svg, pdf)"),
        _word("--json", metavar="F.json", help="write the figures; - for stdout"),
        _flag("--yes", "switch real motors on for a relay without confirmation"),
    )
    parser.add_command("tune gains", commands.tune, rig, *_tuning_words(), overrides, overlay)
    parser.add_command(
        "tune sessions",
        commands.sessions,
        _word("folders", metavar="FOLDER", type=Path, nargs="*", help="of sessions, or sessions; default: tuning"),
        _word("--trial", metavar="N", type=int, help="run this trial of a session again"),
        _word("--record", metavar="F.mcap", help="record it"),
    )
    parser.add_command(
        "tune feedforward",
        commands.learn,
        rig,
        overrides,
        overlay,
        _word("--save", metavar="F.csv", type=Path, required=True, help="where to write the feedforward"),
        _word("--iterations", metavar="N", type=int, default=8, help="repetitions; default: 8"),
        _word(
            "--gain", metavar="X", type=float, default=1.0, help="fraction of the feedback that is learned; default: 1"
        ),
        _word("--cutoff", metavar="HZ", default="10", help="cutoff of the low pass of what is learned; default: 10 Hz"),
        _word(
            "--from", metavar="F.mcap", dest="recording", type=Path, help="learn from this run once, and run nothing"
        ),
    )
    parser.add_command(
        "identify",
        commands.identify,
        rig,
        _word("recording", metavar="F.mcap", nargs="?", type=Path, help="the recording, or a table (.csv)"),
        overrides,
        overlay,
        _word(
            "--fit",
            metavar="A,B",
            default="",
            help="inertia, friction, torque_constant, rotor_inertia, elasticity, delay, or numbers of the rig; default:"
            " inertia,friction",
        ),
        _word(
            "--method",
            choices=("equation-error", "output-error"),
            help="errors of the equations of motion, or of simulated runs; default: the former where the rig allows it",
        ),
        _word("--cutoff", metavar="HZ", help="of the filter of the equation errors; default: 10 Hz"),
        _word("--training", metavar="X", type=float, default=0.7, help="first fraction, to fit; default: 0.7"),
        _word("-o", dest="output", metavar="F.yaml", help="write an overlay; with --excite the motion (.csv)"),
        _word("--report", metavar="F.html", help="write a report in one file"),
        _word("--json", metavar="F.json", help="write the figures; - for stdout"),
        _flag("--excite", "design a motion to record instead"),
        _word("--duration", metavar="S", help="of that motion; default: 20 s"),
        _flag("--anyway", "write the overlay even if its numbers explain too little of the recording"),
    )
    parser.add_command(
        "compare",
        commands.compare,
        _word("a", type=Path, help="a run: a recording (.mcap), or a file of run.save (.npz)"),
        _word("b", type=Path, help="the run to compare with it"),
        _flag("--align", "shift b in time, so that the motions of its joints fit a's best"),
    )
    parser.add_command(
        "replay",
        commands.replay,
        _word("recording", metavar="F.mcap", type=Path, help="the recording"),
        _word("rig", metavar="RIG", nargs="?", type=Path, help="with --bus: with the drivers; default: that in it"),
        _word(
            "--telemetry",
            metavar="ENDPOINT",
            help=f"where to publish it, e.g. {STREAM_EXAMPLE}; default: for this user alone",
        ),
        _word("--speed", metavar="X", type=float, help="times as fast as it was; default: 1"),
        _flag("--rerun", "run its rig again as fast as possible, with the files in it, and compare to the bit"),
        _flag("--bus", "play its bus traffic to the drivers, without hardware, and compare to the bit"),
        _word("--to", metavar="F.log", type=Path, help="with --bus: only write its CAN frames (log, asc, blf)"),
        _trust(),
    )
    parser.add_command(
        "explain",
        commands.explain,
        _word("recording", metavar="F.mcap", type=Path, help="the recording"),
        _word("--last", metavar="S", default="1 s", help="time before the stop to look at; default: 1 s"),
        _word("--json", metavar="F.json", help="write the explanation; - for stdout"),
    )
    parser.add_command(
        "plot",
        commands.plot,
        _word("words", metavar="F.mcap|SIGNAL", nargs="+", help="recordings or files of run.save, and signals to draw"),
        _word("-o", dest="output", metavar="F.png", type=Path, help="png, svg or pdf; default: F.png, here"),
    )
    parser.add_command(
        "export recording",
        commands.export,
        _word("recording", metavar="F.mcap", type=Path, help="the recording, or a pattern of its files"),
        _word("--to", choices=("csv", "parquet", "mat"), required=True, help="the format"),
        _word("-o", dest="output", metavar="FILE", type=Path, help="the file; default: named as the recording, here"),
        _word("--signals", metavar="A/B,*/C", default="", help="only these signals"),
        _word("--from", dest="start", metavar="S", help="from this time on, e.g. 2.5 or 500 ms"),
        _word("--until", metavar="S", help="up to this time"),
    )
    parser.add_command(
        "export fmu",
        commands.fmu,
        rig,
        _word("--part", metavar="NAME", help="this part of the rig alone"),
        _word("--fmi", choices=("2", "3"), default="2", help="major version of FMI; default: 2"),
        _word(
            "--input",
            metavar="JOINT/WHAT",
            dest="inputs",
            action="append",
            default=[],
            help="the importer gives external_effort or reference_position of a joint, * of all; may be repeated",
        ),
        _word("-o", "--output", metavar="F.fmu", type=Path, help="default: named as the rig, or the part, here"),
        overrides,
        overlay,
    )
    parser.add_command(
        "export code",
        commands.build,
        rig,
        _word("--target", metavar="T", required=True, help="page, wasm, x86_64, aarch64, riscv64 or ptx"),
        _word("--cpu", metavar="CPU", help="the processor, by LLVM's name; default: one that is in wide use"),
        _word("-o", "--output", metavar="FOLDER", type=Path, default=Path(), help="where to write; default: here"),
        _word("--check", metavar="F.mcap", type=Path, help="a recording of the rig, which the code has to repeat"),
        _trust(),
        overrides,
        overlay,
    )
    parser.add_command(
        "new",
        commands.new,
        _word("rig", type=Path, help="the rig file to write (YAML)"),
        _word("robot", help="the robot file"),
        _word("--bandwidth", metavar="F", default="5 Hz", help="of the control of each joint; default: 5 Hz"),
        _word(
            "--actuator",
            choices=("auto", "ideal", "dc_motor"),
            default="auto",
            help="type of the actuators; auto, the default: motors where friction is strong",
        ),
        _flag("--floating", "the base is free instead of fixed"),
        _word(
            "--arg",
            metavar="NAME:=VALUE",
            dest="arguments",
            action="append",
            default=[],
            help="value of an argument of xacro; may be repeated",
        ),
        _word(
            "--packages",
            metavar="FOLDER",
            action="append",
            default=[],
            help="where ROS packages are searched first; may be repeated",
        ),
        _flag("--force", "overwrite an existing rig"),
    )
    parser.add_command("key", commands.key, _word("file", type=Path, help="the secret file to write"))
    parser.add_command(
        "derive",
        commands.derive,
        _word("mechanism", metavar="RIG|URDF", type=Path, help="a rig (YAML) or a robot (.urdf)"),
        _word(
            "file",
            metavar="FILE",
            type=Path,
            nargs="?",
            help="draw the graph or the picture (png, svg or pdf), or write the equations",
        ),
        _flag("--graph", "the structure of the mechanism as a graph"),
        _flag("--bondgraph", "the actuators that are bond graphs, and their equations"),
        _flag("--compare", "the equations of motion in every formulation: agreement and cost"),
        _flag("--equations", "kinematics and equations of motion of the mechanism, component by component"),
        _flag("--picture", "the mechanism in its start position, drawn to FILE"),
        _word("--joint", metavar="NAME", help="of --bondgraph: only the actuator of this joint"),
        _word(
            "--form",
            choices=("loop-free", "circuit"),
            default="loop-free",
            help="of --bondgraph: the graph, the default, or its circuit, is drawn",
        ),
        _word(
            "--to",
            choices=("text", "latex", "c", "python", "matlab"),
            default="text",
            help="text or LaTeX; of --equations also a file of code; default: text",
        ),
        _word("--json", metavar="F.json", type=Path, help="of --compare: write the figures; - for stdout"),
        _flag("--symbols", "of --equations: masses, lengths and inertias as symbols"),
        _word(
            "--frame",
            dest="frames",
            metavar="NAME",
            action="append",
            default=[],
            help="of --equations: pose and Jacobian of this link or frame, in place of all poses; may be repeated",
        ),
        _word("--load", metavar="NAME", help="of --equations: a force and a moment act on this link or frame"),
        _flag("--point-masses", "of --equations: bodies are point masses, and the efforts of both stages are compared"),
        _word(
            "--at",
            metavar="'q; v; a'",
            action="append",
            default=[],
            help="of --point-masses: a state in SI, as '0.1,0.2; 1,0; 0,0', default: random ones; of --picture:"
            " positions, as '0.1,0.2'; may be repeated",
        ),
        _word(
            "--mount",
            metavar="RIG|URDF",
            type=Path,
            help="a manipulator that the mechanism carries, of --equations and --picture",
        ),
        _word("--on", metavar="FRAME", help="of --mount: the link or frame of the mechanism that carries it"),
        _word(
            "--times", metavar="S,S", default="", help="of --picture: times of a run of the rig, as '0, 0.5, 800 ms'"
        ),
        _flag("--labels", "of --picture: with the names of joints and frames"),
    )
    commissioning_commands.add_commands(parser.add_command, rig, overrides, overlay)
    connect = _word("--connect", metavar="ADDRESS", help="of the run; default: as for --control without a value")
    public = _word("--key", metavar="F.pub", type=Path, help="the public key of an encrypted run")
    force = _flag("--force", "take control from the client that holds it")
    values = _word("values", metavar="NAME=VALUE", nargs="+", help="e.g. arm.kp=800 or 'arm.kp=800 N*m/rad'")
    parser.add_command("live set", remote_commands.set_, values, connect, public, force)
    names = _word("names", metavar="NAME", nargs="*", help="parameters; default: all")
    parser.add_command("live get", remote_commands.get, names, connect, public)
    parser.add_command(
        "live stop", remote_commands.stop, connect, public, force, _flag("--now", "immediately, motors off")
    )
    parser.add_command(
        "doctor",
        commands.doctor,
        _word("--duration", metavar="S", default="5 s", help="how long to measure, e.g. 5 or 2 min"),
        _word("--cpu", metavar="N", type=int, help="the CPU that the loop is to run on"),
        _word("--json", metavar="F.json", type=Path, help="write the figures; - for stdout"),
    )
    allow_host = _word(
        "--allow-host",
        metavar="NAME",
        action="append",
        default=[],
        help="a name of this machine under which browsers may open it; may be repeated",
    )
    parser.add_command(
        "dash",
        commands.dash,
        _word(
            "source",
            metavar="RIG|F.mcap|ADDRESS",
            nargs="?",
            help="a rig to run, a recording, or the address of the stream of a run",
        ),
        overrides,
        overlay,
        _word("--duration", metavar="S", help="of the runs of a rig, e.g. 60 or 5 min; default: the rig's"),
        _word("--record", metavar="F.mcap", type=Path, help="record the runs of a rig: F.mcap, F_2.mcap, …"),
        _word(
            "--connect",
            metavar="ADDRESS",
            nargs="?",
            const="",
            help=f"of the stream of a run that exists, e.g. {STREAM_EXAMPLE}; default: as for --telemetry without one",
        ),
        _word("--control", metavar="ADDRESS", help="of its control socket; default: the one that the stream names"),
        _word("--key", metavar="F.pub", help="the public key of an encrypted run"),
        _word("--host", default="127.0.0.1", metavar="ADDRESS", help="who may open it; default: this machine alone"),
        _word("--port", type=int, default=8080, metavar="N", help="of the page; 0: any; default: 8080"),
        allow_host,
        _flag("--dark", "dark colours"),
        _word("--frame-rate", type=float, default=30.0, metavar="HZ", help="pictures of the 3D view; default: 30 Hz"),
    )
    parser.add_command(
        "export layout",
        commands.layout,
        rig,
        _word("--for", dest="program", choices=("plotjuggler", "foxglove"), required=True, help="the program"),
        _flag("--recording", "of PlotJuggler: for recordings instead of the stream"),
        _word("-o", dest="output", metavar="FILE", type=Path, help="the file; default: named as the rig, here"),
        overrides,
        overlay,
    )
    parser.add_command(
        "foxglove",
        commands.foxglove,
        _word(
            "address",
            metavar="ADDRESS",
            nargs="?",
            help="of the stream; default: as for --telemetry",
        ),
        _word("--host", default="127.0.0.1", metavar="ADDRESS", help="who may connect; default: this machine alone"),
        _word("--port", type=int, default=8765, metavar="N", help="for Foxglove; 0: any; default: 8765"),
        allow_host,
        _word(
            "--allow-origin",
            metavar="ORIGIN",
            action="append",
            default=[],
            help="of other pages that may connect, e.g. https://example.org; default: Foxglove's; may be repeated",
        ),
        _flag("--allow-set", "let it set parameters; default: they are read-only"),
        _word("--key", metavar="F.pub", help="the public key of an encrypted run"),
    )
    return parser
