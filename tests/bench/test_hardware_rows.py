"""Hardware rows of the bench: paced links, frame counts, what is judged."""

import re
import threading
from collections import deque
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import benchmarks as bench
from benchmarks import codecs, emulated_rigs, late_answers, rows_hardware, tick_timing
from benchmarks.emulation import SteppedClock, serving, subprocess_ready
from benchmarks.paced_link import BYTE_NS, PacedLink
from benchmarks.paired_timing import Samples
from benchmarks.rows import BenchCase, Measurement, NotMeasured, Target, measure_case
from benchmarks.rows_hardware import FrameCounts, judge_frames
from benchmarks.tick_timing import BackToBackClock
from cosim import load_rig
from cosim.core.errors import InputError, RunError
from cosim.execution.timing.deadlines import DeadlineRecord, TaskTime
from cosim.plugins.drivers.transport import CanFrame
from tests.bench.named_rows import TINY, named

ROOT = Path(__file__).parents[2]


# --- the rigs -------------------------------------------------------------------------------------


def test_six_drives_at_1_khz_fit_on_two_buses_and_not_on_one():
    path, keys = emulated_rigs.can_rig(emulated_rigs.TWO_CAN_BUSES, "virtual", 2)
    two = load_rig(path, keys)
    assert len(two.joints) == emulated_rigs.DRIVES
    assert [spec.joints for spec in two.spec.drivers] == [two.joints[:3], two.joints[3:]]
    assert two.spec.guard.stale == 0.1 and two.spec.schedule.step_ns == 1_000_000
    assert all(load < 0.8 for load in two.bus_loads.values())
    path, keys = emulated_rigs.can_rig(emulated_rigs.ONE_CAN_BUS, "virtual", 1)
    assert load_rig(path, keys).spec.schedule.step_ns == 5_000_000
    with pytest.raises(InputError, match=r"6 drives every 1 ms need 1\.49 times the capacity of the bus"):
        load_rig(path, [*keys, "schedule.step=1 ms"])


def test_channels_are_named_after_this_process():
    for interface, pattern in (("virtual", "bench "), ("udp_multicast", "239.20")):
        one, other = emulated_rigs.free_channels(interface, 2)
        assert one != other and one.startswith(pattern) and other.startswith(pattern)


def test_overrides_replace_channels_and_port(tmp_path):
    path, keys = emulated_rigs.can_rig(emulated_rigs.TWO_CAN_BUSES, "virtual", 2)
    assert path == ROOT / emulated_rigs.TWO_CAN_BUSES
    channels = [spec.plugin.params.bus.channel for spec in load_rig(path, keys).spec.drivers]
    assert channels == emulated_rigs.free_channels("virtual", 2)
    path, keys = emulated_rigs.serial_rig(tmp_path / "tty")
    (spec,) = load_rig(path, keys).spec.drivers
    assert len(spec.joints) == emulated_rigs.DRIVES and spec.plugin.params.port.port == str(tmp_path / "tty")
    assert emulated_rigs.set_options(["a=1", "b=2"]) == ["--set", "a=1", "--set", "b=2"]


# --- emulated drives ------------------------------------------------------------------------------


def test_a_stepped_clock_stands_still_after_the_first_advance():
    clock = SteppedClock()
    before = clock()
    clock.advance(5)
    there = clock()
    assert there >= before + 5 and clock() == there
    clock.advance(1_000_000)
    assert clock() == there + 1_000_000


def test_drives_are_served_inside_the_block_only():
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
    """A link whose time passes only in `receive`: chunks that arrive at given times, and what was sent when."""

    name, meter, why_not_compiled = "wire", None, ""
    open = close = reopen = bus_off = reserve = None

    def __init__(self, *chunks):
        self.t, self.chunks, self.sent = 0, deque(chunks), []

    def now(self):
        self.t += 100
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


def test_answers_on_a_paced_link_come_after_all_bytes_before_them():
    wire = Wire((1_000_000, b"four"), (1_010_000, b"2."))
    link = PacedLink(wire, wire.now)
    assert link.receive(900_000) is None and wire.t >= 900_000
    assert [link.receive(1_100_000), link.receive(1_100_000)] == [b"four", b"2."]
    assert wire.t == pytest.approx(1_010_000, abs=2000)
    link.send(b"answer", 0)
    link.send(b".", 0)
    assert not wire.sent
    assert link.receive(1_200_000) is None
    arrived = [1_000_000 + count * BYTE_NS for count in (12, 13)]  # with the requests
    assert wire.sent == [(pytest.approx(t, abs=2000), sent) for t, sent in zip(arrived, (b"answer", b"."), strict=True)]


def test_a_process_is_ready_after_its_line_and_killed_at_the_end_of_the_block():
    script = "import time; print('hello'); print('emulating; and more'); print('last'); time.sleep(600)"
    with subprocess_ready(["-c", script]) as process:
        assert process.poll() is None
        assert process.stdout.readline() == "last\n"
    assert process.returncode is not None


