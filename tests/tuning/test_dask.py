"""Sessions on workers of Dask: equal to sessions on one machine, and what is lost with a worker."""

import os
import signal
import socket
import sys

import distributed
import numpy as np
import pytest

from cosim import FailedTuning, InputError, RunError, tune
from cosim.apps.tuning.dask_workers import DaskWorkers
from tests.kit.command import Command
from tests.kit.refusals import raised
from tests.tuning.textbook import turntable

GIVEN = {"parameters": {"arm.kp": "10..1000", "arm.kd": "1..100"}, "optimiser": "cma", "trials": 40, "batch": 8}
PLANTS = {"inertia": "20 %"}


def local_cluster(workers: int):
    """Processes with one thread each."""
    places = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    return distributed.LocalCluster(n_workers=workers, threads_per_worker=1, silence_logs=50, **places)


@pytest.fixture(scope="module")
def cluster():
    with local_cluster(2) as found:
        yield found


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def test_a_session_on_workers_equals_that_of_one_machine_to_the_bit(cluster, tmp_path):
    here = tune(turntable(), plants=PLANTS, **GIVEN)
    there = tune(turntable(), plants=PLANTS, dask=cluster.scheduler_address, folder=tmp_path / "s", **GIVEN)
    assert there.trials == here.trials
    assert (tmp_path / "s" / "report.html").exists()


def test_parameters_that_were_set_in_python_are_those_of_the_workers(cluster):
    rig = turntable()
    rig.set("arm.ki", 20.0)
    assert tune(rig, dask=cluster.scheduler_address, **GIVEN).trials == tune(rig, **GIVEN).trials


def test_a_lost_worker_is_a_repetition_and_not_a_lost_session(cluster):
    killed = []

    def kill(session):
        if not killed:
            killed.append(next(iter(cluster.workers.values())).pid)
            os.kill(killed[0], signal.SIGKILL)

    session = tune(turntable(), dask=cluster.scheduler_address, progress=kill, **GIVEN)
    assert killed and session.trials == tune(turntable(), **GIVEN).trials


def test_a_scheduler_that_is_lost_ends_the_session_with_what_was_found(tmp_path, monkeypatch):
    monkeypatch.setattr("cosim.apps.tuning.dask_workers.CONNECT", 2.0)
    cluster = local_cluster(1)

    def stop(session):
        if len(session.trials) > 10:
            cluster.close()

    with pytest.raises(FailedTuning) as failed:
        tune(turntable(), dask=cluster.scheduler_address, progress=stop, folder=tmp_path / "s", **GIVEN)
    session = failed.value.session
    assert len(session.trials) == 17
    best = f"the best is trial {session.best.number} with the cost {session.best.outcome.cost:.6g}"
    why = f"{cluster.scheduler_address}: the scheduler was lost; go on with --resume --session {tmp_path / 's'}"
    assert str(failed.value) == f"tune: interrupted after 16 of 40 trials, {best}: {why}"
    again = tune(turntable(), folder=tmp_path / "s", resume=True)
    assert again.trials == tune(turntable(), **GIVEN).trials


class StandInClient:
    """Of a scheduler with one worker. results: what futures give in turn, errors raised; closes: at a submission."""

    def __init__(self, *results, closes=False):
        self.status, self.results, self.closes, self.submitted = "running", list(results), closes, 0

    def scheduler_info(self, n_workers):
        return {"workers": {"one": {}}}

    def submit(self, *arguments, **options):
        self.submitted += 1
        if self.closes:
            self.status = "closed"
            raise RuntimeError("Client is closed. Can't send update-graph message.")
        return self

    def add_done_callback(self, call):
        call(self)

    def result(self, timeout):
        found = self.results.pop(0)
        if isinstance(found, BaseException):
            raise found
        return found

    def cancel(self, futures, force):
        pass


def workers_of(client):
    workers = object.__new__(DaskWorkers)
    workers._address, workers._parts, workers._package, workers._client = "tcp://one:1", 0, None, client
    return workers


def test_a_client_that_is_closed_during_a_call_has_lost_its_scheduler():
    with pytest.raises(RunError, match=r"^tcp://one:1: the scheduler was lost$"):
        workers_of(StandInClient(closes=True)).evaluate(np.zeros((1, 1)))


def test_a_result_that_does_not_arrive_is_repeated():
    client = StandInClient(TimeoutError(), TimeoutError(), ["outcome"])
    assert (workers_of(client).evaluate(np.zeros((1, 1))), client.submitted) == (["outcome"], 3)
    with pytest.raises(RunError, match=r"a part of a batch was lost with its workers 3 times \(TimeoutError\)"):
        workers_of(StandInClient(*[TimeoutError()] * 3)).evaluate(np.zeros((1, 1)))


# --- what does not fit ----------------------------------------------------------------------------------


def test_a_scheduler_without_workers(monkeypatch):
    monkeypatch.setattr("cosim.apps.tuning.dask_workers.WORKERS", 0.2)
    with local_cluster(0) as empty:
        address = empty.scheduler_address
        with pytest.raises(RunError) as failed:
            tune(turntable(), dask=address, **GIVEN)
    assert str(failed.value) == f"{address}: it has no workers; start some with dask worker {address}"


def test_what_is_no_address():
    for address in ("localhost", "nix://127.0.0.1:1"):
        with pytest.raises(InputError) as refused:
            tune(turntable(), dask=address, **GIVEN)
        assert str(refused.value).startswith("--dask: ")
        assert str(refused.value).endswith("give an address such as tcp://host:8786")


def test_dask_is_not_installed(monkeypatch, said):
    monkeypatch.setitem(sys.modules, "distributed", None)
    said(raised(InputError, tune, turntable(), dask="tcp://127.0.0.1:1", **GIVEN))


def test_a_scheduler_that_cannot_be_reached_leaves_no_session(command: Command, monkeypatch, tmp_path):
    monkeypatch.setattr("cosim.apps.tuning.dask_workers.CONNECT", 0.5)
    address = f"tcp://127.0.0.1:{free_port()}"
    code, out, err = command("tune", "gains", "rig.yaml", "--parameter", "hold.kp=10..100", "--dask", address)
    what = "no scheduler answers; start one with dask scheduler, or correct the address"
    assert (code, out, err) == (1, "", [f"{address}: {what}"]) and not (tmp_path / "tuning").exists()
