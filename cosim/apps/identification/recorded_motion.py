"""The recorded motion of a rig and what drove it, from a recording or a table, and its filtered derivatives."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from cosim.apps.identification.recorded_contacts import ForceColumns
from cosim.core.errors import InputError, listed
from cosim.core.tables import open_table
from cosim.core.tables.even_rows import STEPS_PER_MEAN, even_rows
from cosim.core.tables.joint_columns import NamedColumns
from cosim.core.tables.log import MeasuredColumn, read_log
from cosim.core.tables.options import SAID_BY_THE_FILE, TableOptions
from cosim.core.tables.table import FileTable
from cosim.core.types import Array
from cosim.rig.rig import Rig

POSITIONS = ("measured_position", "position")  # signals of a joint, the first one that a file has
SHORTEST_MOTION = 1.0  # s
FIXED = 2e-3  # rad or m: a joint that moves more is not fixed
STILL = 1e-6  # rad or m: a joint that moves less does not move
SPARSE = 0.1  # s between rows: no motion of a machine is recorded as slowly, but a time in ms looks like it
RATE_PER_CUTOFF = 8.0  # least rows per period of the cut-off frequency
WIDTH = 0.1325  # standard deviation of the filter's Gaussian, in periods of the cut-off frequency (-3 dB)
REACH = 5.0  # standard deviations that the filter reaches
LIGHT = 5.0  # cut-off before the equations are evaluated, of the cut-off of their results
ROWS_PER_LIGHT = 4.0  # rows per period of the former at which they are evaluated
CUTOFF, SLOWEST = 10.0, 2.0  # Hz, by default: the most and the least
PASSED, NEARLY_ALL = 2.0, 0.99  # times the frequencies below which so much of the power of the speeds is
NOISE_OF_ACCELERATION = 0.03  # of the acceleration itself, that the default leaves
SLOW = 0.03  # rad/s or m/s, below which dry friction depends on more than the direction


@dataclass(frozen=True)
class RecordedMotion:
    """Of n joints with drives at k equally spaced times: t (k,) [s], position (k, n), drive (k, n): the signal `source`
    of each joint, SI; window [s]: over which rows are means of uneven ones, 0 for rows as they were; logged [s]: times
    of the latter, empty without; gaps: (begin, end) [s] between which nothing was recorded; notes: what was guessed or
    changed; fixed (m,): positions of joints that do not move; wrenches (k, 6 c): of contacts, see `ForceColumns`."""

    path: str
    joints: tuple[str, ...]
    t: Array
    position: Array
    drive: Array
    source: str
    window: float = 0.0
    logged: Array = field(default_factory=lambda: np.zeros(0))
    gaps: tuple[tuple[float, float], ...] = ()
    notes: tuple[str, ...] = ()
    fixed: Array = field(default_factory=lambda: np.zeros(0))
    wrenches: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def step(self) -> float:
        return float((self.t[-1] - self.t[0]) / (len(self.t) - 1))


@dataclass(frozen=True)
class MotionSamples:
    """Position, velocity, acceleration and drive (k, nv) at k times that are close together, and the filter for what
    follows from them: its width in rows, and the rows `kept` (n,) afterwards, so far apart that their noise is
    independent. drive_rate: the derivative of the drive by time; moving (n, nv): bool, joints that do not turn round as
    far as the filter reaches, where dry friction jumps; delay [s]: by which the drive was shifted; fixed (m,) and
    wrenches (k, 6 c): see the motion.

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
    fixed: Array = field(default_factory=lambda: np.zeros(0))
    wrenches: Array = field(default_factory=lambda: np.zeros(0))

    def part(self, which: slice) -> MotionSamples:
        """Of the kept rows."""
        return replace(self, kept=self.kept[which], moving=self.moving[which])

    def first(self, rows: int) -> MotionSamples:
        """The first rows, none smoothed, and all kept."""
        columns = ("t", "position", "velocity", "acceleration", "drive", "drive_rate", "wrenches")
        few = {name: getattr(self, name)[:rows] for name in columns}
        count = len(few["t"])
        return replace(self, **few, width=0.0, kept=np.arange(count), moving=np.ones(few["drive"].shape, dtype=bool))

    def smoothed(self, values: Array) -> Array:
        """(n, …) of values (k, …) that follow from the rows."""
        from scipy.ndimage import gaussian_filter1d

        if not self.width:
            return values[self.kept]
        return gaussian_filter1d(values, self.width, axis=0, mode="nearest", truncate=REACH)[self.kept]

    def __len__(self) -> int:
        return len(self.kept)


