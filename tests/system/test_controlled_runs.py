"""Whole runs in real time, controlled through their sockets by real clients, and repeated from what they recorded."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
import yaml

from cosim.client import subscribe
from cosim.errors import InputError, RunError
from cosim.remote import control_link
from cosim.remote.control_link import ENDED, HANGS
from cosim.rig import Rig
from cosim.rig.rerun import rerun
from cosim.rig.run import StoppedRun
from tests.kit.processes import child
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
    while (status := client.status())["state"] != state or status["tick"] < tick:
        time.sleep(0.01)
    return status


def test_what_a_client_changes_is_recorded_and_can_be_repeated_to_the_bit(tmp_path):
    running = Running(arm(tmp_path), wait=True, record=tmp_path / "run.mcap")
    with running.client() as client, client.control():
        assert client.status()["state"] == "waiting"
        assert client.set({"hold.kd": 4}) == 0
        client.start()
        wait_for(client, "running", 50)
        first = client.set({"hold.kp": 60, "hold.kd": 2})
        at = client.pause()
        assert client.step(7) == at + 7
        client.set({"hold.kp": [80, 90]})
        client.resume()
        client.marker("halfway")
        wait_for(client, "running", at + 60)
        client.stop()
    run = running.finished()
    assert run.fault == "" and abs(run["shoulder/reference_velocity"][-1]) < 1e-6
    assert [(change.tick, change.name) for change in run.changes] == [
        *((0, "hold.kd"), (first, "hold.kp"), (first, "hold.kd"), (at + 7, "hold.kp")),
        (run.changes[-1].tick, "controlled_stop"),
    ]
    names = [event.name for event in run.events]
    assert "hold.kp = [80, 90] (was 60), set by 'tuner'" in names and "marker by 'tuner': halfway" in names
    assert names[-1] == "stopped by 'tuner'"
    again = rerun(tmp_path / "run.mcap")
    assert again.difference is None and again.changes == run.changes
    without = Rig.from_dict({**ARM, "schedule": {"step": "1 ms", "duration": float(run.t[-1])}, "telemetry": {}}).run()
    assert not np.array_equal(without["elbow/position"], run["elbow/position"])


def test_values_that_the_rig_could_not_have_are_refused_and_nothing_is_set(tmp_path):
    running = Running(arm(tmp_path), wait=True)
    with running.client() as client, client.control():
        before = client.get()
        with pytest.raises(InputError, match=r"set: parameter 'hold\.kp': must be at least 0"):
            client.set({"hold.kd": 1, "hold.kp": -1})
        with pytest.raises(InputError, match=r"set: parameter 'hold\.kq': there is no such parameter; did you mean"):
            client.set({"hold.kq": 1})
        with pytest.raises(RunError, match="pause: the run has not started; start it first"):
            client.pause()
        assert client.get() == before
        client.stop()
    assert str(running.finished()).endswith("stopped by 'tuner' before the first tick")


def test_a_subscriber_sees_the_states_of_a_run(tmp_path):
    running = Running(arm(tmp_path, publish=f"ipc://{tmp_path}/stream"), wait=True, duration=0.5)
    seen = []
    with running.client() as client, subscribe(client.status()["stream"]) as subscriber, client.control():
        while "waiting" not in seen:
            seen.append(state_of(subscriber))
        client.set({"hold.kp": 33})
        while subscriber.schema["parameters"]["hold.kp"]["value"] != [33.0, 33.0]:
            state_of(subscriber)
        client.start()
        while "ended" not in seen:
            seen.append(state_of(subscriber))
    assert running.finished().fault == "" and "running" in seen


def state_of(subscriber):
    subscriber.receive(0.05)
    return subscriber.schema["state"] if subscriber.schema else None


def test_an_emergency_stop_ends_the_run_within_its_tick(tmp_path):
    running = Running(arm(tmp_path))
    with running.client() as other, running.client("watcher") as watcher, other.control():
        wait_for(watcher, "running", 30)
        watcher.estop()
    stopped = running.finished()
    assert isinstance(stopped, StoppedRun)
    assert stopped.run.fault == f"emergency stop by 'watcher' after tick {len(stopped.run.t) - 1}"
    assert abs(stopped.run["shoulder/reference_velocity"][-1]) > 1e-3  # not a controlled one


@pytest.mark.parametrize("lost", ["continue", "rest"])
def test_what_happens_when_control_is_lost_is_the_choice_of_the_rig(tmp_path, lost):
    running = Running(arm(tmp_path, control_lost=lost))
    with running.client() as client:
        wait_for(client, "running")
        client.take()
        what = "control by 'tuner' was lost: its heartbeat ended"
        if lost == "rest":
            run = running.finished().run
            assert run.fault.startswith(what) and abs(run["shoulder/reference_velocity"][-1]) < 1e-6
            return
        time.sleep(1.0)  # in silence
        assert client.status()["holder"] is None
        wait_for(client, "running", client.status()["tick"] + 50)
        client.take()
        client.stop()
    run = running.finished()
    assert run.fault == "" and what in [event.name for event in run.events]


def test_the_run_goes_on_when_the_control_process_dies(tmp_path):
    running = Running(arm(tmp_path), duration=1.5)
    with running.client() as client:
        wait_for(client, "running")
        kill_control_process()
    run = running.finished()
    assert run.fault == "" and len(run.t) == 1501
    assert f"{ENDED}; no further commands are possible" in [event.name for event in run.events]


def kill_control_process(number=signal.SIGKILL):
    os.kill(child(os.getpid(), "cosim.remote.control_process"), number)


@pytest.mark.parametrize("lost", ["continue", "rest"])
def test_control_is_lost_with_the_control_process_too(tmp_path, lost):
    running = Running(arm(tmp_path, control_lost=lost), duration=2.0)
    with running.client() as client:
        wait_for(client, "running")
        client.take()
        kill_control_process()
    what, run = f"control by 'tuner' was lost: {ENDED}", running.finished()
    if lost == "rest":
        assert run.run.fault == f"{what} after tick {len(run.run.t) - 1}"
        assert abs(run.run["shoulder/reference_velocity"][-1]) < 1e-6
    else:
        assert run.fault == "" and what in [event.name for event in run.events]


@pytest.mark.parametrize(("number", "why"), [(signal.SIGKILL, ENDED), (signal.SIGSTOP, HANGS)])
def test_a_run_that_only_a_client_could_start_ends_with_the_control_process(tmp_path, monkeypatch, number, why):
    monkeypatch.setattr(control_link, "SILENCE", 0.2)
    running = Running(arm(tmp_path), wait=True)
    with running.client() as client:
        wait_for(client, "waiting")
        kill_control_process(number)
    assert str(running.finished()).endswith(f"{why}: nobody can start the run before the first tick")


def test_a_run_that_nobody_controls_goes_on_when_the_control_process_hangs(tmp_path, monkeypatch):
    monkeypatch.setattr(control_link, "SILENCE", 0.2)
    running = Running(arm(tmp_path), duration=2.0)
    with running.client() as client:
        wait_for(client, "running")
        kill_control_process(signal.SIGSTOP)
    run = running.finished()
    assert run.fault == "" and f"{HANGS}; no further commands are possible" in [event.name for event in run.events]


def test_a_paused_run_ends_with_the_control_process(tmp_path):
    running = Running(arm(tmp_path))
    with running.client() as client:
        wait_for(client, "running")
        client.take()
        client.pause()
        kill_control_process()
    run = running.finished().run
    assert run.fault == f"{ENDED}: nobody can resume the run, which was paused after tick {len(run.t) - 1}"


@pytest.mark.parametrize(
    ("settings", "keys", "message"),
    [
        ({"realtime": "no"}, {}, "--control: only a run in real time can be controlled; add --realtime or take it out"),
        ({"control": None}, {"wait": True}, "--wait: nobody could start this run; add --control"),
    ],
)
def test_what_cannot_be_controlled_is_refused(tmp_path, settings, keys, message):
    telemetry = {"control": settings.get("control", f"ipc://{tmp_path}/control")}
    schedule = {"step": "1 ms", "duration": 1} if "realtime" in settings else ARM["schedule"]
    telemetry = {key: value for key, value in telemetry.items() if value}
    with pytest.raises(InputError) as caught:
        Rig.from_dict({**ARM, "schedule": schedule, "telemetry": telemetry}).run(**keys)
    assert str(caught.value) == message


def test_commands_for_a_run_elsewhere(tmp_path):
    endpoint = f"ipc://{tmp_path}/control"
    running = Running(arm(tmp_path))

    def cosim(*words):
        command = [sys.executable, "-m", "cosim", *words, "--connect", endpoint]
        return subprocess.run(command, capture_output=True, text=True)

    with running.client() as client:
        wait_for(client, "running")
    done = cosim("set", "hold.kp=70", "hold.kd=2 N*m*s/rad")
    assert done.returncode == 0 and done.stdout.endswith("hold.kp = 70, hold.kd = 2 N*m*s/rad\n"), done.stderr
    assert "hold.kp" in cosim("get").stdout and "70, 70" in cosim("get", "hold.kp").stdout
    wrong = cosim("set", "hold.kp")
    assert (wrong.returncode, wrong.stderr) == (2, "cosim set: expected NAME=VALUE such as arm.kp=800, got 'hold.kp'\n")
    wrong = cosim("set", "hold.kp=-1")
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1) and "must be at least 0" in wrong.stderr
    done = cosim("stop")
    assert done.returncode == 0 and done.stdout.startswith("stopped before tick ")
    assert running.finished().fault == ""


def test_an_infinite_number_is_shown_as_such(tmp_path):
    control = {
        "name": "hold",
        "type": "pid",
        "kp": 100,
        "ki": 1,
        "kd": [5, 3],
        "trajectory": ARM["controllers"][0]["trajectory"],
    }
    endpoint = f"ipc://{tmp_path}/control"
    telemetry = {**ARM["telemetry"], "control": endpoint}
    running = Running(Rig.from_dict({**ARM, "controllers": [control], "telemetry": telemetry}))
    with running.client() as client:
        wait_for(client, "running")
        assert client.get("hold.integral_limit") == {"hold.integral_limit": [None, None]}
        command = [sys.executable, "-m", "cosim", "get", "hold.integral_limit", "--connect", endpoint]
        assert "∞, ∞" in subprocess.run(command, capture_output=True, text=True, check=True).stdout
        with client.control():
            client.set({"hold.integral_limit": 3.0})
            assert client.get("hold.integral_limit") == {"hold.integral_limit": [3.0, 3.0]}
            client.stop()
    assert running.finished().fault == ""


def test_the_state_that_follows_a_command_is_the_new_one(tmp_path):
    running = Running(arm(tmp_path))
    with running.client() as client:
        wait_for(client, "running", 50)
        with client.control():
            tick = client.pause()
            assert (client.status()["state"], client.status()["tick"]) == ("paused", tick)
            for _ in range(5):
                tick = client.step(7)
                assert client.status()["tick"] == tick
            client.stop()
    assert running.finished().fault == ""


def test_several_mistakes_are_a_line_each_and_a_name_is_given_once(tmp_path):
    running = Running(arm(tmp_path))
    endpoint = running.rig.run_spec.telemetry.control

    def refused(*words):
        command = [sys.executable, "-m", "cosim", "set", *words, "--connect", endpoint]
        done = subprocess.run(command, capture_output=True, text=True)
        return done.returncode, done.stderr.splitlines()

    with running.client() as client:
        wait_for(client, "running")
        code, lines = refused("hold.kp=3 kg", "hold.kd=2 s")
        assert code == 2 and len(lines) == 2 and all(line.startswith(f"{endpoint}: ") for line in lines)
        assert "'hold.kp'" in lines[0] and "'hold.kd'" in lines[1]
        assert refused("hold.kp=3", "hold.kp=4") == (2, ["cosim set: hold.kp is given twice; give each parameter once"])
        with client.control():
            client.stop()
    running.finished()


def test_mistakes_of_clients_are_one_line_and_the_run_goes_on(tmp_path):
    running = Running(arm(tmp_path))
    endpoint = running.rig.run_spec.telemetry.control

    def refused(*words):
        command = [sys.executable, "-m", "cosim", *words, "--connect", endpoint]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.stdout == ""
        return done.returncode, done.stderr.removeprefix(f"{endpoint}: ").rstrip("\n")

    with running.client("holder") as client:
        wait_for(client, "running")
        before = client.get()
        outside = "set: parameter 'hold.kp': must be at least 0 N*m/rad, is -5 N*m/rad"
        assert refused("set", "hold.kp=-5") == (2, outside)
        near = "set: parameter 'hold.kq': there is no such parameter; did you mean 'hold.kp'?"
        assert refused("set", "hold.kq=5") == (2, near)
        assert refused("get", "hold.kq") == (2, "get: there is no parameter 'hold.kq'; did you mean 'hold.kp'?")
        with client.control():
            held = "take: control is held by 'holder'; wait until it is released, or take it with force"
            assert refused("set", "hold.kp=5") == (1, held) == refused("stop")
        assert client.get() == before
        wait_for(client, "running", client.status()["tick"] + 50)
        client.take()
        client.stop()
    run = running.finished()
    assert run.fault == "" and [change.name for change in run.changes] == ["controlled_stop"]


@pytest.mark.parametrize(("option", "what"), [("telemetry", "publish telemetry"), ("control", "serve control")])
def test_a_port_in_use_is_one_line_before_the_run(tmp_path, option, what):
    (tmp_path / "arm.yaml").write_text(yaml.safe_dump({**ARM, "telemetry": {}}))
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        endpoint = f"tcp://127.0.0.1:{other.getsockname()[1]}"
        words = ["run", str(tmp_path / "arm.yaml"), f"--{option}", endpoint, "--duration", "0.1"]
        done = subprocess.run([sys.executable, "-m", "cosim", *words], capture_output=True, text=True)
    fix = "stop the other program or give another port"
    assert done.stderr == f"{endpoint}: cannot {what}: Address already in use; {fix}\n"
    assert (done.returncode, done.stdout) == (2, "")
