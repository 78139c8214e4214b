"""The rows of hardware: what a line is made to be, what is counted and judged; short runs of all of them."""

import io
import re
import sys
import threading
from collections import deque
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from cosim import bench, load_rig
from cosim.bench import codecs, emulated_rigs, fault_response, peers, rows_hardware, tick_timing
from cosim.bench.emulated_rigs import JOINTS
from cosim.bench.emulation import SteppedClock, serving, subprocess_ready
from cosim.bench.fault_response import FaultCase, FaultObserver
from cosim.bench.paced_link import BYTE_NS, PacedLink
from cosim.bench.paired_timing import Budget, Samples
from cosim.bench.rows import BenchCase, Measurement, NotMeasured, Target, measure_case
from cosim.bench.rows_hardware import Counted, judged
from cosim.bench.tick_timing import BackToBackClock
from cosim.errors import InputError, RunError
from cosim.timing.deadlines import DeadlineRecord, TaskTime

TINY = Budget(pairs=2, block=1e-4, starts=1, run=0.3)
ROOT = Path(__file__).parents[2]


def named(name):
    return next(case for case in bench.CASES if case.name == name)


def written(folder, data):
    return load_rig(emulated_rigs.write(folder, data))


# --- the rig --------------------------------------------------------------------------------------


def test_six_drives_at_1_khz_fit_on_two_buses_and_not_on_one(tmp_path):
    two = written(tmp_path, rows_hardware.two_lines("virtual", 0.1))
    assert two.joints == JOINTS
    assert [spec.joints for spec in two.spec.drivers] == [JOINTS[:3], JOINTS[3:]]
    assert two.spec.guard.stale == emulated_rigs.STALE and two.spec.schedule.step_ns == 1_000_000
    assert all(share < 0.8 for share in two.bus_loads.values())
    with pytest.raises(InputError, match=r"6 drives every 1 ms need 1\.49 times what the line can carry"):
        written(tmp_path, emulated_rigs.rig([emulated_rigs.moteus("virtual", "one", 0, 6)], 1e-3))


def test_lines_are_those_of_this_process():
    for interface, pattern in (("virtual", "bench "), ("udp_multicast", "239.20")):
        one, other = emulated_rigs.channels(interface)
        assert one != other and one.startswith(pattern) and other.startswith(pattern)


def test_keys_of_the_guard_go_into_the_rig(tmp_path):
    rig = written(
        tmp_path, emulated_rigs.rig([emulated_rigs.dynamixel(tmp_path / "tty")], 4e-3, stale=0.5, watchdog=60)
    )
    assert (rig.spec.guard.stale, rig.spec.guard.watchdog) == (0.5, 60.0)


# --- the other end --------------------------------------------------------------------------------


def test_the_time_of_the_drives_stands_still_once_it_was_moved():
    clock = SteppedClock()
    before = clock()
    clock.move(5)
    there = clock()
    assert there >= before + 5 and clock() == there
    clock.move(1_000_000)
    assert clock() == there + 1_000_000


def test_drives_are_served_meanwhile_only():
    emulation = SimpleNamespace(stopped=False)
    turns = threading.Event()

    def serve():
        while not emulation.stopped:
            turns.set()

    emulation.serve = serve
    with serving(emulation):
        assert turns.wait(10)
    assert not emulation.stopped
    assert "emulation" not in [thread.name for thread in threading.enumerate()]


class Wire:
    """A link in a time that passes only where somebody waits: chunks that come at their times, what was sent when."""

    name, meter = "wire", None
    open = close = reopen = None

    def __init__(self, *chunks):
        self.t, self.chunks, self.sent = 0, deque(chunks), []

    def now(self):
        return self.t

    def receive(self, until):
        if self.chunks and self.chunks[0][0] <= max(until, self.t):
            when, chunk = self.chunks.popleft()
            self.t = max(self.t, when)
            return chunk
        self.t = max(self.t + 1000, until)
        return None

    def send(self, item, deadline):
        self.sent.append((self.t, item))


def test_bytes_take_their_time_on_a_paced_line_one_after_the_other():
    wire = Wire((1_000_000, b"four"), (1_010_000, b"2."))
    link = PacedLink(wire, wire.now)
    assert link.receive(900_000) is None and wire.t >= 900_000
    found = []
    while len(found) < 2:
        if chunk := link.receive(wire.t + 50_000):
            found.append((wire.t, chunk))
    assert [chunk for _, chunk in found] == [b"four", b"2."]
    times = [t for t, _ in found]
    assert times == pytest.approx([1_000_000 + 4 * BYTE_NS, 1_000_000 + 6 * BYTE_NS], abs=2000)
    begun = wire.t
    link.send(b"answer", 0)
    assert not wire.sent
    assert link.receive(begun + 200_000) is None
    assert wire.sent == [(pytest.approx(begun + 6 * BYTE_NS, abs=2000), b"answer")]


