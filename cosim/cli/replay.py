"""A recording again: published with its timing, or its rig run anew and compared with it."""

from __future__ import annotations

import platform
from contextlib import suppress
from pathlib import Path

from cosim.cli.trust import with_trust
from cosim.core.access.binding import STREAM_EXAMPLE, stream_address
from cosim.core.access.curve import is_local
from cosim.core.errors import InputError, RunError, plural
from cosim.output import console
from cosim.output.recording_index import read_index
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
