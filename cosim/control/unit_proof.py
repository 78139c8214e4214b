"""Units of real joints, proven by their first motion: quantities that must agree are compared until they have.

Each proof compares y with x over blocks of samples, by least squares of

    y = factor · x + c · z                    (both through the origin)

with an interval from this factor to the one by regression of x on y, widened by BELIEF standard errors + ROUGH ·
|factor|. z is what else may be in y:

    proof      y                                 x                               z
    velocity   ∫ reported velocity dt            change of the position          change of the reported velocity
    motion     change of the measured position   change of the commanded one     the same
    effort     ∫ reported effort dt              ∫ requested effort dt           change of the reported effort
    model      ∫ reported effort dq              work that the model has taken   way

A filter or a loop of the first order with the time constant τ gives y = factor · x − τ · z exactly, so a lag is no
other factor; dry friction F gives F · z. A block counts when its motion is far above counts, noise and uneven
samples, and when no sample of it was late. The units of a proof are proven when the interval lies within its
tolerance, and wrong when it lies outside; else nothing is known. Pure, (n,) or (ROWS, …, n) each, SI.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cosim.control.differentiated import UNKNOWN
from cosim.core import ops
from cosim.core.types import Numeric, State

ABOVE_NOISE = 5.0  # times the noise and the resolution, that the motion of a block is at least
FEWEST_BLOCKS = 8  # with fewer of them nothing is known
BELIEF, ROUGH = 6.0, 0.05
WIDE_INTERVAL = 0.25, 0.5  # half of an interval, and a fraction of its factor, beyond which it says nothing
LATE_INTERVALS = 3.0  # times the interval between two samples, that the next one is late
SUMS = 7  # blocks, x², x z, z², x y, z y, y²
LEAST_DETERMINANT = 1e-6  # relative determinant below which z cannot be distinguished from x, and is left out
WRONG_SIGN = 1e6  # stands for the factor of the wrong sign in a disagreement


class Proof(NamedTuple):
    """A comparison of two quantities of a joint, and the disagreement that proves their units wrong.

    tolerance: greatest factor, either way; shortest, longest [s]: of a block; small: whether a small factor is wrong
    too. An effort that is measured may be any smaller, behind the friction of a gear or where a drive works between two
    samples: nothing is known then.
    """

    key: str
    tolerance: float
    shortest: float
    longest: float
    reports: str  # what is wrong, with the fields {factor} and {interval}
    check: str
    small: bool = True


VELOCITY = Proof(
    *("velocity", 1.5, 0.02, 0.5),
    "reports a velocity that is {factor} times the change of its position ({interval})",
    "check the units of velocity and position of its drive, and its gear ratio",
)
MOTION = Proof(
    *("motion", 2.0, 0.02, 0.5),
    "moves {factor} times as far as it is commanded ({interval})",
    "check the units of its commands, its gear ratio, and the limits of its drive",
)
EFFORT = Proof(
    *("effort", 3.0, 0.02, 0.5),
    "reports {factor} times the effort that it is commanded ({interval})",
    "check the unit of its effort, its torque constant, its gear ratio, and the limits of its drive",
    small=False,
)
MODEL = Proof(
    *("model", 5.0, 0.1, 1.0),
    "reports {factor} times the effort that the model requires for its motion ({interval})",
    "check the unit of its effort, its torque constant, its gear ratio, and the masses of the model",
    small=False,
)
ROWS, MODEL_ROW = 3, 2  # of proofs of a joint: by its velocity, by its commands, by the model

PARTS = {1: "tenths", 2: "hundredths", 3: "thousandths", 6: "millionths"}
MOTIONS, EFFORTS = ("velocity", "motion"), ("effort", "model")
# factor between two units, what they are, and proofs in which they may be mixed up
FACTORS: tuple[tuple[float, str, Sequence[str]], ...] = (
    (60.0 / (2.0 * np.pi), "rpm and rad/s", ("velocity",)),
    (60.0, "per minute and per second", ("velocity",)),
    (180.0 / np.pi, "degrees and radians", MOTIONS),
    (2.0 * np.pi, "turns and radians", MOTIONS),
    (9.80665, "kgf and N", EFFORTS),
    *((10.0**k, f"a unit and its {part}", MOTIONS + EFFORTS) for k, part in PARTS.items()),
)
MOST_CAUSES = 2  # of them are named


class UnitSample(NamedTuple):
    """What is known of n joints with their last samples: position; velocity, effort (NaN: not reported) as reported;
    commanded: position, or the integral of a commanded velocity; request: effort; work [J] that the model has taken."""

    position: Numeric
    velocity: Numeric
    effort: Numeric
    commanded: Numeric
    request: Numeric
    work: Numeric


def proofs_of(closed: np.ndarray) -> tuple[tuple[Proof, ...], ...]:
    """The proofs of n joints, (ROWS, n): one per row and joint. closed: bool (n,), whether a drive follows
    positions or velocities, or else efforts."""
    return (
        tuple(VELOCITY for _ in closed),
        tuple(MOTION if one else EFFORT for one in closed),
        tuple(MODEL for _ in closed),
    )


def initial(n: int) -> State:
    """Nothing is known: the last sample; smallest steps of velocity and effort; the interval before [s]; blocks (ROWS,
    4, n) with y, x, z and time; SUMS of each proof; whether it is proven."""
    return {
        "sample": {name: np.zeros(n) for name in UnitSample._fields},
        "resolution": np.full((2, n), UNKNOWN),
        "interval": np.zeros(n),
        "block": np.zeros((ROWS, 4, n)),
        "sums": np.zeros((ROWS, SUMS, n)),
        "proven": np.zeros((ROWS, n)),
    }


def updated(
    x: State, sample: UnitSample, interval: Numeric, noise: Numeric, step: float, closed: np.ndarray, is_first: Numeric
) -> tuple[State, Numeric]:
    """(x one tick later, disagreement (n,)): a joint has a new sample where `interval` [s] is above 0, elsewhere
    what it reports is the same. noise: of a change of the position; step [s]: of ticks; closed: of `proofs_of`;
    is_first (): whether the proofs begin with this sample.

    The disagreement is the factor by which the interval of a proof is outside 1, relative to its tolerance: above
    1 a unit is wrong. It is the largest of the proofs that are not done."""
    kept, last = ops.where(is_first, 0.0, 1.0), UnitSample(**x["sample"])
    reported = ops.abs(sample.effort) >= 0.0  # not NaN
    sample = sample._replace(effort=ops.where(reported, sample.effort, 0.0))
    moved, turned, pushed, commanded = (
        getattr(sample, name) - getattr(last, name) for name in ("position", "velocity", "effort", "commanded")
    )
    resolution = [
        _smaller(least, kept * change) for least, change in zip(x["resolution"], (turned, pushed), strict=True)
    ]
    mean_velocity, mean_effort = 0.5 * (sample.velocity + last.velocity), 0.5 * (sample.effort + last.effort)
    far = ABOVE_NOISE * noise

    def follows(a: Numeric, b: Numeric) -> Numeric:
        return a if closed.all() else b if not closed.any() else ops.where(closed, a, b)

    steps = (
        (mean_velocity * interval, moved, turned),
        (
            follows(moved, mean_effort * interval),
            follows(commanded, sample.request * interval),
            follows(turned, pushed),
        ),
        (mean_effort * moved, sample.work - last.work, moved),
    )
    new = interval > 0.0
    usual, now = ops.maximum(x["interval"], step), ops.maximum(interval, step)
    late = ops.logical_and(new, ops.logical_or(now > LATE_INTERVALS * usual, usual > LATE_INTERVALS * now))
    mute = ops.logical_not(reported)
    unusable = (late, ops.logical_or(late, ops.logical_and(mute, ~closed)), ops.logical_or(late, mute))
    blocks, sums, proven = [], [], []
    worst: Numeric = 0.0
    for k, proofs in enumerate(proofs_of(closed)):
        tolerance, shortest, longest, small = (
            np.array([getattr(proof, name) for proof in proofs])
            for name in ("tolerance", "shortest", "longest", "small")
        )
        y, x_, z, time = block = [b + s for b, s in zip(x["block"][k], (*steps[k], interval), strict=True)]
        resolved = ABOVE_NOISE * resolution[0] * time, ABOVE_NOISE * resolution[1] * time
        size = ops.maximum(ops.abs(y), ops.abs(x_))
        enough = (
            ops.logical_and(ops.abs(x_) >= far, size >= resolved[0]),
            follows(ops.abs(y) >= far, size >= resolved[1]),
            ops.logical_and(ops.abs(z) >= far, ops.abs(y) >= ABOVE_NOISE * resolution[1] * ops.abs(z)),
        )[k]
        ready = ops.logical_and(enough, time >= shortest)
        counts = ops.where(ops.logical_and(ready, ops.logical_not(unusable[k])), kept, 0.0)
        again = ops.logical_or(ops.logical_or(ready, unusable[k]), time >= longest)
        stays = ops.where(again, 0.0, kept)
        z = ops.abs(z) if k == MODEL_ROW else z
        products = (1.0, x_ * x_, x_ * z, z * z, x_ * y, z * y, y * y)
        totals = [kept * total + _selected(counts, one) for total, one in zip(x["sums"][k], products, strict=True)]
        known, low, high = interval_of(totals)
        agrees = ops.logical_and(known, ops.logical_and(low * tolerance >= 1.0, high <= tolerance))
        done = ops.maximum(kept * x["proven"][k], ops.where(agrees, 1.0, 0.0))
        judged = ops.logical_and(known, done < 0.5)
        worst = ops.maximum(worst, ops.where(judged, outside(low, high, tolerance, small), 0.0))
        blocks.append(ops.array([stays * one for one in block]))
        sums.append(ops.array(totals))
        proven.append(done)
    state = {
        "sample": sample._asdict(),
        "resolution": ops.array([ops.where(is_first, UNKNOWN, row) for row in resolution]),
        "interval": kept * ops.where(new, interval, x["interval"]),
        "block": ops.array(blocks),
        "sums": ops.array(sums),
        "proven": ops.array(proven),
    }
    return state, worst


def _smaller(least: Numeric, change: Numeric) -> Numeric:
    """The smallest step so far, with this change."""
    size = ops.abs(change)
    return ops.where(size > 0.0, ops.minimum(least, size), least)


def _selected(counts: Numeric, value: Numeric) -> Numeric:
    return ops.where(counts > 0.5, value, 0.0)


def outside(low: Numeric, high: Numeric, tolerance: Numeric, small: Numeric) -> Numeric:
    """The factor by which an interval is at least away from 1, either way, relative to the tolerance; small: see
    `Proof`."""
    below = ops.where(high > 0.0, 1.0 / ops.where(high > 0.0, high, 1.0), WRONG_SIGN)
    reversed_ = ops.where(high * tolerance < -1.0, WRONG_SIGN, 1.0)
    below = ops.where(small, below, reversed_)
    return ops.where(low > 1.0, low, ops.where(high < 1.0, below, 1.0)) / tolerance


def fitted(sums: Sequence[Numeric]) -> tuple[Numeric, Numeric, Numeric]:
    """(factor by the regression of y on x, factor by x on y, half of the interval of each), (n,) each, by the SUMS of
    a proof; both without what z explains.

    Where x is uncertain too, as a request that the drive follows later, the first one is too small by the fraction of x
    that y does not follow, and the second one too large by the fraction of y (Frisch 1934): the factor lies between."""
    count, xx, xz, zz, xy, zy, yy = sums
    both = xx * zz - xz * xz > LEAST_DETERMINANT * xx * zz
    scale = ops.where(both, 1.0 / ops.where(zz > 0.0, zz, 1.0), 0.0)
    xx, xy, yy = xx - scale * xz * xz, xy - scale * xz * zy, ops.maximum(yy - scale * zy * zy, 0.0)
    square = ops.where(xx > 0.0, xx, 1.0)
    factor = xy / square
    related = ops.abs(xy) > LEAST_DETERMINANT * ops.sqrt(square * yy)
    inverse = ops.where(related, yy / ops.where(related, xy, 1.0), factor)
    residual = ops.maximum(yy - factor * xy, 0.0) / ops.maximum(count - 2.0, 1.0)
    return factor, inverse, BELIEF * ops.sqrt(residual / square) + ROUGH * ops.abs(factor)


def interval_of(sums: Sequence[Numeric], least: int = FEWEST_BLOCKS) -> tuple[Numeric, Numeric, Numeric]:
    """(whether anything is known, lowest, highest factor), (n,) each."""
    factor, inverse, half = fitted(sums)
    low, high = ops.minimum(factor, inverse) - half, ops.maximum(factor, inverse) + half
    narrow = high - low <= 2.0 * (WIDE_INTERVAL[0] + WIDE_INTERVAL[1] * ops.abs(factor))
    return ops.logical_and(ops.logical_and(narrow, sums[1] > 0.0), sums[0] >= least), low, high


def question(proof: Proof, factor: float, low: float, high: float) -> str:
    """Which units mixed up would give a factor between `low` and `high`, as a question; what it is was not
    established."""
    if low < 0.0 < high:
        return "does it follow at all"
    if factor < 0.0:
        return "a wrong sign" if low <= -1.0 <= high else "a wrong sign and another unit"
    either = [(value, name) for ratio, name, keys in FACTORS if proof.key in keys for value in (ratio, 1.0 / ratio)]
    found = sorted((abs(np.log(value / factor)), name) for value, name in either if low <= value <= high)
    named = ", or ".join(name for _, name in found[:MOST_CAUSES])
    return f"{named} mixed up" if named else "a gear ratio, pole pairs or counts"


def finding(proofs: Sequence[Proof], least: int, sums: np.ndarray, proven: np.ndarray) -> tuple[str, str]:
    """(what is wrong, what to check) of a joint, by the proof that disagrees most, empty if none does; least:
    blocks that are enough; sums (ROWS, SUMS), proven (ROWS,): of this joint, as `proofs`."""
    worst, found = 0.0, ("", "")
    for proof, totals, done in zip(proofs, sums, proven, strict=True):
        known, low, high = (float(value) for value in interval_of(list(map(np.float64, totals)), least))
        beyond = float(outside(low, high, proof.tolerance, proof.small))
        if known and done < 0.5 and beyond > max(worst, 1.0):
            factor = 0.5 * (low + high)
            what = proof.reports.format(factor=f"{factor:.4g}", interval=f"{low:.3g} to {high:.3g}")
            worst, found = beyond, (f"{what}: {question(proof, factor, low, high)}?", proof.check)
    return found
