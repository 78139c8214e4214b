"""The equation errors of a recording in the values β in which they are linear, reduced to triangles.

Of every joint and every cluster of samples Σ e² = |R (β − β₀, 1)|² with a triangle R (QR). All that a fit needs is in
these: sums with any weights of the joints, and with any cluster left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cosim.apps.identification.blocks import DELAY, LINK, LoadBlock, VariableBlock, about_centre, about_frame
from cosim.apps.identification.equation_error import EquationError
from cosim.apps.identification.recorded_motion import MotionSamples
from cosim.apps.identification.variables import Variables
from cosim.core import ops
from cosim.core.compile.jacobian import Jacobian
from cosim.core.types import Array, Numeric
from cosim.rig.parameter_table import table_of
from cosim.rig.plant_parameters import PlantParameter
from cosim.rig.rig import Rig

BLOCK_LENGTH = 2.0  # s of a cluster of samples of one recording, in which errors are alike …
FEWEST_BLOCKS = 10  # … and shorter in a short one


@dataclass(frozen=True)
class LoadedEquation:
    """The equation error of a rig as a function of β of its variables; load: on a link, the one that a recording has.
    source: the signal that drives the joints; fixed: joints that do not move."""

    rig: Rig
    variables: Variables
    source: str
    load: LoadBlock | None = None
    fixed: tuple[str, ...] = ()

    @cached_property
    def equation(self) -> EquationError:
        """Of the variables, and of the link with the load."""
        names = [name for block in self._own_blocks for name in block.numbers]
        of_rig = [name for name in names if name in self._known and name not in self._of_link]
        of_signals = [name for name in names if name not in self._known]
        return EquationError(self.rig, (*self._of_link, *of_rig, *of_signals), self.source, self.fixed)

    @property
    def _own_blocks(self) -> list[VariableBlock]:
        """Those of the rig and its signals."""
        return [block for block in self.variables.blocks if not isinstance(block, LoadBlock)]

    @cached_property
    def _known(self) -> dict[str, PlantParameter]:
        return table_of(self.rig).per_run

    @cached_property
    def _of_link(self) -> tuple[str, ...]:
        return tuple(f"{self.load.link}.{what}" for what in LINK) if self.load else ()

    def values(self, beta: Numeric) -> Numeric:
        """(n,) of the numbers of the equation."""
        given, own = dict[str, Numeric](), np.zeros(0)
        for block, place in zip(self.variables.blocks, self.variables.places, strict=True):
            if not isinstance(block, LoadBlock):
                _spread(block.numbers, block.lengths, block.values_of_linear(beta[place]), given)
            elif block is self.load:
                own = block.in_frame(beta[place])
        if self.load:
            link = ops.concatenate([given.get(name, self._known[name].values) for name in self._of_link])
            _spread(self._of_link, LINK.values(), about_centre(about_frame(link) + own), given)
        return ops.concatenate([np.zeros(0), *(given[name] for name in self.equation.names)])

    @cached_property
    def slope(self) -> Jacobian:
        """∂values/∂β (n, size)."""
        return Jacobian(self.values, [(self.variables.size,)], "numbers_of_linear")

    @cached_property
    def delay(self) -> int | None:
        """Where β has the delay."""
        places = zip(self.variables.blocks, self.variables.places, strict=True)
        return next((place.start for block, place in places if block.title == DELAY), None)

    def __call__(self, beta: Array, samples: MotionSamples) -> tuple[Array, Array, Array]:
        """(e (k, nv), ∂e/∂β (k, nv, size), ∂e/∂signal (k, nv)) of all rows."""
        delay = float(beta[self.delay]) if self.delay is not None else 0.0
        values = np.asarray(self.values(beta), dtype=float)
        found, by_values, by_drive = self.equation.evaluate(values, samples, delay)
        by_beta = by_values @ self.slope(beta)
        if self.delay is not None:
            by_beta[..., self.delay] = -by_drive * samples.drive_rate
        return found, by_beta, by_drive


def _spread(names: Iterable[str], lengths: Iterable[int], values: Numeric, given: dict[str, Numeric]) -> None:
    """Values side by side -> of each name."""
    first = 0
    for name, length in zip(names, lengths, strict=True):
        given[name] = values[first : first + length]
        first += length


@dataclass(frozen=True)
class RecordedErrors:
    """Of the samples of one recording, as a function of β."""

    equation: LoadedEquation
    samples: MotionSamples

    def __call__(self, beta: Array, everywhere: bool = False) -> tuple[Array, Array]:
        """(e (k, nv), ∂e/∂β (k, nv, size)), 0 where a joint turns round; everywhere: also there."""
        found, by_beta = (self.samples.smoothed(of) for of in self.equation(beta, self.samples)[:2])
        if everywhere:
            return found, by_beta
        moving = self.samples.moving
        return np.where(moving, found, 0.0), np.where(moving[..., None], by_beta, 0.0)

    def part(self, which: slice) -> RecordedErrors:
        return replace(self, samples=self.samples.part(which))

    def unexplained(self, beta: Array) -> Array:
        """(n, nv) of the kept rows; see `unexplained_rows`."""
        return self.samples.smoothed(self.unexplained_rows(beta))

    def unexplained_rows(self, beta: Array) -> Array:
        """(k, nv) what the numbers predict of the recorded signals, less these: e over −∂e/∂signal, which is 1 where
        the effort that a joint needs does not grow with that of its drive."""
        found, _, by_drive = self.equation(beta, self.samples)
        return -found / by_drive

    def least_noise(self, quiet: float) -> Array:
        """(nv,) a fraction of the signals."""
        return quiet * np.maximum(np.sqrt(np.mean(self.samples.drive**2, axis=0)), 1e-12)


def clusters_of(samples: MotionSamples, whole: bool) -> Array:
    """(k,) number of the cluster of each kept row; whole: all are one."""
    t = samples.t[samples.kept]
    if whole or not len(t):
        return np.zeros(len(t), dtype=int)
    count = max(FEWEST_BLOCKS, int((t[-1] - t[0]) / BLOCK_LENGTH))
    return np.minimum((t - t[0]) / (t[-1] - t[0]) * count, count - 1).astype(int)


def triangle(rows: Array) -> Array:
    """R (m, m) of rows (k, m), with columns of very different units."""
    scale = np.maximum(np.linalg.norm(rows, axis=0), 1e-300)
    found = np.zeros((rows.shape[1], rows.shape[1]))
    R = np.linalg.qr(rows / scale, mode="r") * scale
    found[: len(R)] = R
    return found
