"""Rigs with emulated drives: duration of a tick, cost of codecs, frames lost at 1 kHz, response to faults."""

from __future__ import annotations

import os
import re
import select
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import codecs, emulated_rigs, emulation, fault_response, late_answers, tick_timing
from benchmarks.judged_misses import MAX_MISSED, NO_ANSWERS, NO_LATENCIES, judge, latencies_of_cyclictest
from benchmarks.paced_link import BAUDRATE, BYTE_NS
from benchmarks.paired_timing import Budget, Samples, time_pairs, undisturbed
from benchmarks.peers import import_peer
from benchmarks.rows import BenchCase, Measurement, NotMeasured, Target
from cosim import load_rig
from cosim.core.driver_contract import BusItem
from cosim.core.errors import CosimError, RunError
from cosim.execution.timing import deadlines
from cosim.execution.timing.privileges import acquire, quiet_interpreter
from cosim.rig.rig import Rig
from cosim.rig.sections.drivers import DriverSpec
from cosim.rig.wiring.drivers import cycle_traffic
from cosim.simulation.loop.pacing import Pacing

TICK_VIRTUAL = 200e-6  # s for it without a link
COMPILED_TICK, COMPILED_P99 = 60e-6, 150e-6  # s for it with the buses in machine code
COMPILED_RUN = 20.0  # s
SERIAL_FACTOR = 1.05  # times bare writes and reads of the port, for a tick on a serial link
RELAXED_GUARD = ["guard.watchdog=60 s", "guard.stale=10 s"]  # no alarms when the machine stalls
LONG_WATCHDOG = ["drivers.bus1.watchdog=10 s", "drivers.bus2.watchdog=10 s"]
BLOCK = 20  # ticks between two blocks of the peer
PAUSE, PATIENCE = 2e-3, 5.0  # s between two exchanges of the peer, for an answer
LAST_REPLY_NS = 50_000_000  # after the last command, in which replies still arrive


# --- a tick ---------------------------------------------------------------------------------------------


def tick_virtual(budget: Budget) -> Measurement:
    """Alternating blocks of ticks and of bare frames; the drives' replies are computed between two ticks."""
    import_peer("can")
    path, keys = emulated_rigs.can_rig(emulated_rigs.TWO_CAN_BUSES, "virtual", 2)
    keys += [*RELAXED_GUARD, *LONG_WATCHDOG]
    rig = load_rig(path, keys, interpret=False)
    with tick_timing.ticks_with_answers(rig, keys) as (engine, clock), bare_frames(rig) as frames, undisturbed():
        frames(BLOCK)
        tick_timing.time_ticks(engine, clock, BLOCK)
        clock.others.clear()
        both = [(tick_timing.time_ticks(engine, clock, BLOCK), frames(BLOCK)) for _ in range(budget.pairs)]
    ours, blocks = np.concatenate([a for a, _ in both]), [[np.median(a[:, -1]), np.median(b)] for a, b in both]
    note = (
        f"median of {len(ours)} ticks {shown(np.median(ours[:, -1]))}, p99 {shown(np.percentile(ours[:, -1], 99))}:"
        f" {task_medians(rig, ours)}; not included: the drives' replies, {shown(np.median(clock.others))}"
    )
    return Measurement(Samples(*np.array(blocks).T * 1e-9), note=note, growth=True)


@contextmanager
def bare_frames(rig: Rig) -> Iterator[Callable[[int], np.ndarray]]:
    """Times [ns] of cycles in which python-can alone sends the frames of a rig's cycle and receives the replies."""
    can, clock = import_peer("can"), time.monotonic_ns
    buses: list[Any] = []
    plan: list[tuple[Any, Any, list[BusItem], list[BusItem]]] = []

    def bus(name: str) -> Any:
        buses.append(can.Bus(interface="virtual", channel=name, ignore_config=True))
        return buses[-1]

    def message(frame: BusItem) -> Any:
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
            plan.append((bus(name), bus(name), *cycle_items(rig, spec)))
        yield cycles
    finally:
        for each in buses:
            each.shutdown()


def cycle_items(rig: Rig, spec: DriverSpec) -> tuple[list[BusItem], list[BusItem]]:
    """What a driver sends and receives in one cycle: CAN frames or packets."""
    traffic = cycle_traffic(spec, rig.contexts[spec.name])
    return list(traffic.out), list(traffic.back)


def task_medians(rig: Rig, ticks: np.ndarray) -> str:
    """The median of each task of a tick, as text."""
    medians = np.median(ticks[:, :-1], axis=0)
    return ", ".join(f"{task.name} {shown(ns)}" for task, ns in zip(rig.tasks, medians, strict=True))