def test_another_process_is_there_once_it_says_so_and_gone_afterwards():
    script = "import time; print('hello'); print('emulating; and more'); print('last'); time.sleep(600)"
    with subprocess_ready(["-c", script]) as process:
        assert process.poll() is None
        assert process.stdout.readline() == "last\n"
    assert process.returncode is not None


@pytest.mark.parametrize(
    ("script", "said"), [("print('a'); print('b')", "b"), ("", "nothing was said"), ("1/0", "ZeroDivisionError:.*")]
)
def test_a_process_that_does_not_come_up_is_told_with_what_it_said(script, said):
    with (
        pytest.raises(NotMeasured, match=f"^the emulated drives did not come up: {said}$"),
        subprocess_ready(["-c", script]),
    ):
        pass


# --- ticks without a clock --------------------------------------------------------------------------


def test_ticks_and_what_is_between_them_are_timed_apart():
    engine, calls = load_rig(ROOT / "rigs/two_link.yaml").engine(), []
    clock = BackToBackClock(lambda: calls.append(engine.number))
    found = tick_timing.time_ticks(engine, clock, 30)
    assert found.shape == (30, len(engine.tasks) + 1)
    assert (found >= 0).all() and (found[:, -1] >= found[:, :-1].sum(axis=1)).all()
    assert len(calls) == len(clock.others) == 31 and engine.number == 31
    assert len(tick_timing.time_ticks(engine, clock, 5)) == 5 == len(clock.ticks)


def test_ticks_that_end_before_their_time_are_told():
    engine = load_rig(ROOT / "rigs/two_link.yaml", ["joints.elbow.limits.velocity=0.001"]).engine()
    with pytest.raises(RunError, match=r"^stopped at tick .*: joint 'elbow' moves at "):
        tick_timing.time_ticks(engine, BackToBackClock(), 5000)


# --- codecs ---------------------------------------------------------------------------------------


def test_every_family_has_a_codec_that_understands_itself():
    families = {path.parent.name for path in (ROOT / "drivers").glob("*/*codec.py")}
    found = list(codecs.samples(6))
    words = {name.split()[0].replace("CiA", "CiA402").lower().rstrip(",") for name, _, _ in found}
    assert words == families
    assert len(found) == len({name for name, _, _ in found})
    for name, encode, decode in found:
        assert encode() and decode(), name
    *_, (name, _, decode) = found
    assert name == "Dynamixel, 6 drives in one packet" and len(decode()[0].params) == 6 * 19


def test_the_dearest_way_of_the_dearest_codec_is_the_figure(monkeypatch):
    def slow():
        return sum(range(20_000))

    def quick():
        return 1

    samples = [("a", quick, quick), ("b", quick, slow), ("c", quick, quick)]
    monkeypatch.setattr(rows_hardware.codecs, "samples", lambda n: samples)
    row = measure_case(named("hardware codec"), TINY)
    assert row.ours > 50 and row.met is False
    assert re.fullmatch(r"µs to encode and to decode: a \S+ and \S+, b \S+ and (\S+), c \S+ and \S+", row.note)[1] == (
        f"{row.ours:.2f}"
    )


def test_a_codec_that_does_not_understand_itself_is_no_figure(monkeypatch):
    for wrong in (lambda: None, lambda: []):
        monkeypatch.setattr(rows_hardware.codecs, "samples", lambda n, wrong=wrong: [("x", lambda: b"1", wrong)])
        with pytest.raises(RunError, match=r"^the codec of x does not understand its own frame$"):
            rows_hardware.codec_cost(TINY)


# --- at 1 kHz -------------------------------------------------------------------------------------


def timing_of(late_us, count=1000):
    """So many ticks, the first of them done so late."""
    due = 10**12 + np.arange(count) * 1_000_000
    done = due + 300_000
    done[: len(late_us)] += np.array(late_us, dtype=np.int64) * 1000
    stamps = np.stack([due, due + 20_000, done, np.zeros_like(due)], axis=1)
    tasks = (TaskTime("write", 1, 0, 1_000_000, True),)
    return DeadlineRecord(tasks, 1_000_000, np.arange(count), stamps, 0, 0, 0, 1.0, False, "Python", ())


def row_of(measurement):
    case = BenchCase("x", "this", lambda effort: measurement, unit="%", target=Target("ours", 0.1, most=True))
    return measure_case(case, TINY)


FINE = Counted(6012, 6000, 0), Counted(6000, 6012, 0)


