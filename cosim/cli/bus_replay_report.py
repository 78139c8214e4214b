"""What `cosim replay --bus` prints: what was compared, and the first difference of each driver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from cosim.cli.trust import with_trust
from cosim.core.errors import RunError, plural
from cosim.execution.hardware.traffic.player import PlayedDifference
from cosim.output import console
from cosim.output.text_table import TextTable
from cosim.rig.bus_replay import ReplayedBus, replay_bus


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
