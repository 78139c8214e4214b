"""What the commands of the command line do. Each has one line of help, and imports what it needs when it runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

from cosim.errors import CosimError, InputError


def run(
    rig: Path,
    duration: str | None,
    overrides: list[str],
    realtime: bool,
    record: str | None,
    plots: list[str],
    plot_joints: str,
    plot_signals: str,
    json: str | None,
    interpret: bool | None,
    reference: bool,
    yes: bool,
    clear_faults: bool,
) -> None:
    """Run a rig, simulated or with its real motors, and print a summary."""
    from cosim.cli.run_files import check_plots, input_files, write_files
    from cosim.cli.run_summary import invalid_results, print_summary
    from cosim.output import console
    from cosim.output.slow_code import named_when_slow
    from cosim.rig.rig import load_rig
    from cosim.rig.run import StoppedRun

    seconds = None if duration is None else console.duration_of(duration)
    joints, signals = _names(plot_joints), _names(plot_signals)
    console.check_targets(plots, json, record, rig)
    with console.busy(f"compiling {rig.stem}"), named_when_slow():
        loaded = load_rig(rig, overrides, interpret, realtime)
    if reference:
        from cosim.cli.reference_run import check_has_reference

        check_has_reference(loaded)
    check_plots(plots, loaded, signals, joints)
    console.check_inputs(input_files(loaded), plots, json, record)
    with named_when_slow():
        unstable, misfits = loaded.warnings
    for line in (*unstable, *misfits):
        print(f"warning: {line}", file=sys.stderr if json == "-" else sys.stdout)
    if loaded.hardware:
        from cosim.cli.confirm import confirm
        from cosim.cli.describe import what_moves

        confirm(list(what_moves(loaded)), yes, sys.stdin, sys.stdout)
    fault: CosimError | None = None
    with console.run_display(loaded.run_spec.name, loaded.run_spec.schedule.pacing is not None) as shown:
        try:
            finished = loaded.run(seconds, record, shown, clear_faults)
        except StoppedRun as stopped:
            finished, fault = stopped.run, stopped
    fault = fault or invalid_results(finished, unstable)
    if json != "-":
        print_summary(finished, unstable)
    if reference and fault is None:
        from cosim.cli.reference_run import print_errors

        print_errors(finished, rig, overrides, interpret)
    failures = [*write_files(finished, plots, json, record, signals, joints), *([] if fault is None else [fault])]
    for failure in failures[:-1]:
        print(failure, file=sys.stderr)
    if failures:
        raise failures[-1]


def _names(text: str) -> list[str]:
    """The names of a list with commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def emulate(rig: Path, overrides: list[str], faults: list[str], duration: str | None) -> None:
    """Emulate the drives of a rig: its simulated motors behind the protocols of its drivers."""
    from cosim.output.console import duration_of
    from cosim.rig.emulate import emulate_rig, override_of

    seconds = None if duration is None else duration_of(duration)
    emulate_rig(rig, [*overrides, *override_of(faults)], seconds, print)


def check(rig: Path, overrides: list[str]) -> None:
    """Check a rig and describe it, without running it."""
    from cosim import load_rig
    from cosim.cli.describe import describe
    from cosim.output.slow_code import named_when_slow

    with named_when_slow():
        describe(load_rig(rig, overrides))


def compare(a: Path, b: Path) -> None:
    """Compare two runs: their settings, summaries and signals."""
    from cosim import compare as compared
    from cosim import load_run
    from cosim.cli.comparison_report import print_comparison

    print_comparison(compared(load_run(a), load_run(b)), str(a), str(b))


def new(
    rig: Path,
    robot: str,
    bandwidth: str,
    actuator: Literal["auto", "ideal", "dc_motor"],
    floating: bool,
    arguments: list[str],
    packages: list[str],
    force: bool,
) -> None:
    """Write a first rig for a robot file: actuators, gains and a small motion that follow from its model."""
    from cosim.new.command import new_rig

    new_rig(rig, robot, bandwidth, actuator, floating, arguments, packages, force)


def derive(
    mechanism: Path,
    file: Path | None,
    graph: bool,
    bondgraph: bool,
    joint: str | None,
    form: Literal["loop-free", "circuit"],
    to: Literal["text", "latex"],
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


def bench(json: Path, only: str | None, quick: bool) -> None:
    """Measure this program and its peers side by side, in one run, and print the ratios."""
    from cosim.bench import main as measure

    measure(json, only, quick)


def doctor(duration: str, cpu: int | None, json: Path | None) -> None:
    """Measure whether this machine can run loops in real time, and recommend settings."""
    from cosim.doctor import main as examine

    examine(duration, cpu, json)
