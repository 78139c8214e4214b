"""The shift in time between two runs of the same experiment, such as a simulated one and one on a test rig."""

from __future__ import annotations

import numpy as np
from scipy.signal import correlate

from cosim.core.errors import InputError
from cosim.rig.comparison import check_joints
from cosim.rig.run.run import Run

FOLLOWED = ("/reference_position", "/position")  # of these signals, the first that both runs have
LONGEST = 0.5  # of the shorter run


def alignment_of(a: Run, b: Run) -> float:
    """The shift [s]: what is at t in a is at t + shift in b, at most half of the shorter run.

    It has the largest correlation of the joints' references, or of their positions, to a fraction of a tick. Raises
    InputError for runs without a common one that moves.
    """
    check_joints(a, b)
    for kind in FOLLOWED:
        names = [name for name in a.signals if name.endswith(kind) and name in b]
        moving = [name for name in names if np.ptp(a[name]) > 0.0 and np.ptp(b[name]) > 0.0]
        if moving:
            break
    else:
        raise InputError("no joint moves in both runs; compare them without --align", "compare")
    step = float(np.median(np.diff(a.t)))
    grids = [np.arange(float(run.t[0]), float(run.t[-1]) + 0.5 * step, step) for run in (a, b)]
    likeness: np.ndarray | float = 0.0
    for name in moving:
        of_a, of_b = (_normed(np.interp(grid, run.t, run[name])) for grid, run in zip(grids, (a, b), strict=True))
        likeness = likeness + correlate(of_b, of_a, mode="full", method="fft")
    lags = np.arange(-len(grids[0]) + 1, len(grids[1]))
    within = np.abs(lags) <= LONGEST * min(map(len, grids))
    values, lags = np.asarray(likeness)[within], lags[within]
    k = int(values.argmax())
    return float(grids[1][0] - grids[0][0] + (lags[k] + _peak(values[max(k - 1, 0) : k + 2])) * step)


def _normed(values: np.ndarray) -> np.ndarray:
    rate = np.diff(values, append=values[-1])  # what is constant does not count
    return rate / np.linalg.norm(rate)


def _peak(around: np.ndarray) -> float:
    """Of a parabola through three values, from the middle one."""
    if len(around) < 3 or (bend := around[0] - 2.0 * around[1] + around[2]) >= 0.0:
        return 0.0
    return float(0.5 * (around[0] - around[2]) / bend)
