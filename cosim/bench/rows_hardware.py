"""Rigs with real motors, whose drives are emulated: what a tick costs, what codecs cost, what is lost at 1 kHz, and how
soon motors are off after a fault."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from cosim import load_rig, timing
from cosim.bench import lines
from cosim.bench.lines import Free, Paused
from cosim.bench.peers import module
from cosim.bench.rows import Case, Measurement, NotMeasured, Target
from cosim.bench.timing import Effort, Samples, pairs, quiet
from cosim.engine import Engine
from cosim.errors import RunError
from cosim.pacing import Pacing
from cosim.realtime import calm, take
from cosim.rig.driving import context_of, place_of, wire_of
from cosim.rig.rig import Rig

TICK = 400e-6  # s that a tick of six motors may take
WIRE = 1.3  # times the wire's own time, for a tick on a serial line
BLOCK = 20  # ticks between two turns of the peer
WARM = 20
CYCLES = 100  # of a rig, before something goes wrong
LASTING = 4.0  # s until a rig that does not see it ends by itself


def channels(interface: str) -> tuple[str, str]:
    """Two lines that no other process uses at the moment."""
    a, b = os.getpid() >> 8 & 0xFF, os.getpid() & 0xFF
    multicast = interface == "udp_multicast"
    one, other = (f"239.{200 + k}.{a}.{b}" if multicast else f"bench {os.getpid()} {k}" for k in range(2))
    return one, other


def two_lines(interface: str, step: float, watchdog: float, **guard: Any) -> dict[str, Any]:
    """The arm behind two lines of three moteus drives: six at 1 kHz are more than a CAN FD bus can carry."""
    drivers = [lines.moteus(interface, name, 3 * k, 3, watchdog) for k, name in enumerate(channels(interface))]
    return lines.rig(drivers, step, **guard)


# --- a tick ---------------------------------------------------------------------------------------------


def tick_virtual(effort: Effort) -> Measurement:
    """Both sides in turn; the emulated drives answer between two ticks, as does what echoes the bare frames."""
    module("can")
    clock = Paused()
    with tempfile.TemporaryDirectory() as folder:
        path = lines.write(Path(folder), two_lines("virtual", 1e-3, 10.0, watchdog=60))
        rig, emulation = load_rig(path, interpret=False), lines.emulated(path, clock)
        emulation.open()
        try:
            engine = rig.engine()
            with lines.awake(engine):
                with lines.served(emulation):
                    lines.arm(engine)
                    lines.ticks(engine, Free(), WARM)

                def answer() -> None:
                    clock.move(emulation.step_ns)
                    emulation.turn()

                free = Free(answer)
                with bare(rig) as frames, quiet():
                    frames(WARM)
                    lines.ticks(engine, free, WARM)
                    free.others.clear()
                    both = [(lines.ticks(engine, free, BLOCK), frames(BLOCK)) for _ in range(effort.pairs)]
        finally:
            emulation.close()
    ours, other = np.concatenate([a for a, _ in both]), np.array([np.median(b) for _, b in both])
    note = (
        f"median of {len(ours)} ticks {shown(np.median(ours[:, -1]))}, p99 {shown(np.percentile(ours[:, -1], 99))}:"
        f" {parts(rig, ours)}; the drives' answers, not in it, {shown(np.median(free.others))}"
    )
    blocks = np.array([np.median(a[:, -1]) for a, _ in both])
    return Measurement(Samples(blocks * 1e-9, other * 1e-9), note=note, growth=True)


@contextmanager
def bare(rig: Rig) -> Iterator[Callable[[int], np.ndarray]]:
    """Times [ns] of cycles in which python-can alone sends the frames of a rig's cycle and takes as many answers."""
    can, transport = module("can"), import_module("drivers.transport")
    clock = transport.now
    buses: list[Any] = []

    def bus(name: str) -> Any:
        buses.append(can.Bus(interface="virtual", channel=name, ignore_config=True))
        return buses[-1]

    def message(frame: Any) -> Any:
        return can.Message(
            arbitration_id=frame.id,
            is_extended_id=frame.extended,
            data=frame.data,
            is_fd=frame.fd,
            bitrate_switch=frame.switched,
        )

    plan = [(bus(f"bare {spec.name}"), bus(f"bare {spec.name}"), *cycle(rig, spec)) for spec in rig.spec.drivers]

    def cycles(count: int) -> np.ndarray:
        taken = []
        for _ in range(count):
            for _, device, out, back in plan:
                while device.recv(0) is not None:
                    pass
                for frame in back:
                    device.send(message(frame))
            begun = clock()
            for host, _, out, _ in plan:
                for frame in out:
                    host.send(message(frame))
            for host, _, _, back in plan:
                for _ in back:
                    if host.recv(0) is None:
                        raise RunError("python-can lost a frame on its virtual bus")
            taken.append(clock() - begun)
        return np.array(taken)

    try:
        yield cycles
    finally:
        for each in buses:
            each.shutdown()


def cycle(rig: Rig, spec: Any) -> tuple[list[Any], list[Any]]:
    """What a cycle of a driver sends and gets back."""
    found = spec.plugin.module.traffic(spec.plugin.params, context_of(rig, spec))
    return list(found.out), list(found.back)


def parts(rig: Rig, ticks: np.ndarray) -> str:
    """The medians of the tasks that a tick consists of."""
    medians = np.median(ticks[:, :-1], axis=0)
    return ", ".join(f"{task.name} {shown(ns)}" for task, ns in zip(rig.tasks, medians, strict=True))


def shown(ns: Any) -> str:
    return f"{ns / 1e3:.3g} µs" if ns < 1e6 else f"{ns / 1e6:.3g} ms"


