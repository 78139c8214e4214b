"""A recording that is published again: what a subscriber would have seen, at the time it would have seen it."""

from __future__ import annotations

import uuid
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import zmq
from orjson import loads

from cosim import open_recording
from cosim.output.events import RunEvent
from cosim.rig.rig import Rig
from cosim.rig.run.stream import REPLAY_PERIOD, republish
from tests.kit.command import Command
from tests.kit.refusals import refusal
from tests.rig.test_run_forms import MOVING


class Clock:
    """A clock that only sleeping advances."""

    now = 100.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("republish") / "a.mcap"
    Rig.from_dict(MOVING).run(record=str(path))
    return open_recording(path)


@pytest.fixture
def heard():
    """heard(run, speed) -> (all messages that a subscriber gets, time [s] that it took)."""
    with zmq.Context.instance().socket(zmq.SUB) as sub:

        def follow(run, speed=1.0):
            endpoint, clock = f"inproc://{uuid.uuid4()}", Clock()
            sub.subscribe(b"")
            sub.connect(endpoint)
            republish(run, endpoint, speed, clock=clock, sleep=clock.sleep)
            messages = []
            while sub.poll(0 if messages else 1000):
                messages.append(loads(sub.recv()))
            return messages, clock.now - Clock.now

        yield follow


@pytest.mark.parametrize("speed", [0.5, 1.0, 4.0])
def test_samples_are_those_of_the_run_and_come_at_its_speed(run, heard, speed):
    messages, duration = heard(run, speed)
    assert duration == pytest.approx((run.t[-1] - run.t[0]) / speed, abs=2 * REPLAY_PERIOD)
    samples = [message for message in messages if "n" in message]
    assert len(samples) >= 50 * (run.t[-1] - run.t[0]) - 1
    position = dict(zip(np.rint(run.t * 1e9), run["shoulder/position"], strict=True))
    for sample in samples:
        assert sample["shoulder"]["position"] == position[round(sample["t"] * 1e9)]
    for before, after in pairwise(samples):
        assert after["timestamp"] - before["timestamp"] == pytest.approx(after["t"] - before["t"], abs=1e-6)


def test_the_schema_describes_the_run_and_its_end(run, heard):
    messages, _ = heard(run)
    schemas = [loads(message["schema"]) for message in messages if "schema" in message]
    assert (schemas[0]["state"], schemas[-1]["state"]) == ("running", "ended")
    assert schemas[0]["signals"] == run.units and list(schemas[0]["joints"]) == list(run.joints)


def test_events_and_the_fault_come_with_their_times(run, heard):
    latched = RunEvent(0.05, "latched", 0.0, level="warning")
    messages, _ = heard(replace(run, events=[latched], fault="stopped: overload"))
    found = [(message["t"], message["event"], message["level"]) for message in messages if "event" in message]
    assert found == [(0.05, "latched", "warning"), (float(run.t[-1]), "stopped: overload", "error")]
    sample = next(message for message in messages if "n" in message)
    event = next(message for message in messages if "event" in message)
    assert event["timestamp"] - sample["timestamp"] == pytest.approx(0.05 - sample["t"], abs=1e-6)


@pytest.mark.parametrize("speed", [0.0, -1.0, float("nan"), float("inf")])
def test_a_speed_that_is_none(run, speed):
    words = refusal(republish, run, "inproc://unused", speed)
    assert words == f"--speed: {speed:g} is no speed; give one above 0, such as 1 or 0.25"


def test_mistakes_on_the_command_line(tmp_path, capsys, monkeypatch, said):
    monkeypatch.chdir(tmp_path)
    command = Command(capsys, monkeypatch)
    Rig.from_dict(MOVING).run(record="a.mcap")
    for words in ("--rerun --speed 2", "--telemetry foo", "--telemetry tcp://*:9872"):
        said(command.refuses("replay", "a.mcap", *words.split()))


def test_a_recording_is_published_to_its_end(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Rig.from_dict(MOVING).run(record="a.mcap")
    words = ("replay", "a.mcap", "--telemetry", "tcp://127.0.0.1:*", "--speed", "10")
    code, printed, errors = Command(capsys, monkeypatch)(*words)
    assert (code, errors) == (0, []) and "at 10 times its speed: tcp://127.0.0.1:" in printed