@pytest.mark.parametrize(("late", "share", "met"), [([], 0.0, True), ([900], 0.1, True), ([900] * 2, 0.2, False)])
def test_the_share_of_missed_deadlines_is_the_figure(late, share, met):
    row = row_of(judged(timing_of(late), "", *FINE))
    assert (row.ours, row.met) == (pytest.approx(share), met)


@pytest.mark.parametrize(
    ("here", "there", "fault", "failed"),
    [
        (*FINE, "it fell", "it fell"),
        (FINE[0], Counted(6000, 6010, 0), "", "2 commands lost"),
        (Counted(6012, 5999, 0), FINE[1], "", "1 answers lost"),
        (Counted(6012, 6000, 1), Counted(6000, 6012, 2), "", "3 errors on the lines"),
        (Counted(3, 2, 0), Counted(4, 1, 0), "it fell", "it fell; 2 commands lost; 2 answers lost"),
    ],
)
def test_what_was_lost_or_stopped_misses_the_target(here, there, fault, failed):
    row = row_of(judged(timing_of([]), fault, here, there))
    assert row.met is False and row.note.startswith(f"{failed}; 0 of 1000 deadlines missed; ")


def test_what_was_counted_is_told():
    row = row_of(judged(timing_of([900]), "", *FINE, "; 1 s given up by the emulated drives"))
    assert row.note == (
        "1 of 1000 deadlines missed (bus late in write 1); 6012 frames sent, 6012 came to the drives; 6000 answers,"
        " 6000 came back; tick 280 µs, 280 µs, 1.18 ms, latency 20 µs, 20 µs, 20 µs (median, p99, max);"
        " 1 s given up by the emulated drives"
    )
    none = judged(timing_of([], 0), "it fell", *FINE)
    assert np.isnan(none.samples.ours[0]) and row_of(none).met is False


def ended(said):
    return rows_hardware.counted_there(SimpleNamespace(stdout=io.StringIO(said)))


def test_what_the_emulator_says_of_its_lines_is_added_up():
    said = "\nemulated 5 s\nline0: 10 received, 8 sent, 1 errors\nline3: 20 received, 19 sent, 0 errors, 2 answers\n"
    assert ended(said) == (Counted(27, 30, 1), "")
    late = said.replace("5 s", "5 s, 0.25 s given up to be on time")
    assert ended(late)[1] == "; 0.25 s given up by the emulated drives"
    for said, told in (("", "they said nothing"), ("interrupted\n", "interrupted")):
        with pytest.raises(RunError, match=f"^the emulated drives told nothing of their lines: {told}$"):
            ended(said)


# --- from a fault to motors off ---------------------------------------------------------------------


class Parts:
    """The parts of an engine that a witness looks at."""

    def __init__(self):
        self.calls, self.simulation = [], SimpleNamespace(step_ns=5)
        note = self.calls.append
        self.world = SimpleNamespace(begin=lambda t: note("begin"))
        link = SimpleNamespace(receive=lambda until: self.frame)
        driver = SimpleNamespace(write=lambda *a: note("write"), stop=lambda: note("stop"), link=link)
        self.driver, self.drives = driver, SimpleNamespace(groups=(SimpleNamespace(driver=driver),))
        self.frame = None

    def tick(self):
        self.world.begin(0)
        found = self.driver.link.receive(0)
        self.driver.write(None, 0)
        return found


def test_a_witness_counts_the_ticks_that_begin_after_something_arrived(monkeypatch):
    times = iter(range(1, 100))
    monkeypatch.setattr(fault_response.time, "monotonic_ns", lambda: next(times))
    parts, wrongs = Parts(), []
    witness = FaultObserver(parts, lambda: wrongs.append(len(parts.calls)), after=2)
    parts.driver.stop()  # before anything went wrong
    parts.tick()
    parts.frame = SimpleNamespace(id=7, t_ns=2, data=b"")
    assert parts.tick() is parts.frame
    assert wrongs == [5] and witness.happened == 3  # after the second command
    parts.tick(), parts.driver.stop(), parts.tick(), parts.driver.stop()
    assert parts.calls == ["stop", *["begin", "write"] * 3, "stop", "begin", "write", "stop"]
    assert (witness.begun, witness.stopped, witness.last, witness.faulty) == ([1, 2, 4, 6], 5, {7: 2}, 0)
    assert [witness.ticks_since(t) for t in (0, 1, 3, 4, 5)] == [3, 2, 1, 0, 0]
    for stopped, ticks in ((13, 2), (15, 2), (16, 3), (21, 4)):  # the last tick began at 6 and may take until 16
        witness.stopped = stopped
        assert witness.ticks_since(3) == ticks


