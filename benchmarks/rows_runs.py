"""Whole runs against the ticks that they are made of; what a recording costs; a run larger than the memory."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.paired_timing import Budget, Samples, undisturbed
from benchmarks.robots import CHECKOUT, sample_rig
from benchmarks.rows import BenchCase, Measurement, Target
from cosim import load_rig
from cosim.core.errors import RunError
from cosim.core.recordings.sample_encoding import Encoding
from cosim.output.recorder import Recorder
from cosim.rig.rig import Rig
from cosim.rig.run.run_metadata import channels_of
from cosim.simulation.loop.tick_ring import SharedWord, TickRing

PLACES = 512  # of the ring of the ticks alone
LONG, SHORT = 200, 5  # s
RECORDED, BLOCK = 10.0, 2500  # s; ticks that are added to the recording together
HUGE, HUGE_RIG = 100_000_000, "two_link.yaml"  # ticks
BUDGET_MB, REST_MB = 64, 64  # of the signals; of everything else that the run allocates


def loop_alone(rig: Rig, ticks: int) -> None:
    """Ticks in a ring that is used again and again, and nothing else."""
    engine, ring, left = rig.engine(), TickRing(rig.tick_model.program, PLACES), ticks
    while left:
        engine.run_ticks(ring, min(PLACES, left))
        ring.words[SharedWord.READ] = ring.words[SharedWord.TAKEN]
        left -= min(PLACES, left)


def _seconds(call: Callable[[], object]) -> float:
    begun = time.process_time()
    call()
    return time.process_time() - begun


def run(duration: int, budget: Budget) -> Measurement:
    """CPU time of `rig.run` with its summary, the second and further ones of a rig."""
    rig, seconds = load_rig(sample_rig(), interpret=False), budget.of(duration)
    ticks = round(seconds / rig.tick_model.step) + 1
    pairs = max(budget.of(5), min(budget.pairs, round(20.0 / seconds)))
    rig.run(seconds)
    begun = os.times().system
    with undisturbed():
        rows = [
            (_seconds(lambda: rig.run(seconds).summary), _seconds(lambda: loop_alone(rig, ticks))) for _ in range(pairs)
        ]
    system = (os.times().system - begun) / pairs * 1e3
    return Measurement(Samples(*np.array(rows).T), growth=True, note=f"{system:.1f} ms in the system, for new memory")


def recording(budget: Budget) -> Measurement:
    """CPU time per tick of a recording, file included."""
    rig = load_rig(sample_rig(), interpret=False)
    run, channels = rig.run(RECORDED), channels_of(rig)
    t_ns, values = np.rint(run.t * 1e9).astype(np.int64), np.ascontiguousarray(run.values)

    def write(encoding: Encoding, path: Path) -> None:
        with Recorder(path, channels, {}, encoding) as recorder:
            for begin in range(0, len(t_ns), BLOCK):
                recorder.append(t_ns[begin : begin + BLOCK], values[begin : begin + BLOCK])

    with tempfile.TemporaryDirectory() as folder, undisturbed():
        path = Path(folder) / "a.mcap"
        pairs = [
            [_seconds(lambda encoding=encoding: write(encoding, path)) for encoding in ("protobuf", "json")]
            for _ in range(max(budget.of(5), budget.pairs // 20))
        ]
        write("protobuf", path)
        size = path.stat().st_size / len(t_ns)
    note = f"{len(channels)} signals, {size:.0f} bytes per tick"
    return Measurement(Samples(*(np.array(pairs).T / len(t_ns))), note=note)


def huge_run(budget: Budget) -> Measurement:
    """A new process that cannot allocate more than the stated memory; its signals are read back at the end."""
    with tempfile.TemporaryDirectory() as folder:
        path = sample_rig().with_name(HUGE_RIG).resolve()
        arguments = [str(path), f"{folder}/a.run", str(HUGE), str(BUDGET_MB), str(REST_MB)]
        root, environment = CHECKOUT, os.environ | {"COSIM_INTERPRET": ""}
        done = subprocess.run(
            [sys.executable, "-c", HUGE_RUN, *arguments], cwd=root, env=environment, capture_output=True, text=True
        )
        size = Path(folder, "a.run").stat().st_size if done.returncode == 0 else 0
    if done.returncode:
        raise RunError(f"a new process failed: {(done.stderr.strip().splitlines() or ['no output'])[-1]}", str(path))
    seconds, after = map(float, done.stdout.split())
    note = f"{BUDGET_MB} MB for the signals and {REST_MB} MB for the rest, {size / 1e9:.2g} GB on the disk"
    return Measurement(
        Samples(np.array([seconds])), note=f"{note}; summary, plot and largest value: {after:.0f} s more"
    )


HUGE_RUN = """
import resource, sys, time
from cosim import load_rig
path, file, ticks, budget, rest = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
rig = load_rig(path)
rig.run(0.1).plot()
used = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmData")) * 1024
limit = used + (budget + rest) * 10**6
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
begun = time.monotonic()
keep = {"file": file, "signals": ["*/position"], "budget": budget * 1e6}
run = rig.run((ticks - 1) * rig.tick_model.step, keep=keep)
ended = time.monotonic()
assert len(run.t) == ticks and run.summary["ticks"] == ticks - 1
run.plot(signals=list(run.signals))
run[run.signals[0]].max()
print(ended - begun, time.monotonic() - ended)
"""


CASES = (
    BenchCase(
        f"run of {LONG} s",
        "ur5_sim: rig.run with all signals and the summary, CPU time",
        lambda budget: run(LONG, budget),
        "the same ticks in the bare loop",
        "ms",
        Target("ratio", 1.3, at_most=True),
    ),
    BenchCase(
        f"run of {SHORT} s",
        "ur5_sim: the same, the second run of the rig and later ones",
        lambda budget: run(SHORT, budget),
        "the same ticks in the bare loop",
        "ms",
        Target("ours", 10.0, at_most=True),
    ),
    BenchCase(
        "recording",
        "ur5_sim: a tick of all signals in an MCAP file, Protobuf, CPU time",
        recording,
        "the same in JSON",
        target=Target("ours", 2.0, at_most=True),
    ),
    BenchCase(
        "run of 1e8 ticks",
        "two_link: positions kept on the disk, in bounded memory",
        huge_run,
        unit="s",
        on_request=True,
    ),
)
