"""The control socket of a run in real time under garbage: nothing changes, and clients are served as before."""

from __future__ import annotations

import os
import random

import pytest

from cosim.errors import CosimError
from tests.kit.garbage import Stranger, garbage
from tests.kit.processes import child, memory
from tests.system.test_controlled_runs import Running, arm, wait_for

MESSAGES = 100_000
BATCH = 500  # below what a socket queues for one client
GROWTH = 32 << 20  # B at most, of the process that serves
WRONG_VALUES = (
    *("", " ", "nan", "inf", "-inf", "1e999", "5 kg", "5 N*", "N*m/rad", "1 2", "${x}", "!!python/name:os", "é" * 400),
    *(-1, -1e300, 2**70, [1, -1], [1], [1, 2, 3], [1] * 1000, [], [[1, 2]], [1, "2"], {}, None, True),
)
WRONG_NAMES = ("", "hold", "hold.", ".kp", "hold.kp.kp", "hold.type", "hold.joints", "hold.__class__", "schedule.step")


@pytest.fixture
def running(tmp_path):
    running = Running(arm(tmp_path, control_timeout=20), record=tmp_path / "run.mcap")
    yield running
    if running.is_alive():  # the test has failed
        with running.client() as client:
            client.estop()
    running.finished()


def unharmed(running, before, tick):
    """The run after it went on for a while and was stopped by a client: nothing has changed and nothing was noted."""
    with running.client("tuner") as client, client.control(force=True):
        assert client.get() == before
        wait_for(client, "running", tick + 100)
        client.stop()
    run = running.finished()
    assert run.fault == "" and [change.name for change in run.changes] == ["controlled_stop"]
    assert [event.name for event in run.events if event.level == "info"] == ["stopped by 'tuner'"]
    return run


def test_garbage_changes_nothing_of_a_run(tmp_path, running):
    batches = [garbage(random.Random(seed), BATCH) for seed in range(20)]
    endpoint = running.rig.run_spec.telemetry.control
    with running.client("holder") as holder, holder.control(), Stranger(endpoint) as stranger:
        before, tick = holder.get(), wait_for(holder, "running", 50)["tick"]
        stranger.ask(batches[0])
        server = child(os.getpid(), "cosim.remote.control_process")
        used, granted = memory(server), 0
        for number in range(MESSAGES // BATCH):
            granted += sum(stranger.ask(batches[number % len(batches)]))
        assert 0 < granted < MESSAGES // 4  # to look is granted
        assert memory(server) - used < GROWTH
        status = holder.status()
        assert (status["state"], status["holder"]) == ("running", "holder") and status["tick"] > tick
    assert len(unharmed(running, before, status["tick"]).t) > status["tick"] + 100


def test_a_message_that_is_too_long_ends_its_connection_alone(running):
    with running.client() as client, Stranger(running.rig.run_spec.telemetry.control) as stranger:
        before, tick = client.get(), wait_for(client, "running", 50)["tick"]
        server = child(os.getpid(), "cosim.remote.control_process")
        used = memory(server)
        for _ in range(20):
            stranger.send([bytes(4 << 20)])
        wait_for(client, "running", tick + 100)
        assert memory(server) - used < GROWTH
    unharmed(running, before, tick)


def test_who_holds_control_sets_nothing_that_the_rig_could_not_have(running):
    with running.client("holder") as holder, holder.control():
        before, tick = holder.get(), wait_for(holder, "running", 50)["tick"]
        wrong = [{"hold.kp": value} for value in WRONG_VALUES]
        wrong += [{"hold.kd": 1.0, name: 1.0} for name in WRONG_NAMES]
        wrong += [{"hold.kd": 1.0, **values} for values in wrong]
        for values in wrong * 5:
            with pytest.raises(CosimError) as caught:
                holder.request("set", values=values)
            assert "\n" not in str(caught.value)
        assert holder.get() == before
    unharmed(running, before, tick)
