"""The recorded motion of a rig and what drove it, from a recording or a table, and its filtered derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from cosim.core.errors import InputError
from cosim.core.tables import open_table
from cosim.core.tables.joint_columns import SAID_BY_THE_FILE, NamedColumns, TableOptions
from cosim.core.tables.log import MeasuredColumn, read_log
from cosim.core.types import Array
from cosim.rig.rig import Rig

POSITIONS = ("measured_position", "position")  # signals of a joint, the first one that a file has
SHORTEST_MOTION = 1.0  # s
STILL = 1e-6  # rad or m: a joint that moves less does not move
JITTER = 1e-3  # of intervals between rows, as a fraction of their median
FEW_GAPS = 10  # more are no gaps but uneven times
SPARSE = 0.1  # s between rows: no motion of a machine is recorded as slowly, but a time in ms looks like it
RATE_PER_CUTOFF = 8.0  # least rows per period of the cut-off frequency
WIDTH = 0.1325  # standard deviation of the filter's Gaussian, in periods of the cut-off frequency (-3 dB)
REACH = 5.0  # standard deviations that the filter reaches
LIGHT = 5.0  # cut-off before the equations are evaluated, of the cut-off of their results
ROWS_PER_LIGHT = 4.0  # rows per period of the former at which they are evaluated
CUTOFF = 10.0  # Hz, by default
SLOW = 0.03  # rad/s or m/s, below which dry friction depends on more than the direction


@dataclass(frozen=True)
class RecordedMotion:
    """Of n joints with drives at k equally spaced times: t (k,) [s], position (k, n), drive (k, n): the signal `source`
    of each joint, SI; notes: what was guessed or changed."""

    path: str
    joints: tuple[str, ...]
    t: Array
    position: Array
    drive: Array
    source: str
    notes: tuple[str, ...] = ()

    @property
    def step(self) -> float:
        return float((self.t[-1] - self.t[0]) / (len(self.t) - 1))


@dataclass(frozen=True)
class MotionSamples:
    """Position, velocity, acceleration and drive (k, nv) at k times that are close together, and the filter for what
    follows from them: its width in rows, and the rows `kept` (n,) afterwards, so far apart that their noise is
    independent. drive_rate: the derivative of the drive by time; moving (n, nv): bool, joints that do not turn round as
    far as the filter reaches, where dry friction jumps; delay [s]: by which the drive was shifted.

    The equations are not linear: filtered positions would not obey them.
    """

    t: Array
    position: Array
    velocity: Array
    acceleration: Array
    drive: Array
    drive_rate: Array
    width: float
    kept: Array
    moving: Array
    delay: float = 0.0

    def part(self, which: slice) -> MotionSamples:
        """Of the kept rows."""
        return replace(self, kept=self.kept[which], moving=self.moving[which])

    def smoothed(self, values: Array) -> Array:
        """(n, …) of values (k, …) that follow from the rows."""
        from scipy.ndimage import gaussian_filter1d

        if not self.width:
            return values[self.kept]
        return gaussian_filter1d(values, self.width, axis=0, mode="nearest", truncate=REACH)[self.kept]

    def __len__(self) -> int:
        return len(self.kept)


def read_motion(
    rig: Rig, path: str | Path, sources: Sequence[str], options: TableOptions = SAID_BY_THE_FILE
) -> RecordedMotion:
    """sources: signals of what drives a joint, in the order of preference; one is taken for all joints. options: what
    the file does not say.

    Raises InputError for a file of another rig, without a signal, too short, without motion, or with gaps.
    """
    joints, table = actuated_joints(rig), open_table(path, options.topic)
    of = NamedColumns.of(table, rig.joints, options)
    what = next((what for what in POSITIONS if of.all(joints, what) is not None), POSITIONS[-1])
    source = next((source for source in sources if of.all(joints, source) is not None), sources[0])
    positions = of.required(joints, what)
    if of.all(joints, source) is None:
        lacking = next(joint for joint in joints if of.column(joint, source) is None)
        others = "" if len(sources) == 1 else f", nor {' or '.join(sources[1:])} of all joints"
        fix = f"record what drives each joint, or name it by {of.way(f'{lacking}/{source}')}"
        raise InputError(f"no column '{lacking}/{source}'{others}; {fix}", str(path))
    drives = of.required(joints, source)
    dofs = [rig.plant.model.dof_units[rig.plant.model.dof_index(joint)] for joint in joints]
    wanted = [
        MeasuredColumn(*of_joint)
        for quantity, columns in ((what, positions), (source, drives))
        for of_joint in zip(joints, [quantity] * len(joints), columns, dofs, strict=True)
    ]
    log = read_log(of, wanted)
    position, drive = np.split(log.values, 2, axis=1)
    motion = RecordedMotion(str(path), joints, log.t, position, drive, source, log.notes)
    _check(motion, log.lines)
    return motion


def unit_of_time(motion: RecordedMotion) -> str:
    """In which unit the times may be, in words with the fix; empty where they are in s."""
    if motion.step < SPARSE:
        return ""
    unit, factor = ("ms", 1e-3) if motion.step < 1e3 * SPARSE else ("us", 1e-6)
    length = motion.t[-1] - motion.t[0]
    what = f"rows {motion.step:.4g} s apart look like times in {unit}"
    return f"{what}; give t in s, from {factor * motion.t[0]:.4g} to {factor * (motion.t[0] + length):.4g}"


def actuated_joints(rig: Rig) -> tuple[str, ...]:
    """Those with a drive."""
    return tuple(name for name in rig.joints if name in rig.plant.actuated)


def _check(motion: RecordedMotion, lines: np.ndarray) -> None:
    """Raises InputError for a motion that cannot be differentiated; lines (k,): of its rows, empty without."""

    def fail(what: str) -> InputError:
        return InputError(what, motion.path)

    if len(motion.t) < 2 or motion.t[-1] - motion.t[0] < SHORTEST_MOTION:
        length = float(motion.t[-1] - motion.t[0]) if len(motion.t) else 0.0
        raise fail(f"has {length:.3g} s of motion; record at least {SHORTEST_MOTION:g} s")
    for name, values in (("t", motion.t), ("the positions", motion.position), ("the drives", motion.drive)):
        if not np.isfinite(values).all():
            raise fail(f"{np.count_nonzero(~np.isfinite(values))} numbers of {name} are not finite; record them again")
    intervals = np.diff(motion.t)
    step = float(np.median(intervals))
    other = np.abs(intervals - step) > JITTER * step
    if other.any():
        at = int(np.argmax(np.abs(intervals - step)))
        where = f"t = {motion.t[at]:.6g} s" + (f" (line {lines[at]})" if len(lines) else "")
        what = f"the rows are {step:.4g} s apart, but {intervals[at]:.4g} s after {where}"
        if (count := int(other.sum())) > FEW_GAPS:
            raise fail(f"{what}, and {count - 1} others are uneven too; record all ticks, or interpolate them evenly")
        raise fail(f"{what}; record all ticks, or cut the file there")
    if np.ptp(motion.position, axis=0).max() < STILL:
        raise fail("no joint moves; record a motion, such as one from 'cosim identify --excite'")


def samples_of(motion: RecordedMotion, cutoff: float, delay: float = 0.0) -> MotionSamples:
    """cutoff: of the filter [Hz]; delay [s]: from the recording of a drive to its effect. Raises InputError for a
    cut-off that does not fit the recording."""
    from scipy.ndimage import gaussian_filter1d

    most = 1.0 / (RATE_PER_CUTOFF * motion.step)
    if not 0.0 < cutoff <= most:
        what = f"is {cutoff:g} Hz; rows of {1.0 / motion.step:.5g} Hz allow more than 0 and up to {most:.4g} Hz"
        raise InputError(what, "--cutoff")
    light = min(LIGHT * cutoff, most)
    first, second = (WIDTH / (f * motion.step) for f in (light, cutoff))
    reach = int(np.ceil(REACH * second))
    second = float(np.sqrt(max(second**2 - first**2, 0.0)))  # both together have the cut-off
    if len(motion.t) < 4 * reach + 8:
        need = (4 * reach + 8) * motion.step
        what = f"has {motion.t[-1] - motion.t[0]:.3g} s; a cut-off of {cutoff:g} Hz needs {need:.3g} s"
        raise InputError(what, motion.path)
    drives = motion.drive
    if delay:
        drives = np.column_stack([np.interp(motion.t - delay, motion.t, column) for column in drives.T])
    # a Gaussian does not ring behind the jumps of dry friction
    position, drive = (
        gaussian_filter1d(values, first, axis=0, mode="nearest", truncate=REACH) for values in (motion.position, drives)
    )
    velocity = np.gradient(position, motion.step, axis=0, edge_order=2)
    # not the gradient of a gradient, which is wider
    acceleration = np.zeros_like(position)
    acceleration[1:-1] = (position[2:] - 2.0 * position[1:-1] + position[:-2]) / motion.step**2
    rate = np.gradient(drive, motion.step, axis=0, edge_order=2)
    thin = max(1, int(1.0 / (ROWS_PER_LIGHT * light * motion.step)))
    apart = max(1, int(1.0 / (2.0 * cutoff * motion.step * thin)))
    columns = (motion.t, position, velocity, acceleration, drive, rate)
    rows = [np.ascontiguousarray(values[::thin]) for values in columns]
    edge = -(-(reach + 1) // thin)
    kept = np.arange(edge, len(rows[0]) - edge, apart)
    moving = _keep_moving(rows[2], -(-reach // thin))[kept]
    return MotionSamples(*rows, width=second / thin, kept=kept, moving=moving, delay=delay)


def _keep_moving(velocity: Array, reach: int) -> Array:
    """bool (k, nv): whether the joint moves in one direction at all times so near (in rows)."""
    from scipy.ndimage import maximum_filter1d, minimum_filter1d

    lowest, highest = (extreme(velocity, 2 * reach + 1, axis=0) for extreme in (minimum_filter1d, maximum_filter1d))
    return (lowest > SLOW) | (highest < -SLOW)


def default_cutoff(motion: RecordedMotion) -> float:
    """[Hz]"""
    return min(CUTOFF, 1.0 / (RATE_PER_CUTOFF * motion.step))
