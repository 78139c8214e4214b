"""The stream of a run as the source of a page."""

import math

import numpy as np
import pytest
import zmq
from orjson import dumps

from cosim.apps.dashboard.source import PageEvent
from cosim.apps.dashboard.watch import GONE_TIMEOUT, StreamReader, Watch, about_of
from cosim.core.errors import InputError
from tests.kit.streams import schema

SCHEMA = schema(
    signals={"a/position": "rad", "energy/stored": "J"},
    joints={"a": {"unit": "rad", "lower": -1.0, "upper": None, "velocity": 2.0, "effort": None, "real": True}},
    parameters={"hold.kp": {"unit": "", "min": 0.0, "max": None, "value": [1.0, 2.0]}},
)


def sample(n: int, t: float, position: float | None) -> dict:
    fields = {"timestamp": 1e9 + t, "n": n, "tick": round(t * 1e3), "t": t, "missed": 0}
    return {**fields, "a": {"position": position}, "energy": {"stored": 2.0}}


def reader() -> StreamReader:
    return StreamReader(list(SCHEMA["signals"]))


def test_a_schema_describes_joints_and_parameters() -> None:
    about = about_of(SCHEMA)
    joint = about.joints["a"]
    assert (about.name, about.step, about.real) == ("arm", 1e-3, True)
    assert (joint.lower, joint.velocity) == (-1.0, 2.0) and math.isnan(joint.upper)
    assert about.parameters["hold.kp"].value == [1.0, 2.0]


def test_samples_become_rows_and_null_becomes_nan() -> None:
    stream = reader()
    for message in (sample(0, 0.0, 1.5), sample(1, 0.1, None)):
        stream.add(message)
    news = stream.take()
    np.testing.assert_array_equal(news.t, [0.0, 0.1])
    np.testing.assert_array_equal(news.values, [[1.5, 2.0], [np.nan, 2.0]])
    assert stream.take().values.shape == (0, 2)


def test_gaps_in_the_numbers_are_lost_samples() -> None:
    stream = reader()
    for n in (3, 4, 8):
        stream.add(sample(n, n * 0.1, 0.0))
    assert stream.lost == 3


def test_time_that_goes_back_is_another_run() -> None:
    stream = reader()
    for message in (sample(9, 5.0, 0.0), sample(0, 0.0, 1.0)):
        stream.add(message)
    news = stream.take()
    assert news.restarted and list(news.t) == [0.0] and stream.lost == 0


def test_events_keep_their_time_and_level() -> None:
    stream = reader()
    stream.add({"event": "grip released", "timestamp": 1e9, "t": 0.5, "level": "warning"})
    assert stream.take().events == (PageEvent(0.5, "grip released", "warning"),)


def test_a_page_knows_when_the_run_is_gone_and_when_it_is_back() -> None:
    now = [0.0]
    with zmq.Context() as context, context.socket(zmq.PUB) as publisher:
        publisher.setsockopt(zmq.LINGER, 0)
        port = publisher.bind_to_random_port("tcp://127.0.0.1")
        watch = Watch(f"tcp://127.0.0.1:{port}", lambda: now[0])
        assert watch.status.state == "connecting"
        schema = dumps({"schema": dumps(SCHEMA).decode(), "timestamp": 1e9})

        def publish_until_it_arrives() -> None:
            for _ in range(2000):
                publisher.send(schema)
                watch.poll()
                if watch.about is not None and watch.status.state == "running":
                    return
                watch._socket.poll(5)

        publish_until_it_arrives()
        assert watch.status.state == "running" and watch.about is not None
        now[0] += GONE_TIMEOUT + 1
        assert (watch.status.state, watch.status.reason) == ("gone", "nothing came for 6 s")
        publish_until_it_arrives()
        assert watch.status.state == "running"
        watch.close()


def test_what_is_no_address_is_refused() -> None:
    with pytest.raises(InputError, match="tcp://nowhere: no address of a stream"):
        Watch("tcp://nowhere")
