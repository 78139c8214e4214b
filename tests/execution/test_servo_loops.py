"""The loops that drives close themselves: their stability as of `cosim analyze`, and what a run says of it."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from cosim.apps.analysis.linearisation import linearise
from cosim.core.errors import RunWarning
from cosim.execution.servo_loops import servo_loops, unstable_servo_loops
from cosim.rig.inspection import BEFORE_STEP, first_tick, warnings_before_run
from tests.kit.messages import Said
from tests.kit.sampled_drives import CASES, drive, rig_of


@pytest.mark.parametrize("name", CASES)
def test_the_growth_is_that_of_the_linearised_tick(name: str) -> None:
    """By the derivative of the compiled tick, which `cosim analyze` uses."""
    rig = rig_of(*CASES[name])
    loops = servo_loops(first_tick(rig, BEFORE_STEP))
    assert loops is not None
    assert float(loops.hyper_period) == pytest.approx(1e-3 if "position" in str(CASES[name]) else 0.25e-3)
    found, expected = (
        abs(np.linalg.eigvals(loops.monodromy({}))) ** (1e-3 / float(loops.hyper_period)),
        abs(np.linalg.eigvals(linearise(rig).A)),
    )
    # the slowest ones but for what is held or moves freely, which the other has in fewer numbers
    slowest = [np.sort(sizes[np.abs(sizes - 1.0) > 1e-5])[-3:] for sizes in (found, expected)]
    assert slowest[0] == pytest.approx(slowest[1], rel=1e-3)
    assert (expected.max() > 1.001) == ("unstable" in name) == bool(unstable_servo_loops(first_tick(rig, BEFORE_STEP)))


@pytest.mark.parametrize("name", [name for name in CASES if "unstable" in name])
def test_the_fix_that_is_named_is_stable_and_no_more(name: str, said: Said) -> None:
    unstable, _ = warnings_before_run(rig_of(*CASES[name]))
    said(unstable)
    (line,) = unstable
    key, value = line.split("lower ")[1].split(" to at most ")
    number = float(value.split()[0])
    for factor, stable in ((1.0, True), (1.12, False)):  # of two digits
        drives = copy.deepcopy(CASES[name])
        *_, number_of, _, _, loop, _ = key.replace("axis_", "").split(".")
        drives[int(number_of)]["loops"][loop]["gain"] = factor * number
        other = rig_of(*drives)
        assert not stable or not warnings_before_run(other)[0]
        assert (np.abs(np.linalg.eigvals(linearise(other).A)).max() < 1.0 + 1e-5) == stable


def test_a_run_with_unstable_loops_of_a_drive_warns() -> None:
    with pytest.warns(
        RunWarning, match=r"the gain 500 N\*m\*s/rad of the velocity loop in the drive of joint 'axis_0'"
    ):
        assert rig_of(drive(gain=500)).run().unstable
