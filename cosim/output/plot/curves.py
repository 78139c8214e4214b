"""The points of a curve: thinned, and interrupted where an angle jumps."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

PIXEL_COLUMNS = 800  # points are thinned to the minimum and maximum of each
LARGEST = 1e100  # larger values of a diverged run would overflow the axes


def thin(x: np.ndarray, y: np.ndarray, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """At most 2·columns points of the curve (x, y), both (k,), that look the same.

    The minimum and the maximum of every stretch stay, so no peak is lost. Values that are not finite, or beyond
    `LARGEST`, become NaN: an interruption of the curve.
    """
    y = np.where(np.abs(y) <= LARGEST, y, np.nan)
    width = -(-len(y) // columns)
    if width <= 2:
        return x, y
    stretches = np.full(-(-len(y) // width) * width, np.nan)
    stretches[: len(y)] = y
    stretches = stretches.reshape(-1, width)
    gaps = np.isnan(stretches)
    lowest = np.where(gaps, np.inf, stretches).argmin(axis=1)
    highest = np.where(gaps, -np.inf, stretches).argmax(axis=1)
    starts = np.arange(len(stretches)) * width
    keep = np.unique([starts + lowest, starts + highest])
    return x[keep], y[keep]


def thin_pieces(x: np.ndarray, y: np.ndarray, jumps: np.ndarray, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """The thinned curve, interrupted before each of the samples `jumps`; the columns are divided among its pieces."""
    xs, ys = [], []
    for a, b in zip(np.split(x, jumps), np.split(y, jumps), strict=True):
        a, b = thin(a, b, -(-columns * len(b) // max(len(y), 1)) or 1)
        xs += [a, a[-1:]]
        ys += [b, np.full(len(b[-1:]), np.nan)]
    return np.concatenate(xs[:-1]), np.concatenate(ys[:-1])


def angle_jumps(name: str, signals: Mapping[str, np.ndarray], units: Mapping[str, str]) -> np.ndarray:
    """Indices of the samples before which an angle of a spherical or free joint jumps; none for other signals.

    Such a joint has a quaternion `<joint>.qx/position`. Its angles (rad) are the components of a rotation vector, which
    changes its sign at half a turn.
    """
    joint, what = _joint_and_interface(name)
    if units.get(name) != "rad" or f"{joint}.qx/position" not in signals:
        return np.zeros(0, dtype=int)
    angles = [s for s in signals if units.get(s) == "rad" and _joint_and_interface(s) == (joint, what)]
    with np.errstate(over="ignore", invalid="ignore"):  # in a diverged run
        step = np.diff([signals[s] for s in angles], axis=1)
        return 1 + np.flatnonzero((step * step).sum(axis=0) > np.pi**2)


def _joint_and_interface(name: str) -> tuple[str, str]:
    """(joint, interface) of `<joint>.<dof>/<interface>`."""
    dof, _, what = name.rpartition("/")
    return dof.rpartition(".")[0], what
