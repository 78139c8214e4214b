"""The supervision of calls: one thread for all of them, left alone as soon as a call exceeds the limit."""

import threading

import pytest

from cosim.core.errors import RunError
from cosim.simulation.coupling import time_limit
from cosim.simulation.coupling.time_limit import Supervisor
from tests.kit.refusals import raised


def identity(t, value=None):
    return threading.get_ident(), value


@pytest.fixture
def thread_of_parts():
    """The thread of parts that the test has started."""
    others = set(threading.enumerate())

    def find():
        (found,) = (each for each in threading.enumerate() if each.name == "parts" and each not in others)
        return found

    return find


def test_calls_under_supervision_share_one_thread():
    supervisor = Supervisor(60.0)

    def work():
        return {supervisor.call("a", identity, 0.1 * k)[0] for k in range(100)} | {threading.get_ident()}

    threads = supervisor.run(work)
    assert len(threads) == 1 and threads != {threading.get_ident()}


def test_a_call_outside_has_a_thread_of_its_own():
    thread, value = Supervisor(60.0).call("a", identity, 0.0, 7)
    assert thread != threading.get_ident() and value == 7


def test_a_thread_with_the_identifier_of_one_that_has_ended_is_supervised():
    """Identifiers are used again."""
    supervisor = Supervisor(60.0)
    supervisor.call("a", identity, 0.0)
    assert supervisor._job is not None
    supervisor._job._thread._ident = threading.get_ident()
    assert supervisor.run(identity, 0.0)[0] != threading.get_ident()


def test_without_a_limit_nothing_has_another_thread():
    supervisor = Supervisor(None)
    assert supervisor.run(lambda: supervisor.run(threading.get_ident)) == threading.get_ident()


def test_errors_are_raised_in_the_supervising_thread():
    def fail(t):
        raise ValueError("no such table")

    supervisor = Supervisor(60.0)
    with pytest.raises(ValueError, match="no such table"):
        supervisor.run(lambda: supervisor.call("a", fail, 0.0))
    assert supervisor.run(lambda: supervisor.call("a", identity, 0.0, 3))[1] == 3


def test_nothing_runs_after_a_call_that_hangs(clock, thread_of_parts, said):
    """Calls before it count nothing, and the function does not get beyond it when it returns."""
    supervisor, released, reached = Supervisor(0.3), threading.Event(), []

    def takes(t, duration):
        clock.passes(duration)

    def hang(t):
        clock.now += 0.4
        released.wait(60.0)
        reached.append("end of the call")

    def work():
        for _ in range(5):
            supervisor.call("a", takes, 0.1, 0.2)
        supervisor.call("b", hang, 2.0)
        reached.append("after the call")

    said(raised(RunError, supervisor.run, work))
    assert supervisor.hanging == {"b"}
    thread = thread_of_parts()
    released.set()
    thread.join(60.0)
    assert reached == ["end of the call"]


def test_nobody_waits_for_the_thread_of_a_call_that_hangs(monkeypatch):
    """Its error is raised before a watchdog ends the run without knowing the part."""
    ended, waits = time_limit._Job.ended, []

    def recorded(job, timeout):
        waits.append(timeout)
        return ended(job, timeout)

    monkeypatch.setattr(time_limit._Job, "ended", recorded)
    supervisor, released = Supervisor(0.05), threading.Event()
    with pytest.raises(RunError):
        supervisor.call("a", lambda t: released.wait(60.0), 0.0)
    released.set()
    assert waits and max(waits) <= 0.05


@pytest.mark.parametrize("within", [True, False], ids=["in a call", "between two calls"])
def test_an_interrupt_ends_the_function(monkeypatch, thread_of_parts, within):
    """In the supervising thread, as Ctrl-C in the main thread is."""
    supervisor, begun, go_on, done = Supervisor(60.0), threading.Event(), threading.Event(), []

    def wait(t):
        begun.set()
        go_on.wait(60.0)

    def work():
        if within:
            supervisor.call("a", wait, 0.0)
        else:
            wait(0.0)
        supervisor.call("a", done.append, 1.0)

    def interrupted(job, timeout):
        begun.wait(60.0)
        monkeypatch.undo()
        if not within:
            monkeypatch.setattr(time_limit, "END_TIME", 0.01)
        raise KeyboardInterrupt

    monkeypatch.setattr(time_limit._Job, "ended", interrupted)
    with pytest.raises(KeyboardInterrupt):
        supervisor.run(work)
    thread = thread_of_parts()
    go_on.set()
    thread.join(60.0)
    assert not done
