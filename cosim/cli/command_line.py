"""The words of the command line: its commands, their arguments and options."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from cosim.cli import commands, commissioning_commands, identify_command, run_commands
from cosim.cli.command_tree import Commands, Word, flag, word
from cosim.cli.design_words import IDENTIFY, RECORDINGS, TABLE, tuning_words
from cosim.core.access.binding import CONTROL_EXAMPLE, STREAM_EXAMPLE

if TYPE_CHECKING:
    from cosim.rig.reading.yaml_source import Override


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


def _trust() -> Word:
    return flag("--trust", "run code that the recording has, also if it was not recorded here by you")


def _overrides_of(overlay: str) -> list[Override]:
    from cosim.rig.reading.yaml_source import read_overlay

    return read_overlay(overlay)


# of commands that read a table of another program
def all_commands() -> Commands:
    tree = Commands()
    rig = word("rig", type=Path, help="the rig file (YAML)")
    overrides = word(
        "--set",
        metavar="A.B=C",
        dest="overrides",
        action="append",
        default=[],
        help="replace a value of the rig, e.g. controllers.arm.kp=200; may be repeated",
    )
    overlay = word(
        "--overlay",
        metavar="F.yaml",
        dest="overrides",
        action="extend",
        default=[],
        type=_overrides_of,
        help="replace all values that a file has, e.g. 'controllers.arm.kp: 200'; may be repeated",
    )
    tree.add_command(
        "run",
        commands.run,
        rig,
        word("--duration", metavar="S", help="how long to run, e.g. 2.5 or 500 ms"),
        overrides,
        overlay,
        flag("--realtime", "run in real time"),
        word("--record", metavar="F.mcap", help="record every tick"),
        word("--format", choices=("protobuf", "json", "ros2"), help="of the messages of the recording"),
        flag("--record-bus", "record the traffic of real drivers too"),
        word(
            "--telemetry",
            metavar="ENDPOINT",
            nargs="?",
            const="",
            help=f"publish samples live, e.g. at {STREAM_EXAMPLE}; default: the rig's, or for this user alone",
        ),
        word(
            "--control",
            metavar="ENDPOINT",
            nargs="?",
            const="",
            help=f"open a control socket, e.g. {CONTROL_EXAMPLE}; default: the rig's, or for this user alone",
        ),
        flag("--wait", "wait until a client starts the run"),
        word(
            "--plot",
            metavar="F.png",
            dest="plots",
            action="append",
            default=[],
            help="draw the run (png, svg, pdf), or its timing in a file …timing.png; may be repeated",
        ),
        word("--plot-joints", metavar="A,B", default="", help="joints to plot"),
        word("--plot-signals", metavar="A/B,C/D", default="", help="signals to plot, e.g. elbow/velocity"),
        word("--json", metavar="F.json", help="write the summary; - for stdout"),
        word(
            "--interpret",
            action="store_const",
            const=True,
            help="run the Python reference instead of machine code",
        ),
        flag("--reference", "report the errors of the steps, by a run with steps of a tight tolerance"),
        word(
            "--integrator",
            metavar="NAME",
            help="use this integrator, and report what its steps cost and their error",
        ),
        word("--step", metavar="S", help="use this step, e.g. 0.5 ms, and report likewise"),
        word(
            "--helics",
            metavar="ADDRESS",
            nargs="?",
            const="",
            help="run parts with the key `federate` as federates of HELICS; default: a broker and processes of its own",
        ),
        flag("--yes", "switch real motors on without confirmation"),
        flag("--allow-turns", "drives have lost no turns, and joints may rotate by more than one to their trajectory"),
        flag("--clear-faults", "clear faults of the drives first; look at their causes before"),
        flag("--shadow", "compare real joints with their simulated twins"),
    )
    tree.add_command(
        "federate",
        commands.federate,
        rig,
        word("name", metavar="NAME", help="of the federate"),
        word("--broker", metavar="ADDRESS", required=True, help="of HELICS, e.g. 192.168.1.10:23404"),
        overrides,
        overlay,
    )
    tree.add_command(
        "emulate",
        commands.emulate,
        rig,
        overrides,
        overlay,
        word(
            "--fault",
            dest="faults",
            action="append",
            default=[],
            help="a fault to inject, e.g. 'kind: drop, fraction: 0.1, at: 2 s'; may be repeated",
        ),
        word("--duration", metavar="S", help="how long, e.g. 60 or 5 min; default: until Ctrl-C"),
    )
    tree.add_command(
        "scenario",
        commands.scenario,
        rig,
        word("files", metavar="F.yaml", nargs="*", type=Path, help="files with further scenarios"),
        overrides,
        overlay,
        word("--only", metavar="NAME", action="append", default=[], help="this scenario; may be repeated"),
        word("--jobs", metavar="N", type=int, help="processes at a time; default: one per core"),
        word("--junit", metavar="F.xml", type=Path, help="write the results as JUnit XML"),
        word("--json", metavar="F.json", type=Path, help="write the results; - for stdout"),
        word("--record", metavar="FOLDER", type=Path, help="record the runs of those that fail"),
    )
    tree.add_command(
        "check",
        commands.check,
        word("rig", metavar="RIG", nargs="?", type=Path, help="the rig file (YAML)"),
        overrides,
        overlay,
        word(
            "--eds",
            metavar="FILE",
            type=Path,
            help="whether a drive fits, by its data sheet (EDS, DCF, XDD, XDC, ESI); with RIG: its joints",
        ),
        flag("--untrusted", "run nothing of the rig, and open its folder alone"),
    )
    tree.add_command(
        "analyze",
        commands.analyze,
        rig,
        word("--at", metavar="S", default="0", help="after this time of a run, e.g. 0.5 or 500 ms; default: its start"),
        overrides,
        overlay,
        word("--joint", metavar="A,B", default="", help="joints whose loops are analyzed; default: all"),
        word(
            "--measure",
            choices=("multisine", "chirp", "relay"),
            help="run experiments with this excitation, and compare",
        ),
        word(
            "--amplitude",
            metavar="X",
            type=float,
            help="of their effort; default: 1 %% of the joint's limit, a relay 10 %%",
        ),
        word(
            "--hysteresis", metavar="X", type=float, help="of the relay, rad or m; default: two counts of the encoder"
        ),
        word(
            "--recorded",
            metavar="F.mcap",
            type=Path,
            action="append",
            default=[],
            help="compare with a recorded experiment; may be repeated",
        ),
        word("--excitation", metavar="F.yaml", type=Path, help="only write the experiment of --joint, as an overlay"),
        word("--plot", metavar="F.png", help="draw Bode and Nyquist diagrams and steps (png, svg, pdf)"),
        word("--json", metavar="F.json", help="write the figures; - for stdout"),
        flag("--yes", "switch real motors on for a relay without confirmation"),
        flag("--supplies", "instead: run it, or read a run (F.mcap), and size supply, fuse, resistor, capacitor"),
        word(
            "--orders",
            metavar="A/B,C/D",
            default="",
            help="instead: run it, or read a run, and list the waves of signals per turn",
        ),
        word(
            "--response",
            metavar="A/B,C/D",
            default="",
            help="instead: frequency responses from the first of these signals to the others, by the plant alone",
        ),
        word("--ripple", metavar="X", default="5 %", help="of the link, for its capacitor; default: 5 %%"),
        word("--report", metavar="F.html", help="of --supplies: write a report in one file"),
    )
    tree.add_command("tune gains", commands.tune, rig, *tuning_words(), overrides, overlay)
    tree.add_command(
        "tune sessions",
        commands.sessions,
        word("folders", metavar="FOLDER", type=Path, nargs="*", help="of sessions, or sessions; default: tuning"),
        word("--trial", metavar="N", type=int, help="run this trial of a session again"),
        word("--record", metavar="F.mcap", help="record it"),
    )
    tree.add_command(
        "tune feedforward",
        commands.learn,
        rig,
        overrides,
        overlay,
        word("--save", metavar="F.csv", type=Path, required=True, help="where to write the feedforward"),
        word("--iterations", metavar="N", type=int, default=8, help="repetitions; default: 8"),
        word(
            "--gain", metavar="X", type=float, default=1.0, help="fraction of the feedback that is learned; default: 1"
        ),
        word("--cutoff", metavar="HZ", default="10", help="cutoff of the low pass of what is learned; default: 10 Hz"),
        word("--from", metavar="F.mcap", dest="recording", type=Path, help="learn from this run once, and run nothing"),
    )
    tree.add_command("identify", identify_command.identify, rig, RECORDINGS, overrides, overlay, *IDENTIFY)
    tree.add_command(
        "compare",
        run_commands.compare,
        word("a", type=Path, help="a run: a recording (.mcap), or a file of run.save (.npz)"),
        word("b", type=Path, help="the run to compare with it, or a table of measurements"),
        *TABLE,
        flag("--align", "shift b in time, so that the motions of its joints fit a's best"),
    )
    tree.add_command(
        "replay",
        run_commands.replay,
        word("recording", metavar="F.mcap", type=Path, help="the recording"),
        word("rig", metavar="RIG", nargs="?", type=Path, help="with --bus: with the drivers; default: that in it"),
        word(
            "--telemetry",
            metavar="ENDPOINT",
            help=f"where to publish it, e.g. {STREAM_EXAMPLE}; default: for this user alone",
        ),
        word("--speed", metavar="X", type=float, help="times as fast as it was; default: 1"),
        flag("--rerun", "run its rig again as fast as possible, with the files in it, and compare to the bit"),
        flag("--bus", "play its bus traffic to the drivers, without hardware, and compare to the bit"),
        word("--to", metavar="F.log", type=Path, help="with --bus: only write its CAN frames (log, asc, blf)"),
        _trust(),
    )
    tree.add_command(
        "explain",
        run_commands.explain,
        word("recording", metavar="F.mcap", type=Path, help="the recording"),
        word("--last", metavar="S", default="1 s", help="time before the stop to look at; default: 1 s"),
        word("--json", metavar="F.json", help="write the explanation; - for stdout"),
    )
    tree.add_command(
        "plot",
        run_commands.plot,
        word("words", metavar="F.mcap|SIGNAL", nargs="+", help="recordings or files of run.save, and signals to draw"),
        word("-o", dest="output", metavar="F.png", type=Path, help="png, svg or pdf; default: F.png, here"),
    )
    tree.add_command(
        "export recording",
        run_commands.export,
        word("recording", metavar="F.mcap", type=Path, help="the recording, or a pattern of its files"),
        word("--to", choices=("csv", "parquet", "mat", "ros2"), help="the format; default: that of the file"),
        word("-o", dest="output", metavar="FILE", type=Path, help="the file; default: named as the recording, here"),
        word("--signals", metavar="A/B,*/C", default="", help="only these signals"),
        word("--from", dest="start", metavar="S", help="from this time on, e.g. 2.5 or 500 ms"),
        word("--until", metavar="S", help="up to this time"),
    )
    of_fmus = (
        word("--part", metavar="NAME", help="this part of the rig alone"),
        word("--fmi", choices=("2", "3"), help="major version of FMI; default: 2"),
        word(
            "--input",
            metavar="JOINT/WHAT",
            dest="inputs",
            action="append",
            default=[],
            help="the importer gives external_effort or reference_position of a joint, * of all; may be repeated",
        ),
    )
    exported = word("-o", "--output", metavar="PATH", type=Path, default=Path(), help="folder or file; default: here")
    tree.add_command("export fmu", commands.fmu, rig, *of_fmus, exported, overrides, overlay)
    tree.add_command(
        "export code",
        commands.build,
        rig,
        word("--target", metavar="T", required=True, help="page, wasm, x86_64, aarch64, riscv64, ptx or fmu"),
        word("--cpu", metavar="CPU", help="the processor, by LLVM's name; default: one that is in wide use"),
        exported,
        word("--check", metavar="F.mcap", type=Path, help="a recording of the rig, which the code has to repeat"),
        _trust(),
        *of_fmus,
        overrides,
        overlay,
    )
    tree.add_command(
        "new",
        commands.new,
        word("rig", type=Path, help="the rig file to write (YAML)"),
        word("robot", help="the robot file"),
        word("--bandwidth", metavar="F", default="5 Hz", help="of the control of each joint; default: 5 Hz"),
        word(
            "--actuator",
            choices=("auto", "ideal", "dc_motor", "file"),
            default="auto",
            help="of all joints; auto, the default: motors where friction is strong; file: those of an MJCF file",
        ),
        flag("--floating", "the base is free instead of fixed"),
        word(
            "--arg",
            metavar="NAME:=VALUE",
            dest="arguments",
            action="append",
            default=[],
            help="value of an argument of xacro; may be repeated",
        ),
        word(
            "--packages",
            metavar="FOLDER",
            action="append",
            default=[],
            help="where ROS packages are searched first; may be repeated",
        ),
        flag("--force", "overwrite an existing rig"),
    )
    tree.add_command("key", commands.key, word("file", type=Path, help="the secret file to write"))
    tree.add_command(
        "derive",
        commands.derive,
        word("mechanism", metavar="RIG|URDF", type=Path, help="a rig (YAML) or a robot (.urdf)"),
        word(
            "file",
            metavar="FILE",
            type=Path,
            nargs="?",
            help="draw the graph, the picture or the patterns (png, svg or pdf), or write the equations",
        ),
        flag("--graph", "the structure of the mechanism as a graph"),
        flag("--bondgraph", "the actuators that are bond graphs, and their equations"),
        flag("--compare", "the equations of motion in every formulation: agreement and cost"),
        flag("--equations", "kinematics and equations of motion of the mechanism, component by component"),
        flag("--picture", "the mechanism in its start position, drawn to FILE"),
        flag("--tables", "augmented bodies, integrals of elastic links, patterns of matrices, drawn to FILE if given"),
        word("--joint", metavar="NAME", help="of --bondgraph: only the graph of this joint, or of this name"),
        word(
            "--form",
            choices=("loop-free", "circuit", "blocks"),
            default="loop-free",
            help="of --bondgraph: the graph, the default, its circuit or its block diagram is drawn",
        ),
        word(
            "--to",
            choices=("text", "latex", "c", "python", "matlab"),
            default="text",
            help="text, LaTeX or code; default: text",
        ),
        word(
            "--formulation",
            metavar="NAME",
            help="of --equations: cartesian, each body and each joint for itself; default: joint coordinates",
        ),
        word("--json", metavar="F.json", type=Path, help="of --compare: write the figures; - for stdout"),
        flag("--symbols", "of --equations: masses, lengths and inertias as symbols"),
        word(
            "--frame",
            dest="frames",
            metavar="NAME",
            action="append",
            default=[],
            help="of --equations: pose and Jacobian of this link or frame, in place of all poses; may be repeated",
        ),
        word("--load", metavar="NAME", help="of --equations: a force and a moment act on this link or frame"),
        flag("--point-masses", "of --equations: bodies are point masses, and the efforts of both stages are compared"),
        word(
            "--at",
            metavar="'q; v; a'",
            action="append",
            default=[],
            help="of --point-masses: a state in SI, as '0.1,0.2; 1,0; 0,0', default: random ones; of --picture:"
            " positions, as '0.1,0.2'; may be repeated",
        ),
        word(
            "--mount",
            metavar="RIG|URDF",
            type=Path,
            help="a manipulator that the mechanism carries, of --equations and --picture",
        ),
        word("--on", metavar="FRAME", help="of --mount: the link or frame of the mechanism that carries it"),
        word("--times", metavar="S,S", default="", help="of --picture: times of a run of the rig, as '0, 0.5, 800 ms'"),
        flag("--labels", "of --picture: with the names of joints and frames"),
    )
    commissioning_commands.add_commands(tree.add_command, rig, overrides, overlay)
    connect = word("--connect", metavar="ADDRESS", help="of the run; default: as for --control without a value")
    public = word("--key", metavar="F.pub", type=Path, help="the public key of an encrypted run")
    force = flag("--force", "take control from the client that holds it")
    values = word("values", metavar="NAME=VALUE", nargs="+", help="e.g. arm.kp=800 or 'arm.kp=800 N*m/rad'")
    tree.add_command("live set", run_commands.set_, values, connect, public, force)
    names = word("names", metavar="NAME", nargs="*", help="parameters; default: all")
    tree.add_command("live get", run_commands.get, names, connect, public)
    tree.add_command("live stop", run_commands.stop, connect, public, force, flag("--now", "immediately, motors off"))
    tree.add_command(
        "doctor",
        commands.doctor,
        word("--duration", metavar="S", default="5 s", help="how long to measure, e.g. 5 or 2 min"),
        word("--cpu", metavar="N", type=int, help="the CPU that the loop is to run on"),
        word("--json", metavar="F.json", type=Path, help="write the figures; - for stdout"),
    )
    allow_host = word(
        "--allow-host",
        metavar="NAME",
        action="append",
        default=[],
        help="a name of this machine under which browsers may open it; may be repeated",
    )
    tree.add_command(
        "dash",
        commands.dash,
        word(
            "source",
            metavar="RIG|F.mcap|ADDRESS",
            nargs="?",
            help="a rig to run, a recording, or the address of the stream of a run",
        ),
        overrides,
        overlay,
        word("--duration", metavar="S", help="of the runs of a rig, e.g. 60 or 5 min; default: the rig's"),
        word("--record", metavar="F.mcap", type=Path, help="record the runs of a rig: F.mcap, F_2.mcap, …"),
        word(
            "--connect",
            metavar="ADDRESS",
            nargs="?",
            const="",
            help=f"of the stream of a run that exists, e.g. {STREAM_EXAMPLE}; default: as for --telemetry without one",
        ),
        word("--control", metavar="ADDRESS", help="of its control socket; default: the one that the stream names"),
        word("--key", metavar="F.pub", help="the public key of an encrypted run"),
        word("--host", default="127.0.0.1", metavar="ADDRESS", help="who may open it; default: this machine alone"),
        word("--port", type=int, default=8080, metavar="N", help="of the page; 0: any; default: 8080"),
        allow_host,
        flag("--dark", "dark colours"),
        word("--frame-rate", type=float, default=30.0, metavar="HZ", help="pictures of the 3D view; default: 30 Hz"),
    )
    tree.add_command(
        "export model",
        commands.export_model,
        word("source", metavar="RIG|ROBOT", type=Path, help="a rig or a robot file"),
        word("-o", dest="output", metavar="FILE", type=Path, required=True, help="F.urdf, F.xml (MJCF) or F.sdf"),
        overrides,
        overlay,
    )
    tree.add_command(
        "export layout",
        commands.layout,
        rig,
        word("--for", dest="program", choices=("plotjuggler", "foxglove"), required=True, help="the program"),
        flag("--recording", "of PlotJuggler: for recordings instead of the stream"),
        word("-o", dest="output", metavar="FILE", type=Path, help="the file; default: named as the rig, here"),
        overrides,
        overlay,
    )
    tree.add_command(
        "foxglove",
        commands.foxglove,
        word(
            "address",
            metavar="ADDRESS",
            nargs="?",
            help="of the stream; default: as for --telemetry",
        ),
        word("--host", default="127.0.0.1", metavar="ADDRESS", help="who may connect; default: this machine alone"),
        word("--port", type=int, default=8765, metavar="N", help="for Foxglove; 0: any; default: 8765"),
        allow_host,
        word(
            "--allow-origin",
            metavar="ORIGIN",
            action="append",
            default=[],
            help="of other pages that may connect, e.g. https://example.org; default: Foxglove's; may be repeated",
        ),
        flag("--allow-set", "let it set parameters; default: they are read-only"),
        word("--key", metavar="F.pub", help="the public key of an encrypted run"),
    )
    return tree
