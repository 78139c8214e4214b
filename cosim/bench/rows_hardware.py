"""Rigs with real motors, whose drives are emulated: what a tick costs, what codecs cost, what is lost at 1 kHz, and how
soon motors are off after a fault."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from cosim import load_rig
from cosim.bench import codecs, emulated_rigs, emulation, fault_response, tick_timing
from cosim.bench.paired_timing import Budget, Samples, time_pairs, undisturbed
from cosim.bench.peers import import_peer
from cosim.bench.rows import BenchCase, Measurement, NotMeasured, Target
from cosim.bench.tick_timing import BackToBackClock
from cosim.errors import CosimError, RunError
from cosim.rig.build.drivers import bus_params
from cosim.rig.rig import Rig
from cosim.timing import deadlines
from cosim.timing.pacing import Pacing
from cosim.timing.privileges import acquire, quiet_interpreter

TICK = 400e-6  # s that a tick of six motors may take
WIRE = 1.3  # times the wire's own time, for a tick on a serial line
AT_EASE = {"watchdog": 60.0, "stale": 10.0}  # a guard that a machine which stands still does not alarm
BLOCK = 20  # ticks between two turns of the peer
LAST_NS = 50_000_000  # after which no more answers come


def two_lines(interface: str, trip: float, **guard: Any) -> dict[str, Any]:
    """The arm behind two lines of three moteus drives: six at 1 kHz are more than a CAN FD bus can carry.

    trip: time without commands after which a drive stops [s]; guard: keys of the guard.
    """
    drivers = [
        emulated_rigs.moteus(interface, name, 3 * k, 3, trip)
        for k, name in enumerate(emulated_rigs.channels(interface))
    ]
    return emulated_rigs.rig(drivers, 1e-3, **guard)


# --- a tick ---------------------------------------------------------------------------------------------


def tick_virtual(budget: Budget) -> Measurement:
    """Both sides in turn; the emulated drives answer between two ticks, as does what echoes the bare frames."""
    import_peer("can")
    with tempfile.TemporaryDirectory() as folder:
        path = emulated_rigs.write(Path(folder), two_lines("virtual", 10.0, **AT_EASE))
        rig = load_rig(path, interpret=False)
        with tick_timing.ticks_with_answers(rig) as (engine, free), bare(rig) as frames, undisturbed():
            frames(BLOCK)
            tick_timing.time_ticks(engine, free, BLOCK)
            free.others.clear()
            both = [(tick_timing.time_ticks(engine, free, BLOCK), frames(BLOCK)) for _ in range(budget.pairs)]
    ours, blocks = np.concatenate([a for a, _ in both]), [[np.median(a[:, -1]), np.median(b)] for a, b in both]
    note = (
        f"median of {len(ours)} ticks {shown(np.median(ours[:, -1]))}, p99 {shown(np.percentile(ours[:, -1], 99))}:"
        f" {parts(rig, ours)}; the drives' answers, not in it, {shown(np.median(free.others))}"
    )
    return Measurement(Samples(*np.array(blocks).T * 1e-9), note=note, growth=True)


@contextmanager
def bare(rig: Rig) -> Iterator[Callable[[int], np.ndarray]]:
    """Times [ns] of cycles in which python-can alone sends the frames of a rig's cycle and takes as many answers."""
    can, transport = import_peer("can"), import_module("cosim.drivers.transport")
    clock = transport.now
    buses: list[Any] = []
    plan: list[tuple[Any, Any, list[Any], list[Any]]] = []

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

    def cycles(count: int) -> np.ndarray:
        taken = []
        for _ in range(count):
            for _, device, _, back in plan:
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
        for spec in rig.spec.drivers:
            name = f"bare {os.getpid()} {spec.name}"
            plan.append((bus(name), bus(name), *cycle(rig, spec)))
        yield cycles
    finally:
        for each in buses:
            each.shutdown()


def cycle(rig: Rig, spec: Any) -> tuple[list[Any], list[Any]]:
    """What a cycle of a driver sends and gets back."""
    found = spec.plugin.module.traffic(spec.plugin.params, rig.contexts[spec.name])
    return list(found.out), list(found.back)


def parts(rig: Rig, ticks: np.ndarray) -> str:
    """The medians of the tasks that a tick consists of."""
    medians = np.median(ticks[:, :-1], axis=0)
    return ", ".join(f"{task.name} {shown(ns)}" for task, ns in zip(rig.tasks, medians, strict=True))


