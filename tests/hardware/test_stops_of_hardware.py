"""The emergency stop and the watchdog in the loop in Python: before a run, during it, and after it; what is called in a
compiled loop is in `test_called_drivers.py`."""

import json
import threading
from functools import partial
from itertools import count

import numpy as np
import pytest
from mcap.reader import make_reader

from cosim.core.errors import InputErrors, RunError
from cosim.execution import hardware_engine
from cosim.execution.scheduler import FOREVER, Scheduler, SchedulerState
from cosim.execution.timing.watchdog import Watchdog
from cosim.rig.wiring.drivers import safety_of
from cosim.simulation.loop.tick_ring import LoopStatus
from tests.kit.drivers import LoggedDriver
from tests.kit.engines import python_engine
from tests.kit.rigs import rig_in

PATIENCE = 60.0  # s; what takes so long has failed
RIG = """
mechanism:
  gravity: [0, 0, 0]
  bodies: [{name: a, axis: [0, 1, 0], mass: 1 kg, inertia: [0.1, 0.1, 0.1]}]
controllers: [{name: push, type: push.py}]
guard: {GUARD}
schedule: {duration: 100 ms}
"""
# `float` keeps it in Python
PUSH = """
import numpy as np
from cosim.plugin import COMMAND, FEEDBACK, joint_signals, params

@params
class Params:
    pass

class Push:
    def __init__(self, params, context):
        self.params, self.inputs, self.outputs = params, joint_signals(FEEDBACK, 1), joint_signals(COMMAND, 1)

    def initial(self):
        return {}

    def update(self, t, p, x, u):
        rest = np.zeros(1)
        effort = rest + 0.01 + 0.0 * float(t)
        return {}, {"position": rest, "velocity": rest, "effort": effort, "kp": rest, "kd": rest}

def load(params, context):
    return Push(params, context)
"""


@pytest.fixture
def rig_of(tmp_path):
    def load(guard, *overrides):
        text = RIG.replace("{GUARD}", guard.replace("FILE", str(tmp_path / "estop")))
        return rig_in(tmp_path, text, *overrides, push=PUSH)

    return load


@pytest.fixture
def bench_of(rig_of):
    """bench_of(guard, *overrides) -> (scheduler, its driver), ready."""
    made = []

    def make(guard, *overrides):
        rig = rig_of(guard, *overrides)
        safety = safety_of(rig.spec.guard, rig.hardware, rig.tick_model.step, rig.spec.source.place)
        engine = python_engine(rig, wrap=LoggedDriver, **safety)
        ((driver, _),) = engine.drivers
        made.append(Scheduler(lambda: engine, tasks=rig.tasks))
        made[-1].prepare()
        return made[-1], driver

    yield make
    for scheduler in made:
        scheduler.close()


def numbers(scheduler):
    return [int(number) for block in iter(scheduler.read, None) for number in block.numbers]


# --- the emergency stop -----------------------------------------------------------------------------

FILE = "{estop: {file: FILE}}"


@pytest.fixture
def pressed(tmp_path):
    """pressed(True or False) writes the file, as it is after that."""

    def press(word):
        (tmp_path / "estop").write_text("1" if word else "0")

    press(False)
    return press


def cause(tmp_path):
    return f"the emergency stop: '{tmp_path / 'estop'}' reads '1'"


def test_a_rig_is_not_armed_while_the_stop_is_pressed(bench_of, pressed, tmp_path):
    pressed(True)
    scheduler, driver = bench_of(FILE)
    for _ in range(2):
        with pytest.raises(RunError) as caught:
            scheduler.arm()
        said = f"{cause(tmp_path)}; release it, then start again"
        assert str(caught.value) == said and scheduler.state is SchedulerState.READY
    assert not driver.count("enable")
    pressed(False)
    scheduler.arm()
    scheduler.start(3)
    assert numbers(scheduler) == [0, 1, 2] and scheduler.fault == ""


