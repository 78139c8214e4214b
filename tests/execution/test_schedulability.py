"""Whether ticks fit their time is known before a run, and finding out leaves no trace."""

import threading

import numpy as np
import pytest

import cosim.execution.schedulability
from cosim.core.errors import InputError
from cosim.execution.python_engine import PythonEngine
from cosim.execution.schedulability import check_schedulable, measure_ticks
from cosim.simulation.tick.virtual_plant import VirtualPlant
from tests.kit.clock import FakeClock
from tests.kit.rigs import rig_in

US = 1_000  # ns
RIG = """\
name: budget
mechanism:
  bodies:
    - {name: a, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.1]}
    - {name: b, parent: base, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.1]}
joints: {a: {initial: {position: 0.3}, encoder: {noise: 0.0001}}}
controllers:
  - {name: fast, type: own.py, joints: [a]}
  - name: slow
    type: own.py
    joints: [b]
    priority: 1
    fallback: {type: own.py}
schedule:
  step: 1 ms
  duration: 60 ms
  realtime: {rate: 1}
"""
# keeps a count of its own, which is part of what it commands
OWN = """
import time
import numpy as np
from cosim.plugin import COMMAND, FEEDBACK, joint_signals, param, params

@params
class Params:
    nap: float = param(unit="s", default=0.0)
    bad: float = param(unit="s", default=1e9)

class Own:
    def __init__(self, params, context):
        self.params, self.inputs, self.outputs = params, joint_signals(FEEDBACK, 1), joint_signals(COMMAND, 1)
        self.calls = 0

    def initial(self):
        return {"n": np.zeros(1)}

    def update(self, t, p, x, u):
        late = float(t) > p.bad - 5e-4
        self.calls += 1
        if p.nap:
            time.sleep(p.nap)
        if late:
            raise ValueError(f"out of order at call {self.calls}")
        effort, rest = np.array([0.01 * self.calls - float(u["position"][0])]), np.zeros(1)
        return {"n": x["n"] + 1}, {"position": rest, "velocity": rest, "effort": effort, "kp": rest, "kd": rest}

def load(params, context):
    return Own(params, context)
"""
NATIVE = "controllers=[{name: hold, type: pid, kp: 20, ki: 10, kd: 2, period: 3 ms}]"


@pytest.fixture
def rig_of(tmp_path):
    return lambda *overrides, **keys: rig_in(tmp_path, RIG, *overrides, own=OWN, **keys)


def taking(loop, us, clock):
    """The controller takes so long, by a clock that stands still otherwise."""
    update = loop.block.update

    def slow(*arguments):
        clock.time += us * US
        return update(*arguments)

    loop.block.update = slow


@pytest.fixture
def check(tmp_path, monkeypatch):
    """Raises what is said of a rig whose two controllers take so many µs."""
    clock = FakeClock()
    monkeypatch.setattr(cosim.execution.schedulability, "NonWaitingClock", lambda: clock)

    def with_times(fast, slow, *overrides, text=RIG):
        rig = rig_in(tmp_path, text, *overrides, own=OWN)
        for loop, us in zip(rig.tick_model.loops, (fast, slow), strict=True):
            taking(loop, us, clock)
        schedule = rig.spec.schedule
        check_schedulable(rig.engine(), rig.tasks, schedule.step_ns / schedule.rate, rig.spec.source.place)

    return with_times


# --- what does not fit ------------------------------------------------------------------------------

TURNS = "controllers.fast.period=2 ms", "controllers.slow.period=2 ms"
DEADLINES = "schedule.deadlines={guard: 900 us, write: 300 us}"
# µs that the controllers take, and overrides
FITS = {
    "just": (400, 600),
    "a rate that is lower than it could be": (100, 600, "schedule.realtime.rate=1.25"),
    "a slow rate": (900, 900, "schedule.realtime.rate=0.5"),
    "other phases": (600, 700, *TURNS, "controllers.slow.phase=1 ms"),
    "a deadline": (100, 300, "controllers.slow.deadline=300 us"),
    "deadlines of other tasks": (100, 200, DEADLINES),
}
REFUSED = {
    "both tasks": (200, 3000),
    "what takes little is not worth a word": (100, 3000),
    "a little more than just": (401, 600),
    "a rate": (100, 600, "schedule.realtime.rate=2"),
    "the same phase": (600, 700, *TURNS),
    "a deadline": (100, 310, "controllers.slow.deadline=300 us"),
    "a deadline of the one that comes after it": (100, 310, "controllers.fast.deadline=400 us"),
    "deadlines of other tasks": (100, 210, DEADLINES),
}


@pytest.mark.parametrize("case", FITS)
def test_what_fits(check, case):
    check(*FITS[case])


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused_with_the_tasks_that_take_the_time(check, said, case):
    with pytest.raises(InputError) as caught:
        check(*REFUSED[case])
    assert caught.value.exit_code == 2
    said(caught.value)


def test_a_deadline_is_found_in_the_file_whatever_the_order_of_the_controllers(check):
    text = RIG.replace("priority: 1\n", "priority: 1\n    deadline: 300 us\n")
    with pytest.raises(InputError, match=r"rig.yaml:13 controllers\[1\].deadline: 'slow' ends 310 µs after"):
        check(100, 310, text=text)


