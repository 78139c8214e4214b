"""The recorded motion of a rig and what drove it, from a recording or a table, and its filtered derivatives."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from cosim.errors import InputError, did_you_mean
from cosim.rig.rig import Rig
from cosim.rig.run import open_recording
from cosim.types import Array

POSITIONS = ("measured_position", "position")  # signals of a joint, the first one that a file has
SHORTEST = 1.0  # s
STILL = 1e-6  # rad or m: a joint that moves less does not move
JITTER = 1e-3  # of intervals between rows, as a fraction of their mean
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
    of each joint, SI."""

    path: str
    joints: tuple[str, ...]
    t: Array
    position: Array
    drive: Array
    source: str

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


def read_motion(rig: Rig, path: str | Path, sources: Sequence[str]) -> RecordedMotion:
    """sources: signals of what drives a joint, in the order of preference; one is taken for all joints.

    Raises InputError for a file of another rig, without a signal, too short, without motion, or with gaps.
    """
    names, read = _csv(path) if Path(path).suffix == ".csv" else _recording(rig, path)
    joints = actuated_joints(rig)
    known = set(names)
    missing = [joint for joint in joints if not any(f"{joint}/{what}" in known for what in POSITIONS)]
    if missing:
        near = did_you_mean(f"{missing[0]}/position", names)
        raise InputError(f"has no signal '{missing[0]}/position'{near}", str(path))
    source = next((what for what in sources if all(f"{joint}/{what}" in known for joint in joints)), None)
    if source is None:
        wanted = next(joint for joint in joints if f"{joint}/{sources[0]}" not in known)
        others = "" if len(sources) == 1 else f", nor {' or '.join(sources[1:])} of all joints"
        raise InputError(f"has no signal '{wanted}/{sources[0]}'{others}; record what drives each joint", str(path))
    positions = [next(f"{joint}/{what}" for what in POSITIONS if f"{joint}/{what}" in known) for joint in joints]
    columns = read(["t", *positions, *(f"{joint}/{source}" for joint in joints)])
    n = len(joints)
    motion = RecordedMotion(str(path), joints, columns[:, 0], columns[:, 1 : n + 1], columns[:, n + 1 :], source)
    _check(motion)
    return motion


def actuated_joints(rig: Rig) -> tuple[str, ...]:
    """Those with a drive."""
    return tuple(name for name in rig.joints if name in rig.plant.actuators)


Reader = Callable[[Sequence[str]], Array]


def _recording(rig: Rig, path: str | Path) -> tuple[list[str], Reader]:
    run = open_recording(path)
    if not set(rig.joints) <= set(run.joints):
        other = next(joint for joint in rig.joints if joint not in run.joints)
        what = f"is a recording of '{run.rig.name}', which has no joint '{other}' of '{rig.run_spec.name}'"
        raise InputError(f"{what}; give a recording of this rig", str(path))

    def read(names: Sequence[str]) -> Array:
        found = run.chosen(names[1:])
        return np.column_stack([np.asarray(run.t), *(found[name] for name in names[1:])])

    return list(run.signals), read


def _csv(path: str | Path) -> tuple[list[str], Reader]:
    """A table with a line of names, `t` first."""
    try:
        with open(path, encoding="utf-8") as file:
            names = file.readline().rstrip("\r\n").split(",")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {getattr(error, 'strerror', None) or error}", str(path)) from None
    if names[0] != "t":
        raise InputError("has no line of names that begins with 't'; write it as 'cosim export' does", str(path))

    def read(wanted: Sequence[str]) -> Array:
        places = [names.index(name) for name in wanted]
        try:
            with warnings.catch_warnings():  # of a table without rows
                warnings.simplefilter("ignore")
                return np.loadtxt(path, delimiter=",", skiprows=1, usecols=places, ndmin=2).reshape(-1, len(places))
        except ValueError:
            what = f"line {_wrong_line(path, places)} does not have a number for each signal"
            raise InputError(what, str(path)) from None

    return names, read


def _wrong_line(path: str | Path, places: Sequence[int]) -> int:
    with open(path, encoding="utf-8") as file:
        rows = (line.split(",") for line in file)
        return next(n for n, row in enumerate(rows, 1) if n > 1 and not _are_numbers(row, places))


def _are_numbers(row: Sequence[str], places: Sequence[int]) -> bool:
    try:
        return all(float(row[k]) is not None for k in places)
    except (ValueError, IndexError):
        return False


def _check(motion: RecordedMotion) -> None:
    """Raises InputError for a motion that cannot be differentiated."""

    def fail(what: str) -> InputError:
        return InputError(what, motion.path)

    if len(motion.t) < 2 or motion.t[-1] - motion.t[0] < SHORTEST:
        length = float(motion.t[-1] - motion.t[0]) if len(motion.t) else 0.0
        raise fail(f"has {length:.3g} s of motion; record at least {SHORTEST:g} s")
    for name, values in (("t", motion.t), ("the positions", motion.position), ("the drives", motion.drive)):
        if not np.isfinite(values).all():
            raise fail(f"{np.count_nonzero(~np.isfinite(values))} numbers of {name} are not finite; record them again")
    intervals = np.diff(motion.t)
    if np.abs(intervals - motion.step).max() > JITTER * motion.step:
        at = int(np.argmax(np.abs(intervals - motion.step)))
        what = f"the rows are {motion.step:.4g} s apart, but {intervals[at]:.4g} s after t = {motion.t[at]:.4g} s"
        raise fail(f"{what}; record all ticks, or cut the file there")
    if np.ptp(motion.position, axis=0).max() < STILL:
        raise fail("no joint moves; record a motion, such as that of 'cosim identify --excite'")


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
