"""Real-time rows of the bench: output of cyclictest, judgement of latencies and misses, real runs."""

import threading
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import cyclictest, report, rows_realtime
from benchmarks.paired_timing import FULL, QUICK, Budget, Samples
from benchmarks.rows import BenchCase, BenchRow, Measurement, NotMeasured, Target, measure_case
from benchmarks.rows_realtime import Setup, judged
from cosim.core.errors import RunError
from cosim.execution.timing.deadlines import DeadlineRecord, TaskTime
from cosim.execution.timing.privileges import Privilege
from tests.bench.named_rows import named

SHORT = Budget(pairs=1, block=1e-4, starts=1, run=0.2)
PRINTED = """\
# /dev/cpu_dma_latency set to 0us
# Histogram
000000 000000
000012 000003
000013 000001
099999 000001
# Total: 000000005
# Min Latencies: 00012
# Avg Latencies: 00022
# Max Latencies: 150432
# Histogram Overflows: 00002
# Histogram Overflow at cycle number:
# Thread 0: 00003 00004

"""


def timing_of(latencies_us, period_us=1000, busy_us=10, lost_ns=0):
    """A run whose ticks woke so late; a period that was missed is left out."""
    late = np.array(latencies_us, dtype=np.int64) * 1000
    lost = np.concatenate([[0], np.cumsum(late[:-1] // (period_us * 1000))]) * period_us * 1000
    due = 10**12 + np.arange(len(late)) * period_us * 1000 + lost
    stamps = np.stack([due, due + late, due + late + busy_us * 1000, np.zeros_like(due)], axis=1)
    tasks = (TaskTime("write", 1, 0, period_us * 1000, False),)
    numbers = np.arange(len(late))
    return DeadlineRecord(
        tasks, period_us * 1000, numbers, stamps, int(lost[-1]) + lost_ns, 0, 0, 1.0, False, "compiled", ()
    )


# --- cyclictest -----------------------------------------------------------------------------------


def test_a_histogram_is_latencies_in_order_of_size():
    np.testing.assert_array_equal(cyclictest.histogram(PRINTED), [12, 12, 12, 13, 99999, 150432, 150432])
    assert len(cyclictest.histogram("")) == 0


@pytest.fixture
def program(monkeypatch, tmp_path):
    """In place of the program: prints and says so much, and ends with that code; the options it was given."""

    def program(prints="", says="", code=0):
        file = tmp_path / "cyclictest"
        lines = [
            f"echo \"$@\" > '{tmp_path}/given'",
            f"printf %s '{prints}'",
            f"printf %s '{says}' >&2",
            f"exit {code}",
        ]
        file.write_text("\n".join(["#!/bin/sh", *lines, ""]))
        file.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        return lambda: (tmp_path / "given").read_text().split()

    return program


def test_cyclictest_runs_one_thread_of_fixed_priority_on_one_cpu(program):
    given = program(PRINTED)
    assert len(cyclictest.latencies(7, 250, 3, 80)) == 7
    options = "-m -q -t 1 -a 3 -p 80 -i 250 -l 7 -h 100000"
    assert given() == options.split()


@pytest.mark.parametrize(
    ("prints", "says", "code", "last"),
    [
        ("", "WARN: stat\nUnable to change scheduling policy!\n", 1, "Unable to change scheduling policy!"),
        (PRINTED, "", 2, "# Thread 0: 00003 00004"),
        ("", "", 1, "no output"),
        ("# Total: 000000000\n", "", 0, "# Total: 000000000"),
    ],
)
def test_a_cyclictest_that_fails_is_no_measurement(program, prints, says, code, last):
    program(prints, says, code)
    with pytest.raises(NotMeasured) as caught:
        cyclictest.latencies(7, 1000, 0, 80)
    assert str(caught.value) == f"cyclictest failed: {last}"


def test_its_version_is_part_of_the_document(program):
    program("cyclictest V 2.40\nUsage:\n")
    assert report.versions()["cyclictest"] == "2.40"
    program("Usage:\n")
    assert cyclictest.version() is None


# --- rows that something else fails ---------------------------------------------------------------

SOON = Target("ratio", 2.0, at_most=True)


def test_a_failure_misses_the_target_whatever_the_figure():
    fine, late = (
        Measurement(Samples(np.array([1e-6]), np.array([1e-6])), note="so", growth=True, failed=failed)
        for failed in ("", "too many")
    )
    rows = [measure_case(BenchCase("x", "this", lambda effort, m=m: m, target=SOON), SHORT) for m in (fine, late)]
    assert [(row.met, row.note) for row in rows] == [(True, "so"), (False, "too many; so")]
    assert rows[1].figures()["note"] == "too many; so"
    assert BenchRow(BenchCase("x", "this", lambda effort: fine), 1.0, failed=True).met is None


def test_quartiles_may_be_given():
    one = Measurement(Samples(np.array([1e-6]), np.array([4e-6])), quartiles=(3.0, 5.0))
    row = measure_case(BenchCase("x", "this", lambda effort: one), SHORT)
    assert (row.ratio, row.quartiles) == (4.0, (3.0, 5.0))


def test_a_row_reports_why_it_was_not_measured():
    def measure(effort):
        raise NotMeasured("there is no time")

    row = measure_case(BenchCase("x", "this", measure, target=SOON), SHORT)
    assert (row.note, row.met, row.runs) == ("there is no time", None, 0)


# --- what is judged -------------------------------------------------------------------------------


def test_p99_of_ours_against_both_runs_of_cyclictest_together():
    before, after = np.full(100, 20), np.repeat([10, 40], [96, 4])
    found = judged(timing_of(np.repeat([10, 25], [950, 50])), before, after, True)
    row = measure_case(BenchCase("x", "this", lambda effort: found, target=Target("ratio", 0.7, at_most=True)), SHORT)
    assert row.ours == pytest.approx(25.0)
    assert row.other == pytest.approx(np.percentile([*before, *after], 99)) == pytest.approx(40.0)
    assert row.ratio == pytest.approx(25 / 40)
    # only the second half of the last tenth is late
    assert row.quartiles == pytest.approx((0.25, 0.25))
    assert row.met is True
    assert row.note == (
        "median, p99, max in whole µs: 10, 25, 25; cyclictest 20, 20, 20 before, 10, 40, 40 after; p99 of our 10 parts"
        " 0.25 to 0.25 × (quartiles); deadlines missed: 0 of 1000, cyclictest would have missed 0"
    )


def test_latencies_are_rounded_down_as_those_of_cyclictest_are():
    timing = timing_of([10] * 20)
    timing.stamps[:, 1] += 999
    assert judged(timing, np.full(4, 10), np.full(4, 10), True).samples.ours[0] == pytest.approx(10e-6)


# a tick of ours takes 10 µs: cyclictest would be late from 991 µs on
@pytest.mark.parametrize(
    ("ours", "before", "after", "would", "failed"),
    [
        ([10] * 10, [10] * 10, [10] * 10, "0", False),
        # if both miss as often, one of all misses is ours with a probability of a third
        ([10] * 9 + [2500], [10] * 10, [10] * 10, "0", False),
        ([10] * 6 + [2500] * 4, [10] * 10, [10] * 10, "0", False),
        ([10] * 5 + [2500] * 5, [10] * 10, [10] * 10, "0", True),
        ([10] * 5 + [2500] * 5, [10] * 9 + [990], [10] * 10, "0", True),
        ([10] * 5 + [2500] * 5, [10] * 9 + [991], [10] * 10, "0.5", False),
        ([2500] * 10, [10] * 9 + [2500], [10] * 7 + [1500] * 3, "2", True),
    ],
)
def test_misses_beyond_those_of_cyclictest_and_chance_fail(ours, before, after, would, failed):
    found = judged(timing_of(ours), np.array(before), np.array(after), True)
    assert f"cyclictest would have missed {would}" in found.note
    assert found.failed == ("more deadlines missed than by cyclictest, beyond chance" if failed else "")
    assert judged(timing_of(ours), np.array(before), np.array(after), False).failed == ""


def test_ticks_that_are_due_off_the_clock_are_drift(monkeypatch):
    for lost, off, met in ((0, 0.0, True), (1, 1e-3, False), (-1, 1e-3, False)):
        timing = timing_of([10, 2500, 10, 10], lost_ns=lost)
        monkeypatch.setattr(rows_realtime, "_runs", {(rows_realtime.ONE_KHZ, SHORT.run): timing})
        row = measure_case(named("realtime drift"), SHORT)
        assert (row.ours, row.met) == (pytest.approx(off, abs=1e-12), met)
    timing = timing_of([10, 2500, 10, 10])
    monkeypatch.setattr(rows_realtime, "_runs", {(rows_realtime.ONE_KHZ, SHORT.run): timing})
    assert measure_case(named("realtime drift"), SHORT).note == (
        "3 periods and 2000000 ns of clock slip took 5000000 ns by due times, off by 0 ns; the last tick had a wake-up"
        " latency of 10 µs"
    )


# --- what they run on -----------------------------------------------------------------------------


def test_without_a_fixed_priority_nothing_is_measured(monkeypatch, program):
    program()
    right = Privilege("fixed priority (SCHED_FIFO)", False, "run as root")
    other = Privilege("processor kept awake", False, "buy another")
    monkeypatch.setattr(rows_realtime.privileges, "acquire", lambda pacing: nullcontext((other, right)))
    row = measure_case(named("realtime native 1 kHz"), SHORT)
    assert row.note == "this needs a fixed priority (SCHED_FIFO): run as root"
    assert row.met is None


def test_other_privileges_may_be_missing_for_both(monkeypatch):
    privileges = (
        Privilege("processor kept awake", False, "buy another"),
        Privilege("fixed priority (SCHED_FIFO)", True, ""),
    )
    monkeypatch.setattr(rows_realtime.privileges, "acquire", lambda pacing: nullcontext(privileges))
    rows_realtime.check_priority()


class Fails:
    """A rig whose scheduler does not get far."""

    def __init__(self, fault):
        self.fault, self.spec = fault, SimpleNamespace()

    def scheduler(self):
        return nullcontext(self)

    def prepare(self):
        if not self.fault:
            raise RunError("no clock", "here")

    def arm(self): ...

    def start(self, ticks): ...

    def read(self): ...


def test_a_run_that_cannot_begin_is_not_measured_and_one_that_is_stopped_fails(monkeypatch):
    for fault, kind, what in (("", NotMeasured, "here: no clock"), ("it fell", RunError, ".*ur5_sim.yaml: it fell")):
        monkeypatch.setattr(rows_realtime, "load_rig", lambda *args, fault=fault, **more: Fails(fault))
        with pytest.raises(kind, match=f"^{what}$"):
            Setup(1000).run(0.1, 0)


def test_a_busy_thread_is_there_meanwhile_only():
    def there():
        return "busy" in [thread.name for thread in threading.enumerate()]

    with rows_realtime.busy():
        assert there()
    assert not there()


def test_the_length_of_runs():
    assert (QUICK.run, FULL.run) == (5.0, 60.0)
    assert [Setup(period).ticks(60.0) for period in (1000, 250)] == [60_000, 240_000]


# --- real runs ------------------------------------------------------------------------------------


@pytest.fixture
def cpu():
    try:
        return rows_realtime.last_cpu()
    except NotMeasured as why:
        pytest.skip(str(why))


@pytest.mark.real_time
@pytest.mark.parametrize(
    ("setup", "engine_kind", "ticks"),
    [
        (Setup(1000), "compiled", 200),
        (Setup(250), "compiled", 800),
        (Setup(2000, native=False), "compiled", 100),
    ],
)
def test_runs_are_in_real_time_on_request_only(cpu, setup, engine_kind, ticks):
    timing = setup.run(0.2, cpu)
    assert (timing.engine, len(timing.numbers), timing.lost_rows) == (engine_kind, ticks, 0)
    assert timing.period_ns == setup.period * 1000
    assert f"CPU {cpu}" in [right.name for right in timing.privileges]
    assert timing.counted.all()


@pytest.mark.real_time
def test_cyclictest_gets_the_number_of_ticks(cpu):
    try:
        found = cyclictest.latencies(50, 1000, cpu, 80)
    except (cyclictest.NoCyclictest, NotMeasured) as why:
        pytest.skip(str(why))
    assert len(found) == 50
    assert np.all(np.diff(found) >= 0)
