"""Kills of runs on emulated drives at random times, one after the other on the same drives.

    python -m tests.kit.kills [--count 50] [--seed 0]

After each, the drives must be off within their watchdog and the arm must fall, nothing may be left running, and the
recording, if the run had begun it, must be readable. Prints each and exits with 1 if something is not so.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from cosim.core.errors import InputError
from cosim.rig.run.run import open_recording
from tests.kit.soak import FEEDBACK, IN_PYTHON, OFF, RIG, WATCHDOG, drives, members, modes, process, wait_for

STALL = 1.0  # s, of a busy machine: the emulated drives count their time in its steps, and answer late
LATEST = 3.0  # s to the kill, from the start of the program or of the recording
EARLY = 0.2  # share of the kills that come before the run records
LEFT = 5.0  # s until the processes of a killed run have ended
LOADED = 2  # node of the joint with the largest load
SEEN = 0.05  # turns of its motor from where it hangs at rest, from which on it is seen to fall
FALL = 10.0  # s to the half of this; it takes 1 s


class Kill(NamedTuple):
    """t [s]: after the start of the program, or of the recording where not early; ticks: in the recording; off [s]:
    until the drives were off; fell: whether the arm was seen to fall, which it cannot from where it hangs at rest."""

    t: float
    early: bool
    controller: str
    ticks: int
    off: float
    fell: bool
    wrong: tuple[str, ...]


def kills(count: int, seed: int, folder: Path, channel: str = "239.75.251.1", latest: float = LATEST) -> Iterator[Kill]:
    """Kill so many runs; latest [s]: see LATEST."""
    dice = random.Random(seed)
    (folder / "follow.py").write_text(IN_PYTHON)
    words = [f"drivers.bus1.bus.channel={channel}", f"drivers.bus1.watchdog={WATCHDOG}", f"guard.watchdog={WATCHDOG}"]
    # an arm that hangs in the middle of its limits, from a ceiling, falls into them when it is left
    words += [f"guard.stale={FEEDBACK}", "mechanism.gravity=[0, 0, 9.81]"]
    words = [word for text in words for word in ("--set", text)]
    with process("emulate", RIG, *words) as emulation:
        assert emulation.stdout is not None
        for line in emulation.stdout:
            if line.startswith("emulating"):
                break
        for number in range(count):
            controller = "Python" if dice.random() < 0.5 else "compiled"
            own = ["--set", f"controllers.arm.type={folder / 'follow.py'}"] if controller == "Python" else []
            recording = folder / f"kill{number}.mcap"
            early = dice.random() < EARLY
            yield _kill(dice.uniform(0.0, latest), early, controller, [*words, *own], recording, channel)
            recording.unlink(missing_ok=True)


def _kill(t: float, early: bool, controller: str, words: Sequence[str], recording: Path, channel: str) -> Kill:
    wrong = list[str]()
    with process("run", RIG, *words, "--yes", "--duration", "60", "--record", recording) as run:
        if not early:
            wait_for(recording, run)
        time.sleep(t)
        ended = run.poll()
        run.kill()  # nothing, where it has ended
        begun = time.monotonic()
        if ended is not None:
            wrong.append(f"the run had ended with exit code {ended}: {run.communicate()[1].strip()}")
        found, off = modes(channel), 0.0
        while not set(found.values()) <= OFF and (off := time.monotonic() - begun) < WATCHDOG + STALL:
            found = modes(channel)
        if not set(found.values()) <= OFF:
            wrong.append(f"motors are on: {found}")
        fell = falls(lambda: drives(channel)[LOADED].position)
        if fell is False:
            wrong.append("the arm does not fall: a motor holds it")
        run.wait()
        if not _within(LEFT, lambda: not members(run.pid)):
            wrong.append(f"{len(members(run.pid))} processes of the run are left")
    ticks = 0
    try:
        ticks = len(open_recording(recording).t) if recording.exists() and recording.stat().st_size else 0
    except InputError as error:
        if "before its first tick" not in str(error) and "no tick" not in str(error):
            wrong.append(f"the recording cannot be read: {error}")
    if not early and t > 1.5 and not ticks:
        wrong.append("the recording is empty")
    return Kill(t, early, controller, ticks, off, bool(fell), tuple(wrong))


def falls(position: Callable[[], float], timeout: float = FALL) -> bool | None:
    """Whether a joint that is left falls towards 0, where it hangs at rest; None where it was there from the start.
    timeout [s]."""
    begin = abs(position())
    return None if begin < SEEN else _within(timeout, lambda: abs(position()) < 0.5 * begin)


def _within(timeout: float, condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def main(arguments: Sequence[str]) -> int:
    options = argparse.ArgumentParser(prog="python -m tests.kit.kills", description="Kills of runs at random times.")
    options.add_argument("--count", type=int, default=50)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args(arguments)
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for kill in kills(given.count, given.seed, Path(folder)):
            bad += bool(kill.wrong)
            wrong, begin = "; ".join(kill.wrong), "its start" if kill.early else "the first record"
            what = f"{kill.controller:8} killed {kill.t:.2f} s after {begin}, {kill.ticks:4} ticks"
            fell = ", fell" if kill.fell else ""
            print(f"{what}, off after {kill.off:.2f} s{fell}  {wrong}".rstrip(), flush=True)
    print(f"{given.count} kills, {bad} with something wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
