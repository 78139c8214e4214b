"""What a compiled cycle sends is equal to the bit to what the driver in Python sends, for the same random commands and
the same random feedback; what it measures is what that driver measures; and what the one refuses, the other refuses.

COSIM_FRAMES sets how many frames are compared in all.
"""

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from cosim.core.driver_contract import CycleOutcome
from cosim.core.types import COMMAND
from cosim.plugins.drivers.common.frame_layout import Kind, ReceivedFrame
from cosim.plugins.drivers.transport.content_packets import TELL
from cosim.plugins.drivers.transport.content_packets import frames as frames_of_content
from cosim.plugins.drivers.vesc import cycle as vesc

from .families import cases
from .two_engines import TwoEngines, awaited, lines_for, silent_bench

COMPILED = [case for case in cases() if case.compiled]
MODES = ("effort", "velocity", "position")
FRAMES = int(os.environ.get("COSIM_FRAMES", 15_000)) // (len(COMPILED) * len(MODES))
CHUNK = 200  # rounds that are made at once
PARTS = 4  # of an answer that comes in parts: the only family that has some is that of VESCs

# numbers that are added to the ordinary ones: of commands, and of feedback as 32-bit floats
EXTREME = (0.0, -0.0, 5e-324, -2.3e-308, 1e-45, -1e-40, 1.2e-38, 1e10, -1e15, 9e29, -9e29, 32767.0, -32768.5)
WRAPS = tuple(k + d for k in (-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 1e6) for d in (-1e-9, 0.0, 1e-9))  # turns
REFUSED = (np.nan, np.inf, -np.inf, 1e30, -1e30, 1e39, 1e300, -1.7e308)
MEASURED = (0.0, -0.0, 1e-45, -1e-40, 1.2e-38, 1e10, -3e38, 3.4028235e38)
NO_NUMBERS = (np.nan, np.inf, -np.inf)
TURN = 2.0 * np.pi


def wild(generator: np.random.Generator, shape: tuple[int, ...], extreme: tuple[float, ...]) -> np.ndarray:
    """Numbers of all sizes, some of them 0, extreme, or beside a whole or half turn."""
    numbers = generator.normal(size=shape) * 10.0 ** generator.uniform(-6, 4, shape)
    which = generator.random(shape)
    numbers = np.where(which < 0.15, generator.choice(extreme, shape), numbers)
    return np.where(which > 0.9, TURN * generator.choice(WRAPS, shape), numbers)


def commands(generator: np.random.Generator, limit: np.ndarray) -> np.ndarray:
    """(CHUNK, n, 5), as COMMAND; a tenth of the rounds has a number to refuse, or two that would cancel."""
    n = len(limit)
    values = wild(generator, (CHUNK, n, len(COMMAND)), EXTREME)
    gains = values[..., 3:]
    np.abs(gains, out=gains, where=generator.random(gains.shape) < 0.9)
    gains[generator.random(CHUNK) < 0.5] = 0.0
    at_limit = np.where(np.isfinite(limit), limit, 1.0) * generator.choice([-1.0, 1.0], (CHUNK, n))
    at_limit *= generator.choice([1.0 - 1e-12, 1.0, 1.0 + 1e-12, 10.0], (CHUNK, n))
    values[..., 2] = np.where(generator.random((CHUNK, n)) < 0.2, at_limit, values[..., 2])
    for k in np.flatnonzero(generator.random(CHUNK) < 0.1):
        joint, first, second = generator.integers(n), *generator.choice(len(COMMAND), 2, replace=False)
        values[k, joint, first] = generator.choice(REFUSED)
        if generator.random() < 0.5:
            values[k, joint, second] = -values[k, joint, first]
    return values