def read_motion(
    rig: Rig,
    path: str | Path,
    sources: Sequence[str],
    options: TableOptions = SAID_BY_THE_FILE,
    fixed: Sequence[str] = (),
    contacts: Sequence[str] = (),
) -> RecordedMotion:
    """sources: signals of what drives a joint, in the order of preference; one is taken for all joints. options: what
    the file does not say; fixed: joints that do not move, at their positions in the file, or else in the rig; contacts:
    whose forces are read.

    Uneven rows become means over equal intervals. Raises InputError for a file of another rig, without a signal, too
    short, without motion, or with too many rows missing, and for fixed joints that move.
    """
    joints, table = actuated_joints(rig, fixed), open_table(path, options.topic)
    of = NamedColumns.of(table, [name for name in rig.joints if name not in fixed], options, by_order=True)
    what = next((what for what in POSITIONS if of.all(joints, what) is not None), POSITIONS[-1])
    source = next((source for source in sources if of.all(joints, source) is not None), sources[0])
    positions = of.required(joints, what)
    if of.all(joints, source) is None:
        lacking = next(joint for joint in joints if of.column(joint, source) is None)
        others = "" if len(sources) == 1 else f", nor {' or '.join(sources[1:])} of all joints"
        fix = f"record what drives each joint, or name it by {of.way(f'{lacking}/{source}')}"
        if source == "effort" and of.all(joints, "current") is not None:
            fix += f", or take it from the current by {of.keys[3]}effort, such as '14.87 N*m/A'"
        raise InputError(f"no column '{lacking}/{source}'{others}; {fix}", str(path))
    drives = of.required(joints, source)
    dofs = [rig.plant.model.dof_units[rig.plant.model.dof_index(joint)] for joint in joints]
    wanted = [
        MeasuredColumn(*of_joint)
        for quantity, columns in ((what, positions), (source, drives))
        for of_joint in zip(joints, [quantity] * len(joints), columns, dofs, strict=True)
    ]
    plates, n = ForceColumns.of(table, contacts), len(joints)
    log = read_log(of, [*wanted, *plates.columns])
    _check_length(log.t, str(path))
    values = np.hstack([log.values[:, : 2 * n], plates.wrenches(log.values[:, 2 * n :])])
    rows = even_rows(log.t, values, log.places.row, str(path))
    _check_length(rows.t, str(path))
    position, drive, wrenches = np.split(rows.values, [n, 2 * n], axis=1)
    if np.ptp(position, axis=0).max() < STILL:
        raise InputError("no joint moves; record a motion, such as one from 'cosim identify --excite'", str(path))
    still, of_still = _fixed_positions(rig, table, options, fixed)
    notes = (*log.notes, *of.of_no_joint(rig.joints, [what, source]), *rows.notes, *of_still)
    logged = log.t if rows.window else np.zeros(0)
    return RecordedMotion(
        str(path), joints, rows.t, position, drive, source, rows.window, logged, rows.gaps, notes, still, wrenches
    )


def _fixed_positions(
    rig: Rig, table: FileTable, options: TableOptions, fixed: Sequence[str]
) -> tuple[Array, list[str]]:
    """(m,) and notes; see `read_motion`."""
    if not fixed:
        return np.zeros(0), []
    of = NamedColumns.of(table, rig.joints, options._replace(columns={}, gains={}))
    found, notes = [], list[str]()
    for joint in (name for name in rig.joints if name in fixed):
        dof = rig.plant.model.dof_index(joint)
        unit, start = rig.plant.model.dof_units[dof], float(rig.plant.start.q[dof])
        column = next((at for what in POSITIONS if (at := of.column(joint, what)) is not None), None)
        if column is None:
            notes.append(f"{joint} has no position here, and is taken to be at {start:.4g} {unit} as in the rig")
            found.append(start)
            continue
        values = read_log(of, [MeasuredColumn(joint, "position", column, unit)]).values[:, 0]
        if (moved := float(np.ptp(values))) > FIXED:
            raise InputError(f"joint '{joint}' moves by {moved:.3g} {unit}; leave it out of --fixed", str(table.path))
        found.append(float(np.mean(values)))
    return np.array(found), notes


def check_drives(motions: Sequence[RecordedMotion]) -> None:
    """Raises InputError for motions without a drive: equations of motion without one hold for masses of 0."""
    if any(motion.drive.any() for motion in motions):
        return
    names = listed([f"{joint}/{motions[0].source}" for joint in motions[0].joints])
    what = f"{names} {'is' if len(motions[0].joints) == 1 else 'are'} 0 in all rows, so that any masses explain it"
    raise InputError(f"{what}; record what drives the joints", motions[0].path)


def unit_of_time(motion: RecordedMotion) -> str:
    """In which unit the times may be, in words with the fix; empty where they are in s."""
    step = motion.step / (STEPS_PER_MEAN if motion.window else 1.0)
    if step < SPARSE:
        return ""
    unit, factor = ("ms", 1e-3) if step < 1e3 * SPARSE else ("us", 1e-6)
    length = motion.t[-1] - motion.t[0]
    what = f"rows {step:.4g} s apart look like times in {unit}"
    return f"{what}; give t in s, from {factor * motion.t[0]:.4g} to {factor * (motion.t[0] + length):.4g}"


