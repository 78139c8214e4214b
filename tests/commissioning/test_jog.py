"""One joint is moved slowly under the guard, and stops at any doubt."""

import json
import math
import os
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cosim.apps.commissioning.jog_command import DEAD_MAN, JogPlan, decode, hold_names, jog, terminal_keys
from cosim.apps.commissioning.motion import HoldingLoop
from cosim.apps.commissioning.session import CommissioningSession, MotionBounds, fault_reason
from cosim.control.limits import CODES, LIMITS, NOT_FINITE, STALE
from cosim.core.errors import InputError, RunError
from cosim.core.types import COMMAND
from cosim.simulation.tick.tick_functions import GUARD_INPUTS, REACTION_INPUTS, REAL_GUARD_INPUTS

from .lockstep import Lockstep, arm

SPEED, STEP = math.radians(5.0), 0.002
DEG = math.radians(1.0)


class ScriptedKeys:
    """keys: number of the look -> keys that were pressed before it."""

    def __init__(self, keys: dict[int, list[str]]) -> None:
        self.keys, self.looks = keys, 0

    def poll(self) -> list[str]:
        self.looks += 1
        return self.keys.get(self.looks, [])


def session_of(lockstep: Lockstep) -> CommissioningSession:
    return CommissioningSession(lockstep.rig, "jog", lockstep.world)


@pytest.mark.parametrize("mode", ["effort", "velocity", "position"])
def test_a_joint_moves_by_a_given_way_and_the_others_stay_off(mode, tmp_path):
    # the loops of the emulated drives are for an inertia of this size at the drive
    lockstep = Lockstep(tmp_path, arm(**{"drivers.0.mode": mode, "drivers.0.joints.elbow.ratio": 2}))
    on = set()
    lockstep.world.each_step.append(lambda: on.update(n for n, motor in lockstep.motors.items() if motor.enabled))
    fastest = []
    lockstep.world.each_step.append(lambda: fastest.append(abs(lockstep.server.motors.plant.sample[1][1])))
    last = jog(session_of(lockstep), "elbow", JogPlan(SPEED, by=3 * DEG))
    assert last.position == pytest.approx(3 * DEG, abs=0.4 * DEG)
    assert max(fastest) < 3 * SPEED
    assert on == {"elbow"} and lockstep.off()


def test_held_joints_stay_where_they_are(tmp_path):
    lockstep = Lockstep(tmp_path, arm(**{"joints.shoulder.initial.position": "60 deg"}))
    before = lockstep.position("shoulder")
    session = session_of(lockstep)
    plan = JogPlan(SPEED, by=-3 * DEG, effort=1.0, hold=hold_names(session, "elbow", ["shoulder"]))
    last = jog(session, "elbow", plan)
    assert last.position == pytest.approx(-3 * DEG, abs=0.3 * DEG)
    assert lockstep.position("shoulder") == pytest.approx(before, abs=1.0 * DEG)


def test_a_joint_moves_only_while_its_key_repeats(tmp_path, monkeypatch):
    lockstep = Lockstep(tmp_path, arm(**{"drivers.0.mode": "position", "drivers.0.joints.elbow.ratio": 2}))
    sent: list[float] = []
    keys = ScriptedKeys({10: ["+"], 40: ["+"], 600: ["quit"]})
    follow = HoldingLoop.follow

    def followed(loop: HoldingLoop, rate: list[float]) -> None:
        sent.append(float(rate[0]))
        follow(loop, rate)

    monkeypatch.setattr(HoldingLoop, "follow", followed)
    last = jog(session_of(lockstep), "elbow", JogPlan(SPEED), keys)
    moving = [k + 1 for k, rate in enumerate(sent) if rate]
    assert moving[0] == 10 and moving[-1] == 40 + round(DEAD_MAN / STEP) - 1  # within the tick of its end
    assert last.position == pytest.approx(SPEED * STEP * len(moving), abs=0.2 * DEG)
    assert lockstep.off()


def test_a_press_of_a_key_moves_by_one_step(tmp_path):
    lockstep = Lockstep(tmp_path, arm())
    keys = ScriptedKeys({5: ["+"], 500: ["+"], 1000: ["-"], 1500: ["quit"]})
    last = jog(session_of(lockstep), "elbow", JogPlan(SPEED, step=2 * DEG), keys)
    assert last.position == pytest.approx(2 * DEG, abs=0.3 * DEG)


def test_the_key_to_stop_switches_the_motor_off_in_its_tick(tmp_path):
    lockstep = Lockstep(tmp_path, arm())
    keys = ScriptedKeys({5: ["+"], 20: ["+", "stop"]})
    with pytest.raises(RunError, match=r"^stopped by a key$"):
        jog(session_of(lockstep), "elbow", JogPlan(SPEED), keys)
    assert keys.looks == 20 and lockstep.off()


def test_the_reference_ends_before_the_limit_of_the_joint(tmp_path):
    rig = arm(**{"joints.all.limits.upper": "93 deg"})
    lockstep = Lockstep(tmp_path, rig)
    last = jog(session_of(lockstep), "shoulder", JogPlan(SPEED, by=6 * DEG, effort=1.0))
    assert 91.5 * DEG < last.position < 93 * DEG


