"""Homing and calibration recover what the emulated drives have, and their overlays serve a run."""

import math

import numpy as np
import pytest

from cosim.apps.commissioning.calibrate_command import HomePlan, home_at_stop, home_by_drive, wiring_key, write_overlay
from cosim.apps.commissioning.calibration import CoggingPlan, fit_cogging, fit_marks, measure_cogging
from cosim.apps.commissioning.session import CommissioningSession
from cosim.control.cogging import Cogging
from cosim.core.errors import RunError
from cosim.plugins.drivers.common.wiring import JointParams
from cosim.rig.reading.yaml_source import read_overlay
from cosim.rig.rig import load_rig

from .lockstep import Lockstep, arm

DEG = math.radians(1.0)
SLOW = {"schedule.step": "5 ms"}
STOPS = {**SLOW, "joints.elbow.stops": {"lower": "-30 deg", "upper": "35 deg"}}


def session_of(lockstep: Lockstep) -> CommissioningSession:
    return CommissioningSession(lockstep.rig, "home", lockstep.world)


@pytest.mark.parametrize(("towards", "at"), [(-1, -30.0), (1, 35.0)])
def test_a_joint_finds_its_zero_at_a_hard_stop(towards, at, tmp_path):
    host, device = arm(**STOPS), arm(**STOPS, **{"drivers.0.joints.elbow.zero": "12 deg"})
    lockstep = Lockstep(tmp_path, host, device)
    efforts: list[float] = []
    lockstep.world.each_step.append(lambda: efforts.append(6.0 * abs(lockstep.motors["elbow"].requested)))
    plan = HomePlan(towards, at * DEG, 20 * DEG, 0.15, 5 * DEG, 120 * DEG)
    found = home_at_stop(session_of(lockstep), "elbow", plan)
    assert found.zero == pytest.approx(12 * DEG, abs=0.2 * DEG) and found.repeated < 0.1 * DEG
    assert max(efforts) <= 0.15 * 4 + 1e-6 and lockstep.off()
    away = towards * (at * DEG - lockstep.position("elbow"))
    assert away > 2 * DEG  # it moved back


HOMED = {
    **SLOW,
    "joints.elbow.initial": {"position": "10 deg"},
    "drivers.0.type": "cia402",
    "drivers.0.joints.elbow": {"id": 2, "ratio": 6, "homing": {"method": 34, "slow": 5}},
}


def test_a_drive_homes_itself_at_its_index_pulse_and_no_other_motor_is_switched_on(tmp_path):
    """Method 34 of CiA 402-2: the next index pulse in the positive direction becomes zero, a turn from the start."""
    lockstep = Lockstep(tmp_path, arm(**HOMED))
    others: list[bool] = []
    lockstep.world.each_step.append(lambda: others.append(lockstep.motors["shoulder"].enabled))
    assert lockstep.position("elbow") == pytest.approx(10 * DEG, abs=0.5 * DEG)
    at = home_by_drive(session_of(lockstep), "elbow")
    pulse = math.tau / 6  # 60 deg
    assert lockstep.position("elbow") == pytest.approx(pulse, abs=1.0 * DEG)
    assert at == pytest.approx(0.0, abs=1.0 * DEG)  # on the way to the pulse it coasts, and sinks when it is off
    lockstep.world.wait(lockstep.world.now() + 50_000_000)
    assert lockstep.off() and others and not any(others)


def test_a_drive_that_does_not_find_home_ends_homing(tmp_path, said):
    changes = {"drivers.0.joints.elbow": {"id": 2, "ratio": 6, "homing": {"method": 34, "slow": 1, "timeout": 0.5}}}
    lockstep = Lockstep(tmp_path, arm(**HOMED | changes))
    with pytest.raises(RunError) as caught:
        home_by_drive(session_of(lockstep), "elbow")
    said(caught.value)
    lockstep.world.wait(lockstep.world.now() + 50_000_000)
    assert lockstep.off()


def test_the_overlay_of_a_zero_is_that_of_a_run(tmp_path):
    lockstep = Lockstep(tmp_path, arm())
    spec = lockstep.rig.spec.drivers[0]
    path = tmp_path / "rig.commissioning.yaml"
    write_overlay(path, lockstep.path, {wiring_key(spec, "elbow", "zero"): 0.25})
    write_overlay(path, lockstep.path, {wiring_key(spec, "elbow", "ratio"): 6.5})
    rig = load_rig(lockstep.path, read_overlay(path))
    wired = rig.spec.drivers[0].wiring["elbow"]
    assert (wired.zero, wired.ratio) == (0.25, 6.5)