def actuated_joints(rig: Rig, fixed: Collection[str] = ()) -> tuple[str, ...]:
    """Those with a drive that are not fixed."""
    return tuple(name for name in rig.joints if name in rig.plant.actuated and name not in fixed)


def _check_length(t: Array, path: str) -> None:
    if len(t) < 2 or t[-1] - t[0] < SHORTEST_MOTION:
        length = float(t[-1] - t[0]) if len(t) else 0.0
        raise InputError(f"has {length:.3g} s of motion; record at least {SHORTEST_MOTION:g} s", path)


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
    reach = reach_of(cutoff, motion.step)
    second = float(np.sqrt(max(second**2 - first**2, 0.0)))  # both together have the cut-off
    if len(motion.t) < 4 * reach + 8:
        need = (4 * reach + 8) * motion.step
        what = f"has {motion.t[-1] - motion.t[0]:.3g} s; a cut-off of {cutoff:g} Hz needs {need:.3g} s"
        raise InputError(what, motion.path)
    drives = late(motion.t, motion.drive, delay)
    # a Gaussian does not ring behind the jumps of dry friction
    columns = np.hstack([motion.position, drives, motion.wrenches.reshape(len(motion.t), -1)])
    n = len(motion.joints)
    filtered = gaussian_filter1d(columns, first, axis=0, mode="nearest", truncate=REACH)
    position, drive, wrenches = np.split(filtered, [n, 2 * n], axis=1)
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
    touched = (REACH * first + reach + thin + 2.0) * motion.step + 0.5 * motion.window + abs(delay)
    kept = np.arange(edge, len(rows[0]) - edge, apart)
    kept = kept[_beside_gaps(rows[0][kept], motion.gaps, touched)]
    moving = keep_moving(rows[2], -(-reach // thin))[kept]
    known = {"fixed": motion.fixed, "wrenches": np.ascontiguousarray(wrenches[::thin])}
    return MotionSamples(*rows, width=second / thin, kept=kept, moving=moving, delay=delay, **known)


def late(t: Array, columns: Array, delay: float) -> Array:
    """(k, n) columns at times (k,), each `delay` [s] later."""
    if not delay:
        return columns
    return np.column_stack([np.interp(t - delay, t, column) for column in columns.T])


def _beside_gaps(t: Array, gaps: Sequence[tuple[float, float]], reach: float) -> Array:
    """bool (k,): whether nothing within the reach [s] of the filters from a time is in a gap."""
    beside = np.ones(len(t), dtype=bool)
    for begin, end in gaps:
        first, last = np.searchsorted(t, [begin - reach, end + reach])
        beside[first:last] = False
    return beside


def keep_moving(velocity: Array, reach: int) -> Array:
    """bool (k, nv): whether the joint moves in one direction at all times so near (in rows)."""
    from scipy.ndimage import maximum_filter1d, minimum_filter1d

    lowest, highest = (extreme(velocity, 2 * reach + 1, axis=0) for extreme in (minimum_filter1d, maximum_filter1d))
    return (lowest > SLOW) | (highest < -SLOW)


def reach_of(cutoff: float, step: float) -> int:
    """Rows, `step` [s] apart, that the filter of a cut-off [Hz] reaches."""
    return int(np.ceil(REACH * WIDTH / (cutoff * step)))


def default_cutoff(motion: RecordedMotion) -> float:
    """[Hz] at which the noise of the positions makes a small part of the accelerations of the joint in the middle,
    which biases inertias by its square; at most CUTOFF, and well above the frequencies of the motion.

    White noise of σ per row has third differences of √20 σ. Behind a Gaussian of standard deviation s its second
    derivative has the variance 3 σ² h / (8 √π s⁵), with rows h apart.
    """
    most = min(CUTOFF, 1.0 / (RATE_PER_CUTOFF * motion.step))
    moves = np.std(motion.position, axis=0) > STILL
    noise = np.std(np.diff(motion.position[:, moves], 3, axis=0), axis=0) / np.sqrt(20.0)
    slow = samples_of(motion, min(SLOWEST, most)).acceleration[:, moves]
    allowed = NOISE_OF_ACCELERATION * np.sqrt(np.mean(slow**2, axis=0))
    with np.errstate(divide="ignore"):
        width = (3.0 * noise**2 * motion.step / (8.0 * np.sqrt(np.pi) * allowed**2)) ** 0.2
        found = float(np.median(WIDTH / width))
    return min(most, max(found, SLOWEST, PASSED * _highest_frequency(motion)))


def _highest_frequency(motion: RecordedMotion) -> float:
    """[Hz] below which nearly all of the power of the speeds is, of the joint in the middle."""
    speed = np.diff(motion.position, axis=0)
    power = np.cumsum(np.abs(np.fft.rfft(speed - speed.mean(axis=0), axis=0)) ** 2, axis=0)
    rows = np.argmax(power > NEARLY_ALL * power[-1], axis=0)
    return float(np.median(rows) / (len(speed) * motion.step))
