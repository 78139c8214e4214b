"""Whole runs in real time, controlled through their sockets by real clients, and repeated from what they recorded."""

import os
import signal
import socket

import numpy as np
import pytest

from cosim.core.errors import InputError, RunError
from cosim.execution.remote import control_link
from cosim.execution.remote.control_link import ENDED, HANGS
from cosim.output.client import subscribe
from cosim.rig.rerun import rerun
from cosim.rig.rig import Rig
from cosim.rig.run.run import StoppedRun
from cosim.rig.run.run_recorder import RunRecorder
from tests.kit.processes import child, until
from tests.kit.refusals import raised
from tests.kit.running import Running

BODY = {"mass": 1.0, "com": [0.2, 0, 0], "inertia": [0.01, 0.02, 0.02], "axis": [0, 1, 0]}
ARM = {
    "name": "arm",
    "mechanism": {
        "bodies": [
            {"name": "upper", "joint": "shoulder", **BODY},
            {"name": "fore", "parent": "upper", "joint": "elbow", "origin": {"xyz": [0.4, 0, 0]}, **BODY},
        ]
    },
    "joints": {"all": {"actuator": {"type": "ideal"}, "limits": {"velocity": 5}}},
    "guard": {"deceleration": 4},
    "controllers": [
        {
            "name": "hold",
            "type": "pd_gravity",
            "kp": 100,
            "kd": [5, 3],
            "trajectory": {"type": "sine", "amplitude": 0.2, "frequency": "1 Hz"},
        }
    ],
    "schedule": {"step": "1 ms", "duration": 60, "realtime": {"warm_up": "0 s"}},
    "telemetry": {"control_timeout": 0.5},
}


def arm(folder, **telemetry):
    endpoint = f"ipc://{folder}/control"
    return Rig.from_dict({**ARM, "telemetry": {**ARM["telemetry"], "control": endpoint, **telemetry}})


def wait_for(client, state, tick=0):
    def reached():
        status = client.status()
        return status if status["state"] == state and status["tick"] >= tick else None

    return until(reached)


def test_what_a_client_changes_is_recorded_and_can_be_repeated_to_the_bit(tmp_path):
    running = Running(arm(tmp_path), wait=True, record=tmp_path / "run.mcap")
    with running.client() as client, client.control():
        assert client.status()["state"] == "waiting"
        assert client.set({"hold.kd": 4}) == 0
        client.start()
        wait_for(client, "running", 50)
        first = client.set({"hold.kp": 60, "hold.kd": 2})
        at = client.pause()
        assert (client.status()["state"], client.status()["tick"]) == ("paused", at)
        for ticks in (3, 4):
            at = client.step(ticks)
            assert client.status()["tick"] == at
        client.set({"hold.kp": [80, 90]})
        client.resume()
        client.marker("halfway")
        wait_for(client, "running", at + 60)
        client.stop()
    run = running.finished()
    assert run.fault == "" and abs(run["shoulder/reference_velocity"][-1]) < 1e-6
    assert [(change.tick, change.name) for change in run.changes] == [
        *((0, "hold.kd"), (first, "hold.kp"), (first, "hold.kd"), (at, "hold.kp")),
        (run.changes[-1].tick, "controlled_stop"),
    ]
    names = [event.name for event in run.events]
    assert "hold.kp = [80, 90] (was 60), set by 'tuner'" in names and "marker by 'tuner': halfway" in names
    assert names[-1] == "stopped by 'tuner'"
    again = rerun(tmp_path / "run.mcap")
    assert again.difference is None and again.changes == run.changes
    without = Rig.from_dict({**ARM, "schedule": {"step": "1 ms", "duration": float(run.t[-1])}, "telemetry": {}}).run()
    assert not np.array_equal(without["elbow/position"], run["elbow/position"])


