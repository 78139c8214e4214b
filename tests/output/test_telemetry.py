"""Telemetry: a real subscriber gets names and decimated samples, and no subscriber can hold up the run."""

import socket
import uuid

import msgpack
import numpy as np
import pytest
import zmq

from cosim.errors import InputError
from cosim.output.telemetry import CHANNELS_INTERVAL, Publisher, first_of_each_interval

CHANNELS = (("elbow/position", "rad"), ("energy/work", "J"))
MS = 1_000_000
WAIT_MS = 20
ATTEMPTS = 500


@pytest.fixture
def subscribe():
    sockets = []

    def connect(endpoint, topic=b"", **options):
        sub = zmq.Context.instance().socket(zmq.SUB)
        sockets.append(sub)
        for name, value in options.items():
            sub.setsockopt(getattr(zmq, name), value)
        sub.setsockopt(zmq.LINGER, 0)
        sub.setsockopt(zmq.SUBSCRIBE, topic)
        sub.connect(endpoint)
        return sub

    yield connect
    for sub in sockets:
        sub.close()


def received(sub, wait_ms=WAIT_MS):
    """Every message that is there, as (topic, map)."""
    found = []
    while sub.poll(wait_ms if not found else 0):
        topic, body = sub.recv_multipart()
        found.append((topic.decode(), msgpack.unpackb(body)))
    return found


def join(publisher, sub, t_ns=0):
    """Publish one sample per attempt until the subscriber hears one; the time of the next sample."""
    for _ in range(ATTEMPTS):
        publisher.publish(np.array([t_ns]), np.zeros((1, 2)))
        t_ns += MS
        if received(sub):
            return t_ns
    raise AssertionError("the subscriber heard nothing")


def endpoints(tmp_path):
    return {
        "inproc": f"inproc://{uuid.uuid4()}",
        "ipc": f"ipc://{tmp_path / 'rig'}",
        "tcp": "tcp://127.0.0.1:*",
    }


@pytest.mark.parametrize("transport", ["inproc", "ipc", "tcp"])
def test_a_subscriber_gets_the_samples(tmp_path, subscribe, transport):
    with Publisher(endpoints(tmp_path)[transport], CHANNELS, 1000.0, "arm") as publisher:
        sub = subscribe(publisher.endpoint, b"arm/sample")
        t = join(publisher, sub)
        publisher.publish(np.array([t, t + MS]), np.array([[0.25, -1.5], [np.nan, np.inf]]))
        found = received(sub, wait_ms=5000)
        while len(found) < 2:
            found += received(sub, wait_ms=5000)
    assert found[0] == ("arm/sample", {"t_ns": t, "values": [0.25, -1.5]})
    topic, sample = found[1]
    assert (topic, sample["t_ns"]) == ("arm/sample", t + MS)
    np.testing.assert_array_equal(sample["values"], [np.nan, np.inf])


def test_names_and_units_come_first_and_again_for_those_who_join_late(subscribe):
    endpoint = f"inproc://{uuid.uuid4()}"
    with Publisher(endpoint, CHANNELS, 1000.0, "arm") as publisher:
        sub = subscribe(endpoint)  # inproc: connected at once, the subscription is read on the next send
        t = join(publisher, sub)
        k = 2 * CHANNELS_INTERVAL
        publisher.publish(t + np.arange(k) * MS, np.zeros((k, 2)))
        found = received(sub)
    names = {"names": ["elbow/position", "energy/work"], "units": ["rad", "J"]}
    channels = [i for i, (topic, _) in enumerate(found) if topic == "arm/channels"]
    assert [found[i][1] for i in channels] == [names, names]
    assert channels[1] - channels[0] == CHANNELS_INTERVAL + 1
    assert [topic for topic, _ in found].count("arm/sample") == k


