"""Real-time runs equal free-running ones; order of the tasks in a tick; interrupted runs."""

import os
import subprocess

import numpy as np
import pytest

from cosim.execution.native_engine import NativeEngine
from cosim.execution.python_engine import PythonEngine
from cosim.plugins.drivers import sim
from cosim.rig.run import status_reports
from cosim.rig.run.run import StoppedRun
from cosim.simulation.tick.virtual_plant import VirtualPlant
from tests.kit.clock import in_simulated_time
from tests.kit.engines import armed
from tests.kit.recordings import recorded_messages

TIMING = ("timing", "speed")  # of a summary: all that may differ
FAST = "schedule.realtime=no"

DROP = """
name: drop
mechanism:
  gravity: [0, 0, 0]
  bodies:
    - {name: link, joint: hinge, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.1]}
controllers:
  - {name: push, type: push.py, size: 2}
events:
  - {do: latch, of: hinge, at: 40 ms, name: lock}
  - {do: unlatch, of: hinge, at: 60 ms}
schedule: {duration: 0.1 s, realtime: {rate: 0.2}}
"""
OPEN = "effort = ops.array([p.size * ops.sin(20.0 * t)])"
# `math` keeps it in Python
# a watchdog that stops a controller in Python needs the engine with drivers
AROUND_DRIVERS = ("guard.watchdog=10 s",)
OPEN_IN_PYTHON = "effort = np.array([p.size * math.sin(20.0 * float(t))])"


def same(run, other):
    """To the bit, but for what tells of time."""
    np.testing.assert_array_equal(run.t, other.t)
    signals = [name for name in run.signals if not name.startswith("timing/")]
    assert signals == [name for name in other.signals if not name.startswith("timing/")]
    for name in signals:
        np.testing.assert_array_equal(run[name], other[name], err_msg=name)
    assert run.events == other.events
    found, expected = ({k: v for k, v in r.summary.items() if k not in TIMING} for r in (run, other))
    assert found == expected


def messages(path):
    """topic -> [(time in ns, message)]."""
    found: dict[str, list] = {}
    for message in recorded_messages(path):
        found.setdefault(message.topic, []).append((message.t_ns, message.fields))
    return found


def recorded(path, group):
    """(times in ns, signal -> values with NaN for null) of one topic."""
    found = messages(path)[f"/{group}"]
    names = list(found[0][1])
    return [time for time, _ in found], {
        name: np.array([message[name] for _, message in found], dtype=float) for name in names
    }


@pytest.fixture
def simulated_time(monkeypatch):
    """Runs in real time wait for no tick."""
    return in_simulated_time(monkeypatch)


# --- the same in real time --------------------------------------------------------------------------


def test_ten_real_time_seconds_equal_ten_free_running_seconds(sample, simulated_time):
    fast = sample("two_link").run(10.0)
    timed = sample("two_link", "schedule.realtime={rate: 20}").run(10.0)
    same(timed, fast)
    assert fast.timing is None and "timing/latency" not in fast
    assert len(timed.timing.numbers) == 10_001 == len(timed["timing/latency"]) and timed.timing.lost_rows == 0
    assert timed.summary["timing"]["engine"] == "compiled"


def test_a_run_at_the_rate_of_the_clock(sample):
    fast, timed = sample("two_link").run(0.3), sample("two_link", "schedule.realtime=yes").run(0.3)
    same(timed, fast)
    # no tick begins before it is due, and what was not given up was kept
    stamps, lost = timed.timing.stamps, timed.timing.slip_ns
    assert (stamps[:, 1] >= stamps[:, 0]).all()
    assert stamps[-1, 0] - stamps[0, 0] == 300_000_000 + lost and timed.timing.drift_ns == 0


@pytest.mark.parametrize("push", [OPEN, OPEN_IN_PYTHON], ids=["machine code", "Python"])
def test_events_and_python_controllers_are_the_same_in_real_time(rig_of, push, simulated_time):
    timed, fast = rig_of(DROP, push=push).run(), rig_of(DROP, FAST, push=push).run()
    same(timed, fast)
    assert timed.events[0].name == "lock" and len(timed.events) == 2


# --- outputs of a real-time run ----------------------------------------------------------------------