def test_a_subscriber_sees_the_states_of_a_run(tmp_path):
    rig = arm(tmp_path, publish=f"ipc://{tmp_path}/stream", control_timeout=60)
    running = Running(rig, wait=True, duration=0.2)
    with running.client() as client, subscribe(client.status()["stream"]) as subscriber:
        client.take()

        def seen(state):
            subscriber.receive(0.05)
            return subscriber.schema and subscriber.schema["state"] == state

        until(lambda: seen("waiting"))
        client.set({"hold.kp": 33})
        until(lambda: seen("waiting") and subscriber.schema["parameters"]["hold.kp"]["value"] == [33.0, 33.0])
        client.start()
        until(lambda: seen("ended"))
    assert running.finished().fault == ""


def test_an_emergency_stop_ends_the_run_within_its_tick(tmp_path):
    running = Running(arm(tmp_path))
    with running.client() as other, running.client("watcher") as watcher, other.control():
        wait_for(watcher, "running", 30)
        watcher.estop()
    stopped = running.finished()
    assert isinstance(stopped, StoppedRun)
    assert stopped.run.fault == f"emergency stop by 'watcher' after tick {len(stopped.run.t) - 1}"
    assert abs(stopped.run["shoulder/reference_velocity"][-1]) > 1e-3  # not a controlled one


# --- control that is lost ---


@pytest.mark.parametrize("lost", ["continue", "rest"])
def test_what_happens_when_control_is_lost_is_the_choice_of_the_rig(tmp_path, lost):
    running = Running(arm(tmp_path, control_lost=lost))
    what = "control by 'tuner' was lost: its heartbeat ended"
    with running.client() as client, running.client("watcher") as watcher:
        wait_for(client, "running")
        client.take()
        if lost == "continue":
            until(lambda: watcher.status()["holder"] is None)
            wait_for(watcher, "running", watcher.status()["tick"] + 20)
            client.take()
            client.stop()
        run = running.finished()
    if lost == "rest":
        assert run.run.fault.startswith(what) and abs(run.run["shoulder/reference_velocity"][-1]) < 1e-6
    else:
        assert run.fault == "" and what in [event.name for event in run.events]


# state of the run, whether a client holds control, what the rig chooses, and what happens to the process of the socket
# -> what is said
LOSSES = {
    "nobody in control": ("running", False, "rest", signal.SIGKILL, f"{ENDED}; no further commands are possible"),
    "the run goes on": ("running", True, "continue", signal.SIGKILL, f"control by 'tuner' was lost: {ENDED}"),
    "the run stops": ("running", True, "rest", signal.SIGKILL, f"control by 'tuner' was lost: {ENDED} after tick"),
    "it hangs": ("running", False, "rest", signal.SIGSTOP, f"{HANGS}; no further commands are possible"),
    "nobody can start": ("waiting", False, "rest", signal.SIGKILL, f"{ENDED}: nobody can start the run before the"),
    "it hangs before": ("waiting", False, "rest", signal.SIGSTOP, f"{HANGS}: nobody can start the run before the"),
    "nobody can resume": ("paused", True, "continue", signal.SIGKILL, f"{ENDED}: nobody can resume the run, which was"),
}


@pytest.mark.parametrize("case", LOSSES)
def test_the_loss_of_the_control_process(tmp_path, monkeypatch, case):
    """A run that goes on is ended by its user when it has noticed."""
    state, holds, lost, number, what = LOSSES[case]
    monkeypatch.setattr(control_link, "SILENCE", 0.2)
    noted, note = [], RunRecorder.note
    monkeypatch.setattr(RunRecorder, "note", lambda *given: (noted.append(given[2]), note(*given)))

    def leave(status):
        if any(text.startswith(what) for text in noted):
            raise KeyboardInterrupt

    running = Running(arm(tmp_path, control_lost=lost), wait=state == "waiting", progress=leave)
    with running.client() as client:
        wait_for(client, "waiting" if state == "waiting" else "running")
        if holds:
            client.take()
        if state == "paused":
            client.pause()
        os.kill(child(os.getpid(), "cosim.execution.remote.control_process"), number)
    ended = running.finished()
    if state == "waiting":
        assert str(ended).endswith(f"{what} first tick")
        return
    run = ended.run if isinstance(ended, StoppedRun) else ended
    if case in ("the run stops", "nobody can resume"):
        assert run.fault.startswith(what) and run.fault.endswith(f" after tick {len(run.t) - 1}")
    else:
        assert what in [event.name for event in run.events] and run.fault.startswith("interrupted")
    if state == "running":
        assert abs(run["shoulder/reference_velocity"][-1]) < 1e-6


