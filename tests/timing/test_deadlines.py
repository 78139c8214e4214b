"""Timing of real-time runs: stamps with known answers for every cause of a missed deadline, figures, and lines."""

import json
import tracemalloc
from dataclasses import dataclass, replace

import numpy as np
import pytest

from cosim.core.units import format_seconds
from cosim.execution.timing import deadlines
from cosim.execution.timing.deadlines import DeadlineRecord, Miss, TaskTime, signals_of, values
from cosim.output.timing_report import timing_lines

US, MS = 1_000, 1_000_000
START = 7_000_000_000_123
NAMES = ("read", "arm", "guard", "write", "step", "publish")
USUAL = dict(zip(NAMES, (20 * US, 100 * US, 5 * US, 20 * US, 50 * US, 5 * US), strict=True))  # 200 µs
TASKS = tuple(TaskTime(name, 1, 0, MS, name in ("read", "write")) for name in NAMES)
WAKE = 10 * US


@dataclass(frozen=True)
class Privilege:
    name: str
    granted: bool
    fix: str = ""


def ticks(k, changes=None, tasks=TASKS, lost=None, **usual):
    """Stamps of k ticks of 1 ms that are all on time but for `changes`: tick -> what took how long (a task, `wake`),
    `off`: of that the thread was off the CPU. lost: tick -> time given up before it."""
    rows, end, cpu, given = [], 0, 0, 0
    for n in range(k):
        change = {**USUAL, "wake": WAKE, "off": 0, **usual, **(changes or {}).get(n, {})}
        given += (lost or {}).get(n, 0)
        due = START + n * MS + given
        woke = max(due + change["wake"], end)
        took = [change[task.name] if n % task.ticks == task.phase else 0 for task in tasks]
        ends = (woke + np.cumsum(took)).tolist()
        end, cpu = ends[-1], cpu + sum(took) - change["off"]
        rows.append([due, woke, *ends, cpu])
    return np.array(rows, dtype=np.int64).reshape(k, 3 + len(tasks))


def timing(stamps, numbers=None, tasks=TASKS, **settings):
    usual = {"slip_ns": 0, "lost_rows": 0, "warm_up_ns": 0, "rate": 1.0, "triggered": False, "engine": "compiled"}
    numbers = np.arange(len(stamps)) if numbers is None else numbers
    return DeadlineRecord(
        tasks, **{"period_ns": MS, "privileges": (), **usual, **settings, "numbers": numbers, "stamps": stamps}
    )


GENEROUS = tuple(replace(task, deadline_ns=2 * MS) for task in TASKS)
LATER = tuple(replace(task, deadline_ns=2 * MS) if task.name in ("step", "publish") else task for task in TASKS)
ALTERNATE = tuple(replace(t, ticks=2, phase=1, deadline_ns=150 * US) if t.name == "arm" else t for t in TASKS)


def triggers(intervals, **changes):
    """A triggered run: a tick is due when it wakes."""
    stamps = ticks(len(intervals) + 1, **changes)
    woke = START + np.cumsum([0, *intervals])
    stamps[:, :-1] += (woke - stamps[:, 1])[:, None]
    stamps[:, 0] = woke
    return stamps


def without(stamps, *rows):
    """(stamps, numbers) of the others."""
    return np.delete(stamps, rows, axis=0), np.delete(np.arange(len(stamps)), rows)