def tick_serial(effort: Effort) -> Measurement:
    """Ticks one after the other; the drives are in another process, whose bytes take the time of a wire."""
    count = BLOCK * effort.pairs
    with tempfile.TemporaryDirectory() as folder:
        path = lines.write(Path(folder), lines.rig([lines.dynamixel(Path(folder, "tty"))], 4e-3, watchdog=60))
        rig = load_rig(path, interpret=False)
        (spec,) = rig.spec.drivers
        out, back = cycle(rig, spec)
        serve = f"from cosim.bench.lines import serve_paced; serve_paced({str(path)!r})"
        with lines.elsewhere(["-c", serve]):
            engine = rig.engine()
            with lines.awake(engine), calm(), take(Pacing()):
                lines.arm(engine)
                lines.ticks(engine, Free(), WARM)
                ours = lines.ticks(engine, Free(), count)
                lost = engine.drives.groups[0].driver.lost
    seconds = import_module("drivers.transport").seconds
    wire = sum(seconds(item, wire_of(spec)) for item in (*out, *back))
    median = float(np.median(ours[:, -1])) * 1e-9
    size = [sum(map(len, items)) for items in (out, back)]
    note = (
        f"{size[0]} bytes out and {size[1]} back are {shown(wire * 1e9)} on the wire; the median of {count} ticks is"
        f" {median / wire:.2f} × that, {shown((median - wire) * 1e9)} more, p99"
        f" {shown(np.percentile(ours[:, -1], 99))}: {parts(rig, ours)}; {lost} packets damaged"
    )
    blocks = np.median(ours[:, -1].reshape(-1, BLOCK), axis=1) * 1e-9
    allowed = np.full(len(blocks), WIRE * wire + TICK)
    return Measurement(Samples(blocks, allowed), note=note, growth=True)


# --- codecs ---------------------------------------------------------------------------------------------

Call = Callable[[], object]
Codec = tuple[str, Call, Call]  # what, encode, decode


def moteus_codecs() -> Iterator[Codec]:
    codec, text = (import_module(f"drivers.moteus.{name}") for name in ("codec", "fdcanusb"))
    frame = import_module("drivers.transport").Frame
    tail = codec.command_tail(0.1, integral=False)
    answer = codec.encode_feedback(codec.Feedback(10, 1.0, -2.0, 0.3, 24.0, 31.0, 0))
    line = text.received_line(frame(0x100, answer, False, True, True))
    command = frame(0x8001, codec.encode_command(tail, 1.0, 2.0, 0.1, 1.0, 1.0, 3.0), True, True, True)
    yield (
        "moteus CAN FD",
        partial(codec.encode_command, tail, 1.0, 2.0, 0.1, 1.0, 1.0, 3.0),
        partial(codec.decode_feedback, answer),
    )
    yield "moteus fdcanusb", partial(text.send_line, command), partial(text.parse_received, line)


def odrive_codecs() -> Iterator[Codec]:
    can, text = (import_module(f"drivers.odrive.{name}_codec") for name in ("can", "ascii"))
    answer = can.encode(3, can.GET_ENCODER_ESTIMATES, 1.0, -2.0)
    line = text.line("0.159155 -0.318310", True, "").encode() if False else text.line("0.159155 -0.318310", True, "")
    yield "ODrive CAN", partial(can.encode, 3, can.SET_INPUT_TORQUE, 0.3), partial(can.decode, answer)
    yield (
        "ODrive ASCII",
        lambda: text.line(text.torque(0, -1.23456789), True),
        lambda: text.feedback(text.unwrap(line).text),
    )


def cia402_codecs() -> Iterator[Codec]:
    codec = import_module("drivers.cia402.codec")
    step = codec.Step(1e-4, 1e-4, 1e-3)
    answer = codec.status_answer(3, codec.Status(0x1237, 10, 1.0), step).data
    yield (
        "CiA 402",
        partial(codec.effort_command, 3, 0x0F, 0.3, step),
        partial(codec.decode_status, answer, step),
    )


def dynamixel_codecs() -> Iterator[Codec]:
    codec, layout = (import_module(f"drivers.dynamixel.{name}") for name in ("codec", "cycle"))
    ids = range(1, 1 + len(lines.JOINTS))
    goals, counts = layout.Goals(ids, "effort"), np.arange(6.0)
    answer = codec.status(1, 0, bytes(layout.SIZE))
    chain = codec.chained([codec.Block(0, id, bytes(layout.SIZE)) for id in ids], len(ids) * layout.STATE.itemsize)
    decoder = codec.Decoder()
    yield "Dynamixel, one drive", partial(codec.write, 1, 102, b"\x10\x00"), partial(decoder.feed, answer)
    yield "Dynamixel, six drives in one packet", partial(goals.packet, counts), partial(decoder.feed, chain)


CODECS = moteus_codecs, odrive_codecs, cia402_codecs, dynamixel_codecs


def codecs(effort: Effort) -> Measurement:
    """The dearest of all, each way."""
    told, dearest = [], np.zeros(1)
    for name, encode, decode in (codec for family in CODECS for codec in family()):
        if encode() is None or decode() in (None, []):
            raise RunError(f"the codec of {name} does not understand its own frame")
        samples = pairs(repeated(encode), repeated(decode), effort)
        ways = samples.ours, samples.other
        told.append(f"{name} {' and '.join(f'{np.median(way) * 1e6:.2f}' for way in ways)}")
        dearest = max(dearest, *ways, key=np.median)
    return Measurement(Samples(dearest), note=f"µs to encode and to decode: {', '.join(told)}")


def repeated(call: Call) -> Callable[[int], None]:
    def block(n: int) -> None:
        for _ in range(n):
            call()

    return block
