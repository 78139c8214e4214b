"""Faults of emulated drives and their effect on a run: stop reason, time, motors off."""

from __future__ import annotations

import copy
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcap.reader import make_reader

from cosim import load_rig
from cosim.drivers.common.motor import FAULT_CAUSES
from cosim.errors import CosimError
from cosim.hardware.emulation.server import EmulationServer
from cosim.rig.emulate import emulation_of
from cosim.rig.run import Run, StoppedRun
from cosim.rig.sections.rig_spec import read_rig

from .families import PATIENCE, Case, addresses, cases, rig, section, write_rig

# a run decides by itself whether its drivers run in machine code
CASES = [case for case in cases() if case.line != "udp_multicast" and not case.compiled]
every = pytest.mark.parametrize("case", CASES, ids=str)
SAME_FRAMES = {"moteus-pty": "moteus-virtual"}  # an adapter carries the frames of the bus as text
# what motors and encoders do, and how drives say it
protocols = pytest.mark.parametrize("case", [case for case in CASES if str(case) not in SAME_FRAMES], ids=str)
# what the emulation and the run do for any family: one of each kind of line
lines = pytest.mark.parametrize("case", list({case.line: case for case in CASES}.values()), ids=str)
# longer than occasional stalls of this machine: a command is valid for three steps
STEP, STALE, WATCHDOG = 0.04, 0.3, 1.0  # s
SHORT = 0.6  # s, a watchdog that only switches off motors whose bus is silent: behind STALE
LASTS = 0.6  # s, a run that nothing ends
BEGINS = (1.5, 4.5, 13.5, 27.0)  # s after the start of the emulation: the next one on a machine that is slower
LATE = {"at": 0.0, "when": {"signal": "a/velocity", "above": 0.02}}  # once the run moves the joint
OFF = 1e-6  # N·m: some drives damp their motor after a watchdog trip, less and less while it slows down
SILENT = "has sent no feedback for"


class Scene:
    """A rig whose drives are emulated in a thread; its section `emulator` has the faults."""

    def __init__(
        self,
        case: Case,
        folder: Path,
        *faults: dict[str, Any],
        duration: float = LASTS,
        watchdog: float = WATCHDOG,
        **joint: Any,
    ) -> None:
        data = rig(section(case, folder, watchdog=watchdog), addresses(case))
        for name in data["joints"]:  # on a machine that stalls, drives lag behind their reference
            data["joints"][name]["limits"] |= {"tracking": 10.0, "frozen": 10.0}
        data["joints"]["a"]["limits"].update(joint)
        sine = {"type": "sine", "amplitude": 0.15, "frequency": 0.8}
        gains = {"kp": [0.05, 0.0125], "ki": 0.0, "kd": [0.02, 0.005]}
        data |= {
            "controllers": [{"name": "arm", "type": "pid", **gains, "trajectory": sine}],
            "guard": {"stale": STALE, "watchdog": PATIENCE},
            "schedule": {"step": STEP, "duration": duration, "blend": 0.1, "realtime": {"warm_up": 60}},
        }
        self.rig = load_rig(write_rig(folder / "rig.yaml", data))
        there = {**copy.deepcopy(data), "controllers": [], "schedule": {"step": 1e-3}}
        for name in there["joints"]:
            for limit in ("tracking", "frozen"):
                there["joints"][name]["limits"].pop(limit)
        there["emulator"] = {**data["emulator"], "faults": list(faults)}
        self.messages: list[str] = []
        self.emulation: EmulationServer = emulation_of(
            read_rig(write_rig(folder / "device.yaml", there)), report=self.messages.append
        )
        self.record = folder / "run.mcap"

    @contextmanager
    def served(self) -> Iterator[None]:
        thread = threading.Thread(target=self.emulation.serve)
        self.emulation.open()
        thread.start()
        try:
            yield
        finally:
            self.emulation.stopped = True
            thread.join(PATIENCE)
            self.emulation.close()

    def run(self, record: bool = False) -> Run:
        """Finished or stopped; the motors are off afterwards, at the latest by their watchdog."""
        with self.served():
            try:
                run = self.rig.run(record=self.record if record else None)
            except StoppedRun as stopped:
                run = stopped.run
            steps, motors = self.emulation.steps, self.emulation.motors.motors
            most = steps + round(PATIENCE * 1e3)
            while any(abs(motor.requested) > OFF for motor in motors):
                assert self.emulation.steps < most, [motor.requested for motor in motors]
                time.sleep(0.002)
            steps = self.emulation.steps + 30
            while self.emulation.steps < steps:
                assert not any(abs(motor.requested) > OFF for motor in motors)
                time.sleep(0.002)
        return run


