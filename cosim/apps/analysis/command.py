"""`cosim analyze`: a rig linearised at a state, and its loops as measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from cosim.apps.analysis.contact_states import contact_states
from cosim.apps.analysis.experiment import Kind, Measuring, at_rest, experiment_of
from cosim.apps.analysis.frequency import modes_of, respond
from cosim.apps.analysis.inner_loops import inner_loop_figures
from cosim.apps.analysis.linearisation import check_linear, linearise_at, memory_at, slopes_of
from cosim.apps.analysis.loops import closed_dofs, disk_margin, feedback_of, is_stable, loop_figures
from cosim.apps.analysis.measured import MeasuredLoop, measured_lines, relay_lines
from cosim.apps.analysis.relay import RelayPoint, RelayRequest, measure_relay
from cosim.apps.analysis.report import Analysis
from cosim.core.errors import InputError, did_you_mean
from cosim.output.output_files import check_output, identity, write_file, write_json
from cosim.output.plot.style import save
from cosim.output.slow_code import named_when_slow
from cosim.rig.reading.yaml_source import Override, overlay_text
from cosim.rig.rig import Rig, load_rig
from cosim.rig.rig_files import input_files
from cosim.rig.run.consent import GivenQuestion
from cosim.rig.run.run import Run, load_run
from cosim.rig.run.run_warnings import give, invalid_results

MOST_DURATIONS = 10.0  # times the duration of a run, at most
RUNS = (".mcap", ".npz", ".run")
NO_DRIVERS = "drivers=[]"  # every motor is simulated


def analyze(rig: Rig, at: float = 0.0, joints: Sequence[str] = ()) -> Analysis:
    """Linearise a rig after `at` seconds of its run; joints: dofs whose loops are looked at, all by default.

    Raises InputError for a rig or a joint that cannot be analyzed, see `linearise`.
    """
    tick_model = rig.tick_model
    check_linear(rig, tick_model)
    memory, slopes = memory_at(rig, at), slopes_of(tick_model)
    linear = linearise_at(tick_model, memory, slopes)
    for name in joints:
        if name not in linear.dofs:
            raise InputError(f"there is no joint '{name}'{did_you_mean(name, linear.dofs)}", "--joint")
    closed = [dof for dof in closed_dofs(linear) if not joints or linear.dofs[dof] in joints]
    loops = [loop_figures(linear, dof) for dof in closed]
    stable = is_stable(linear)
    together = disk_margin(feedback_of(linear, closed), linear.step) if stable and len(closed) > 1 else None
    shown = [omega for loop in loops for omega in loop.frequencies]
    response = respond(linear, shown if together is None else [*shown, together.frequency])
    driven = [name for name in tick_model.samples if not joints or name in joints]
    drives = inner_loop_figures(tick_model, memory, slopes, driven, stable)
    contacts = contact_states(tick_model, memory)
    return Analysis(linear, response, modes_of(linear), loops, together, drives, contacts)


def check_time(rig: Rig, at: float) -> None:
    """A run goes on after its duration, at rest or with an event. Raises InputError for a time [s] far beyond it."""
    duration = rig.spec.schedule.duration_ns * 1e-9
    if at > MOST_DURATIONS * duration:
        what = f"{at:g} s is far beyond the run of {duration:g} s; give at most {MOST_DURATIONS * duration:g} s"
        raise InputError(f"{what}, or lengthen schedule.duration", "--at")


def check_measurable(found: Analysis, rig: Rig) -> None:
    """Raises InputError where there is no loop to measure."""
    if found.loops:
        return
    what = "there is no loop to measure from a measured position to the effort requested of a drive"
    fix = "give a controller that feeds a position back, or take it out"
    if closing := sorted(rig.plant.drive_controlled):
        what = f"{what}: the drive of joint '{closing[0]}' closes its loops itself"
        fix = "use mode: effort of the drive and its gains in a controller, or take it out"
    raise InputError(f"{what}; {fix}", "--measure")


def analyze_rig(
    path: Path,
    at: float,
    overrides: Sequence[Override],
    joints: Sequence[str],
    plot: str | None,
    json: str | None,
    measuring: Measuring,
) -> None:
    """Print the analysis of a rig, draw it and write its figures."""
    from cosim.output import console

    console.check_targets([plot] if plot else [], json, None, path)
    with console.busy(f"linearising {path.stem}"), named_when_slow():
        rig, at = at_rest(path, overrides) if measuring else (load_rig(path, overrides), at)
        console.check_inputs(input_files(rig, overrides), [plot] if plot else [], json)
        rig.require_joints("cosim analyze")
        check_time(rig, at)
        found = analyze(rig, at, joints)
    if measuring.kind is not None:
        check_measurable(found, rig)
    with console.busy(f"measuring {path.stem}"):
        measured = measuring.loops(path, overrides, found.rig, [loop.dof for loop in found.loops])
    _report(found, rig.run_spec.name, plot, json, measured)


def analyze_with_relay(
    path: Path,
    overrides: Sequence[Override],
    joints: Sequence[str],
    plot: str | None,
    json: str | None,
    request: RelayRequest,
    ask: GivenQuestion,
) -> None:
    """The analysis of a rig in its initial posture, and a relay experiment for each of its loops, with its real motors
    if it has some. ask: see `measure_relay`."""
    from cosim.output import console

    console.check_targets([plot] if plot else [], json, None, path)
    with console.busy(f"linearising {path.stem}"), named_when_slow():
        rig = load_rig(path, overrides)
        rig.require_joints("cosim analyze")
        model = load_rig(path, [*overrides, NO_DRIVERS]) if rig.hardware else rig
        console.check_inputs(input_files(rig, overrides), [plot] if plot else [], json)
        found = analyze(model, 0.0, joints)
    check_measurable(found, model)
    points = measure_relay(rig, model, [loop.dof for loop in found.loops], request, ask)
    _report(found, rig.run_spec.name, plot, json, relays=points)


def _report(
    found: Analysis,
    name: str,
    plot: str | None,
    json: str | None,
    measured: Sequence[MeasuredLoop] = (),
    relays: Sequence[RelayPoint] = (),
) -> None:
    """Print, draw and write an analysis, what was measured and the points of relay experiments."""
    if json != "-":
        print(*found.lines(name), sep="\n")
        if measured:
            print(*measured_lines(measured), sep="\n")
        if relays:
            print(*relay_lines(relays), sep="\n")
    if plot:
        from cosim.apps.analysis.plot import draw

        save(plot, lambda: draw(found, name, measured, relays))
        if json != "-":
            print(f"wrote     plot {plot}")
    if json:
        data = found.as_json() | {"measured": {loop.response.dof: loop.as_json() for loop in measured}}
        data |= {"relay": {point.joint: point.as_json() for point in relays}}
        if write_json(json, data, "figures"):
            print(f"wrote     figures {json}")


def write_excitation(
    path: Path, overrides: Sequence[Override], joint: str, kind: Kind, amplitude: float | None, output: Path
) -> None:
    """Write the experiment of a joint as an overlay, for a run of this rig or of its real motors."""
    from cosim.output import console

    check_output(output, "--excitation", (".yaml", ".yml"), {identity(path): "the rig itself"})
    with console.busy(f"linearising {path.stem}"):
        rig, excitation = experiment_of(path, overrides, joint, kind, amplitude)
    console.refuse_inputs(input_files(rig, overrides), output, "--excitation")
    write_file(output, overlay_text(excitation.overlay(rig), str(path)).encode(), "overlay")
    size = f"{excitation.duration:.3g} s with an effort of {excitation.amplitude:.3g}"
    print(f"wrote     overlay {output}: {joint} for {size}")


def _run_of(path: Path, overrides: Sequence[Override], targets: Mapping[str, str | None]) -> Run:
    """The run of a rig without real motors, with all its signals, or one that is over. targets: option -> the file that
    it writes. Raises InputError, and RunError for a run whose results are wrong."""
    from cosim.output import console

    with console.busy(f"running {path.stem}"), named_when_slow():
        if path.suffix in RUNS:
            if overrides:
                raise InputError("a run that is over does not change; name the rig instead", str(path))
            run = load_run(path)
            give(run.warnings)
        else:
            rig = load_rig(path, overrides)
            console.check_files(input_files(rig, overrides), targets)
            if rig.hardware:
                raise InputError("it has real motors; name a recording of its run instead", str(path))
            run = rig.run(keep="all")
    if (invalid := invalid_results(run, run.summary)) is not None:
        raise invalid
    return run


def analyze_orders(
    path: Path, overrides: Sequence[Override], signals: Sequence[str], begin: float, json: str | None
) -> None:
    """Run a rig, or read a run of one, and print the orders of signals by the angle of their joint, from a time [s]."""
    from cosim.apps.analysis.orders import signal_orders

    target = None if json == "-" else json
    if target is not None:
        check_output(target, "--json", (".json",), {identity(path): "the rig itself"})
    found = signal_orders(_run_of(path, overrides, {"--json": target}), signals, begin)
    if json != "-":
        for orders in found:
            print(*orders.lines(), sep="\n")
    if json and write_json(json, {orders.signal: orders.as_json() for orders in found}, "figures"):
        print(f"wrote     figures {json}")


def analyze_responses(
    path: Path, overrides: Sequence[Override], signals: Sequence[str], at: float, plot: str | None, json: str | None
) -> None:
    """Print the resonances of the responses from the first signal to the others, at a time [s] of a run, draw them and
    write them."""
    from cosim.apps.analysis.signal_responses import signal_responses
    from cosim.output import console

    if len(signals) < 2:
        raise InputError("names two signals or more: from the first to the others", "--response")
    console.check_targets([plot] if plot else [], json, None, path)
    with console.busy(f"linearising {path.stem}"), named_when_slow():
        rig = load_rig(path, overrides)
        console.check_inputs(input_files(rig, overrides), [plot] if plot else [], json)
        rig.require_joints("cosim analyze")
        if rig.hardware:
            raise InputError("real motors have no linear model; analyze the rig without its drivers", "analyze")
        check_time(rig, at)
        found = signal_responses(rig.tick_model, memory_at(rig, at), signals[0], signals[1:])
    if json != "-":
        for response in found:
            print(*response.lines(), sep="\n")
    if plot:
        from cosim.apps.analysis.plot import draw_responses

        save(plot, lambda: draw_responses(found, f"{rig.run_spec.name} at {at:.6g} s"))
        if json != "-":
            print(f"wrote     plot {plot}")
    if json and write_json(json, {response.signal: response.as_json() for response in found}, "figures"):
        print(f"wrote     figures {json}")


def analyze_supplies(
    path: Path,
    overrides: Sequence[Override],
    ripple: float,
    report: str | None,
    json: str | None,
) -> None:
    """Run a rig, or read a run of one, and print what supply, fuse, resistor and capacitor it needs."""
    from cosim.apps.analysis.supplies import size_supplies

    targets = {"--report": report, "--json": None if json == "-" else json}
    taken = {identity(path): "the rig itself"}
    for option, given in targets.items():
        if given is not None:
            check_output(given, option, (".html", ".htm") if option == "--report" else (".json",), taken)
            taken[identity(Path(given))] = f"the file of {option}"
    found = size_supplies(_run_of(path, overrides, targets), ripple)
    if json != "-":
        print(*found.lines(), sep="\n")
    if report:
        write_file(report, found.page().content(), "report")
        if json != "-":
            print(f"wrote     report {report}")
    if json and write_json(json, found.as_json(), "figures"):
        print(f"wrote     figures {json}")