def test_a_joint_that_does_not_move_or_finds_no_stop_ends_homing(tmp_path, monkeypatch, said):
    lockstep = Lockstep(tmp_path, arm(**STOPS))
    monkeypatch.setattr(lockstep.motors["elbow"], "request", lambda effort: None)
    plan = HomePlan(1, 35 * DEG, 20 * DEG, 0.15, 5 * DEG, 120 * DEG)
    with pytest.raises(RunError) as caught:
        home_at_stop(session_of(lockstep), "elbow", plan)
    said(caught.value)
    lockstep = Lockstep(tmp_path, arm(**SLOW))
    with pytest.raises(RunError) as caught:
        home_at_stop(session_of(lockstep), "elbow", plan._replace(travel=20 * DEG, effort=0.5))
    said(caught.value)
    assert lockstep.off()


def test_marks_recover_direction_ratio_and_zero():
    wired = JointParams(direction=1, ratio=5.0, zero=0.1)
    true = JointParams(direction=-1, ratio=9.0, zero=0.3)
    marks = [-0.5, 0.0, 0.7]
    drive = [true.direction * true.ratio * (mark - true.zero) for mark in marks]
    measured = [position / 5.0 + 0.1 for position in drive]
    fit = fit_marks(wired, marks, measured)  # type: ignore[arg-type]
    assert fit == pytest.approx((-1, 9.0, 0.3, 0.0), abs=1e-12)
    one = fit_marks(wired, [0.4], [0.15])  # type: ignore[arg-type]
    assert (one.direction, one.ratio, one.zero) == pytest.approx((1, 5.0, 0.35))
    with pytest.raises(RunError, match=r"^the marks are all at the same position; give others$"):
        fit_marks(wired, [0.4, 0.4], [0.1, 0.2])  # type: ignore[arg-type]
    with pytest.raises(RunError, match=r"^the drive did not move between the marks"):
        fit_marks(wired, [0.1, 0.4], [0.2, 0.2])  # type: ignore[arg-type]


def test_harmonics_are_recovered_exactly_from_efforts_that_have_them():
    plan = CoggingPlan(0.1, 1.5, 0.5, 4, TURN := 1.1)
    true = Cogging(period=TURN, cosine=(0.02, 0.0, -0.01, 0.0), sine=(0.0, 0.03, 0.0, 0.005))
    q = np.linspace(-0.4, 1.1, 500)
    q = np.concatenate([q, q[::-1]])
    sign = np.repeat([1.0, -1.0], 500)
    fit = fit_cogging(q, np.asarray(true.effort(q)) + 0.2 + 0.05 * sign, sign, plan)
    np.testing.assert_allclose(fit.cogging.cosine, true.cosine, atol=1e-9)
    np.testing.assert_allclose(fit.cogging.sine, true.sine, atol=1e-9)
    assert fit.friction == pytest.approx(0.05) and fit.residual < 1e-9


def test_the_cogging_of_an_emulated_motor_is_measured(tmp_path, monkeypatch):
    lockstep = Lockstep(tmp_path, arm(**SLOW))
    period = 2.0 * math.pi / 6.0
    true = Cogging(period=period, cosine=(0.05, 0.0, 0.03), sine=(0.0, -0.06))
    plant = lockstep.server.motors.plant
    request = plant.request

    def with_cogging(index, efforts):
        efforts = efforts.copy()
        efforts[1] -= true.effort(lockstep.position("elbow"))
        request(index, efforts)

    monkeypatch.setattr(plant, "request", with_cogging)
    plan = CoggingPlan(period / 3.0, 1.2 * period, 0.5, 4, period)
    fit = measure_cogging(session_of(lockstep), "elbow", plan)
    np.testing.assert_allclose(fit.cogging.cosine, (0.05, 0.0, 0.03, 0.0), atol=0.008)
    np.testing.assert_allclose(fit.cogging.sine, (0.0, -0.06, 0.0, 0.0), atol=0.008)
    assert lockstep.off()