def shown(ns: float) -> str:
    return f"{ns / 1e3:.3g} µs" if ns < 1e6 else f"{ns / 1e6:.3g} ms"


def tick_serial(budget: Budget) -> Measurement:
    """Ticks of a run whose drives are in another process, behind a link with the bit rate of the rig.

    A tick waits for the answers to its request; the goals are on the wire after it.
    """
    serial = import_peer("serial")
    import_peer("numba")
    with tempfile.TemporaryDirectory() as folder:
        path, keys = emulated_rigs.serial_rig(Path(folder, "tty"))
        keys += RELAXED_GUARD
        rig = load_rig(path, keys, interpret=False)
        serve = f"from benchmarks.paced_link import serve_paced; serve_paced{(str(path), *keys)!r}"
        (spec,) = rig.spec.drivers
        _, request, answer = (item for items in cycle_items(rig, spec) for item in items)
        with emulation.subprocess_ready(["-c", serve]):
            with serial.Serial(str(Path(folder, "tty")), BAUDRATE) as port:
                bare = bare_exchanges(port, request, len(answer), BLOCK * budget.pairs)
            timing, fault, host = run_real_time(rig, min(budget.run, COMPILED_RUN))
    compiled_only(rig)
    sizes = len(request), len(answer)
    wire = sum(sizes) * BYTE_NS * 1e-9
    median = float(np.median(timing.busy_ns)) * 1e-9
    note = (
        f"request and answer of {sizes[0]} and {sizes[1]} bytes take {shown(wire * 1e9)} on the wire; the median of"
        f" {len(timing.busy_ns)} ticks is {median / wire:.3f} × that, {shown((median - wire) * 1e9)} more, p99"
        f" {shown(np.percentile(timing.busy_ns, 99))}; bare writes and reads take {np.median(bare) / wire:.3f} ×;"
        f" {host.lost} packets damaged"
    )
    blocks = medians_of(timing.busy_ns)
    return Measurement(Samples(blocks, np.full(len(blocks), np.median(bare))), note=note, growth=True, failed=fault)


def bare_exchanges(port: Any, request: bytes, size: int, count: int) -> np.ndarray:
    """(count,) times [s] from writing a request to an open port until so many bytes have come, with pauses between.

    Raises NotMeasured without an answer.
    """
    times, descriptor = [], port.fileno()
    with quiet_interpreter(), acquire(Pacing()):
        for _ in range(count):
            time.sleep(PAUSE)
            begun, received = time.perf_counter(), 0
            os.write(descriptor, request)
            while received < size:
                if not select.select((descriptor,), (), (), PATIENCE)[0]:
                    raise NotMeasured("the emulated drives do not answer")
                received += len(os.read(descriptor, size))
            times.append(time.perf_counter() - begun)
    return np.array(times)


def compiled_only(rig: Rig) -> None:
    """Raises RunError if the buses are not in machine code."""
    for where in (rig.why_python_loop, *rig.called.values()):
        if where:
            raise RunError(f"the buses are not in machine code: {where}")


def medians_of(busy_ns: np.ndarray) -> np.ndarray:
    """Medians [s] of up to 100 blocks of ticks."""
    return np.array([np.median(block) for block in np.array_split(busy_ns, min(len(busy_ns), 100))]) * 1e-9


# --- codecs ---------------------------------------------------------------------------------------------


def codec_cost(budget: Budget) -> Measurement:
    """The slowest codec and direction."""
    texts, slowest = [], np.zeros(1)
    for name, encode, decode in codecs.samples(emulated_rigs.DRIVES):
        if encode() is None or decode() in (None, []):
            raise RunError(f"the codec of {name} does not decode its own frame")
        samples = time_pairs(repeated(encode), repeated(decode), budget)
        directions = [samples.ours, samples.other]
        texts.append(f"{name} {' and '.join(f'{np.median(times) * 1e6:.2f}' for times in directions)}")
        slowest = max(slowest, *directions, key=lambda times: float(np.median(times)))
    return Measurement(Samples(slowest), note=f"µs to encode and to decode: {', '.join(texts)}")


def repeated(call: Callable[[], object]) -> Callable[[int], None]:
    def block(n: int) -> None:
        for _ in range(n):
            call()

    return block


# --- real time ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FrameCounts:
    """Frames of all buses, counted at one end."""

    sent: int
    received: int
    errors: int
    lost: int = 0  # answers that did not come, or damaged ones