def test_the_first_message_holds_the_names(subscribe):
    endpoint = f"inproc://{uuid.uuid4()}"
    sub = subscribe(endpoint)  # inproc may connect before the other side binds
    with Publisher(endpoint, CHANNELS, 1000.0, "arm") as publisher:
        publisher.publish(np.array([0]), np.array([[1.0, 2.0]]))
        found = received(sub)
    assert found == [
        ("arm/channels", {"names": ["elbow/position", "energy/work"], "units": ["rad", "J"]}),
        ("arm/sample", {"t_ns": 0, "values": [1.0, 2.0]}),
    ]


@pytest.mark.parametrize("block", [1, 7, 300])
def test_the_rate_is_kept_in_simulated_time_however_the_samples_arrive(subscribe, block):
    endpoint = f"inproc://{uuid.uuid4()}"
    sub = subscribe(endpoint, b"arm/sample")
    with Publisher(endpoint, CHANNELS, 50.0, "arm") as publisher:
        t = np.arange(300) * MS
        for begin in range(0, 300, block):
            publisher.publish(t[begin : begin + block], np.zeros((len(t[begin : begin + block]), 2)))
        found = received(sub)
    assert [body["t_ns"] for _, body in found] == [i * 20 * MS for i in range(15)]


def test_no_samples_are_no_mistake(subscribe):
    endpoint = f"inproc://{uuid.uuid4()}"
    sub = subscribe(endpoint)
    with Publisher(endpoint, CHANNELS, 50.0, "arm") as publisher:
        publisher.publish(np.array([], dtype=np.int64), np.zeros((0, 2)))
        assert received(sub) == []


@pytest.mark.parametrize(
    ("intervals", "previous", "indices"),
    [
        ([0, 0, 1, 1, 3], -1, [0, 2, 4]),
        ([0, 0, 1, 1, 3], 0, [2, 4]),
        ([7, 7, 0, 0], 7, [2]),  # the clock starts anew: a second run
        ([], 4, []),
    ],
)
def test_first_of_each(intervals, previous, indices):
    assert first_of_each_interval(np.array(intervals, dtype=np.int64), previous).tolist() == indices


def test_a_slow_subscriber_loses_samples_and_blocks_nothing(subscribe):
    endpoint = f"inproc://{uuid.uuid4()}"
    sub = subscribe(endpoint, b"arm/sample", RCVHWM=10)
    with Publisher(endpoint, CHANNELS, 1000.0, "arm") as publisher:
        publisher.publish(np.arange(20_000) * MS, np.zeros((20_000, 2)))
        found = received(sub)
    assert 0 < len(found) < 20_000
    assert found[0][1]["t_ns"] == 0


def test_a_used_port_is_an_input_error():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        endpoint = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(InputError) as error:
            Publisher(endpoint, CHANNELS, 50.0, "arm")
    mend = "stop the other program or give another port"
    assert str(error.value) == f"{endpoint}: cannot publish telemetry: Address already in use; {mend}"


@pytest.mark.parametrize(
    ("endpoint", "reason"),
    [
        ("5556", "Invalid argument"),
        ("tcp://127.0.0.1", "Invalid argument"),
        ("smoke://signal", "Protocol not supported"),
    ],
)
def test_an_endpoint_that_is_none_is_an_input_error(endpoint, reason):
    with pytest.raises(InputError) as error:
        Publisher(endpoint, CHANNELS, 50.0, "arm")
    mend = "give an endpoint such as tcp://127.0.0.1:5556 or ipc:///tmp/rig"
    assert str(error.value) == f"{endpoint}: cannot publish telemetry: {reason}; {mend}"


def test_closing_frees_the_port_and_may_be_repeated(subscribe):
    first = Publisher("tcp://127.0.0.1:*", CHANNELS, 50.0, "arm")
    first.close()
    first.close()
    idle = subscribe(f"inproc://{uuid.uuid4()}")
    for _ in range(ATTEMPTS):  # zmq lets go of the port in a thread of its own
        try:
            Publisher(first.endpoint, CHANNELS, 50.0, "arm").close()
            return
        except InputError:
            idle.poll(WAIT_MS)
    raise AssertionError(f"{first.endpoint} is still taken")
