"""The response to faults: ticks until the motors are commanded off."""

from types import SimpleNamespace

import pytest

from benchmarks import fault_response
from benchmarks.fault_response import FaultCase, FaultObserver
from benchmarks.paired_timing import Budget
from benchmarks.rows import measure_case
from cosim.core.errors import RunError
from cosim.core.types import JointState
from tests.bench.named_rows import named


class FakeEngine:
    """The parts of an engine that `FaultObserver` intercepts."""

    def __init__(self):
        self.calls, self.tick_model, self.frame, self.fault = [], SimpleNamespace(step_ns=5), None, 0
        note = self.calls.append
        link = SimpleNamespace(receive=lambda until: self.frame)
        stop, write = lambda: note("stop"), lambda *arguments: note("write")
        self.driver = SimpleNamespace(read=self.read, write=write, stop=stop, link=link)
        self.hardware_manager = SimpleNamespace(groups=(SimpleNamespace(hardware=self.driver),))

    def read(self, out, deadline_ns):
        self.calls.append("begin")
        self.driver.link.receive(deadline_ns)
        out.fault[:] = self.fault

    def tick(self):
        self.driver.read(JointState.zeros(1), 0)
        self.driver.write(None, 0)


def test_an_observer_counts_the_ticks_that_begin_after_a_fault_is_visible(monkeypatch):
    times = iter(range(1, 100))
    monkeypatch.setattr(fault_response.time, "monotonic_ns", lambda: next(times))
    engine, injections = FakeEngine(), []
    observer = FaultObserver(engine, lambda: injections.append(len(engine.calls)), commands=2)
    engine.driver.stop()  # before the fault
    engine.tick()
    engine.frame = SimpleNamespace(id=7, t_ns=2)
    engine.tick()
    assert injections == [5] and observer.injected == 3  # after the second command
    engine.tick(), engine.driver.stop(), engine.tick(), engine.driver.stop()
    assert engine.calls == ["stop", *["begin", "write"] * 3, "stop", "begin", "write", "stop"]
    assert (observer.ticks, observer.stopped, observer.last, observer.reported) == ([1, 2, 4, 6], 5, {7: 2}, 0)
    assert [observer.ticks_since(t) for t in (0, 1, 3, 4, 5)] == [3, 2, 1, 0, 0]
    for stopped, ticks in ((13, 2), (15, 2), (16, 3), (21, 4)):  # the last tick began at 6 and may take until 16
        observer.stopped = stopped
        assert observer.ticks_since(3) == ticks


def test_a_fault_is_reported_by_the_earliest_frame_of_its_read():
    engine = FakeEngine()
    observer = FaultObserver(engine, lambda: None, commands=2)
    engine.fault = 3
    engine.tick()  # without a frame
    assert observer.reported == 0
    for t_ns in (5, 9):
        engine.frame = SimpleNamespace(id=7, t_ns=t_ns)
        engine.tick()
    assert observer.reported == 5 and observer.last == {7: 9}


def test_a_run_that_ends_for_another_reason_raises(monkeypatch):
    monkeypatch.setattr(fault_response, "LONGEST_RUN", 0.2)
    monkeypatch.setattr(fault_response, "TIMING", ("guard.stale=1 s", "schedule.step=40 ms"))
    with pytest.raises(RunError, match=r"^expected a stop with 'never', got: no stop$"):
        fault_response.response_to(FaultCase(lambda *all: None, " never ", lambda observer, stale: 0))


def test_the_result_is_the_slowest_response_and_another_reason_misses_the_target(monkeypatch):
    found = {"a": [(1, 4000), (0, 2000)], "b": [(2, 9000), RunError("it fell")]}
    monkeypatch.setattr(fault_response, "FAULTS", {name: name for name in found})

    def response_to(name, commands):
        result = found[name].pop(0)
        if isinstance(result, Exception):
            raise result
        return result

    monkeypatch.setattr(fault_response, "response_to", response_to)
    row = measure_case(named("hardware stop"), Budget(pairs=1, block=1e-4, starts=2))
    assert (row.ours, row.met) == (2.0, False)
    assert row.note == "b: it fell; largest number of ticks and median time of 2 runs each: a 1, 3 µs; b 2, 9 µs"
    found["a"] = [RunError("so"), RunError("or so")]
    row = measure_case(named("hardware stop"), Budget(pairs=1, block=1e-4, starts=2))
    assert (row.ours, row.met, row.note) == (None, None, "a: or so")
