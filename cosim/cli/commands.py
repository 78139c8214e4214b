"""What the commands of the command line do. Each has one line of help, and imports what it needs when it runs."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cosim.cli.command_tree import names_in
from cosim.core.errors import CosimError, InputError, RunWarning

if TYPE_CHECKING:
    from cosim.apps.analysis.relay import RelayRequest
    from cosim.rig.reading.yaml_source import Override


def run(
    rig: Path,
    duration: str | None,
    overrides: list[Override],
    realtime: bool,
    record: str | None,
    format: str | None,
    record_bus: bool,
    telemetry: str | None,
    control: str | None,
    wait: bool,
    plots: list[str],
    plot_joints: str,
    plot_signals: str,
    json: str | None,
    interpret: bool | None,
    reference: bool,
    integrator: str | None,
    step: str | None,
    helics: str | None,
    yes: bool,
    allow_turns: bool,
    clear_faults: bool,
    shadow: bool,
) -> None:
    """Run a rig, simulated or with its real motors, and print a summary."""
    from cosim.cli.run_files import check_plots, write_files
    from cosim.cli.run_overrides import check_real, shadow_of, sockets_of
    from cosim.cli.run_summary import print_summary
    from cosim.output import console
    from cosim.output.slow_code import named_when_slow
    from cosim.rig.rig import load_rig
    from cosim.rig.rig_files import input_files
    from cosim.rig.run.kept_signals import scarce_room
    from cosim.rig.run.run import StoppedRun
    from cosim.rig.run.run_warnings import invalid_results
    from cosim.rig.run.session import ticks_of

    seconds = None if duration is None else console.duration_of(duration)
    given = {"integrator": integrator, "step": step}
    steps = {f"--{key}": f"schedule.{key}={value}" for key, value in given.items() if value}
    overrides = [*overrides, *steps.values()]
    overrides += sockets_of(rig, overrides, {"publish": telemetry, "control": control})
    overrides += shadow_of(rig, overrides) if shadow else []
    overrides += [("recording.bus=true", "--record-bus")] if record_bus else []
    overrides += [] if format is None else [(f"recording.encoding={format}", "--format")]
    compared = next(iter(steps), "--reference" if reference else "")
    joints, signals = names_in(plot_joints), names_in(plot_signals)
    console.check_targets(plots, json, record, rig)
    warnings.simplefilter("ignore", RunWarning)  # those of the rig and of the run are printed here
    with console.busy(f"compiling {rig.stem}"), named_when_slow():
        loaded = load_rig(rig, overrides, interpret, realtime)
        if helics is not None:
            from cosim.rig.federates import with_federates

            loaded = with_federates(loaded, rig, overrides, helics)
    for option in ("--shadow",) * shadow + ("--record-bus",) * record_bus:
        check_real(loaded, option)
    if compared:
        from cosim.cli.reference_run import check_has_reference

        check_has_reference(loaded, compared)
    check_plots(plots, loaded, signals, joints)
    console.check_inputs(input_files(loaded, overrides), plots, json, record)
    with named_when_slow():
        unstable, misfits = loaded.warnings
    for line in (*unstable, *misfits):
        print(f"warning: {line}", file=sys.stderr if json == "-" else sys.stdout)
    if room := scarce_room(loaded, record, ticks_of(loaded, seconds)):
        print(f"warning: {room}", file=sys.stderr if json == "-" else sys.stdout)
    consent = None
    if loaded.hardware and not wait:  # else a client arms it
        from cosim.cli.confirm import MotorConsent
        from cosim.rig.moving_motors import what_moves

        consent = MotorConsent(list(what_moves(loaded)), yes, allow_turns, sys.stdin, sys.stdout)
    fault: CosimError | None = None
    quiet = consent is not None and not yes  # nothing is written over a question
    with console.run_display(loaded.run_spec.name, loaded.run_spec.schedule.pacing is not None, quiet) as shown:
        try:
            given = {"wait": wait, "consent": consent, "allow_turns": allow_turns}
            if compared:  # wherever it differs
                given["keep"] = replace(loaded.spec.keep, every=1, last=None, signals=())
            finished = loaded.run(seconds, record, shown, clear_faults, **given)
        except StoppedRun as stopped:
            finished, fault = stopped.run, stopped
    fault = fault or invalid_results(finished, finished.summary)
    if json != "-":
        print_summary(finished)
    else:
        for line in finished.warnings[len(unstable) + len(misfits) :]:
            print(f"warning: {line}", file=sys.stderr)
    if compared and fault is None and json != "-":
        from cosim.cli.reference_run import print_errors, reference_of, step_line

        exact = reference_of(finished, rig, overrides, interpret, compared)
        if steps:
            print(step_line(finished, exact))
        if reference:
            print_errors(finished, exact)
    failures = [*write_files(finished, plots, json, record, signals, joints), *([] if fault is None else [fault])]
    for failure in failures[:-1]:
        print(failure, file=sys.stderr)
    if failures:
        raise failures[-1]


def federate(rig: Path, name: str, broker: str, overrides: list[Override]) -> None:
    """Run parts of a rig as a federate of HELICS."""
    from cosim.rig.federates import run_federate

    run_federate(rig, name, broker, overrides)


def emulate(rig: Path, overrides: list[Override], faults: list[str], duration: str | None) -> None:
    """Emulate the drives of a rig behind their protocols."""
    from cosim.output.console import duration_of
    from cosim.rig.emulate import emulate_rig, override_of

    seconds = None if duration is None else duration_of(duration)
    emulate_rig(rig, [*overrides, *override_of(faults)], seconds, print)


def scenario(
    rig: Path,
    files: list[Path],
    overrides: list[Override],
    only: list[str],
    jobs: int | None,
    junit: Path | None,
    json: Path | None,
    record: Path | None,
) -> None:
    """Inject faults in simulated time, and compare the reactions."""
    from cosim.apps.scenario.command import scenario_rig

    scenario_rig(rig, files, overrides, only, jobs, junit, json, record)


def check(rig: Path | None, overrides: list[Override], eds: Path | None, untrusted: bool) -> None:
    """Check a rig, or whether a drive fits, and describe it."""
    if eds is not None:
        if untrusted and rig is not None:
            raise InputError("a data sheet is compared with a rig that is trusted; give --eds alone", "--untrusted")
        _check_data_sheet(eds, rig, overrides)
        return
    if rig is None:
        raise InputError("missing RIG; give a rig file, or the data sheet of a drive with --eds", "check")
    if untrusted:
        from cosim.cli.trust import describe_untrusted

        describe_untrusted(rig, overrides)
        return
    from cosim.cli.describe import describe
    from cosim.output.slow_code import named_when_slow
    from cosim.rig.rig import load_rig

    warnings.simplefilter("ignore", RunWarning)  # they are part of the description
    with named_when_slow():
        describe(load_rig(rig, overrides))


def _check_data_sheet(eds: Path, rig: Path | None, overrides: list[Override]) -> None:
    """Raises RunError for a drive that does not fit."""
    from cosim.core.errors import RunError
    from cosim.rig.data_sheets import check_data_sheet

    lines, fits = check_data_sheet(eds, rig, overrides)
    print("\n".join(lines))
    if not fits:
        whom = "any mode of the driver" if rig is None else f"the joints of {rig}"
        raise RunError(f"the drive does not fit {whom}; see the reasons above", str(eds))


def analyze(
    rig: Path,
    at: str,
    overrides: list[Override],
    joint: str,
    plot: str | None,
    json: str | None,
    measure: Literal["multisine", "chirp", "relay"] | None,
    amplitude: float | None,
    hysteresis: float | None,
    recorded: list[Path],
    excitation: Path | None,
    yes: bool,
    supplies: bool,
    orders: str,
    response: str,
    ripple: str,
    report: str | None,
) -> None:
    """Linearise a rig: poles, margins, responses, steps; size supplies."""
    from cosim.apps.analysis.command import (
        analyze_orders,
        analyze_responses,
        analyze_rig,
        analyze_supplies,
        write_excitation,
    )
    from cosim.apps.analysis.experiment import Measuring
    from cosim.apps.analysis.relay import RelayRequest
    from cosim.output.console import quantity_of

    if supplies:
        fraction = quantity_of(ripple, "1", "--ripple", (0.0, 1.0), "a fraction of the voltage such as 0.05 or 5 %")
        if not fraction:
            raise InputError("is no ripple; give one above 0, such as 5 %", "--ripple")
        analyze_supplies(rig, overrides, fraction, report, json)
        return
    seconds = quantity_of(at, "s", "--at", (0.0, math.inf), "a time such as 0.5 or 500 ms")
    if orders:
        analyze_orders(rig, overrides, names_in(orders), seconds, json)
        return
    if response:
        analyze_responses(rig, overrides, names_in(response), seconds, plot, json)
        return
    if amplitude is not None and not amplitude > 0.0:
        raise InputError(f"{amplitude:g} is no amplitude; give one above 0", "--amplitude")
    if hysteresis is not None and hysteresis < 0.0:
        raise InputError(f"{hysteresis:g} is no hysteresis; give 0 or more", "--hysteresis")
    if measure == "relay" and (recorded or excitation):
        raise InputError("a relay runs on the rig itself; take it out", "--excitation" if excitation else "--recorded")
    if seconds and (measure or recorded):
        raise InputError("loops are measured at rest in the initial posture; take it out", "--at")
    if yes and measure != "relay":
        raise InputError("is for --measure relay, which alone moves real motors here; take it out", "--yes")
    if measure == "relay":
        _analyze_with_relay(rig, overrides, names_in(joint), plot, json, RelayRequest(amplitude, hysteresis), yes)
        return
    if hysteresis is not None:
        raise InputError("is of a relay; add --measure relay", "--hysteresis")
    if excitation is None:
        analyze_rig(rig, seconds, overrides, names_in(joint), plot, json, Measuring(measure, amplitude, recorded))
    elif len(names := names_in(joint)) != 1:
        raise InputError("give the joint that is excited, and one alone", "--joint")
    else:
        write_excitation(rig, overrides, names[0], measure or "multisine", amplitude, excitation)


def _analyze_with_relay(
    rig: Path,
    overrides: list[Override],
    joints: Sequence[str],
    plot: str | None,
    json: str | None,
    request: RelayRequest,
    yes: bool,
) -> None:
    from cosim.apps.analysis.command import analyze_with_relay
    from cosim.cli.confirm import MotorQuestion

    out = sys.stderr if json == "-" else sys.stdout
    analyze_with_relay(rig, overrides, joints, plot, json, request, MotorQuestion(yes, sys.stdin, out))


def learn(
    rig: Path,
    overrides: list[Override],
    save: Path,
    iterations: int,
    gain: float,
    cutoff: str,
    recording: Path | None,
) -> None:
    """Learn the feedforward of a repeated motion."""
    from cosim.apps.learning.command import learn_rig
    from cosim.output.console import quantity_of
    from cosim.output.slow_code import named_when_slow

    frequency = quantity_of(cutoff, "Hz", "--cutoff", (1e-3, 1e6), "a frequency such as 10 or 10 Hz")
    with named_when_slow():
        learn_rig(rig, overrides, save, iterations, gain, frequency, recording)


def tune(
    rig: Path,
    session: str | None,
    resume: bool,
    dask: str | None,
    on_hardware: Path | None,
    replay: Path | None,
    trial: list[int],
    candidates: int,
    step_factor: float,
    yes: bool,
    unit: list[str],
    column: list[str],
    gain: list[str],
    topic: str | None,
    overrides: list[Override],
    **options: Any,
) -> None:
    """Find gains by many simulated runs."""
    from cosim.apps.tuning.command import hardware_trials, read_options, try_on_hardware, tune_rig
    from cosim.apps.tuning.notebook import open_session
    from cosim.cli.confirm import MotorQuestion, check_confirmable
    from cosim.cli.table_options import table_options
    from cosim.output.slow_code import named_when_slow

    given = read_options(options, table_options(unit, column, topic, gain))
    if replay is not None and on_hardware is None:
        raise InputError("nothing to try its candidates on; add --on-hardware", "--replay")
    hardware = None if on_hardware is None else hardware_trials(on_hardware, trial, candidates, step_factor)
    if hardware is not None and replay is None:
        check_confirmable(yes, sys.stdin)
    if replay is None:
        with named_when_slow():
            found = tune_rig(rig, overrides, given, session, resume, dask, hardware)
    else:
        found = open_session(replay)
    if hardware is not None:
        try_on_hardware(found, hardware, MotorQuestion(yes, sys.stdin, sys.stdout))


def sessions(folders: list[Path], trial: int | None, record: str | None) -> None:
    """List, compare or repeat tuning sessions."""
    from cosim.apps.tuning.notebook import sessions as show
    from cosim.apps.tuning.session_folder import PARENT

    show(folders or [Path(PARENT)], trial, record)


def fmu(
    rig: Path,
    part: str | None,
    fmi: Literal["2", "3"] | None,
    inputs: list[str],
    output: Path,
    overrides: list[Override],
) -> None:
    """Write a rig, or one of its parts, as an FMU."""
    build(rig, "fmu", None, output, None, False, part, fmi, inputs, overrides)


def build(
    rig: Path,
    target: str,
    cpu: str | None,
    output: Path,
    check: Path | None,
    trust: bool,
    part: str | None,
    fmi: Literal["2", "3"] | None,
    inputs: list[str],
    overrides: list[Override],
) -> None:
    """Write the ticks of a rig as code for another machine or program."""
    from cosim.apps.deploy.command import Choices
    from cosim.apps.deploy.command import build as build_rig
    from cosim.output.slow_code import named_when_slow

    def write(trusted: bool) -> None:
        with named_when_slow():
            build_rig(rig, overrides, target, output, Choices(cpu, check, part, fmi, inputs), trusted)

    if check is None:
        write(False)
    else:
        from cosim.cli.trust import with_trust

        with_trust(check, trust, write)


def new(
    rig: Path,
    robot: str,
    bandwidth: str,
    actuator: Literal["auto", "ideal", "dc_motor", "file"],
    floating: bool,
    arguments: list[str],
    packages: list[str],
    force: bool,
) -> None:
    """Write a first rig for a robot file."""
    from cosim.apps.new.command import new_rig

    new_rig(rig, robot, bandwidth, actuator, floating, arguments, packages, force)


def key(file: Path) -> None:
    """Write keys for telemetry and control in a network."""
    from cosim.core.access.curve import create_keys

    public = create_keys(file)
    print(f"wrote {file}, which only you may read, and {public} for clients")


def export_model(source: Path, output: Path, overrides: list[Override]) -> None:
    """Write the mechanism of a rig or a robot file as URDF, MJCF or SDF."""
    from cosim.apps.derive.robot_export import export_model as write

    write(source, output, overrides)


def derive(
    mechanism: Path,
    file: Path | None,
    graph: bool,
    bondgraph: bool,
    compare: bool,
    equations: bool,
    picture: bool,
    tables: bool,
    joint: str | None,
    form: Literal["loop-free", "circuit", "blocks"],
    to: Literal["text", "latex", "c", "python", "matlab"],
    json: Path | None,
    symbols: bool,
    frames: list[str],
    load: str | None,
    point_masses: bool,
    at: list[str],
    mount: Path | None,
    on: str | None,
    times: str,
    labels: bool,
    formulation: str | None,
) -> None:
    """Derive the equations, the graph or the picture of a mechanism."""
    modes = {"--graph": graph, "--bondgraph": bondgraph, "--compare": compare}
    modes |= {"--equations": equations, "--picture": picture, "--tables": tables}
    chosen = [option for option, given in modes.items() if given]
    if len(chosen) != 1:
        what = "nothing to derive; pass --graph, --bondgraph, --compare, --equations, --picture or --tables"
        raise InputError(f"pass only one of {' and '.join(chosen)}" if chosen else what, "derive")
    if compare and file is not None:
        raise InputError(f"'{file}' would hold no picture; --compare writes its figures with --json", "derive")
    if graph:
        from cosim.apps.derive.graph_report import derive_graph

        derive_graph(mechanism, file)
    elif bondgraph:
        from cosim.apps.derive.bond_graph_report import derive_bond_graph

        derive_bond_graph(mechanism, file, joint, form, to)
    elif compare:
        from cosim.apps.derive.comparison import derive_comparison

        derive_comparison(mechanism, json)
    elif tables:
        from cosim.apps.derive.body_tables import derive_tables

        derive_tables(mechanism, file)
    elif picture:
        from cosim.apps.derive.mechanism_picture.command import derive_picture

        derive_picture(mechanism, file, at, times, labels, mount, on)
    else:
        from cosim.apps.derive.equations.command import Options, derive_equations

        options = Options(symbols, frames, load, point_masses, at, mount, on, formulation)
        derive_equations(mechanism, file, to, options)


def doctor(duration: str, cpu: int | None, json: Path | None) -> None:
    """Measure whether this machine can run loops in real time."""
    from cosim.apps.doctor import main as examine

    examine(duration, cpu, json)


def dash(
    source: str | None,
    overrides: list[Override],
    duration: str | None,
    record: Path | None,
    connect: str | None,
    control: str | None,
    key: str | None,
    host: str,
    port: int,
    allow_host: list[str],
    dark: bool,
    frame_rate: float,
) -> None:
    """Show a rig, a run or a recording in the browser."""
    from cosim.apps.dashboard.command import Joining, RigChoice
    from cosim.apps.dashboard.command import dash as serve
    from cosim.apps.dashboard.web_page import WebAddress
    from cosim.core.access.binding import stream_address

    if source is not None and connect is not None:
        raise InputError(f"pass one of '{source}' and --connect {connect}", "dash")
    if connect == "":
        connect = stream_address()
    if (shown := source or connect) is None:
        raise InputError("nothing to show; pass a rig, a recording, or --connect with the address of a stream", "dash")
    if connect is not None and "://" not in connect:
        raise InputError(f"'{connect}' is no address of a stream; give one such as tcp://127.0.0.1:9872", "--connect")
    at, choice = WebAddress(host, port, allow_host), RigChoice(overrides, duration, record)
    serve(shown, at, dark, frame_rate, choice, Joining(control, key))


def foxglove(
    address: str | None,
    host: str,
    port: int,
    allow_host: list[str],
    allow_origin: list[str],
    allow_set: bool,
    key: str | None,
) -> None:
    """Show a run live in Foxglove."""
    from cosim.apps.foxglove.command import FoxgloveAddress, serve
    from cosim.core.access.binding import stream_address

    serve(address or stream_address(), FoxgloveAddress(host, port, allow_host, allow_origin, allow_set), key)


def layout(rig: Path, program: str, recording: bool, output: Path | None, overrides: list[Override]) -> None:
    """Write a layout of PlotJuggler or Foxglove."""
    from cosim.cli.layout import check_layout, write_layout
    from cosim.rig.rig import load_rig

    check_layout(rig, program, recording, output)
    print(f"wrote {write_layout(load_rig(rig, overrides), program, recording, output, overrides)}")
