"""The numbers of a rig that a recording determines, with their intervals, checked on a part that was not used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from cosim.apps.identification.equation_error import (
    EquationError,
    check_identifiable_rig,
    has_equation_error,
    sources_of,
)
from cosim.apps.identification.fit import Fit, Reduced, SampledError, fit, noise_at_start
from cosim.apps.identification.identifiability import PRIOR, Seen, look
from cosim.apps.identification.output_error import ClosedLoop, OutputFit, fit_outputs, noise_of
from cosim.apps.identification.recorded_motion import (
    MotionSamples,
    RecordedMotion,
    actuated_joints,
    default_cutoff,
    read_motion,
    samples_of,
    unit_of_time,
)
from cosim.apps.identification.results import Identification, JointCheck, Unexplained, doubtful, rms_of
from cosim.apps.identification.suspicions import LEAST_EXPLAINED, cause_of
from cosim.apps.identification.variables import DEFAULT, VariableBlock, Variables, choose
from cosim.core.errors import InputError, did_you_mean
from cosim.core.tables.options import SAID_BY_THE_FILE, TableOptions
from cosim.core.types import Array
from cosim.core.units import show_percent
from cosim.rig.rig import Rig

EQUATION_ERROR, OUTPUT_ERROR = METHODS = ("equation-error", "output-error")
TRAINING = 0.7  # fraction of the recording that numbers are found from; the rest checks them
FEWEST = 20  # samples of training in which joints move
DELAYS = 2  # further searches, each with the drives shifted by the delay found so far


def identify(
    rig: Rig,
    recording: str | Path,
    wanted: Sequence[str] = DEFAULT,
    cutoff: float | None = None,
    training: float = TRAINING,
    method: str | None = None,
    table: TableOptions = SAID_BY_THE_FILE,
) -> Identification:
    """Find numbers of a rig from a recording of its motion, or a table, see `cosim.core.tables`.

    wanted: `inertia`, `friction`, `torque_constant`, `rotor_inertia`, `elasticity`, `delay`, or names and patterns of
    `Rig.numbers`; cutoff [Hz]: of the filter of equation errors; training: the first fraction of the recording, from
    which numbers are found; method: `equation-error`, of the equations of motion, or `output-error`, of simulated runs
    (default: the former where the rig has one); table: what the file does not say. Raises InputError for a rig whose
    equations are not known, for a recording of another rig, one that is too short or has no motion or no signal of a
    joint, one of another motion than the rig's (of simulated runs), and for a motion that determines none of them.
    """
    if method is None:
        method = EQUATION_ERROR if has_equation_error(rig) else OUTPUT_ERROR
    if method not in METHODS:
        raise InputError(f"there is no method '{method}'{did_you_mean(method, METHODS)}", "--method")
    if method == EQUATION_ERROR:
        check_identifiable_rig(rig)
    elif not actuated_joints(rig):
        raise InputError("no joint has a simulated drive, so nothing drives the motion; add one", str(rig.spec.path))
    if not 0.1 <= training <= 0.95:
        raise InputError(f"is {training:g}; give a fraction from 0.1 to 0.95", "--training")
    motion = read_motion(rig, recording, sources_of(rig), table)
    chosen = choose(rig, wanted)
    by_method = by_equation_error if method == EQUATION_ERROR else by_output_error
    found = by_method(rig, motion, chosen, cutoff, training)
    return replace(found, failure=_failure(found, chosen, training))


def _failure(found: Identification, chosen: Variables, training: float) -> str:
    """See `Identification.failure`, with the likely cause."""
    joints = doubtful(found.checks)
    if not joints:
        return ""
    worst = min(joints, key=lambda check: check.explained)

    def explained(motion: RecordedMotion) -> Array:
        if has_equation_error(found.rig):
            checks = by_equation_error(found.rig, motion, chosen, found.cutoff, training).checks
        else:
            checks = _rig_itself(found.rig, motion, chosen, training)
        return np.array([check.explained for check in checks])

    cause = cause_of(found.rig, found.motion, explained, worst.explained)
    signal, least = f"{worst.joint}/{found.motion.source}", f", {_percent(LEAST_EXPLAINED)} are needed"
    what = f"the numbers explain {_percent(worst.explained)} of the mean square of {signal} in the part that checks"
    if worst.explained >= LEAST_EXPLAINED:
        return f"{what}, but {cause}" if cause else ""
    return f"{what}{least}; {cause or 'no other sign or unit explains it, so check both in the drives and the rig'}"


def _percent(fraction: float) -> str:
    return show_percent(max(fraction, 0.0))


# --- equation error ---


def by_equation_error(
    rig: Rig, motion: RecordedMotion, chosen: Variables, cutoff: float | None, training: float
) -> Identification:
    """See `identify`."""
    cutoff = default_cutoff(motion) if cutoff is None else cutoff
    samples = samples_of(motion, cutoff)
    count = round(training * len(samples))
    moving = int(samples.moving[:count].sum(axis=0).max(initial=0))
    if moving < FEWEST:
        what = f"has {moving} samples in which a joint moves steadily, {FEWEST} are needed"
        fix = unit_of_time(motion) or "record a longer or a faster motion"
        fix += ", without gaps" if motion.gaps else ""
        raise InputError(f"{what}; {fix}", motion.path)
    equation = EquationError(rig, chosen.names, motion.source)
    seen, variables = _visible(chosen, equation, samples.part(slice(0, count)), motion.path)
    equation = EquationError(rig, variables.names, motion.source)
    found = fit(SampledError(variables, equation, samples.part(slice(0, count))))
    for _ in range(DELAYS if variables.delayed else 0):
        samples = samples_of(motion, cutoff, float(variables.values(found.x)[-1]))
        found = fit(SampledError(variables, equation, samples.part(slice(0, count))))
    everywhere = SampledError(variables, equation, replace(samples, moving=np.ones_like(samples.moving)))
    before, after = (everywhere(x)[0] for x in (variables.of_rig, found.x))
    drive = samples.smoothed(samples.drive)
    left = Unexplained(motion.joints, samples.t[samples.kept], drive, before, after, samples.moving, count)
    about = f"{motion.source} of {len(motion.joints)} joints below {cutoff:g} Hz"
    return Identification(rig, motion, EQUATION_ERROR, about, float(cutoff), seen, variables, found, left)


def _visible(chosen: Variables, equation: EquationError, samples: MotionSamples, place: str) -> tuple[Seen, Variables]:
    """What the motion determines of the chosen variables, and the variables of which it determines anything. Raises
    InputError for none."""
    error, start = SampledError(chosen, equation, samples), np.zeros(chosen.size)
    noise = noise_at_start(error)
    reduced = Reduced.at(error, start, noise)
    seen = look(chosen, reduced(start)[1][: -chosen.size], chosen.slope(start), reduced.covariance(start, PRIOR))
    return seen, _seen_of(chosen, seen, place)


def _seen_of(chosen: Variables, seen: Seen, place: str) -> Variables:
    visible = {q.owner for q, unseen in zip(seen.quantities, seen.unseen, strict=True) if not unseen}
    kept = tuple(block for block in chosen.blocks if block.title in visible)
    if not kept:
        titles = " or ".join(quantity.title for quantity in seen.quantities[:3])
        raise InputError(f"{titles} is not identifiable from this motion; move the joints farther and faster", place)
    return Variables(kept)


# --- output error ---


def by_output_error(
    rig: Rig, motion: RecordedMotion, chosen: Variables, cutoff: float | None, training: float
) -> Identification:
    """See `identify`. Begins at what the equation error finds, where the rig has one."""
    rows = round(training * len(motion.t))
    loops = [ClosedLoop(rig, chosen, motion, known) for known in (False, True)]
    loops[0].check(rows)
    start = _start(rig, motion, chosen, cutoff, training)
    if start.any():  # near the numbers, the right controllers are the ones that are nearer to the recording
        loops = [min(loops, key=lambda loop: _misfit_at(loop, start, rows))]
    fits = [fit_outputs(loop, start, rows) for loop in loops]
    best = int(np.argmin([of.misfit for of in fits]))
    loop, found = loops[best], fits[best]
    seen = look(chosen, found.slope.reshape(-1, chosen.size), chosen.slope(found.fit.x), found.loose)
    variables = _seen_of(chosen, seen, motion.path)
    about = f"positions and {motion.source} of {len(motion.joints)} joints in simulated runs"
    about += " with controllers that know the numbers" if loop.known else ""
    kept = _kept(chosen, variables, found.fit)
    left = _unexplained(loop, found, rows)
    return Identification(rig, motion, OUTPUT_ERROR, about, None, seen, variables, kept, left)


def _start(rig: Rig, motion: RecordedMotion, chosen: Variables, cutoff: float | None, training: float) -> Array:
    """(size,) of the chosen variables: what the equation error finds; 0 for a rig or a motion without one."""
    x = np.zeros(chosen.size)
    if not has_equation_error(rig):
        return x
    try:
        near = by_equation_error(rig, motion, chosen, cutoff, training)
    except InputError:
        return x
    found = {block.title: near.fit.x[place] for block, place in _placed(near.variables)}
    for block, place in _placed(chosen):
        x[place] = found.get(block.title, x[place])
    return x


def _placed(variables: Variables) -> Iterator[tuple[VariableBlock, slice]]:
    return zip(variables.blocks, variables.places, strict=True)


def _misfit_at(loop: ClosedLoop, x: Array, rows: int) -> float:
    try:
        errors = loop.errors(x[None], rows)[0]
    except InputError:  # of numbers on which the controllers depend in another way
        return np.inf
    return float(np.sum(np.log(noise_of(loop, errors))))


def _kept(chosen: Variables, kept: Variables, found: Fit) -> Fit:
    """The fit of some of the variables."""
    titles = {block.title for block in kept.blocks}
    places = np.concatenate([np.arange(p.start, p.stop) for block, p in _placed(chosen) if block.title in titles])
    return Fit(found.x[places], found.covariance[np.ix_(places, places)], found.noise)


def _rig_itself(rig: Rig, motion: RecordedMotion, chosen: Variables, training: float) -> list[JointCheck]:
    """What a run with the numbers of the rig explains."""
    loop, rows = ClosedLoop(rig, chosen, motion, True), round(training * len(motion.t))
    drive, start = loop.means(motion.drive), loop.count(rows)
    left = loop.errors(chosen.of_rig[None], len(motion.t))[0][:, len(motion.joints) :]
    sizes = ((rms_of(of[start:, k]) for of in (drive, left, left, drive + left)) for k in range(len(motion.joints)))
    return [JointCheck(joint, *of) for joint, of in zip(motion.joints, sizes, strict=True)]


def _unexplained(loop: ClosedLoop, found: OutputFit, rows: int) -> Unexplained:
    motion, n = loop.motion, len(loop.motion.joints)
    x = np.vstack([loop.variables.of_rig, found.fit.x])
    before, after = loop.errors(x, len(motion.t))[:, :, n:]
    t, drive = loop.means(motion.t), loop.means(motion.drive)
    return Unexplained(motion.joints, t, drive, before, after, np.ones(drive.shape, bool), loop.count(rows))