@pytest.fixture
def patient(monkeypatch):
    """A machine that stands still for a while ends nothing, and takes no ticks."""
    monkeypatch.setattr(emulated_rigs, "STALE", 1.0)
    monkeypatch.setattr(fault_response, "STEP", 0.04)
    monkeypatch.setattr(fault_response, "CYCLES", 10)


@pytest.mark.parametrize("name", fault_response.FAULTS)
def test_motors_are_commanded_off_in_the_tick_after_a_fault(patient, name):
    ticks, ns = fault_response.response_to(fault_response.FAULTS[name])
    assert ticks in (0, 1) and ns > 0


def test_a_run_that_something_else_ends_is_no_figure(patient, monkeypatch):
    monkeypatch.setattr(fault_response, "LASTING", 0.2)
    with pytest.raises(RunError, match=r"^the run was to be stopped by 'never', and was: it went on$"):
        fault_response.response_to(FaultCase(lambda *all: None, " never ", lambda seen: 0))


def test_stops_are_the_worst_of_all_and_what_was_not_one_misses(monkeypatch):
    found = {"a": [(1, 4000), (0, 2000)], "b": [(2, 9000), RunError("it fell")]}
    monkeypatch.setattr(fault_response, "FAULTS", {name: name for name in found})

    def stopped_by(name):
        result = found[name].pop(0)
        if isinstance(result, Exception):
            raise result
        return result

    monkeypatch.setattr(fault_response, "response_to", stopped_by)
    row = measure_case(named("hardware stop"), Budget(pairs=1, block=1e-4, starts=2))
    assert (row.ours, row.met) == (2.0, False)
    assert row.note == "b: it fell; ticks at most, and the median of the time, of 2 each: a 1, 3 µs; b 2, 9 µs"
    found["a"] = [RunError("so"), RunError("or so")]
    row = measure_case(named("hardware stop"), Budget(pairs=1, block=1e-4, starts=2))
    assert (row.ours, row.met, row.note) == (None, None, "a: or so")


# --- the rows ---------------------------------------------------------------------------------------


def test_all_rows_are_chosen_by_one_word():
    cases = bench.select(bench.CASES, "hardware")
    assert [case.name.rsplit(" ", 1)[-1] for case in cases] == ["virtual", "serial", "codec", "kHz", "stop"]
    assert all(case.target is not None for case in cases)


@pytest.mark.parametrize("name", ["tick virtual", "tick serial", "1 kHz", "stop"])
def test_without_their_packages_rows_are_not_measured(monkeypatch, name):
    def absent(package):
        raise peers.MissingPeer(package)

    monkeypatch.setattr(rows_hardware, "import_peer", absent)
    row = measure_case(named(f"hardware {name}"), TINY)
    assert row.note == f"{'serial' if 'serial' in name else 'can'} is not installed: pip install 'cosim[test]'"
    assert row.met is None


def test_what_is_counted_may_be_no_unit():
    one = Measurement(Samples(np.array([3.0])))
    assert measure_case(BenchCase("x", "this", lambda effort: one, unit="ticks"), TINY).ours == 3.0


def test_a_tick_on_a_virtual_bus_beside_bare_frames():
    row = measure_case(named("hardware tick virtual"), TINY)
    assert row.runs == 2 and row.ours > 0 and row.other > 0
    assert row.figures()["ratio_is"] == "ours / other"
    assert "median of 40 ticks " in row.note and "read " in row.note and "the drives' answers, not in it, " in row.note


@pytest.mark.skipif(sys.platform != "linux", reason="pseudo terminals are emulated ports on Linux only")
def test_a_tick_on_a_serial_line():
    row = measure_case(named("hardware tick serial"), TINY)
    assert row.other == pytest.approx(1.3 * 1740 + 400)  # 174 bytes
    assert row.ours > 1740  # no tick is faster than its wire
    assert row.note.startswith("52 bytes out and 122 back are 1.74 ms on the wire; the median of 40 ticks is ")
    assert row.note.endswith("; 0 packets damaged")


def test_a_run_at_1_khz_beside_another_process():
    row = measure_case(named("hardware 1 kHz"), TINY)
    if row.ours is None:  # no multicast here
        pytest.skip(row.note)
    assert " deadlines missed" in row.note and " came to the drives; " in row.note


def test_a_run_that_cannot_begin_is_not_measured(tmp_path):
    rig = written(tmp_path, emulated_rigs.rig([emulated_rigs.dynamixel(tmp_path / "tty")], 4e-3))
    with pytest.raises(NotMeasured, match=f"no such port '{tmp_path}/tty'"):
        rows_hardware.run_on_time(rig, 0.1)