@pytest.mark.parametrize("task", ["read", "write"])
def test_a_stop_that_is_pressed_ends_the_run_in_the_next_tick(bench_of, pressed, tmp_path, task):
    scheduler, driver = bench_of(FILE)
    driver.then[task, 7] = lambda: pressed(True)
    scheduler.arm()
    scheduler.start(FOREVER)
    assert numbers(scheduler) == list(range(8))
    assert scheduler.fault == (f"stopped at tick 8 (t = 0.008 s): {cause(tmp_path)}; release it, then start again")
    assert scheduler.state is SchedulerState.FAULT
    assert driver.count("read") == driver.count("write") == 8
    assert "stop a" in driver.log[driver.log.index("enable a") :] and not driver.inner._enabled


def test_a_stop_that_was_pressed_stays_until_the_rig_is_armed_again(bench_of, pressed):
    scheduler, driver = bench_of(FILE)
    driver.then["write", 3] = lambda: pressed(True)
    scheduler.arm()
    scheduler.start(FOREVER)
    numbers(scheduler)
    pressed(False)
    with pytest.raises(RunError, match="cannot arm a rig that is fault"):
        scheduler.arm()
    scheduler.reset()
    pressed(True)
    with pytest.raises(RunError, match="release it, then start again"):
        scheduler.arm()
    pressed(False)
    scheduler.arm()
    scheduler.start(5)
    assert numbers(scheduler) == [4, 5, 6, 7, 8]
    assert (scheduler.state, scheduler.fault) == (SchedulerState.STOPPED, "")


def test_a_stop_that_goes_away_during_the_run_is_pressed(bench_of, pressed, tmp_path):
    scheduler, driver = bench_of(FILE)
    driver.then["write", 2] = (tmp_path / "estop").unlink
    scheduler.arm()
    scheduler.start(FOREVER)
    assert numbers(scheduler) == [0, 1, 2]
    why = f"'{tmp_path / 'estop'}' cannot be read (No such file or directory)"
    assert f": the emergency stop: {why}; release it, then start again" in scheduler.fault


def test_the_compiled_loop_of_a_rig_with_an_estop_calls_python_and_reports_it(rig_of, pressed):
    """Machine code cannot look at it; the same rig without it is machine code."""
    rig = rig_of(FILE, "controllers=[{type: pid, kp: 1, ki: 0, kd: 1}]")
    assert rig.watched and not rig.native and not rig.hardware
    run, where = rig.run(), {"loop": "compiled", "emergency stop": "Python: its inputs are read in Python"}
    assert run.summary["outcome"] == "finished" and where.items() <= run.summary["engine"].items()
    assert rig_of("{}", "controllers=[{type: pid, kp: 1, ki: 0, kd: 1}]").native


def test_the_recording_of_a_refused_run_holds_the_reason(rig_of, pressed, tmp_path):
    pressed(True)
    with pytest.raises(RunError, match=r"the emergency stop: .*release it, then start again") as refused:
        rig_of(FILE).run(record=tmp_path / "run.mcap")
    with (tmp_path / "run.mcap").open("rb") as file:
        found = [json.loads(log.data)["message"] for _, _, log in make_reader(file).iter_messages(topics=["/log"])]
    assert found == [refused.value.what]


def test_a_missing_estop_input_is_reported_at_its_location(rig_of, command, said):
    rig_of(FILE)
    said(command.refuses("run", "rig.yaml"))


# --- the watchdog -----------------------------------------------------------------------------------


def test_motors_are_off_while_a_controller_still_hangs(bench_of, monkeypatch, said):
    hangs, released = threading.Event(), threading.Event()
    times = count(step=10**8)  # ns, each reading takes so long while it hangs
    dog = partial(Watchdog, clock=lambda: next(times) if hangs.is_set() else 0, sleep=lambda seconds: hangs.wait(1e-3))
    monkeypatch.setattr(hardware_engine, "Watchdog", dog)
    scheduler, driver = bench_of("{watchdog: 0.5}")
    block = scheduler.engine.tick_model.loops[0].block
    update = block.update

    def hang(t, *rest):
        if round(float(t) * 1000) == 5:
            hangs.set()
            assert released.wait(PATIENCE)
        return update(t, *rest)

    block.update = hang
    scheduler.arm()
    found = []

    def watch():
        assert hangs.wait(PATIENCE)
        found.append(driver.stopped.wait(PATIENCE))
        found.append(driver.count("write"))
        released.set()

    watching = threading.Thread(target=watch)
    watching.start()
    scheduler.start(FOREVER)
    assert numbers(scheduler) == [0, 1, 2, 3, 4]
    watching.join()
    assert found == [True, 5]
    assert scheduler.state is SchedulerState.FAULT
    said(scheduler.fault)
    assert driver.count("write") == 5  # the tick that hung was given up


