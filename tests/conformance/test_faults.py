"""Faults of emulated drives and their effect on a run: stop reason, time, motors off. In simulated time with all
families; in real time with one on each kind of line."""

from __future__ import annotations

import copy
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcap.reader import make_reader

from cosim import load_rig
from cosim.drivers.common.motor import FAULT_CAUSES
from cosim.execution.stop_cause import cause_of
from cosim.hardware.emulation.server import EmulationServer
from cosim.rig.emulate import emulation_of
from cosim.rig.run import Run, StoppedRun
from cosim.rig.sections.rig_spec import read_rig
from cosim.scenario.stand import Stand
from cosim.scenario.stepped_engine import OFF, SteppedEngine

from .families import Case, addresses, rig, section, stepped_cases, write_rig
from .marks import IN_PYTHON, drivers, over, with_each
from .rules import PATIENCE

# a run decides by itself whether its drivers run in machine code
CASES = (*stepped_cases(), *IN_PYTHON)
STALE, WATCHDOG = 0.31, 1.0  # s
STEP, REAL_STEP = 0.02, 0.04  # s, in real time longer than occasional stalls: a command is valid for three steps
SHORT = 0.6  # s, a watchdog that only switches off motors whose bus is silent: behind STALE
LASTS = 0.6  # s, a run that nothing ends
LATE = {"at": 0.0, "when": {"signal": "a/velocity", "above": 0.02}}  # once the run moves the joint
SILENT = "has sent no feedback for"


@dataclass(frozen=True)
class SteppedRun:
    """A run in simulated time. reaction, off: time [s] from the beginning of the last fault to the stop, and from there
    until the motors were off."""

    fault: str
    t: np.ndarray
    signals: dict[str, np.ndarray]
    reaction: float
    off: float

    def __getitem__(self, name: str) -> np.ndarray:
        return self.signals[name]


class Scene:
    """A rig whose drives are emulated, in a thread or in simulated time; its section `emulator` has the faults."""

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
            "schedule": {"duration": duration, "blend": 0.1, "realtime": {"warm_up": 60}},
        }
        self.case, self.duration = case, duration
        self.step = data["schedule"]["step"] = STEP if case.stepped else REAL_STEP
        self.messages: list[str] = []
        self.path, self.record = folder / "rig.yaml", folder / "run.mcap"
        if case.stepped:
            data["emulator"]["faults"] = list(faults)
            write_rig(self.path, data)
            return
        write_rig(self.path, data)
        there = {**copy.deepcopy(data), "controllers": [], "schedule": {"step": 1e-3}}
        for name in there["joints"]:
            for limit in ("tracking", "frozen"):
                there["joints"][name]["limits"].pop(limit)
        there["emulator"] = {**data["emulator"], "faults": list(faults)}
        self.emulation: EmulationServer = emulation_of(
            read_rig(write_rig(folder / "device.yaml", there)), report=self.messages.append
        )

    def run(self, record: bool = False) -> Run | SteppedRun:
        """Finished or stopped; the motors are off afterwards, at the latest by their watchdog."""
        return self._stepped_run() if self.case.stepped else self._real_run(record)

    def _stepped_run(self) -> SteppedRun:
        stand, begun = Stand(read_rig(self.path), []), 0

        def report(what: str) -> None:
            nonlocal begun
            begun = engine.time.now()
            self.messages.append(what)

        engine = stand.engine
        assert isinstance(engine, SteppedEngine)
        engine.server.report = report
        try:
            stand.begin()
            rows, fault = stand.run(round(self.duration / self.step) + 1)
            reaction, off = (engine.time.now() - begun) * 1e-9, 0.0
            if fault:
                off = stand.time_until_off(PATIENCE)
                assert off is not None
                for _ in range(30):
                    engine.time.step(engine.server.due_ns)
                    assert not any(abs(motor.requested) > OFF for motor in engine.server.motors.motors)
            signals = stand.signals(rows)
        finally:
            stand.close()
        t = self.step * np.arange(len(rows))
        return SteppedRun(fault, t, {name: signals[:, k] for name, k in stand.names.items()}, reaction, off)

    def _real_run(self, record: bool) -> Run:
        with self._served():
            try:
                run = load_rig(self.path).run(record=self.record if record else None)
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

    @contextmanager
    def _served(self) -> Iterator[None]:
        thread = threading.Thread(target=self.emulation.serve)
        self.emulation.open()
        thread.start()
        try:
            yield
        finally:
            self.emulation.stopped = True
            thread.join(PATIENCE)
            self.emulation.close()


def silence(run: Run | SteppedRun) -> None:
    """The run ended in the first tick in which the feedback was too old."""
    assert SILENT in run.fault and "guard.stale; check its power, its cable and its bus" in run.fault, run.fault
    word, joint = cause_of(run.fault)
    assert word == "stale"
    age = run[f"{joint}/age"]
    assert age[-1] > STALE
    assert (age[:-1] <= STALE).all()


def reported(run: Run | SteppedRun, joint: str = "a", within: float = 0.125) -> None:
    """A drive reported its fault within this time [s], and there is a fix."""
    assert f"the drive of joint '{joint}' reports " in run.fault, run.fault
    assert cause_of(run.fault) == ("drive_fault", joint)
    assert run.fault.endswith(("; fix the cause, then run with --clear-faults", "; this stop clears the fault")), (
        run.fault
    )
    stopped_within(run, within)


def stopped_within(run: Run | SteppedRun, seconds: float) -> None:
    """After the fault began, as simulated time shows it."""
    if isinstance(run, SteppedRun):
        assert run.reaction <= seconds


