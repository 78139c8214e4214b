"""Faults of emulated drives and their effect on a run: stop reason, time, motors off. In simulated time with all
families; in real time with one on each kind of line."""

import json
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from mcap.reader import make_reader

from cosim import load_rig
from cosim.apps.scenario.stepped_engine import OFF
from cosim.execution.stop_cause import cause_of
from cosim.plugins.drivers.common.motor import FAULT_CAUSES
from cosim.rig.run.run import StoppedRun
from tests.kit.emulated import PATIENCE, emulated

from .families import Case, adapters, addresses, rig, section, stepped_cases, write_rig
from .marks import IN_PYTHON, drivers, in_memory, in_turn, over
from .shared_rigs import RunWithFaults, SharedRig

A_BUS_IN_REAL_TIME = [case for case in IN_PYTHON if case.line != "pty"][:1]
# of what the guard finds, whichever family measures it
FIRST_ON_LINES = tuple({case.line: case for case in reversed(stepped_cases())}.values())
OF_EACH_LINE = (*FIRST_ON_LINES, *adapters())
ONE_OF_EACH_LINE = over(*FIRST_ON_LINES)
# a run decides by itself whether its drivers run in machine code
ON_LINES = (*OF_EACH_LINE, *IN_PYTHON)
BY_CHECKSUM = ("dynamixel", "odrive")  # on a serial line: whose damaged items are lost
SPOILT = [
    case for case in stepped_cases() if case in OF_EACH_LINE or (case.line == "pty" and case.family in BY_CHECKSUM)
]
STALE = 0.31  # s
STEP, REAL_STEP = 0.02, 0.04  # s, in real time longer than occasional stalls: a command is valid for three steps
WATCHDOG = 1.0  # s, it only switches off motors whose bus is silent: far behind STALE
LASTS, MOST = 1.0, 10.0  # s: a run that nothing ends, and one that something ends
LATE = {"at": 0.0, "when": {"signal": "a/velocity", "above": 0.02}}  # once the run moves the joint


def sections(case: Case, folder: Path, tracking: float) -> dict[str, Any]:
    """Two joints that follow a sine, the first within an error of `tracking` [rad]."""
    data = rig(section(case, folder, watchdog=WATCHDOG), addresses(case))
    for name, most in (("a", tracking), ("b", 10.0)):
        data["joints"][name]["limits"] |= {"tracking": most, "frozen": 10.0}
    sine = {"type": "sine", "amplitude": 0.15, "frequency": 0.8}
    gains = {"kp": [0.05, 0.0125], "ki": 0.0, "kd": [0.02, 0.005]}
    controller = {"name": "arm", "type": "pid", **gains, "trajectory": sine}
    return data | {"controllers": [controller], "guard": {"stale": STALE}, "schedule": {"step": STEP, "blend": 0.1}}


@cache
def shared_rig_of(case: Case, tracking: float) -> SharedRig:
    return SharedRig(sections(case, Path(), tracking))


def run_of(
    case: Case, folder: Path, *faults: dict[str, Any], duration: float = MOST, tracking: float = 10.0
) -> RunWithFaults:
    """Finished or stopped; the motors are off afterwards, at the latest by their watchdog."""
    if case.stepped:
        return shared_rig_of(case, tracking).run(faults, duration)
    return run_in_real_time(case, folder, *faults, duration=duration)


def run_in_real_time(
    case: Case, folder: Path, *faults: dict[str, Any], duration: float = MOST, record: Path | None = None
) -> RunWithFaults:
    """On a machine that stalls, drives lag behind their reference."""
    here, there = (sections(case, folder, tracking=10.0) for _ in range(2))
    here["guard"]["watchdog"] = PATIENCE
    here["schedule"] |= {"step": REAL_STEP, "duration": duration, "realtime": {"warm_up": 60}}
    for joint in there["joints"].values():
        del joint["limits"]["tracking"], joint["limits"]["frozen"]
    there |= {"drivers": here["drivers"], "controllers": [], "schedule": {"step": 1e-3}}
    there["emulator"]["faults"] = list(faults)
    messages: list[str] = []
    with emulated(write_rig(folder / "device.yaml", there), report=messages.append) as emulation:
        try:
            run = load_rig(write_rig(folder / "rig.yaml", here)).run(record=record)
        except StoppedRun as stopped:
            run = stopped.run
        steps, motors = emulation.steps, emulation.motors.motors
        most = steps + round(PATIENCE * 1e3)
        while any(abs(motor.requested) > OFF for motor in motors):
            assert emulation.steps < most, [motor.requested for motor in motors]
            time.sleep(0.002)
        steps = emulation.steps + 30
        while emulation.steps < steps:
            assert not any(abs(motor.requested) > OFF for motor in motors)
            time.sleep(0.002)
    return RunWithFaults(run.fault, {name: run[name] for name in run.units}, messages, seen=run)


def silence(run: RunWithFaults) -> None:
    """The run ended in the first tick in which the feedback was too old."""
    word, joint = cause_of(run.fault)
    assert word == "stale" and "guard.stale; check its power, its cable and its bus" in run.fault, run.fault
    age = run[f"{joint}/age"]
    assert age[-1] > STALE
    assert (age[:-1] <= STALE).all()


