"""A recording again: published with its timing, its rig run anew and compared with it, or its bus traffic played to the
drivers."""

from __future__ import annotations

import platform
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from cosim.cli.trust import with_trust
from cosim.core.access.binding import STREAM_EXAMPLE, stream_address
from cosim.core.access.curve import is_local
from cosim.core.errors import InputError, RunError, plural
from cosim.core.recordings.index import read_index
from cosim.execution.hardware.traffic.player import PlayedDifference
from cosim.output import console
from cosim.output.text_table import TextTable
from cosim.rig.bus_replay import ReplayedBus, replay_bus
from cosim.rig.rerun import Rerun, rerun
from cosim.rig.run.run import open_recording
from cosim.rig.run.stream import republish


def publish_recording(path: Path, endpoint: str | None, speed: float) -> None:
    """Publish a recording until its end, or Ctrl-C."""
    endpoint = endpoint or stream_address()
    if not is_local(endpoint):
        what = f"{endpoint} is no endpoint of this machine, and a recording is published without encryption"
        raise InputError(f"{what}; give one such as {STREAM_EXAMPLE}", "--telemetry")
    run = open_recording(path)
    length = f"{run.rig.name}, {run.t[-1]:.6g} s" if len(run.t) else run.rig.name

    if run.fault:  # also what the recording lacks
        print(f"warning  {path}: {run.fault}", flush=True)

    def ready(bound: str) -> None:
        print(f"publishes {length}, at {speed:g} times its speed: {bound}; Ctrl-C ends", flush=True)

    with suppress(KeyboardInterrupt):
        republish(run, endpoint, speed, ready)


def rerun_recording(path: Path, trust: bool) -> None:
    """Print what was compared. trust: code of the recording may run, else the user is asked. Raises RunError where a
    signal differs."""

    def run(trusted: bool) -> Rerun:
        with console.busy(f"running {path.name} again"):
            return rerun(path, trusted)

    again = with_trust(path, trust, run)
    recorded = again.recorded
    ticks, signals, changes = len(recorded.t), len(recorded.signals), len(again.changes)
    counts = ((ticks, "tick"), (signals, "signal"), (changes, "change"))
    print(f"rerun    {recorded.rig.name}  " + ", ".join(f"{k:,} {plural(k, what)}" for k, what in counts))
    if again.difference is not None:
        raise RunError(_difference(again, path), str(path))
    if not recorded.lacks:
        print("equal    every signal at every tick, to the bit")
        return
    print(f"equal    every signal at every tick up to t = {recorded.t[-1]:.6g} s, where the recording ends, to the bit")
    print(f"warning  {path}: {recorded.lacks}")


def _difference(again: Rerun, path: Path) -> str:
    first = again.difference
    assert first is not None
    metadata = read_index(path).metadata
    recorded = f"{first.recorded!r}, now {first.rerun!r}"
    where = f"'{first.signal}' differs first, at tick {first.tick} (t = {first.t:.6g} s): {recorded}"
    made = f"cosim {metadata.get('cosim')}, numpy {metadata.get('numpy')} on {metadata.get('system')}"
    here = "this system" if metadata.get("system") == platform.platform() else platform.platform()
    return f"{where}; it was recorded with {made}; run it again there, this is {here}"


def report_bus_replay(recording: Path, rig: Path | None, trust: bool) -> None:
    """Print what was compared. trust: code of the recording may run, else the user is asked. Raises RunError where a
    driver does something else, InputError."""

    def play(trusted: bool) -> list[ReplayedBus]:
        with console.busy(f"playing {recording.name}"):
            return replay_bus(recording, rig, trusted)

    replayed = play(False) if rig is not None else with_trust(recording, trust, play)
    table = TextTable(("driver", "connection"), ("calls", "sent", "received", "states", "differ"))
    for each in replayed:
        played = each.played
        counts = (played.calls, played.sent, played.received, played.measured, played.differing)
        table.add_row(each.bus.driver, each.bus.connection, *(f"{count:,}" for count in counts))
    print(*table.lines(), sep="\n")
    for line in (line for each in replayed for line in limits_of(each)):
        print(f"warning  {recording}: {line}")
    different = [each for each in replayed if each.first is not None]
    if not different:
        print("equal    every item that was sent and every state that was measured, to the bit")
        return
    for each in different:
        print(*_difference_lines(each), sep="\n")
    first_ns = min(each.first.run_ns for each in replayed if each.first is not None)
    count = sum(each.played.differing for each in replayed)
    differ = "calls of drivers differ" if count > 1 else "call of a driver differs"
    where = f"{count:,} {differ}, the first at t = {_seconds(first_ns)} s"
    raise RunError(f"{where}; see what changed in the driver or in the rig since the recording", str(recording))


def limits_of(each: ReplayedBus) -> list[str]:
    """What could not be compared."""
    played, name, found = each.played, each.bus.driver, []
    if played.mixed:
        what = f"{played.mixed:,} {plural(played.mixed, 'call')} of '{name}' from two threads"
        found.append(f"{what} could not be compared, as when a watchdog stops the motors")
    if played.missing is not None:
        after = "" if played.missing.run_ns is None else f" after t = {_seconds(played.missing.run_ns)} s"
        found.append(f"the traffic of '{name}' is not complete{after}; what follows was not compared")
    return found


def _difference_lines(each: ReplayedBus) -> list[str]:
    first = each.first
    assert first is not None
    joint = f", joint '{each.joint}'" if each.joint else ""
    what = {"item": "sends", "end": "ends"}.get(first.what, f"measures another {first.what}")
    head = f"differs  {each.bus.driver}{joint} at t = {_seconds(first.run_ns)} s: in {first.call} it {what}"
    pair = (("recorded", first.recorded), ("now", first.now))
    lines = [head, *(f"         {name:<9} {_shown(first, value)}" for name, value in pair)]
    if each.joint and (command := first.command_of(each.bus.joints.index(each.joint))):
        numbers = ", ".join(f"{name} {value:.6g}" for name, value in command.items())
        lines.append(f"         command   {numbers}, in SI")
    return lines


def _seconds(run_ns: int) -> str:
    return f"{run_ns * 1e-9:.6f}"


def _shown(difference: PlayedDifference, value: Any) -> str:
    if difference.what == "item":
        return "nothing" if value is None else shown_item(value)
    if difference.what == "end":
        return str(value) or "without an error"
    return repr(float(value) if isinstance(value, np.floating) else value)


def shown_item(item: Any) -> str:
    """A CAN frame as in candump; bytes as text if they are one, else in hexadecimal."""
    if isinstance(item, bytes):
        text = item.decode("ascii", "replace")
        return repr(text) if text.rstrip("\r\n").isprintable() and item.isascii() else item.hex(" ")
    identifier = f"{item.id:0{8 if item.extended else 3}X}"
    marks = "".join(f" {word}" for word, on in (("FD", item.fd), ("BRS", item.switched), ("remote", item.remote)) if on)
    return f"{identifier}{marks} [{len(item.data)}] {item.data.hex(' ')}"
