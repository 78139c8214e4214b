"""Drives of every family that report in a wrong unit: the run stops in its first motion, with the factor."""

import itertools
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.drivers.cia402.unit_variants import VARIANTS

from .families import SCALES, Bench, Case, addresses, rig, section, stepped_cases
from .marks import IN_PYTHON, in_turn, over
from .shared_rigs import SharedRig
from .test_faults import run_in_real_time

CASES = stepped_cases()
OTHER_MODES = "position", "velocity"
STEP, SLOW_STEP, DURATION = 0.004, 0.02, 1.6  # s
SLOW = ("modbus",)  # families whose line carries two drives in 20 ms
SINE = {"type": "sine", "amplitude": 0.3, "frequency": 0.5}
WRONG = {"velocity": 0.1047, "position": 1.0 / 13.0, "effort": 10.0, "sign": -1.0}
# what is reported of a velocity if the velocity or the position is so much larger
FACTORS = {"velocity": 0.1047, "position": 13.0, "sign": -1.0}
# in the short time of these tests, with these small motors
TOO_COARSE = {
    ("dynamixel", "effort"): "its current has steps of 2.7 mA",
    ("dynamixel", "position"): "its position has 4096 counts per turn, here 315",
}
REPORTS = re.compile(r"joint '(\w)' .*reports a velocity that is (-?[\d.]+) times the change of its position")
EXERTS = re.compile(r"joint '(\w)' .*reports (-?[\d.]+) times the effort that it is commanded")
PROVEN = 1.0, 2.0, 4.0  # bits of the proofs


def controller(mode: str) -> dict:
    if mode == "effort":
        return {"type": "pid", "kp": [0.1, 0.025], "ki": 0.0, "kd": [0.04, 0.01], "trajectory": SINE}
    gain = "kp" if mode == "position" else "kd"
    return {"type": "passthrough", "interface": mode, gain: 1.0, "trajectory": SINE}


@cache
def shared_rig_of(case: Case, mode: str) -> SharedRig:
    data = rig(section(case, Path(), watchdog=1.0, mode=mode), addresses(case))
    for name, limits in ((name, joint["limits"]) for name, joint in data["joints"].items()):
        if mode != "velocity":  # where a controller follows positions
            limits |= {"tracking": 10.0, "frozen": 10.0}
        limits |= {"velocity": 2.2 if name == "a" else 4.4, "effort": 2.4 * limits["effort"]}
    step = SLOW_STEP if case.family in SLOW else STEP
    schedule = {"step": step, "blend": 0.1}
    return SharedRig(data | {"controllers": [controller(mode)], "guard": {"stale": 0.3}, "schedule": schedule})


def run(case: Case, mode: str, *faults: dict) -> tuple[str, np.ndarray]:
    """(why it was stopped, masks of the proofs that are done (2,))."""
    found = shared_rig_of(case, mode).run(faults, DURATION, lambda armed: armed.engine.view("units", "proven").copy())
    return found.fault, found.seen


@in_turn("mode", ("effort", *OTHER_MODES), CASES)
def test_units_that_are_right_stop_nothing_and_that_of_the_velocity_is_proven(case, mode):
    """With right units each family also runs in effort mode in test_faults.py."""
    fault, proven = run(case, mode)
    assert fault == ""
    if case.family != "dynamixel":  # whose counts are coarse beside this motion
        assert (proven % 2.0 == PROVEN[0]).all()


# all by one family, and one by each: where it is found does not know the family, but the numbers have its resolution
WRONG_IN_TURN = [pair for pair in zip(CASES[1:], itertools.cycle(WRONG)) if (pair[0].family, pair[1]) not in TOO_COARSE]


@pytest.mark.parametrize(("case", "wrong"), [*((CASES[0], wrong) for wrong in WRONG), *WRONG_IN_TURN], ids=str)
def test_a_wrong_unit_of_a_drive_that_follows_efforts_is_found(case, wrong):
    kind = {"sign": "velocity"}.get(wrong, wrong)
    fault, _ = run(case, "effort", {"kind": f"{kind}_unit", "joint": "a", "scale": WRONG[wrong]})
    if wrong == "sign" and "above its limit of 2.2 rad/s" in fault:
        return  # its damping drives it: it may be too fast before the sign is sure
    found = (EXERTS if wrong == "effort" else REPORTS).search(fault)
    assert found, fault
    assert found[1] == "a"
    assert float(found[2]) == pytest.approx(FACTORS.get(wrong, 10.0), rel=0.15)


@in_turn("mode", OTHER_MODES, CASES)
def test_a_drive_that_follows_its_own_wrong_velocity_is_stopped(case, mode):
    """A loop with a velocity of a tenth makes the axis ten times as fast, or swings: the guard is not blind."""
    fault, _ = run(case, mode, {"kind": "velocity_unit", "joint": "a", "scale": WRONG["velocity"]})
    limited = "by its positions (it reports" in fault or "jumped by" in fault
    assert "joint 'a'" in fault and (limited or REPORTS.search(fault) or "as far as it is commanded" in fault), fault


@over(IN_PYTHON[0])
def test_it_is_found_by_buses_in_machine_code(case, tmp_path):
    wrong = {"kind": "velocity_unit", "joint": "a", "scale": WRONG["velocity"]}
    run = run_in_real_time(case, tmp_path, wrong)
    assert run.seen.summary["engine"][f"driver {case.family}"] == "compiled"
    assert REPORTS.search(run.fault) or "by its positions (it reports" in run.fault, run.fault


# --- drives of CiA 402 in other units in machine code; by the driver in Python: drivers/cia402/test_units.py ---

EFFORT = np.array([0.02, 0.02])  # N·m at the drives


@over(Case("cia402", "udp_multicast", compiled=True))
@pytest.mark.parametrize("name", ["gear in the drive", "reversed"])
def test_the_true_speed_is_measured_and_a_torque_arrives(name, case, tmp_path):
    variant, scale = VARIANTS[name], np.array(list(SCALES.values()))
    sign = -1.0 if variant.drive.get("reversed") else 1.0  # the other way around, which the driver does not know

    def host(rig: dict) -> None:
        for own in rig["drivers"][0]["joints"].values():
            own.update(variant.wired)

    def device(rig: dict) -> None:
        host(rig)
        rig["emulator"]["joints"]["all"]["drive"] = variant.drive

    with Bench(case, tmp_path, host, device) as b:
        b.open("effort")
        push = EFFORT * scale  # of the joints
        b.drive(lambda: (abs(b.truth[1] * scale)).min() > 2.4, effort=push)  # of 2.5, where the damping holds it
        steps, seen = b.emulation.steps + 60, []

        def long_enough() -> bool:
            seen.append(b.out.velocity.copy())
            return b.emulation.steps > steps

        b.drive(long_enough, effort=push)
        # rpm are coarse, and times of arrival uneven on a machine that stalls
        np.testing.assert_allclose(sign * np.mean(seen, axis=0), b.truth[1], rtol=0.1)
        np.testing.assert_allclose(b.out.effort, push, atol=2e-3)
        np.testing.assert_allclose(sign * np.array(b.asked), EFFORT, atol=2e-3)
