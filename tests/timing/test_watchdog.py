"""The host's watchdog: when it barks, that it does so once, and that it keeps still for a loop that is fed."""

import threading
import time

import pytest

from cosim.execution.timing.watchdog import Watchdog

MS = 1_000_000
LONG = 30.0  # s; a test that waits for it has failed
CAUSE = (
    "the loop has not finished a tick for 0.1 s; check what blocks it, a controller or a bus, or use a"
    " longer watchdog time"
)


class Time:
    """A clock and a sleep that go on only when a test says so."""

    def __init__(self) -> None:
        self.now = 5_000_000_000
        self.slept: list[float] = []
        self._asleep = self._passed = 0
        self._changed = threading.Condition()

    def clock(self) -> int:
        return self.now

    def sleep(self, seconds: float) -> None:
        with self._changed:
            self.slept.append(seconds)
            self._asleep += 1
            self._changed.notify_all()
            passed = self._passed
            assert self._changed.wait_for(lambda: self._passed > passed, LONG)

    def until_asleep(self, threads: int = 1) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self._asleep == threads, LONG)

    def pass_(self, ns: int) -> None:
        """All sleeps that have begun end, `ns` from now."""
        with self._changed:
            self.now += ns
            self._asleep = 0
            self._passed += 1
            self._changed.notify_all()


class Barks:
    def __init__(self) -> None:
        self.causes: list[str] = []
        self.threads: list[str] = []
        self._heard = threading.Semaphore(0)

    def __call__(self, cause: str) -> None:
        self.causes.append(cause)
        self.threads.append(threading.current_thread().name)
        self._heard.release()

    def wait(self) -> None:
        assert self._heard.acquire(timeout=LONG)


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "watchdog"]


def ended():
    for thread in threads():
        thread.join(LONG)
    assert not threads()


@pytest.fixture
def held():
    """(watchdog of 100 ms on its own time, that time, its barks)."""
    time, barks = Time(), Barks()
    dog = Watchdog(0.1, barks, time.clock, time.sleep)
    yield dog, time, barks
    dog.stop()
    time.pass_(0)
    ended()


def test_it_checks_four_times_per_timeout_and_barks_once_when_nothing_was_fed(held):
    dog, time, barks = held
    dog.start()
    for _ in range(3):
        time.until_asleep()
        time.pass_(25 * MS)
    time.until_asleep()
    assert barks.causes == [] and time.slept == [0.025] * 4
    time.pass_(25 * MS)
    barks.wait()
    ended()
    assert (barks.causes, barks.threads) == ([CAUSE], ["watchdog"])
    # feeding late does not take a bark back, nor give another
    dog.feed()
    time.now += 60_000 * MS
    assert barks.causes == [CAUSE]


def test_the_timeout_is_counted_to_the_nanosecond(held):
    dog, time, barks = held
    dog.start()
    time.until_asleep()
    time.pass_(100 * MS - 1)
    time.until_asleep()
    assert barks.causes == []
    time.pass_(1)
    barks.wait()


def test_a_loop_that_feeds_it_hears_nothing(held):
    dog, time, barks = held
    dog.start()
    for _ in range(20):
        time.until_asleep()
        dog.feed()
        time.pass_(99 * MS)
    time.until_asleep()
    assert barks.causes == []
    time.pass_(1 * MS)
    barks.wait()
    assert barks.causes == [CAUSE]


def test_after_a_stop_it_keeps_still_however_late_it_is(held):
    dog, time, barks = held
    dog.start()
    time.until_asleep()
    dog.stop()
    dog.stop()
    time.pass_(60_000 * MS)
    ended()
    assert barks.causes == []


def test_a_start_after_a_bark_arms_it_anew(held):
    dog, time, barks = held
    for count in (1, 2):
        dog.start()
        time.until_asleep()
        time.pass_(100 * MS)
        barks.wait()
        ended()
        assert barks.causes == [CAUSE] * count
        time.now += 60_000 * MS


@pytest.mark.parametrize("stopped", [False, True])
def test_a_start_while_it_is_at_work_begins_the_time_anew_in_one_thread(held, stopped):
    dog, time, barks = held
    dog.start()
    time.until_asleep()
    if stopped:
        dog.stop()
    time.now += 99 * MS
    dog.start()
    time.until_asleep(2)
    time.pass_(50 * MS)  # the sleeps of both threads end, and one begins anew
    time.until_asleep()
    assert barks.causes == []
    time.pass_(49 * MS)
    time.until_asleep()
    assert barks.causes == []
    time.pass_(1 * MS)
    barks.wait()
    ended()
    assert barks.causes == [CAUSE]


def test_who_barks_may_stop_it(held):
    _, time, barks = held

    def bark(cause):
        dog.stop()
        barks(cause)

    dog = Watchdog(0.1, bark, time.clock, time.sleep)
    dog.start()
    time.until_asleep()
    time.pass_(100 * MS)
    barks.wait()


def test_before_a_start_and_after_an_end_it_may_be_fed_and_stopped():
    dog = Watchdog(0.1, lambda cause: pytest.fail(cause))
    dog.feed()
    dog.stop()
    assert not threads()


def test_its_own_clock_is_the_machines():
    barks = Barks()
    dog = Watchdog(0.02, barks)
    before = time.monotonic_ns()
    dog.start()
    barks.wait()
    assert time.monotonic_ns() - before >= 20 * MS
    assert barks.causes == [CAUSE.replace("0.1", "0.02")]
    ended()


def test_a_stop_ends_its_thread_at_once():
    dog = Watchdog(4000.0, lambda cause: pytest.fail(cause))
    dog.start()
    assert all(thread.daemon for thread in threads())
    dog.stop()
    ended()


def test_a_watchdog_that_fails_barks(held):
    """What it follows raises, of whatever kind: a loop that nobody watches is stopped too."""
    dog, time, barks = held
    words = iter([0])
    dog.start()
    dog.follow(lambda: next(words))
    time.until_asleep()
    time.pass_(25 * MS)
    barks.wait()
    ended()
    (cause,) = barks.causes
    assert cause.startswith("the watchdog has failed: StopIteration: ")


def test_a_watchdog_that_fails_while_it_is_stopped_says_nothing(held):
    dog, time, barks = held

    def fail():
        dog._ended.set()  # as `stop` does, meanwhile
        raise SystemExit

    dog.start()
    dog._progress = fail
    time.until_asleep()
    time.pass_(25 * MS)
    ended()
    assert barks.causes == []