@pytest.mark.parametrize(
    ("script", "said"), [("print('a'); print('b')", "b"), ("", "no output"), ("1/0", "ZeroDivisionError:.*")]
)
def test_a_process_that_does_not_start_is_reported_with_its_last_line(script, said):
    with (
        pytest.raises(NotMeasured, match=f"^the emulated drives did not start: {said}$"),
        subprocess_ready(["-c", script]),
    ):
        pass


# --- ticks back to back ---------------------------------------------------------------------------


def test_ticks_and_the_calls_between_them_are_timed_separately():
    engine, calls = load_rig(ROOT / "rigs/two_link.yaml").engine(), []
    clock = BackToBackClock(lambda: calls.append(engine.number))
    found = tick_timing.time_ticks(engine, clock, 30)
    assert found.shape == (30, len(engine.tasks) + 1)
    assert (found >= 0).all() and (found[:, -1] >= found[:, :-1].sum(axis=1)).all()
    assert len(calls) == len(clock.others) == 31 and engine.number == 31
    assert len(tick_timing.time_ticks(engine, clock, 5)) == 5 == len(clock.ticks)


def test_ticks_that_end_early_raise_the_reason():
    engine = load_rig(ROOT / "rigs/two_link.yaml", ["joints.elbow.limits.velocity=0.001"]).engine()
    with pytest.raises(RunError, match=r"^stopped at tick .*: joint 'elbow' moves at "):
        tick_timing.time_ticks(engine, BackToBackClock(), 5000)


# --- codecs ---------------------------------------------------------------------------------------


def test_every_family_has_a_codec_that_understands_itself():
    families = {path.parent.name for path in (ROOT / "drivers").glob("*/*codec.py")} - {"template"}
    found = list(codecs.samples(6))
    words = {name.split()[0].replace("CiA", "CiA402").lower().rstrip(",") for name, _, _ in found}
    assert words == families
    assert len(found) == len({name for name, _, _ in found})
    for name, encode, decode in found:
        assert encode() and decode(), name
    decode = next(decode for name, _, decode in found if name == "Dynamixel, 6 drives in one packet")
    assert len(decode()[0].params) == 6 * 19


def test_the_slowest_direction_of_the_slowest_codec_is_the_result(monkeypatch):
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


def test_a_codec_that_does_not_decode_its_own_frame_raises(monkeypatch):
    for wrong in (lambda: None, lambda: []):
        monkeypatch.setattr(rows_hardware.codecs, "samples", lambda n, wrong=wrong: [("x", lambda: b"1", wrong)])
        with pytest.raises(RunError, match=r"^the codec of x does not decode its own frame$"):
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
    case = BenchCase("x", "this", lambda budget: measurement, unit="%", target=Target("ours", 0.1, at_most=True))
    return measure_case(case, TINY)


COMPLETE = FrameCounts(6012, 6000, 0), FrameCounts(6000, 6012, 0)


@pytest.mark.parametrize(("late", "percent", "met"), [([], 0.0, True), ([900], 0.1, True), ([900] * 2, 0.2, False)])
def test_the_result_is_the_percentage_of_missed_deadlines(late, percent, met):
    row = row_of(judge_frames(timing_of(late), "", *COMPLETE))
    assert (row.ours, row.met) == (pytest.approx(percent), met)


@pytest.mark.parametrize(
    ("host", "device", "fault", "failed"),
    [
        (*COMPLETE, "it fell", "it fell"),
        (COMPLETE[0], FrameCounts(6000, 6010, 0), "", "2 commands lost"),
        (FrameCounts(6012, 5999, 0), COMPLETE[1], "", "1 replies lost"),
        (FrameCounts(6012, 6000, 1), FrameCounts(6000, 6012, 2), "", "3 bus errors"),
        (FrameCounts(3, 2, 0), FrameCounts(4, 1, 0), "it fell", "it fell; 2 commands lost; 2 replies lost"),
    ],
)
def test_lost_frames_and_stops_miss_the_target(host, device, fault, failed):
    row = row_of(judge_frames(timing_of([]), fault, host, device))
    assert row.met is False and row.note.startswith(f"{failed}; 0 of 1000 deadlines missed; ")


def test_the_note_has_all_counts():
    row = row_of(judge_frames(timing_of([900]), "", *COMPLETE, "; emulated drives: 1 s slip"))
    assert row.note == (
        "1 of 1000 deadlines missed (bus late in write 1); 6012 frames sent, 6012 received by the drives; 6000"
        " replies, 6000 received; tick 280 µs, 280 µs, 1.18 ms, latency 20 µs, 20 µs, 20 µs (median, p99, max);"
        " emulated drives: 1 s slip; judged: 1 misses, without 0 by 0 answers of the drives after more than 500 µs"
    )
    none = judge_frames(timing_of([], 0), "it fell", *COMPLETE)
    assert np.isnan(none.samples.ours[0]) and row_of(none).met is False