def reported(run: RunWithFaults) -> None:
    """The drive of joint a reported its fault soon, and there is a fix."""
    assert cause_of(run.fault) == ("drive_fault", "a"), run.fault
    assert run.fault.endswith(("; fix the cause, then run with --clear-faults", "; this stop clears the fault"))
    assert run.reaction <= 0.125


@in_memory
def test_frequent_errors_of_a_connection_do_not_end_a_run(case, tmp_path):
    """Nor does what drives say unasked and is missed: missing heartbeats are detected by drivers that monitor them."""
    faults = [{"kind": "drop", "duration": 0.03}, {"kind": "delay", "delay": 0.003}, {"kind": "stale_heartbeat"}]
    double = {"kind": "duplicate"}
    if (case.family, case.line) == ("odrive", "pty"):  # answers are identified by their order only
        assert run_of(case, tmp_path, double | LATE, duration=LASTS).fault
    else:
        faults.append(double)
    run = run_of(case, tmp_path, *(fault | LATE for fault in faults), duration=LASTS)
    assert np.ptp(run["a/position"]) > 0.01
    assert len(run.messages) == len(faults) + 1
    if (case.family, case.line) == ("odrive", "virtual"):
        assert " reports " in run.fault and "no heartbeat for more than 0.5 s" in run.fault, run.fault
    else:
        assert run.fault == ""
        assert len(run.t) == round(LASTS / STEP) + 1


@in_turn("kind", ["drop", "power_loss", "delay"], ON_LINES)
def test_silence_ends_a_run_when_feedback_is_too_old(case, tmp_path, kind):
    keys = {"delay": 3.0} if kind == "delay" else {}
    run = run_of(case, tmp_path, {"kind": kind, **LATE, **keys})
    silence(run)
    assert run.reaction <= STALE + 2 * STEP
    assert len(run.messages) == 1 and kind.replace("_", " ") in run.messages[0]


@over(*OF_EACH_LINE, *A_BUS_IN_REAL_TIME)
def test_bus_off_ends_a_run_immediately_where_the_connection_can_signal_it(case, tmp_path):
    run = run_of(case, tmp_path, {"kind": "bus_off", **LATE})
    if case.line == "pty":
        silence(run)
    else:
        assert "bus off: the controller counted too many errors; check wiring, termination and bit rate" in run.fault
        assert cause_of(run.fault).word == "bus_off"
        assert run["a/age"][-1] <= STALE
        assert run.reaction <= 2 * STEP
    assert len(run.messages) == 1 and "bus off" in run.messages[0]


@in_turn("cause", FAULT_CAUSES, stepped_cases())
def test_a_fault_of_a_motor_ends_a_run(case, tmp_path, cause):
    """Each family names each cause: test_reports.py."""
    reported(run_of(case, tmp_path, {"kind": "motor_fault", "joint": "a", "cause": cause, **LATE}))


@in_memory
def test_power_that_dips_ends_a_run(case, tmp_path):
    run = run_of(case, tmp_path, {"kind": "power_loss", **LATE, "duration": 0.03})
    assert "; " in run.fault.partition(" reports ")[2], run.fault
    assert run.reaction <= 0.2 and run.off <= 0.15


@ONE_OF_EACH_LINE
def test_an_encoder_that_jumps_ends_a_run(case, tmp_path):
    run = run_of(case, tmp_path, {"kind": "encoder_jump", "joint": "a", "size": 0.5, **LATE})
    assert cause_of(run.fault) == ("jump", "a") and "check its encoder and its supply" in run.fault, run.fault
    assert run.reaction <= 2 * STEP
    assert 0.3 < float(run.fault.partition("jumped by ")[2].split()[0]) < 0.7


@drivers
def test_an_encoder_without_numbers_ends_a_run(case, tmp_path):
    run = run_of(case, tmp_path, {"kind": "encoder_nan", "joint": "a", **LATE})
    assert run.fault.partition(": ")[2].startswith(("joint 'a': ", "the drive of joint 'a' reports ")), run.fault
    assert any(word in run.fault for word in ("encoder", "sensor")) and "; " in run.fault, run.fault


@ONE_OF_EACH_LINE
def test_an_encoder_that_freezes_ends_a_run_that_tracks(case, tmp_path):
    run = run_of(case, tmp_path, {"kind": "encoder_freeze", "joint": "a", **LATE}, tracking=0.1)
    assert "joint 'a'" in run.fault and "reference" in run.fault, run.fault


@over(*SPOILT)
def test_bits_that_turn_over_in_every_item_end_a_run(case, tmp_path):
    """With checksums damaged items are lost; without, any value or fault may result."""
    run = run_of(case, tmp_path, {"kind": "corrupt", **LATE}, duration=3.0)
    assert run.fault
    if case.line == "pty" and case.family in BY_CHECKSUM:
        silence(run)


@over(IN_PYTHON[0])
def test_the_cause_is_in_the_recording(case, tmp_path):
    record = tmp_path / "run.mcap"
    run = run_in_real_time(case, tmp_path, {"kind": "motor_fault", "joint": "a", **LATE}, record=record)
    reported(run)
    with open(record, "rb") as file:
        found = [json.loads(m.data) for s, _, m in make_reader(file).iter_messages() if s.name == "foxglove.Log"]
    assert run.fault in [event["message"] for event in found]