LATE = ticks(12, {5: {"wake": 2500 * US}})
# what is recorded -> the ticks that missed a deadline, by how much, of which task, why, and in which tick that began
MISSES = {
    "within the deadlines": (timing(ticks(20)), []),
    "woke late, ran as usual": (
        timing(ticks(9, {5: {"wake": 900 * US}})),
        [(5, 100 * US, "arm", "wake-up latency", 5)],
    ),
    "at the very end of a deadline": (timing(ticks(9, {5: {"wake": 800 * US}})), []),
    "a ns after it": (timing(ticks(9, {5: {"wake": 800 * US + 1}})), [(5, 1, "publish", "wake-up latency", 5)]),
    "longer than usual": (timing(ticks(9, {4: {"step": MS}})), [(4, 160 * US, "step", "step overran", 4)]),
    # half of the tick is 575 µs
    "off the CPU for less than half": (
        timing(ticks(9, {4: {"step": MS, "off": 570 * US}})),
        [(4, 160 * US, "step", "step overran", 4)],
    ),
    "off the CPU for more than half": (
        timing(ticks(9, {4: {"step": MS, "off": 580 * US}})),
        [(4, 160 * US, "step", "preempted in step", 4)],
    ),
    **{
        f"hardware, off the CPU for {off} ns": (
            timing(ticks(9, {4: {"read": 1200 * US, "off": off}})),
            [(4, 390 * US, "read", "bus late in read", 4)],
        )
        for off in (0, 1300 * US)
    },
    "longer than its median, not the longest": (
        timing(ticks(9, {4: {"step": 350 * US}}, arm=700 * US)),
        [(4, 110 * US, "step", "step overran", 4)],
    ),
    "ticks held up by the one before": (
        timing(LATE),
        [
            (5, 1700 * US, "read", "wake-up latency", 5),
            (6, 900 * US, "read", "wake-up latency", 5),
            (7, 100 * US, "arm", "wake-up latency", 5),  # it woke 900 µs late, and would have been in time
        ],
    ),
    "held up by one that missed nothing": (
        timing(ticks(9, {5: {"step": 1300 * US}, 6: {"arm": 600 * US}}, LATER), tasks=LATER),
        [(6, 105 * US, "arm", "step overran", 5)],
    ),
    "not held up by one that ends as it is due": (
        timing(ticks(9, {5: {"wake": 800 * US}, 6: {"step": MS}})),
        [(6, 160 * US, "step", "step overran", 6)],
    ),
    "a task in the ticks in which it is due": (
        timing(ticks(8, {4: {"read": 200 * US}, 5: {"read": 200 * US}}, ALTERNATE), tasks=ALTERNATE),
        [(5, 160 * US, "arm", "bus late in read", 5)],
    ),
    "a trigger more than half a period late": (
        timing(triggers([MS, 1500 * US, 500 * US, 1500 * US + 1, MS]), triggered=True),
        [(4, 500 * US + 1, "trigger", "trigger late", 4)],
    ),
    "a trigger that found the loop busy": (
        timing(triggers([MS, 1800 * US, MS], changes={1: {"step": 1600 * US}}), triggered=True),
        [(1, 750 * US, "step", "step overran", 1), (2, 800 * US, "trigger", "step overran", 1)],
    ),
    "a trigger held up within a deadline": (
        timing(triggers([MS, 1800 * US, MS], changes={1: {"step": 1600 * US}}), tasks=GENEROUS, triggered=True),
        [(2, 800 * US, "trigger", "step overran", 1)],
    ),
}


@pytest.mark.parametrize("case", MISSES)
def test_misses_and_their_causes(case):
    record, expected = MISSES[case]
    assert record.misses() == [Miss(*miss) for miss in expected]
    assert record.summary()["missed"]["count"] == len(expected)


RESET = {5: {"step": 3 * MS}, 6: {"wake": 900 * US}}
BUSY = {1: {"step": 900 * US}, 2: {"read": MS}}
# (number, cause, root)
CAUSES = {
    "anew after clock slip": (
        timing(ticks(12, RESET, lost={6: 3 * MS})),
        [(5, "step overran", 5), (6, "wake-up latency", 6)],
    ),
    "without the row that began it": (
        timing(*without(LATE, 5)),
        [(6, "wake-up latency", 6), (7, "wake-up latency", 6)],
    ),
    "without a row between": (timing(*without(LATE, 6)), [(5, "wake-up latency", 5), (7, "wake-up latency", 5)]),
    "a triggered tick by itself": (
        timing(triggers([MS, 1100 * US, MS], changes=BUSY), triggered=True),
        [(1, "step overran", 1), (2, "bus late in read", 2)],
    ),
    "triggers whose rows were dropped": (timing(*without(triggers([MS] * 9), 4, 5), triggered=True), []),
}


