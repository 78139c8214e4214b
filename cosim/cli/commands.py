"""The commands and options of the command line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal, Optional

import typer

from cosim.errors import CosimError, InputError

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Robotics control co-simulation with hardware in the loop.",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from cosim import __version__

        print(f"cosim {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Print the version.")
    ] = False,
) -> None:
    """Robotics control co-simulation with hardware in the loop."""


RigFile = Annotated[Path, typer.Argument(help="The rig file (YAML).", show_default=False)]
Overrides = Annotated[
    Optional[list[str]],  # noqa: UP045 - typer reads the annotation on Python 3.11
    typer.Option("--set", metavar="A.B=C", help="Replace a value of the rig, e.g. controllers.arm.kp=200."),
]


@app.command()
def run(
    rig: RigFile,
    duration: Annotated[str | None, typer.Option(help="How long to run, e.g. 2.5 or 500 ms.")] = None,
    set_: Overrides = None,
    realtime: Annotated[bool, typer.Option("--realtime", help="Run in real time.")] = False,
    record: Annotated[str | None, typer.Option(metavar="F.mcap", help="Record every tick.")] = None,
    plot: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(metavar="F.png", help="Draw the run (png, svg, pdf), or its timing in a file …timing.png."),
    ] = None,
    plot_joints: Annotated[str | None, typer.Option(metavar="A,B", help="Joints to plot.")] = None,
    plot_signals: Annotated[
        str | None, typer.Option(metavar="A/B,C/D", help="Signals to plot, e.g. elbow/velocity,energy/stored.")
    ] = None,
    json: Annotated[str | None, typer.Option(metavar="F.json", help="Write the summary; - for stdout.")] = None,
    interpret: Annotated[
        bool | None, typer.Option("--interpret", help="Run the Python reference instead of machine code.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Switch real motors on without confirmation.")] = False,
    clear_faults: Annotated[
        bool,
        typer.Option("--clear-faults", help="Clear faults of the drives first; look at their causes before."),
    ] = False,
) -> None:
    """Run a rig, simulated or with its real motors, and print a summary."""
    from cosim import load_rig
    from cosim.cli.run_files import check_plots, input_files, write_files
    from cosim.cli.run_summary import invalid_results, print_summary
    from cosim.output import console
    from cosim.output.slow_code import named_when_slow
    from cosim.rig.inspection import warnings_before_run
    from cosim.rig.run import StoppedRun

    seconds = None if duration is None else console.duration_of(duration)
    plots = plot or []
    joints, signals = (
        [name.strip() for name in (text or "").split(",") if name.strip()] for text in (plot_joints, plot_signals)
    )
    console.check_targets(plots, json, record, rig)
    with console.busy(f"compiling {rig.stem}"), named_when_slow():
        loaded = load_rig(rig, set_ or (), interpret, realtime)
    check_plots(plots, loaded, signals, joints)
    console.check_inputs(input_files(loaded), plots, json, record)
    with named_when_slow():
        unstable, misfits = warnings_before_run(loaded)
    for line in (*unstable, *misfits):
        print(f"warning: {line}", file=sys.stderr if json == "-" else sys.stdout)
    if loaded.hardware:
        from cosim.cli.confirm import confirm
        from cosim.cli.describe import what_moves

        confirm(list(what_moves(loaded)), yes, sys.stdin, sys.stdout)
    fault: CosimError | None = None
    with console.run_display(loaded.spec.name, loaded.spec.schedule.pacing is not None) as shown:
        try:
            finished = loaded.run(seconds, record, shown, clear_faults)
        except StoppedRun as stopped:
            finished, fault = stopped.run, stopped
    fault = fault or invalid_results(finished, unstable)
    if json != "-":
        print_summary(finished, unstable)
    failures = [*write_files(finished, plots, json, record, signals, joints), *([] if fault is None else [fault])]
    for failure in failures[:-1]:
        print(failure, file=sys.stderr)
    if failures:
        raise failures[-1]


def _names(text: str | None) -> list[str]:
    """The names of a list with commas."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


@app.command()
def emulate(
    rig: RigFile,
    set_: Overrides = None,
    fault: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--fault", metavar="FAULT", help="A fault to inject, e.g. 'kind: drop, fraction: 0.1, at: 2 s'."),
    ] = None,
    duration: Annotated[str | None, typer.Option(help="How long, e.g. 60 or 5 min; default: until Ctrl-C.")] = None,
) -> None:
    """Emulate the drives of a rig: its simulated motors behind the protocols of its drivers."""
    from cosim.output.console import duration_of
    from cosim.rig.emulate import emulate_rig, override_of

    seconds = None if duration is None else duration_of(duration)
    emulate_rig(rig, [*(set_ or ()), *override_of(fault or [])], seconds, print)


