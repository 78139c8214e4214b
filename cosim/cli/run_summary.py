"""The summary of a run on the command line: a table of the joints and a line per topic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from cosim.core.errors import plural
from cosim.core.units import unit_sign
from cosim.mechanics.bondgraph.power_account import ELECTRICAL, RETURNED
from cosim.mechanics.formulations import SEPARATE_BODIES
from cosim.output.contact_events import WHAT_CONTACTS_DO
from cosim.output.text_table import TextTable, bold
from cosim.output.timing_report import timing_lines
from cosim.rig.run.contact_figures import ContactSummary
from cosim.rig.run.proven_units import unit_lines
from cosim.rig.run.recorded_run import StreamSummary
from cosim.rig.run.run import Run
from cosim.rig.run.run_warnings import event_warnings, invalid_results, lines_of, result_warnings, stream_failure
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

# smaller values, in SI, are shown as 0
ROUNDING = 1e-12
# energy [J] lost in an event below which it is not reported
LOSS = ROUNDING


def print_summary(run: Run) -> None:
    """Print the summary: a table of the joints if there are any, then a line per topic."""
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
    general = general_lines(run)
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


def general_lines(run: Run) -> list[str]:
    """Energy, buses, speed and engine, and what makes the results doubtful."""
    summary = run.summary
    energy = summary["energy"]
    parts: dict[str, list[str]] = {}
    reasons = []
    for part, how in summary["engine"].items():
        where, _, why = how.partition(": ")
        parts.setdefault(where, []).append(part)
        reasons += [f"         {part} in Python: {why}"] if why else []
    # what makes the results invalid is the error of the command
    invalid = invalid_results(run, summary)
    doubts = [line for line in result_warnings(run, summary) if invalid is None or line != invalid.what]
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
        *power_lines(summary),
        *heat_lines(summary),
        *bond_lines(summary),
        *coupling_step_lines(summary),
        *(bus_line(bus) for bus in summary["drivers"]),
        *([] if summary["stream"] is None else [stream_line(summary["stream"])]),
        *lines_of(event_warnings(summary)),
        f"speed    {speed_text(summary)}",
        "engine   " + "; ".join(f"{', '.join(names)}: {where}" for where, names in parts.items()) + other_equations,
        *reasons,
        *lines_of(doubts),
    ]


def coupling_step_lines(summary: RunSummary) -> list[str]:
    """The steps of the coupling of parts, where a tick has several."""
    steps = summary["coupling_steps"]
    if steps is None:
        return []
    again = f", {steps['repeated']:,} more made again with a shorter one" if steps["repeated"] else ""
    return [f"coupling {steps['count']:,} {plural(steps['count'], 'step')}{again}"]


def power_lines(summary: RunSummary) -> list[str]:
    """What became of the energy that drives and supplies took."""
    lines = []
    for name, energies in summary["powers"].items():
        given = {what: energies[what] for what in (ELECTRICAL, RETURNED) if what in energies}
        parts = [f"{part} {_quantity(energy, 'J')}" for part, energy in energies.items() if part not in given]
        taken = ""
        if given:
            back = given[RETURNED]
            taken = f"took {_quantity(given[ELECTRICAL] + back, 'J')}, returned {_quantity(back, 'J')}"
        lost = f"lost: {', '.join(parts)}" if parts else ""
        lines.append(f"power    {name}: {'; '.join(part for part in (taken, lost) if part)}")
    return lines


def heat_lines(summary: RunSummary) -> list[str]:
    """How warm the machines of drives became."""
    lines = []
    for name, nodes in summary["temperatures"].items():
        parts = []
        for node, figures in nodes.items():
            limit = "" if figures["limit"] is None else f" of {figures['limit']:.4g} K"
            parts.append(f"{node} up to {figures['max']:.4g} K{limit}")
        lines.append(f"heat     {name}: {', '.join(parts)}")
    return lines


def bond_lines(summary: RunSummary) -> list[str]:
    """What the couplings of parts, of real joints and of load motors created or lost."""
    kinds = {"": summary["bonds"], "drive of ": summary["real_joints"], "load motor of ": summary["load_motors"]}
    return [
        f"bond     {kind}{name}: residual energy {bond['residual']:.2e} J, at most {bond['residual_max']:.2e} J;"
        f" power at most {bond['power_max']:.4g} W" + _stand_in(bond)
        for kind, bonds in kinds.items()
        for name, bond in bonds.items()
    ]


def _stand_in(bond: BondSummary | DriveBondSummary) -> str:
    commanded = bond.get("effort") == "commanded"
    return ", by the commanded effort: the drive reports none" if commanded else ""


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
        return lines_of([stream_failure(stream["failure"])])[0]
    missed = stream["missed"]
    readers = ", which other users of this machine can read" if stream["open"] else ""
    lost = f": {missed:,} {plural(missed, 'tick')} missed" if missed else ""
    return f"stream   {stream['endpoint']}{readers}{lost}"


# events listed one by one; of more, those are summed up that come more often than so many times
LISTED, AGAIN = 8, 3
# redundant rows named one by one
NAMED = 6


def structure_lines(summary: RunSummary, units: Mapping[str, str]) -> list[str]:
    """Reactions and violations of constraints, the contacts, and the events."""
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
    lines += contact_lines(summary)
    peaks = {f"{name}/{row}": p for name, c in summary["constraints"].items() for row, p in c["reaction_peak"].items()}
    rows = [row for row in summary["redundant"] if peaks[row] > 0.0]  # others, as across a plane, are zero
    if n := len(rows):
        named = ", ".join(rows[:NAMED]) + (f" and {n - NAMED} more" if n > NAMED else "")
        verb = "is" if n == 1 else "are"
        lines.append(f"note     {named} {verb} redundant; reactions have least norm")
    if summary["immobile"]:
        lines.append(f"note     {summary['immobile']}")
    events = [event for event in summary["events"] if event["level"] == "info"]
    return [*lines, *event_lines(events, summary["contacts"])]


def contact_lines(summary: RunSummary) -> list[str]:
    """The contacts, of many those that pressed most, and how their solver fared."""
    found, solver = summary["contacts"], summary["contact_solver"]
    touched = {name: contact for name, contact in found.items() if contact["touches"]}
    hardest = sorted(touched, key=lambda name: -touched[name]["force_peak"])[:LISTED]
    lines = [f"contact  {name}: {_contact_text(contact)}" for name, contact in touched.items() if name in hardest]
    if n := len(touched) - len(hardest):
        lines.append(f"contact  {n} more, with less than {_quantity(touched[hardest[-1]]['force_peak'], 'N')}")
    if n := len(found) - len(touched):
        others = [name for name in found if name not in touched]
        named = ", ".join(others[:NAMED]) + (f" and {n - NAMED} more" if n > NAMED else "")
        lines.append(f"contact  {named} never touched")
    if solver is not None and touched:
        passes = f"{solver['passes_mean']:.3g} passes per step, at most {solver['passes_max']}"
        lines.append(f"contact  solver: {passes}; residual up to {solver['residual_max']:.1e} m/s")
    return lines


def _contact_text(contact: ContactSummary) -> str:
    when = "" if contact["t_s"] is None else f" at {contact['t_s']:.6g} s"
    mean, peak = (_quantity(contact[what], "N") for what in ("force_mean", "force_peak"))
    slid = f"slid {_quantity(contact['slid'], 'm')}" if contact["slid"] > ROUNDING else "did not slide"
    touches = f"touched {contact['touches']:,} {plural(contact['touches'], 'time')}"
    return f"{mean} on average, up to {peak}{when}; {slid}, {touches}, {_quantity(contact['energy_lost_J'], 'J')} lost"


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


def event_lines(events: Sequence[EventSummary], contacts: Collection[str] = ()) -> list[str]:
    """A line for each event; of many, those that come again and again are summed up, and rare ones are all listed. What
    contacts do is of one kind."""
    kinds = [_kind(event, contacts) for event in events]
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


def _kind(event: EventSummary, contacts: Collection[str]) -> str:
    """What its repetitions have in common: of a change of a parameter, its name."""
    contact, _, did = event["name"].rpartition(" ")
    return "contacts" if contact in contacts and did in WHAT_CONTACTS_DO else event["name"].partition(" = ")[0]


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
