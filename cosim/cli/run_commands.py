"""The commands for runs elsewhere and for runs that are over: what they do."""

from __future__ import annotations

import math
from pathlib import Path

from cosim.cli.command_tree import names_in
from cosim.core.errors import InputError


def set_(values: list[str], connect: str | None, key: Path | None, force: bool) -> None:
    """Set parameters of a run while it runs, all between the same two ticks."""
    from cosim.output.client import connect as connected

    changes = _assignments(values)
    with connected(connect, "cosim live set", key=key) as client, client.control(force):
        tick = client.set(changes)
        print(f"before tick {tick:,}: " + ", ".join(f"{name} = {value}" for name, value in changes.items()))


def get(names: list[str], connect: str | None, key: Path | None) -> None:
    """Print parameters of a run while it runs."""
    from cosim.output.client import connect as connected
    from cosim.output.text_table import TextTable

    with connected(connect, "cosim live get", key=key) as client:
        parameters = client.parameters(*names)
    table = TextTable(("parameter", "unit", "changes"), ("value", "min", "max"))
    for name, record in parameters.items():
        value, changes = record["value"], record.get("changes", "live")
        without = "–" if changes == "fixed" else "∞"  # a fixed one may not be given
        values = [_shown(each, without) for each in (value if isinstance(value, list) else [value])]
        bounds = (_shown(bound, "–") for bound in (record["min"], record["max"]))
        table.add_row(name, record["unit"], changes, ", ".join(values), *bounds)
    print("\n".join(table.lines()))


def _shown(value: object, without: str) -> str:
    """A number or a text; without: for None."""
    return f"{value:g}" if isinstance(value, float) else without if value is None else str(value)


def stop(connect: str | None, key: Path | None, force: bool, now: bool) -> None:
    """Stop a run while it runs: a controlled stop where it has one, or immediately."""
    from cosim.output.client import connect as connected

    with connected(connect, "cosim live stop", key=key) as client:
        if now:
            print(f"emergency stop before tick {client.estop():,}")
            return
        with client.control(force):
            print(f"stopped before tick {client.stop():,}")


def _assignments(texts: list[str]) -> dict[str, float | list[float] | str]:
    found: dict[str, float | list[float] | str] = {}
    for name, value in map(_assignment, texts):
        if name in found:
            raise InputError(f"{name} is given twice; give each parameter once", "cosim live set")
        found[name] = value
    return found


def _assignment(text: str) -> tuple[str, float | list[float] | str]:
    """Name and value of `arm.kp=800`, `arm.kp=[800, 400]` or `arm.kp=800 N*m/rad`."""
    from orjson import JSONDecodeError, loads

    name, sign, value = text.partition("=")
    if not sign or not name.strip() or not value.strip():
        raise InputError(f"expected NAME=VALUE such as arm.kp=800, got '{text}'", "cosim live set")
    try:
        return name.strip(), loads(value)
    except JSONDecodeError:
        return name.strip(), value.strip()


def compare(
    a: Path, b: Path, unit: list[str], column: list[str], gain: list[str], topic: str | None, align: bool
) -> None:
    """Compare two runs, or a run with a log, and show where they part."""
    from cosim.cli.comparison_report import print_comparison
    from cosim.cli.table_options import table_options
    from cosim.rig.run.comparison import compare as compared
    from cosim.rig.run.measured_log import run_or_log
    from cosim.rig.run.run import load_run

    first, options = load_run(a), table_options(unit, column, topic, gain)
    runs = first, run_or_log(b, first, options)
    shift = 0.0
    if align:
        from cosim.rig.run.comparison import alignment_of

        shift = alignment_of(*runs)
    print_comparison(compared(*runs, shift), str(a), str(b))


def replay(
    recording: Path,
    rig: Path | None,
    telemetry: str | None,
    speed: float | None,
    rerun: bool,
    bus: bool,
    to: Path | None,
    trust: bool,
) -> None:
    """Publish a recording again, or repeat its run and compare."""
    from cosim.cli.replay import publish_recording, rerun_recording

    if to is not None and rig is not None:
        raise InputError("no rig is needed for --to; take it out", str(rig))
    if to is not None:
        from cosim.output.traffic_reader import write_can_log

        count, others = write_can_log(recording, to)
        print(f"wrote    {to}: {count:,} frames" + "".join(f"; '{name}' is on a serial port" for name in others))
        return
    if bus:
        from cosim.cli.replay import report_bus_replay

        report_bus_replay(recording, rig, trust)
        return
    if rig is not None:
        raise InputError("a rig is for --bus; add it, or take the rig out", str(rig))
    if not rerun:
        publish_recording(recording, telemetry, 1.0 if speed is None else speed)
        return
    if telemetry is not None or speed is not None:
        raise InputError("is as fast as possible and publishes nothing; pass it alone", "--rerun")
    rerun_recording(recording, trust)


def explain(recording: Path, last: str, json: str | None) -> None:
    """Explain why a recorded run stopped."""
    from cosim.apps.post_mortem.command import explain_recording

    explain_recording(recording, last, json)


def plot(words: list[str], output: Path | None) -> None:
    """Plot a run, or signals of several runs over each other."""
    from cosim.cli.run_files import plot_recordings

    plot_recordings(words, output)


def export(
    recording: Path,
    to: str | None,
    output: Path | None,
    signals: str,
    start: str | None,
    until: str | None,
) -> None:
    """Write the signals of a recording in another format."""
    from cosim.output.console import quantity_of
    from cosim.output.output_files import check_output, identity
    from cosim.rig.run.export import FORMATS, SUFFIXES, export_run, selection_of
    from cosim.rig.run.run import open_recording

    times = [
        None if text is None else quantity_of(text, "s", option, (0.0, math.inf), "a time such as 2.5 or 500 ms")
        for text, option in ((start, "--from"), (until, "--until"))
    ]
    suffix = "" if output is None else output.suffix.lower().removeprefix(".")
    to = to or next((format for format in FORMATS if format == suffix), None)
    if to is None:
        raise InputError(f"name the format, {', '.join(FORMATS)}, or a file of it by -o", "--to")
    ending = SUFFIXES.get(to, f".{to}")
    path = Path(recording.name.partition(".")[0] + ending) if output is None else output
    check_output(path, "-o", ("." + ending.rpartition(".")[2],), {identity(recording): "the recording"})
    run = open_recording(recording)
    selection = selection_of(run, names_in(signals), *times)
    export_run(selection, to, path)
    print(f"wrote    {path}: {len(selection.rows):,} ticks, {len(selection.columns):,} signals")
    if run.fault:  # also of a recording that was cut off
        print(f"warning  {recording}: {run.fault}")