def silence(run: Run) -> None:
    """The run ended in the first tick in which the feedback was too old."""
    assert SILENT in run.fault and "guard.stale; check its power, its cable and its bus" in run.fault, run.fault
    joint = run.fault.split("'")[1]
    age = run[f"{joint}/age"]
    assert age[-1] > STALE
    assert (age[:-1] <= STALE).all()


def undisturbed(scene: Scene, run: Run) -> None:
    """Nothing ended the run but the machine: drives without the CPU are silent or late, and report no fault."""
    assert run.fault == "" or (scene.emulation.clock_slip_ns and " reports " not in run.fault), run.fault


def reported(run: Run, joint: str = "a") -> None:
    """A drive reported its fault, and there is a fix."""
    assert f"the drive of joint '{joint}' reports " in run.fault, run.fault
    assert run.fault.endswith(("; fix the cause, then run with --clear-faults", "; this stop clears the fault")), (
        run.fault
    )


@every
@pytest.mark.parametrize("kind", ["duplicate", "some dropped, others late"])
def test_frequent_errors_of_a_connection_do_not_end_a_run(case, tmp_path, kind):
    faults = {
        "duplicate": [{"kind": "duplicate"}],
        "some dropped, others late": [{"kind": "drop", "duration": 0.03}, {"kind": "delay", "delay": 0.003}],
    }[kind]
    scene = Scene(case, tmp_path, *({**fault, **LATE} for fault in faults))
    run = scene.run()
    if kind == "duplicate" and str(case) == "odrive-pty":
        assert run.fault  # answers are identified by their order only: others are ignored
        return
    undisturbed(scene, run)
    if run.fault:
        return
    assert len(run.t) == round(LASTS / STEP) + 1
    assert np.ptp(run["a/position"]) > 0.01  # blocked emulated drives have clock slip
    assert len(scene.messages) == sum("duration" in fault for fault in faults) + len(faults)


@every
@pytest.mark.parametrize("kind", ["drop", "power_loss", "delay"])
def test_silence_ends_a_run_when_feedback_is_too_old(case, tmp_path, kind):
    keys = {"delay": 3.0} if kind == "delay" else {}
    scene = Scene(case, tmp_path, {"kind": kind, **LATE, **keys}, duration=10.0, watchdog=SHORT)
    silence(scene.run())
    assert len(scene.messages) == 1 and kind.replace("_", " ") in scene.messages[0]


@every
def test_bus_off_ends_a_run_immediately_where_the_connection_can_signal_it(case, tmp_path):
    scene = Scene(case, tmp_path, {"kind": "bus_off", **LATE}, duration=10.0, watchdog=SHORT)
    run = scene.run()
    if case.line == "pty":
        silence(run)
    else:
        assert "bus off: the controller counted too many errors; check wiring, termination and bit rate" in run.fault
        assert run["a/age"][-1] <= STALE
    assert len(scene.messages) == 1 and "bus off" in scene.messages[0]