@drivers
@pytest.mark.parametrize("kind", ["duplicate", "some dropped, others late"])
def test_frequent_errors_of_a_connection_do_not_end_a_run(case, tmp_path, kind):
    faults = {
        "duplicate": [{"kind": "duplicate"}],
        "some dropped, others late": [{"kind": "drop", "duration": 0.03}, {"kind": "delay", "delay": 0.003}],
    }[kind]
    scene = Scene(case, tmp_path, *({**fault, **LATE} for fault in faults))
    run = scene.run()
    if kind == "duplicate" and (case.family, case.line) == ("odrive", "pty"):
        assert run.fault  # answers are identified by their order only: others are ignored
        return
    assert run.fault == ""
    assert len(run.t) == round(LASTS / STEP) + 1
    assert np.ptp(run["a/position"]) > 0.01
    assert len(scene.messages) == sum("duration" in fault for fault in faults) + len(faults)


@with_each("kind", ["drop", "power_loss", "delay"], CASES)
def test_silence_ends_a_run_when_feedback_is_too_old(case, tmp_path, kind):
    keys = {"delay": 3.0} if kind == "delay" else {}
    scene = Scene(case, tmp_path, {"kind": kind, **LATE, **keys}, duration=10.0, watchdog=SHORT)
    run = scene.run()
    silence(run)
    stopped_within(run, STALE + 2 * STEP)
    assert len(scene.messages) == 1 and kind.replace("_", " ") in scene.messages[0]


@over(*(case for case in CASES if case.stepped or case.line != "pty"))
def test_bus_off_ends_a_run_immediately_where_the_connection_can_signal_it(case, tmp_path):
    scene = Scene(case, tmp_path, {"kind": "bus_off", **LATE}, duration=10.0, watchdog=SHORT)
    run = scene.run()
    if case.line == "pty":
        silence(run)
    else:
        assert "bus off: the controller counted too many errors; check wiring, termination and bit rate" in run.fault
        assert cause_of(run.fault).word == "bus_off"
        assert run["a/age"][-1] <= STALE
        stopped_within(run, 2 * STEP)
    assert len(scene.messages) == 1 and "bus off" in scene.messages[0]


@drivers
def test_silence_at_a_time(case, tmp_path):
    scene = Scene(case, tmp_path, {"kind": "drop", "at": 1.0}, duration=5.0, watchdog=SHORT)
    silence(scene.run())
    assert scene.messages[0].startswith("1.000 s  drop at ")


@with_each("cause", FAULT_CAUSES, CASES)
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


@drivers
def test_a_hot_winding_ends_a_run(case, tmp_path):
    fault = {"kind": "hot_winding", "joint": "b", "temperature": 150.0, **LATE}
    reported(Scene(case, tmp_path, fault, duration=10.0).run(), "b", within=0.2)


@drivers
def test_power_that_dips_ends_a_run(case, tmp_path):
    run = Scene(case, tmp_path, {"kind": "power_loss", **LATE, "duration": 0.03}, duration=10.0).run()
    assert " reports " in run.fault, run.fault
    assert "; " in run.fault.partition(" reports ")[2]
    stopped_within(run, 0.2)
    assert run.off <= 0.15


@drivers
def test_an_encoder_that_jumps_ends_a_run(case, tmp_path):
    fault = {"kind": "encoder_jump", "joint": "a", "size": 0.5, **LATE}
    run = Scene(case, tmp_path, fault, duration=10.0).run()
    assert "joint 'a' jumped by" in run.fault and "check its encoder and its supply" in run.fault, run.fault
    assert cause_of(run.fault) == ("jump", "a")
    stopped_within(run, 2 * STEP)
    off = float(run.fault.partition("jumped by ")[2].split()[0])
    assert 0.3 < off < 0.7


@drivers
def test_an_encoder_without_numbers_ends_a_run(case, tmp_path):
    run = Scene(case, tmp_path, {"kind": "encoder_nan", "joint": "a", **LATE}, duration=10.0).run()
    assert run.fault.partition(": ")[2].startswith(("joint 'a': ", "the drive of joint 'a' reports ")), run.fault
    assert any(word in run.fault for word in ("encoder", "sensor")) and "; " in run.fault, run.fault


@drivers
def test_an_encoder_that_freezes_ends_a_run_that_tracks(case, tmp_path):
    fault = {"kind": "encoder_freeze", "joint": "a", **LATE}
    run = Scene(case, tmp_path, fault, duration=10.0, tracking=0.1).run()
    assert "joint 'a'" in run.fault and "reference" in run.fault, run.fault


@drivers
def test_what_drives_say_unasked_may_be_missed(case, tmp_path):
    """Missing heartbeats are detected by drivers that monitor them."""
    run = Scene(case, tmp_path, {"kind": "stale_heartbeat", **LATE}, duration=1.5).run()
    if (case.family, case.line) == ("odrive", "virtual"):
        assert " reports " in run.fault and "no heartbeat for more than 0.5 s" in run.fault, run.fault
    else:
        assert run.fault == ""


@drivers
def test_bits_that_turn_over_in_every_item_end_a_run(case, tmp_path):
    """With checksums damaged items are lost; without, any value or fault may result."""
    run = Scene(case, tmp_path, {"kind": "corrupt", **LATE}, duration=3.0).run()
    assert run.fault
    if (case.family, case.line) in (("dynamixel", "pty"), ("odrive", "pty")):
        silence(run)


@over(IN_PYTHON[0])
def test_the_cause_is_in_the_recording(case, tmp_path):
    scene = Scene(case, tmp_path, {"kind": "motor_fault", "joint": "a", **LATE}, duration=10.0)
    run = scene.run(record=True)
    reported(run)
    with open(scene.record, "rb") as file:
        found = [json.loads(m.data) for s, _, m in make_reader(file).iter_messages() if s.name == "foxglove.Log"]
    assert run.fault in [event["message"] for event in found]
