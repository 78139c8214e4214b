"""Where two runs part, and by which time one is shifted against the other."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from cosim import Rig, compare
from cosim.rig.run.comparison import alignment_of, partings
from tests.kit.refusals import refusal

TURNTABLE = """
mechanism:
  gravity: [0, 0, 0]
  bodies: [{name: disk, joint: axis, axis: [0, 0, 1], mass: 1 kg, inertia: [0.1, 0.1, 0.2]}]
controllers:
  - {name: arm, type: feedforward_pd, kp: 80, kd: 6, trajectory: {type: quintic, goal: 1, duration: 1 s, delay: 0.2 s}}
schedule: {step: 1 ms, duration: 2 s}
"""
RigOf = Callable[..., Rig]


def test_runs_part_at_the_first_tick_beyond_the_tolerance(rig_of: RigOf) -> None:
    a, b = rig_of(TURNTABLE).run(), rig_of(TURNTABLE, "controllers.arm.trajectory.goal=1.2").run()
    found = partings(compare(a, b), tolerance=0.05)
    order = [(parting.t, -parting.relative) for parting in found]
    assert order == sorted(order)
    by_signal = {parting.signal: parting for parting in found}
    for name in ("axis/position", "axis/reference_velocity"):
        difference = b[name] - a[name]
        size = max(np.abs(a[name]).max(), np.abs(b[name]).max())
        first = int(np.argmax(np.abs(difference) > 0.05 * size))
        assert (by_signal[name].t, by_signal[name].difference) == (a.t[first], difference[first])
        assert by_signal[name].relative == abs(difference[first]) / size
        assert by_signal[name].unit == a.units[name]
    assert partings(compare(a, a)) == []


@pytest.mark.parametrize("later", [0.3, -0.0123])
def test_a_run_that_begins_later_is_shifted_back(rig_of: RigOf, later: float) -> None:
    a = rig_of(TURNTABLE).run()
    b = rig_of(TURNTABLE, f"controllers.arm.trajectory.delay={0.2 + later}").run()
    shift = alignment_of(a, b)
    assert shift == pytest.approx(later, abs=1e-4)
    aligned = compare(a, b, shift)
    assert aligned.shift == shift and aligned.signals["axis/position"].max < 1e-3
    if later > 0.01:
        assert compare(a, b).signals["axis/position"].max > 0.1


def test_runs_of_other_steps_are_aligned_too(rig_of: RigOf) -> None:
    a = rig_of(TURNTABLE).run()
    b = rig_of(TURNTABLE, "schedule.step=0.4 ms", "controllers.arm.trajectory.delay=0.25").run()
    assert alignment_of(a, b) == pytest.approx(0.05, abs=2e-4)


def test_runs_without_motion_are_refused(rig_of: RigOf) -> None:
    still = rig_of(TURNTABLE, "controllers.arm.trajectory.goal=0").run()
    words = refusal(alignment_of, still, rig_of(TURNTABLE).run())
    assert words == "compare: no joint moves in both runs; compare them without --align"