@lines
def test_silence_at_a_time(case, tmp_path):
    for at in BEGINS:
        folder = tmp_path / f"{at:g}"
        folder.mkdir()
        try:
            run = Scene(case, folder, {"kind": "drop", "at": at}, duration=60.0, watchdog=SHORT).run()
        except CosimError:  # this machine was so slow that the drives were silent before the run
            continue
        return silence(run)
    raise AssertionError(f"no run has begun {BEGINS[-1]:g} s after the drives")


@protocols
@pytest.mark.parametrize("cause", FAULT_CAUSES)
def test_fault_cause_of_a_motor_ends_a_run_with_its_name(case, tmp_path, cause):
    scene = Scene(case, tmp_path, {"kind": "motor_fault", "joint": "a", "cause": cause, **LATE}, duration=10.0)
    run = scene.run()
    reported(run)
    words = {
        "overtemperature": ("temperature", "overheating"),
        "overcurrent": ("current", "overload", "motor driver"),
        "undervoltage": ("voltage",),
        "encoder": ("encoder", "sensor", "estimate"),
    }[cause]
    assert any(word in run.fault.lower() for word in words), run.fault


@every
def test_power_that_dips_ends_a_run(case, tmp_path):
    run = Scene(case, tmp_path, {"kind": "power_loss", **LATE, "duration": 0.03}, duration=10.0).run()
    assert " reports " in run.fault, run.fault
    assert "; " in run.fault.partition(" reports ")[2]


@protocols
def test_an_encoder_that_jumps_ends_a_run(case, tmp_path):
    fault = {"kind": "encoder_jump", "joint": "a", "size": 0.5, **LATE}
    run = Scene(case, tmp_path, fault, duration=10.0).run()
    assert "joint 'a' jumped by" in run.fault and "check its encoder and its supply" in run.fault, run.fault
    off = float(run.fault.partition("jumped by ")[2].split()[0])
    assert 0.3 < off < 0.7


@protocols
def test_an_encoder_without_numbers_ends_a_run(case, tmp_path):
    run = Scene(case, tmp_path, {"kind": "encoder_nan", "joint": "a", **LATE}, duration=10.0).run()
    assert run.fault.partition(": ")[2].startswith(("joint 'a': ", "the drive of joint 'a' reports ")), run.fault
    assert any(word in run.fault for word in ("encoder", "sensor")) and "; " in run.fault, run.fault


@protocols
def test_an_encoder_that_freezes_ends_a_run_that_tracks(case, tmp_path):
    fault = {"kind": "encoder_freeze", "joint": "a", **LATE}
    run = Scene(case, tmp_path, fault, duration=10.0, tracking=0.1).run()
    assert "joint 'a'" in run.fault and "reference" in run.fault, run.fault


@every
def test_what_drives_say_unasked_may_be_missed(case, tmp_path):
    """Missing heartbeats are detected by drivers that monitor them."""
    scene = Scene(case, tmp_path, {"kind": "stale_heartbeat", **LATE}, duration=1.5)
    run = scene.run()
    if str(case) == "odrive-virtual" and " reports " in run.fault:
        assert "no heartbeat for more than 0.5 s" in run.fault
    else:
        undisturbed(scene, run)
        assert run.fault or str(case) != "odrive-virtual"


@every
def test_bits_that_turn_over_in_every_item_end_a_run(case, tmp_path):
    """With checksums damaged items are lost; without, any value or fault may result."""
    run = Scene(case, tmp_path, {"kind": "corrupt", **LATE}, duration=3.0).run()
    assert run.fault
    if str(case) in ("dynamixel-pty", "odrive-pty"):
        silence(run)


@lines
def test_the_cause_is_in_the_recording(case, tmp_path):
    scene = Scene(case, tmp_path, {"kind": "motor_fault", "joint": "a", **LATE}, duration=10.0)
    run = scene.run(record=True)
    reported(run)
    with open(scene.record, "rb") as file:
        found = [json.loads(m.data) for s, _, m in make_reader(file).iter_messages() if s.name == "foxglove.Log"]
    assert run.fault in [event["message"] for event in found]