def test_nothing_feeds_it_but_ticks(bench_of, monkeypatch):
    fed = []
    feed = Watchdog.feed
    monkeypatch.setattr(Watchdog, "feed", lambda self: (fed.append(1), feed(self)))
    scheduler, driver = bench_of("{watchdog: 30}")
    driver.then["read", 4] = driver.then["write", 4] = lambda: fed.append("tick 4")
    scheduler.arm()
    assert fed == []
    scheduler.start(5)
    assert numbers(scheduler) == [0, 1, 2, 3, 4]
    assert fed == [1] * 5 + ["tick 4", "tick 4", 1]  # as ticks begin, and after each


def test_it_rests_while_no_ticks_are_taken(bench_of, monkeypatch):
    """Between arming and the start, and in a pause, nobody hangs."""
    rests = []
    for what in ("feed", "suspend"):
        call = getattr(Watchdog, what)
        monkeypatch.setattr(Watchdog, what, lambda dog, w=what, call=call: (rests.append(w == "suspend"), call(dog)))
    scheduler, _ = bench_of("{watchdog: 30}")
    scheduler.arm()
    assert not rests or rests[-1]
    scheduler.start(FOREVER)
    assert scheduler.read() is not None
    scheduler.pause()
    assert rests[-1] and not all(rests)
    scheduler.step(2)
    scheduler.stop()
    assert scheduler.fault == "" and rests[-1]


def test_a_run_whose_motors_it_switched_off_does_not_go_on(bench_of, monkeypatch):
    """It may bark when the last tick of a block is done already."""
    scheduler, driver = bench_of("{watchdog: 30}")
    engine = scheduler.engine
    scheduler.arm()
    scheduler.start(FOREVER)
    assert scheduler.read() is not None
    engine._on_timeout("late")
    assert driver.stopped.is_set()
    last = engine.number
    assert all(number < last for number in numbers(scheduler))
    assert scheduler.state is SchedulerState.FAULT and scheduler.fault.endswith(": late (in task 'publish')")
    scheduler.reset()
    scheduler.arm()
    scheduler.start(3)
    assert numbers(scheduler) == [last, last + 1, last + 2] and scheduler.fault == ""


def test_the_cause_is_there_before_the_motors_are_off_and_stays(bench_of, monkeypatch):
    scheduler, _ = bench_of("{watchdog: 30}")
    engine, found = scheduler.engine, []
    monkeypatch.setattr(engine, "stop", lambda: found.append((engine.force_stopped, engine.failure[-13:])))
    engine._on_timeout("late")
    engine.force_stop(2.0)
    assert found == [(True, "(in the loop)")]
    assert engine.fault_message(LoopStatus.STOPPED, np.zeros((0, engine.program.row))).endswith(": late (in the loop)")


def test_at_rest_it_does_not_bark_before_it_is_fed():
    barks, now, naps = [], [0], iter(range(8))
    ended = threading.Event()

    def sleep(seconds):
        nap = next(naps, None)
        if nap is None:
            dog.stop()
            ended.set()
        elif nap == 0:
            dog.suspend()
        elif nap == 3:
            dog.feed()
        now[0] += 60_000_000

    dog = Watchdog(0.1, lambda cause: (barks.append(now[0]), ended.set()), lambda: now[0], sleep)
    dog.start()
    assert ended.wait(PATIENCE)
    assert barks == [300_000_000]  # fed at 180 ms, and looked at every 60 ms


@pytest.mark.parametrize("guard", ["{watchdog: 1 ms}", "{estop: {file: ''}, watchdog: 0}"])
def test_what_cannot_watch_is_refused(rig_of, guard):
    with pytest.raises(InputErrors, match=r"guard\.watchdog: must be"):
        rig_of(guard)
