"""The numbers of a rig that recordings determine, with their intervals, checked on what was not used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from cosim.apps.identification.acceptance import failure_of
from cosim.apps.identification.base_numbers import BaseNumber, base_numbers, have_base_numbers
from cosim.apps.identification.blocks import LoadBlock
from cosim.apps.identification.equation_error import check_identifiable_rig, has_equation_error, sources_of
from cosim.apps.identification.excitation import KnownInformation
from cosim.apps.identification.fit import Fit, LinearProblem, fit, nonlinear_blocks
from cosim.apps.identification.fitted_numbers import FittedNumbers
from cosim.apps.identification.identifiability import Seen, look, scales_of
from cosim.apps.identification.loads import load_block
from cosim.apps.identification.motion_file import MotionFile, of_joints
from cosim.apps.identification.output_error import ClosedLoop, fit_outputs, noise_of
from cosim.apps.identification.recorded_contacts import contacts_of
from cosim.apps.identification.recorded_errors import LoadedEquation, RecordedErrors
from cosim.apps.identification.recorded_motion import (
    RecordedMotion,
    actuated_joints,
    check_drives,
    default_cutoff,
    read_motion,
    samples_of,
    unit_of_time,
)
from cosim.apps.identification.repeated_recordings import repeated_rows
from cosim.apps.identification.residual_spectrum import ResidualSpectrum
from cosim.apps.identification.results import Identification, Unexplained, rms
from cosim.apps.identification.suspicions import cause_of
from cosim.apps.identification.variables import DEFAULT, Variables, choose
from cosim.core.compile.jacobian import Jacobian
from cosim.core.errors import InputError, RunError, did_you_mean
from cosim.core.tables.options import SAID_BY_THE_FILE, TableOptions
from cosim.core.types import Array
from cosim.rig.rig import Rig

EQUATION_ERROR, OUTPUT_ERROR = METHODS = ("equation-error", "output-error")
TRAINING = 0.7  # fraction of a recording that numbers are found from, where no others check them
FEWEST = 20  # samples of training in which joints move
SAME_ROWS = 0.5  # of the rows in which a joint moves, in which it must also move in another unit
DELAYS = 2  # further searches, each with the drives shifted by the delay found so far


class ReadFile(NamedTuple):
    file: MotionFile
    motion: RecordedMotion


def identify(
    rig: Rig,
    recordings: str | Path | MotionFile | Sequence[str | Path | MotionFile],
    wanted: Sequence[str] = DEFAULT,
    cutoff: float | None = None,
    training: float = TRAINING,
    method: str | None = None,
    table: TableOptions = SAID_BY_THE_FILE,
    check: Sequence[str | Path | MotionFile] = (),
    fixed: Sequence[str] = (),
    motors: Mapping[str, str] = MappingProxyType({}),
) -> Identification:
    """Find numbers of a rig from recordings of its motion, or tables, see `cosim.core.tables`.

    recordings: one or several, all in one fit; none with `check`: the numbers of the rig are judged, and none are
    found; wanted: words of `variables.WORDS` or names and patterns of
    `Rig.numbers`; cutoff [Hz]: of the filter of equation errors; check: recordings that the numbers predict, and are
    not found from; training: without these, the first fraction of each recording, from which numbers are found; method:
    `equation-error`, of the equations of motion, or `output-error`, of simulated runs of one recording (default: the
    former where the rig has one); table: what the files do not say; fixed: joints that do not move in the recordings
    (equation error); motors: joint -> coupled rotor of the mechanism whose position and effort its columns have. Raises
    InputError for a rig whose equations are not known, for a recording of another rig, one that is too short or has no
    motion or no signal of a joint, one of another motion than the rig's (of simulated runs), and for motions that
    determine none of the numbers.
    """
    for name in fixed:
        if name not in rig.joints:
            raise InputError(f"there is no joint '{name}'{did_you_mean(name, rig.joints)}", "--fixed")
    if method is None:
        method = EQUATION_ERROR if has_equation_error(rig, fixed) else OUTPUT_ERROR
    if method not in METHODS:
        raise InputError(f"there is no method '{method}'{did_you_mean(method, METHODS)}", "--method")
    if method == EQUATION_ERROR:
        check_identifiable_rig(rig, fixed=fixed)
    elif fixed:
        raise InputError("is for --method equation-error; latch the joint in the rig", "--fixed")
    elif not actuated_joints(rig):
        raise InputError("no joint has a simulated drive, so nothing drives the motion; add one", str(rig.spec.path))
    if not 0.1 <= training <= 0.95:
        raise InputError(f"is {training:g}; give a fraction from 0.1 to 0.95", "--training")
    given = [recordings] if isinstance(recordings, str | Path | MotionFile) else list(recordings)
    if not given and not check:
        raise InputError("there is no recording; give at least one", "recordings")
    if not given and method == OUTPUT_ERROR:
        raise InputError("there is no recording to find numbers from; run the rig, and compare the run", "recordings")
    files, checks = ([MotionFile.of(each) for each in part] for part in (given, check))
    dofs = dict(zip(rig.joints, rig.plant.model.dof_units, strict=True))
    read = []
    measured = contacts_of(rig) if method == EQUATION_ERROR else []  # simulated runs have contacts themselves
    for file in (*files, *checks):
        motion = of_joints(read_motion(rig, file.path, sources_of(rig), table, fixed, measured), rig, motors)
        read.append(ReadFile(file, file.corrected(motion, dofs)))
    chosen = choose(rig, wanted) if given else Variables(())
    if method == OUTPUT_ERROR:
        if len(read) > 1 or files[0].load:
            raise InputError("simulated runs have one recording without a load; give one", "--method output-error")
        found = by_output_error(rig, read[0], chosen, cutoff, training)
    else:
        found = by_equation_error(rig, read[: len(files)], read[len(files) :], chosen, cutoff, training, fixed)
    motions = [each.motion for each in read]
    found = replace(found, repeated=tuple(repeated_rows(motions[: len(files)], motions[len(files) :])))
    return replace(found, failure=failure_of(found, lambda: _cause(found, chosen, read[0], training, fixed)))


def has_contacts(rig: Rig, motion: RecordedMotion) -> bool:
    """Whether a motion has the forces of all contacts of a rig."""
    return 6 * len(contacts_of(rig)) == motion.wrenches.shape[-1]


def _cause(found: Identification, chosen: Variables, read: ReadFile, training: float, fixed: Sequence[str]) -> str:
    """The sign or the unit that explains a recording, in words; see `cause_of`."""
    if has_equation_error(found.rig, fixed) and has_contacts(found.rig, read.motion):
        given = FittedRecordings.of(found.rig, [read], [], chosen, found.cutoff, training, fixed)
        return cause_of(found.rig, read.motion, given.compared_with)

    def compare(motion: RecordedMotion) -> tuple[Array, Array]:
        now = np.array([check.explained for check in found.checks])
        return now, _explained_by_rig(found.rig, motion, chosen, training)

    return cause_of(found.rig, read.motion, compare)


# --- equation error ---


def known_information(
    found: Identification, rig: Rig, files: Sequence[MotionFile], wanted: Sequence[str]
) -> KnownInformation:
    """Of the recordings of an identification, `files`, on the variables of wanted numbers; rig: with the found ones."""
    chosen = choose(rig, wanted)
    read = [ReadFile(file, motion) for file, motion in zip(files, found.motions, strict=True)]
    given = FittedRecordings.of(rig, read, [], chosen, found.cutoff, 1.0)
    whole, n = given.variables, chosen.size  # loads are behind what is chosen
    x = np.zeros(whole.size)
    problem = LinearProblem.at(whole, given.errors, np.asarray(whole.linear(x), dtype=float))
    left = [rms(found.counted("after", joint, training=True)) for joint in found.motions[0].joints]
    noise = np.maximum(np.nan_to_num(left), problem.least)
    slope = problem.rows(noise, problem.beta)[:, :-1] @ Jacobian(whole.linear, [(whole.size,)], "linear")(x)
    matrix = slope.T @ slope
    of_loads = matrix[:n, n:] @ np.linalg.pinv(matrix[n:, n:]) @ matrix[n:, :n]  # which are not known
    return KnownInformation(matrix[:n, :n] - of_loads, noise, found.source, given.cutoff)


@dataclass(frozen=True)
class FittedRecordings:
    """Recordings with their errors. training: how many of the samples of each the numbers are found from."""

    rig: Rig
    variables: Variables
    errors: tuple[RecordedErrors, ...]
    motions: tuple[RecordedMotion, ...]
    training: tuple[int, ...]
    cutoff: float

    @staticmethod
    def of(
        rig: Rig,
        training: Sequence[ReadFile],
        checks: Sequence[ReadFile],
        chosen: Variables,
        cutoff: float | None,
        fraction: float,
        fixed: Sequence[str] = (),
    ) -> FittedRecordings:
        """Raises InputError for recordings in which no joint moves long enough."""
        read = [*training, *checks]
        if cutoff is None:
            cutoff = min(default_cutoff(each.motion) for each in read)
        loads = {load: load_block(rig, load) for each in read if (load := each.file.load)}
        variables = Variables((*chosen.blocks, *loads.values()))
        source = read[0].motion.source
        blocks, still = {None: None, **loads}, tuple(fixed)
        equations = {load: LoadedEquation(rig, variables, source, block, still) for load, block in blocks.items()}
        errors = [RecordedErrors(equations[each.file.load], samples_of(each.motion, cutoff)) for each in read]
        counts = [len(of.samples) if checks else round(fraction * len(of.samples)) for of in errors[: len(training)]]
        counts += [0] * len(checks)
        motions = tuple(each.motion for each in read)
        found = FittedRecordings(rig, variables, tuple(errors), motions, tuple(counts), float(cutoff))
        check_drives(motions[: len(training)] or motions)
        moving = sum(int(of.samples.moving.sum(axis=0).max(initial=0)) for of in found.parts or errors)
        if moving < FEWEST:
            what = f"has {moving} samples in which a joint moves steadily, {FEWEST} are needed"
            fix = unit_of_time(motions[0]) or "record a longer or a faster motion"
            fix += ", without gaps" if motions[0].gaps else ""
            raise InputError(f"{what}; {fix}", motions[0].path)
        return found

    @property
    def parts(self) -> list[RecordedErrors]:
        """What the numbers are found from."""
        return [of.part(slice(0, n)) for of, n in zip(self.errors, self.training, strict=True) if n]

    def fit(self) -> tuple[FittedRecordings, Fit]:
        """All numbers, again with the drives of the recordings shifted where the delay is one of them."""
        of, found = self, fit(self.variables, self.parts)
        for _ in range(DELAYS if self.variables.delayed else 0):
            of = self.delayed(found.delay(self.variables))
            found = fit(of.variables, of.parts)
        return of, found

    def delayed(self, seconds: float) -> FittedRecordings:
        pairs = zip(self.errors, self.motions, strict=True)
        shifted = [replace(of, samples=samples_of(motion, self.cutoff, seconds)) for of, motion in pairs]
        return replace(self, errors=tuple(shifted))

    @property
    def _drives(self) -> Array:
        """(nv,) root mean squares of the signals in training."""
        return np.sqrt(np.mean(np.concatenate([of.samples.drive for of in self.parts]) ** 2, axis=0))

    def _slopes(self, found: Fit) -> Array:
        """(k, nv, size) ∂e/∂β of all samples in training."""
        return np.concatenate([of(found.beta)[1] for of in self.parts])

    def seen(self, found: Fit) -> Seen:
        """What the recordings determine of the numbers."""
        by_beta, drive = self._slopes(found), np.maximum(self._drives, 1e-12)
        scales = scales_of(self.variables, found.values, found.deviations, by_beta, drive)
        return look(self.variables, found.slope, found.by_values, found.covariance, scales)

    def estimate(self, found: Fit, kept: Sequence[int]) -> tuple[Variables, FittedNumbers]:
        """Of these blocks."""
        whole = FittedNumbers(found.values, found.covariance, found.clusters)
        blocks = tuple(self.variables.blocks[k] for k in kept)
        return Variables(blocks), whole.part(self.variables.value_columns(kept))

    def base(self, found: Fit, kept: Sequence[int]) -> tuple[BaseNumber, ...]:
        """What the recordings determine of the kept blocks in which the errors are linear, the others as found; nothing
        of parts of bodies."""
        parts, whole = self.parts, self.variables
        others = nonlinear_blocks(whole, parts, found.beta, kept)
        kept = [k for k in kept if k not in others]
        if not have_base_numbers(whole.blocks[k] for k in kept):
            return ()
        columns = whole.columns(kept)
        slope = self._slopes(found)[..., columns]
        alone = [LinearProblem.at(whole, [of], found.beta).without_bounds(kept)[0][columns] for of in parts]
        return base_numbers(*self.estimate(found, kept), slope, self._drives, alone if len(parts) > 1 else ())

    def compared_with(self, motion: RecordedMotion) -> tuple[Array, Array] | None:
        """Fractions (n,) of the mean squares of the drives that the numbers explain in the part of the first recording
        that checks, and of another motion in its place, on the rows in which joints move in both; None where one that
        moves here hardly does there. NaN of joints at rest."""
        here, there = self.errors[0], replace(self.errors[0], samples=samples_of(motion, self.cutoff))
        common = here.samples.moving & there.samples.moving
        if (common.sum(axis=0) < SAME_ROWS * here.samples.moving.sum(axis=0)).any():
            return None
        found, rest = [], slice(self.training[0], None)
        for errors in (here, there):
            of = replace(errors, samples=replace(errors.samples, moving=common))
            beta = self._of_rig if self.is_judged else fit(self.variables, [of.part(slice(0, self.training[0]))]).beta
            drive, left = of.samples.smoothed(of.samples.drive)[rest], of.unexplained(beta)[rest]
            squares = [np.sum(np.where(common[rest], values, 0.0) ** 2, axis=0) for values in (left, drive)]
            with np.errstate(invalid="ignore", divide="ignore"):
                found.append(1.0 - squares[0] / squares[1])
        return found[0], found[1]

    @property
    def about(self) -> str:
        """What is compared."""
        motion = self.motions[0]
        return f"{motion.source} of {len(motion.joints)} joints below {self.cutoff:g} Hz"

    @property
    def _of_rig(self) -> Array:
        """β of its numbers."""
        return self.variables.linear_of_values(self.variables.rig)

    @property
    def is_judged(self) -> bool:
        """Whether no numbers of the rig are looked for."""
        return all(isinstance(block, LoadBlock) for block in self.variables.blocks)

    def judged(self) -> Identification:
        """What the numbers of the rig leave unexplained, and no others."""
        left = self.unexplained(self._of_rig)
        nothing, none = np.zeros(0), Variables(())
        seen, estimate = Seen((), nothing, nothing), FittedNumbers(nothing, np.zeros((0, 0)))
        return Identification(
            self.rig, self.motions, EQUATION_ERROR, self.about, self.cutoff, seen, none, estimate, left
        )

    def unexplained(self, beta: Array) -> tuple[Unexplained, ...]:
        """Of each recording, at the numbers of the rig and at others."""
        of_rig, left = self._of_rig, []
        for of, motion, count in zip(self.errors, self.motions, self.training, strict=True):
            samples = of.samples
            before, after = of.unexplained(of_rig), of.unexplained(beta)
            t, speed, drive = samples.t[samples.kept], samples.velocity[samples.kept], samples.smoothed(samples.drive)
            rows = t, speed, drive, before, after, samples.moving
            step = float(samples.t[1] - samples.t[0])
            spectrum = ResidualSpectrum.of(step, samples.drive, of.unexplained_rows(beta))
            left.append(Unexplained(motion.path, motion.joints, *rows, count, spectrum))
        return tuple(left)


def by_equation_error(
    rig: Rig,
    training: Sequence[ReadFile],
    checks: Sequence[ReadFile],
    chosen: Variables,
    cutoff: float | None,
    fraction: float,
    fixed: Sequence[str] = (),
) -> Identification:
    """See `identify`."""
    given = FittedRecordings.of(rig, training, checks, chosen, cutoff, fraction, fixed)
    if not training:
        return given.judged()
    recordings, found = given.fit()
    seen, variables = recordings.seen(found), recordings.variables
    kept = seen_blocks(variables, seen, training[0].motion.path)
    held = [k for k in range(len(variables.blocks)) if k not in kept]
    if held:
        found = fit(variables, recordings.parts, held)
    joints = training[0].motion.joints
    left = recordings.unexplained(found.beta)
    shares = dict(zip(joints, (found.left / found.noise).tolist(), strict=True))
    blocks, estimate = recordings.estimate(found, kept)
    base = recordings.base(found, kept)
    return Identification(
        rig, recordings.motions, EQUATION_ERROR, given.about, given.cutoff, seen, blocks, estimate, left, shares, base
    )


def seen_blocks(variables: Variables, seen: Seen, place: str) -> list[int]:
    """The blocks of which the motion determines anything. Raises InputError for none."""
    visible = {q.owner for q, unseen in zip(seen.quantities, seen.unseen, strict=True) if not unseen}
    kept = [k for k, block in enumerate(variables.blocks) if block.title in visible]
    if not kept:
        titles = " or ".join(quantity.title for quantity in seen.quantities[:3])
        raise InputError(f"{titles} is not identifiable from this motion; move the joints farther and faster", place)
    return kept


# --- output error ---


def by_output_error(
    rig: Rig, read: ReadFile, chosen: Variables, cutoff: float | None, training: float
) -> Identification:
    """See `identify`. Begins at what the equation error finds, where the rig has one."""
    motion = read.motion
    rows = round(training * len(motion.t))
    loops = [ClosedLoop(rig, chosen, motion, known) for known in (False, True)]
    loops[0].check(rows)
    start = _start(rig, read, chosen, cutoff, training)
    if start.any():  # near the numbers, the right controllers are the ones that are nearer to the recording
        loops = [min(loops, key=lambda loop: _misfit_at(loop, start, rows))]
    fits = [fit_outputs(loop, start, rows) for loop in loops]
    best = int(np.argmin([of.misfit for of in fits]))
    loop, found = loops[best], fits[best]
    by_values, values = chosen.slope(found.x), np.asarray(chosen.values(found.x), dtype=float)
    slope = found.slope.reshape(-1, chosen.size)
    scales = [block.scale for block in chosen.blocks]
    seen = look(chosen, slope, by_values, by_values @ found.loose @ by_values.T, scales)
    kept = seen_blocks(chosen, seen, motion.path)
    about = f"positions and {motion.source} of {len(motion.joints)} joints in simulated runs"
    about += " with controllers that know the numbers" if loop.known else ""
    estimate = FittedNumbers(values, by_values @ found.covariance @ by_values.T).part(chosen.value_columns(kept))
    blocks = Variables(tuple(chosen.blocks[k] for k in kept))
    left = (_unexplained(loop, found.x, rows),)
    return Identification(rig, (motion,), OUTPUT_ERROR, about, None, seen, blocks, estimate, left)


def _start(rig: Rig, read: ReadFile, chosen: Variables, cutoff: float | None, training: float) -> Array:
    """(size,) of the chosen variables: what the equation error finds; 0 for a rig or a motion without one."""
    x, motion = np.zeros(chosen.size), read.motion
    if not (has_equation_error(rig) and has_contacts(rig, motion)):
        return x
    try:
        near = by_equation_error(rig, [read], [], chosen, cutoff, training)
    except (InputError, RunError):
        return x
    values = dict(zip(near.variables.titles, near.variables.split(near.estimate.values), strict=True))
    for block, place in zip(chosen.blocks, chosen.places, strict=True):
        if block.title in values:
            x[place] = block.variables_of(values[block.title])
    return x


def _explained_by_rig(rig: Rig, motion: RecordedMotion, chosen: Variables, training: float) -> Array:
    """(n,) fractions of the mean squares of the drives that a run with the numbers of the rig explains."""
    loop, rows = ClosedLoop(rig, chosen, motion, True), round(training * len(motion.t))
    drive, start = loop.means(motion.drive), loop.count(rows)
    left = loop.errors(chosen.of_rig[None], len(motion.t))[0][:, len(motion.joints) :]
    with np.errstate(invalid="ignore", divide="ignore"):
        return 1.0 - np.sum(left[start:] ** 2, axis=0) / np.sum(drive[start:] ** 2, axis=0)


def _misfit_at(loop: ClosedLoop, x: Array, rows: int) -> float:
    try:
        errors = loop.errors(x[None], rows)[0]
    except InputError:  # of numbers on which the controllers depend in another way
        return np.inf
    return float(np.sum(np.log(noise_of(loop, errors))))


def _unexplained(loop: ClosedLoop, x: Array, rows: int) -> Unexplained:
    motion, n = loop.motion, len(loop.motion.joints)
    both = np.vstack([loop.variables.of_rig, x])
    before, after = loop.errors(both, len(motion.t))[:, :, n:]
    speed = np.gradient(motion.position, motion.step, axis=0)
    t, speed, drive = (loop.means(of) for of in (motion.t, speed, motion.drive))
    counted = np.ones(drive.shape, bool)
    spectrum = ResidualSpectrum.of(float(t[1] - t[0]), drive, after)
    return Unexplained(motion.path, motion.joints, t, speed, drive, before, after, counted, loop.count(rows), spectrum)
