"""Symptoms in the bus traffic before a stop: connections that fail, drives that fall silent."""

from __future__ import annotations

import re

import pytest

from cosim.apps.post_mortem.traffic_symptoms import failures, silences, silent_in, traffic_symptoms
from cosim.execution.hardware.traffic.traffic_log import DriverCall, Fields, Passing, TrafficEntry
from cosim.output.traffic_messages import BusChannel
from cosim.plugins.drivers.transport import CanFrame
from cosim.rig.rig import load_rig
from cosim.rig.run.run import StoppedRun, open_recording
from tests.kit.emulated import emulated
from tests.rig.test_bus_recording import BUS, RIG, rig_of

MS = 1_000_000
START = 10**12  # of the run, on the clock
JOINTS = {(1, False): "a", (2, False): "c"}
ARM = BusChannel("arm", "moteus", "can0", ("a", "c"), True)
HAND = BusChannel("hand", "dynamixel", "port", ("b", "d"), False)


def call(k, *items):
    """The read of tick k with these received items."""
    begin = TrafficEntry(0, 0, START + k * MS, Passing.READ, Fields(), k * MS)
    return DriverCall(
        begin, tuple(TrafficEntry(0, 0, START + k * MS, Passing.RECEIVED, item, k * MS) for item in items), None
    )


def test_a_drive_that_falls_silent():
    frames = CanFrame(1, b""), CanFrame(2, b"")
    calls = [call(k, *frames[: 2 if k < 80 else 1]) for k in range(101)]
    (symptom,) = silences(ARM, calls, JOINTS)
    assert symptom.what == "bus of 'arm': the last answer of c, 21 ms before the stop; answers had come every 1 ms"
    assert (symptom.t, symptom.value, symptom.abnormal) == (pytest.approx(0.079), pytest.approx(0.021), True)
    assert silent_in(calls[-1], JOINTS) == ["c"] and silent_in(calls[0], JOINTS) == []
    assert not list(silences(ARM, calls[:82], JOINTS))  # 2 intervals


def test_on_a_serial_link_all_drives_are_one():
    calls = [*(call(k, b"\xff") for k in range(50)), call(100)]
    (symptom,) = silences(HAND, calls, {})
    assert symptom.what.startswith("bus of 'hand': the last answer of b, d, 51 ms before the stop")
    assert not list(silences(HAND, [calls[0], calls[-1]], {}))  # nothing to compare it with


def test_the_first_failure_of_a_connection():
    text = "ConnectionLost: the connection is lost (I/O error); check the cable and the power of the adapter"
    failed = call(7)._replace(entries=(TrafficEntry(0, 0, 0, Passing.SEND_FAILED, Fields(text), 7 * MS),))
    (symptom,) = failures(ARM, [call(1), failed, failed._replace(begin=call(9).begin)])
    assert symptom.t == pytest.approx(0.007) and symptom.what == f"bus of 'arm': {text.partition(': ')[2]}"
    assert not list(failures(ARM, [call(1)]))


def test_explain_has_the_traffic_of_a_run_that_was_stopped(command, tmp_path):
    """30 % of the packets of the Dynamixel drive are corrupted as it moves; they have a checksum. All answers of the
    others are lost from some tick on, until their feedback is stale. A run before it records no traffic."""
    faults = (
        "{kind: corrupt, driver: dynamixel, fraction: 0.3, at: 0, when: {signal: b/position, above: 1e-3}}",
        "{kind: power_loss, driver: moteus, at: 0, when: {signal: a/position, above: 0.05}}",
    )
    path = rig_of(tmp_path, RIG.replace("stale: 4 s", "stale: 1 s").replace("0.3 s", "60 s"))
    with emulated(path, "schedule.step=0.005", f"emulator.faults=[{', '.join(faults)}]"):
        load_rig(path).run(0.02, record=tmp_path / "plain.mcap")
        with pytest.raises(StoppedRun) as caught:
            load_rig(path, [BUS]).run(record=tmp_path / "run.mcap")
    assert open_recording(tmp_path / "plain.mcap").rig.hardware
    assert traffic_symptoms(str(tmp_path / "plain.mcap"), 0.02, 1.0) == []
    stopped = float(caught.value.run.t[-1])
    found = [symptom.what for symptom in traffic_symptoms(str(tmp_path / "run.mcap"), stopped, stopped)]
    (damaged,) = (what for what in found if "did not come or was damaged" in what)
    assert re.fullmatch(r"bus of 'dynamixel': an answer did not come or was damaged, the last one of \d+", damaged)
    code, out, _ = command("explain", tmp_path / "run.mcap", "--last", "10 s")
    silent = re.findall(r"bus of 'moteus': the last answer of (\w), ", out)
    assert (code, silent) == (0, ["a", "c"]), out
