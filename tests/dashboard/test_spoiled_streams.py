"""A stream with one field spoiled ends a viewer with one line, or is shown."""

from __future__ import annotations

import json

import pytest

from cosim.apps.dashboard.panels.scene import Poses
from cosim.apps.dashboard.watch import StreamReader, about_of
from cosim.apps.foxglove.bridge import BridgedRun
from cosim.apps.foxglove.parameters import RunParameters
from cosim.core.errors import InputError
from cosim.core.trust.plain_data import WrongShape
from cosim.output.stream.messages import encoder_of
from cosim.output.stream.reading import read_message, read_schema
from cosim.output.view3d.drawing import read_drawing
from tests.dashboard.test_watch import SCHEMA, sample
from tests.kit.spoiled import spoiled

ADDRESS = "tcp://127.0.0.1:9872"
EVENT = {"event": "grip released", "timestamp": 1e9, "t": 0.5, "level": "warning"}


class Channels:
    """A server of Foxglove without clients."""

    def channel(self, *_):
        return self

    def log(self, *_, **__):
        pass


def view(data):
    """As the page and the bridge do."""
    message = read_message(data, ADDRESS)
    reader = StreamReader(list(SCHEMA["signals"]))
    if "schema" not in message:
        reader.add(message)
        reader.take()
        return
    schema = read_schema(message["schema"], ADDRESS)
    about = about_of(schema)
    RunParameters(None, "").learn(schema)
    bridged = BridgedRun(schema, Channels())
    bridged.log(EVENT)
    drawing = read_drawing(schema["drawing"], ADDRESS)
    Poses(drawing, {name: k for k, name in enumerate(about.units)})


def check(cases, encode):
    failed = []
    for what, message in cases:
        try:
            view(encode(message))
        except (InputError, WrongShape) as error:  # which callers of a reader take for the former
            if "\n" in str(error) or len(str(error)) > 400:
                failed.append(f"{what}: {error}")
        except Exception as error:
            failed.append(f"{what}: {error!r}")
    assert not failed, "\n".join(failed)


def encoder(format):
    """With numbers that neither format has room for as texts."""
    encode = encoder_of(format)

    def encoded(message):
        try:
            return encode(message)
        except (TypeError, OverflowError):
            return json.dumps(message).encode()

    return encoded


@pytest.mark.parametrize("format", ["json", "msgpack"])
@pytest.mark.parametrize("message", [sample(3, 0.5, 1.0), EVENT, {"schema": json.dumps(SCHEMA), "timestamp": 1e9}])
def test_a_message(message, format):
    encode = encoder(format)
    check([*spoiled(message), ("no mapping", [message])], encode)


def test_a_schema():
    def encode(schema):
        return json.dumps({"schema": json.dumps(schema), "timestamp": 1e9}).encode()

    check(spoiled(SCHEMA), encode)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"\xff" * 9, b"[" * 100_000, b'{"schema": ' * 2, b"\x91" * 99_999, b"\xc0"]
)
def test_bytes_that_are_no_message(data):
    with pytest.raises(InputError, match="what is published there is no telemetry of a run") as caught:
        read_message(data, ADDRESS)
    assert str(caught.value).startswith(f"{ADDRESS}: ")