def waiting(waited_us, late_us):
    """1000 ticks; in the first of them `read` waits until so late [µs after it is due], the next begin behind it."""
    count = 1000
    due = 10**12 + np.arange(count) * 1_000_000
    woke = due + 20_000
    read = due + 50_000
    read[: len(waited_us)] = due[: len(waited_us)] + np.array(waited_us, dtype=np.int64) * 1000
    woke[1:] = np.maximum(woke[1:], read[:-1] + 50_000)
    stamps = np.stack([due, woke, read, read + 50_000, np.zeros_like(due)], axis=1)
    tasks = tuple(TaskTime(name, 1, 0, 1_000_000, True) for name in ("read", "write"))
    timing = DeadlineRecord(tasks, 1_000_000, np.arange(count), stamps, 0, 0, 0, 1.0, False, "compiled", ())
    late = due[0] + np.array(late_us, dtype=np.int64).reshape(-1, 2) * 1000
    return timing, late


@pytest.mark.parametrize(
    ("waited", "late", "by_drives"),
    [
        ([1200], [], 0),
        ([1200], [(100, 1190)], 1),  # without it, the read would have ended 1.09 ms earlier
        ([1200], [(100, 300)], 0),  # the answer came, the read went on
        ([1200], [(1100, 1190)], 0),  # overdue for less than the tick was late
        ([1200], [(-900, -100)], 0),  # another tick
        ([2100, 1200], [(100, 2050)], 2),  # the next tick began too late because of it
        ([1200, 400, 1200], [(100, 1190)], 1),
    ],
)
def test_misses_by_late_answers_are_told_from_others(waited, late, by_drives):
    timing, times = waiting(waited, late)
    assert late_answers.misses_by_late_answers(timing, times) == by_drives


def test_late_answers_are_in_the_figure_and_not_judged():
    timing, late = waiting([1200, 400] * 5, [(2000 * k + 100, 2000 * k + 1190) for k in range(5)])
    alone = row_of(judge_frames(timing, "", *COMPLETE))
    assert (alone.ours, alone.met) == (pytest.approx(0.5), False)
    row = row_of(judge_frames(timing, "", *COMPLETE, late=late))
    assert (row.ours, row.met) == (pytest.approx(0.5), True)
    assert row.note.endswith("; judged: 0 misses, without 5 by 5 answers of the drives after more than 500 µs")
    assert row_of(judge_frames(timing, "it fell", *COMPLETE, late=late)).met is False


@pytest.mark.parametrize(("late_loops", "met"), [(0, False), (8, True)])
def test_no_more_misses_than_of_cyclictest_meet_the_target(late_loops, met):
    timing, latencies = waiting([1200, 400] * 5, [])[0], np.repeat([10.0, 2500.0], [2000 - late_loops, late_loops])
    row = row_of(judge_frames(timing, "", *COMPLETE, latencies=latencies))
    assert (row.ours, row.met) == (pytest.approx(0.5), met)
    assert row.note.endswith(f"; cyclictest would have missed {late_loops / 2:g}")


def test_late_answers_are_those_after_the_promised_time(monkeypatch):
    late, now = [], iter([400_000, 600_000])
    monkeypatch.setattr(late_answers.time, "monotonic_ns", lambda: next(now))
    for _ in range(2):
        late_answers._taken(lambda item, t_ns: None, late, CanFrame(1, b"", t_ns=0), 0)
    assert late == [(500_000, 600_000)]
    printed = "emulating\nlate answer 500000 600000\nlate answer 7 8\nemulated 1 s\n"
    assert late_answers.printed_times(printed).tolist() == [[500_000, 600_000], [7, 8]]
    assert late_answers.printed_times("").shape == (0, 2)


def ended(said):
    return rows_hardware.device_counts(said)


def test_frame_counts_of_the_emulator_are_added_up():
    said = "\nemulated 5 s\nline0: 10 received, 8 sent, 1 errors\nline3: 20 received, 19 sent, 0 errors, 2 answers\n"
    assert ended(said) == (FrameCounts(27, 30, 1), "")
    late = said.replace("5 s", "5 s, 0.25 s of clock slip")
    assert ended(late)[1] == "; emulated drives: 0.25 s of clock slip"
    for said, last in (("", "no output"), ("interrupted\n", "interrupted")):
        with pytest.raises(RunError, match=f"^the emulated drives reported no frame counts: {last}$"):
            ended(said)


# --- the rows -------------------------------------------------------------------------------------


def test_one_word_selects_all_hardware_rows():
    cases = bench.select(bench.CASES, "hardware")
    assert [case.name.rsplit(" ", 1)[-1] for case in cases] == ["virtual", "compiled", "serial", "codec", "kHz", "stop"]
    assert all(case.target is not None for case in cases)


def test_the_unit_of_a_row_may_be_a_count():
    one = Measurement(Samples(np.array([3.0])))
    assert measure_case(BenchCase("x", "this", lambda budget: one, unit="ticks"), TINY).ours == 3.0


def test_a_run_that_cannot_begin_is_not_measured(tmp_path):
    path, keys = emulated_rigs.serial_rig(tmp_path / "tty")
    with pytest.raises(NotMeasured, match=f"no such port '{tmp_path}/tty'"):
        rows_hardware.run_real_time(load_rig(path, keys), 0.1)
