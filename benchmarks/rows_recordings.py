"""What recordings cost: bytes per value of noise, and the process that records 10 kHz."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.paired_timing import Budget, Samples
from benchmarks.rows import BenchCase, Measurement, Target
from cosim.core.recordings.index import recordings_of
from cosim.core.recordings.reader import RecordedSamples
from cosim.core.recordings.sample_encoding import Numbers
from cosim.output.recorder import Recorder
from cosim.output.remote_sink import RemoteSink
from cosim.output.sinks import SinkConfig

JOINTS, SIGNALS = 10, 10
CHANNELS = tuple((f"j{joint}/s{k}", "m") for joint in range(JOINTS) for k in range(SIGNALS))
RATE, PERIOD, BLOCK = 10_000, 0.01, 100  # Hz; s and ticks of a block
SIZED = 20_000  # ticks


def _noise(ticks: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((ticks, len(CHANNELS)))


def bytes_per_value(numbers: Numbers) -> Measurement:
    """Of a file of noise, everything included."""
    rows = _noise(SIZED)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.mcap"
        with Recorder(path, CHANNELS, {}, numbers=numbers) as recorder:
            recorder.append(np.arange(SIZED) * round(1e9 / RATE), rows)
        size = path.stat().st_size / rows.size
    return Measurement(Samples(np.array([size])), note=f"{JOINTS} joints with {SIGNALS} signals each, {SIZED:,} ticks")


def fast_recording(budget: Budget) -> Measurement:
    """Time per tick in the thread that hands blocks of noise to the recorder process, at their rate on the clock."""
    blocks = round(budget.run / PERIOD)
    # noise of a second: no chunk has any of it twice
    rows, numbers = _noise(RATE).reshape(-1, BLOCK, len(CHANNELS)), np.arange(BLOCK)
    spent, most = np.empty(blocks), 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.mcap"
        with RemoteSink(SinkConfig("noise", CHANNELS, record=str(path))) as sink:
            begun = time.monotonic()
            for block in range(blocks):
                time.sleep(max(begun + block * PERIOD - time.monotonic(), 0.0))
                t_ns = (numbers + block * BLOCK) * round(1e9 / RATE)
                before = time.perf_counter()
                sink(t_ns, rows[block % len(rows)])
                spent[block] = (time.perf_counter() - before) / BLOCK
                most = max(most, sink.backlog_bytes)
        samples = RecordedSamples(recordings_of(path))
        lost = blocks * BLOCK - samples.count
        whole = not samples.losses and bool(np.all(np.diff(samples.times(0, samples.count)) == round(1e9 / RATE)))
        size = path.stat().st_size
    note = f"{blocks * BLOCK:,} ticks, {lost} lost, {size / 1e6:.0f} MB, at most {most / 1e6:.2g} MB waited in the run"
    return Measurement(Samples(spent), note=note, failed="" if whole and not lost else "ticks are missing")


CASES = (
    BenchCase(
        "bytes per value of 64 bits",
        "a recording of noise, index included",
        lambda _: bytes_per_value("float64"),
        unit="B",
    ),
    BenchCase(
        "bytes per value of 32 bits",
        "the same with recording.numbers: float32",
        lambda _: bytes_per_value("float32"),
        unit="B",
        target=Target("ours", 8.0, at_most=True),
    ),
    BenchCase(
        "recording at 10 kHz",
        "100 signals of noise: a tick, in the thread that hands it to the recorder process",
        fast_recording,
        target=Target("ours", 5.0, at_most=True),
    ),
)