@pytest.mark.parametrize("what", ["frozen", "fault", "jump", "nan"])
def test_it_stops_within_a_tick_of_any_doubt(what, tmp_path, monkeypatch, said):
    lockstep = Lockstep(tmp_path, arm())
    motor, (line,) = lockstep.motors["elbow"], lockstep.lines.values()
    at = lockstep.world.t_ns + 1_000_000_000
    seen: list[int] = []

    def disturb() -> None:
        if not motor.enabled or lockstep.world.t_ns < at:
            return
        seen.append(lockstep.world.t_ns)
        if what == "frozen":
            line.host._queue.clear()
        elif what == "fault":
            motor.fault_cause = "overcurrent"
        elif what == "jump":
            motor.jump = 6.0
        else:
            motor.blind = True

    lockstep.world.each_step.append(disturb)
    if what == "frozen":
        send = line.device.send
        monkeypatch.setattr(line.device, "send", lambda item, until: None if seen else send(item, until))
    with pytest.raises(RunError) as caught:
        jog(session_of(lockstep), "elbow", JogPlan(SPEED, by=30 * DEG))
    said(caught.value, r"[\d.]+ ms")
    limit = lockstep.rig.spec.guard.stale if what == "frozen" else 0.0
    assert lockstep.world.t_ns - seen[0] < (limit + 3 * STEP + 0.05 * (what == "frozen")) * 1e9
    assert lockstep.off()


def test_a_program_that_is_late_stops(tmp_path, monkeypatch):
    lockstep = Lockstep(tmp_path, arm())
    keys = ScriptedKeys({})

    def late() -> list[str]:
        lockstep.world.t_ns += 30_000_000
        return []

    monkeypatch.setattr(keys, "poll", late)
    words = r"^the program was .* ms late, more than the 20 ms of guard.stale; see cosim doctor$"
    with pytest.raises(RunError, match=words):
        jog(session_of(lockstep), "elbow", JogPlan(SPEED), keys)
    assert lockstep.off()


def test_keys_of_a_terminal_and_its_loss():
    assert list(decode(b"+-\x1b[A\x1b[D\x1bOC= q")) == ["+", "-", "+", "-", "+", "+", "stop", "quit"]
    assert list(decode(b"x\x1b")) == ["stop", "stop"]
    master, slave = os.openpty()
    try:
        with terminal_keys(slave) as keys:
            assert keys.poll() == []
            os.write(master, b"+\x1b[B")
            assert keys.poll() == ["+", "-"]
            os.close(master)
            with pytest.raises(RunError, match=r"^the terminal is gone$"):
                keys.poll()
    finally:
        os.close(slave)


def test_bad_input(tmp_path, command, said):
    simulated = arm()
    del simulated["drivers"]
    (tmp_path / "sim.yaml").write_text(json.dumps(simulated))
    said(command.refuses("drives", "jog", "sim.yaml", "elbow", "--yes"))
    session = session_of(Lockstep(tmp_path, arm()))
    with pytest.raises(InputError) as caught:
        hold_names(session, "elbo", [])
    said(caught.value)
    said(command.refuses("drives", "jog", "rig.yaml", "elbow", "--by", "5 kg", "--yes"))


def test_a_fault_that_a_drive_keeps_is_cleared_before_a_motion(tmp_path):
    lockstep = Lockstep(tmp_path, arm())
    session = CommissioningSession(lockstep.rig, "jog", lockstep.world)
    motor = lockstep.motors["elbow"]
    motor.fault_cause = "overcurrent"
    lockstep.world.wait(lockstep.world.now() + 50_000_000)
    with pytest.raises(RunError, match="the fault persists"):
        session.clear_faults()
    motor.fault_cause = ""
    with pytest.raises(RunError, match="run with --clear-faults"), session.live(["elbow"], MotionBounds()):
        pass
    session.clear_faults()
    with session.live(["elbow"], MotionBounds()) as live:
        live.read()
    assert lockstep.off()


# --- each limit that stops a joint that is commissioned is named in one sentence ---

BOUNDS = {key: np.array([1.0, 2.0]) for row in LIMITS for key in row.bound_keys}


def reason_of(code: float) -> str:
    guard = SimpleNamespace(bounds=BOUNDS, stale=np.full(2, 0.05))
    joints: Any = SimpleNamespace(
        names=("a", "b"), units=("rad", "m"), guard=guard, age=np.array([0.0, 0.07]), period=0.002
    )
    feedback = {name: np.zeros(2) for name in ("request", *GUARD_INPUTS, *REACTION_INPUTS, *REAL_GUARD_INPUTS)}
    wanted = dict.fromkeys(COMMAND, np.zeros(2)) | {"effort": np.array([0.0, 3000.0])}
    safe = wanted | {"effort": np.array([0.0, 2.0])}
    return fault_reason(joints, np.array([0.0, float(code)]), feedback, safe, wanted)


@pytest.mark.parametrize("key", CODES)
def test_a_limit(key):
    text = reason_of(CODES[key])
    assert text.startswith("joint 'b' ") and "\n" not in text and "{" not in text


def test_the_effort_that_was_commanded_is_named_as_it_was_given():
    assert "is commanded 3000 N, beyond its limit of 2 N" in reason_of(CODES["commanded_effort"])
    assert "is commanded 2 N," in reason_of(CODES["effort"])


def test_other_faults():
    assert "no feedback for 70 ms" in reason_of(STALE)
    assert "reports no number" in reason_of(NOT_FINITE)