@pytest.mark.parametrize("push", [OPEN, OPEN_IN_PYTHON], ids=["machine code", "Python"])
def test_the_recording_of_a_real_time_run_has_every_tick_and_its_timing(rig_of, tmp_path, push, simulated_time):
    path, overrides = tmp_path / "run.mcap", ["controllers.push.period=2 ms", "controllers.push.phase=1 ms"]
    run = rig_of(DROP, *overrides, push=push).run(record=path)
    for topic, group in (("joints/hinge", "hinge"), ("energy", "energy"), ("timing", "timing")):
        times, signals = recorded(path, topic)
        assert times == [k * 1_000_000 for k in range(101)]
        assert list(signals) == [n.removeprefix(f"{group}/") for n in run.signals if n.startswith(f"{group}/")]
        for name, values in signals.items():
            np.testing.assert_array_equal(values, run[f"{group}/{name}"], err_msg=name)
    assert list(signals) == ["latency", "read", "push", "guard", "write", "step", "publish", "end_to_end"]
    called = np.isfinite(signals["push"])
    np.testing.assert_array_equal(called, np.arange(101) % 2 == 1)
    assert all(np.isfinite(values).all() for name, values in signals.items() if name != "push")
    logged = [message["message"] for _, message in messages(path)["/log"]]
    assert [line for line in logged if line in ("lock", "unlatch hinge")] == [event.name for event in run.events]
    assert any(line.startswith("timing   wake-up latency ") for line in logged)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_outputs_leave_the_loop_its_cpu(rig_of, tmp_path, simulated_time):
    """The recorder and the publisher inherit the CPUs of the thread that starts them."""
    before, seen = os.sched_getaffinity(0), []
    reserved = max(before)
    rig = rig_of(DROP, f"schedule.realtime.cpu={reserved}", push=OPEN)
    started = subprocess.Popen

    def noted(*arguments, **keywords):
        process = started(*arguments, **keywords)
        seen.append(os.sched_getaffinity(process.pid))
        return process

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "Popen", noted)
        rig.run(record=tmp_path / "run.mcap")
    assert seen == [before - {reserved}] * 2
    assert os.sched_getaffinity(0) == before


# --- who runs when ----------------------------------------------------------------------------------

FOUR = """
mechanism:
  bodies:
    - {name: a, mass: 1 kg, inertia: [1, 1, 1]}
    - {name: b, parent: base, mass: 1 kg, inertia: [1, 1, 1]}
    - {name: c, parent: base, mass: 1 kg, inertia: [1, 1, 1]}
    - {name: d, parent: base, mass: 1 kg, inertia: [1, 1, 1]}
controllers:
  - {name: plain, type: push.py, joints: [a]}
  - {name: seldom, type: push.py, joints: [b], period: 4 ms, phase: 3 ms, priority: 2}
  - {name: first, type: push.py, joints: [c], period: 2 ms, priority: 5}
  - {name: last, type: push.py, joints: [d], period: 3 ms, phase: 1 ms, priority: -1}
schedule: {duration: 11 ms}
"""


@pytest.mark.parametrize("realtime", ["no", "{rate: 0.1}"])
def test_controllers_run_by_priority_and_period(rig_of, realtime, simulated_time):
    rig = rig_of(FOUR, f"schedule.realtime={realtime}", push=OPEN_IN_PYTHON)
    calls, ready = [], []
    for loop in rig.tick_model.loops:

        def noted(t, *arguments, name=loop.name, update=loop.block.update):
            calls.append((round(float(t) * 1e3), name))
            return update(t, *arguments)

        loop.block.update = noted
    rig.tick_model.untraceable  # noqa: B018 - tracing calls them, too
    calls.clear()
    rig.run(progress=ready.append)
    rehearsed = next((k for k in range(1, len(calls)) if calls[k][0] < calls[k - 1][0]), 0)
    expected = [
        (tick, name)
        for tick in range(12)
        for name, ticks, phase in (("first", 2, 0), ("seldom", 4, 3), ("plain", 1, 0), ("last", 3, 1))
        if tick % ticks == phase
    ]
    assert calls[rehearsed:] == expected
    assert [task.name for task in rig.tasks] == [
        "read", "first", "seldom", "plain", "last", "guard", "write", "step", "publish"
    ]  # fmt: skip


WRITE_FIRST = "schedule.order=[write, read, controllers, guard, step, publish]"


@pytest.mark.parametrize("push", [OPEN, OPEN_IN_PYTHON], ids=["machine code", "Python"])
def test_write_first_delays_every_command_by_one_tick(rig_of, push):
    usual, delayed = (rig_of(DROP, FAST, "events=[]", *more, push=push).run() for more in ([], [WRITE_FIRST]))
    for what in ("command_effort", "effort", "position", "velocity"):
        np.testing.assert_array_equal(delayed[f"hinge/{what}"][1:], usual[f"hinge/{what}"][:-1], err_msg=what)
    assert delayed["hinge/command_effort"][0] == 0.0 and abs(usual["hinge/command_effort"][1]) > 0.0


