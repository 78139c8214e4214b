"""A stream: real subscribers understand every message on its own, and none can hold up the run."""

import socket
import uuid
from contextlib import ExitStack

import msgpack
import numpy as np
import pytest
import zmq
from orjson import loads

from cosim.core.errors import InputError
from cosim.output.stream import stream_sink
from cosim.output.stream.stream_sink import Publisher, StreamConfig, StreamSink
from tests.kit.refusals import refusal
from tests.output.stream.plotjuggler import PlotJuggler3, PlotJuggler4

SIGNALS = (("elbow/position", "rad"), ("elbow/velocity", "rad/s"), ("energy/work", "J"))
MS = 1_000_000
START = 1_795_470_000
ATTEMPTS = 3000  # of 20 ms


def stream(endpoint, **settings):
    config = {"signals": SIGNALS, "columns": (0, 1, 2), "step_ns": MS, "start_ns": START * 10**9, "realtime": False}
    return StreamConfig(endpoint, **{**config, "schema": {"version": 1}, "rate": 1000.0, **settings})


@pytest.fixture
def opened():
    """A sink, and a subscriber that connected before it was opened."""
    with ExitStack() as stack:

        def open_sink(topic=b"", options=(), **settings):
            endpoint = f"inproc://{uuid.uuid4()}"
            sub = stack.enter_context(zmq.Context.instance().socket(zmq.SUB))
            for name, value in options:
                sub.setsockopt(name, value)
            sub.setsockopt(zmq.SUBSCRIBE, topic)
            sub.connect(endpoint)
            return StreamSink(stack.enter_context(ExitStack()), stream(endpoint, **settings)), sub

        yield open_sink


def frames(sub, wait_ms=60_000):
    """All that is there; a list of frames for each message."""
    found = []
    while sub.poll(wait_ms if not found else 0):
        found.append(sub.recv_multipart())
    return found


def received(sub):
    return [loads(message) for (message,) in frames(sub)]


def test_every_kind_of_message(opened):
    sink, sub = opened()
    sink(np.array([340 * MS]), np.array([[0.25, 1.0, 1e22]]))
    sink.event(341 * MS, "elbow latched")
    sink.fault(342 * MS, "stopped: Größe")
    messages = [message for (message,) in frames(sub)]
    schema = loads(messages[0])
    assert schema["timestamp"] > START
    units = {"elbow/position": "rad", "elbow/velocity": "rad/s", "energy/work": "J"}
    assert loads(schema.pop("schema")) == {"version": 1, "signals": units} and list(schema) == ["timestamp"]
    sample = b'"t":0.34,"missed":0,"elbow":{"position":0.25,"velocity":1.0},"energy":{"work":1e+22}}'
    assert messages[1] == b'{"timestamp":%d.34,"n":0,"tick":340,' % START + sample
    assert messages[2] == b'{"event":"elbow latched","timestamp":%d.341,"t":0.341,"level":"info"}' % START
    fault = f'{{"event":"stopped: Größe","timestamp":{START}.342,"t":0.342,"level":"error"}}'
    assert messages[3] == fault.encode()


def test_a_subscription_selects_a_kind_of_message(opened):
    for begin, kind in ((b'{"timestamp"', "n"), (b'{"schema"', "schema"), (b'{"event"', "event")):
        sink, sub = opened(begin)
        sink(np.array([0]), np.zeros((1, 3)))
        sink.event(0, "latched")
        (message,) = received(sub)
        assert kind in message


def test_numbers_that_are_not_finite_are_null_and_nothing_else_changes(opened):
    sink, sub = opened(b'{"timestamp"')
    sink(np.array([0, MS]), np.array([[np.nan, 1.0, -np.inf], [2.0, 3.0, 4.0]]))
    first, second = received(sub)
    assert (first["elbow"], first["energy"]) == ({"position": None, "velocity": 1.0}, {"work": None})
    assert second["elbow"] == {"position": 2.0, "velocity": 3.0}


@pytest.mark.parametrize(
    ("plotjuggler", "decimation"), [(PlotJuggler3, "last"), (PlotJuggler4, "mean"), (PlotJuggler3, "min_max")]
)
def test_plotjuggler_plots_the_samples_at_their_times(opened, plotjuggler, decimation):
    sink, sub = opened(decimation=decimation, rate=100.0, schema={"rig": "arm", "text": "x" * 100})
    t = np.arange(100) * MS
    values = np.column_stack([np.round(np.sin(t * 1e-7), 1), np.zeros(100), np.full(100, np.nan)])
    plot = plotjuggler()
    sink(t[:50], values[:50])
    sink.event(50 * MS, "a warning", "warning")
    sink.describe({"rig": "arm"})
    sink(t[50:], values[50:])
    for parts in frames(sub):
        plot.receive(parts, now=0.0)
    slash = "/" if plotjuggler is PlotJuggler3 else ""
    times, positions = zip(*plot.curves[f"{slash}elbow/position"], strict=True)
    assert times == tuple(START + k / 100 for k in range(10))
    expected = values[:91, 0]
    expected = np.r_[expected[0], expected[1:].reshape(9, 10).mean(axis=1)] if decimation == "mean" else expected[::10]
    np.testing.assert_allclose(positions, expected, atol=1e-15)
    assert f"{slash}energy/work" not in plot.curves
    assert all(time > 0.0 for curve in plot.curves.values() for time, _ in curve)


