"""The times at which given functions of time have breaks, and the smooth pieces between them.

At a break a derivative of a prescribed motion, of a moving base or of a timed law jumps. No step of an integrator
passes one, or its order is lost. A piece is evaluated from just after its first break to just before its last one, so
that it does not matter to which side a function counts the instant itself, or how its own arithmetic rounds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from cosim.core.compile import ArrayPort, compile_for_batches
from cosim.core.compile.row_lookup import RowLookup
from cosim.core.types import Array, Numeric, Trajectory, breaks_of
from cosim.mechanics.multibody.given_rotation import GivenRotation

ROUNDING = 16 * float(np.finfo(float).eps)  # relative distance of the ends of a piece from its breaks
JUST_ABOVE_ZERO, NEVER = 1e-300, 1e300  # s
COMPILED_FROM = 500  # times at which a function is sampled, from which on machine code is faster
# of a jump: relative to the values, and in m, rad, m/s or rad/s; less is rounding
LEAST_RELATIVE_JUMP, LEAST_JUMP = 1e-9, 1e-12

GivenSample = Callable[[Numeric], tuple[Numeric, Numeric, Numeric]]  # t -> value, first and second derivative, (n,)


class Piece(NamedTuple):
    """The smooth piece at a time: its first and its last time [s], the first time of the piece after it, and whether
    velocities jump between both (1 or 0)."""

    begin: Numeric
    end: Numeric
    next_begin: Numeric
    jumps: Numeric


@dataclass(frozen=True, eq=False)
class Breaks:
    """Of k breaks the last times before them and the first times after them [s], increasing, and whether velocities
    jump there, (k,) each."""

    before: Array
    after: Array
    jumps: Array

    @classmethod
    def of(cls, breaks: Iterable[tuple[float, bool]]) -> Breaks:
        """breaks: times [s], and whether velocities jump there. Those that differ by rounding are one."""
        pairs = sorted(breaks)
        times = np.array([time for time, _ in pairs], dtype=float)
        before, after = just_before(times), just_after(times)
        first = np.flatnonzero(np.concatenate(([True], before[1:] > after[:-1])))[: len(times)]
        last = np.concatenate((first[1:], [len(times)])).astype(int) - 1
        jump = np.array([jumps for _, jumps in pairs], dtype=bool)
        jumps = [jump[a : b + 1].any() for a, b in zip(first, last, strict=False)]
        return cls(before[first], after[last[: len(first)]], np.array(jumps, dtype=bool))

    def __bool__(self) -> bool:
        return len(self.before) > 0

    @property
    def has_jumps(self) -> bool:
        return bool(self.jumps.any())

    def most_within(self, length: float) -> int:
        """How many breaks one step of this length [s] meets at most."""
        reach = self.before + length * (1.0 + 1e-9) + 2.0 * ROUNDING * self.before
        return int((np.searchsorted(self.before, reach, side="right") - np.arange(len(self.before))).max(initial=0))

    @cached_property
    def _table(self) -> RowLookup:
        begins = np.concatenate(([-NEVER], self.after))
        ends, nexts = (np.concatenate((times, [NEVER])) for times in (self.before, self.after))
        rows = np.column_stack((begins, ends, nexts, [*self.jumps, False]))
        return RowLookup(np.concatenate(([-np.inf], self.before)), rows.astype(float), "smooth_piece")

    def piece(self, t: Numeric) -> Piece:
        """The piece of a step that begins at a time [s]; just before a break it is the piece after the break."""
        row = self._table(t)
        return Piece(row[0], row[1], row[2], row[3])


def just_before(times: Array) -> Array:
    """The last times before breaks at these times [s]."""
    return times * (1.0 - ROUNDING)


def just_after(times: Array) -> Array:
    """The first times after breaks at these times [s]."""
    return np.maximum(times * (1.0 + ROUNDING), JUST_ABOVE_ZERO)


def first_time(given: object) -> float:
    """The time at which a given function of time starts [s]: just after 0 where it has a break there."""
    return JUST_ABOVE_ZERO if 0.0 in breaks_of(given) else 0.0


def jumps_at(times: Array, sample: GivenSample) -> tuple[Array, Array]:
    """Whether the value, and whether the first derivative of a given function jumps at each of the times (k,) [s], bool
    (k,) each. At 0 nothing jumps: it is the start."""
    if not len(times):
        return np.zeros(0, dtype=bool), np.zeros(0, dtype=bool)
    before, after = _sampled(sample, just_before(times)), _sampled(sample, just_after(times))
    found = []
    for of, rate in ((0, 1), (1, 2)):
        moves = np.maximum(np.abs(before[rate]), np.abs(after[rate])) * 4.0 * ROUNDING * times[:, None]
        rounding = LEAST_RELATIVE_JUMP * (np.abs(before[of]) + np.abs(after[of])) + LEAST_JUMP
        found.append((np.abs(after[of] - before[of]) > rounding + moves).any(axis=1) & (times > 0.0))
    return found[0], found[1]


def _sampled(sample: GivenSample, times: Array) -> tuple[Array, Array, Array]:
    """(k, n) each."""
    if len(times) >= COMPILED_FROM:
        compiled = compile_for_batches(sample, [ArrayPort("t", ())], "given_motion", interpret=False)
        value, rate, bend = (np.reshape(part, (len(times), -1)) for part in compiled(times))
    else:
        rows = [[np.asarray(part, dtype=float) for part in sample(float(t))] for t in times]
        value, rate, bend = (np.array(parts) for parts in zip(*rows, strict=True))
    return value, rate, bend


def motion_of(trajectory: Trajectory) -> GivenSample:
    """Its position, velocity and acceleration."""

    def sample(t: Numeric) -> tuple[Numeric, Numeric, Numeric]:
        values = trajectory.sample(t)
        return values["position"], values["velocity"], values["acceleration"]

    return sample


def motion_of_rotation(rotation: GivenRotation) -> GivenSample:
    """Its angular velocity and acceleration. The rotation itself, which has no jumps, counts as still."""

    def sample(t: Numeric) -> tuple[Numeric, Numeric, Numeric]:
        _, omega, alpha = rotation.sample(t)
        return np.zeros(3), omega, alpha

    return sample


def velocity_jumps(given: object, sample: GivenSample) -> Array:
    """The times [s] at which the velocity of a given motion jumps."""
    times = breaks_of(given)
    return times[jumps_at(times, sample)[1]]