def test_an_unschedulable_real_time_run_does_not_start(command, tmp_path, said):
    """By the real clock: a nap of 3 ms in a step of 1 ms."""
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "rig.yaml").write_text(RIG)
    words = command.refuses("run", "rig.yaml", "--set", "controllers.slow.nap=3 ms", "--record", "run.mcap")
    said(words, r"[\d.]+ [mµ]?s(?= and|, |;)", r"(?<=slow <measured>)[^;]*")
    assert not (tmp_path / "run.mcap").exists()


def test_a_run_as_fast_as_possible_takes_what_it_takes(rig_of):
    run = rig_of("controllers.slow.nap=2 ms", "schedule.realtime=no", "schedule.duration=5 ms").run()
    assert run.summary["outcome"] == "finished" and run.timing is None


# --- it leaves no trace -----------------------------------------------------------------------------


def logged_engine(rig, log, hardware=False):
    """A Python engine whose motors note when they are switched on."""
    from cosim.plugins.drivers import sim

    world, index = VirtualPlant(rig.tick_model), np.arange(rig.tick_model.nv)
    driver = sim.load(rig.joints, index, rig.limits, world)
    enable = driver.enable

    def noted(mode):
        log.append(mode)
        enable(mode)

    driver.enable = noted
    return PythonEngine(rig.tick_model, world, [(driver, index)], hardware=hardware)


def rows_of(engine, ticks=60):
    engine.open()
    engine.arm()
    rows, stopped = engine.run(ticks)
    assert stopped == ""
    return rows


@pytest.mark.parametrize("overrides", [[NATIVE], []], ids=["machine code", "Python"])
def test_ticks_after_a_rehearsal_are_those_without_one_to_the_bit(rig_of, overrides):
    rig = rig_of(*overrides)
    expected = rows_of(rig.engine())
    rig = rig_of(*overrides)
    engine = rig.engine()
    before = engine.memory.copy()
    numbers, stamps = measure_ticks(engine)
    np.testing.assert_array_equal(engine.memory, before)
    assert engine.number == 0 and engine.failure == ""
    assert numbers.tolist() == list(range(40)) and stamps.shape == (40, 3 + len(engine.tasks))
    assert (np.diff(stamps[:, 1:-1], axis=1) >= 0).all()
    np.testing.assert_array_equal(rows_of(engine), expected)


def test_enough_ticks_are_taken_for_the_longest_period(rig_of):
    numbers, _ = measure_ticks(rig_of(NATIVE, "controllers.hold.period=20 ms").engine())
    assert len(numbers) == 80


def test_what_controllers_and_fallbacks_keep_for_themselves_is_not_disturbed(rig_of, simulated_time):
    rig = rig_of("controllers.slow.bad=10 ms", "schedule.realtime.rate=0.2")
    measure_ticks(rig.engine())
    fast, slow = rig.tick_model.loops
    assert (fast.block.calls, slow.block.calls, slow.fallback.calls, slow.failure) == (0, 0, 0, "")
    run = rig.run()
    assert fast.block.calls == 61
    assert slow.block.calls == 11
    assert "out of order at call 11" in run.events[0].name


def test_what_cannot_be_copied_is_rehearsed_itself(rig_of):
    rig = rig_of()
    loop = rig.tick_model.loops[0]
    loop.block.lock = threading.Lock()
    measure_ticks(rig.engine())
    assert loop.block.calls == 40 and rig.tick_model.loops[1].block.calls == 0


def test_real_motors_do_not_move_for_it(rig_of):
    for hardware, nap, switched in ((True, "3 ms", []), (False, "0", ["effort"])):
        log, rig = [], rig_of(f"controllers.slow.nap={nap}")
        engine = logged_engine(rig, log, hardware)
        numbers, stamps = measure_ticks(engine)
        assert log == switched and (len(numbers) == 0) == hardware == (len(stamps) == 0)
        if hardware:
            check_schedulable(engine, rig.tasks, 1e6, rig.spec.source.place)


def test_simulated_motors_are_off_afterwards(rig_of):
    engine = logged_engine(rig_of(), [])
    measure_ticks(engine)
    assert not engine.drivers[0][0]._enabled


def test_a_rig_that_fails_in_the_timing_pre_check_fails_in_the_run(rig_of, monkeypatch):
    clock = FakeClock()
    monkeypatch.setattr(cosim.execution.schedulability, "NonWaitingClock", lambda: clock)
    rig = rig_of("controllers.fast.bad=10 ms")
    engine = rig.engine()
    numbers, _ = measure_ticks(engine)
    assert (len(numbers), engine.number, engine.failure) == (10, 0, "")
    check_schedulable(engine, rig.tasks, 1e6, rig.spec.source.place)
    rig = rig_of("controllers.fast.bad=0")
    engine = rig.engine()
    assert len(measure_ticks(engine)[0]) == 0
    check_schedulable(engine, rig.tasks, 1.0, rig.spec.source.place)  # nothing is known of it
