"""Requests of the control socket: every mistake is named with its fix, nothing else passes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from orjson import dumps

from cosim.execution.remote.requests import COMMANDS, MAX_BYTES, BadRequest, read_request

EXAMPLES = {"take": {"client": "a"}, "set": {"values": {"arm.kp": 3}}, "marker": {"text": "here"}}


def test_every_command_is_read():
    for command in COMMANDS:
        request = read_request(dumps({"id": 7, "command": command, **EXAMPLES.get(command, {})}))
        assert (request.id, request.command) == (7, command)


MISTAKES = [
    b"\xff",
    b"[1]",
    b"{}",
    b'{"command": "sett"}',
    b'{"command": "set"}',
    b'{"command": "set", "value": {}}',
    b'{"command": "set", "values": {}}',
    b'{"command": "set", "values": {"a.kp": true}}',
    b'{"command": "set", "values": {"a.kp": [[1]]}}',
    b'{"command": "set", "values": {"a": 1, "b": null}}',
    b'{"command": "set", "values": {"a.kp": 1e999}}',
    b'{"command": "take"}',
    b'{"command": "take", "client": "a", "force": 1}',
    b'{"command": "step", "ticks": 0}',
    b'{"command": "step", "ticks": 1.5}',
    b'{"command": "marker", "text": "a\\u0000"}',
    b" " * (MAX_BYTES + 1),
    b"[" * 5000,
]


def test_mistakes_are_named(said):
    for data in MISTAKES:
        with pytest.raises(BadRequest) as caught:
            read_request(data)
        said(f"{data[:60]!r}\n{caught.value}")
        assert len(str(caught.value).splitlines()) == 1
    with pytest.raises(BadRequest) as caught:
        read_request(b'{"id": 3, "command": "jump"}')
    assert caught.value.id == 3  # its request's


words = st.text("a.é\n", max_size=4)
json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats() | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=30)
@given(
    st.sampled_from(sorted(COMMANDS)),
    st.dictionaries(st.sampled_from(["values", "ticks", "text", "client", "x"]), json),
)
def test_whatever_comes_is_read_or_refused(command, fields):
    try:
        request = read_request(dumps({"command": command, **fields}))
    except BadRequest:
        return
    for name, value in request.fields.items():
        assert request.kind.fields[name].check(value)
