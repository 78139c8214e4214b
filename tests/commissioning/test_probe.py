"""The wiring probe finds each wrong wiring of emulated drives, and passes a right one."""

import json
import math

import numpy as np
import pytest

from cosim.apps.commissioning.probe import Burst, ProbeSettings, fit_motion
from cosim.apps.commissioning.probe_command import probe_rig
from cosim.apps.commissioning.session import CommissioningSession
from cosim.core.errors import InputError, RunError
from cosim.rig.moving_motors import record_path, unprobed

from .lockstep import Lockstep, arm, changed


def link(**changes) -> dict:
    """One link that friction holds against gravity at -50 degrees from the horizontal."""
    data = arm()
    del data["mechanism"]["bodies"][1], data["joints"]["elbow"], data["drivers"][0]["joints"]["elbow"]
    for key in ("friction", "damping"):
        del data["mechanism"]["bodies"][0][key]
    data["joints"]["shoulder"]["friction"] = {"coulomb": 1.2, "viscous": 0.05}  # with stiction
    data["schedule"]["integrator"] = "rosenbrock"
    data["joints"]["all"]["limits"]["effort"] = 20
    return changed(data, {"joints.shoulder.initial.position": "-40 deg", **changes})


def probed(lockstep: Lockstep, capsys, *joints: str) -> tuple[dict[str, str], str]:
    """(line of each joint, the error)."""
    session, error = CommissioningSession(lockstep.rig, "probe", lockstep.world), ""
    try:
        probe_rig(lockstep.rig, joints, ProbeSettings(), lambda lines: None, session)
    except RunError as caught:
        error = caught.what
    assert lockstep.off()
    lines = [line.partition(": ") for line in capsys.readouterr().out.splitlines() if ": " in line]
    return {name: text for name, _, text in lines}, error


def test_a_right_wiring_passes_and_is_on_record(tmp_path, capsys):
    lockstep = Lockstep(tmp_path, arm())
    assert unprobed(lockstep.path, lockstep.rig.spec.drivers) == ["shoulder", "elbow"]
    lines, error = probed(lockstep, capsys)
    assert error == ""
    for text in lines.values():
        assert ": ok; gravity does not show its direction: check that + is the joint's positive direction" in text
    assert unprobed(lockstep.path, lockstep.rig.spec.drivers) == []
    record = json.loads(record_path(lockstep.path).read_text())
    assert record["elbow"]["inertia"] == pytest.approx(0.002, rel=0.3)
    other = Lockstep(tmp_path, arm(**{"drivers.0.joints.elbow.ratio": 7}))
    assert unprobed(lockstep.path, other.rig.spec.drivers) == ["elbow"]


def test_gravity_shows_a_right_direction(tmp_path, capsys):
    lines, error = probed(Lockstep(tmp_path, link()), capsys)
    assert (error, lines["shoulder"].endswith("ok, direction agrees with gravity")) == ("", True), lines


def fails(lockstep: Lockstep, capsys, joint: str) -> str:
    """The line of a joint that does not pass alone."""
    lines, error = probed(lockstep, capsys, joint)
    assert error == f"the wiring of {joint} did not pass; motors are off", lines
    return lines[joint]


@pytest.mark.parametrize(("key", "value"), [("direction", -1), ("zero", "130 deg")])
def test_gravity_shows_a_wrong_direction_or_zero(key, value, tmp_path, capsys):
    device = link(**{f"drivers.0.joints.shoulder.{key}": value})
    assert key in fails(Lockstep(tmp_path, link(), device), capsys, "shoulder")


def test_a_motor_that_acts_against_its_encoder_is_found(tmp_path, monkeypatch, capsys, said):
    lockstep = Lockstep(tmp_path, arm())
    motor = lockstep.motors["elbow"]
    request = motor.request
    monkeypatch.setattr(motor, "request", lambda effort: request(-effort))
    line = fails(lockstep, capsys, "elbow")
    assert line.startswith("moved -2")
    said(line, r"^moved .*?: ")