def feedback(generator: np.random.Generator, received: ReceivedFrame, seen: bytes) -> list[bytes]:
    """Data of CHUNK frames as a drive that is on sends them, with other measurements."""
    rows = np.tile(np.frombuffer(seen, np.uint8), (CHUNK, 1))
    for field in received.fields:
        if field.kind is Kind.FLOAT32:
            numbers = wild(generator, (CHUNK,), MEASURED)
            numbers[generator.random(CHUNK) < 0.01] = generator.choice(NO_NUMBERS)
            with np.errstate(over="ignore"):
                fresh = numbers.astype("<f4")
        elif field.kind in (Kind.INT16, Kind.INT32):
            most = 2 ** (15 if field.kind is Kind.INT16 else 31)
            fresh = generator.integers(-most, most, CHUNK)
            ends = generator.random(CHUNK) < 0.1
            fresh[ends] = generator.choice([-most, 1 - most, -1, 0, 1, most - 1], np.count_nonzero(ends))
            fresh = fresh.astype("<i2" if field.kind is Kind.INT16 else "<i4")
        else:
            continue
        rows[:, field.at : field.at + fresh.itemsize] = fresh.view(np.uint8).reshape(CHUNK, -1)
    return [row.tobytes() for row in rows]


def answers(generator: np.random.Generator, parts: list[list[bytes]]) -> list[list[bytes]]:
    """Answers of a VESC: its measurements are others, its checksum is right, and it has no fault."""
    made = []
    for *contents, _ in zip(*parts, strict=True):
        content = bytearray(b"".join(part[1:] for part in contents))
        content[5:] = generator.bytes(len(content) - 5)
        content[vesc.FAULT] = content[vesc.STATUS] = 0
        made.append([frame.data for frame in frames_of_content(129, 1, bytes(content), TELL)])
    return [list(column) for column in zip(*made, strict=True)]


def rounds(engines: TwoEngines, seen: dict[int, bytes]) -> Iterator[tuple[list[bytes], np.ndarray]]:
    """(what comes, the command) of one round after the other."""
    generator, spoken, reception = np.random.default_rng(1), awaited(engines.layout), engines.layout.reception
    while True:
        data = [feedback(generator, received, seen[reception.frames.index(received)]) for received in spoken]
        if reception.whole is not None:
            data = [part for k in range(0, len(data), PARTS) for part in answers(generator, data[k : k + PARTS])]
        for *parts, values in zip(*data, commands(generator, engines.driver.feedforward.limit), strict=True):
            frames = (r.frame._replace(data=part) for r, part in zip(spoken, parts, strict=True))
            yield [engines.line.wire(frame) for frame in frames], values


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", COMPILED, ids=str)
def test_what_is_sent_and_measured_is_equal_to_the_bit(case, tmp_path, mode):
    with silent_bench(case, tmp_path, mode) as (driver, seen):
        kinds = lines_for(driver)
        with np.errstate(over="ignore", invalid="ignore"):  # of what is refused
            for kind in kinds:
                compare(driver, kind, seen, FRAMES // len(kinds))


def compare(driver: Any, kind: Any, seen: dict[int, bytes], least: int) -> None:
    line = kind(driver)
    try:
        engines, frames, refused, before = TwoEngines(driver, line), 0, 0, driver.feedforward.saturated.copy()
        for coming, values in rounds(engines, seen):
            for data in coming:
                line.put(data)
            outcome, error = engines.read()
            assert (outcome is CycleOutcome.NOMINAL) == (not error), error
            assert error or engines.measured_alike()
            requests, python = line.sent()  # after a command that was refused
            assert requests == python
            if error:  # no command follows feedback that is no number
                continue
            for k, name in enumerate(COMMAND):
                getattr(engines.cmd, name)[:] = values[:, k]
            outcome, error = engines.write()
            assert (outcome is CycleOutcome.SUSPECT) == bool(error), error
            assert outcome in (CycleOutcome.SUSPECT, CycleOutcome.NOMINAL)
            compiled, python = line.sent()
            assert compiled == python and bool(compiled) == (not error)
            frames, refused = frames + len(requests) + len(compiled), refused + bool(error)
            if frames >= least:
                break
        assert refused or frames < 1000
        saturated = driver.feedforward.saturated - before
        assert np.array_equal(engines.cycle._saturated, saturated)
        assert engines.counted()[0] == 0
    finally:
        line.close()