@pytest.mark.parametrize("case", CAUSES)
def test_causes_and_roots(case):
    record, expected = CAUSES[case]
    assert [(miss.number, miss.cause, miss.root) for miss in record.misses()] == expected


def test_where_the_usual_is_too_long_the_longest_task_is_to_blame():
    # time is given up at every tick, so that none holds up another; in tick 4 the guard deviates most
    stamps = ticks(9, {4: {"guard": 50 * US}}, lost=dict.fromkeys(range(1, 9), MS), arm=500 * US, step=600 * US)
    found = timing(stamps).misses()
    assert {miss.cause for miss in found} == {"step overran"}
    assert [miss.root for miss in found] == list(range(9))


def test_the_warm_up():
    found = timing(ticks(12, {2: {"wake": 2500 * US}}), warm_up_ns=3 * MS)
    assert [(miss.number, miss.root) for miss in found.misses()] == [(3, 2), (4, 2)]
    assert found.summary()["missed"]["of"] == 9
    # the warm up is counted in periods despite clock slip
    found = timing(ticks(12, {1: {"step": 6 * MS}, 2: {"wake": MS}}, lost={2: 6 * MS}), warm_up_ns=3 * MS)
    assert found.misses() == []
    assert found.summary()["missed"]["of"] == 9


def test_the_cpu_time_of_a_tick_is_known_only_after_the_one_before():
    stamps = ticks(9, {4: {"step": MS, "off": 900 * US}})
    assert timing(stamps).misses()[0].cause == "preempted in step"
    assert timing(*without(stamps, 3)).misses()[0].cause == "step overran"
    assert timing(*without(stamps, 0, 1, 2, 3)).misses()[0].cause == "step overran"


def test_figures_of_triggers():
    found = timing(triggers([MS, 1500 * US, 500 * US, 1500 * US + 1, MS]), triggered=True).summary()
    assert found["latency"] is None and found["drift_s"] == 500001e-9
    assert found["trigger_interval"] == dict(median_s=1e-3, p99_s=pytest.approx(1.5e-3), max_s=1.500001e-3)
    dropped = timing(*without(triggers([MS] * 9), 4, 5), triggered=True)
    assert dropped.latency_ns.tolist() == [MS] * 6  # of 7
    tasks = timing(ticks(8, {4: {"read": 200 * US}}, ALTERNATE), tasks=ALTERNATE).summary()["tasks"]
    assert tasks["arm"] == dict(median_s=1e-4, p99_s=1e-4, max_s=1e-4, deadline_s=150e-6)


def test_ticks_do_not_drift_by_fractions_of_a_nanosecond_or_clock_slip():
    n = np.arange(1002) + 17
    due = START + np.floor((n - 17) * (1e9 / 3000) + 0.5).astype(np.int64) + np.where(n > 500, 3 * MS, 0)
    stamps = np.repeat(due[:, None], 9, axis=1)
    assert timing(stamps, n, period_ns=1e9 / 3000, slip_ns=3 * MS).drift_ns == 0
    assert timing(stamps, n, period_ns=1e9 / 3000).drift_ns == 3 * MS
    assert timing(*without(ticks(50), 7, 8)).drift_ns == 0
    assert timing(np.repeat((START + np.arange(11) * (MS + 5))[:, None], 9, axis=1)).drift_ns == 50


def factor(stamps, **settings):
    return timing(stamps, **settings).summary()["real_time_factor"]


def test_the_real_time_factor_is_that_of_the_worst_second():
    assert factor(ticks(3000)) == {"mean": 1.0, "worst_window": 1.0}
    half = factor(ticks(3000, lost={1500: 500 * MS}))
    assert half == {"mean": 2999 / 3499, "worst_window": 0.5}
    # a stop that is longer than the window
    assert factor(ticks(3000, lost={1500: 3000 * MS}))["worst_window"] == 1 / 3001
    # less than a second: all of the run
    assert factor(ticks(11, lost={5: 10 * MS})) == {"mean": 0.5, "worst_window": 0.5}
    assert factor(ticks(1)) == {"mean": None, "worst_window": None}
    # what was caught up with within the second is no loss at its end, but on the way
    caught = factor(ticks(3000, {1500: {"wake": 100 * MS}}))
    assert caught["mean"] == 1.0
    assert 0.9 <= caught["worst_window"] < 0.905
    # lost rows are not time that was lost
    stamps, numbers = without(ticks(3000), *range(1000, 1400))
    assert timing(stamps, numbers).summary()["real_time_factor"] == {"mean": 1.0, "worst_window": 1.0}


