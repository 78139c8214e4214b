"""Why a recording does not fit a rig: the signs and units that it may have, each tried on the data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from cosim.apps.identification.recorded_motion import RecordedMotion
from cosim.core.errors import InputError, RunError
from cosim.core.types import Array
from cosim.core.units import show_percent
from cosim.rig.rig import Rig

LEAST_EXPLAINED = 0.5  # of the mean square of a drive: numbers that explain less of it explain nothing
BETTER_UNEXPLAINED = 0.1  # of what is left unexplained: others that leave so much less are the likely ones
FITTING_ERROR = 0.1  # position error of a run in another unit, as a fraction of the motion


@dataclass(frozen=True)
class Suspicion:
    """A wrong sign or unit that a recording may have. text: what may be the matter; fix: what to do then; motion: as it
    would be."""

    text: str
    fix: str
    motion: RecordedMotion


def suspicions_of(rig: Rig, motion: RecordedMotion) -> Iterator[Suspicion]:
    yield from of_positions(rig, motion)
    yield from _of_signs(motion)


def of_positions(rig: Rig, motion: RecordedMotion) -> Iterator[Suspicion]:
    """Other units of all positions, rad and m."""
    units = dict(zip(rig.joints, rig.plant.model.dof_units, strict=True))
    turning = np.array([units[name] == "rad" for name in motion.joints])
    units_by_kind = (("degrees", "rad", turning, np.pi / 180.0), ("revolutions", "rad", turning, 2.0 * np.pi))
    for other, unit, which, factor in (*units_by_kind, ("mm", "m", ~turning, 1e-3)):
        if which.any():
            position = motion.position * np.where(which, factor, 1.0)
            yield Suspicion(f"the positions are in {other}", f"give {unit}", replace(motion, position=position))


def _of_signs(motion: RecordedMotion) -> Iterator[Suspicion]:
    """Of the drives, of all joints or of one, and of the positions of one."""
    n, source = len(motion.joints), motion.source
    if n > 1:
        yield Suspicion(f"all {source} signals have the other sign", "turn it", replace(motion, drive=-motion.drive))
    for k, joint in enumerate(motion.joints):
        signs = np.where(np.arange(n) == k, -1.0, 1.0)
        text = f"{joint}/{source} has the other sign"
        yield Suspicion(text, "turn it", replace(motion, drive=motion.drive * signs))
        if n > 1:
            text = f"the position of {joint} has the other sign"
            yield Suspicion(text, "turn it", replace(motion, position=motion.position * signs))


def cause_of(rig: Rig, motion: RecordedMotion, compare: Callable[[RecordedMotion], tuple[Array, Array] | None]) -> str:
    """The suspicion under which the most is explained, in words, empty if none explains much more than the recording
    as it is. compare: of a motion, the fractions (n,) of the mean square of each drive that are explained of the
    recording as it is, and of that motion, on the same rows, NaN where a joint does not move; None where the joints do
    not move in the same rows."""
    best, cause = LEAST_EXPLAINED, ""
    for suspicion in suspicions_of(rig, motion):
        try:
            both = compare(suspicion.motion)
        except (InputError, RunError):  # such a motion is none, or has no possible numbers
            continue
        if both is None:
            continue
        now, then = (float(np.min(of, initial=1.0, where=np.isfinite(of))) for of in both)
        if then > max(best, 1.0 - BETTER_UNEXPLAINED * (1.0 - now)):
            best, cause = then, f"it would be {show_percent(then)} if {suspicion.text}; {suspicion.fix}"
    return cause


def unit_of_positions(rig: Rig, motion: RecordedMotion, simulated: Array) -> str:
    """The unit in which the positions fit a simulated run (k, n), in words with the fix; empty for none."""
    for suspicion in of_positions(rig, motion):
        recorded = suspicion.motion.position
        strayed = np.sqrt(np.mean((recorded - simulated) ** 2, axis=0))
        if (strayed < FITTING_ERROR * np.std(recorded, axis=0)).all():
            return f"{suspicion.text}; {suspicion.fix}"
    return ""