# --- commands ---


@pytest.mark.parametrize(
    ("settings", "keys"),
    [({"realtime": "no"}, {}), ({"control": None}, {"wait": True})],
    ids=["not in real time", "without a socket"],
)
def test_what_cannot_be_controlled_is_refused(tmp_path, said, settings, keys):
    telemetry = {"control": settings.get("control", f"ipc://{tmp_path}/control")}
    schedule = {"step": "1 ms", "duration": 1} if "realtime" in settings else ARM["schedule"]
    telemetry = {key: value for key, value in telemetry.items() if value}
    said(raised(InputError, lambda: Rig.from_dict({**ARM, "schedule": schedule, "telemetry": telemetry}).run(**keys)))


MISTAKES = [
    ("set", "hold.kp"),
    ("set", "hold.kp=-5"),
    ("set", "hold.kq=5"),
    ("set", "hold.kp=3 kg", "hold.kd=2 s"),
    ("set", "hold.kp=3", "hold.kp=4"),
    ("get", "hold.kq"),
]


def test_commands_for_a_run_elsewhere(tmp_path, command, said):
    """Mistakes are a line each, and the run goes on."""
    pid = {**ARM["controllers"][0], "type": "pid", "ki": 1}
    endpoint = f"ipc://{tmp_path}/control"
    rig = Rig.from_dict({**ARM, "controllers": [pid], "telemetry": {"control": endpoint, "control_timeout": 60}})
    running = Running(rig, wait=True)

    def cosim(*words):
        return command("live", *words, "--connect", endpoint)

    with running.client("holder") as client:
        wait_for(client, "waiting")
        before = client.get()
        with client.control():
            with pytest.raises(RunError, match="pause: the run has not started; start it first"):
                client.pause()
            client.start()
            for words in (("set", "hold.kp=5"), ("stop",)):
                code, out, err = cosim(*words)
                assert (code, out) == (1, "")
                said(err)
        for words in MISTAKES:
            code, out, err = cosim(*words)
            assert (code, out) == (2, "")
            said(err)
        assert client.get() == before
        assert "∞, ∞" in cosim("get", "hold.integral_limit")[1]
        code, out, err = cosim("set", "hold.kp=70", "hold.kd=2 N*m*s/rad", "hold.integral_limit=3")
        assert (code, err) == (0, []) and "hold.kp = 70, hold.kd = 2 N*m*s/rad" in out
        fixed = cosim("get", "hold.kp/elbow", "mechanism.fore.com", "hold.trajectory.phase", "hold.tracking_time")
        said(fixed[1].splitlines())
        assert "hold.kp" in cosim("get")[1] and "70, 70" in cosim("get", "hold.kp")[1]
        assert client.get("hold.integral_limit") == {"hold.integral_limit": [3.0, 3.0]}
    code, out, err = cosim("stop")
    assert (code, err) == (0, []) and out.startswith("stopped before tick ")
    run = running.finished()
    assert run.fault == "" and run.changes[-1].name == "controlled_stop"


@pytest.mark.parametrize("option", ["telemetry", "control"])
def test_a_port_in_use_is_one_line_before_the_run(command, said, option):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        endpoint = f"tcp://127.0.0.1:{other.getsockname()[1]}"
        said(
            command.refuses("run", "rig.yaml", f"--{option}", endpoint, "--realtime", "--duration", "0.1"),
            r"(?<=127.0.0.1:)\d+",
        )