def test_who_joins_late_gets_the_schema_within_its_period(opened, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(stream_sink.time, "monotonic", lambda: clock[0])
    sink, sub = opened(b'{"schema"')
    late = zmq.Context.instance().socket(zmq.SUB)
    with late:
        late.setsockopt(zmq.SUBSCRIBE, b"")
        late.connect(sink.endpoint)
        while not late.poll(10):  # until it is connected
            sink.event(0, "here")
        received(late)
        for k in range(25):
            clock[0] += 0.1
            sink(np.array([k * MS]), np.zeros((1, 3)))
        kinds = ["schema" in message for message in received(late)]
    # a period of 1.0 s may take 11 steps of 0.1 s in floating point
    assert 1 <= kinds.count(True) <= 2 and kinds.index(True) <= 11
    assert 2 <= len(received(sub)) <= 3


@pytest.mark.parametrize("block", [1, 7, 300])
def test_the_rate_is_kept_in_simulated_time_however_the_samples_arrive(opened, block):
    sink, sub = opened(b'{"timestamp"', rate=50.0)
    t = np.arange(300) * MS
    for begin in range(0, 300, block):
        sink(t[begin : begin + block], np.zeros((len(t[begin : begin + block]), 3)))
    found = received(sub)
    assert [m["tick"] for m in found] == [20 * i for i in range(15)]
    assert [m["n"] for m in found] == list(range(15))


def test_only_the_chosen_signals_are_published(opened):
    sink, sub = opened(signals=(SIGNALS[2], SIGNALS[0]), columns=(2, 0))
    sink(np.array([0]), np.array([[1.0, 2.0, 3.0]]))
    schema, sample = received(sub)
    assert loads(schema["schema"])["signals"] == {"energy/work": "J", "elbow/position": "rad"}
    assert list(sample)[5:] == ["energy", "elbow"]
    assert (sample["energy"], sample["elbow"]) == ({"work": 3.0}, {"position": 1.0})


def test_messagepack_has_the_same_maps(opened):
    rows = np.array([[0.25, np.nan, 1.0]])
    found = []
    for format, decode in (("json", loads), ("msgpack", msgpack.unpackb)):
        sink, sub = opened(format=format, decimation="min_max")
        sink(np.array([0]), rows)
        sink.event(MS, "latched", "warning")
        sink.missed(7)
        sink(np.array([2 * MS]), rows)
        found.append([decode(message) for (message,) in frames(sub)])
    for as_json, as_msgpack in zip(*found, strict=True):
        if "schema" in as_json:  # published at another time
            as_json["timestamp"] = as_msgpack["timestamp"]
        assert as_json == as_msgpack
        assert list(map(type, as_json.values())) == list(map(type, as_msgpack.values()))
    assert found[0][-1]["missed"] == 7


def test_the_end_of_a_run_is_published():
    endpoint = f"inproc://{uuid.uuid4()}"
    with zmq.Context.instance().socket(zmq.SUB) as sub:
        sub.setsockopt(zmq.SUBSCRIBE, b'{"timestamp"')
        sub.connect(endpoint)
        with ExitStack() as stack:
            StreamSink(stack, stream(endpoint, rate=50.0))(np.arange(30) * MS, np.zeros((30, 3)))
        assert [m["tick"] for m in received(sub)] == [0, 20, 29]


def test_a_real_time_run_has_the_time_of_the_clock(opened):
    sink, sub = opened(b'{"timestamp"', realtime=True)
    sink(np.array([5000 * MS]), np.zeros((1, 3)))
    sink(np.array([5001 * MS]), np.zeros((1, 3)))
    first, second = received(sub)
    assert abs(first["timestamp"] - stream_sink.time.time()) < 10.0
    assert second["timestamp"] - first["timestamp"] == pytest.approx(1e-3, abs=1e-6)


def test_a_slow_subscriber_loses_samples_and_can_count_them(opened):
    sink, sub = opened(b'{"timestamp"', options=((zmq.RCVHWM, 10),))
    sink(np.arange(20_000) * MS, np.zeros((20_000, 3)))
    found = received(sub)
    assert 0 < len(found) < 300 and [m["n"] for m in found] == list(range(len(found)))
    sink(np.array([20_000 * MS]), np.zeros((1, 3)))
    (newest,) = received(sub)
    assert newest["n"] == 20_000


@pytest.mark.parametrize("transport", ["ipc", "tcp"])
def test_other_transports(tmp_path, transport):
    endpoint = {"ipc": f"ipc://{tmp_path / 'rig'}", "tcp": "tcp://127.0.0.1:*"}[transport]
    with ExitStack() as stack:
        sink = StreamSink(stack, stream(endpoint))
        sub = stack.enter_context(zmq.Context.instance().socket(zmq.SUB))
        sub.setsockopt(zmq.SUBSCRIBE, b'{"timestamp"')
        sub.connect(sink.endpoint)
        for k in range(ATTEMPTS):
            sink(np.array([k * MS]), np.full((1, 3), float(k)))
            if sub.poll(20):
                message = loads(sub.recv())
                break
    assert message["energy"]["work"] == float(message["tick"])


def test_a_used_port_is_an_input_error(said):
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(InputError) as error:
        Publisher(f"tcp://127.0.0.1:{taken.getsockname()[1]}", 50.0)
    said(error.value, r"(?<=127.0.0.1:)\d+")


@pytest.mark.parametrize("endpoint", ["9872", "tcp://127.0.0.1", "smoke://signal"])
def test_an_endpoint_that_is_none_is_an_input_error(said, endpoint):
    said(refusal(Publisher, endpoint, 50.0))


def test_closing_frees_the_port_and_may_be_repeated():
    first = Publisher("tcp://127.0.0.1:*", 50.0)
    first.close()
    first.close()
    with zmq.Context.instance().socket(zmq.SUB) as idle:
        for _ in range(ATTEMPTS):  # zmq frees the port in its own thread
            try:
                Publisher(first.endpoint, 50.0).close()
                return
            except InputError:
                idle.poll(20)
    raise AssertionError(f"{first.endpoint} is still taken")
