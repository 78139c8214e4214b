"""The summary of a run on the command line: a table of the joints and a line per topic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cosim.core.errors import RunError, plural
from cosim.core.units import unit_sign
from cosim.mechanics.formulations import SEPARATE_BODIES
from cosim.output.text_table import TextTable, bold
from cosim.output.timing_report import timing_lines
from cosim.rig.run.proven_units import unit_lines
from cosim.rig.run.recorded_run import StreamSummary
from cosim.rig.run.run import Run
from cosim.rig.run.summary import (
    BondSummary,
    DriveBondSummary,
    EnergySummary,
    EventSummary,
    JointSummary,
    PeakSummary,
    RunSummary,
    speed_text,
)

if TYPE_CHECKING:
    from cosim.execution.hardware.manager import BusReport

# relative energy residual, of the whole or of a bond, above which a run is called coarse
COARSE = 0.01
# relative energy residual above which a run is called unstable
UNSTABLE = 0.5
DEFLECTED = 0.25  # of the length of an elastic link, from which on it is warned of
MOST_SUBSTEPS = 1000  # that a warning recommends
OFTEN = 0.01  # steps of the drives without convergence, per tick
# smaller values, in SI, are shown as 0
ROUNDING = 1e-12
# energy [J] lost in an event below which it is not reported
LOSS = ROUNDING


def print_summary(run: Run, unstable: Sequence[str] = ()) -> None:
    """Print the summary: a table of the joints if there are any, then a line per topic. unstable: what was known to be
    before."""
    summary, units = run.summary, run.rig.units
    print(f"{bold(run.rig.name)}  {run.rig.description}".rstrip())
    joints = summary["joints"]
    columns = _columns(list(joints.values()))
    table = TextTable(("joint", "role"), [heading for heading, _, _ in columns])
    for name, joint in joints.items():
        none = {"effort"} if joint["role"] == "passive" else set()
        values = [
            _quantity(None if what in none else joint[key], unit_sign(units[f"{name}/{what}"]))
            for _, key, what in columns
        ]
        table.add_row(name, joint["role"], *values)
    timing = [] if summary["timing"] is None else timing_lines(summary["timing"])
    general = [*general_lines(summary, unstable), *deflection_lines(summary, run.rig.full_deflection)]
    tables = table.lines() if joints else ()
    structure = structure_lines(summary, units)
    for line in (
        *tables,
        *structure,
        *guard_lines(summary),
        *shadow_lines(summary, units),
        *unit_lines(summary["units"]),
        *load_lines(summary, units),
        *general,
        *timing,
    ):
        print(line)


# heading, key of a joint's summary, the interface whose unit it has
TRACKING = (("error RMS", "error_rms", "position"), ("error max", "error_max", "position"))
RANGE = (("min", "position_min", "position"), ("max", "position_max", "position"))
SPEED = (("top speed", "speed_max", "velocity"),)
EFFORT = (("effort RMS", "effort_rms", "effort"), ("effort peak", "effort_peak", "effort"))


def _columns(joints: Sequence[JointSummary]) -> list[tuple[str, str, str]]:
    """The columns: errors where anything is tracked, the range of motion where anything is not, with the speed where
    nothing is; no efforts where all are zero."""
    tracked = [joint["error_rms"] is not None for joint in joints]
    actuated = any(joint["effort_peak"] != 0.0 for joint in joints)
    parts = (TRACKING, any(tracked)), (RANGE, not all(tracked)), (SPEED, not any(tracked)), (EFFORT, actuated)
    return [column for columns, shown in parts if shown for column in columns]


def invalid_results(run: Run, unstable: Sequence[str] = ()) -> RunError | None:
    """What makes the results of a finished run invalid, if anything. unstable: what was known to be before."""
    energy = run.summary["energy"]
    if run.fault or not energy or energy["residual_relative"] <= UNSTABLE:
        return None
    return RunError(f"the run is unstable and its results are invalid: {_why_unstable(unstable)}", run.rig.path)


def _why_unstable(unstable: Sequence[str]) -> str:
    """The step is the cause only where nothing else is known to be unstable."""
    fix = "try a smaller schedule.step, more schedule.substeps or schedule.integrator: rosenbrock"
    return "; ".join(unstable) or f"the step is too coarse; {fix}"


def general_lines(summary: RunSummary, unstable: Sequence[str] = ()) -> list[str]:
    """Energy, buses, speed and engine."""
    energy = summary["energy"]
    parts: dict[str, list[str]] = {}
    reasons = []
    for part, how in summary["engine"].items():
        where, _, why = how.partition(": ")
        parts.setdefault(where, []).append(part)
        reasons += [f"         {part} in Python: {why}"] if why else []
    if energy and COARSE < energy["residual_relative"] <= UNSTABLE:
        reasons.append(f"warning  the energy balance does not close: {_why_unstable(unstable)}")
    reasons += step_error_lines(summary)
    reasons += coarse_coupling_lines(summary)
    balance = [
        f"energy   work in {e['work_in']:.6g} J, {_of_others(e)}dissipated {e['dissipated']:.6g} J, stored"
        f" {e['stored']:+.6g} J, residual {e['residual']:.2e} J ({e['residual_relative']:.1e})"
        for e in [energy]
        if e is not None
    ]
    formulation = summary["formulation"]
    other_equations = "" if formulation == SEPARATE_BODIES else f"; equations of motion: {formulation}"
    return [
        *balance,
        *bond_lines(summary),
        *coupling_step_lines(summary),
        *(bus_line(bus) for bus in summary["drivers"]),
        *([] if summary["stream"] is None else [stream_line(summary["stream"])]),
        *warning_lines(summary),
        f"speed    {speed_text(summary)}",
        "engine   " + "; ".join(f"{', '.join(names)}: {where}" for where, names in parts.items()) + other_equations,
        *reasons,
    ]


def coupling_step_lines(summary: RunSummary) -> list[str]:
    """The steps of the coupling of parts, where a tick has several."""
    steps = summary["coupling_steps"]
    if steps is None:
        return []
    again = f", {steps['repeated']:,} more made again with a shorter one" if steps["repeated"] else ""
    return [f"coupling {steps['count']:,} {plural(steps['count'], 'step')}{again}"]


def bond_lines(summary: RunSummary) -> list[str]:
    """What the couplings of parts, of real joints and of load motors created or lost."""
    kinds = {"": summary["bonds"], "drive of ": summary["real_joints"], "load motor of ": summary["load_motors"]}
    return [
        f"bond     {kind}{name}: residual energy {bond['residual']:.2e} J, at most {bond['residual_max']:.2e} J;"
        f" power at most {bond['power_max']:.4g} W" + _stand_in(bond)
        for kind, bonds in kinds.items()
        for name, bond in bonds.items()
    ]


def coarse_coupling_lines(summary: RunSummary) -> list[str]:
    """Bonds of parts whose residual energy is a large part of what went through them."""
    fix = "try a smaller schedule.step, a couplings.correction or another couplings.order"
    return [
        f"warning  the coupling is too coarse: bond '{name}' has created or lost"
        f" {bond['residual_relative']:.2g} of the energy that went through it, or more; {fix}"
        for name, bond in summary["bonds"].items()
        if not bond["residual_relative"] <= COARSE
    ]


def _stand_in(bond: BondSummary | DriveBondSummary) -> str:
    commanded = bond.get("effort") == "commanded"
    return ", by the commanded effort: the drive reports none" if commanded else ""


def deflection_lines(summary: RunSummary, full_deflection: Mapping[str, float]) -> list[str]:
    """A warning for each elastic link that bends more than its modes are for, in a run that is not unstable.
    full_deflection: see `Model.full_deflection`."""
    energy, worst = summary["energy"], dict[str, tuple[float, str]]()
    if energy and not energy["residual_relative"] <= UNSTABLE:
        return []
    for mode, length in full_deflection.items():
        joint, (link, _, own) = summary["joints"][mode], mode.rpartition(".")
        part = max(abs(joint["position_min"]), abs(joint["position_max"])) / length
        worst[link] = max(worst.get(link, (0.0, "")), (part, own))
    fix = "more than its modes are for; check the units of its stiffness, such as youngs_modulus, or use several links"
    return [
        f"warning  elastic link '{link}' deflects by {part:.0%} of its length in {own}, {fix}"
        for link, (part, own) in worst.items()
        if part > DEFLECTED
    ]


def step_error_lines(summary: RunSummary) -> list[str]:
    """A warning where the estimated error of a step is above the tolerance, or steps of the drives failed too often."""
    if (unconverged := summary["unconverged"]) and unconverged > OFTEN * summary["ticks"]:
        what = f"{unconverged} of the implicit steps of the drives did not converge"
        return [f"warning  {what}; use more schedule.substeps, or compare with cosim run --reference"]
    error = summary["step_error"]
    if error is None or error["max"] <= 1.0:
        return []
    what = f"estimated error of joint '{error['joint']}'"
    needed = error["substeps_needed"]
    # of a motion that diverged no number would do
    fix = f"use schedule.substeps: {f'{needed} or ' if needed <= MOST_SUBSTEPS else ''}auto, or a larger tolerance"
    return [f"warning  the step is too coarse: the {what} is {error['max']:.3g} times schedule.tolerance; {fix}"]


def _of_others(energy: EnergySummary) -> str:
    """The work of force laws and of parts, where there is any."""
    works = {"forces": energy["work_of_forces"], "parts": energy["work_of_parts"]}
    return "".join(f"of {name} {work:.6g} J, " for name, work in works.items() if work)


def bus_line(bus: BusReport) -> str:
    """Traffic and load of the bus of a driver."""
    fields = bus["feedforward"]
    saturated = [f"{field['joint']} {n} {plural(n, 'time')}" for field in fields if (n := field["saturated"])]
    resolutions = [f"{field['resolution']:.3g}" for field in fields if field["resolution"]]
    notes = f"; {bus['unsent']:,} {plural(bus['unsent'], 'command')} expired unsent" if bus["unsent"] else ""
    notes += f"; feedforward saturated: {', '.join(saturated)}" if saturated else ""
    notes += f"; feedforward resolution {' / '.join(dict.fromkeys(resolutions))}" if resolutions else ""
    load = f"bus load {bus['bus_load']:.1%}, {bus['bus_load_estimated']:.1%} estimated"
    return (
        f"bus      {bus['driver']} on {bus['connection']}: {bus['sent']:,} sent, {bus['received']:,} received,"
        f" {bus['errors']:,} {plural(bus['errors'], 'error')}; {load}{notes}"
    )


def stream_line(stream: StreamSummary) -> str:
    """Where the run was published, and what was not."""
    if stream["failure"]:
        return f"warning  no telemetry to the end: {stream['failure']}"
    missed = stream["missed"]
    readers = ", which other users of this machine can read" if stream["open"] else ""
    lost = f": {missed:,} {plural(missed, 'tick')} missed" if missed else ""
    return f"stream   {stream['endpoint']}{readers}{lost}"


def warning_lines(summary: RunSummary) -> list[str]:
    """What failed beside the run; limits, telemetry and the outcome have lines of their own."""
    limits = {count["what"] for kinds in summary["guard"].values() for count in kinds.values()}
    telemetry = (summary["stream"] or {}).get("failure") or summary["outcome"]
    return [
        f"warning  {event['t_s']:.6g} s  {what}"
        for event in summary["events"]
        if event["level"] == "warning"
        and (what := event["name"]) not in limits
        and what not in summary["outcome"]
        and not what.startswith(telemetry)
    ]


# events listed one by one; of more, those are summed up that come more often than so many times
LISTED, AGAIN = 8, 3
# redundant rows named one by one
NAMED = 6


def structure_lines(summary: RunSummary, units: Mapping[str, str]) -> list[str]:
    """Reactions and violations of constraints, and the events."""
    lines = []
    for name, constraint in summary["constraints"].items():
        drift = " and ".join(
            f"{constraint[f'{what}_max']:.1e} {units[f'{name}/{what}']}"
            for what in ("violation", "slip")
            if f"{what}_max" in constraint
        )
        lines.append(f"closure  {name}: {drift}{largest_text(constraint['largest'], units)}")
    for joint, peaks in summary["reactions"].items():
        lines.append(f"reaction {joint}: {largest_text(peaks, units).removeprefix(', ')}")
    peaks = {f"{name}/{row}": p for name, c in summary["constraints"].items() for row, p in c["reaction_peak"].items()}
    rows = [row for row in summary["redundant"] if peaks[row] > 0.0]  # others, as across a plane, are zero
    if n := len(rows):
        named = ", ".join(rows[:NAMED]) + (f" and {n - NAMED} more" if n > NAMED else "")
        verb = "is" if n == 1 else "are"
        lines.append(f"note     {named} {verb} redundant; reactions have least norm")
    if summary["immobile"]:
        lines.append(f"note     {summary['immobile']}")
    return [*lines, *event_lines([event for event in summary["events"] if event["level"] == "info"])]


def largest_text(peaks: Mapping[str, PeakSummary], units: Mapping[str, str]) -> str:
    """`, force up to 9.81 N at 0.3 s, moment up to …` of the largest reactions of a constraint or joint, which are
    resultants where there are several components; empty if they were not recorded."""
    largest: dict[str, tuple[str, PeakSummary]] = {}
    for name, peak in peaks.items():
        what = name.rpartition("/")[2]
        kind = next((kind for kind in ("force", "moment") if kind in what), "effort")
        if kind not in largest or peak["peak"] > largest[kind][1]["peak"]:
            largest[kind] = name, peak
    parts = []
    for kind, (name, peak) in largest.items():
        size = _quantity(peak["peak"], unit_sign(units[name]))
        if not size.startswith("0 "):
            when = "" if peak["t_s"] is None else f" at {peak['t_s']:.6g} s"
            parts.append(f"{kind} up to {size}{when}")
    return ", " + (", ".join(parts) or "no reaction") if peaks else ""


def event_lines(events: Sequence[EventSummary]) -> list[str]:
    """A line for each event; of many, those that come again and again are summed up, and rare ones are all listed."""
    kinds = [_kind(event) for event in events]
    often = {kind for kind, times in Counter(kinds).items() if times > AGAIN} if len(events) > LISTED else set()
    lines, rest = [], {kind: [] for kind in dict.fromkeys(kinds) if kind in often}
    seen: Counter[str] = Counter()
    for kind, event in zip(kinds, events, strict=True):
        seen[kind] += 1
        if kind in often and seen[kind] > AGAIN:
            rest[kind].append(event)
            continue
        times = f" ({event['count']} times)" if event["count"] > 1 else ""
        lines.append(f"event    {event['t_s']:.6g} s  {event['name']}{times}{_lost(event['energy_lost_J'])}")
    for kind, more in rest.items():
        times, lost = sum(event["count"] for event in more), sum(event["energy_lost_J"] for event in more)
        lines.append(f"event    … {times} more of {kind} until {more[-1]['t_s']:.6g} s{_lost(lost)}")
    return lines


def _kind(event: EventSummary) -> str:
    """What its repetitions have in common: of a change of a parameter, its name."""
    return event["name"].partition(" = ")[0]


def _lost(energy: float) -> str:
    return f", {_quantity(energy, 'J')} lost" if energy > LOSS else ""


def guard_lines(summary: RunSummary) -> list[str]:
    """Limits that warned or saturated, a line for each joint and limit."""
    lines = []
    for kinds in summary["guard"].values():
        for count in kinds.values():
            ticks = f"{count['ticks']} {plural(count['ticks'], 'tick')}"
            times = f" ({count['occurrences']} occurrences)" if count["occurrences"] > 1 else ""
            lines.append(f"guard    {count['what']}, in {ticks}{times}, first at {count['first_s']:.6g} s")
    return lines


def shadow_lines(summary: RunSummary, units: Mapping[str, str]) -> list[str]:
    """The largest residuals of real joints against their simulated twins."""
    lines = []
    for name, shadow in summary["shadows"].items():
        effort, position = (unit_sign(units[f"{name}/{what}"]) for what in ("effort", "position"))
        lines.append(
            f"shadow   {name}: at most effort {_quantity(shadow['effort_max'], effort)},"
            f" drive {_quantity(shadow['drive_max'], effort)}, position {_quantity(shadow['position_max'], position)},"
            f" slip {_quantity(shadow['slip_max'], position)}"
        )
    return lines


def load_lines(summary: RunSummary, units: Mapping[str, str]) -> list[str]:
    """How well load motors exerted what the simulated load asked of them."""
    lines = []
    for name, load in summary["load_motors"].items():
        if load["effort"] == "commanded":
            continue
        whats = ("effort", "load_inertia_error", "load_damping_error")
        effort, inertia, damping = (unit_sign(units[f"{name}/{what}"]) for what in whats)
        lines.append(
            f"load     {name}: error RMS {_quantity(load['error_rms'], effort)}, at most"
            f" {_quantity(load['error_max'], effort)}, delay {_quantity(load['delay'], 's')}; it adds"
            f" {load['inertia_error']:+.3g} {inertia} and {load['damping_error']:+.3g} {damping} to the load"
        )
    return lines


def _quantity(value: float | None, unit: str) -> str:
    """Four significant digits with an SI prefix; a dash for None."""
    if value is None:
        return "–"
    if abs(value) < ROUNDING:
        return f"0 {unit}"
    for prefix, factor in (("", 1.0), ("m", 1e-3), ("µ", 1e-6), ("n", 1e-9)):
        if abs(value) >= factor * (1.0 - 0.5e-4):  # rounds up to 1 of the larger unit
            return f"{value / factor:.4g} {prefix}{unit}"
    return f"{value:.2e} {unit}"
