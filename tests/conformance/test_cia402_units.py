"""Drives of CiA 402 in other units, through both engines: a goal turns the shaft as far, the true speed is measured, a
torque arrives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.drivers.cia402.unit_variants import VARIANTS

from .families import SCALES, Bench, Case
from .marks import over

# in simulated time, and in machine code on a bus in real time
CASES = Case("cia402", "virtual", stepped=True), Case("cia402", "udp_multicast", compiled=True)
GOAL = np.array([0.25, -0.4])  # rad, of the joints
SIZE = np.array([abs(scale) for scale in SCALES.values()])


def bench(name: str, case: Case, folder: Path) -> Bench:
    """The drives' rig has the settings of the variant, that of the program what it has to say of them."""
    variant = VARIANTS[name]

    def host(rig: dict) -> None:
        for own in rig["drivers"][0]["joints"].values():
            own.update({key: value for key, value in variant.wired.items() if key != "rated_torque"})
            if "rated_torque" in variant.wired:
                own["rated_torque"] = 0.1

    def device(rig: dict) -> None:
        host(rig)
        rig["emulator"]["joints"]["all"]["drive"] = variant.drive

    return Bench(case, folder, host, device)


def joints(name: str, value: np.ndarray) -> np.ndarray:
    """What the joints really do where the driver measures this: a drive that is reversed turns the other way."""
    return value if not VARIANTS[name].drive.get("reversed") else -value


@over(*CASES)
@pytest.mark.parametrize("name", VARIANTS)
def test_a_goal_turns_the_shaft_as_far(name, case, tmp_path):
    with bench(name, case, tmp_path) as b:
        b.open("position")
        begun, seen = b.truth[0], b.out.position.copy()
        b.drive(lambda: abs(b.out.position - seen - GOAL).max() < 0.01, position=seen + GOAL)
        moved = joints(name, b.truth[0] - begun)
        np.testing.assert_allclose(moved, GOAL, atol=0.03)


@over(*CASES)
@pytest.mark.parametrize("name", VARIANTS)
def test_the_true_speed_is_measured_and_a_torque_arrives(name, case, tmp_path):
    with bench(name, case, tmp_path) as b:
        b.open("effort")
        push = 0.02 * np.array([SCALES["a"], SCALES["b"]])  # of the joints
        b.drive(lambda: (abs(b.truth[1]) * SIZE).min() > 2.4, effort=push)  # of 2.5, where the damping holds it
        steps, seen = b.emulation.steps + 200, []

        def long_enough() -> bool:
            seen.append(b.out.velocity.copy())
            return b.emulation.steps > steps

        b.drive(long_enough, effort=push)
        # rpm are coarse, and times of arrival uneven on a machine that stalls
        np.testing.assert_allclose(joints(name, np.mean(seen, axis=0)), b.truth[1], rtol=0.1)
        np.testing.assert_allclose(b.out.effort, push, atol=2e-3)
        asked = np.array(b.asked) * (-1.0 if VARIANTS[name].drive.get("reversed") else 1.0)
        np.testing.assert_allclose(asked, 0.02, atol=2e-3)
