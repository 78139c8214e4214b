"""Signals, events and missed deadlines of blocks of ticks, computed in the process of the run or in another one."""

from __future__ import annotations

import os
import pickle
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from mcap.reader import make_reader

from cosim.core.recordings.reader import read_recording
from cosim.output.frame_protocol import decode_ticks, encode_ticks
from cosim.output.remote_sink import RemoteSink
from cosim.output.sinks import SinkConfig, open_sinks
from cosim.rig.run import session as rig_session
from cosim.rig.run.run_metadata import channels_of
from cosim.rig.run.session import evaluation_of
from cosim.simulation.tick.tick_block import TickBlock
from tests.execution.scheduler_helpers import MS, Bench
from tests.kit.rigs import rig_in
from tests.output.test_sink_process import logged

RIG = """
name: latched
mechanism:
  gravity: [0, 0, 0]
  bodies: [{name: a, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.1]}]
joints: {a: {limits: {effort: 5, velocity: 0.5, actions: {velocity: warn}}}}
controllers:
  - {name: hold, type: pd_gravity, kp: 40, kd: 4, trajectory: {type: sine, amplitude: 20 deg, frequency: 3 Hz}}
events: [{do: latch, of: a, at: 40 ms, name: lock}]
schedule: {realtime: {warm_up: 0 s, overrun: catch_up}}
"""
LATE = {20: 3 * MS, 21: MS // 2, 70: 2 * MS}  # wait -> how late it ends [ns]


@pytest.fixture(scope="module")
def rig(tmp_path_factory):
    return rig_in(tmp_path_factory.mktemp("evaluation"), RIG)


@pytest.fixture(scope="module")
def blocks(rig):
    """The ticks of a run that misses deadlines, block by block."""
    bench = Bench(rig, paced=True, native=True, warm_up=0.0)
    bench.clock.late = [LATE.get(k, 0) for k in range(100)]
    with bench.start(100) as scheduler:
        whole = list(iter(scheduler.read, None))
        rows, stamps = (np.concatenate([getattr(block, name) for block in whole]) for name in ("rows", "stamps"))
    start = whole[0].bumpless_start
    bounds = [0, 1, 21, 30, 30, 75, 100]
    return [TickBlock(np.arange(a, b), rows[a:b], stamps[a:b], start, ("",)) for a, b in pairwise(bounds)]


def config(rig, path):
    return SinkConfig("latched", channels_of(rig), (("rig.yaml", b"name: latched"),), {"rig": "latched"}, str(path))


def messages(path):
    with path.open("rb") as file:
        found = make_reader(file).iter_messages()
        return sorted(
            (channel.topic, message.log_time, message.publish_time, message.data) for _, channel, message in found
        )


def test_a_recording_of_ticks_has_the_same_messages_as_one_of_values(rig, blocks, tmp_path):
    here = evaluation_of(rig)
    with ExitStack() as stack:
        sinks = open_sinks(stack, config(rig, tmp_path / "here.mcap"))
        values = np.concatenate([here(block, sinks)[0] for block in blocks])
    with RemoteSink(config(rig, tmp_path / "there.mcap"), evaluation_of(rig)) as remote:
        for block in blocks:
            remote.ticks(block)
    assert messages(tmp_path / "there.mcap") == messages(tmp_path / "here.mcap")  # in chunks that may differ
    t_ns, signals, *_ = read_recording(tmp_path / "there.mcap")
    np.testing.assert_array_equal(t_ns, np.arange(100) * MS)
    for (name, _), column in zip(channels_of(rig), values.T, strict=True):
        np.testing.assert_array_equal(signals[name], column)
    texts = [text for _, text in logged(tmp_path / "there.mcap")]
    assert texts.count("lock") == 1
    assert any("effort cut to its limit" in text for text in texts)
    missed = [text for text in texts if text.startswith("missed a deadline by ")]
    assert len(missed) == 5 and missed[0] == "missed a deadline by 2.01 ms in read: wake-up latency"


def test_misses_are_reported_once_for_any_blocks(rig, blocks):
    monitor = evaluation_of(rig).misses
    reported = [miss for block in blocks for miss in monitor(block)]
    whole = TickBlock(
        *(np.concatenate([getattr(block, name) for block in blocks]) for name in ("numbers", "rows", "stamps")),
        blocks[0].bumpless_start,
    )
    assert evaluation_of(rig).misses(whole) == reported
    assert [number for number, _ in reported] == [20, 21, 22, 70, 71]


def test_a_block_of_ticks_survives_the_pipe(blocks):
    for block in blocks:
        block = replace(block, failures=("", "ValueError: µ"))
        found = decode_ticks(b"".join(encode_ticks(block)))
        for name in ("numbers", "rows", "stamps", "bumpless_start"):
            np.testing.assert_array_equal(getattr(found, name), getattr(block, name))
        assert found.failures == block.failures
    free = replace(blocks[0], stamps=np.zeros((1, 0), np.int64))
    assert decode_ticks(b"".join(encode_ticks(free))).stamps.shape == (1, 0)


def test_what_is_sent_is_plain_data(rig):
    """Neither the model nor the rig goes along: the other process has neither."""
    assert len(pickle.dumps(evaluation_of(rig))) < 1 << 20


def test_the_run_computes_nothing_while_it_runs(rig, tmp_path, monkeypatch):
    from cosim.output.evaluation import Evaluation

    states, call, schedulers = [], Evaluation.__call__, []

    def evaluate(self, block, sinks, out=None):
        states.append((schedulers[0].state, os.getpid()))
        return call(self, block, sinks, out)

    make = rig_session.make_scheduler

    def noted(*arguments):
        schedulers.append(make(*arguments))
        return schedulers[0]

    monkeypatch.setattr(Evaluation, "__call__", evaluate)
    monkeypatch.setattr(rig_session, "make_scheduler", noted)
    run = rig.run(0.2, record=tmp_path / "run.mcap")
    assert len(run.t) == len(read_recording(tmp_path / "run.mcap")[0]) == 201
    assert states and {state for state, _ in states} == {"stopped"}