def test_simulated_time_follows_the_rate():
    found = timing(ticks(9, {5: {"wake": 900 * US}}), rate=2.0).summary()
    assert (found["period_s"], found["rate"], found["missed"]["worst"][0]["t_s"]) == (1e-3, 2.0, 0.01)
    assert found["real_time_factor"]["mean"] == pytest.approx(1.0)


def test_signals_are_what_the_stamps_say_and_nan_where_a_task_was_not_due():
    tasks = tuple(replace(task, ticks=2, phase=1) if task.name == "arm" else task for task in TASKS)
    names = [f"timing/{name}" for name in ("latency", *NAMES, "end_to_end")]
    assert {name: signal.unit for name, signal in signals_of(tasks).items()} == dict.fromkeys(names, "s")
    stamps = ticks(4, {2: {"wake": 30 * US}}, tasks)
    found = values(tasks, np.arange(4), stamps)
    expected = [[10, 20, arm, 5, 20, 50, 5, 55 + (arm == 100) * 100] for arm in (np.nan, 100, np.nan, 100)]
    expected[2][0], expected[2][-1] = 30, 75
    np.testing.assert_allclose(found, 1e-6 * np.array(expected), rtol=1e-12)
    assert values(tasks, np.arange(0), stamps[:0]).shape == (0, 8)


@pytest.mark.parametrize("triggered", [False, True])
@pytest.mark.parametrize("k", [0, 1, 2])
def test_short_runs_have_a_summary_and_lines(k, triggered):
    found = timing(ticks(k), triggered=triggered)
    summary = found.summary()
    assert json.loads(json.dumps(summary, allow_nan=False))["ticks"] == k
    assert found.misses() == []
    assert found.drift_ns == 0
    assert (summary["tick"] is None) == (k == 0) and timing_lines(summary)


def test_the_summary():
    privileges = Privilege("thread priority", True), Privilege("locked memory", False, "run as root")
    stamps = ticks(201, {150: {"wake": 2500 * US}, 180: {"step": MS}})
    found = timing(stamps, privileges=privileges, warm_up_ns=100 * MS, lost_rows=3, engine="Python").summary()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    latency = found.pop("latency")
    assert latency == dict(median_s=10e-6, p99_s=pytest.approx(0.9e-3), max_s=2.5e-3)
    assert found.pop("end_to_end")["max_s"] == 2645e-6
    assert found.pop("tick") == dict(median_s=200e-6, p99_s=200e-6, max_s=1150e-6)
    assert found["tasks"].pop("step") == dict(median_s=50e-6, p99_s=50e-6, max_s=1e-3, deadline_s=1e-3)
    assert list(found.pop("tasks")) == ["read", "arm", "guard", "write", "publish"]
    worst = [
        (150, 0.15, 1.7e-3, "read", "wake-up latency", 150),
        (151, 0.151, 0.9e-3, "read", "wake-up latency", 150),
        (180, 0.18, 0.16e-3, "step", "step overran", 180),
        (152, 0.152, 0.1e-3, "arm", "wake-up latency", 150),
    ]
    keys = "number", "t_s", "late_s", "task", "cause", "root"
    assert found.pop("missed") == {
        "count": 4,
        "of": 101,
        "causes": {"wake-up latency": 3, "step overran": 1},
        "worst": [dict(zip(keys, miss, strict=True)) for miss in worst],
    }
    assert found == {
        "ticks": 201,
        "period_s": 1e-3,
        "rate": 1.0,
        "engine": "Python",
        "trigger_interval": None,
        "clock_slip_s": 0.0,
        "lost_rows": 3,
        "real_time_factor": {"mean": 1.0, "worst_window": 1.0},
        "drift_s": 0.0,
        "privileges": {"thread priority": True, "locked memory": False},
        "privilege_fixes": {"locked memory": "run as root"},
    }


