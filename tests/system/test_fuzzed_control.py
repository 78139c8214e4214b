"""The control socket of a run in real time under garbage: nothing changes, and clients are served as before."""

import os
import random

import pytest

from cosim.core.errors import CosimError
from tests.kit.garbage import Stranger, garbage
from tests.kit.processes import child, memory
from tests.kit.running import Running
from tests.system.test_controlled_runs import arm, wait_for

MESSAGES = 10_000
BATCH = 500  # below what a socket queues for one client
GROWTH = 32 << 20  # B at most, of the process that serves
WRONG_VALUES = (
    *("", " ", "nan", "inf", "-inf", "1e999", "5 kg", "5 N*", "N*m/rad", "1 2", "${x}", "!!python/name:os", "é" * 400),
    *(-1, -1e300, 2**70, [1, -1], [1], [1, 2, 3], [1] * 1000, [], [[1, 2]], [1, "2"], {}, None, True),
)
WRONG_NAMES = ("", "hold", "hold.", ".kp", "hold.kp.kp", "hold.type", "hold.joints", "hold.__class__", "schedule.step")


def test_garbage_changes_nothing_of_a_run(tmp_path):
    """Not that of strangers, nor messages that are too long, nor wrong values of the client that holds control."""
    running = Running(arm(tmp_path, control_timeout=60))
    endpoint = running.rig.run_spec.telemetry.control
    batches = [garbage(random.Random(seed), BATCH) for seed in range(5)]
    with running.client("holder") as holder, holder.control(), Stranger(endpoint) as stranger:
        before, tick = holder.get(), wait_for(holder, "running", 50)["tick"]
        stranger.ask(batches[0])
        server = child(os.getpid(), "cosim.execution.remote.control_process")
        used, granted = memory(server), 0
        for number in range(MESSAGES // BATCH):
            granted += sum(stranger.ask(batches[number % len(batches)]))
        assert 0 < granted < MESSAGES // 4  # to look is granted
        with Stranger(endpoint) as other:
            for _ in range(20):
                other.send([bytes(4 << 20)])  # ends its connection alone
            wait_for(holder, "running", holder.status()["tick"] + 50)
        assert memory(server) - used < GROWTH
        wrong = [{"hold.kp": value} for value in WRONG_VALUES]
        wrong += [{"hold.kd": 1.0, name: 1.0} for name in WRONG_NAMES]
        wrong += [{"hold.kd": 1.0, **values} for values in wrong]
        for values in wrong:
            with pytest.raises(CosimError) as caught:
                holder.request("set", values=values)
            assert "\n" not in str(caught.value)
        status = holder.status()
        assert (status["state"], status["holder"]) == ("running", "holder") and status["tick"] > tick
        assert holder.get() == before
        wait_for(holder, "running", status["tick"] + 50)
        holder.stop()
    run = running.finished()
    assert run.fault == "" and [change.name for change in run.changes] == ["controlled_stop"]
    assert [event.name for event in run.events if event.level == "info"] == ["stopped by 'holder'"]
    assert len(run.t) > status["tick"] + 50