@app.command()
def check(rig: RigFile, set_: Overrides = None) -> None:
    """Check a rig and describe it, without running it."""
    from cosim import load_rig
    from cosim.cli.describe import describe
    from cosim.output.slow_code import named_when_slow

    with named_when_slow():
        describe(load_rig(rig, set_ or ()))


@app.command()
def compare(
    a: Annotated[
        Path, typer.Argument(help="A run: a recording (.mcap), or a file of run.save (.npz).", show_default=False)
    ],
    b: Annotated[Path, typer.Argument(help="The run to compare with it.", show_default=False)],
) -> None:
    """Compare two runs: their settings, summaries and signals."""
    from cosim import compare as compared
    from cosim import load_run
    from cosim.cli.comparison_report import print_comparison

    print_comparison(compared(load_run(a), load_run(b)), str(a), str(b))


@app.command()
def new(
    rig: Annotated[Path, typer.Argument(help="The rig file to write (YAML).", show_default=False)],
    robot: Annotated[str, typer.Argument(help="The robot file.", show_default=False)],
    bandwidth: Annotated[str, typer.Option(help="Bandwidth of the control of each joint.")] = "5 Hz",
    actuator: Annotated[
        Literal["auto", "ideal", "dc_motor"],
        typer.Option(help="Type of the actuators; auto: motors where friction is strong."),
    ] = "auto",
    floating: Annotated[bool, typer.Option("--floating", help="The base is free instead of fixed.")] = False,
    arg: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--arg", metavar="NAME:=VALUE", help="The value of an argument of xacro; may be repeated."),
    ] = None,
    packages: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--packages", metavar="FOLDER", help="Where ROS packages are searched first; may be repeated."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing rig.")] = False,
) -> None:
    """Write a first rig for a robot file: actuators, gains and a small motion that follow from its model."""
    from cosim.new.command import new_rig

    new_rig(rig, robot, bandwidth, actuator, floating, arg or (), packages or (), force)


@app.command()
def derive(
    mechanism: Annotated[Path, typer.Argument(metavar="RIG|URDF", help="A rig (YAML) or a robot (.urdf).")],
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="Draw the graph (png, svg or pdf).", show_default=False)
    ] = None,
    graph: Annotated[bool, typer.Option("--graph", help="The structure of the mechanism as a graph.")] = False,
    bondgraph: Annotated[
        bool, typer.Option("--bondgraph", help="The actuators that are bond graphs, and their equations.")
    ] = False,
    joint: Annotated[str | None, typer.Option(help="Of --bondgraph: only the actuator of this joint.")] = None,
    form: Annotated[
        Literal["loop-free", "circuit"], typer.Option(help="Of --bondgraph: the graph, or its circuit, is drawn.")
    ] = "loop-free",
    to: Annotated[Literal["text", "latex"], typer.Option(help="Of --bondgraph: equations alone in LaTeX.")] = "text",
) -> None:
    """Derive the structure of a mechanism, or the equations of its actuators."""
    if graph == bondgraph:
        what = "pass only one of --graph and --bondgraph" if graph else "nothing to derive; pass --graph or --bondgraph"
        raise InputError(what, "derive")
    if graph:
        from cosim.derive.graph_report import derive_graph

        derive_graph(mechanism, file)
    else:
        from cosim.derive.bond_graph_report import derive_bond_graph

        derive_bond_graph(mechanism, file, joint, form, to)


@app.command()
def bench(
    json: Annotated[Path, typer.Option(metavar="F.json", help="Where to write the figures.")] = Path("bench.json"),
    only: Annotated[str | None, typer.Option(help="Only rows whose name contains this.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer repetitions.")] = False,
) -> None:
    """Measure this program and its peers side by side, in one run, and print the ratios."""
    from cosim.bench import main as measure

    measure(json, only, quick)


@app.command()
def doctor(
    duration: Annotated[str, typer.Option(help="How long to measure, e.g. 5 or 2 min.")] = "5 s",
    cpu: Annotated[int | None, typer.Option(help="The CPU that the loop is to run on.")] = None,
    json: Annotated[Path | None, typer.Option(metavar="F.json", help="Write the figures; - for stdout.")] = None,
) -> None:
    """Measure whether this machine can run loops in real time, and recommend settings."""
    from cosim.doctor import main as examine

    examine(duration, cpu, json)