def kilohertz(budget: Budget) -> Measurement:
    """Deadlines missed in a run at 1 kHz beside another process that emulates its drives; lost frames miss the target.
    cyclictest runs before and after it."""
    import_peer("can")
    path, keys = emulated_rigs.can_rig(emulated_rigs.TWO_CAN_BUSES, "udp_multicast", 2)
    serve = f"from benchmarks.late_answers import serve_timed; serve_timed{(str(path), *keys)!r}"
    before = latencies_of_cyclictest(budget.run)
    with emulation.subprocess_ready(["-c", serve]) as process:
        timing, fault, host = run_real_time(load_rig(path, keys, interpret=False), budget.run)
        process.send_signal(signal.SIGTERM)
        assert process.stdout is not None
        printed = process.stdout.read()
    device, slip = device_counts(printed)
    latencies = np.concatenate([before, latencies_of_cyclictest(budget.run)])
    return judge_frames(timing, fault, host, device, slip, late_answers.printed_times(printed), latencies)


def tick_compiled(budget: Budget) -> Measurement:
    """Ticks of a run at 1 kHz with the buses in machine code, while a thread of the same process computes in Python."""
    import_peer("can")
    import_peer("numba")
    path, keys = emulated_rigs.can_rig(emulated_rigs.TWO_CAN_BUSES, "udp_multicast", 2)
    arguments = ["-m", "cosim", "emulate", str(path), *emulated_rigs.set_options(keys)]
    with emulation.subprocess_ready(arguments):
        rig = load_rig(path, keys, interpret=False)
        timing, fault, _ = run_real_time(rig, min(budget.run, COMPILED_RUN), busy_thread)
    compiled_only(rig)
    late = float(np.percentile(timing.busy_ns, 99))
    busy, latency = percentiles(timing.busy_ns), percentiles(timing.latency_ns)
    note = f"{len(timing.busy_ns)} ticks: {busy}; latency {latency} (median, p99, max)"
    slow = f"p99 {shown(late)}, more than {shown(COMPILED_P99 * 1e9)}" if late > COMPILED_P99 * 1e9 else ""
    return Measurement(Samples(medians_of(timing.busy_ns)), note=note, failed="; ".join(filter(None, (fault, slow))))