def both_engines(rig):
    """Rows of 150 ticks in machine code and in Python."""
    world, index = VirtualPlant(rig.tick_model), np.arange(rig.tick_model.nv)
    driver = sim.load(rig.joints, index, rig.limits, world)
    python = armed(PythonEngine(rig.tick_model, world, [(driver, index)]))
    return NativeEngine(rig.tick_model).run(150), python.run(150)


@pytest.mark.parametrize(
    "order",
    [
        "[write, read, controllers, guard, step, publish]",
        "[read, write, controllers, guard, step, publish]",
        "[read, controllers, guard, publish, write, step]",
        "[write, read, step, controllers, guard, publish]",
    ],
)
def test_both_engines_agree_in_any_task_order(sample, order):
    """With feedback: what is written acts on what was measured last."""
    (rows, fault), (other, stopped) = both_engines(sample("two_link", f"schedule.order={order}"))
    assert (fault, stopped) == ("", "") and len(rows) == 150
    np.testing.assert_allclose(other, rows, atol=1e-10)


# --- interrupted ------------------------------------------------------------------------------------


@pytest.fixture
def motors(monkeypatch):
    """The commands of the simulated motors of rigs with drivers, in order; ticks contain what is written to them."""
    log, load = [], sim.load

    def logged(*arguments):
        driver = load(*arguments)
        for what in ("enable", "stop", "close"):
            act = getattr(driver, what)
            setattr(driver, what, lambda *given, what=what, act=act: (log.append(what), act(*given))[1])
        return driver

    monkeypatch.setattr(sim, "load", logged)
    return log


@pytest.mark.parametrize(
    ("push", "realtime"), [(OPEN, "{rate: 0.2}"), (OPEN_IN_PYTHON, "no")], ids=["machine code", "Python"]
)
def test_an_interrupted_run_keeps_its_data(rig_of, tmp_path, motors, monkeypatch, push, realtime):
    monkeypatch.setattr(status_reports, "PERIOD", 0.005)  # s; all ticks until the third report are read again below
    fractions, path = [], tmp_path / "run.mcap"

    def interrupt(fraction):
        fractions.append(fraction)
        if len(fractions) == 3:
            raise KeyboardInterrupt

    rig = rig_of(DROP, f"schedule.realtime={realtime}", *AROUND_DRIVERS, push=push)
    with pytest.raises(StoppedRun) as caught:
        rig.run(1000.0, path, interrupt)
    run = caught.value.run
    last = len(run.t) - 1
    assert run.fault == f"interrupted after tick {last}" and str(caught.value) == f"{rig.spec.path}: {run.fault}"
    np.testing.assert_array_equal(run.t, np.arange(last + 1) * 1_000_000 * 1e-9)
    times, signals = recorded(path, "joints/hinge")
    assert times == [k * 1_000_000 for k in range(last + 1)]
    np.testing.assert_array_equal(signals["position"], run["hinge/position"])
    faults = [message["message"] for time, message in messages(path)["/log"] if message["level"] == 4]
    assert faults == [run.fault]
    assert run.summary["outcome"] == run.fault and run.summary["ticks"] == last
    if push is OPEN_IN_PYTHON:
        assert {"stop", "close"} == set(motors[len(motors) - motors[::-1].index("enable") :])
    expected = rig_of(DROP, FAST, push=push).run(last * 1e-3)
    np.testing.assert_array_equal(run["hinge/position"], expected["hinge/position"])


@pytest.mark.parametrize("realtime", ["no", "{rate: 0.2}"])
def test_a_fault_leaves_a_complete_recording(rig_of, tmp_path, motors, realtime, simulated_time):
    path = tmp_path / "run.mcap"
    failing = OPEN_IN_PYTHON + "\nif t > 0.05: raise ValueError('enough')"
    rig = rig_of(DROP, f"schedule.realtime={realtime}", *AROUND_DRIVERS, push=failing)
    with pytest.raises(StoppedRun) as caught:
        rig.run(record=path)
    run = caught.value.run
    assert run.fault.startswith("stopped at tick 51 (t = 0.051 s): controller 'push' failed: ValueError: enough (")
    times, _ = recorded(path, "joints/hinge")
    assert times == [k * 1_000_000 for k in range(51)]
    assert motors[-1 - motors[::-1].index("enable") :].count("stop") >= 2 and motors[-2:] == ["close", "stop"]
