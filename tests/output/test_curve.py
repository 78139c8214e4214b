"""Encryption: a client with the public key hears the stream, one without hears nothing, and wrong files are refused."""

import stat
from contextlib import ExitStack

import numpy as np
import pytest
import zmq

from cosim.core.access.curve import check_network, create_keys, is_local, secure, secure_client
from cosim.core.errors import InputError
from cosim.output.client import subscribe
from cosim.output.stream.stream_sink import StreamConfig, StreamSink
from tests.kit.refusals import refusal
from tests.kit.streams import schema

SIGNALS = (("elbow/position", "rad"),)


@pytest.fixture
def keys(tmp_path):
    file = tmp_path / "rig.key"
    return file, create_keys(file)


def test_only_clients_with_the_key_hear_the_stream(keys):
    secret, public = keys
    other = create_keys(secret.with_name("other.key"))
    config = StreamConfig("tcp://127.0.0.1:*", SIGNALS, (0,), 1_000_000, 0, False, schema(), key=str(secret))
    with ExitStack() as stack:
        sink = StreamSink(stack, config)
        deaf = [stack.enter_context(zmq.Context.instance().socket(zmq.SUB)) for _ in range(2)]
        secure_client(deaf[1], other)
        for socket in deaf:
            socket.setsockopt(zmq.SUBSCRIBE, b"")
            socket.connect(sink.endpoint)
        hearing = stack.enter_context(subscribe(sink.endpoint, key=str(public)))
        for k in range(500):
            sink(np.array([k * 20_000_000]), np.array([[float(k)]]))
            sink.describe(schema())
            if (sample := hearing.receive(0.02)) is not None:
                break
        assert sample is not None and sample["elbow/position"] == sample.n
        assert [socket.poll(100) for socket in deaf] == [0, 0]


def test_the_secret_is_readable_by_its_owner_only_and_never_overwritten(keys, said):
    secret, public = keys
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert "secret" not in public.read_text()
    said(refusal(create_keys, secret))
    secret.unlink()
    with pytest.raises(InputError):
        create_keys(secret)  # the public file belongs to another key
    assert not secret.exists()


def test_files_that_are_no_keys_are_refused(keys, tmp_path, said):
    secret, public = keys
    (tmp_path / "text").write_text("hello")
    (tmp_path / "short").write_text('curve\n    public-key = "abc"\n')
    secret.chmod(0o640)
    with zmq.Context.instance().socket(zmq.PUB) as socket:
        for file in (secret, public, *(tmp_path / name for name in ("none", "text", "short"))):
            said(refusal(secure, socket, file))


def test_a_place_that_cannot_be_written(tmp_path, said):
    said(refusal(create_keys, tmp_path / "none" / "rig.key"))


@pytest.mark.parametrize("endpoint", ["tcp://127.0.0.1:1", "tcp://localhost:1", "tcp://[::1]:1", "ipc:///tmp/a"])
def test_local_endpoints_need_no_key(endpoint):
    check_network(endpoint, network=False, key=None, section="telemetry")
    assert is_local(endpoint)