@contextmanager
def busy_thread() -> Iterator[None]:
    """A thread that never releases the interpreter's lock by itself."""
    ended = threading.Event()

    def compute() -> None:
        x = 0
        while not ended.is_set():
            x = (x + 1) & 0xFFFF

    thread = threading.Thread(target=compute, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def run_real_time(
    rig: Rig, seconds: float, beside: Callable[[], AbstractContextManager[None]] = nullcontext
) -> tuple[deadlines.DeadlineRecord, str, FrameCounts]:
    """(timing, reason of a stop, frames of all buses) of a run; beside: entered while its ticks run. Raises NotMeasured
    when it cannot begin, RunError when it stops before its first tick has ended."""
    with rig.scheduler() as scheduler:
        try:
            scheduler.prepare()
            scheduler.arm()
        except CosimError as error:
            raise NotMeasured(str(error)) from error
        scheduler.start(round(seconds / rig.tick_model.step))
        scheduler.read()  # the ticks run: whatever is beside them from now on, this start is not delayed by it
        with beside():
            while scheduler.read() is not None:
                pass
        drivers = [group.hardware for group in scheduler.engine.hardware_manager.groups]
        links = [driver.link for driver in drivers if driver is not None]
        for link in links:  # replies to the last command
            with suppress(RunError):
                while link.receive(time.monotonic_ns() + LAST_REPLY_NS) is not None:
                    pass
    if not len(scheduler.timing.numbers):
        raise RunError(scheduler.fault or "no tick has run")
    meters = [link.meter for link in links]
    sent, received, errors = (
        sum(getattr(meter, what) for meter in meters) for what in ("items_out", "items_in", "errors")
    )
    lost = sum(driver.lost for driver in drivers if driver is not None)
    return scheduler.timing, scheduler.fault, FrameCounts(sent, received, errors, lost)


def device_counts(printed: str) -> tuple[FrameCounts, str]:
    """What the emulator prints at its end: the frames of its connections, and whether its physics fell behind."""
    rows = re.findall(r"^\w+: (\d+) received, (\d+) sent, (\d+) errors?", printed, re.MULTILINE)
    if not rows:
        raise RunError(f"the emulated drives reported no frame counts: {printed.strip() or 'no output'}")
    received, sent, errors = (sum(map(int, column)) for column in zip(*rows, strict=True))
    slip = re.search(r"^emulated [^,\n]*, (.+)$", printed, re.MULTILINE)
    return FrameCounts(sent, received, errors), f"; emulated drives: {slip[1]}" if slip else ""


def judge_frames(
    timing: deadlines.DeadlineRecord,
    fault: str,
    host: FrameCounts,
    device: FrameCounts,
    slip: str = "",
    late: np.ndarray = NO_ANSWERS,
    latencies: np.ndarray = NO_LATENCIES,
) -> Measurement:
    """The fraction of missed deadlines; lost frames or a stopped run miss the target.

    late: answers that the emulated drives sent too late, as `late_answers.printed_times`; the misses that they caused
    are in the figure, and are not judged. latencies [µs]: of cyclictest; it may have missed as many deadlines.
    """
    missed = timing.summary()["missed"]
    failures = [
        fault,
        f"{host.sent - device.received} commands lost" if host.sent != device.received else "",
        f"{device.sent - host.received} replies lost" if device.sent != host.received else "",
        f"{host.errors + device.errors} bus errors" if host.errors + device.errors else "",
    ]
    causes = ", ".join(f"{cause} {count}" for cause, count in missed["causes"].items())
    refused = ", ".join(privilege.name for privilege in timing.privileges if not privilege.granted)
    note = (
        f"{missed['count']} of {missed['of']} deadlines missed{causes and f' ({causes})'}; {host.sent} frames sent,"
        f" {device.received} received by the drives; {device.sent} replies, {host.received} received; tick"
        f" {percentiles(timing.busy_ns)}, latency {percentiles(timing.latency_ns)} (median, p99, max)"
        f"{refused and f'; without {refused}'}{slip}"
    )
    fraction = np.array([missed["count"] / missed["of"] if missed["of"] else np.nan])
    judged, few = judge(timing, late, latencies)
    return Measurement(
        Samples(fraction),
        note=f"{note}; {judged}",
        failed="; ".join(filter(None, failures)),
        allowed=few,
    )


def percentiles(ns: np.ndarray) -> str:
    return ", ".join(map(shown, np.percentile(ns, (50, 99, 100)))) if len(ns) else "unknown"


# --- from a fault to motors off -----------------------------------------------------------------------------


def stops(budget: Budget) -> Measurement:
    """The largest number of ticks from when a fault is visible until `stop()` of the driver is called.

    A run that ends for another reason misses the target. Raises NotMeasured when all runs of a fault do.
    """
    import_peer("can")
    worst, texts, failed = 0, [], ""
    for name, fault in fault_response.FAULTS.items():
        responses = []
        for _ in range(budget.starts):
            try:
                responses.append(fault_response.response_to(fault, budget.of(fault_response.COMMANDS_BEFORE)))
            except RunError as error:
                failed = f"{name}: {error}"
        if not responses:
            raise NotMeasured(failed)
        largest = max(ticks for ticks, _ in responses)
        worst = max(worst, largest)
        texts.append(f"{name} {largest}, {shown(np.median([ns for _, ns in responses]))}")
    note = f"largest number of ticks and median time of {budget.starts} runs each: {'; '.join(texts)}"
    return Measurement(Samples(np.array([float(worst)])), note=note, failed=failed)


AT_MOST = partial(Target, "ours", at_most=True)

CASES = (
    BenchCase(
        "hardware tick virtual",
        f"the whole tick of the drives of {emulated_rigs.TWO_CAN_BUSES} on python-can's virtual buses, called from the"
        " compiled loop",
        tick_virtual,
        "python-can alone: the same frames sent and received",
        target=AT_MOST(TICK_VIRTUAL * 1e6),
    ),
    BenchCase(
        "hardware tick compiled",
        f"the whole tick of the drives of {emulated_rigs.TWO_CAN_BUSES} over udp_multicast, buses in machine code, at"
        f" 1 kHz beside a busy thread in Python; p99 at most {COMPILED_P99 * 1e6:g} µs",
        tick_compiled,
        target=AT_MOST(COMPILED_TICK * 1e6),
    ),
    BenchCase(
        "hardware tick serial",
        f"the whole tick of the drives of {emulated_rigs.ONE_SERIAL_LINK}, on a pseudo terminal with the bit rate of"
        " the link, the line in machine code",
        tick_serial,
        "bare writes and reads of the port: the same request, as many bytes of answer",
        target=Target("ratio", SERIAL_FACTOR, at_most=True),
    ),
    BenchCase(
        "hardware codec",
        "one frame of the slowest codec of all drivers, to encode or to decode",
        codec_cost,
        target=AT_MOST(5.0),
    ),
    BenchCase(
        "hardware 1 kHz",
        f"deadlines missed by {emulated_rigs.TWO_CAN_BUSES} in real time at 1 kHz, its drives emulated by another"
        " process over udp_multicast; the target is met too by no more than cyclictest misses before and after, not"
        " counting those by answers that the drives sent late",
        kilohertz,
        unit="%",
        target=AT_MOST(MAX_MISSED * 100),
    ),
    BenchCase(
        "hardware stop",
        "from a visible fault to motors commanded off, at most",
        stops,
        unit="ticks",
        target=AT_MOST(1.0),
    ),
)
