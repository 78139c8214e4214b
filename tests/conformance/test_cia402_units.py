"""Drives of CiA 402 in other units, read and written by machine code: the true speed is measured, a torque arrives.

That the driver in Python has all of them right is in tests/drivers/cia402/test_units.py.
"""

import numpy as np
import pytest

from tests.drivers.cia402.unit_variants import VARIANTS

from .families import SCALES, Bench, Case
from .marks import over

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
