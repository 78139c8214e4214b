"""Requests of the control socket: every mistake is named with its fix, nothing else passes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from orjson import dumps

from cosim.remote.requests import COMMANDS, MAX_BYTES, BadRequest, read_request

EXAMPLES = {"take": {"client": "a"}, "set": {"values": {"arm.kp": 3}}, "marker": {"text": "here"}}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_read(command):
    request = read_request(dumps({"id": 7, "command": command, **EXAMPLES.get(command, {})}))
    assert (request.id, request.command) == (7, command)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\xff", 'not JSON; send an object such as {"command": "status"}'),
        (b"[1]", 'expected an object such as {"command": "status"}'),
        (b"{}", 'there is no command; send an object such as {"command": "status"}'),
        (b'{"command": "sett"}', "there is no command 'sett'; did you mean 'set'?"),
        (b'{"command": "set"}', "set: the field 'values' is missing; give an object such as"),
        (b'{"command": "set", "value": {}}', "set: there is no field 'value'; did you mean 'values'?"),
        (b'{"command": "set", "values": {}}', "set: 'values' must be an object such as"),
        (b'{"command": "set", "values": {"a.kp": true}}', "set: the value of 'a.kp' must be a number, a list of"),
        (b'{"command": "set", "values": {"a.kp": [[1]]}}', "set: the value of 'a.kp' must be a number, a list of"),
        (b'{"command": "set", "values": {"a": 1, "b": null}}', "set: the value of 'b' must be a number, a list of"),
        (b'{"command": "set", "values": {"a.kp": 1e999}}', "not JSON; send an object"),
        (b'{"command": "take"}', "take: the field 'client' is missing; give a name of up to 500 characters"),
        (b'{"command": "take", "client": "a", "force": 1}', "take: 'force' must be true or false"),
        (b'{"command": "step", "ticks": 0}', "step: 'ticks' must be a whole number from 1 to 10,000"),
        (b'{"command": "step", "ticks": 1.5}', "step: 'ticks' must be a whole number from 1 to 10,000"),
        (
            b'{"command": "marker", "text": "a\\u0000"}',
            "marker: 'text' must be a text of up to 500 printable characters",
        ),
        (b" " * (MAX_BYTES + 1), "a request has at most 65,536 bytes, got 65,537"),
        (b"[" * 5000, "not JSON"),
    ],
)
def test_mistakes_are_named(data, message):
    with pytest.raises(BadRequest) as caught:
        read_request(data)
    assert str(caught.value).startswith(message) and "\n" not in str(caught.value)


def test_a_mistake_keeps_the_id_of_its_request():
    with pytest.raises(BadRequest) as caught:
        read_request(b'{"id": 3, "command": "jump"}')
    assert caught.value.id == 3


words = st.text("a.é\n", max_size=4)
json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats() | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)


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