def test_cables_that_are_swapped_between_joints_are_found(tmp_path, monkeypatch, capsys, said):
    lockstep = Lockstep(tmp_path, arm())
    one, two = lockstep.motors.values()
    requests = one.request, two.request
    monkeypatch.setattr(one, "request", requests[1])
    monkeypatch.setattr(two, "request", requests[0])
    said(fails(lockstep, capsys, "shoulder"), r"(?<=by \+)[\d.]+")


@pytest.mark.parametrize(("build", "joint", "ratio"), [(arm, "elbow", 12), (link, "shoulder", 12)])
def test_a_wrong_ratio_is_found(build, joint, ratio, tmp_path, capsys):
    device = build(**{f"drivers.0.joints.{joint}.ratio": ratio})
    if build is link:  # where both ratios give the same position
        device["drivers"][0]["joints"][joint]["zero"] = device["joints"][joint]["initial"]["position"]
        host = build(**{f"drivers.0.joints.{joint}.zero": "-40 deg"})
    else:
        host = build()
    assert "ratio" in fails(Lockstep(tmp_path, host, device), capsys, joint)


def test_swapped_addresses_do_not_pass(tmp_path, capsys):
    device = arm(**{"drivers.0.joints.elbow.id": 1, "drivers.0.joints.shoulder.id": 2})
    for name in ("shoulder", "elbow"):
        fails(Lockstep(tmp_path, arm(), device), capsys, name)


def test_a_joint_that_is_not_connected_or_braked_is_found(tmp_path, monkeypatch, capsys, said):
    lockstep = Lockstep(tmp_path, arm())
    monkeypatch.setattr(lockstep.motors["elbow"], "request", lambda effort: None)
    said(fails(lockstep, capsys, "elbow"))


def test_no_effort_beyond_the_bound_is_requested_and_only_of_the_joint(tmp_path, capsys):
    lockstep = Lockstep(tmp_path, arm())
    seen: list[tuple[float, float]] = []
    lockstep.world.each_step.append(
        lambda: seen.append(
            tuple(motor.requested * n for motor, n in zip(lockstep.motors.values(), (9, 6), strict=True))
        )
    )
    probed(lockstep, capsys, "elbow")
    shoulder, elbow = np.abs(np.array(seen)).max(axis=0)
    assert shoulder == 0.0 and 0.0 < elbow <= 0.2 * 4 + 1e-6


def test_the_momentum_balance_recovers_what_a_motion_was_made_of():
    """Against the exact motion of a mass with friction under a ramp of effort."""
    inertia, viscous, gravity, friction, bursts = 0.02, 0.05, 0.1, 0.06, []
    for sign in (1, -1):
        burst, q, v, impulse, dt = Burst(sign), 0.0, 0.0, 0.0, 1e-5
        for k in range(40_000):
            if k % 100 == 0:
                burst.rows.append((k * dt, impulse, q, v, math.nan))
            u = gravity + sign * 1.0 * k * dt
            free = u - gravity - viscous * v
            a = 0.0 if v == 0.0 and abs(free) <= friction else (free - friction * sign) / inertia
            v, q, impulse = v + a * dt, q + v * dt, impulse + u * dt
        burst.moved = q
        bursts.append(burst)
    fit = fit_motion(bursts)
    assert fit is not None and fit.residual < 0.01
    assert fit[:4] == pytest.approx((inertia, viscous, gravity, friction), rel=0.02)


def test_bad_input(tmp_path, said):
    lockstep = Lockstep(tmp_path, arm())
    session = CommissioningSession(lockstep.rig, "probe", lockstep.world)
    with pytest.raises(InputError) as caught:
        probe_rig(lockstep.rig, ["elbo"], ProbeSettings(), lambda lines: None, session)
    said(caught.value)
