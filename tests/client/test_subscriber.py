"""A subscriber of a real stream: the newest sample, what was missed, old data."""

import math
from contextlib import ExitStack

import numpy as np
import pytest

from cosim.core.errors import InputError
from cosim.output.client import Subscriber, subscribe
from cosim.output.client import subscriber as subscriber_module
from cosim.output.stream.stream_sink import StreamConfig, StreamSink
from tests.kit.streams import schema

SIGNALS = (("elbow/position", "rad"), ("elbow/velocity", "rad/s"), ("energy/work", "J"))
MS = 1_000_000


class Stream:
    """A stream of samples whose values are their numbers."""

    def __init__(self, stack: ExitStack, **settings) -> None:
        self.schema = schema(rate=1000.0)
        config = StreamConfig("tcp://127.0.0.1:*", SIGNALS, (0, 1, 2), MS, 0, False, self.schema, 1000.0, **settings)
        self.sink, self.n = StreamSink(stack, config), 0

    def publish(self, samples: int) -> None:
        rows = np.repeat(np.arange(self.n, self.n + samples, dtype=float)[:, None], 3, axis=1)
        self.sink(np.arange(self.n, self.n + samples) * MS, rows)
        self.n += samples

    def join(self, subscriber: Subscriber) -> None:
        """Publish until both the samples and the schema are heard."""
        for _ in range(3000):
            self.publish(1)
            self.sink.describe(self.schema)
            if subscriber.receive(0.02) is not None and subscriber.schema is not None:
                return
        raise AssertionError("the subscriber heard nothing")

    def heard(self, subscriber: Subscriber):
        """The newest sample that arrives of those so far."""
        sample = None
        while sample is None or sample.n < self.n - 1:
            sample = subscriber.receive(60.0)
            assert sample is not None
        return sample


@pytest.fixture
def opened():
    with ExitStack() as stack:

        def open_both(signals=(), every=False, **settings):
            stream = Stream(stack, **settings)
            subscriber = stack.enter_context(subscribe(stream.sink.endpoint, signals, every=every))
            stream.join(subscriber)
            return stream, subscriber

        yield open_both


@pytest.mark.parametrize("format", ["json", "msgpack"])
def test_a_stalled_subscriber_goes_on_with_the_newest_sample(opened, format):
    stream, subscriber = opened(format=format)
    for _ in range(50):
        stream.publish(100)  # nobody reads
    received, sample = 0, None
    while sample is None or sample.n < 5000:
        assert stream.n < 6000, "nothing new comes"
        stream.publish(1)  # which the queue takes if it has room
        if (sample := subscriber.receive(0.1)) is not None:
            received += 1
    assert received < 100
    assert subscriber.missed >= 5000 - 2 * received
    assert sample.values == dict.fromkeys((name for name, _ in SIGNALS), float(sample.n))
    assert (sample.tick, sample.t) == (sample.n, sample.n / 1000)


def test_every_sample_that_arrives(opened):
    stream, subscriber = opened(every=True)
    before, missed = stream.n, subscriber.missed
    stream.publish(100)
    assert [subscriber.receive(60.0).n for _ in range(100)] == list(range(before, before + 100))
    assert subscriber.missed == missed


@pytest.mark.parametrize("format", ["json", "msgpack"])
def test_schema_and_events(opened, format):
    stream, subscriber = opened(format=format)
    assert subscriber.schema == schema(rate=1000.0, signals=dict(SIGNALS))
    stream.sink.event(7 * MS, "elbow latched")
    while not subscriber.events:
        assert stream.n < 3000, "nothing comes"
        stream.publish(1)
        subscriber.receive(0.02)
    assert (subscriber.events[0]["event"], subscriber.events[0]["t"]) == ("elbow latched", 0.007)


def test_only_the_chosen_signals_and_nan_for_null(opened):
    stream, subscriber = opened(["*/velocity", "energy/work"])
    stream.sink(np.array([stream.n * MS]), np.array([[1.0, 2.0, np.nan]]))
    stream.n += 1
    sample = stream.heard(subscriber)
    assert sample["elbow/velocity"] == 2.0 and math.isnan(sample["energy/work"]) and len(sample.values) == 2


def test_a_new_run_is_no_gap(opened):
    stream, subscriber = opened(every=True)
    stream.publish(10)
    stream.heard(subscriber)
    missed = subscriber.missed
    stream.sink._n = stream.n = 0  # as of the next run at this address
    stream.publish(1)
    assert stream.heard(subscriber).n == 0 and subscriber.missed == missed


def test_data_gets_old_when_nothing_comes(opened, monkeypatch):
    monkeypatch.setattr(subscriber_module, "OLD_AGE", 3600.0)
    stream, subscriber = opened()
    stream.publish(1)
    stream.heard(subscriber)
    assert not subscriber.old
    monkeypatch.setattr(subscriber_module, "OLD_AGE", 0.01)
    assert subscriber.receive(0.05) is None
    assert subscriber.old and 0.05 <= subscriber.age < 3600.0


def test_before_the_first_sample_there_is_no_data():
    with subscribe("ipc:///tmp/no-such-stream") as subscriber:
        assert subscriber.receive(0.0) is None
        assert subscriber.schema is None and subscriber.old and subscriber.age == math.inf
        subscriber.close()


WRONG = {"address": "localhost:9872", "port": "tcp://127.0.0.1:99999", "port 0": "tcp://127.0.0.1:0"}


@pytest.mark.parametrize("what", WRONG)
def test_an_address_that_is_none(what, said):
    with pytest.raises(InputError) as caught:
        subscribe(WRONG[what])
    said(caught.value)


def test_a_key_that_is_missing(tmp_path, said):
    with pytest.raises(InputError) as caught:
        subscribe(key=str(tmp_path / "rig.key.pub"))
    said(caught.value)