def shown(ns: Any) -> str:
    return f"{ns / 1e3:.3g} µs" if ns < 1e6 else f"{ns / 1e6:.3g} ms"


def tick_serial(budget: Budget) -> Measurement:
    """Ticks one after the other; the drives are in another process, whose bytes take the time of a wire."""
    import_peer("serial")
    count = BLOCK * budget.pairs
    with tempfile.TemporaryDirectory() as folder:
        path = emulated_rigs.write(
            Path(folder), emulated_rigs.rig([emulated_rigs.dynamixel(Path(folder, "tty"))], 4e-3, **AT_EASE)
        )
        rig = load_rig(path, interpret=False)
        (spec,) = rig.spec.drivers
        out, back = cycle(rig, spec)
        serve = f"from cosim.bench.paced_link import serve_paced; serve_paced({str(path)!r})"
        with emulation.subprocess_ready(["-c", serve]):
            engine: Any = rig.engine()
            with closing(engine), quiet_interpreter(), acquire(Pacing()):
                tick_timing.enable_engine(engine)
                tick_timing.time_ticks(engine, BackToBackClock(), tick_timing.WARM_UP_TICKS)
                ours = tick_timing.time_ticks(engine, BackToBackClock(), count)
                lost = engine.hardware_manager.groups[0].driver.lost
    seconds = import_module("cosim.drivers.transport").seconds
    wire = sum(seconds(item, bus_params(spec)) for item in (*out, *back))
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


def codec_cost(budget: Budget) -> Measurement:
    """The dearest of all, each way."""
    told, dearest = [], np.zeros(1)
    for name, encode, decode in codecs.samples(len(emulated_rigs.JOINTS)):
        if encode() is None or decode() in (None, []):
            raise RunError(f"the codec of {name} does not understand its own frame")
        samples = time_pairs(repeated(encode), repeated(decode), budget)
        ways = [samples.ours, samples.other]
        told.append(f"{name} {' and '.join(f'{np.median(way) * 1e6:.2f}' for way in ways)}")
        dearest = max(dearest, *ways, key=lambda way: float(np.median(way)))
    return Measurement(Samples(dearest), note=f"µs to encode and to decode: {', '.join(told)}")


def repeated(call: Callable[[], object]) -> Callable[[int], None]:
    def block(n: int) -> None:
        for _ in range(n):
            call()

    return block


# --- on time ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Counted:
    """What went over all lines of one end."""

    sent: int
    received: int
    errors: int


def kilohertz(budget: Budget) -> Measurement:
    """Of a run at 1 kHz beside `cosim emulate` of the same rig: deadlines missed, after all frames were counted."""
    import_peer("can")
    with tempfile.TemporaryDirectory() as folder:
        path = emulated_rigs.write(Path(folder), two_lines("udp_multicast", 0.1))
        with emulation.subprocess_ready(["-m", "cosim", "emulate", str(path)]) as process:
            ran, fault, here = run_on_time(load_rig(path, interpret=False), budget.run)
            process.send_signal(signal.SIGTERM)
            there, lost = counted_there(process)
    return judged(ran, fault, here, there, lost)


def run_on_time(rig: Rig, seconds: float) -> tuple[deadlines.DeadlineRecord, str, Counted]:
    """How on time it was, what stopped it, and what went over its lines. Raises NotMeasured when it cannot begin."""
    with rig.scheduler() as scheduler:
        try:
            scheduler.prepare()
            scheduler.arm()
        except CosimError as error:
            raise NotMeasured(str(error)) from error
        scheduler.start(round(seconds / rig.tick_model.step))
        while scheduler.read() is not None:
            pass
        drivers: list[Any] = [group.driver for group in scheduler.engine.hardware_manager.groups]
        links = [driver.link for driver in drivers]
        for link in links:  # answers to the last command
            with suppress(RunError):
                while link.receive(time.monotonic_ns() + LAST_NS) is not None:
                    pass
    meters = [link.meter for link in links]
    found = [sum(getattr(meter, what) for meter in meters) for what in ("items_out", "items_in", "errors")]
    return scheduler.timing, scheduler.fault, Counted(*found)