def test_the_summary_has_the_five_worst_misses():
    found = timing(ticks(60, {10 * k: {"wake": (900 + k) * US} for k in range(6)})).summary()["missed"]
    assert (found["count"], [miss["number"] for miss in found["worst"]]) == (6, [50, 40, 30, 20, 10])


PRIVILEGES = Privilege("thread priority", False, "run as root"), Privilege("locked memory", True)
SLIPPING = ticks(2000, {512: {"wake": 2 * MS}, 700: {"step": MS, "off": 900 * US}}, lost={1000: 12 * MS})
MANY = {10 * k: {name: 1200 * US} for k, name in enumerate(NAMES)}
MANY |= {55: {"wake": 3 * MS, "off": 0}, 56: {"step": 1500 * US}}
LINES = {
    "no tick": timing(ticks(0)),
    "one tick": timing(ticks(1), lost_rows=1),
    "nothing missed": timing(ticks(10_000)),
    "misses, clock slip and privileges": timing(SLIPPING, privileges=PRIVILEGES, slip_ns=12 * MS, lost_rows=20),
    "the most frequent causes and the root of the worst": timing(ticks(70, MANY)),
    "triggers, within the warm-up": timing(triggers([MS] * 5), triggered=True, warm_up_ns=100 * MS),
}


@pytest.mark.parametrize("case", LINES)
def test_lines(said, case):
    said(timing_lines(LINES[case].summary()))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"), (17.23e-6, "17.2 µs"), (1.2e-3, "1.2 ms"), (999.4e-6, "999 µs"), (999.6e-6, "1 ms"),
        (2e-9, "2 ns"), (1234.0, "1,234 s"), (-0.05, "-50 ms"), (1.5, "1.5 s"),
    ],
)  # fmt: skip
def test_times_have_three_digits_and_a_unit_that_suits(seconds, text):
    assert format_seconds(seconds) == text


# --- long runs ---


def disturbed(k, triggered=False):
    """The timing of k ticks with late wake-ups, delays that hold up further ticks, slip and lost rows."""
    rng = np.random.default_rng(1)
    usual = np.concatenate([[WAKE], np.full(len(TASKS), 100 * US)])
    given = np.cumsum(np.where(rng.random(k) < 0.02, rng.integers(0, 3, k), 0)) * MS
    due = START + np.arange(k) * MS + given
    longer = np.where(rng.random((k, len(usual))) < 0.01, rng.integers(0, 4 * MS, (k, len(usual))), 0)
    ends = due[:, None] + np.cumsum(usual + longer, axis=1)
    ends = np.maximum.accumulate(ends.ravel()).reshape(ends.shape)  # late ticks hold up the next ones
    stamps = np.column_stack([due, ends, ends[:, -1]]).astype(np.int64)
    kept = np.flatnonzero(rng.random(k) > 0.01)
    return timing(stamps[kept], kept, triggered=triggered, warm_up_ns=20 * MS)


@pytest.mark.parametrize("triggered", [False, True])
def test_the_figures_do_not_depend_on_the_blocks(monkeypatch, triggered):
    whole = disturbed(3000, triggered)
    expected, misses, factors = whole.summary(), whole.misses(), whole.real_time_factors
    assert len(misses) > 50 and len({miss.cause for miss in misses}) > 1
    for block in (64, 2999):
        monkeypatch.setattr(deadlines, "BLOCK", block)
        parts = replace(whole)
        assert parts.summary() == expected and parts.misses() == misses
        np.testing.assert_array_equal(parts.real_time_factors, factors)
        assert parts.busy_s == pytest.approx(whole.busy_ns.sum() * 1e-9)


def test_the_memory_of_the_summary_does_not_grow_with_the_run():
    peaks = []
    for k in (50_000, 200_000):
        record = disturbed(k)
        tracemalloc.start()
        record.summary()
        _ = record.busy_s
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.05 * peaks[0] < 32 << 20