def counted_there(process: subprocess.Popen[str]) -> tuple[Counted, str]:
    """What the emulator says at its end: what went over its lines, and whether its physics gave up time."""
    assert process.stdout is not None
    said = process.stdout.read()
    rows = re.findall(r"^\w+: (\d+) received, (\d+) sent, (\d+) errors", said, re.MULTILINE)
    if not rows:
        raise RunError(f"the emulated drives told nothing of their lines: {said.strip() or 'they said nothing'}")
    received, sent, errors = (sum(map(int, column)) for column in zip(*rows, strict=True))
    lost = re.search(r"^emulated .*?, (.* given up)", said, re.MULTILINE)
    return Counted(sent, received, errors), f"; {lost[1]} by the emulated drives" if lost else ""


def judged(ran: deadlines.DeadlineRecord, fault: str, here: Counted, there: Counted, lost: str = "") -> Measurement:
    """The share of deadlines that were missed; frames that got lost, or a run that was stopped, miss the target."""
    summary = ran.summary()
    missed, of = summary["missed"]["count"], summary["missed"]["of"]
    wrong = [
        fault,
        f"{here.sent - there.received} commands lost" if here.sent != there.received else "",
        f"{there.sent - here.received} answers lost" if there.sent != here.received else "",
        f"{here.errors + there.errors} errors on the lines" if here.errors + there.errors else "",
    ]
    causes = ", ".join(f"{cause} {count}" for cause, count in summary["missed"]["causes"].items())
    refused = ", ".join(name for name, granted in summary["rights"].items() if not granted)
    note = (
        f"{missed} of {of} deadlines missed{causes and f' ({causes})'}; {here.sent} frames sent, {there.received} came"
        f" to the drives; {there.sent} answers, {here.received} came back; tick {spread(ran.busy_ns)}, latency"
        f" {spread(ran.latency_ns)} (median, p99, max){refused and f'; without {refused}'}{lost}"
    )
    share = np.array([missed / of if of else np.nan])
    return Measurement(Samples(share), note=note, failed="; ".join(filter(None, wrong)))


def spread(ns: np.ndarray) -> str:
    return ", ".join(map(shown, np.percentile(ns, (50, 99, 100)))) if len(ns) else "unknown"


# --- from a fault to motors off -----------------------------------------------------------------------------


def stops(budget: Budget) -> Measurement:
    """The most ticks of all, from when a fault can be seen until `stop()` of the driver is called.

    A run that something else ended misses the target. Raises NotMeasured when all of a kind are.
    """
    import_peer("can")
    worst, told, wrong = 0, [], ""
    for name, fault in fault_response.FAULTS.items():
        found = []
        for _ in range(budget.starts):
            try:
                found.append(fault_response.response_to(fault))
            except RunError as error:
                wrong = f"{name}: {error}"
        if not found:
            raise NotMeasured(wrong)
        most = max(count for count, _ in found)
        worst = max(worst, most)
        told.append(f"{name} {most}, {shown(np.median([ns for _, ns in found]))}")
    note = f"ticks at most, and the median of the time, of {budget.starts} each: {'; '.join(told)}"
    return Measurement(Samples(np.array([float(worst)])), note=note, failed=wrong)


NO_MORE_THAN = partial(Target, "ours", most=True)

CASES = (
    BenchCase(
        "hardware tick virtual",
        "the whole tick of six moteus drives on python-can's virtual bus, commanded and read in the Python loop",
        tick_virtual,
        "python-can alone: the same frames sent and taken",
        target=NO_MORE_THAN(TICK * 1e6),
    ),
    BenchCase(
        "hardware tick serial",
        "the whole tick of six Dynamixel drives at 1 Mbit/s, on a pseudo terminal whose bytes take their time",
        tick_serial,
        f"{WIRE:g} × the wire's own time, and {TICK * 1e6:g} µs",
        target=Target("ratio", 1.0, most=True),
    ),
    BenchCase(
        "hardware codec",
        "a frame of the dearest codec of all drivers, each way",
        codec_cost,
        target=NO_MORE_THAN(5.0),
    ),
    BenchCase(
        "hardware 1 kHz",
        "deadlines missed by six moteus drives on time at 1 kHz, emulated by another process over udp_multicast",
        kilohertz,
        unit="%",
        target=NO_MORE_THAN(0.1),
    ),
    BenchCase(
        "hardware stop",
        "from a fault that can be seen to motors commanded off, at most",
        stops,
        unit="ticks",
        target=NO_MORE_THAN(1.0),
    ),
)
